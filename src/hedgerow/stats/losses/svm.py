"""Soft-margin linear support vector machine on sums.

    minimise  penalty * |w|^2 + mean of max(0, 1 - s * (w x + b)),  s = +1 for events, -1 for others
    which is  |w|^2 / 2 + C * sum of the same,  with penalty = 1 / (2 C n); the intercept b is not penalised

Source : Cortes & Vapnik 1995; van Aarle 2021, equation 7.2 (penalty 1), whose subgradient descent is
         `gradient_descent(family="hinge", penalty=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure, Outcome

from ..columns import schema_of
from ..design import Design, design_of
from ..indicators import cases_of_model
from ..linear.asking import ask_for
from ..results import Settings, brief, coefficients
from ..scores import accuracy, reading, scored
from ..standard import kept_in_state, scaled, scaling_of
from .smooth import SmoothState, refuse_noise, rounded_newton


@displayed
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

    def plot(self, *, intercept: bool = False) -> Figure:
        """Draw the coefficients, which have no intervals, as SVG; the intercept is left out where it is not asked for."""
        from ..plots import coefficients_figure

        return coefficients_figure(self, 0.95, intercept=intercept)

    def decide(self, frame: Any) -> Array:
        """Signed distance from the boundary, in units of the margin: above zero for predicted events; shape (n,)."""
        return self.spec.predictor(self.coef_, frame)


READ = reading("binomial")


def show(federation: Federation, settings: Settings, state: SmoothState) -> Outcome:
    """Show a support vector machine."""
    spec = READ(schema_of(federation), settings, state).spec
    machine = margin_of(spec, state, C=settings["C"], penalty=settings["penalty"])
    frame = coefficients(federation, settings, spec, machine.coef_, state)
    metrics = {"objective": machine.objective, "off by at most": machine.gap, "C": machine.cost, "penalty": machine.penalty}
    words = "soft-margin linear support vector machine; coefficients have no intervals"
    return brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)


@program(
    "Soft-margin linear support vector machine (Cortes & Vapnik 1995).",
    name="svm",
    outcome=show,
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_texture + mean_smoothness", "standardise": True, "tol": 0.1},
    ),
    **scored(READ, accuracy, "accuracy", more=True, ask=False),
)
def margins(
    federation: Federation,
    *,
    formula: str,
    C: float | None = None,
    penalty: float | None = None,
    standardise: bool = False,
    tol: float = 5e-4,
    max_rounds: int = 200,
    weights: str | None = None,
    start: SmoothState | None = None,
) -> Iterator[SmoothState]:
    """Minimise the objective of a support vector machine; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        As of a logistic regression.
    C : float, optional
        Weight of the summed loss against half the squared length, as in scikit-learn; 1 where `penalty` is not given.
    penalty : float, optional
        Weight of the squared length against the mean loss, as in the thesis; instead of C.
    standardise : bool
        Whether numbers and integers of the formula are standardised beforehand.
    tol : float
        Relative to the objective, by the gap to a dual one.
    max_rounds : int
        Rounds before giving up; ten to thirty are usual.

    Yields
    ------
    SmoothState
        After each round; `margin_of` makes a machine of the last one.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), NotBinary (HR-311), UnlawfulChannel (HR-211)
        Before any party is asked.
    NotConverged (HR-322)

    Releases
    --------
    As `hedgerow.stats.losses.smooth`.
    """
    C = 1.0 if C is None and penalty is None else C
    _check(C, penalty, tol, max_rounds)
    refuse_noise(federation, "svm", "Ask gradient_descent(family='hinge'), in a number of rounds that was fixed beforehand.")
    read = partial(design_of, formula=formula, family="binomial", weights=weights)
    spec = read(schema_of(federation))

    def machine() -> Iterator[SmoothState]:
        known = cases_of_model(federation, spec)
        scale = start.scaling if start else scaling_of(known, spec, target=False) if standardise else None
        prepared = scaled(known, scale)
        asked, zeros = ask_for(prepared, read(schema_of(prepared)), target=False), np.zeros(spec.size)
        first = SmoothState.at(zeros, 2.0, zeros)  # at zero every record lies inside this corner
        state = start or replace(first, **kept_in_state(scale))
        yield from rounded_newton(asked, "hinge", state, penalty=penalty or 0.0, cost=C, tol=tol, max_rounds=max_rounds)

    return machine()


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
    formula, C, penalty, tol, max_rounds, weights
        As `margins`. Columns are not scaled: standardise them beforehand.
    """
    settings = {"C": C, "penalty": penalty, "weights": weights}
    *_, state = margins(federation, formula=formula, tol=tol, max_rounds=max_rounds, **settings)
    return margin_of(design_of(schema_of(federation), formula, "binomial", weights=weights), state, C=C, penalty=penalty)


def margin_of(spec: Design, state: SmoothState, *, C: float | None = None, penalty: float | None = None) -> Margin:
    """Turn the last state of `margins` into a machine."""
    C = 1.0 if C is None and penalty is None else C
    weight = 1 / (2 * C * state.n) if C is not None else float(penalty or 0.0)
    return Margin(spec, state.beta, weight, state.value, state.gap + 2 * state.decrease, state.n, state.round)


def _check(C: float | None, penalty: float | None, tol: float, max_rounds: int) -> None:
    given = [value for value in (C, penalty) if value is not None]
    if len(given) != 1 or not (np.isfinite(given[0]) and given[0] > 0):
        raise SettingsInvalid(f"C={C!r} and penalty={penalty!r}.", remedy="Give one of them, a number above zero.")
    if not tol > 0 or max_rounds < 1:
        raise SettingsInvalid(f"tol={tol!r}, max_rounds={max_rounds!r}.", remedy="A tolerance above zero, one round or more.")
