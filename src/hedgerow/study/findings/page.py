"""The outcomes of several programs on one page: tables in words, and the numbers at its top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.disclosure import rounded
from hedgerow.core.federation import Federation
from hedgerow.core.findings import is_simulated
from hedgerow.data.cases import all_left_out
from hedgerow.report import Curve, ForestPlot, ForestRow, Grid, Headline, Outcome, grid_of, plain_outcome
from hedgerow.report.numerals import fixed, show
from hedgerow.report.papers import ESTIMATES, as_read, coefficient_grid, ends_of, p_value, ratio_of

from .analyses import AnalysesState, Analysis

if TYPE_CHECKING:
    pass

LONG = 10
"""A longer table, whose numbers a figure draws, is folded away."""
WORDS = ((0.6, "hardly"), (0.7, "weakly"), (0.8, "fairly"), (0.9, "well"))
"""What an area under the ROC curve below each number is called; those above are very good."""


def page_of(federation: Federation, settings: Mapping[str, Any], parts: Sequence[Analysis], state: AnalysesState) -> Outcome:
    """Put the outcomes of all parts together."""
    shown = {part: _shown(federation, part, state.of(part)) for part in parts if state.of(part) is not None}
    labels, about = settings["labels"], settings["about"]
    grids = [grid for part, one in shown.items() for grid in _grids(part, one, labels, settings["aside"])]
    forests = [_named(forest, part, labels) for part, one in shown.items() for forest in one.forests]
    first = next((one for one in shown.values() if one.coefficients is not None), Outcome())
    totals = [one.total for each in shown.values() for one in each.forests if one.title.startswith(f"{about}:")]
    effect = _effect(list(shown.values()), [one for one in totals if one is not None], about)
    lacking = f"No part has a term {about!r}, of which the page is to be about." if about and effect is None else ""
    several = len(shown) > 1
    metrics = {
        f"{name}, {part.name}" if several else name: value for part, one in shown.items() for name, value in one.metrics.items()
    }
    return Outcome(
        metrics=metrics,
        grids=grids,
        text={f"{title} · {part.name}": text for part, one in shown.items() for title, text in one.text.items()},
        arrays={f"{part.name}.{key}": value for part, one in shown.items() for key, value in one.arrays.items()},
        coefficients=first.coefficients,
        curves=[_drawn(curve, part, labels) for part, one in shown.items() for curve in one.curves],
        notes=[lacking, *(note for one in shown.values() if not one.forests for note in one.notes)],
        dots=_all(shown, "dots"),
        bars=_all(shown, "bars"),
        heats=_all(shown, "heats"),
        pictures=_all(shown, "pictures"),
        forests=forests,
        flows=_all(shown, "flows"),
        headlines=tuple(_headlines(federation, list(shown.values()), effect, about, labels)),
    )


def _shown(federation: Federation, part: Analysis, state: Any) -> Outcome:
    given = (federation, part.settings, state, *((None,) if part.listing.with_records else ()))
    found: Outcome = (part.listing.outcome or plain_outcome)(*given)
    return found


def _all(shown: Mapping[Analysis, Outcome], name: str) -> tuple[Any, ...]:
    return tuple(one for outcome in shown.values() for one in getattr(outcome, name))


def _grids(part: Analysis, outcome: Outcome, labels: Mapping[str, str], aside: Sequence[str]) -> list[Grid]:
    """The tables of a part: coefficients as ratios with their intervals in one table, where they are logarithms of these.

    What a forest plot shows has no tables besides; its part's summary has the numbers.
    """
    if outcome.forests:
        return []
    labels = {**labels, **_of_part(part, labels)}
    found, frame = list(outcome.grids), outcome.coefficients
    made = None if frame is None else coefficient_grid(part.title or "Coefficients", frame, labels, aside)
    if made is not None:
        found.append(replace(made, note="Associations, not causes."))
    else:
        found += [_labelled(grid_of(title, one), labels) for title, one in outcome.tables.items()]
        if part.title and found:
            found[0] = replace(found[0], title=part.title)
        if found and outcome.curves and len(found[0].rows) > LONG:
            found[0] = replace(found[0], folded=True)
        if found and outcome.coefficients is None and outcome.metrics:
            found[0] = replace(found[0], note=" ".join(filter(None, [found[0].note, _in_words(outcome.metrics)])))
    return found


def _in_words(metrics: Mapping[str, float]) -> str:
    """A test in a line: chi-squared 30.6, p below 0.001."""
    said = ", ".join(f"{name} {p_value(value) if name == 'p' else show(float(value))}" for name, value in metrics.items())
    return f"{said[:1].upper()}{said[1:]}."


def _drawn(curve: Curve, part: Analysis, labels: Mapping[str, str]) -> Curve:
    """A figure whose lines are called as the part's levels are."""
    labels = {**labels, **_of_part(part, labels)}
    series = tuple(replace(one, name=labels.get(one.name, one.name)) for one in curve.series)
    return replace(curve, series=series, title=labels.get(curve.title, curve.title))


def _labelled(grid: Grid, labels: Mapping[str, str]) -> Grid:
    """With words for names, in headings and in the first column, where a name may be followed by a level."""
    rows = tuple((_words(row[0], labels), *row[1:]) for row in grid.rows)
    heads = tuple(str(_words(name, labels)) for name in grid.columns)
    return replace(grid, columns=heads, rows=rows, note=grid.note)


def _words(cell: Any, labels: Mapping[str, str]) -> Any:
    if not isinstance(cell, str):
        return cell
    if cell in labels:
        return labels[cell]
    if cell.startswith("  "):  # a level below its column
        return f"\N{EM SPACE}{labels.get(cell.strip(), cell.strip())}"
    for mark in (": ", " = ", ", ", " ("):
        name, found, rest = cell.partition(mark)
        if found and name in labels:
            return f"{labels[name]}{found}{labels.get(rest, rest)}"
    return cell


def _of_part(part: Analysis, labels: Mapping[str, str]) -> dict[str, str]:
    """Labels that hold in one part alone: "who.days" for "days" in the part "who"."""
    start = f"{part.name}."
    return {name.removeprefix(start): word for name, word in labels.items() if name.startswith(start)}


def _named(forest: ForestPlot, part: Analysis, labels: Mapping[str, str]) -> ForestPlot:
    labels = {**labels, **_of_part(part, labels)}
    rows = tuple(replace(row, name=labels.get(row.name, row.name)) for row in forest.rows)
    total = forest.total and replace(forest.total, name=labels.get(forest.total.name, forest.total.name))
    alone = part.title and len(part.settings.get("coefficients") or ()) == 1
    title = part.title if alone else str(_words(forest.title, labels))
    return replace(forest, rows=rows, total=total, x_label=str(_words(forest.x_label, labels)), title=title)


def _headlines(
    federation: Federation,
    shown: Sequence[Outcome],
    effect: tuple[str, str] | None,
    about: str,
    labels: Mapping[str, str],
) -> list[Headline]:
    found = []
    counted = next((one.counted for one in shown if one.counted), {})
    left = next((one for one in all_left_out(federation) if one.known and one.records), None)
    exact = is_simulated(federation)  # else people see multiples of five, as everywhere
    count, nearly = (round, "") if exact else (lambda n: rounded(round(n)), "about ")
    if "records" in counted:
        beneath = (
            "" if left is None else f"{left.shown(left.complete) / max(left.shown(left.records), 1):.1%} of those asked about"
        )
        n = f"{nearly}{show(count(counted['records']))}"
        found.append(Headline(labels.get("in the model", "Records in the model"), n, beneath))
    if "events" in counted:
        share = count(counted["events"]) / max(count(counted["records"]), 1)  # one of exact counts would tell them
        said = f"{nearly}{show(count(counted['events']))} of them"
        found.append(Headline(labels.get("events", "Events"), f"{share:.1%}", said))
    if effect is not None:
        found.append(Headline(labels.get(about, about), *effect))
    concordance = next((one.metrics["concordance"] for one in shown if "concordance" in one.metrics), None)
    if concordance is not None:
        found.append(
            Headline(labels.get("concordance", "Tells them apart"), fixed(concordance, 2), f"concordance: {_word(concordance)}")
        )
    return found


def _effect(shown: Sequence[Outcome], totals: Sequence[ForestRow], about: str) -> tuple[str, str] | None:
    """What the page is about, and its interval: the total of its own forest plot, or else a row of a table of coefficients."""
    for one in shown:
        frame = one.coefficients
        ratio = None if frame is None else ratio_of(frame)
        if frame is None or ratio is None or about not in frame.index:
            continue
        value, *ends = frame[[ratio, "low", "high"]].to_numpy(dtype=float)[list(frame.index).index(about)].tolist()
        if totals:
            value, low, high = totals[0].estimate, totals[0].low, totals[0].high
        else:
            low, high = ends_of(ends, ratio)
        unit = "" if ratio in ESTIMATES else f"{ratio.removesuffix(' ratio')}; "
        plus = ("+" if value > 0 else "") if ratio in ESTIMATES else "× "
        return f"{plus}{as_read(value, ratio)}", f"{unit}95% {as_read(low, ratio)} to {as_read(high, ratio)}"
    return None


def cautions(federation: Federation, labels: Mapping[str, str]) -> tuple[str, ...]:
    """What a reader should keep in mind: how many records the first model left out."""
    first = next((one for one in all_left_out(federation) if one.known and one.records), None)
    if first is None or not first.shown(first.left_out):
        return ()
    share = f"{first.shown(first.left_out) / max(first.shown(first.records), 1):.1%}"
    named = [
        labels.get(f"flow.{name}", name)
        for name, lost in zip(first.optional, first.counts[1:], strict=True)
        if first.shown(lost)
    ]
    which = ", ".join(named)
    return (
        f"Records that lack a value of the model were left out ({share}{f'; {which}' if named else ''}): it is about those who "
        "have all.",
    )


def _word(area: float) -> str:
    return next((word for below, word in WORDS if area < below), "very well")


def area_headline(metrics: Mapping[str, float], labels: Mapping[str, str]) -> Headline | None:
    """How well the model tells events from others, of what was measured."""
    area, error = metrics.get("AUC"), metrics.get("AUC standard error")
    if area is None:
        return None
    ends = "" if error is None else f"95% {fixed(area - 1.96 * error, 2)} to {fixed(min(area + 1.96 * error, 1.0), 2)}: "
    return Headline(labels.get("AUC", "Tells them apart (AUC)"), fixed(area, 2), f"{ends}{_word(area)}")
