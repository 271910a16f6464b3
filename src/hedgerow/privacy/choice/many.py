"""Many choices at once: one candidate for each row of scores, paid for once, where a record touches one row.

    rows of scores u (r, m)              totals over the parties, or made of totals by a public rule
    for each row: candidate              by the law of `Choice`, rows independent of each other
    cost                                 epsilon, once for all rows

Which split does each node of a level take, which class has each leaf of a tree: a record lies in one node, one leaf.

Why one event. Let a record move row i by d_i, the largest move of a score in it. The log-ratio of a row's choice is at most
rate k d_i with k = 2, or 1 where scores only rise (`Choice`), and lies in an interval of that length. Rows are chosen
independently, so log-ratios and their intervals add up: to rate k (d_1 + ... + d_r) = epsilon (d_1 + ... + d_r) / radius. What
counts is the sum over rows of the largest move, and epsilon is paid wherever it is at most the radius:

    linf(radius, unit="record")   a record touches one row, each score of it by the radius at most. Parties see to it record by
                                  record: of what it adds to several rows the largest row is kept, and cut to the radius. A
                                  local function that holds records to bounds by itself must touch one row by construction.
    l1(radius, unit=...)          all moves together are at most the radius, in however many rows: enforced by the clip. It fits
                                  votes, where a record adds 1 to one candidate.
    a rule                        scores that are no sums, such as the gain of a split, are made of totals at the server by a
                                  public rule, whose `sensitivity` bounds that sum of moves for one record within the bound,
                                  and whose `rows` says in how many rows that record may be.

A bound of linf per party is refused: a party touches every row, and would move the sum by rows times the radius.

Scores are whole numbers of grid steps. Sums of records in whole steps are compared exactly. Other scores are rounded, and a
move of d steps may become one of floor(d) + 1: so each row that a record touches gets one step more, and the grid is the finer
the more rows there are, so that these steps are a 4096th of the sensitivity at most.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array, Arrays, Layout
from hedgerow.core.bound import Bound, Bounds, describe, linf
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local, Party
from hedgerow.core.question import function_of, local, travels
from hedgerow.core.randomness import Entropy
from hedgerow.core.records import record_by_record
from hedgerow.errors import BudgetInvalid, ContributionInvalid, suggestion

from ..grid import Block, to_steps
from ..noise import LARGEST_SCALE, grid_step
from ..within import within
from .grid import score_block
from .laws import rows_by_coins, rows_by_noise, rows_by_weight
from .mechanisms import Law, positive

DRAW = {"exponential": rows_by_weight, "noisy max": rows_by_noise, "permute and flip": rows_by_coins}


class ScoreRule(ABC):
    """A public function from totals to scores; a dataclass marked with `hedgerow.core.question.travels`.

    Attributes
    ----------
    sensitivity : float
        The largest sum over rows of the largest move of a score, by one unit whose contribution is within the bound of the
        question: a row's scores follow from its own totals, so that a unit in one row moves one row.
    rows : int
        In how many rows such a unit may be: its moves are rounded in each of them.
    monotonic : bool
        A unit that joins raises scores or leaves them.
    """

    @property
    @abstractmethod
    def sensitivity(self) -> float: ...

    @property
    @abstractmethod
    def rows(self) -> int: ...

    @property
    @abstractmethod
    def monotonic(self) -> bool: ...

    @abstractmethod
    def scores(self, totals: Array) -> Array:
        """Turn totals, as the local function shapes them, into scores (rows, candidates).

        Minus infinity is no candidate; which ones are must not depend on totals.
        """


@travels
@dataclass(frozen=True)
class ManyChoice(Mechanism):
    """The mechanism. It releases one at the chosen candidate of each row, and zero elsewhere.

    With a rule the release has the shape of the totals: its first numbers, one for each row, are the chosen candidates, and the
    others are zero.

    Parameters
    ----------
    law : {"exponential", "noisy max", "permute and flip"}
    epsilon : float
        For all rows together.
    monotonic : bool
        A unit that joins raises scores or leaves them; see `Choice`. A rule says so itself.
    rule : ScoreRule, optional
    """

    law: Law
    epsilon: float
    monotonic: bool = False
    rule: ScoreRule | None = None
    at: Literal["server"] = "server"

    def __post_init__(self) -> None:
        if self.law not in get_args(Law):
            raise BudgetInvalid(f"no law of choice is called {self.law!r}.", remedy=suggestion(str(self.law), get_args(Law)))
        positive(self.epsilon)
        if self.at != "server":
            raise BudgetInvalid(f"a choice at {self.at!r}.", remedy="Candidates are compared by their totals, at the server.")

    def event(self, bounds: Bounds) -> Event:
        """Return the cost of all choices."""
        return Event("exponential" if self.law == "exponential" else "pure", epsilon=self.epsilon)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        """Refuse what is no table of scores, and bounds under which a unit moves several rows."""
        self._block(bounds, layout)
        if self.rule is not None:
            self._scored(1)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round scores, or what scores are made of, to the grid."""
        if self._factor == 1 and self.rule is None and isinstance(bounds, Bound) and bounds.unit == "party":
            rows = np.maximum(rows, 0)
        return to_steps(rows, [self._block(bounds, layout)])

    def within(self, rows: Array, bounds: Bounds, layout: Layout, parties: int = 1) -> Array:
        """Which rows are within a party-level bound."""
        return within(rows, [self._block(bounds, layout)], parties)

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Choose one candidate for each row."""
        block, (shape,) = self._block(bounds, layout), (shape for _, shape in layout.shapes)
        released = np.zeros(layout.size)
        if self.rule is None:
            chosen = self.draw(total.reshape(shape), block, entropy)
            released.reshape(shape)[np.arange(len(chosen)), chosen] = 1.0
            return released
        scores = self.rule.scores((total * block.step).reshape(shape))
        grid = self._scored(scores.size)
        possible = np.isfinite(scores)
        if not possible.any(-1).all() or len(scores) > layout.size:
            raise ContributionInvalid(
                f"a rule leaves rows of {scores.shape} without a candidate, or makes more than there are."
            )
        steps = np.rint(np.where(possible, scores, 0.0) / grid.step).astype(np.int64)
        released[: len(scores)] = self.draw(steps, grid, entropy, possible)
        return released

    def draw(self, scores: Array, block: Block, entropy: Entropy, possible: Array | None = None) -> Array:
        """Draw one candidate for each row of whole-number scores (r, m), among those that are possible."""
        rate = Fraction(self.epsilon) / (int(block.scale) * self._factor)
        return DRAW[self.law](scores.astype(np.int64), rate, entropy, possible)

    @property
    def _factor(self) -> int:
        return 1 if (self.monotonic if self.rule is None else self.rule.monotonic) else 2

    @property
    def _widest(self) -> float:
        return self._factor / self.epsilon if self.law == "noisy max" else 1.0

    def _scored(self, size: int) -> Block:
        """The grid of scores that a rule makes."""
        assert self.rule is not None
        return score_block(linf(self.rule.sensitivity, "record"), Layout((("", (size,)),)), self._widest, self.rule.rows)

    def _block(self, bounds: Bounds, layout: Layout) -> Block:
        """The grid of what parties add up."""
        if not isinstance(bounds, Bound) or len(layout.shapes) != 1:
            raise _unfit(bounds, layout, "what is chosen among is one array with one bound")
        if self.rule is not None:
            step = grid_step(bounds.radius) if bounds.step is None else bounds.step
            return Block(slice(0, layout.size), bounds, step, 1.0, whole=bounds.step is not None)
        if len(layout.shapes[0][1]) != 2:
            raise _unfit(bounds, layout, "scores are an array of rows and candidates")
        if bounds.norm == 2 or (bounds.norm == math.inf and bounds.unit == "party"):
            raise _unfit(bounds, layout, f"it does not say how far a {bounds.unit} moves all rows together")
        if bounds.unit == "record" and bounds.step is not None:  # sums are exact: no score is rounded
            scale = math.floor(Fraction(bounds.radius) / Fraction(bounds.step))
            if self._widest * scale <= LARGEST_SCALE:
                return Block(slice(0, layout.size), bounds, bounds.step, float(scale), whole=True)
        if bounds.unit == "record" and bounds.norm == 1:
            raise _unfit(bounds, layout, "rounding in every row that a record touches is not bounded")
        return score_block(bounds, layout, self._widest)

    def __str__(self) -> str:
        name = "".join(word.capitalize() for word in self.law.split())
        return f"{name} of each row({self.epsilon:g}{', monotonic' * (self._factor == 1)}) at the server"


def choose_many(
    federation: Federation,
    scores: Local,
    broadcast: Arrays = None,
    *,
    bound: Bounds,
    epsilon: float,
    law: Law = "exponential",
    monotonic: bool = False,
    rule: ScoreRule | None = None,
) -> Array:
    """Choose a candidate with a high total score in each row, for the price of one choice.

    Parameters
    ----------
    scores : local function
        Returns an array of shape (rows, candidates); with a rule, whatever the rule makes scores of.
    bound : Bound
        `linf(radius, unit="record")` where a record touches one row, and `l1(radius, unit=...)` where it may touch several;
        with a rule, the bound of which its sensitivity is. See the module for what each enforces.
    epsilon : float
        For all rows together.
    law, monotonic
        See `hedgerow.privacy.choice.Choice`.
    rule : ScoreRule, optional
        Makes scores of totals at the server.

    Returns
    -------
    array of int, shape (rows,)

    Releases
    --------
    The choices; once.

    Raises
    ------
    BudgetInvalid (HR-214)
        The bound does not say how far one unit moves all rows together.
    """
    ask = scores
    if rule is None and _held_by_row(scores, bound):
        ask = partial(in_one_row, scores=scores, monotonic=monotonic)
    mechanism = ManyChoice(law, epsilon, monotonic, rule)
    released: Any = federation.protect(mechanism=mechanism).sum(ask, broadcast, bound=bound)
    values = np.asarray(next(iter(released.values())) if isinstance(released, dict) else released)
    if rule is None:
        return np.asarray(values.argmax(-1))
    return values.ravel().astype(np.int64)


@local(additive=True, stackable=True, holds=True, norms=(math.inf,))  # type: ignore[untyped-decorator]
def in_one_row(
    broadcast: Any, party: Party, rng: Any, *, scores: Local, monotonic: bool = False, bounds: Bounds | None = None
) -> Any:
    """Ask for scores about one record a call, keep the row that it moves furthest, and hold that to the bound."""
    if bounds is None:
        return scores(broadcast, party, rng)
    return record_by_record(broadcast, party, rng, ask=partial(one_row, scores=scores, monotonic=monotonic), bounds=bounds)


def one_row(broadcast: Any, party: Party, rng: Any, *, scores: Local, monotonic: bool) -> Array:
    """Scores of one record, in one row alone."""
    made = np.asarray(scores(broadcast, party, rng), np.float64)
    if monotonic:
        made = np.maximum(made, 0.0)
    kept = np.zeros_like(made)
    if made.size:
        row = int(np.abs(made).max(-1).argmax())
        kept[row] = made[row]
    return kept


def _held_by_row(scores: Local, bound: Bounds) -> bool:
    """Whether parties are to see to it that a record touches one row: not where the function holds records to bounds itself."""
    function = function_of(scores)
    by_record = isinstance(bound, Bound) and bound.norm == math.inf and bound.unit == "record"
    return by_record and bool(getattr(function, "additive", False)) and not getattr(function, "holds", False)


def _unfit(bounds: Bounds, layout: Layout, why: str) -> BudgetInvalid:
    return BudgetInvalid(
        f"scores bounded by {describe(bounds)} in {layout}: {why}.",
        remedy='Declare linf(radius, unit="record") where a record touches one row, else l1(radius, unit=...) for all.',
    )
