"""Several programs one after the other on the same federation.

    for each part, in the order of the study:
        run its program to its end, on the same parties under the same budget, its questions charged as they are asked

    [program]
    name = "analyses"
    [program.parts.model]
    name = "logistic_regression"
    formula = "readmitted ~ age + days"
    [program.parts.who]
    name = "table_one"
    group = "readmitted"

What a study measures by sums over the parties (`evaluation.on = "parties"`) is measured of the first part that has a measure.

Releases : what the parts release.
Unit     : that of each part.
Source   : none; this is a study with several tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Declaration, Key, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import StudyInvalid
from hedgerow.report import Outcome
from hedgerow.store.checkpoint import join, split

from ..catalogue import listing
from ..keys import settings_of
from ..several import ITSELF

HEADING = "title"
"""A key of every part: the heading of its table."""

Parts = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Analysis:
    """One program of several: its name in the study, its declaration, its settings, and the heading of its table."""

    name: str
    listing: Declaration
    settings: dict[str, Any]
    title: str = ""


@displayed
@dataclass(frozen=True)
class AnalysesState:
    """How far each part has come.

    Attributes
    ----------
    round : int
        States of all parts so far.
    part : int
        Which part ran last.
    arrays : dict of arrays
        Of the last state of each part, by the part's name and the field's, "model/beta".
    plain : str
        Its other fields, as JSON.
    """

    round: int = 0
    part: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)
    plain: str = "{}"

    def of(self, part: Analysis) -> Any:
        """The last state of a part; None of one that has not begun."""
        plain = json.loads(self.plain).get(part.name)
        if plain is None:
            return None
        start = f"{part.name}/"
        arrays = {key.removeprefix(start): value for key, value in self.arrays.items() if key.startswith(start)}
        empty: dict[str, Any] = {key: {} for key in plain.pop("", [])}
        return join(part.listing.state, arrays, empty | plain)

    def reached(self, index: int, part: Analysis, state: Any) -> AnalysesState:
        """With another state of one part."""
        arrays, plain = split(state)
        start = f"{part.name}/"
        others = {key: value for key, value in self.arrays.items() if not key.startswith(start)}
        maps = [name for name, value in vars(state).items() if isinstance(value, Mapping) and not value]
        told = json.loads(self.plain) | {part.name: {**plain, "": maps}}
        own = {start + key: value for key, value in arrays.items()}
        return replace(self, round=self.round + 1, part=index, arrays=others | own, plain=json.dumps(told, default=_plain))


def _plain(value: Any) -> Any:
    return value.item()


def parts_of(parts: Parts) -> list[Analysis]:
    """Read the parts of a study, refusing those that cannot be run here.

    Raises
    ------
    StudyInvalid (HR-101)
        There is none; a part names no program, or one that is not for parties of one schema, or that is several itself.
    """
    if not parts:
        raise StudyInvalid(
            "the program 'analyses' has no parts.", remedy="Add [program.parts.NAME] with the name of a program."
        )
    found = []
    for name, given in parts.items():
        told = dict(given)
        called, title = told.pop("name", None), str(told.pop(HEADING, ""))
        if not isinstance(called, str) or not name.isidentifier():
            raise StudyInvalid(
                f"the part {name!r} of 'analyses' is called {called!r}.",
                remedy=f'Give its program as [program.parts.{"model" if not name.isidentifier() else name}] name = "...".',
            )
        one = listing(called)
        if one.name == ITSELF or one.columns == "apart" or one.with_test:
            raise StudyInvalid(
                f"the part {name!r} is {called!r}, which cannot be one of several.", remedy="Run it as a study of its own."
            )
        found.append(Analysis(name, one, settings_of(one, told), title))
    return found


def rounds_in(built: Any) -> list[tuple[Any, Mapping[str, Any]]]:
    """Functions and settings of the programs that a study made ready runs, of which each has rounds of its own."""
    if built.listing.name != ITSELF:
        return [(built.listing.function, built.settings)]
    return [(part.listing.function, part.settings) for part in parts_of(built.settings["parts"])]


def show_analyses(federation: Federation, settings: Mapping[str, Any], state: AnalysesState) -> Outcome:
    """All outcomes on one page."""
    from .page import page_of

    return page_of(federation, settings, parts_of(settings["parts"]), state)


def ask_measured(federation: Federation, settings: Mapping[str, Any], state: AnalysesState) -> dict[str, float]:
    """Metrics of the first part that can be measured by sums over the parties."""
    for part in parts_of(settings["parts"]):
        inner = state.of(part)
        if part.listing.ask is not None and inner is not None:
            asked = {key: value for key, value in settings.items() if key.startswith("evaluation.")}
            return part.listing.ask(federation, part.settings | asked, inner)
    return {}


def most_of(settings: Mapping[str, Any], schema: Any) -> dict[str, int]:
    """How often local functions are asked at most, by all parts."""
    found: dict[str, int] = {}
    for part in parts_of(settings["parts"]):
        for name, times in (part.listing.most(part.settings, schema) if part.listing.most else {}).items():
            found[name] = found.get(name, 0) + times
    return found


@program(
    "Several programs one after the other on the same federation, whose outcomes go on one page.",
    name="analyses",
    keys={
        "about": Key(str, "", "the term whose ratio stands at the top of the page"),
        "aside": Key(list[str], [], "columns whose terms no table of coefficients shows, such as the site"),
        "labels": Key(dict[str, str], {}, "what terms, levels and sites are called on the page, by their names"),
    },
    outcome=show_analyses,
    ask=ask_measured,
    case=lambda: Case(
        load("heart_failure").take(range(200)),
        {
            "about": "age",
            "parts": {
                "model": {"name": "logistic_regression", "formula": "death_event ~ age + serum_creatinine"},
                "other": {"name": "linear_regression", "formula": "serum_creatinine ~ age + death_event"},
            },
        },
        tolerance=1e-8,
    ),
)
def analyses(
    federation: Federation, *, parts: dict[str, dict[str, Any]], start: AnalysesState | None = None
) -> Iterator[AnalysesState]:
    """Run several programs of the catalogue in the order of a study.

    Parameters
    ----------
    federation : Federation
    parts : dict from name to dict
        Each with the `name` of a program, its settings, and a `title` for its table if one likes.
    start : AnalysesState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    AnalysesState
        After each state of each part.

    Raises
    ------
    StudyInvalid (HR-101)
        A part is no program, or lacks a setting; before any party is asked.
    HedgerowError
        What the parts raise.

    Releases
    --------
    What the parts release.
    """
    state = start or AnalysesState()
    for index, part in enumerate(parts_of(parts)):
        if index < state.part:
            continue
        for inner in part.listing.program(part.settings)(federation, start=state.of(part)):
            state = state.reached(index, part, inner)
            yield state
