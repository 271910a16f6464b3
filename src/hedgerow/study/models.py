"""Gradient descent on hidden models as study files name it: standardised beforehand, with states that carry what did it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Outcome
from hedgerow.stats.columns import schema_of
from hedgerow.stats.design import design_of
from hedgerow.stats.hidden.descent import HiddenState
from hedgerow.stats.hidden.descent import hidden_gradient_descent as hidden_descent
from hedgerow.stats.results import Settings, brief, coefficients
from hedgerow.stats.scores import explained, reading, scored
from hedgerow.stats.standard import scaled

from .model_states import ScaledState, scaling_for

READ = reading(beta=lambda state: state.packed["theta"])


def show(federation: Federation, settings: Settings, state: ScaledState) -> Outcome:
    """Show where gradient descent on a hidden model has come."""
    own: HiddenState = state.own(HiddenState)
    frame = coefficients(federation, settings, READ(schema_of(federation), settings, state).spec, own.theta, state)
    stands = "" if settings["family"] == "gaussian" else f"; a polynomial of degree {settings['degree']} for the logistic"
    words = f"gradient descent by terms that need no model{stands}; no intervals"
    metrics = {"length of the gradient": own.length}
    return brief(federation, settings, f"ended after {state.round} rounds", frame, metrics, words)


@program(
    "Gradient descent by terms that need no model, so that parties need not see it (Mandal & Gong 2019).",
    outcome=show,
    case=lambda: Case(
        load("diabetes").take(range(200)), {"formula": "progression ~ bmi + sex", "learning_rate": 0.5, "rounds": 3}
    ),
    **scored(READ, explained(), "D2", more=True),
)
def hidden_gradient_descent(
    federation: Federation,
    *,
    formula: str,
    family: Literal["gaussian", "binomial"] = "gaussian",
    degree: Literal[1, 3] = 1,
    learning_rate: float = 0.1,
    rounds: int = 100,
    standardise: bool = True,
    records: float | None = None,
    largest: float = 8.0,
    start: ScaledState | None = None,
) -> Iterator[ScaledState]:
    """Gradient descent whose model can be hidden from parties: settings as `hedgerow.stats.hidden_gradient_descent`.

    Parameters
    ----------
    formula : str
        As of a linear or a logistic regression.
    family : {"gaussian", "binomial"}
        Linear or logistic regression.
    learning_rate : float
        Of the gradient of half the mean squared error, or of the mean log-loss of the polynomial.
    rounds : int
        Gradients in all.
    standardise : bool
        Whether numbers and integers of the formula are standardised beforehand, of a gaussian the target too; parties are
        told means and deviations.
    """
    settings: dict[str, Any] = {"family": family, "degree": degree, "learning_rate": learning_rate, "rounds": rounds}
    if min(learning_rate, rounds, largest, records or 1.0) <= 0 or (degree == 3 and family == "gaussian"):
        raise SettingsInvalid(
            f"learning_rate={learning_rate}, rounds={rounds}, degree={degree}, records={records}, largest={largest}.",
            remedy="All are above zero; degree is 1, or 3 for a binomial family.",
        )
    walk = partial(hidden_descent, formula=formula, records=records, largest=largest, **settings)
    spec = design_of(schema_of(federation), formula, family)

    def walked() -> Iterator[ScaledState]:
        known = scaling_for(federation, spec, start, standardise, target=family == "gaussian")
        before = None if start is None else start.own(HiddenState)
        for state in walk(scaled(federation, known), start=before):
            yield ScaledState.of(state, known)

    return walked()
