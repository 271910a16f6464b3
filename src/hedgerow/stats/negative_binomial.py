"""Negative binomial regression (NB2): counts with variance m + alpha m^2, and alpha estimated by sums.

A Poisson regression comes first. Then Newton's method moves the coefficients and log(alpha) together, on the observed
information, so that errors are those of maximum likelihood in all parameters.

    for each round:
        beta, alpha    -> every party                                            broadcast
        score          <- sum of the gradient in beta and log(alpha)             sum, d + 1
        information    <- sum of minus the second derivatives                    sum, upper triangle
        loss           <- sum of minus the log-likelihood, but for log(y!)       sum
        beta, alpha    <- a Newton step                                          halved while the loss rises

Releases : those of the Poisson regression, then score (d + 1,), information, loss, log(y!), n; once a round. Once between
           them the squared excess of residuals over means, and squared means, from which alpha starts.
Unit     : record.
Source   : Cameron & Trivedi 2013, section 3.3.1. Differs: log(alpha) instead of alpha, so that it stays above zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import load
from hedgerow.errors import NotIdentified, SettingsInvalid
from hedgerow.report import Outcome

from .blocks import by_blocks
from .columns import is_exact, schema_of
from .design import Design, design_of
from .fit import Fit, fit_of
from .glm import newton
from .linear.asking import Asked, ask_for
from .linear.loss import FARTHEST
from .linear.losses import FamilyName, loss_of
from .linear.newton import has_risen, is_last, until_converged
from .linear.poisson import POISSON
from .linear.reach import reach_of
from .linear.sums import along, products, symmetric, triangle
from .noisy import refuse_unbounded
from .provenance import provenance
from .regression import fitted
from .results import Settings, show_fit, spec_of
from .scores import reading, scored
from .state import NewtonState, solve

NAME: FamilyName = "negative binomial"
LEAST, MOST = 1e-4, 1e3
"""Between these alpha is looked for; below, counts are Poisson for every purpose, and digits vanish."""


@local(additive=True, stackable=True)
@by_blocks
def excess(broadcast: dict[str, Array], party: Party, rng: Any) -> dict[str, Array]:
    """Add up by how much squared residuals exceed means, and squared means, at `beta`."""
    mean = POISSON.mean(np.clip(party["X"] @ broadcast["beta"] + party["offset"], *broadcast["reach"]))
    y, w = party["y"], party.w
    return {"excess": (w * ((y - mean) ** 2 - y)).sum(-1), "squares": (w * mean**2).sum(-1)}


@local(additive=True, stackable=True)
@by_blocks
def joint_score_and_information(broadcast: dict[str, Array], party: Party, rng: Any) -> dict[str, Array]:
    """Add up the derivatives of the log-likelihood in `beta` (d,) and log(alpha), and the likelihood itself.

    Reads `X` (..., n, d), `y` and `offset` (..., n), as `design` prepares them.
    """
    X, y, w = party["X"], party["y"], party.w
    with np.errstate(all="ignore"):
        linear = X @ broadcast["beta"] + party["offset"]
        eta = np.clip(linear, *broadcast["reach"])
        g = joint_derivatives(y, eta, float(np.exp(broadcast["log_alpha"])))
        d = X.shape[-1]
        matrix = np.empty((*w.shape[:-1], d + 1, d + 1))
        matrix[..., :-1, :-1] = products(X, w * g["bb"])
        matrix[..., -1, :-1] = matrix[..., :-1, -1] = along(X, w * g["ba"])
        matrix[..., -1, -1] = (w * g["aa"]).sum(-1)
        return {
            "score": np.concatenate([along(X, w * g["b"]), (w * g["a"]).sum(-1)[..., None]], axis=-1),
            "information": triangle(matrix),
            "loss": (w * g["loss"]).sum(-1),
            "factorials": (w * gammaln(y + 1.0)).sum(-1),
            "n": party.n,
            "y": (w * y).sum(-1),
            "beyond": (w * (eta != linear)).sum(-1),
        }


def joint_derivatives(y: Array, eta: Array, alpha: float) -> dict[str, Array]:
    """Return a record's loss (minus log-likelihood, without log(y!)), its gain in eta (`b`) and log(alpha) (`a`), and minus the
    second derivatives.
    """
    r, mean = 1.0 / alpha, POISSON.mean(eta)
    q = mean / (r + mean)
    log1p = np.log1p(mean * alpha)
    loss = gammaln(r) - gammaln(y + r) + r * log1p - y * (eta - np.log(r) - log1p)
    # in r: log-likelihood' = psi(y + r) - psi(r) - log(1 + m / r) + (m - y) / (r + m), and d r / d log(alpha) = -r
    first = digamma(y + r) - digamma(r) - log1p + (mean - y) / (r + mean)
    second = polygamma(1, y + r) - polygamma(1, r) + q / r - (mean - y) / (r + mean) ** 2
    return {
        "loss": loss,
        "b": r * (y - mean) / (r + mean),
        "a": -r * first,
        "bb": (y + r) * q * (1.0 - q),
        "ba": r * (y - mean) * mean / (r + mean) ** 2,
        "aa": -(r * first + r * r * second),
    }


def alpha_of(state: NewtonState) -> float:
    """The dispersion of a state of `joint_newton`; zero before the Poisson regression has ended."""
    return math.exp(state.beta[-1]) if "factorials" in state.kept else 0.0


def coefficients_of(state: NewtonState) -> Array:
    """The coefficients of a state of `joint_newton`, without log(alpha)."""
    return state.beta[:-1] if "factorials" in state.kept else state.beta


def count_loss(settings: Settings, state: NewtonState, y: Array, eta: Array, w: Array) -> float:
    """Mean log-loss with the state's own alpha; of a Poisson distribution before there is one."""
    loss = loss_of(NAME, alpha_of(state))
    return -float(np.average(loss.part("saturated", y, eta) - loss.part("value", y, eta), weights=w))


def show(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
    """Show the fit; of one that has not come beyond its Poisson regression, that one."""
    spec = spec_of(federation, settings, NAME)
    if not alpha_of(state):
        return show_fit(fit_of(federation, spec, "poisson", state))
    return show_fit(negative_binomial_fit(federation, spec, state))


@program(
    "Counts that vary more than a Poisson distribution (NB2); alpha is estimated.",
    name="negative_binomial_regression",
    outcome=show,
    case=lambda: Case(load("hie").take(range(400)), {"formula": "mdvis ~ lncoins + hlthp"}),
    **scored(reading("negative binomial", coefficients_of), count_loss, "log-loss", ask=False),
)
def joint_newton(
    federation: Federation,
    *,
    formula: str,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood of coefficients and alpha together; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        For example `"visits ~ age + C(site)"`; the target is a count.
    max_rounds : int
        Rounds before giving up, those of the Poisson regression included.

    Yields
    ------
    NewtonState
        After each round of the Poisson regression; then with one coefficient more, log(alpha). Its `deviance` is minus the
        log-likelihood without log(y!), the sum of which it keeps as `factorials`.

    Raises
    ------
    NotIdentified (HR-320)
        Counts vary no more than a Poisson distribution, so that alpha is zero. Others as `regression`.
    """
    spec = design_of(schema_of(federation), formula, NAME, offset=offset, weights=weights)
    if not is_exact(federation):
        refuse_unbounded(NAME)
    state = start or NewtonState.at_zero(spec.size)
    if len(state.trial) == spec.size:
        for state in newton(federation, spec, family="poisson", tol=1e-4, max_rounds=max_rounds, start=start):
            if state.converged:
                state = replace(state, trial=np.append(state.beta, np.nan), converged=False)
            yield state
    asked = ask_for(federation, spec)
    if np.isnan(state.trial[-1]):
        alpha = _first_alpha(asked, state.beta * asked.factors)
        begun = NewtonState.at_zero(spec.size + 1)
        point = np.append(state.beta, math.log(alpha))
        state = replace(begun, round=state.round, beta=point, trial=point, deviance=math.inf)

    def advance(state: NewtonState) -> NewtonState:
        return _advance(state, _sums(asked, state.trial), asked, tol)

    yield from until_converged(asked, state, advance, max_rounds=max_rounds, tol=tol)


def _first_alpha(asked: Asked, beta: Array) -> float:
    """Ask for the alpha of moments; refuse counts that vary no more than a Poisson distribution."""
    low, high = reach = _reach(asked, beta)

    def limits() -> dict[str, float]:
        bottom, top = asked.spec.response_range or (0.0, 0.0)
        mean = math.exp(high)
        return {"excess": max((top - math.exp(low)) ** 2, (mean - bottom) ** 2) + top, "squares": mean**2}

    broadcast = {"beta": beta, "reach": np.array(reach)}
    found = asked.total(excess, broadcast, asked.bounds(limits))
    alpha = float(found["excess"] / found["squares"])
    if not alpha > LEAST:
        raise _poisson_like(alpha)
    return min(alpha, MOST)


def _poisson_like(alpha: float) -> NotIdentified:
    return NotIdentified(
        f"counts vary no more about their means than those of a Poisson distribution: alpha would be {max(alpha, 0):.2g}.",
        remedy="Use poisson_regression; or give alpha.",
    )


def _reach(asked: Asked, beta: Array) -> tuple[float, float]:
    return reach_of(asked.spec, POISSON, beta) if asked.hidden and asked.bounded else (-FARTHEST, FARTHEST)


def _sums(asked: Asked, trial: Array) -> dict[str, Array]:
    reach = _reach(asked, trial[:-1])
    bounds = asked.bounds(lambda: joint_limits(asked.spec, reach, math.exp(trial[-1])))
    broadcast = {"beta": trial[:-1], "log_alpha": np.array(trial[-1]), "reach": np.array(reach)}
    sums: dict[str, Array] = asked.total(joint_score_and_information, broadcast, bounds)
    return sums


def joint_limits(spec: Design, reach: tuple[float, float], alpha: float) -> dict[str, float]:
    """Return by how much a record of weight one moves each sum of `joint_score_and_information`."""
    bottom, top = spec.response_range or (0.0, 0.0)
    x, (low, high), r = max(*(spec.limits or ()), 1.0), np.exp(reach), 1.0 / alpha
    away = max(top - low, high - bottom)  # of a target from its mean
    first = max(abs(digamma(top + r) - digamma(r)), math.log1p(high * alpha)) + away / (r + low)
    second = polygamma(1, r) + 1.0 / r + away / (r + low) ** 2
    eta = max(abs(end) for end in reach)
    loss = abs(gammaln(top + r) - gammaln(r)) + (r + top) * math.log1p(high * alpha) + top * (eta + abs(math.log(r)))
    curvature = max(x * x * (top + r) * min(0.25, high / r), x * away, r * first + r * r * second)
    return {
        "score": max(x * min(1.0, r / (r + low)) * away, r * first),
        "information": curvature,
        "loss": float(loss),
        "factorials": float(gammaln(top + 1.0)),
        "n": 1.0,
        "y": max(abs(top), abs(bottom)),
        "beyond": 1.0,
    }


def _advance(state: NewtonState, sums: dict[str, Array], asked: Asked, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    loss, n = float(sums["loss"]), float(sums["n"])
    if n == state.n and has_risen(loss, state.deviance, state.length, asked.hidden):
        return state.halved()
    score, information, trial = sums["score"], symmetric(sums["information"]), state.trial
    if math.exp(trial[-1]) < LEAST:
        raise _poisson_like(math.exp(trial[-1]))
    try:
        step = solve(information, score)
    except np.linalg.LinAlgError:  # far from the solution the observed information need not be positive: leave alpha
        step = np.append(solve(information[:-1, :-1], score[:-1]), np.sign(score[-1]) * 0.5)
    step[-1] = np.clip(step[-1], -2.0, 2.0)
    length = math.sqrt(max(float(step @ score), 0.0))
    return replace(
        state,
        round=state.round + 1,
        beta=trial,
        trial=trial + step,
        score=score,
        information=information,
        deviance=loss,
        n=n,
        response=float(sums["y"]),
        length=length,
        beyond=float(sums["beyond"]),
        converged=is_last(length, state.length if state.n else math.inf, tol, asked.hidden),
        kept={"factorials": sums["factorials"]},
    )


def negative_binomial_regression(federation: Federation, formula: str, *, alpha: float | None = None, **settings: Any) -> Fit:
    """Regression of counts that vary more than a Poisson distribution (NB2), log link.

    Parameters
    ----------
    alpha : float, optional
        The variance is m + alpha m^2; estimated by maximum likelihood where it is left out.
    **settings
        `offset`, `weights`, `tol` and `max_rounds`, as `regression`.

    Notes
    -----
    With alpha estimated, errors are those of statsmodels' NegativeBinomial, from the observed information in all
    parameters; with alpha given those of its GLM, from the expected one.

    Raises
    ------
    NotIdentified (HR-320)
        Counts vary no more than a Poisson distribution. Others as `regression`.
    """
    if alpha is not None:
        if not alpha > 0:
            raise SettingsInvalid(f"alpha={alpha!r}.", remedy="Give a number above zero, or use poisson_regression.")
        return fitted(federation, formula, NAME, alpha, **settings)
    asked_before = len(federation.ledger)
    *_, state = joint_newton(federation, formula=formula, **settings)
    return negative_binomial_fit(federation, spec_of(federation, settings | {"formula": formula}, NAME), state, asked_before)


def negative_binomial_fit(federation: Federation, spec: Design, state: NewtonState, asked_before: int = 0) -> Fit:
    """Turn the last state of `joint_newton` into a fit."""
    inverse = solve(state.information, np.eye(spec.size + 1))
    covariance = (inverse + inverse.T) / 2
    loss, alpha = state.deviance + float(state.kept["factorials"]), alpha_of(state)
    return Fit(
        spec=spec,
        family=NAME,
        coef_=state.beta[:-1],
        covariance=covariance[:-1, :-1],
        dispersion=1.0,
        n_records=state.n,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        deviance=2 * loss,
        saturated=0.0,
        target_mean=state.response / state.n,
        alpha=alpha,
        alpha_se=alpha * math.sqrt(covariance[-1, -1]),
    )
