"""Soft-margin linear support vector machine on sums.

    minimise  penalty * |w|^2 + mean of max(0, 1 - s * (w x + b)),  s = +1 for events, -1 for others
    which is  |w|^2 / 2 + C * sum of the same,  with penalty = 1 / (2 C n); the intercept b is not penalised

Source : Cortes & Vapnik 1995; van Aarle 2021, equation 7.2 (penalty 1), whose subgradient descent is
         `gradient_descent(family="hinge", penalty=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid

from ..columns import schema_of
from ..design import Design
from ..linear.asking import ask_for
from ..regression import design_of
from .smooth import SmoothState, refuse_noise, rounded_newton

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Margin:
    """A support vector machine.

    Attributes
    ----------
    spec : Design
    coef_ : array of shape (d,)
        The intercept included, where the formula has one.
    penalty : float
        Times the squared length of all coefficients but the intercept.
    objective : float
        The penalty plus the mean loss; times `C * n` that of scikit-learn's SVC, with `C = 1 / (2 penalty n)`.
    gap : float
        The least objective lies about so far below, at most.
    """

    spec: Design
    coef_: Array
    penalty: float
    objective: float
    gap: float
    n_records: float
    rounds: int

    @property
    def names(self) -> tuple[str, ...]:
        return self.spec.names

    @property
    def cost(self) -> float:
        """C, by which the summed loss weighs against half the squared length."""
        return 1 / (2 * self.penalty * self.n_records)

    def decide(self, frame: pandas.DataFrame) -> Array:
        """Signed distance from the boundary, in units of the margin: above zero for predicted events; shape (n,)."""
        given = {name: np.asarray(frame[name]) for name in self.spec.reads if name in frame}
        columns, n = self.spec.schema.select(self.spec.reads).admit(given), len(frame)
        found: Array = self.spec.matrix(columns, n) @ self.coef_ + self.spec.offsets(columns, n)
        return found


def margins(
    federation: Federation,
    *,
    formula: str,
    C: float | None = None,
    penalty: float | None = None,
    tol: float = 5e-4,
    max_rounds: int = 200,
    weights: str | None = None,
    start: SmoothState | None = None,
) -> Iterator[SmoothState]:
    """The program behind `svm`, with its parameters; `margin_of` makes a machine of its last state."""
    _check(C, penalty, tol, max_rounds)
    refuse_noise(federation, "svm", "Ask gradient_descent(family='hinge'), in a number of rounds that was fixed beforehand.")
    spec = design_of(schema_of(federation), formula, "binomial", weights=weights)

    def program() -> Iterator[SmoothState]:
        asked, zeros = ask_for(federation, spec, target=False), np.zeros(spec.size)
        state = start or SmoothState.at(zeros, 2.0, zeros)  # at zero every record lies inside this corner
        return rounded_newton(asked, "hinge", state, penalty=penalty or 0.0, cost=C, tol=tol, max_rounds=max_rounds)

    return program()


def svm(
    federation: Federation,
    formula: str,
    *,
    C: float | None = None,
    penalty: float | None = None,
    tol: float = 5e-4,
    max_rounds: int = 200,
    weights: str | None = None,
) -> Margin:
    """Linear support vector machine; its objective is that of the pooled records' to within `tol`.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.logistic_regression`. Columns are not scaled: standardise them beforehand.
    C : float, optional
        Weight of the summed loss against half the squared length, as in scikit-learn; 1 where `penalty` is not given.
    penalty : float, optional
        Weight of the squared length against the mean loss, as in the thesis; instead of C.
    tol : float
        Relative to the objective, by the gap to a dual one.
    max_rounds : int
        Rounds before giving up; ten to thirty are usual.

    Releases
    --------
    As `hedgerow.stats.losses.smooth`.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), NotBinary (HR-311), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotConverged (HR-322)
    """
    C = 1.0 if C is None and penalty is None else C
    settings = {"C": C, "penalty": penalty, "weights": weights}
    *_, state = margins(federation, formula=formula, tol=tol, max_rounds=max_rounds, **settings)
    return margin_of(design_of(schema_of(federation), formula, "binomial", weights=weights), state, C=C, penalty=penalty)


def margin_of(spec: Design, state: SmoothState, *, C: float | None = None, penalty: float | None = None) -> Margin:
    """Turn the last state of `margins` into a machine."""
    weight = 1 / (2 * C * state.n) if C is not None else float(penalty or 0.0)
    return Margin(spec, state.beta, weight, state.value, state.gap + 2 * state.decrease, state.n, state.round)


def _check(C: float | None, penalty: float | None, tol: float, max_rounds: int) -> None:
    given = [value for value in (C, penalty) if value is not None]
    if len(given) != 1 or not (np.isfinite(given[0]) and given[0] > 0):
        raise SettingsInvalid(f"C={C!r} and penalty={penalty!r}.", remedy="Give one of them, a number above zero.")
    if not tol > 0 or max_rounds < 1:
        raise SettingsInvalid(f"tol={tol!r}, max_rounds={max_rounds!r}.", remedy="A tolerance above zero, one round or more.")
