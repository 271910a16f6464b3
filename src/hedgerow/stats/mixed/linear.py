"""Linear regression with a random intercept, by sums over clusters at several ratios of variances at once.

    y = X beta + b[cluster] + e,    b ~ N(0, tau^2),  e ~ N(0, sigma^2),    r = tau^2 / sigma^2

    for each round, at eight ratios r:
        A(r), A'(r)    <- sums over clusters of  Z'Z - g u u'  and  -g' u u'            sum
                          u: sum of the cluster's rows of Z = [X, y],  g = r / (1 + r n),  g' = 1 / (1 + r n)^2
        D(r), D'(r)    <- sums over clusters of  log(1 + r n)  and  n / (1 + r n)       sum, with records and clusters
        beta(r), s(r)  <- least squares of A(r): coefficients and residual squares
        slope(r)       <- derivative of the profile log-likelihood, exactly, by A' and D'
        the next eight ratios lie about the root of the slopes, ever closer

For V = I + r 11' in each cluster, V^-1 = I - g 11' and log|V| = log(1 + r n), so these sums are all that the likelihood needs;
they are sums over clusters, and so over parties. From the second round on y is replaced by residuals of the last estimate,
which keeps digits of large targets.

Releases : the sums above; about four rounds of 8 ((d + 1)(d + 2) + 2) + 2 numbers.
Unit     : party, by the most records that one has: a range for hidden sums, no sensitivity. Channels that clip or add noise are
           refused (HR-211).
Source   : Laird & Ware 1982; Pinheiro & Bates 1995; Luo et al. 2022 (DLMM), of which the sites' rows are summed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import load
from hedgerow.display import displayed
from hedgerow.errors import NotConverged, SettingsInvalid

from ..columns import schema_of
from ..difficulties import check_identified
from ..linear.sums import symmetric, triangle
from ..polynomials import through_points
from ..state import solve
from .design import AskedMixed, ask_for_clusters, check_clusters, cluster_codes, read_mixed
from .fit import MixedFit, mixed_fit, show_mixed

Criterion = Literal["REML", "ML"]

FIRST = (0.0, 1e-4, 1e-3, 0.01, 0.05, 0.2, 1.0, 10.0)
"""Ratios of the first round."""
FARTHER = 100.0
"""By so much ratios grow while the slope still rises at the largest one."""
LARGEST = 1e8
STALLED = 1e-5
"""Of a ratio known to this share of itself no more is asked where rounds no longer bring it closer."""


@local
def cluster_squares(broadcast: Mapping[str, Array], party: Party, rng: Any, *, most: float | None = None) -> dict[str, Array]:
    """Add up what the likelihood needs at each of k `ratios`: `A`, `dA` (k, (d + 1)(d + 2) / 2), `D`, `dD` (k,), n, clusters.

    Reads what `mixed_design` prepares; of the broadcast `ratios` (k,), `beta` (d,), and `scale`, which divides residuals.
    """
    there, codes, k = cluster_codes(party, most)
    X, w, ratios = party["X"][there], party.w[there], broadcast["ratios"]
    residuals = (party["y"][there] - party["offset"][there] - X @ broadcast["beta"]) / broadcast["scale"]
    Z = np.column_stack([X, residuals])
    sizes = np.bincount(codes, w, k)
    within = np.stack([np.bincount(codes, w * column, k) for column in Z.T], axis=1)
    squares, grown = triangle(Z.T @ (w[:, None] * Z)), 1 + np.outer(ratios, sizes)
    rows, columns = np.triu_indices(Z.shape[1])
    products = within[:, rows] * within[:, columns]
    return {
        "A": squares - (ratios[:, None] / grown) @ products,
        "dA": -(grown**-2.0) @ products,
        "D": np.log(grown).sum(1),
        "dD": (sizes / grown).sum(1),
        "n": np.asarray(w.sum()),
        "clusters": np.asarray(float(k)),
    }


@displayed
@dataclass(frozen=True)
class MixedLinearState:
    """What is known of the likelihood after a round.

    Attributes
    ----------
    asked : array of shape (k,)
        Ratios tau^2 / sigma^2 so far, in rising order.
    slopes : array of shape (k,)
        Of the profile log-likelihood there.
    ratio : float
        The best of the ratios.
    beta : array of shape (d,)
        Coefficients at that ratio.
    precision : array of shape (d, d)
        X' V^-1 X there.
    squares : float
        Weighted residual squares there.
    n, clusters : float
    log_likelihood : float
    distance : float
        To the root, as a share of the ratio.
    """

    round: int
    asked: Array
    slopes: Array
    ratio: float
    beta: Array
    precision: Array
    squares: float
    n: float
    clusters: float
    log_likelihood: float
    distance: float
    converged: bool

    @classmethod
    def begun(cls, d: int) -> MixedLinearState:
        """Before the first round."""
        nothing = np.zeros(0)
        return cls(0, nothing, nothing, 0.0, np.zeros(d), np.zeros((d, d)), 0.0, 0.0, 0.0, 0.0, np.inf, False)


@program(
    "Linear regression with a random intercept of sites or clusters, by REML; equal to the pooled fit.",
    name="mixed_linear",
    outcome=partial(show_mixed, kind="linear"),
    case=lambda: Case(
        load("heart_failure"),
        {"formula": "serum_sodium ~ age + (1 | anaemia)", "nested": True},
        tolerance=1e-6,
    ),
)
def reml(
    federation: Federation,
    *,
    formula: str,
    criterion: Criterion = "REML",
    offset: str | None = None,
    nested: bool = False,
    most: float | None = None,
    tol: float = 1e-8,
    max_rounds: int = 20,
    start: MixedLinearState | None = None,
) -> Iterator[MixedLinearState]:
    """Maximum (restricted) likelihood of a linear model with a random intercept.

    Parameters
    ----------
    federation : Federation
    formula : str
        `y ~ x + (1 | ward)`: a column whose values tell clusters apart within a party; `(1 | site)`: the parties.
    criterion : {"REML", "ML"}
        Restricted likelihood, whose variances know how many coefficients were estimated, or the ordinary one.
    offset : str, optional
        Column or expression added to the mean.
    nested : bool
        Whether each cluster of a column lies within one party; a column of the role "cluster" says so by itself.
    most : float, optional
        Most records of a party, where rows are hidden: a range for its sums. By default what the aggregation declares.
    tol : float
        Stop when the ratio of variances is known to this share of itself.
    max_rounds : int
        Rounds before giving up.
    start : MixedLinearState, optional
        Continue from a state that was yielded before.

    Yields
    ------
    MixedLinearState

    Raises
    ------
    FormulaInvalid (HR-310), MissingColumn (HR-403), SettingsInvalid (HR-511), UnlawfulChannel (HR-211), UnboundedSum (HR-210)
        Before any party is asked.
    NotIdentified (HR-320), NotConverged (HR-322)
        Coefficients are not unique; each cluster has one record; the ratio is not reached.
    RangeExceeded (HR-243)
        A party has more records than `most`.

    Releases
    --------
    See the module.
    """
    if criterion not in ("REML", "ML") or max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(
            f"criterion={criterion!r}, max_rounds={max_rounds}, tol={tol}.",
            remedy="criterion: REML or ML; rounds are at least one, a tolerance is above zero.",
        )
    spec = read_mixed(schema_of(federation), formula, "gaussian", offset=offset, nested=nested)
    asked, state = ask_for_clusters(federation, spec, most), start or MixedLinearState.begun(spec.rows.size)
    while not state.converged:
        if state.round >= max_rounds:
            raise NotConverged(
                f"after {state.round} rounds the ratio of variances is known to {state.distance:.1g} of it; tol is {tol:g}.",
                remedy="Allow more rounds with max_rounds=; if parties drop out, resume when they are back.",
            )
        state = _advance(state, asked, criterion, tol)
        yield state


def mixed_linear(
    federation: Federation,
    formula: str,
    *,
    criterion: Criterion = "REML",
    offset: str | None = None,
    most: float | None = None,
    **settings: Any,
) -> MixedFit:
    """Linear regression with a random intercept; equal to the fit of the pooled records, as lme4's lmer fits it.

    Parameters
    ----------
    federation, formula, criterion, offset, most
        As `reml`.
    **settings
        `nested`, `tol` and `max_rounds`, as `reml`.

    Returns
    -------
    MixedFit
        Errors are those of `(X' V^-1 X)^-1` at the estimated variances, and intervals are normal ones, as of lmer without
        further packages.

    Raises
    ------
    As `reml`.
    """
    asked_before = len(federation.ledger)
    given = dict(formula=formula, criterion=criterion, offset=offset, most=most, **settings)
    *_, state = reml(federation, **given)
    return mixed_fit(federation, given, state, "linear", asked_before)


# ---- one round ------------------------------------------------------------------------------------------------------
def _advance(state: MixedLinearState, asked: AskedMixed, criterion: Criterion, tol: float) -> MixedLinearState:
    """Ask at the next ratios, and look for the root of all slopes."""
    ratios = np.array(FIRST) if state.round == 0 else _next(state)
    sums, scale = _sums(asked, ratios, state.beta)
    n, d = float(sums["n"]), asked.asked.spec.size
    factors = asked.asked.factors
    units = np.append(factors, scale)
    if state.round == 0:
        check_identified(symmetric(sums["A"][0])[:d, :d], n, asked.asked.spec.names, residual=True)
        check_clusters(float(sums["clusters"]), n)
    found = [
        _profile(symmetric(A) * np.outer(units, units), symmetric(dA) * np.outer(units, units), D, dD, n, criterion)
        for A, dA, D, dD in zip(sums["A"], sums["dA"], sums["D"], sums["dD"], strict=True)
    ]
    slopes = np.array([one[0] for one in found])
    known, at = np.unique(np.append(state.asked, ratios), return_index=True)
    heights = np.append(state.slopes, slopes)[at]
    root = _root(known, heights)
    best = int(np.argmin(np.abs(ratios - root)))
    ratio, (_, step, precision, squares, log_likelihood) = float(ratios[best]), found[best]
    distance = abs(ratio - root) / max(root, 1e-12) if np.isfinite(root) else np.inf
    stalled = distance < STALLED and distance >= state.distance / 2
    ended = state.round > 0 and (distance < tol or stalled)  # in the second round residuals are of an estimate
    return MixedLinearState(
        state.round + 1, known, heights, ratio, state.beta + step, precision, squares, n, float(sums["clusters"]),
        log_likelihood, distance, bool(ended),
    )  # fmt: skip


def _sums(asked: AskedMixed, ratios: Array, beta: Array) -> tuple[dict[str, Array], float]:
    """Ask at these ratios, residuals being of `beta` in the columns' own units; and by what residuals were divided."""
    one = asked.asked
    at, scale = beta * one.factors, 1.0
    if one.hidden and one.bounded:
        scale = (one.spec.response_limit or 1.0) + float(np.abs(at).sum())
    r, most = float(ratios.min()), asked.most
    sizes = {
        "A": most,
        "dA": most * (most if r == 0 else min(most, 1 / (4 * r))),
        "D": most * float(np.log1p(ratios.max())),
        "dD": most,
        "n": most,
        "clusters": most,
    }
    question = partial(cluster_squares, **({"most": asked.most} if asked.declared else {}))
    return asked.total(question, {"ratios": ratios, "beta": at, "scale": np.array(scale)}, sizes), scale


def _profile(
    A: Array, dA: Array, D: float, dD: float, n: float, criterion: Criterion
) -> tuple[float, Array, Array, float, float]:
    """The slope of the profile log-likelihood at a ratio, coefficients, their precision, residual squares, the value."""
    X, b, c = A[:-1, :-1], A[:-1, -1], A[-1, -1]
    dX, db, dc = dA[:-1, :-1], dA[:-1, -1], dA[-1, -1]
    beta = solve(X, b)
    squares = max(float(c - b @ beta), np.finfo(float).tiny)
    falls = float(dc - 2 * db @ beta + beta @ dX @ beta)
    restricted = criterion == "REML"
    df = n - len(b) * restricted
    slope = dD + df * falls / squares
    height = D + df * (np.log(2 * np.pi * squares / df) + 1)
    if restricted:
        slope += float(np.trace(solve(X, dX)))
        height += float(np.linalg.slogdet(X)[1])
    return -slope / 2, beta, X, squares, float(-height / 2)


# ---- where to ask next ----------------------------------------------------------------------------------------------
def _root(ratios: Array, slopes: Array) -> float:
    """The ratio where the slope falls through zero; zero where it falls from the start, infinite where it never does."""
    falls = np.flatnonzero((slopes[:-1] > 0) & (slopes[1:] <= 0))
    if not len(falls):
        return 0.0 if slopes[0] <= 0 else np.inf
    at = int(falls[0])
    near = slice(max(at - 3, int(ratios[at] > 0)), at + 5)
    if ratios[at] == 0:
        u, values, ends = ratios[at : at + 3], slopes[at : at + 3], ratios[at : at + 2]
        return float(brentq(lambda at: float(through_points(u, values, at)), *ends, xtol=1e-15, rtol=1e-15))
    logs = np.log(ratios[near])  # slopes by the logarithm are smooth over all sizes of ratios
    by_log = slopes[near] * ratios[near]
    return float(
        np.exp(brentq(lambda at: float(through_points(logs, by_log, at)), *np.log(ratios[at : at + 2]), xtol=1e-15, rtol=1e-15))
    )


def _next(state: MixedLinearState) -> Array:
    """Eight ratios about the root, from near to far; farther ones where no root is in sight."""
    root = _root(state.asked, state.slopes)
    if not np.isfinite(root):
        if state.asked[-1] >= LARGEST:
            raise NotConverged(
                "the likelihood still rises where clusters differ a hundred million times more than records within them.",
                remedy="Records of a cluster are alike but for rounding: take one record for each cluster.",
            )
        return np.geomspace(state.asked[-1], state.asked[-1] * FARTHER, 9)[1:]
    around = min(max(3 * state.distance, 1e-9), 0.5)
    steps = around ** np.array([1.0, 1.5, 2.0])
    return np.unique(root * np.concatenate([1 - steps, [1.0, 1 + around**3], 1 + steps]))
