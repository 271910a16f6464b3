"""One noisy question before the first gradient: second moments of inputs and targets, and the pilot estimate they give.

    (x, t)(x, t)'      summed over records, in one ball: |x|^2 + t^2 <= length^2 + 1             parties, one sum
    M, s, q            <- moments / n; eigenvalues of M not below FLOOR                          server, post-processing

    loss                     H                b       f(0)     G
    squared                  2 M + ridge      2 s     q        4 r M        r = f* - ridge |theta*|^2 / 2, at every x
    hinge, large ridge       ridge            s       1        (length^2 - |s|^2) / d     margins below 1: no kink

    theta* = H^-1 b, or the best in the box;   f* = f(0) - b'theta* + theta*'H theta* / 2, not below FLOOR

Only what a loss needs is asked: s alone of the hinge. With a ridge of length^2 no margin reaches 1; down to half of it the
released s tells whether one can, and the source says so. With a smaller ridge records lie on both sides of the kink, which
moments do not tell. Nor do they tell where a logistic loss is least: taken as the parabola that it is at theta = 0, it made
forecasts of down to a fifth of what was achieved (made classes; a half on card fraud), and a correction by the mean margin made
others of five times as much. Both are refused: take records that belong to no party (`PilotEstimate.of_records`).

Releases : one sum, of shape d^2 + d + 1 at most.
Unit     : record; `hedgerow.stats.private.second_moments` tells the ball and tests reach it.
Source   : the question, Vu and Slavkovic 2009 and Wang 2018 (sufficient statistics); its use here is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import NEEDED, Case, Key, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.question import elementwise, travels
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.learn.queries.inputs import Inputs
from hedgerow.learn.queries.keys import INPUTS, loss_of_keys, spec_of_keys
from hedgerow.learn.queries.losses import QueryLoss
from hedgerow.learn.queries.program import without
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome
from hedgerow.report.numerals import show
from hedgerow.stats.private.second_moments import MomentParts, unit_moments

from .pilot_estimate import FOLDS, PilotEstimate

FLOOR = 1e-3
"""Eigenvalues of M, and f*, are not taken for smaller: noise can push them below zero. As in the prototype, seen on lending."""


@displayed
@dataclass(frozen=True)
class PilotState:
    """Second moments as released.

    Attributes
    ----------
    round : int
    gram : array of shape (d, d)
        Sum of x x'; zeros where it was not asked for.
    score : array of shape (d,)
        Sum of t x.
    square : float
        Sum of t^2; zero where it was not asked for.
    noise : float
        Standard deviation of the noise in the score; in the diagonal of `gram` it is root 2 times that.
    """

    round: int
    gram: Array
    score: Array
    square: float
    noise: float


@travels
@elementwise
def moment_rows(columns: Mapping[str, Array], *, spec: Inputs) -> dict[str, Array]:
    """The inputs of gradient queries under the names that moments read; nothing leaves the party."""
    return {"X": spec.rows(columns), "y": spec.targets(columns)}


def outcome(federation: Federation, settings: Mapping[str, Any], state: PilotState) -> Outcome:
    """The estimate: eigenvalues of the curvature, theta*, f*."""
    import pandas

    loss, spec = loss_of_keys(federation.schema, settings), spec_of_keys(federation.schema, settings)
    found = estimate_of(state, loss, spec, settings["n_records"], settings["box"], _told(settings))
    values = np.linalg.eigvalsh(found.curvature)
    table = pandas.DataFrame({"theta*": found.best, "eigenvalue of H, ascending": values})
    lines = f"{found.source}. f* {show(found.least)}; excess of the best theta of n records: {show(found.sampling)} / n."
    return Outcome(
        tables={"Curvature": table}, text={"Estimate": lines}, arrays={"curvature": found.curvature, "best": found.best}
    )


@program(
    "Second moments by one noisy sum, from which gradient queries are forecast before the first is asked.",
    keys={
        **INPUTS,
        "box": Key(float, 1.0, "largest absolute value of a coefficient"),
        "n_records": Key(int, NEEDED, "of all parties, a constant in public; the sum of their weights, if they have weights"),
    },
    bind={"loss": loss_of_keys, "spec": spec_of_keys},
    outcome=outcome,
    case=lambda: Case(
        load("hie").select(["mdvis", "lncoins", "idp", "physlm", "disea"]).take(range(200)),
        {"epsilon": 5.0, "n_records": 200, "radius": 2.0},
    ),
)
def pilot_moments(
    federation: Federation,
    *,
    loss: QueryLoss,
    spec: Inputs,
    epsilon: float | None = 0.1,
    delta: float | None = 1e-6,
    noise_at: Position = "server",
    least: int = 0,
    left_out: list[str] | None = None,
    start: PilotState | None = None,
) -> Iterator[PilotState]:
    """Ask once for the second moments that forecasts of a loss need.

    Parameters
    ----------
    loss : QueryLoss
    spec : Inputs
        How records become inputs of bounded length.
    epsilon, delta : float, optional
        What the question may cost, for the ledger's neighbours; None leaves protection to the channel.
    noise_at : {"server", "aggregators", "shares", "party"}
        Where its noise is added.
    least : int
        For shares of noise: as many parties make the whole.
    left_out : list of str, optional
        Parties of the federation that take no part: they are not asked.

    Yields
    ------
    PilotState

    Raises
    ------
    SettingsInvalid (HR-511)
        A logistic loss, or a hinge whose ridge is below half the squared length of a row: moments do not tell their curvature.
    UnboundedSum (HR-210)
        Record weights declare no range.
    """
    parts, d = parts_of(loss, spec), spec.size
    if left_out:
        federation = without(federation, left_out, None)
    heaviest = federation.schema.heaviest
    if heaviest is None:
        raise UnboundedSum("record weights declare no range, so moments have no bound.", remedy="Declare it.")
    known = complete_cases(federation, [*spec.features, spec.target], count=False)
    budget = BudgetShares(epsilon, delta if epsilon is not None else None, noise_at, least)
    asked = budget.handles(known, {"moments": Share(1.0)}, begins=start is None)["moments"].prepare(moment_rows, spec=spec)
    if start is None:
        norm = 1 if asked.protection.law in ("laplace", "geometric") else 2
        bound = parts.bound(norm, 1, heaviest, l1=spec.length(1), l2=spec.length(2))
        level = noise_level(asked, bound, "", parts.size(d))
        total = asked.sum(partial(unit_moments, parts=parts, labels=False), bound=bound)
        found = parts.read(total, d)
        yield PilotState(1, found.gram, found.score, found.square, level / parts.score)


def parts_of(loss: QueryLoss, spec: Inputs) -> MomentParts:
    """What a loss needs; the whole of (x, t)(x, t)' where it needs all of it.

    Raises
    ------
    SettingsInvalid (HR-511)
        As `pilot_moments`.
    """
    if loss.kind == "squared":
        return MomentParts(1.0, math.sqrt(2.0), 1.0)
    if loss.kind == "logistic":
        raise SettingsInvalid(
            "second moments of a logistic loss do not tell its curvature, which falls with margins: forecasts were up to "
            "five times too low.",
            remedy="Take records that belong to no party (PilotEstimate.of_records; in a plan, path or data).",
        )
    if loss.ridge < spec.length(2) ** 2 / 2:
        raise SettingsInvalid(
            f"a hinge with ridge {loss.ridge:g} where rows are up to {spec.length(2):g} long bends wherever its records lie on "
            "the kink, which second moments do not tell.",
            remedy="Take records that belong to no party (PilotEstimate.of_records), or a ridge of at least half that squared.",
        )
    return MomentParts(0.0, 1.0)


def estimate_of(
    state: PilotState, loss: QueryLoss, spec: Inputs, n_records: float, box: float, source: str = "second moments"
) -> PilotEstimate:
    """Make the estimate of the moments; everything is post-processing of what was released.

    Parameters
    ----------
    n_records : float
        Of all parties, a constant in public; where records have weights, their sum.
    box : float
        That of the steps.

    Returns
    -------
    PilotEstimate
        With replicas that have the noise of the question once more, drawn from numbers that are always the same.
    """
    found = _estimate(state, loss, spec, n_records, box, source)
    if not state.noise:
        return found
    rng = np.random.default_rng(0)
    again = [_estimate(noised(state, loss, spec, rng), loss, spec, n_records, box, source) for _ in range(FOLDS)]
    return replace(found, replicas=tuple(again), doubt=1.0)


def noised(state: PilotState, loss: QueryLoss, spec: Inputs, rng: np.random.Generator) -> PilotState:
    """The moments with noise of the question once more; what was not asked stays zero."""
    level = state.noise * parts_of(loss, spec).score
    drawn = rng.normal(0, level, state.gram.shape)
    gram = state.gram + (drawn + drawn.T) / 2 * state.gram.any()
    score = state.score + rng.normal(0, state.noise, spec.size)
    return replace(state, gram=gram, score=score, square=state.square + rng.normal(0, level) * bool(state.square))


def _estimate(state: PilotState, loss: QueryLoss, spec: Inputs, n_records: float, box: float, source: str) -> PilotEstimate:
    d, s, hidden = spec.size, state.score / n_records, list[str]()
    if loss.kind == "hinge":
        matrix, bent, b, at_zero = np.zeros((d, d)), loss.ridge * np.eye(d), s, 1.0
    else:
        values, vectors = np.linalg.eigh(state.gram / n_records)
        low = int((values < FLOOR).sum())
        hidden += [f"{low} of {d} eigenvalues of their second moments"] * (low > 0)
        matrix = (vectors * np.maximum(values, FLOOR)) @ vectors.T
        bent = 2 * matrix + loss.ridge * np.eye(d)
        b, at_zero = 2 * s, state.square / n_records
    best = least_in_box(bent, b, box)
    reached = float(at_zero - b @ best + best @ bent @ best / 2)
    least, hidden = max(reached, FLOOR), hidden + ["f*"] * (reached < FLOOR)
    source += f"; below {FLOOR:g}, and taken for that: {' and '.join(hidden)}, so the forecast is rough" * bool(hidden)
    if loss.kind == "hinge":
        if (margin := spec.length(2) * float(np.linalg.norm(best))) > 1:
            source += f"; margins may reach {show(margin)}, beyond the kink of the hinge, which is not seen"
        scatter = max(spec.length(2) ** 2 - float(s @ s), 0.0) / d * np.eye(d)
    else:
        residual = max(least - loss.ridge / 2 * float(best @ best), 0.0)
        scatter = 4 * residual * matrix
    return PilotEstimate(bent, best, least, scatter, source, slope=bent @ best - b)


def least_in_box(curvature: Array, towards: Array, box: float) -> Array:
    """Where x'H x / 2 - b'x is least in the box: shape (d,); H above zero."""
    best: Array = np.linalg.solve(curvature, towards)
    if np.abs(best).max() <= box:
        return best
    root = np.linalg.cholesky(curvature).T
    found: Array = scipy.optimize.lsq_linear(root, np.linalg.solve(root.T, towards), (-box, box), method="bvls").x
    return found


def _told(settings: Mapping[str, Any]) -> str:
    if settings["epsilon"] is None:
        return "Second moments of the owners' records"
    return f"Second moments of the owners' records at epsilon {show(settings['epsilon'])}, delta {settings['delta'] or 0:g}"
