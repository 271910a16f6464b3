"""Gradient descent that works on encrypted models: least squares, and logistic regression with a polynomial.

    n           <- sum of weights                                            once
    for each round:
        theta       -> every party                                           in the clear, or encrypted, by the channel
        g           <- sum of  A theta - b     (or of a cubic's gradient)
        theta       <- theta - learning_rate * g / n

Through an open channel this is gradient descent on the polynomial loss. Through an aggregation that hides the model,
parties get ciphertexts of theta and the server gets the total alone: see `hedgerow.crypto.privfl`. The local function is
the same: what it is not given, it cannot use, and so it returns the terms instead.

The minimum is that of the polynomial loss, not of the likelihood: with a linear sigmoid the coefficients are those of a
linear probability model, times four; with a cubic they are near the logistic ones while predictors stay within -5 to 5.

Releases : n once; the total gradient (d,) once a round.
Unit     : record.
Source   : van Aarle 2021, section 4.2.1, after Mandal & Gong 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import linf
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import FormulaInvalid, NotConverged, SettingsInvalid
from hedgerow.report import Outcome

from ..columns import schema_of
from ..design import design, design_of
from ..indicators import cases_of_model
from ..results import Settings, brief, coefficients
from ..scaling import Scaling
from ..scores import explained, reading, scored
from ..standard import kept_in_state, scaled, scaling_of, scaling_of_state
from .terms import Degree, count, gradient_bound, grid_of, terms_of

DIVERGED = 1e100
"""A coefficient of this size does not come back."""


@displayed
@dataclass(frozen=True)
class HiddenState:
    """Where gradient descent is.

    Attributes
    ----------
    round : int
        Gradients so far.
    theta : array of shape (d,)
        The model after them.
    gradient : array of shape (d,)
        The last one, per record, at the model before.
    n : float
        Records, or the sum of their weights.
    names : str
        The standardised columns, one to a line, with `means` and `scales`.
    """

    round: int
    theta: Array
    gradient: Array
    n: float
    names: str = ""
    means: Array = field(default_factory=lambda: np.zeros(0))
    scales: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def scaling(self) -> Scaling | None:
        """What standardised the columns, where they were."""
        return scaling_of_state(self)

    @property
    def length(self) -> float:
        """Euclidean length of the gradient."""
        return float(np.linalg.norm(self.gradient))


READ = reading(beta=lambda state: state.theta)


def show(federation: Federation, settings: Settings, state: HiddenState) -> Outcome:
    """Show where gradient descent on a hidden model has come."""
    frame = coefficients(federation, settings, READ(schema_of(federation), settings, state).spec, state.theta, state)
    stands = "" if settings["family"] == "gaussian" else f"; a polynomial of degree {settings['degree']} for the logistic"
    words = f"gradient descent by terms that need no model{stands}; no intervals"
    metrics = {"length of the gradient": state.length}
    return brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)


@program(
    "Gradient descent by terms that need no model, so that parties need not see it (Mandal & Gong 2019).",
    keys={
        "standardise": Key(
            bool,
            True,
            "Whether numbers and integers of the formula are standardised beforehand, of a gaussian the target too; parties "
            "are told means and deviations.",
        )
    },
    bind={"standardise": lambda schema, settings: settings["standardise"]},
    outcome=show,
    case=lambda: Case(
        load("diabetes").take(range(200)), {"formula": "progression ~ bmi + sex", "learning_rate": 0.5, "rounds": 3}
    ),
    **scored(READ, explained(), "D2", more=True),
)
def hidden_gradient_descent(
    federation: Federation,
    formula: str,
    *,
    family: Literal["gaussian", "binomial"] = "gaussian",
    degree: Degree = 1,
    learning_rate: float = 0.1,
    rounds: int = 100,
    standardise: bool = False,
    records: float | None = None,
    largest: float = 8.0,
    start: HiddenState | None = None,
) -> Iterator[HiddenState]:
    """Gradient descent by totals of terms that are linear, or cubic, in the model.

    Parameters
    ----------
    federation : Federation
    formula : str
        As of a linear or a logistic regression.
    family : {"gaussian", "binomial"}
        Linear or logistic regression.
    degree : {1, 3}
        Of the polynomial that stands for the logistic function; a linear regression has degree 1.
    learning_rate : float
        Of the gradient of half the mean squared error, or of the mean log-loss of the polynomial.
    rounds : int
        Gradients in all.
    standardise : bool
        Standardise numbers and integers of the formula beforehand, of a gaussian the target too, unless the federation's
        columns are: the largest learning rate that converges follows from their scale. Parties are told means and deviations.
    records : float, optional
        Most records at one party, of which fixed-point steps are made; by default what the aggregation says, else 1000.
    largest : float
        Largest absolute coefficient that fixed-point steps provide for.
    start : HiddenState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    HiddenState
        After each round.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), SettingsInvalid (HR-511)
        Before any party is asked.
    RangeExceeded (HR-243)
        The model, or a party's terms, outgrow the declared limits.
    NotConverged (HR-322)
        The model grows without end: the learning rate is too large.
    """
    lawful = learning_rate > 0 and rounds >= 1 and largest > 0 and (records is None or records > 0)
    if not lawful or degree not in (1, 3) or (degree == 3 and family == "gaussian"):
        raise SettingsInvalid(
            f"learning_rate={learning_rate}, rounds={rounds}, degree={degree}, records={records}, largest={largest}.",
            remedy="All are above zero; degree is 1, or 3 for a binomial family.",
        )
    if family not in ("gaussian", "binomial"):
        raise SettingsInvalid(f"family={family!r} has no terms without its model.", remedy="Take 'gaussian' or 'binomial'.")
    spec = design_of(schema_of(federation), formula, family)
    if degree == 3 and spec.offset:
        raise FormulaInvalid(f"a cubic with offset {spec.offset!r}.", remedy="Leave the offset out, or take degree=1.")
    federation = cases_of_model(federation, spec)
    scale = start.scaling if start else scaling_of(federation, spec, target=family == "gaussian") if standardise else None
    federation = scaled(federation, scale)
    spec = design_of(schema_of(federation), formula, family)
    protection = federation.protection
    most = float(records or protection.records or 1000.0)
    hides = protection.hides_model
    grid = grid_of(spec, family, degree, parties=federation.size, records=most, largest=largest) if hides else None
    asked, ask = federation.prepare(design, spec=spec), terms_of(family, degree)
    ask = partial(ask, grid=grid) if hides else ask
    state = start or HiddenState(0, np.zeros(spec.size), np.zeros(spec.size), 0.0, **kept_in_state(scale))
    if not state.n:
        weight = spec.weight_limit
        n = asked.sum(count, bound=None if weight is None else linf(weight, "record"))
        state = replace(state, n=float(n))
    while state.round < rounds:
        at = state.theta if grid is None else grid.on_grid(state.theta)
        widest = at if grid is None else np.full(spec.size, grid.model)  # a bound at the model would tell of it
        gradient = asked.sum(ask, at, bound=gradient_bound(spec, family, degree, widest)) / state.n
        theta = at - learning_rate * gradient
        if not np.abs(theta).max() < DIVERGED:
            raise NotConverged(
                f"the largest coefficient is {np.abs(theta).max():.3g} after {state.round + 1} rounds.",
                remedy=f"Take a learning rate below {learning_rate:g}, or standardise the columns.",
            )
        state = replace(state, round=state.round + 1, theta=theta, gradient=gradient)
        yield state
