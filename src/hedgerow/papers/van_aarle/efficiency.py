"""What a hidden sum costs a store and the server, against the number of stores (van Aarle 2021, Figures 6.3 and 6.4).

Each round of this program is one way of forming a sum among some number of stores: the total gradient of a logistic regression
whose model the server knows, asked twice, by the clock (`timed`). Made-up rows would cost the same; real ones let every
total be compared with the one that is formed in the open, and the run's ledger hold what was asked.

Ways without recovery lose nobody; from the others a share of the stores is lost in every question before its row, and counts
neither in the total nor in the time.

Releases : the total gradient of n stores, in the open and twice by each way, and once more in the open among those that were
           counted; for each n.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.core.aggregation import Plain
from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.crypto import AdditiveShares, Hidden, HiddenModel, PairwiseMasks, PrivFL, SecAgg
from hedgerow.data import complete_cases, load
from hedgerow.errors import RoundRefused, SettingsInvalid
from hedgerow.stats import design_of
from hedgerow.stats.design import design
from hedgerow.stats.hidden.terms import gradient_bound, grid_of, terms_of

from .timed import Timed

if TYPE_CHECKING:
    from hedgerow.report import Outcome

WayName = Literal["pairwise", "grouped", "secagg", "additive", "privfl"]

COEFFICIENT, LARGEST = 0.125, 8.0
"""Every coefficient of the model, on any grid; and for how large ones grids and bounds provide."""

KEY = "paillier-key"
"""The step that a server's key takes, once for all iterations."""

LEAST = 3
"""Stores of the smallest hidden sum."""


@dataclass(frozen=True)
class Way:
    """A way of forming a sum.

    Attributes
    ----------
    title : str
    every : int
        Questions for which one set-up serves.
    recovers : bool
        Whether stores may be lost.
    """

    title: str
    every: int
    recovers: bool


WAYS: dict[str, Way] = {
    "plain": Way("in the open", 1, True),
    "pairwise": Way("pairwise, one group", 1, False),
    "grouped": Way("pairwise, in groups", 1, False),
    "secagg": Way("SecAgg", 16, True),
    "additive": Way("additive shares", 1024, True),
    "privfl": Way("PrivFL", 16, True),
}
"""In the order of the tables; the first is the gradient itself, without protection."""

COLUMNS = (
    *("way", "stores", "timed", "store first", "store later", "store once"),
    *("server first", "server later", "server once", "counted", "off by"),
)
"""Of a measurement: place of its way in `WAYS`; seconds of the first question, of a later one, and of what both share;
stores in the last total, none where it was refused, and its largest error relative to the largest number of the total."""


@dataclass(frozen=True)
class EfficiencyState:
    """The measurements that were made.

    Attributes
    ----------
    round : int
        Measurements so far.
    rows : array of shape (round, len(COLUMNS))
    size : int
        Numbers in a contribution.
    """

    round: int = 0
    rows: Array = field(default_factory=lambda: np.zeros((0, len(COLUMNS))))
    size: int = 0

    def of(self, way: str) -> list[dict[str, float]]:
        """The measurements of a way, by number of stores."""
        found = [dict(zip(COLUMNS, map(float, row), strict=True)) for row in self.rows]
        place = list(WAYS).index(way)
        return sorted((row for row in found if row["way"] == place), key=lambda row: row["stores"])


def outcome(federation: Federation, settings: Mapping[str, Any], state: EfficiencyState) -> Outcome:
    """Both figures of the thesis and their numbers."""
    from .efficiency_results import outcome

    return outcome(federation, settings, state)


@program(
    "Seconds of a store and of the server for one hidden sum, by protocol and number of stores (van Aarle 2021, 6.2.7).",
    name="van_aarle_efficiency",
    keys={"iterations": Key(int, 800, "for which set-ups are shared and totals are given", {"ge": 1})},
    outcome=outcome,
    case=lambda: Case(
        load("breast_cancer").take(range(40)),
        {"formula": "malignant ~ mean_radius + mean_texture", "stores": [4], "ways": ["grouped"], "group": 3},
        timed=True,
    ),
)
def efficiency(
    federation: Federation,
    *,
    formula: str,
    stores: list[int],
    ways: list[WayName] | None = None,
    lost: float = 0.1,
    group: int = 16,
    key_bits: int = 2048,
    whole: int = 200,
    few: int = 3,
    most_hidden: int = 100,
    start: EfficiencyState | None = None,
) -> Iterator[EfficiencyState]:
    """Time hidden sums among more and more stores.

    Parameters
    ----------
    formula : str
        Of a logistic regression, whose gradient is added up.
    stores : list of int
        How many stores take part, the first of the federation.
    ways : list of str, optional
        Names of `WAYS`; all by default.
    lost : float
        Share of the stores that drop out of a question before they contribute, where a way recovers from that.
    group : int
        Stores of a group of pairwise masks.
    key_bits : int
        Length of the server's key where the model is hidden.
    whole : int
        Pairwise masks in one group are made by every store up to so many stores, and by `few` of them beyond.
    few : int
        Stores that are timed there.
    most_hidden : int
        Most stores among whom a hidden model is timed.

    Yields
    ------
    EfficiencyState
        After each measurement.

    Raises
    ------
    SettingsInvalid (HR-511)
        Fewer stores than a hidden sum needs, more than there are, or no share of them.
    """
    n_most = federation.size
    if not stores or not LEAST <= min(stores) <= max(stores) <= n_most or not 0 <= lost <= 0.3 or not 1 <= few <= whole:
        raise SettingsInvalid(
            f"stores={stores!r}, lost={lost!r}, few={few!r}, whole={whole!r}, and there are {n_most} stores.",
            remedy=f"From {LEAST} stores to as many as there are (partition.rows), of which at most 0.3 are lost.",
        )
    spec = design_of(federation.schema, formula, "binomial").to_unit()
    federation = complete_cases(federation, spec.schema.names, count=False)
    gradient = Gradient(federation.prepare(design, spec=spec), spec)
    plan = [(way, n) for n in sorted(set(stores)) for way in _chosen(ways) if way != "privfl" or n <= most_hidden]

    def program() -> Iterator[EfficiencyState]:
        state = start or EfficiencyState(size=spec.size)
        for way, n in plan[state.round :]:
            aggregation = _aggregation(way, group=group, key_bits=key_bits, lost=lost)
            share = lost if WAYS[way].recovers else 0.0
            row = gradient.measured(way, n, aggregation, share, few if way == "pairwise" and n > whole else 0)
            state = EfficiencyState(state.round + 1, np.vstack([state.rows, row]), spec.size)
            yield state

    return program()


def _chosen(ways: Sequence[str] | None) -> list[str]:
    return [way for way in WAYS if way == "plain" or ways is None or way in ways]


def _aggregation(way: str, *, group: int, key_bits: int, lost: float) -> Plain | Hidden | HiddenModel:
    """A way with its settings, for stores of one record."""
    made: dict[str, Callable[[], Plain | Hidden | HiddenModel]] = {
        "plain": Plain,
        "pairwise": lambda: PairwiseMasks(records=1),
        "grouped": lambda: PairwiseMasks(records=1, group=group),
        "secagg": lambda: SecAgg(records=1, dropouts=lost, rounds_per_epoch=WAYS["secagg"].every),
        "additive": lambda: AdditiveShares(records=1),
        "privfl": lambda: PrivFL(records=1, dropouts=lost, key_bits=key_bits),
    }
    return made[way]()


@dataclass(frozen=True)
class Gradient:
    """The sum that is asked for: the gradient of a logistic loss with a linear sigmoid, at a fixed model."""

    federation: Federation
    spec: Any

    def measured(self, way: str, n: int, aggregation: Plain | Hidden | HiddenModel, lost: float, sample: int) -> list[float]:
        """Ask twice among n stores, by the clock: a row of `COLUMNS`."""
        asked = self.federation.pick(self.federation.names[:n])
        ids = tuple(asked.members)
        leaving = round(n * lost)

        def leave(question: int, ids: tuple[str, ...]) -> set[str]:
            return {ids[(i * n // leaving + question) % n] for i in range(leaving)}

        few = ids[:: n // sample][:sample] if sample else ()
        timed, total = Timed(aggregation, leave, few), None
        for _ in range(2):
            with suppress(*[RoundRefused] if few else []):
                total = self.total(asked.protect(aggregation=timed), n, aggregation)
        timed.forget()
        first, later = timed.questions
        timed, counted = few or later.counted, later.counted
        error = float("nan") if total is None else 0.0 if way == "plain" else self.error(total, counted, n)
        return [
            *(list(WAYS).index(way), n, len(timed)),
            *(first.party(few or first.counted, _again), later.party(timed, _again), first.party(few or first.counted, _once)),
            *(first.serving(_again), later.serving(_again), first.serving(_once)),
            *(len(counted), error),
        ]

    def total(self, asked: Federation, n: int, aggregation: Any = None) -> Array:
        """The total among these stores."""
        spec, terms = self.spec, terms_of("binomial", 1)
        if isinstance(aggregation, HiddenModel):
            terms = partial(terms, grid=grid_of(spec, "binomial", 1, parties=n, records=1.0, largest=LARGEST))
        bound = gradient_bound(spec, "binomial", 1, np.full(spec.size, LARGEST))
        return np.asarray(asked.sum(terms, np.full(spec.size, COEFFICIENT), bound=bound))

    def error(self, total: Array, counted: tuple[str, ...], n: int) -> float:
        """How far a total is from that of the same stores in the open, relative to its largest number."""
        known = self.total(self.federation.pick(counted), n)
        return float(np.abs(total - known).max() / np.abs(known).max())


def _once(step: str) -> bool:
    return step == KEY


def _again(step: str) -> bool:
    return step != KEY
