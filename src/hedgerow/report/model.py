"""What a report holds: plain frozen values that go to JSON and come back equal.

Nothing here draws or formats. A study fills a `Report`; `page` and `console` show it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

from hedgerow.errors import StudyInvalid
from hedgerow.report.heat import Heat

from .flow import Flow
from .forest import ForestPlot
from .headline import Headline
from .pictures import Pictures
from .plain_values import frozen, to_plain

Cell = str | int | float | None
"""What a table or a fact may hold; `None` is shown as a dash."""

Pairs = tuple[tuple[str, Cell], ...]
"""Labels and their values, in the order in which they are shown."""


@dataclass(frozen=True)
class Series:
    """One line of a curve.

    Parameters
    ----------
    name : str
        As the legend shows it.
    x, y : tuple of float
        Equally long; a `y` that is not finite breaks the line. A `reference` of one point is drawn across the whole
        figure, as the level that a baseline reaches.
    style : {"main", "reference", "muted"}
        What the reader came for, what it is compared with, and context.
    low, high : tuple of float
        Ends of a band around the line, one for each x; none by default.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: Literal["main", "reference", "muted"] = "main"
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if {len(self.low), len(self.high)} not in ({0}, {len(self.x)}):
            raise StudyInvalid(
                f"series {self.name!r} has {len(self.x)} x, and a band of {len(self.low)} and {len(self.high)} ends",
                remedy="Give two ends for every x, or none.",
            )
        if len(self.x) != len(self.y):
            raise StudyInvalid(
                f"series {self.name!r} has {len(self.x)} x and {len(self.y)} y",
                remedy="Give one y for every x.",
            )

    @property
    def is_level(self) -> bool:
        """Whether this is a single value that holds for every x."""
        return self.style == "reference" and len(self.y) == 1


@dataclass(frozen=True)
class Curve:
    """A figure of lines; `line` draws one horizontal limit, such as a budget or a target, which `note` explains.

    `log` names the axes whose steps are factors: "x", "y" or "xy". What is not above zero has no place on such an axis
    and breaks the line. `shape` is "square" where shares are drawn against shares on two equal axes, and "points" where each
    of them is a dot with its interval besides.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    line: float | None = None
    note: str = ""
    log: Literal["", "x", "y", "xy"] = ""
    shape: Literal["", "square", "points"] = ""


@dataclass(frozen=True)
class Dots:
    """Several numbers of each of several things.

    Parameters
    ----------
    title, x_label : str
    names : tuple of str
        One for each row.
    marks : tuple of (str, tuple of float)
        What each mark means, and its place in each row; NaN leaves it out. At most five.
    line : float or None
        A place that all rows share, such as that of a guess.
    note : str
    """

    title: str
    x_label: str
    names: tuple[str, ...]
    marks: tuple[tuple[str, tuple[float, ...]], ...]
    line: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(values) != len(self.names) for _, values in self.marks) or not 0 < len(self.marks) <= 5:
            raise StudyInvalid(
                f"{self.title!r} has {len(self.names)} rows and marks of {[len(values) for _, values in self.marks]}.",
                remedy="Give each of at most five marks one place for every row.",
            )


@dataclass(frozen=True)
class BarChart:
    """Shares of the same bins or levels in several tables, side by side.

    Parameters
    ----------
    title, x_label : str
    bars : tuple of (str, tuple of float)
        What each colour means, and its value in each bin or level. At most five.
    names : tuple of str
        Levels; or none where `ends` are given.
    ends : tuple of float
        Ends of bins, one more than there are bins; they are drawn equally wide.
    note, y_label : str
    """

    title: str
    x_label: str
    bars: tuple[tuple[str, tuple[float, ...]], ...]
    names: tuple[str, ...] = ()
    ends: tuple[float, ...] = ()
    note: str = ""
    y_label: str = "share"

    def __post_init__(self) -> None:
        places = len(self.ends) - 1 if self.ends else len(self.names)
        if places < 1 or any(len(values) != places for _, values in self.bars) or not 0 < len(self.bars) <= 5:
            raise StudyInvalid(
                f"{self.title!r} has {places} bins or levels and bars of {[len(values) for _, values in self.bars]}.",
                remedy="Give each of at most five colours one value for every bin or level.",
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each bin or level."""
        ends = [f"{end:g}" for end in self.ends]
        between = itertools.pairwise(ends)
        return self.names if not self.ends else tuple(low if low == high else f"{low} to {high}" for low, high in between)


@dataclass(frozen=True)
class Comparison:
    """One metric beside its alternatives.

    Parameters
    ----------
    metric : str
        What is compared, as a reader would say it: "accuracy".
    higher_is_better : bool
        The direction, which gives the loss its sign.
    rows : tuple of (name, value, note)
        Rows whose names begin with "federated" and "centralised" give the loss.
    sentence : str
        What the reader should take from it.
    ranges : tuple of (name, lowest, highest)
        Spread of a row over parties, drawn as a bar behind its dot.
    useful : bool
        Whether the federated model predicts anything; a loss beside the centralised one is of no meaning where it does not.
    """

    metric: str
    higher_is_better: bool
    rows: tuple[tuple[str, float, str], ...]
    sentence: str = ""
    ranges: tuple[tuple[str, float, float], ...] = ()
    useful: bool = True

    @property
    def loss(self) -> float | None:
        """How much worse the federated value is than the centralised one; negative when it is better."""
        federated, centralised = self._value("federated"), self._value("centralised", "centralized")
        if federated is None or centralised is None or not self.useful:
            return None
        return centralised - federated if self.higher_is_better else federated - centralised

    def _value(self, *beginnings: str) -> float | None:
        return next((value for name, value, _ in self.rows if name.lower().startswith(beginnings)), None)


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the row. On a page of findings one may be `folded` away, whose numbers a figure draws."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class AuditLights:
    """What an audit found beside the accounted epsilon.

    Parameters
    ----------
    accounted, sentence : str
        What the ledger states of the runs of the audit, and how they were made.
    lights : tuple of (name, light, found, beside)
        The light is "green", "red", or "dim" where the audit would not see enough to say anything.
    power : str
        What the audit would see, and with what chance.
    scores : BarChart or None
        Scores of canaries that were in, and of those that were not.
    """

    accounted: str
    sentence: str
    lights: tuple[tuple[str, str, str, str], ...]
    power: str
    scores: BarChart | None = None

    @property
    def red(self) -> bool:
        """Whether something is not as the ledger says."""
        return any(light == "red" for _, light, _, _ in self.lights)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that one run has to say for itself.

    Parameters
    ----------
    title, study, description : str
        A heading, the name of the study, one line on what was done.
    nothing : str
        That the run learned nothing, or diverged, where it did: the first thing on the page.
    privacy : str
        The guarantee in one sentence, from the ledger.
    privacy_ok : bool
        Whether that sentence claims a finite epsilon.
    privacy_weak : bool
        Whether that epsilon is so large that it promises hardly anything.
    exposed : str
        What is published without protection beside the releases, in sentences.
    facts : pairs
        Parties, records, rounds, engine, seconds.
    metrics : pairs
        The few numbers that a reader looks for first.
    curves, heat, comparison
        Figures: by round, the partition, and the alternatives.
    dots : tuple of Dots
        Figures of several numbers of each of several things.
    bars : tuple of BarChart
        Histograms side by side.
    heats : tuple of Heat
        Shaded tables of results, such as a matrix of correlations.
    pictures : tuple of Pictures
        Rows of small pictures, such as records beside what an attack made of them.
    forests : tuple of ForestPlot
        Estimates of sites with intervals, and of all together; each is a section, and its title the heading.
    flows : tuple of Flow
        Where records were lost.
    headlines : tuple of Headline
        The few numbers of a page of findings, each with a line beneath. Where there are some, the page is in the order of a
        reader who asks for the answer first; facts and metrics are folded away.
    witnesses : Grid or None
        Who saw what, and what they did not see.
    left : Grid or None
        What left each party: query, times, numbers per party, bound, mechanism, event.
    published : Grid or None
        What was published, of whose data, and whether that is charged.
    tables_first : bool
        Whether the tables are what the reader came for, and stand above the figures.
    parties : Grid or None
        One row per party.
    tables : tuple of Grid
        Results, such as a table of coefficients.
    text : tuple of (title, text)
        Preformatted blocks, such as a summary.
    saw : tuple of (role, sentences)
        What each role received, where parties held different columns: parties, the hub, the world.
    traffic : Grid or None
        Letters between these roles: bytes and rounds, by role and purpose.
    audit : AuditLights or None
        What an audit of the study found, in runs of its own.
    notes, warnings : tuple of str
        Sentences; warnings are shown beside the privacy statement.
    provenance : pairs
        Versions, seeds and the command.
    """

    title: str
    study: str
    description: str
    privacy: str
    privacy_ok: bool
    facts: Pairs = ()
    metrics: Pairs = ()
    curves: tuple[Curve, ...] = ()
    heat: Heat | None = None
    comparison: Comparison | None = None
    parties: Grid | None = None
    left: Grid | None = None
    tables: tuple[Grid, ...] = ()
    text: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    provenance: Pairs = ()
    privacy_weak: bool = False
    exposed: str = ""
    published: Grid | None = None
    nothing: str = ""
    tables_first: bool = False
    saw: tuple[tuple[str, tuple[str, ...]], ...] = ()
    traffic: Grid | None = None
    dots: tuple[Dots, ...] = ()
    bars: tuple[BarChart, ...] = ()
    heats: tuple[Heat, ...] = ()
    audit: AuditLights | None = None
    pictures: tuple[Pictures, ...] = ()
    forests: tuple[ForestPlot, ...] = ()
    flows: tuple[Flow, ...] = ()
    headlines: tuple[Headline, ...] = ()
    witnesses: Grid | None = None

    @property
    def promise(self) -> tuple[str, str]:
        """A heading for the privacy statement, and its kind: private, weak or open."""
        if not self.privacy_ok:
            return "Not differentially private", "open"
        if self.privacy_weak:
            return "An epsilon that promises hardly anything", "weak"
        return "Differentially private" + (", but for what is exposed" if self.exposed else ""), "private"

    def to_json(self) -> dict[str, Any]:
        """Return plain lists, dictionaries and strictly lawful JSON numbers."""
        data: dict[str, Any] = to_plain(self)
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """Return the report that `to_json` described.

        Raises
        ------
        StudyInvalid (HR-101)
            The data is not a report, or one of another version.
        """
        try:
            values = {key: frozen(value) for key, value in data.items()}
            grids = dict.fromkeys(("parties", "left", "published", "traffic", "witnesses"), Grid)
            for key, kind in {"heat": Heat, "comparison": Comparison, **grids}.items():
                if values.get(key) is not None:
                    values[key] = kind(**values[key])
            values["curves"] = tuple(map(curve_from, values["curves"]))
            values["tables"] = tuple(Grid(**grid) for grid in values["tables"])
            values["dots"] = tuple(Dots(**one) for one in values.get("dots", ()))
            values["bars"] = tuple(BarChart(**one) for one in values.get("bars", ()))
            values["heats"] = tuple(Heat(**one) for one in values.get("heats", ()))
            if (audit := values.get("audit")) is not None:
                scores = audit["scores"] and BarChart(**audit["scores"])
                values["audit"] = AuditLights(**audit | {"scores": scores})
            values["pictures"] = tuple(map(Pictures.from_plain, values.get("pictures", ())))
            values["forests"] = tuple(map(ForestPlot.from_plain, values.get("forests", ())))
            values["flows"] = tuple(map(Flow.from_plain, values.get("flows", ())))
            values["headlines"] = tuple(Headline(**one) for one in values.get("headlines", ()))
            return cls(**values)
        except (AttributeError, KeyError, TypeError) as error:
            raise StudyInvalid(
                f"this is not a report of this version: {type(error).__name__} at {error}",
                remedy="Write the report again with the installed version.",
            ) from error


def curve_from(data: dict[str, Any]) -> Curve:
    """The curve of which `to_plain` made these values, as JSON gives them back."""
    values = {key: frozen(value) for key, value in data.items()}
    return Curve(**values | {"series": tuple(Series(**one) for one in values["series"])})
