"""Multinomial logistic regression: a category of K levels, by Newton's method on sums.

Each level but the first has coefficients of its own, the log-odds against the first. Score and information are those of
all levels together: K - 1 blocks of d coefficients.

    for each round:
        B              -> every party                                            broadcast, (K - 1, d)
        score          <- sum of  w * (y - p) x'                                 sum, (K - 1, d)
        information    <- sum of  w * (diag(p) - p p') x x'                      sum, upper triangle
        deviance       <- sum of  -2 w log p of the record's level               sum
        B              <- B + information^-1 score                               halved while the deviance rises

Releases : score (K - 1, d), upper triangle of the information, deviance, and records by level (K,); once a round.
Unit     : record.
Source   : McCullagh & Nelder 1989, section 5.2; the conventions of statsmodels' MNLogit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import elementwise_where, local, travels
from hedgerow.data import load
from hedgerow.errors import Separated, SettingsInvalid

from .blocks import by_blocks
from .columns import is_exact, schema_of
from .design import Design, design
from .difficulties import check_identified
from .linear.asking import Asked, ask_for
from .linear.newton import has_risen, stepped, until_converged
from .linear.reach import predictor_range
from .linear.sums import products, symmetric, triangle
from .multinomial_fit import MultinomialFit, class_loss, classes_of, labels_of, multinomial_fit, show
from .noisy import refuse_unbounded
from .scores import scored_by
from .state import NewtonState


@travels
@elementwise_where(lambda spec: spec.is_arithmetic)
def class_design(columns: Mapping[str, Array], *, spec: Design) -> dict[str, Array]:
    """Prepare the rows of a multinomial regression: as `design`, and `classes` (n, K - 1), indicators of the levels."""
    return design(columns, spec=spec) | {"classes": spec.response.columns(columns)}


@local(additive=True, stackable=True)
@by_blocks
def softmax_score_and_information(broadcast: Array, party: Party, rng: Any) -> dict[str, Array]:
    """Add up score and information (upper triangle) at `broadcast` (K - 1, d), deviance, and records by level (K,)."""
    X, Y, w = party["X"], party["classes"], party.w
    k = len(broadcast)
    with np.errstate(all="ignore"):
        eta = X @ broadcast.T
        total = logsumexp(np.concatenate([np.zeros((*eta.shape[:-1], 1)), eta], axis=-1), axis=-1)
        p = np.exp(eta - total[..., None])
        score = np.swapaxes(np.swapaxes(X, -1, -2) @ (w[..., None] * (Y - p)), -1, -2)
        blocks = []
        for i in range(k):
            row = [products(X, w * p[..., i] * ((i == j) - p[..., j])) for j in range(k)]
            blocks.append(np.concatenate(row, axis=-1))
        deviance = (2.0 * w * (total - (Y * eta).sum(-1))).sum(-1)
    levels = (w[..., None] * Y).sum(-2)
    first = party.n - levels.sum(-1)
    return {
        "score": score,
        "information": triangle(np.concatenate(blocks, axis=-2)),
        "deviance": deviance,
        "levels": np.concatenate([np.asarray(first)[..., None], levels], axis=-1),
    }


@program(
    "Logistic regression of a category of several levels.",
    name="multinomial_regression",
    outcome=show,
    case=lambda: Case(load("fair").take(range(0, 6000, 10)), {"formula": "occupation ~ educ"}),
    **scored_by(class_loss, "log-loss"),
)
def softmax_newton(
    federation: Federation,
    *,
    formula: str,
    weights: str | None = None,
    tol: float = 1e-8,
    max_rounds: int = 50,
    start: NewtonState | None = None,
) -> Iterator[NewtonState]:
    """Maximum likelihood of a multinomial logistic regression; settings as `hedgerow.stats.regression`.

    Parameters
    ----------
    formula : str
        The target is a category; its first level is the reference, or the one named: `C(stage, Treatment('II')) ~ age`.

    Yields
    ------
    NewtonState
        After each round.

    Raises
    ------
    FormulaInvalid (HR-310)
        The target is a number, or the schema has an offset, which would mean the same for every level.
    NotIdentified (HR-320), Separated (HR-321), NotConverged (HR-322)
    UnboundedSum (HR-210)
        The channel clips or adds noise; or it hides rows, and a column has no declared range.

    Releases
    --------
    See the module.
    """
    spec = classes_of(schema_of(federation), formula, weights=weights)
    if max_rounds < 1 or not tol > 0:
        raise SettingsInvalid(f"max_rounds is {max_rounds}, tol is {tol}.", remedy="Rounds are one or more, tol above zero.")
    if not is_exact(federation):
        refuse_unbounded("multinomial")
    asked = ask_for(federation, spec, class_design)
    k, d = len(spec.response.names), spec.size
    zeros = np.zeros((k, d))
    begun = start or NewtonState(0, zeros, zeros, zeros, np.zeros((k * d, k * d)))
    yield from until_converged(asked, begun, lambda state: _advance(state, asked, tol), max_rounds=max_rounds, tol=tol)


def class_limits(spec: Design, beta: Array) -> dict[str, float]:
    """Return by how much a record of weight one moves each sum of `softmax_score_and_information` at `beta`."""
    x, ends = max(spec.limits or (1.0,)), np.array([predictor_range(spec, b) for b in beta])
    largest, smallest = max(ends[:, 1].max(), 0.0), min(ends[:, 0].min(), 0.0)
    deviance = 2.0 * (math.log(len(beta) + 1) + largest - smallest)
    return {"score": x, "information": 0.25 * x * x, "deviance": deviance, "levels": 1.0}


def _advance(state: NewtonState, asked: Asked, tol: float) -> NewtonState:
    """Judge the trial point by its sums: halve the step that led there, or accept it and look for the next."""
    spec = asked.spec
    sums = asked.total(softmax_score_and_information, state.trial, asked.bounds(lambda: class_limits(spec, state.trial)))
    levels, deviance, d = sums["levels"], float(sums["deviance"]), spec.size
    n, information = float(levels.sum()), symmetric(sums["information"])
    if state.round == 0:
        check_identified(information[:d, :d], n, spec.names, residual=False)
        _check_levels(levels, spec)
    elif n == state.n and has_risen(deviance, state.deviance, state.length, asked.hidden):
        return state.halved()
    reached = replace(
        state,
        round=state.round + 1,
        beta=state.trial,
        score=sums["score"],
        information=information,
        deviance=deviance,
        n=n,
        kept={"levels": levels},
    )
    names = [f"{name} ({level})" for level in labels_of(spec) for name in spec.names]
    return stepped(reached, state, names, tol=tol, hidden=asked.hidden)


def _check_levels(levels: Array, spec: Design) -> None:
    if not (levels > 1e-9).all():
        empty = [label for label, n in zip(("the reference", *labels_of(spec)), levels, strict=True) if not n > 1e-9]
        raise Separated(
            f"no record has level {', '.join(empty)} of the target, so its coefficients are infinite.",
            remedy="Drop the level in the schema, or merge it with another.",
        )


def multinomial_regression(federation: Federation, formula: str, **settings: Any) -> MultinomialFit:
    """Multinomial logistic regression of a category by maximum likelihood; equal to the pooled fit.

    Parameters
    ----------
    federation : Federation
    formula, **settings
        `weights`, `tol` and `max_rounds`, as `softmax_newton`.
    """
    asked_before = len(federation.ledger)
    *_, state = softmax_newton(federation, formula=formula, **settings)
    spec = classes_of(schema_of(federation), formula, weights=settings.get("weights"))
    return multinomial_fit(federation, spec, state, asked_before)
