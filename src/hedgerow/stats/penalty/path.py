"""Paths of penalties with cross-validation, by sums: each party splits its own records into folds.

A record's fold is a public function of its party's name and its place there, the same in every round; a store of one
record is a fold's as a whole. What is asked for are sums for each fold (linear regression, once) or sums at the
coefficients of each fold's model, fitted without it (other families, many penalties in one question).

Releases : linear: n, information (d, d), score at zero (d,) and squares of the target, for each fold; once. Others: score,
           information, deviance and n without the fold and in it, for each fold and penalty asked; once a round.
Unit     : record.
Source   : Friedman, Hastie & Tibshirani 2010, section 2.5; the conventions of scikit-learn's `LassoCV`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import NotConverged, SettingsInvalid

from ..columns import schema_of
from ..design import Design, design_of
from ..glm import constant_of
from ..linear.asking import Asked, ask_for
from ..linear.loss import Loss
from ..linear.newton import has_risen, is_last
from ..linear.reach import refuse_beyond
from ..linear.sums import symmetric
from ..results import spec_of
from ..scores import explained, scored
from ..state import NewtonState
from .columns import penalised_columns, scales_of
from .cross_validation import Path, path_of
from .folds import fold_products, fold_sums
from .path_results import read, show
from .penalised import PenalisedFamily, Penalty, check_penalty, penalised, penalised_law

NUMBERS_AT_ONCE = 8192
"""A question about many penalties asks for about so many numbers."""


# ---- states ---------------------------------------------------------------------------------------------------------
@displayed
@dataclass(frozen=True)
class PathState:
    """Models of some penalties and folds, in the columns' own units; L penalties, F folds.

    Attributes
    ----------
    penalties : array of shape (L,)
        Falling.
    scales : array of shape (d,)
        Standard deviations by which coefficients are multiplied before they are penalised, or ones.
    beta, trial : arrays of shape (L, F + 1, d)
        The last model of a penalty is that of all records.
    objective, length : arrays of shape (L, F + 1)
    left_out : array of shape (L, F)
        Mean deviance of the records that a model left out.
    done : array of bool, shape (L,)
    n, deviance : float, and array of shape (L,)
        Records, and the deviance of the models of all records.
    """

    round: int
    penalties: Array
    scales: Array
    beta: Array
    trial: Array
    objective: Array
    length: Array
    left_out: Array
    done: Array
    n: float
    deviance: Array

    @property
    def converged(self) -> bool:
        return bool(self.done.all())


MOST_FOLDS = 20
"""Where a fold has few records, its sums show them."""


@dataclass(frozen=True)
class PathPlan:
    """Which penalties are tried, on which folds; attributes as `hedgerow.stats.penalty_path`."""

    l1_ratio: float
    penalties: Sequence[float] | None
    n_penalties: int
    smallest: float
    folds: int
    standardised: bool

    def __post_init__(self) -> None:
        check_penalty(min(self.penalties, default=-1.0) if self.penalties is not None else 0.0, self.l1_ratio)
        if not 2 <= self.folds <= MOST_FOLDS or self.n_penalties < 1 or not 0 < self.smallest < 1:
            raise SettingsInvalid(
                f"folds is {self.folds}, n_penalties is {self.n_penalties}, smallest is {self.smallest}.",
                remedy=f"Two to {MOST_FOLDS} folds and at least one penalty; smallest is a share of the largest penalty.",
            )

    def grid(self, score: Array, n: float, weights: Array) -> Array:
        """The penalties, falling; by default from the smallest one that leaves every coefficient zero.

        Ridge has none, so that its first is the largest of a lasso's, a thousand times.
        """
        pulls = np.abs(score[weights > 0]) / weights[weights > 0] / n
        if not pulls.size:
            raise SettingsInvalid("no column is penalised.", remedy="Add terms to the formula, besides the intercept.")
        if self.penalties is not None:
            return np.sort(np.asarray(self.penalties, dtype=float))[::-1]
        largest = float(max(pulls.max(), 1e-12) / max(self.l1_ratio, 1e-3))
        return np.geomspace(largest, largest * self.smallest, self.n_penalties)


@program(
    "A path of penalties with cross-validation by sums, and the penalty it chooses.",
    keys={
        "choose": Key(
            Literal["best", "one_se"],
            "best",
            'the penalty of the least deviance ("best"), or the largest within one standard error of it ("one_se")',
        )
    },
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "family": "binomial", "n_penalties": 2, "folds": 2},
    ),
    **scored(read, explained(), "D2", more=True),
)
def penalty_path(
    federation: Federation,
    *,
    formula: str,
    family: PenalisedFamily = "gaussian",
    l1_ratio: float = 1.0,
    penalties: list[float] | None = None,
    n_penalties: int = 50,
    smallest: float = 1e-3,
    folds: int = 5,
    standardised: bool = False,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-7,
    max_rounds: int = 200,
    start: PathState | None = None,
) -> Iterator[PathState]:
    """Fit all penalties, on all records and without each fold.

    Settings as `hedgerow.stats.regression`, penalties as `hedgerow.stats.penalised`.

    Parameters
    ----------
    penalties : list of float, optional
        By default `n_penalties`, evenly spaced by their logarithms, down from the smallest that leaves all coefficients zero.
    n_penalties : int
        How many penalties, where they are not given.
    smallest : float
        The least penalty over the largest, where they are not given.
    folds : int
        Of cross-validation, 2 to 20: records of a party take turns in them, from a fold that the party's name decides. A
        station refuses folds with fewer than five of its records.
    tol : float
        Stop when the next step is shorter than this, of families but the linear one.

    Yields
    ------
    PathState
        After each round that asks about folds; a linear regression asks once.

    Raises
    ------
    SettingsInvalid (HR-511)
        A fold has no records, or a setting is out of its range. Others as `penalised`.

    Releases
    --------
    See the module.
    """
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    law = penalised_law(federation, family)
    plan = PathPlan(l1_ratio, penalties, n_penalties, smallest, folds, standardised)
    asked = ask_for(federation, spec)
    if law.quadratic:
        if start is None:
            yield _linear_path(asked, spec, plan)
        return
    state = start or _before(federation, asked, spec, family, plan)
    per_penalty = (folds + 1) * (spec.size * (spec.size + 3) // 2 + 3)
    at_once = max(1, NUMBERS_AT_ONCE // per_penalty)
    while not state.converged:
        if state.round >= max_rounds:
            raise NotConverged(
                f"after {state.round} rounds {int((~state.done).sum())} of {len(state.done)} penalties are not fitted.",
                remedy="Allow more rounds with max_rounds=, or larger penalties; if parties drop out, resume later.",
            )
        state = _path_round(state, asked, spec, law, plan, at_once, tol)
        yield state


def _linear_path(asked: Asked, spec: Design, plan: PathPlan) -> PathState:
    """Ask once for the products of each fold; everything else follows."""
    folds, l1_ratio = plan.folds, plan.l1_ratio
    ask, factors = partial(fold_products, n_folds=folds), asked.factors
    sums = asked.total(ask, None, _product_bounds(asked))
    H, q = symmetric(sums["information"]) * np.outer(factors, factors), sums["score"] * factors
    n, yy = sums["n"], sums["yy"]
    _check_folds(n)
    scales = _scales_of_products(H.sum(0), spec) if plan.standardised else np.ones(spec.size)
    weights = scales * penalised_columns(spec)
    nothing = Penalty(math.inf, l1_ratio, weights).step(H.sum(0), q.sum(0), np.zeros(spec.size), float(n.sum()))
    grid = plan.grid(q.sum(0) - H.sum(0) @ nothing, n.sum(), weights)
    beta, left_out = np.zeros((len(grid), folds + 1, spec.size)), np.zeros((len(grid), folds))
    for k in range(folds + 1):
        rest = np.arange(folds) != k
        products, right, records, warm = H[rest].sum(0), q[rest].sum(0), float(n[rest].sum()), np.zeros(spec.size)
        for i, penalty in enumerate(grid):
            paid = Penalty(float(penalty), l1_ratio, weights)
            warm = beta[i, k] = paid.step(products, right - products @ warm, warm, records)
    last = beta[:, folds]
    for k in range(folds):
        left_out[:, k] = [(yy[k] - 2 * b @ q[k] + b @ H[k] @ b) / n[k] for b in beta[:, k]]
    deviance = np.array([yy.sum() - 2 * b @ q.sum(0) + b @ H.sum(0) @ b for b in last])
    nowhere, done = np.zeros((len(grid), folds + 1)), np.ones(len(grid), dtype=bool)
    return PathState(1, grid, scales, beta, beta, nowhere, nowhere, left_out, done, float(n.sum()), deviance)


def _product_bounds(asked: Asked) -> dict[str, Bound] | None:
    """Bounds of `fold_products`, which are sums of least squares at coefficients of zero."""
    found = asked.bounds_at("gaussian", np.zeros(asked.spec.size), ("n", "information", "score", "deviance"))
    return found and {"yy" if key == "deviance" else key: bound for key, bound in found.items()}


def _scales_of_products(H: Array, spec: Design) -> Array:
    """Standard deviations of columns from their products with the intercept's."""
    constant = constant_of(replace(spec, scales=()))
    if constant is None:
        raise SettingsInvalid(
            f"{spec.formula!r} has no intercept, so its products of columns give no standard deviations.",
            remedy="Add the intercept, or standardise the columns beforehand: hr.stats.standardise(federation).",
        )
    sums = H @ constant
    mean = sums / (constant @ sums)
    variance = np.diag(H) / (constant @ sums) - mean**2
    return np.sqrt(np.where(variance > 1e-14 * mean**2, variance, 1.0))


def _check_folds(n: Array) -> None:
    if not (n > 0).all():
        raise SettingsInvalid(
            f"{int((n <= 0).sum())} of {len(n)} folds have no records.", remedy="Take fewer folds.", asked=True
        )


# ---- other families: rounds -----------------------------------------------------------------------------------------
def _before(federation: Federation, asked: Asked, spec: Design, family: PenalisedFamily, plan: PathPlan) -> PathState:
    """Fit the columns that are not penalised, which gives the largest penalty, and from which all models start."""
    scales = scales_of(asked, spec, plan.standardised)
    first: NewtonState
    given: dict[str, Any] = {"formula": spec.formula, "offset": spec.offset, "weights": spec.weights, "family": family}
    *_, first = penalised(federation, penalty=math.inf, l1_ratio=plan.l1_ratio, **given)
    grid = plan.grid(first.score, first.n, scales * penalised_columns(spec))
    beta = np.tile(first.beta, (len(grid), plan.folds + 1, 1))
    models = (len(grid), plan.folds + 1)
    return PathState(
        round=first.round,
        penalties=grid,
        scales=scales,
        beta=beta,
        trial=beta,
        objective=np.full(models, np.inf),
        length=np.full(models, np.inf),
        left_out=np.zeros((len(grid), plan.folds)),
        done=np.zeros(len(grid), dtype=bool),
        n=first.n,
        deviance=np.zeros(len(grid)),
    )


def _path_round(state: PathState, asked: Asked, spec: Design, law: Loss, plan: PathPlan, at_once: int, tol: float) -> PathState:
    """Ask about the next few penalties that are not fitted, and move each of their models."""
    folds, factors, which = plan.folds, asked.factors, np.flatnonzero(~state.done)[:at_once]
    sums = _fold_sums(asked, law, state.trial[which] * factors, folds)
    counts = sums["n"]
    _check_folds(counts)
    records = np.append(counts.sum() - counts, counts.sum())
    beta, trial, objective, length = (x.copy() for x in (state.beta, state.trial, state.objective, state.length))
    left_out, done, deviance = state.left_out.copy(), state.done.copy(), state.deviance.copy()
    for a, i in enumerate(which):
        penalty = Penalty(float(state.penalties[i]), plan.l1_ratio, state.scales * penalised_columns(spec))
        for k in range(folds + 1):
            here, before = sums["deviance"][a, k] / (2 * records[k]) + penalty.of(trial[i, k]), length[i, k]
            if before > (0.5 if asked.hidden else 1e-3) and has_risen(here, objective[i, k], before, asked.hidden):
                trial[i, k] = (beta[i, k] + trial[i, k]) / 2
                continue
            information = sums["information"][a, k] * np.outer(factors, factors)
            beta[i, k], objective[i, k] = trial[i, k], here
            trial[i, k] = penalty.step(information, sums["score"][a, k] * factors, beta[i, k], records[k])
            step = trial[i, k] - beta[i, k]
            spread = here if law.free_dispersion else 1.0
            length[i, k] = math.sqrt(max(float(step @ information @ step), 0.0) / spread)
            if is_last(length[i, k], before, 0.0, asked.hidden):
                length[i, k] = 0.0  # rounding
        left_out[i] = sums["left_out"][a, :folds] / counts
        deviance[i] = sums["deviance"][a, folds]
        if (length[i] < tol).all():
            done[i] = True
            refuse_beyond(float(sums["beyond"][a].max()), spec)
    waiting = np.flatnonzero(~state.done)[at_once:]
    if len(waiting) and done[which].all():  # those that come next start from the nearest that is fitted
        beta[waiting] = trial[waiting] = beta[which[-1]]
    made = (beta, trial, objective, length, left_out, done)
    return PathState(state.round + 1, state.penalties, state.scales, *made, float(counts.sum()), deviance)


def _fold_sums(asked: Asked, law: Loss, trial: Array, folds: int) -> dict[str, Array]:
    points = trial.reshape(-1, trial.shape[-1])
    broadcast = {"beta": trial}
    if asked.hidden and asked.bounded and law.log_link:
        broadcast["reach"] = np.array(asked.reach(law, list(points)))  # all models share one range
    keys = ("score", "information", "deviance", "beyond", "n")
    bounds = asked.bounds_at(law.name, points, keys)
    bounds = bounds and bounds | {"left_out": bounds["deviance"]}
    sums = asked.total(partial(fold_sums, family=law.name, n_folds=folds), broadcast, bounds)
    return sums | {"information": symmetric(sums["information"])}


def cross_validated(
    federation: Federation,
    formula: str,
    *,
    family: PenalisedFamily = "gaussian",
    l1_ratio: float = 1.0,
    standardised: bool = False,
    **settings: Any,
) -> Path:
    """Choose the penalty of a lasso, ridge or elastic net by cross-validation.

    Parameters
    ----------
    family, l1_ratio, standardised, **settings
        As `penalty_path`.
    """
    asked_before = len(federation.ledger)
    kept: dict[str, Any] = {"family": family, "l1_ratio": l1_ratio, "standardised": standardised}
    *_, state = penalty_path(federation, formula=formula, **kept, **settings)
    return path_of(federation, spec_of(federation, settings | {"formula": formula}, family), state, asked_before, **kept)
