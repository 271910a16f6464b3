"""Ways to make records up, for studies that hold them beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid, suggestion
from hedgerow.report import Outcome
from hedgerow.stats.columns import schema_of
from hedgerow.study import PROGRAMS
from hedgerow.study.keys import keys_of, settings_of
from hedgerow.synth import Synthesizer
from hedgerow.synth.synthesizer import provenance


@dataclass(frozen=True, eq=False)
class SynthesizerWay:
    """How records are made up.

    Attributes
    ----------
    name : str
    program : str
        As a study names it.
    settings : mapping
        Of that program, beside those that all ways of a study share and that it takes.
    why : str
        What is to be known of it, in a sentence.
    epochs : str
        The setting that says how long it trains, where it does.
    fine : bool
        Whether its histograms are of single columns, which may have fine bins.
    """

    name: str
    program: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    epochs: str = ""
    fine: bool = False

    @property
    def private(self) -> bool:
        """Whether its program takes an epsilon."""
        return "epsilon" in keys_of(PROGRAMS[self.program]).model_fields

    def at(self, effort: float) -> SynthesizerWay:
        """The same way with a share of its epochs, one at least."""
        if not self.epochs:
            return self
        usual = self.settings.get(self.epochs, keys_of(PROGRAMS[self.program]).model_fields[self.epochs].default)
        fewer = max(1, round(usual * effort))
        return replace(self, settings={**self.settings, self.epochs: fewer})


TARGET = "the target"
"""Stands for the name of the column that models predict."""
WAYS = (
    SynthesizerWay(
        "tree inside each class",
        "tan",
        why="All tables of two columns and the target in one noisy question; the tree is chosen from the noisy tables.",
    ),
    SynthesizerWay(
        "mixture of products",
        "rap",
        why="The tables of the tree inside each class, and a mixture fitted to all of them instead of a tree.",
    ),
    SynthesizerWay(
        "tree of all columns", "mst", why="A tree of the pairs that depend most on each other; the target is one of them."
    ),
    SynthesizerWay("columns alone", "marginals", why="A table for each column, as if none depended on another."),
    SynthesizerWay(
        "Gaussian copula",
        "copula",
        fine=True,
        why="Fine histograms of the columns, and products of their normal scores: two questions.",
    ),
    SynthesizerWay(
        "Gaussian copula inside each class",
        "copula",
        {"by": TARGET},
        fine=True,
        why="The same in each class of the target.",
    ),
    SynthesizerWay(
        "CTGAN",
        "ctgan",
        epochs="rounds",
        why="A conditional generator against a critic, by federated averaging: from Xu et al. 2019. It has no epsilon.",
    ),
)
"""All that there are."""


def ways_named(names: Sequence[str] | None) -> list[SynthesizerWay]:
    """The ways of these names, or all.

    Raises
    ------
    SettingsInvalid (HR-511)
        One is none.
    """
    known = {way.name: way for way in WAYS}
    for name in names or ():
        if name not in known:
            raise SettingsInvalid(f"no way of making records up is called {name!r}.", remedy=suggestion(name, known))
    return [known[name] for name in names or known]


def made_by(way: SynthesizerWay, federation: Federation, shared: Mapping[str, Any]) -> Synthesizer:
    """Ask the parties by a way's program, and return what records are drawn from.

    Parameters
    ----------
    shared : mapping
        Settings of all ways of a study, its `target` among them; those that the program does not take, or that the way gives
        itself, are left out.
    """
    one = PROGRAMS[way.program]
    taken = keys_of(one).model_fields
    shared = dict(shared) | ({"bins": shared["fine_bins"]} if way.fine else {})
    shared = {key: value for key, value in shared.items() if value is not None}
    own = {key: shared["target"] if value == TARGET else value for key, value in way.settings.items()}
    settings = settings_of(one, {key: value for key, value in shared.items() if key in taken} | own)
    *_, state = one.program(settings)(federation)
    assert one.outcome is not None
    assert one.synthesizer is not None
    more = (None,) if one.with_records else ()
    found: Outcome = one.outcome(federation, settings, state, *more)
    made: Synthesizer = one.synthesizer(settings, found.arrays, schema_of(federation), provenance(federation, way.name))
    return made
