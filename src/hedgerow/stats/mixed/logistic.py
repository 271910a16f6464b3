"""Logistic regression with a random intercept, by adaptive quadrature about each cluster's mode.

    logit P(y = 1) = X beta + tau u[cluster],    u ~ N(0, 1)

    at (beta, tau), each party for each of its clusters:
        mode, spread   of  log f(u) = log-likelihood of the cluster at u - u^2 / 2        stays at the party
        L              <- quadrature of f at nodes  mode + spread * z                     Gauss & Hermite
        posterior weights of the nodes  =  f / L
        score          <- posterior mean of  S(u) = sum of (y - p(u)) (x, u)              Fisher's identity
        information    <- posterior mean of  sum of p (1 - p) (x, u)(x, u)'  -  posterior covariance of S    Louis
    log L, score, information                                                             sum
    (beta, tau)        <- (beta, tau) + information^-1 score          halved while the log-likelihood falls

What leaves a party is the sum over its clusters: as many numbers as a logistic regression of one column more. Newton's
method on the exact information takes about six rounds, and the last information gives the errors, that of tau too.

Releases : log-likelihood, score (d + 1,), information (upper triangle), records, events and clusters; once a round.
Unit     : party, by the most records that one has: a range for hidden sums, no sensitivity. Channels that clip or add noise are
           refused (HR-211).
Source   : Pinheiro & Bates 1995 (adaptive quadrature); Louis 1982 (information). Differs: tau is a parameter itself, not its
           logarithm, so that no variation at all is a point like any other; its sign means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import load
from hedgerow.errors import NotConverged, SettingsInvalid

from ..columns import schema_of
from ..difficulties import check_target, separated
from ..linear.newton import has_risen, is_last
from ..linear.sums import symmetric, triangle
from ..state import NewtonState, solve
from .design import AskedMixed, ask_for_clusters, check_clusters, cluster_codes, read_mixed
from .fit import MixedFit, mixed_fit, show_mixed

BEGINNING = 0.5
"""The first tau."""
FARTHEST = 10.0
"""Modes lie within so many standard deviations of clusters."""
SPREAD = 10.0
"""Nodes lie within so many spreads of a mode, and a spread is at most 1."""
MODES = 60
"""Steps to a mode at most."""


@local
def quadrature_sums(
    broadcast: Mapping[str, Array], party: Party, rng: Any, *, nodes: int, most: float | None = None
) -> dict[str, Array]:
    """Add up log-likelihoods of clusters, their slopes and informations, at `theta` (d + 1,), tau at the end.

    Reads what `mixed_design` prepares.
    """
    there, codes, k = cluster_codes(party, most)
    X, y, w = party["X"][there], party["y"][there], party.w[there]
    n, theta = len(y), broadcast["theta"]
    tau, eta = float(theta[-1]), X @ theta[:-1] + party["offset"][there]
    member = csr_array((w, (codes, np.arange(n))), shape=(k, n))  # sums over clusters, of weighted records
    mode, spread = _modes(member, codes, y, eta, tau)
    z, weight = np.polynomial.hermite_e.hermegauss(nodes)
    u = mode[:, None] + spread[:, None] * z
    at = eta[:, None] + tau * u[codes]
    log_f = member @ (y[:, None] * at - np.logaddexp(0.0, at)) - u**2 / 2
    log_w = log_f + z**2 / 2 + np.log(weight) + np.log(spread)[:, None] - 0.5 * math.log(2 * math.pi)
    likelihood = logsumexp(log_w, axis=1)
    posterior = np.exp(log_w - likelihood[:, None])
    p = expit(at)
    residual, curvature = y[:, None] - p, p * (1 - p)
    by_node = np.stack([*(member @ (residual * column[:, None]) for column in X.T), u * (member @ residual)], axis=-1)
    mean = (posterior[:, :, None] * by_node).sum(1)
    centred = by_node - mean[:, None, :]
    spread_of_score = np.einsum("cq,cqi,cqj->ij", posterior, centred, centred, optimize=True)
    expected = _expected(X, w, curvature, posterior[codes], u[codes])
    return {
        "log_likelihood": np.asarray(likelihood.sum()),
        "score": mean.sum(0),
        "information": triangle(expected - spread_of_score),
        "n": np.asarray(w.sum()),
        "events": np.asarray(w @ y),
        "clusters": np.asarray(float(k)),
    }


def _modes(member: Any, codes: Array, y: Array, eta: Array, tau: float) -> tuple[Array, Array]:
    """Where the posterior of each cluster's u is highest, and how wide it is there, both of shape (clusters,)."""
    k = member.shape[0]
    mode, low, high = np.zeros(k), np.full(k, -FARTHEST), np.full(k, FARTHEST)
    for _ in range(MODES):  # the slope falls along u, so that its sign says on which side the mode lies
        p = expit(eta + tau * mode[codes])
        slope, precision = tau * (member @ (y - p)) - mode, tau**2 * (member @ (p * (1 - p))) + 1
        if np.abs(slope / precision).max(initial=0.0) < 1e-12:
            break
        low, high = np.where(slope > 0, mode, low), np.where(slope > 0, high, mode)
        newton = mode + slope / precision
        mode = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
    p = expit(eta + tau * mode[codes])
    return mode, 1 / np.sqrt(tau**2 * (member @ (p * (1 - p))) + 1)


def _expected(X: Array, w: Array, curvature: Array, posterior: Array, u: Array) -> Array:
    """Posterior mean of the information of the records, were u known, shape (d + 1, d + 1)."""
    weighted = w[:, None] * curvature * posterior
    plain, first, second = weighted.sum(1), (weighted * u).sum(1), (weighted * u * u).sum()
    cross = X.T @ first
    return np.block([[X.T @ (plain[:, None] * X), cross[:, None]], [cross[None, :], np.array([[second]])]])


@program(
    "Logistic regression with a random intercept of sites or clusters, by adaptive quadrature.",
    name="mixed_logistic",
    outcome=partial(show_mixed, kind="logistic"),
    case=lambda: Case(
        load("heart_failure"), {"formula": "death_event ~ age + (1 | anaemia)", "nested": True, "nodes": 9}, tolerance=1e-6
    ),
)
def laplace_newton(
    federation: Federation,
    *,
    formula: str,
    nodes: int = 25,
    offset: str | None = None,
    nested: bool = False,
    most: float | None = None,
    tol: float = 1e-8,
    max_rounds: int = 100,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood of a logistic model with a random intercept.

    Parameters
    ----------
    federation : Federation
    formula : str
        `ill ~ x + (1 | ward)`: a column whose values tell clusters apart within a party; `(1 | site)`: the parties.
    nodes : int
        Of the quadrature, from 1 (Laplace's approximation, whose slopes here are of few digits) to 100.
    offset : str, optional
        Column or expression added to the log-odds.
    nested : bool
        Whether each cluster of a column lies within one party; a column of the role "cluster" says so by itself.
    most : float, optional
        Most records of a party, where rows are hidden: a range for its sums. By default what the aggregation declares.
    tol : float
        Stop when the next step is shorter than this, in standard errors.
    max_rounds : int
        Rounds before giving up.
    start : NewtonState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    NewtonState
        `beta` (d + 1,) ends with tau.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211),
    UnboundedSum (HR-210)
        Before any party is asked.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
        Estimates are not unique, infinite, or not reached.
    RangeExceeded (HR-243)
        A party has more records than `most`.

    Releases
    --------
    See the module.
    """
    if not 1 <= nodes <= 100 or max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(
            f"nodes={nodes}, max_rounds={max_rounds}, tol={tol}.",
            remedy="Nodes are 1 to 100, rounds at least one, a tolerance is above zero.",
        )
    spec = read_mixed(schema_of(federation), formula, "binomial", offset=offset, nested=nested)
    asked = ask_for_clusters(federation, spec, most)
    state = asked.asked.inward(start or _begun(spec.rows.size))
    while not state.converged:
        if state.round >= max_rounds:
            raise NotConverged(
                f"after {state.round} rounds the next step is {state.length:.2g} standard errors long; tol is {tol:g}.",
                remedy="Allow more rounds with max_rounds=; if parties drop out, resume when they are back.",
            )
        state = _advance(state, asked, nodes, tol)
        yield asked.asked.outward(state)


def mixed_logistic(
    federation: Federation,
    formula: str,
    *,
    nodes: int = 25,
    offset: str | None = None,
    most: float | None = None,
    **settings: Any,
) -> MixedFit:
    """Logistic regression with a random intercept; equal to the fit of the pooled records, as lme4's glmer with nAGQ fits it.

    Parameters
    ----------
    federation, formula, nodes, offset, most
        As `laplace_newton`.
    **settings
        `nested`, `tol` and `max_rounds`, as `laplace_newton`.

    Returns
    -------
    MixedFit

    Raises
    ------
    As `laplace_newton`.
    """
    asked_before = len(federation.ledger)
    given = dict(formula=formula, nodes=nodes, offset=offset, most=most, **settings)
    *_, state = laplace_newton(federation, **given)
    return mixed_fit(federation, given, state, "logistic", asked_before)


def _begun(d: int) -> NewtonState:
    theta = np.append(np.zeros(d), BEGINNING)
    return replace(NewtonState.at_zero(d + 1), beta=theta, trial=theta)


def _advance(state: NewtonState, asked: AskedMixed, nodes: int, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    names = (*asked.asked.spec.names, "tau")
    sums = _sums(asked, state.trial, nodes)
    n, events, deviance = float(sums["n"]), float(sums["events"]), -2 * float(sums["log_likelihood"])
    if state.round == 0:
        check_target(events, n)
        check_clusters(float(sums["clusters"]), n)
    same = state.n == n and state.response == events
    if same and has_risen(deviance, state.deviance, state.length, hidden=True):  # of short steps the quadrature's error is more
        return state.halved()
    information, score = symmetric(sums["information"]), sums["score"]
    step = _step(information, score, names, state)
    length = math.sqrt(max(float(step @ score), 0.0))
    if np.abs(state.trial[:-1]).max(initial=0.0) > 50 and length > 0.05:
        raise separated(step, state.trial, names)
    return replace(
        state,
        round=state.round + 1,
        beta=state.trial,
        trial=state.trial + step,
        score=score,
        information=information,
        deviance=deviance,
        n=n,
        response=events,
        length=length,
        converged=state.round > 0 and is_last(length, state.length, tol, asked.asked.hidden),
        kept={"clusters": sums["clusters"]},
    )


def _step(information: Array, score: Array, names: tuple[str, ...], state: NewtonState) -> Array:
    """Newton's step; where the likelihood is not concave, as far from its top, along the information made positive."""
    try:
        return solve(information, score)
    except np.linalg.LinAlgError:
        scale = np.sqrt(np.maximum(np.abs(np.diag(information)), 1e-12))
        values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
        if np.abs(values).min() < 1e-10:
            raise separated(state.trial - state.beta, state.trial, names) from None
        turned = vectors @ ((vectors.T @ (score / scale)) / np.abs(values)) / scale
        length = float(np.abs(turned).max())
        step: Array = turned * min(1.0, 1.0 / length)
        tau = float(state.trial[-1])
        if tau * (tau + step[-1]) < 0:  # beyond zero lies the mirror image, as likely, from which it would come back for ever
            step[-1] = -0.8 * tau
        return step


def _sums(asked: AskedMixed, theta: Array, nodes: int) -> dict[str, Array]:
    most, tau = asked.most, abs(float(theta[-1]))
    reach = float(np.abs(theta[:-1]).sum()) + max(map(abs, asked.asked.spec.offset_range or (0.0, 0.0)))
    u = FARTHEST + SPREAD
    sizes = {
        "log_likelihood": most * (math.log(2) + reach + 2 * tau),
        "score": most * u,
        "information": (most * u) ** 2,
        "n": most,
        "events": most,
        "clusters": most,
    }
    question = partial(quadrature_sums, nodes=nodes, **({"most": asked.most} if asked.declared else {}))
    return asked.total(question, {"theta": theta}, sizes)
