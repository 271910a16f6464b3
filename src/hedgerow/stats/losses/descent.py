"""Gradient descent on sums: the federated programs of van Aarle's thesis, and a sweep over learning rates.

    for each round:
        beta       -> every party, or a cohort of so many             broadcast
        gradient   <- sum of the records' gradients of the loss        sum
        beta       <- beta - learning_rate * B * gradient / n          B: 1, or AdaGrad's, for each coefficient

A round of all parties is a step of the pooled gradient descent. `newton` reaches the optimum in a handful of rounds; this
is here to be compared with, for losses without a curvature, and for hidden models.

Releases : gradient (d,), n, and the loss where asked; once a round. With `standardise` as `scaling` before.
Unit     : record.
Source   : van Aarle 2021, sections 5.1 and 5.6, Table 6.1; Duchi et al. 2011 for AdaGrad. Differs: starts at zero, where
           the thesis draws at random; his equation 5.2 divides by the sum of squares ("adagrad-printed"), his program by
           the root of it, as AdaGrad does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import NotFinite, SettingsInvalid, suggestion
from hedgerow.report import Outcome

from ..columns import schema_of
from ..design import design_of
from ..indicators import cases_of_model
from ..linear.asking import ask_for
from ..linear.losses import LossName, family_of
from ..results import Settings, brief, coefficients
from ..scaling import Scaling
from ..scores import mean_loss_of, reading, scored
from ..standard import kept_in_state, scaled, scaling_of, scaling_of_state, without_intercept

Optimiser = Literal["plain", "adagrad", "adagrad-printed"]
OPTIMISERS = ("plain", "adagrad", "adagrad-printed")
DescentFamily = Literal["gaussian", "binomial", "hinge", "check"]
EPSILON = 1e-8
"""Added to AdaGrad's sum of squares, as in the thesis' program."""

TABLE_6_1: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "FedLinReg-v1": {"family": "gaussian", "rounds": 201, "standardise": False},
        "FedLogReg-v1": {"family": "binomial", "rounds": 201, "standardise": False},
        "FedLinReg-v2": {"family": "gaussian", "rounds": 800, "standardise": True, "learning_rate": 0.1},
        "FedLogReg-v2": {"family": "binomial", "rounds": 800, "standardise": True, "learning_rate": 0.1},
        "SFedLogReg-v1": {"family": "binomial", "rounds": 800, "standardise": False, "learning_rate": 0.1},
        "SFedLogReg-v2": {"family": "binomial", "rounds": 4000, "standardise": False, "learning_rate": 20.0},
    }
)
"""Settings of the thesis' programs. Table 6.1 prints a learning rate of 0.01 for v2 and SFedLogReg-v1, and 200 rounds for v1;
sections 6.1 and 6.2 say 0.1 and 201, which these are. SFedLogReg needs `batch`, which the thesis does not state."""


@displayed
@dataclass(frozen=True)
class DescentState:
    """After a round.

    Attributes
    ----------
    beta : array of shape (d,)
        After the step; of standardised columns where `names` says so.
    gradient : array of shape (d,)
        Of the mean loss, penalty included, where the step began.
    loss : float
        Mean loss there, penalty included; NaN where it was not asked, infinite where the iteration diverged.
    n : float
        Records that were asked.
    squares : array of shape (d,)
        AdaGrad's sum of squared gradients.
    quiet : int
        Rounds in a row in which the gradient stayed below the tolerance.
    stopped, diverged : bool
        Why the iteration ended before its rounds did.
    names : str
        The standardised columns, one to a line, with `means` and `scales`.
    """

    round: int
    beta: Array
    gradient: Array
    squares: Array
    means: Array
    scales: Array
    names: str = ""
    loss: float = float("nan")
    n: float = 0.0
    quiet: int = 0
    stopped: bool = False
    diverged: bool = False

    @property
    def scaling(self) -> Scaling | None:
        """What was subtracted and divided by, where columns were standardised."""
        return scaling_of_state(self)


READ = reading()


def show(federation: Federation, settings: Settings, state: DescentState) -> Outcome:
    """Show where gradient descent has come."""
    spec = READ(schema_of(federation), settings, state).spec
    frame = coefficients(federation, settings, spec, state.beta, state)
    metrics = {"largest gradient": float(np.abs(state.gradient).max())}
    ended = "diverged" if state.diverged else "stopped" if state.stopped else "ended"
    words = "gradient descent, no intervals" + (": take a smaller learning rate" if state.diverged else "")
    return brief(federation, settings, f"{ended} after {state.round} rounds", frame, metrics, words)


@program(
    "Gradient descent on sums, plain or AdaGrad: the programs of van Aarle 2021, to be compared with exact fits.",
    keys={
        "standardise": Key(
            bool,
            False,
            "Whether numbers and integers of the formula are standardised beforehand, of a gaussian the target too.",
        )
    },
    bind={"standardise": lambda schema, settings: settings["standardise"]},
    outcome=show,
    alone=lambda settings, rounds: {**settings, "batch": None},  # baselines ask everybody in every round
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {
            "formula": "malignant ~ mean_texture + mean_smoothness",
            "family": "binomial",
            "learning_rate": 1.0,
            "rounds": 3,
            "standardise": True,
        },
    ),
    **scored(READ, mean_loss_of(), "loss"),
)
def gradient_descent(
    federation: Federation,
    *,
    formula: str,
    family: DescentFamily = "gaussian",
    learning_rate: float,
    rounds: int,
    optimiser: Optimiser = "plain",
    standardise: bool | Scaling = False,
    batch: int | None = None,
    stop: float | None = None,
    patience: int = 3,
    penalty: float = 0.0,
    share: float = 0.5,
    with_loss: bool = False,
    offset: str | None = None,
    weights: str | None = None,
    start: DescentState | None = None,
) -> Iterator[DescentState]:
    """Minimise the mean loss by steps along the summed gradient; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        As of a linear or a logistic regression.
    family : {"gaussian", "binomial", "hinge", "check"}
        Squared error, log-loss, the support vector machine's loss, or that of quantile regression at `share`.
    learning_rate : float
        Of the gradient of the mean loss; that of the squared error carries a factor of 2.
    rounds : int
        In all, those before `start` included.
    optimiser : {"plain", "adagrad", "adagrad-printed"}
        The last divides by the sum of squared gradients instead of its root: a baseline.
    standardise : bool or Scaling
        Standardise numbers and integers of the formula beforehand, of a gaussian the target too.
    batch : int, optional
        Parties drawn for each round; everybody by default.
    stop : float, optional
        End when no coordinate of the mean gradient exceeded this in `patience` rounds in a row.
    patience : int
        Rounds in a row for which the gradient has to stay below `stop`.
    penalty : float
        Times the squared length of all coefficients but the intercept; added by the server.
    share : float
        Of targets below the line of a quantile regression, family "check".
    with_loss : bool
        Ask for the loss too.
    start : DescentState, optional
        Continue from a state that was yielded before; a state of round zero gives starting values.

    Yields
    ------
    DescentState
        After each round. The last has `diverged` where numbers overflowed: nobody's records are at fault, and a smaller
        learning rate or standardised columns help.

    Raises
    ------
    SettingsInvalid (HR-511), FormulaInvalid (HR-310), MissingColumn (HR-403)
        Before any party is asked.
    NotFinite (HR-404)
        An expression of the formula is undefined for some record.
    UnboundedSum (HR-210)
        The channel adds noise or hides rows, and a column declares no range.
    """
    _check(family, optimiser, share, learning_rate=learning_rate, rounds=rounds, batch=batch, patience=patience)
    _check(family, optimiser, share, stop=stop, penalty=penalty)
    read = partial(design_of, formula=formula, family=family_of(family), offset=offset, weights=weights)
    spec = read(schema_of(federation))

    def program() -> Iterator[DescentState]:
        known = cases_of_model(federation, spec)
        scale = standardise if isinstance(standardise, Scaling) else None
        if start is not None and start.round > 0:
            scale = start.scaling
        elif standardise is True:
            scale = scaling_of(known, spec, target=family == "gaussian")
        prepared = scaled(known, scale)
        asked = ask_for(prepared, read(schema_of(prepared)), target=False)
        ask = partial(asked.sums_in_own_units, family, shape=share, batch=batch)
        state = start if start is not None and start.round > 0 else _begin(spec.size, scale, start)
        keys = ("gradient", "n", "loss") if with_loss else ("gradient", "n")
        ridge = penalty * without_intercept(spec.terms)
        while state.round < rounds and not (state.stopped or state.diverged):
            state = _advance(state, partial(ask, keys=keys), ridge, learning_rate, optimiser)
            quiet = state.quiet + 1 if stop is not None and np.abs(state.gradient).max() <= stop else 0
            state = replace(state, quiet=quiet, stopped=quiet >= patience)
            yield state

    return program()


LEAST = {"learning_rate": 1e-300, "rounds": 1, "batch": 1, "patience": 1, "stop": 0, "penalty": 0}


def _check(family: str, optimiser: str, share: float, **given: float | None) -> None:
    """Refuse settings out of their range.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    for name, word, known in [("family", family, get_args(DescentFamily)), ("optimiser", optimiser, OPTIMISERS)]:
        if word not in known:
            raise SettingsInvalid(f"{name}={word!r} has no gradient program.", remedy=suggestion(word, known))
    if not 0 < share < 1:
        raise SettingsInvalid(f"share={share!r} is no share.", remedy="Give one between 0 and 1.")
    for name, value in given.items():
        if value is not None and not (np.isfinite(value) and value >= LEAST[name]):
            raise SettingsInvalid(
                f"{name}={value!r} is out of range.",
                remedy="Rates are above zero, counts at least one, tolerances and penalties not below zero.",
            )


def _begin(size: int, scale: Scaling | None, start: DescentState | None) -> DescentState:
    zeros = np.zeros(size)
    return DescentState(0, zeros if start is None else start.beta, zeros, zeros, **kept_in_state(scale))


def _advance(
    state: DescentState, ask: Callable[[Array], dict[str, Array]], ridge: Array, learning_rate: float, optimiser: Optimiser
) -> DescentState:
    try:
        sums = ask(state.beta)
    except NotFinite:
        if state.round == 0 and not state.beta.any():  # nothing has moved yet, so it is the formula
            raise
        return replace(state, round=state.round + 1, loss=float("inf"), diverged=True)
    n = max(float(sums["n"]), 1.0)  # through noise, what is left of n may be anything
    with np.errstate(over="ignore", invalid="ignore"):
        gradient = sums["gradient"] / n + 2 * ridge * state.beta
        squares = state.squares + gradient**2
        pace = {"plain": 1.0, "adagrad": 1 / np.sqrt(squares + EPSILON), "adagrad-printed": 1 / (squares + EPSILON)}[optimiser]
        beta = state.beta - learning_rate * pace * gradient
        loss = float(sums["loss"] / n + ridge @ state.beta**2) if "loss" in sums else state.loss
    return replace(state, round=state.round + 1, beta=beta, gradient=gradient, squares=squares, n=n, loss=loss)


# ---- the learning rate ----------------------------------------------------------------------------------------------
@displayed
@dataclass(frozen=True, eq=False)
class Sweep:
    """A program run once for each learning rate.

    Attributes
    ----------
    learning_rates, losses : tuples of float
        Rising rates, and the mean loss where each run ended; infinite where it diverged.
    state : DescentState
        The last of the best run.
    """

    learning_rates: tuple[float, ...]
    losses: tuple[float, ...]
    state: DescentState

    @property
    def best(self) -> float:
        """The learning rate whose run ended at the least loss."""
        return self.learning_rates[int(np.argmin(self.losses))]


def sweep(
    federation: Federation,
    *,
    exponents: Sequence[int] = tuple(range(-3, 3)),
    beyond: int = 12,
    **settings: Any,
) -> Sweep:
    """Try the learning rates 5 * 10^p, and go on while the best is the first or the last of them.

    Parameters
    ----------
    exponents : sequence of int
        Consecutive p, rising.
    beyond : int
        How many more p may be tried outside of them; where all have diverged, smaller ones.
    **settings
        Of `gradient_descent`, without `learning_rate`.

    Releases
    --------
    As `gradient_descent` for each rate, and the mean loss at its end.

    Source
    ------
    van Aarle 2021, section 6.1.2.
    """
    family, formula = settings.get("family", "gaussian"), settings["formula"]
    tried: dict[int, tuple[float, DescentState]] = {}

    def attempt(p: int) -> None:
        *_, state = gradient_descent(federation, learning_rate=5.0 * 10.0**p, **settings)
        chosen = {key: settings[key] for key in ("penalty", "share", "offset", "weights") if key in settings}
        loss = float("inf") if state.diverged else mean_loss(federation, state, formula=formula, family=family, **chosen)
        tried[p] = (loss if np.isfinite(loss) else float("inf"), state)

    for p in exponents:
        attempt(p)
    for _ in range(beyond):
        order = sorted(tried)
        best = min(order, key=lambda p: tried[p][0])
        if not np.isfinite(tried[best][0]) or best == order[0]:
            attempt(order[0] - 1)
        elif best == order[-1]:
            attempt(best + 1)
        else:
            break
    order = sorted(tried)
    best = min(order, key=lambda p: tried[p][0])
    return Sweep(tuple(5.0 * 10.0**p for p in order), tuple(tried[p][0] for p in order), tried[best][1])


def mean_loss(
    federation: Federation,
    state: DescentState,
    *,
    formula: str,
    family: LossName = "gaussian",
    penalty: float = 0.0,
    share: float = 0.5,
    offset: str | None = None,
    weights: str | None = None,
) -> float:
    """Ask for the mean loss, penalty included, of the coefficients of a state; infinite where it overflows.

    Releases
    --------
    loss, n; once.
    """
    prepared = scaled(federation, state.scaling)
    spec = design_of(schema_of(prepared), formula, family_of(family), offset=offset, weights=weights)
    try:
        asked = ask_for(prepared, spec, target=False)
        sums = asked.sums_in_own_units(family, state.beta, ("loss", "n"), shape=share)
    except NotFinite:
        return float("inf")
    return float(sums["loss"] / max(float(sums["n"]), 1.0) + penalty * without_intercept(spec.terms) @ state.beta**2)
