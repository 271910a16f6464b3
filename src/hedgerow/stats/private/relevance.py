"""A functional mechanism whose noise adapts to relevance, with the relevances charged.

    R       <- sum over records of  t x                                  a tenth of the budget
    r_b     <- largest |R_j| among the columns of block b                a feature's relevance
    u_b     <- ratio where r_b is above the median of all blocks, else 1
    M       <- coefficients of records whose columns are multiplied by u_b         nine tenths
    theta   <- u * (functional mechanism's solution of M)

A coefficient of columns j and k then has the noise b / (a u_j u_k): less where both are relevant. What a record may add is
bounded by declared ranges all the same: in rows of one length a block is at most 1 / sqrt(B), so that

    |u x|_1 <= sum of u_b / sqrt(B),     |u x|_2^2 <= sum of u_b^2 / B

and the sum over groups of coefficients of |coefficients|_1 / noise stays below epsilon. Rows divided by their own length have
|u x|_1 <= sqrt(sum of u_b^2) and |u x|_2 <= max u_b, where Gaussian noise gains nothing: take rows "fixed", or bins.

The relevance t x of a record is what propagates through one layer of equal weights; it is in [-1, 1] by the row's length.

Releases : R (d,), then M.
Unit     : record.
Source   : Gong, Feng & Xie 2020, whose relevances are propagated through a network that was trained without noise and used
           as if they were public: no epsilon follows from that. Differs: relevances of one layer, through noise and charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import load
from hedgerow.data.cuts import names_of
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share

from ..columns import schema_of
from .fit import PrivateFit
from .judged import Settings, reported, row_length
from .rows import Length, UnitRows
from .second_moments import MomentParts, SecondMoments
from .solving import TAYLOR, solve_moments
from .sufficient import LABELS_IN_LOG_ODDS, ask_moments, fit_of_state, norm_of, prepared, rows_of

SHARES = {"relevance": Share(0.1), "moments": Share(0.9)}
RELEVANCE = MomentParts(0.0, 1.0)
WORDS = "functional mechanism with noise adapted to relevances, which are charged (after Gong, Feng & Xie 2020)"


@displayed
@dataclass(frozen=True)
class RelevanceState:
    """Relevances, the factors made of them, and coefficients once moments have been asked for.

    Attributes
    ----------
    relevance : array of shape (blocks,)
        Of each block of columns, as released, in records.
    scale : array of shape (d,)
        By what each column was multiplied.
    coef : array of shape (d,)
        Zeros after the first round.
    noise : float
        Standard deviation of the noise on the diagonal of the products of multiplied columns.
    """

    round: int
    relevance: Array
    scale: Array
    coef: Array
    noise: float = 0.0


def relevance_factors(relevance: Array, ratio: float) -> Array:
    """Factors of blocks: `ratio` for those above the median, and 1."""
    return np.where(relevance > np.median(relevance), ratio, 1.0)


def multiplied_bound(parts: MomentParts, rows: UnitRows, factors: Array, norm: int) -> Bound:
    """The ball of a record whose blocks are multiplied by factors (blocks,), by declared ranges alone."""
    blocks, squares = len(factors), float(factors @ factors)
    if rows.same_length:
        l1, l2 = float(factors.sum()) / blocks**0.5, (squares / blocks) ** 0.5
    else:
        l1, l2 = squares**0.5, float(factors.max())
    return parts.bound(norm, blocks, rows.heaviest, l1=l1, l2=l2)


def relevance_fit(federation: Federation, settings: Settings, state: RelevanceState, asked_before: int = 0) -> PrivateFit:
    """The fit of a last state."""
    return fit_of_state(federation, settings, state.coef, WORDS, asked_before=asked_before, parts=SHARES)


@program(
    "A functional mechanism whose noise adapts to features' relevance, which is charged.",
    name="private_relevance",
    **reported(rows_of, relevance_fit),
    case=lambda: Case(load("diabetes").take(range(200)), {"formula": "progression ~ bmi + bp + sex", "epsilon": 5.0}),
)
def relevance_moments(
    federation: Federation,
    *,
    formula: str,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    bins: int | None = None,
    log: Sequence[str] = (),
    rows: Length | None = None,
    weights: str | None = None,
    ratio: float = 2.0,
    start: RelevanceState | None = None,
) -> Iterator[RelevanceState]:
    """Ask for relevances, then for moments with less noise where they are high.

    Parameters
    ----------
    formula, epsilon, delta, noise_at, least, bins, log, rows, weights
        As `hedgerow.stats.private.sufficient.sufficient_moments`.
    ratio : float
        By what columns of relevant features are multiplied, one or more; a public constant, not tuned.
    start : RelevanceState, optional
        Continue from this state.

    Yields
    ------
    RelevanceState
        After each of two questions.

    Raises
    ------
    As `hedgerow.stats.private.sufficient.sufficient_moments`.

    Releases
    --------
    Rows times targets (d,), then coefficients; see the module.
    """
    if not 1 <= ratio <= 1e6:
        raise SettingsInvalid(f"ratio={ratio!r} of relevant to other columns.", remedy="One or more; 2 is usual.")
    unit = row_length(rows, formula, schema_of(federation), bins=bins, log=names_of(log), weights=weights)
    records = prepared(federation, unit, planned=epsilon is not None)
    asked = BudgetShares(epsilon, delta, noise_at, least).handles(records, SHARES, begins=start is None)
    sizes = [len(block.names) for block in unit.blocks]
    state = start or RelevanceState(0, np.zeros(len(sizes)), np.ones(unit.size), np.zeros(unit.size))
    if state.round < 1:
        found, _ = ask_moments(asked["relevance"], unit, RELEVANCE)
        strength = np.array([np.abs(part).max() for part in np.split(found.score, np.cumsum(sizes)[:-1])])
        scale = np.repeat(relevance_factors(strength, ratio), sizes)
        state = RelevanceState(1, strength, scale, state.coef)
        yield state
    if state.round < 2:
        parts = TAYLOR[not unit.numeric]
        factors = state.scale[np.cumsum([0, *sizes[:-1]])]
        bound = multiplied_bound(parts, unit, factors, norm_of(asked["moments"]))
        moments, level = ask_moments(asked["moments"], unit, parts, state.scale, bound)
        noise = level / parts.gram
        coef = adapted(moments, noise, state.scale) * (1.0 if unit.numeric else LABELS_IN_LOG_ODDS)
        yield RelevanceState(2, state.relevance, state.scale, coef, noise)


def adapted(moments: SecondMoments, noise: float, scale: Array) -> Array:
    """The functional mechanism's solution for columns as they were before they were multiplied."""
    return scale * solve_moments("functional", moments, noise)


def adaptive(federation: Federation, formula: str, *, epsilon: float | None = None, **settings: Any) -> PrivateFit:
    """Run `relevance_moments` to its end, and make a fit; settings are its own."""
    asked_before = len(federation.ledger)
    given: dict[str, Any] = {"formula": formula, "epsilon": epsilon, **settings}
    *_, state = relevance_moments(federation, **given)
    return relevance_fit(federation, given, state, asked_before)
