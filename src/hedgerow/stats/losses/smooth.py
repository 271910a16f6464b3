"""Losses with a corner, minimised by Newton's method on a corner that is rounded less and less.

    for each round:
        beta, width            -> every party                                broadcast
        gradient, curvature    <- sums of the rounded loss                   sum
        loss, smooth loss, gap <- sums of the loss, rounded and as it is     sum
        beta                   <- Newton step, or the share of it that lowers the rounded objective most
        width                  <- width / 4, once the step promises less than the rounding hides

At the minimum of the rounded objective the records' slopes are feasible for the dual problem, so the gap between loss and
rounded loss bounds how far the exact optimum may lie below: the result comes with a certificate, which is exact where the
gradient is zero and an estimate before. One question asks at four points along a step, so a step that is too long costs
no round.

Releases : gradient (d,), the upper triangle of the curvature, n, loss, smooth loss, gap, at four points; once a round.
Unit     : record.
Source   : Nesterov 2005 for the rounding; Madsen & Nielsen 1993 for Newton steps on it. Differs: the width follows the gap,
           and a question asks at several points along a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.display import displayed
from hedgerow.errors import NotConverged, UnlawfulChannel

from ..columns import is_exact
from ..difficulties import check_identified
from ..linear.asking import Asked
from ..linear.losses import LossName
from ..scaling import Scaling
from ..standard import scaling_of_state, without_intercept
from ..state import solve

KEYS = ("gradient", "curvature", "n", "loss", "smooth", "gap")
SHARES = np.array([1.0, 0.5, 0.2, 0.06])
"""Of a step, at which one question asks: most steps are too long where few records lie at the corner."""
NARROWER = (0.25, 0.7)
"""By what a width is multiplied, at least and at most: the gap goes with its square."""
DAMPING = 1e-8
"""Share of the widest curvature that is added, so that directions without records at the corner have a step."""
LEAST_WIDTH = 1e-10
"""Widths below this share of the first one end the iteration: the objective is zero, or rounding is met."""


@displayed
@dataclass(frozen=True)
class SmoothState:
    """A point, what was found there, and the point to try next.

    Attributes
    ----------
    beta, trial : arrays of shape (d,)
    gradient, curvature : arrays of shape (d,) and (d, d)
        Of the rounded objective at `beta`, a mean over records, penalty included.
    gram : array of shape (d,)
        Mean squares of the columns.
    value, smooth : float
        The objective at `beta`, as it is and rounded.
    gap : float
        The objective's minimum is at least `value - gap`, up to what `decrease` says.
    decrease : float
        What the Newton step from `beta` promises.
    width, next_width : float
        Of the corner at `beta`, and of the next question.
    names : str
        The standardised columns, one to a line, with `means` and `scales`.
    """

    round: int
    beta: Array
    trial: Array
    gradient: Array
    curvature: Array
    gram: Array
    next_width: float
    width: float = 0.0
    value: float = float("inf")
    smooth: float = float("inf")
    gap: float = float("inf")
    decrease: float = float("inf")
    n: float = 0.0
    first_width: float = 0.0
    converged: bool = False
    names: str = ""
    means: Array = field(default_factory=lambda: np.zeros(0))
    scales: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def scaling(self) -> Scaling | None:
        """What standardised the columns, where they were."""
        return scaling_of_state(self)

    @classmethod
    def at(cls, beta: Array, width: float, gram: Array, round: int = 0) -> SmoothState:
        """Before the first question about a rounded loss."""
        d = len(beta)
        return cls(round, beta, beta, np.zeros(d), np.zeros((d, d)), gram, width, first_width=width)


def refuse_noise(federation: Federation, program: str, remedy: str) -> None:
    """Refuse a program whose steps mean nothing where sums are clipped or noisy.

    Raises
    ------
    UnlawfulChannel (HR-211)
    """
    if not is_exact(federation):
        raise UnlawfulChannel(f"{program} compares objectives of rounds, and this channel clips or adds noise.", remedy=remedy)


def least_squares(asked: Asked) -> SmoothState:
    """Where to begin: the least-squares line by one question, and a corner as wide as its residuals.

    Raises
    ------
    NotIdentified (HR-320), NotFinite (HR-404)
    """
    spec, zero = asked.spec, np.zeros(asked.spec.size)
    sums = asked.sums_in_own_units("gaussian", zero, ("gradient", "curvature", "n", "loss"))
    n = float(sums["n"])
    check_identified(sums["curvature"] / 2, n, spec.names, residual=True)
    beta = -solve(sums["curvature"], sums["gradient"])
    rest = max(float(sums["loss"] + sums["gradient"] @ beta / 2), 1e-12 * float(sums["loss"]), np.finfo(float).tiny)
    return SmoothState.at(beta, 2 * float(np.sqrt(rest / n)), np.diag(sums["curvature"]) / 2 / n, 1)


def rounded_newton(
    asked: Asked,
    loss: LossName,
    state: SmoothState,
    *,
    shape: float | None = None,
    penalty: float = 0.0,
    cost: float | None = None,
    tol: float = 1e-4,
    max_rounds: int = 200,
) -> Iterator[SmoothState]:
    """Minimise the mean loss plus a penalty until the optimum is known to within `tol`, relative to the objective.

    Parameters
    ----------
    asked : Asked
    loss, shape
        With a corner; as `hedgerow.stats.linear.sums`.
    state : SmoothState
        Where to begin or go on.
    penalty : float
        Times the squared length of all coefficients but the intercept.
    cost : float, optional
        Instead of `penalty`: `1 / (2 * cost * n)`, as in support vector machines.

    Raises
    ------
    NotConverged (HR-322)
        After `max_rounds`.
    NotFinite (HR-404)
        An expression of the formula is undefined for some record.
    """
    held = without_intercept(asked.spec.terms)
    while not state.converged:
        if state.round >= max_rounds:
            raise NotConverged(
                f"after {state.round} rounds the objective {state.value:.6g} is known to {state.gap + 2 * state.decrease:.2g}.",
                remedy="Allow more rounds with max_rounds=, or a larger tol. If parties drop out, wait for them.",
            )
        points = state.beta + np.outer(SHARES if state.n else SHARES[:1], state.trial - state.beta)
        sums = asked.sums_in_own_units(loss, points, KEYS, shape=shape, width=state.next_width)
        ridge = held * (penalty if cost is None else 1 / (2 * cost * float(sums["n"][0])))
        state = _judge(state, points, sums, ridge, tol)
        yield state


def _judge(state: SmoothState, points: Array, sums: dict[str, Array], ridge: Array, tol: float) -> SmoothState:
    """Accept the best of the points along the step and look for the next step, or shorten it where none is better."""
    held_back = points**2 @ ridge
    n, i = float(sums["n"][0]), int(np.argmin(sums["smooth"] / sums["n"] + held_back))
    sums = {key: found[i] for key, found in sums.items()}
    point = points[i]
    smooth, value = (float(sums[key] / n + held_back[i]) for key in ("smooth", "loss"))
    if state.width == state.next_width and n == state.n and smooth >= state.smooth:
        return replace(state, round=state.round + 1, trial=state.beta + SHARES[-1] / 4 * (state.trial - state.beta))
    gradient = sums["gradient"] / n + 2 * ridge * point
    width = state.next_width
    curvature = sums["curvature"] / n + 2 * np.diag(ridge)
    gram = state.gram if state.gram.any() else np.diag(sums["curvature"]) / n * width
    step = -solve(curvature + DAMPING * np.diag(gram) / width, gradient)
    decrease, gap = -float(gradient @ step), max(float(sums["gap"]) / n, 0.0)
    known = gap + 2 * decrease <= tol * abs(value) or width < LEAST_WIDTH * state.first_width
    return replace(
        state,
        round=state.round + 1,
        beta=point,
        trial=point + step,
        gradient=gradient,
        curvature=curvature,
        gram=gram,
        width=width,
        next_width=_narrowed(width, gap, decrease, tol * abs(value)),
        value=value,
        smooth=smooth,
        gap=gap,
        decrease=decrease,
        n=n,
        converged=bool(known),
    )


def _narrowed(width: float, gap: float, decrease: float, wanted: float) -> float:
    """The next width: narrower by what the gap is too large, once little is left to gain at this one."""
    if decrease >= gap / 2 and decrease >= wanted / 4:
        return width
    return width * float(np.clip(np.sqrt(wanted / 2 / max(gap, 1e-300)), *NARROWER))
