"""Linear, logistic, Poisson and gamma regression by formula, with inference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.bound import describe
from hedgerow.core.federation import Federation
from hedgerow.data import Schema
from hedgerow.errors import FormulaInvalid, NotBinary

from .columns import is_exact, schema_of
from .design import Design
from .expressions import is_binary
from .factors import Levels, Number
from .firth import METHOD
from .firth import firth as firth_newton
from .fit import Fit
from .glm import newton
from .linear.loss import FamilyName
from .linear.losses import loss_of
from .linear.reach import response_range
from .state import NewtonState, solve


def logistic_regression(
    federation: Federation,
    formula: str,
    *,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    rounds: int = 5,
    firth: bool = False,
) -> Fit:
    """Logistic regression by maximum likelihood; equal to the pooled fit.

    Parameters
    ----------
    federation : Federation
    formula : str
        For example `"malignant ~ mean_radius + C(site)"`; see `hedgerow.stats.formula.read_formula`. The target is binary,
        a comparison such as `I(visits > 0)`, or a category of two levels, of which the second is the event.
    offset : str, optional
        Column or expression added to the log-odds; by default the schema's offset column.
    weights : str, optional
        Column of frequency weights: a record of weight 3 counts as three records.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    rounds : int
        Rounds through a channel that clips or adds noise.
    firth : bool
        Whether to maximise Firth's penalised likelihood instead (`hedgerow.stats.firth`), which is finite where columns
        separate the classes, and less biased for rare events; an iteration asks twice.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.

    Releases
    --------
    As `newton`.

    Examples
    --------
    >>> print(logistic_regression(federation, "malignant ~ mean_radius + mean_texture").summary())
    """
    if firth:
        asked_before = len(federation.ledger)
        spec = design_of(schema_of(federation), formula, "binomial", offset=offset, weights=weights)
        *_, state = firth_newton(federation, spec, tol=tol, max_rounds=4 * max_rounds)
        return replace(fit_of(federation, spec, "binomial", state.newton, asked_before), method=METHOD)
    return _fit(federation, formula, "binomial", offset, weights, tol=tol, max_rounds=max_rounds, rounds=rounds)


def linear_regression(
    federation: Federation,
    formula: str,
    *,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
) -> Fit:
    """Linear regression by least squares; equal to the pooled fit. See `logistic_regression` for what is alike.

    Parameters
    ----------
    offset : str, optional
        Column or expression that is subtracted from the target.

    Examples
    --------
    >>> linear_regression(federation, "progression ~ bmi + bp").to_frame()
    """
    return _fit(federation, formula, "gaussian", offset, weights, tol=tol, max_rounds=max_rounds, rounds=1)


def poisson_regression(
    federation: Federation,
    formula: str,
    *,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
) -> Fit:
    """Poisson regression of counts by maximum likelihood, log link; see `logistic_regression` for what is alike.

    Parameters
    ----------
    offset : str, optional
        Column or expression added to the log of the mean, e.g. `"log(exposure)"`.

    Notes
    -----
    Where rows are hidden, means of single records are cut off at eight times the target's declared range. The fit is that
    of the pooled records, or refused with RangeExceeded (HR-243).

    Examples
    --------
    >>> poisson_regression(federation, "visits ~ age + hlthp").to_frame()
    """
    return _fit(federation, formula, "poisson", offset, weights, tol=tol, max_rounds=max_rounds)


def gamma_regression(
    federation: Federation,
    formula: str,
    *,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
) -> Fit:
    """Gamma regression of a target above zero, log link; see `poisson_regression` for what is alike.

    The dispersion is the mean of squared relative residuals (Pearson), with records less coefficients in the denominator.

    Examples
    --------
    >>> gamma_regression(federation, "cost ~ age + C(ward)").summary()
    """
    return _fit(federation, formula, "gamma", offset, weights, tol=tol, max_rounds=max_rounds)


def regression(
    federation: Federation,
    *,
    formula: str,
    family: FamilyName,
    offset: str | None = None,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    rounds: int = 5,
    start: NewtonState | None = None,
    alpha: float = 1.0,
) -> Iterator[NewtonState]:
    """The program behind these regressions, with parameters as `hedgerow.stats.logistic_regression`.

    `fit_of` makes a fit of its last state. `alpha` is the dispersion of a negative binomial.
    """
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    return newton(federation, spec, family=family, tol=tol, max_rounds=max_rounds, rounds=rounds, start=start, alpha=alpha)


def _fit(
    federation: Federation, formula: str, family: FamilyName, offset: str | None, weights: str | None, **settings: Any
) -> Fit:
    asked_before = len(federation.ledger)
    *_, state = regression(federation, formula=formula, family=family, offset=offset, weights=weights, **settings)
    spec = design_of(schema_of(federation), formula, family, offset=offset, weights=weights)
    return fit_of(federation, spec, family, state, asked_before, alpha=settings.get("alpha"))


def design_of(
    schema: Schema, formula: str, family: FamilyName, *, offset: str | None = None, weights: str | None = None
) -> Design:
    """Read a formula and check that its target fits the family; nobody is asked."""
    spec = Design.of(formula, schema, offset=offset, weights=weights)
    if family != "binomial" and isinstance(spec.response, Levels):
        raise FormulaInvalid(f"target {spec.response.column!r} is a category.", remedy="Use logistic_regression.")
    target, counts = response_range(spec), family in ("poisson", "negative binomial")
    if target is not None and ((counts and target[0] < 0) or (family == "gamma" and target[1] <= 0)):
        raise FormulaInvalid(
            f"target {spec.response.text!r} of a {family} regression is declared to reach from {target[0]:g} to {target[1]:g}.",
            remedy="Counts are zero or more, and a gamma target is above zero; use linear_regression otherwise.",
        )
    if family == "binomial" and isinstance(spec.response, Number) and not is_binary(spec.response.text, spec.schema):
        raise NotBinary(
            f"target {spec.response.text!r} is not declared binary.",
            remedy="Use linear_regression; or compare it, e.g. I(visits > 0); or declare its kind binary in the schema.",
        )
    return spec


def fit_of(
    federation: Federation,
    spec: Design,
    family: FamilyName,
    state: NewtonState,
    asked_before: int = 0,
    *,
    alpha: float | None = None,
) -> Fit:
    """Turn the last state of `newton` into a fit; `asked_before` is the length of the ledger before its first question."""
    exact = is_exact(federation)
    dispersion = _dispersion(state, family)
    if exact:
        inverse = solve(state.information, np.eye(spec.size))
    else:  # the information holds noise, and its inverse would pass for certainty
        inverse = np.full((spec.size, spec.size), np.nan)
    return Fit(
        spec=spec,
        family=family,
        coef_=state.beta,
        covariance=dispersion * (inverse + inverse.T) / 2,
        dispersion=dispersion,
        n_records=state.n,
        rounds=state.round,
        n_parties=len(federation.members),
        n_missing=federation.missing,
        left=left_of(federation, asked_before),
        protection=protection_of(federation),
        deviance=state.deviance if exact else None,
        total_squares=(state.total_squares if spec.has_constant else state.raw_squares) if exact else None,
        target_mean=state.mean if exact else None,
        saturated=state.saturated if exact else None,
        null_deviance=state.null_deviance if exact and math.isfinite(state.null_deviance) and family == "poisson" else None,
        alpha=alpha if family == "negative binomial" else None,
    )


def _dispersion(state: NewtonState, family: FamilyName) -> float:
    """Residual variance; NaN where noise left nothing of it."""
    if not loss_of(family).free_dispersion:
        return 1.0
    df = state.n - len(state.beta)
    if family == "gamma":
        return state.pearson / df
    return state.deviance / df if df > 0 and state.deviance >= 0 else float("nan")


def left_of(federation: Federation, asked_before: int) -> str:
    """Say what each party was asked for since, and how often."""
    asked = [entry.contribution or entry.query for entry in federation.ledger.entries[asked_before:]]
    times = {1: "once", 2: "twice"}
    return "; ".join(f"{what}, {times.get(n, f'{n} times')}" for what, n in Counter(asked).items())


def protection_of(federation: Federation) -> str:
    found = federation.protection
    clip = "" if found.clip is None else f"clip {describe(found.clip)}; "
    if not federation.protection.noisy:
        return (
            f"{clip}{found.aggregation} aggregation, no mechanism: {found.meaning}; this release is not differentially private"
        )
    return (
        f"{clip}{found.mechanism}, {found.aggregation} aggregation: {found.meaning}; "
        "no standard errors, since noise in the information would pass for certainty"
    )
