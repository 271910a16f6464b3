"""Robust errors of a regression: a meat between two breads, by one more question at the solution.

    bread B       inverse of the information at the estimates                       known from the last round
    score         s_i = w_i * slope_i * x_i            of a record
    meat M        HC0, HC1   sum of s s'                                             sum over records
                  HC2        sum of s s' / (1 - h)        h_i = w_i * curvature_i * x_i' B x_i, its leverage
                  HC3        sum of s s' / (1 - h)^2
                  cluster    sum over clusters of  (sum of s) (sum of s)'            within a party
                  party      the same, each party one cluster
    covariance    B M B,   times  n / (n - d)  of HC1,   G / (G - 1) * (n - 1) / (n - d)  of G clusters

For HC2 and HC3 the bread is broadcast, so that a record computes its own leverage. Frequency weights stand for so many equal
records, and are not squared; probability weights are.

Releases : the meat (upper triangle); records with a weight; clusters; and of hidden rows how many leverages were cut off.
Unit     : record of HC0 to HC3. Of clusters a party, by the most records that one has: a range for hidden sums, no
           sensitivity, since a record changes what others of its cluster add.
Source   : White 1980; MacKinnon & White 1985; Liang & Zeger 1986. Differs: of families with another than the canonical link
           the expected information is the bread, as in R's sandwich for glm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import NotIdentified, RangeExceeded, SettingsInvalid, UnboundedSum, UnlawfulChannel

from .columns import is_exact
from .design import Design
from .linear.asking import WHOLE, Asked, ask_for
from .linear.loss import Loss
from .linear.losses import FamilyName, LossName, loss_of
from .linear.reach import SLACK, Reach, reach_of
from .linear.sums import At, limits_of, products, symmetric, triangle
from .state import NewtonState, solve

Errors = Literal["model", "HC0", "HC1", "HC2", "HC3", "cluster", "party"]
CLUSTERED = ("cluster", "party")
ERRORS = ("model", "HC0", "HC1", "HC2", "HC3", *CLUSTERED)
SHARPER: Mapping[str, int] = {"HC2": 1, "HC3": 2}
"""The power of 1 - h by which a record's square is divided."""
MOST_LEVERAGE = 0.9
"""Where rows are hidden, leverages are cut off here, and a record beyond refuses the errors."""
FEW_CLUSTERS = 20
"""With fewer clusters robust errors are too small even with their correction, and the summary says so."""


@local(additive=True, stackable=True)
def meat_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    errors: Errors,
    squared: bool,
    cut: bool,
    shape: float | None = None,
) -> dict[str, Array]:
    """Add up squares of scores of records: `meat` (d (d + 1) / 2,), `rows`, and `beyond`, how many leverages were cut off.

    Reads what `design` prepares; of the broadcast `beta` (d,), `bread` (d, d) and `reach`. `squared` says whether weights
    are of probability, `cut` whether leverages are cut off.
    """
    at = At(loss_of(loss, shape), party, broadcast["beta"], broadcast)
    w, squares = party.w, at.part("slope") ** 2
    beyond = np.zeros(w.shape, bool)
    if errors in SHARPER:
        leverage = at.part("curvature") * ((at.X @ broadcast["bread"]) * at.X).sum(-1) * (w if squared else 1.0)
        beyond = leverage > MOST_LEVERAGE
        most = MOST_LEVERAGE if cut else 1 - 1e-12
        squares = squares / (1 - np.minimum(leverage, most)) ** SHARPER[errors]
    meat = products(at.X, (w**2 if squared else w) * squares)
    rows = (w > 0) if squared else w
    return {
        "meat": triangle(meat),
        "rows": np.asarray(rows.sum(-1, dtype=np.float64)),
        "beyond": np.asarray((beyond & (w > 0)).sum(-1, dtype=np.float64)),
    }


@local
def cluster_meat(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    loss: LossName,
    errors: Errors,
    squared: bool,
    most: float | None = None,
    shape: float | None = None,
) -> dict[str, Array]:
    """Add up squares of scores of clusters: `meat` (d (d + 1) / 2,), `rows` and `clusters`.

    Reads what `design` prepares, `cluster` among it unless the party is the cluster.

    Raises
    ------
    RangeExceeded (HR-243)
        The party has more records than `most`.
    """
    at, w = At(loss_of(loss, shape), party, broadcast["beta"], broadcast), party.w
    there = w > 0
    rows = float(there.sum() if squared else w.sum())
    if most is not None and rows > most * SLACK:
        raise RangeExceeded(
            f"this party has {rows:g} records, and most={most:g} are declared.",
            remedy="Declare the most that any party has: most=.",
        )
    names = party["cluster"][there] if errors == "cluster" else np.zeros(int(there.sum()))
    known, codes = np.unique(names, return_inverse=True)
    scores = (w * at.part("slope"))[there, None] * at.X[there]
    sums = np.zeros((len(known), scores.shape[1]))
    np.add.at(sums, codes.reshape(-1), scores)
    return {
        "meat": triangle(sums.T @ sums),
        "rows": np.asarray(rows),
        "clusters": np.asarray(float(len(known))),
    }


def errors_of(errors: Errors, probability: str | None) -> Errors:
    """The errors that are meant: of probability weights those of a model would be wrong."""
    return "HC1" if errors == "model" and probability else errors


def check_errors(federation: Federation, spec: Design, errors: Errors) -> None:
    """Refuse errors that do not fit a design or a channel, before any party is asked.

    Raises
    ------
    SettingsInvalid (HR-511)
        Errors are unknown, or clustered without a cluster, or not and with one.
    UnlawfulChannel (HR-211)
        The channel clips or adds noise.
    """
    if errors not in ERRORS:
        raise SettingsInvalid(f"errors={errors!r}.", remedy=f"Take one of {', '.join(ERRORS)}.")
    if (errors == "cluster") != (spec.cluster is not None):
        what = (
            "errors='cluster' names no cluster" if spec.cluster is None else f"cluster={spec.cluster!r} with errors={errors!r}"
        )
        raise SettingsInvalid(f"{what}.", remedy="Give both: errors='cluster', cluster='patient'; parties are errors='party'.")
    if errors != "model" and not is_exact(federation):
        raise UnlawfulChannel(
            f"errors={errors!r} ask for squares of scores, and through a channel that clips or adds noise they would need a "
            "share of the budget.",
            remedy="Ask through a channel without; or take stats.private.inference, whose intervals hold the noise.",
        )


def with_meat(
    federation: Federation,
    spec: Design,
    family: FamilyName,
    state: NewtonState,
    errors: Errors,
    *,
    alpha: float | None = None,
    most: float | None = None,
) -> NewtonState:
    """Ask for the meat at the estimates of a converged state, which it is kept with, in the columns' own units.

    Raises
    ------
    UnboundedSum (HR-210), RangeExceeded (HR-243), NotIdentified (HR-320)
        A range is not declared where rows are hidden; a leverage beyond what hidden sums hold; one cluster.
    """
    asked, loss = ask_for(federation, spec), loss_of(family, alpha)
    beta = state.beta * asked.factors
    inverse = solve(state.information / np.outer(asked.factors, asked.factors), np.eye(spec.size))
    broadcast = {"beta": beta} | ({"bread": (inverse + inverse.T) / 2} if errors in SHARPER else {})
    if asked.hidden and asked.bounded and loss.log_link:
        broadcast["reach"] = np.array(reach_of(asked.spec, loss, beta))
    shaped: dict[str, Any] = {"loss": family, "errors": errors, "squared": spec.probability}
    shaped |= {"shape": alpha} if family == "negative binomial" else {}
    if errors in CLUSTERED:
        question = partial(cluster_meat, **shaped, **({} if most is None else {"most": most}))
        found = asked.total(question, broadcast, _party_bounds(asked, loss, beta, most))
    else:
        question = partial(meat_sums, cut=asked.hidden and asked.bounded, **shaped)
        found = asked.total(question, broadcast, _record_bounds(asked, loss, beta, errors))
        _refuse_leverage(float(found.pop("beyond")) if asked.hidden else 0.0, errors)
    if "clusters" in found and float(found["clusters"]) < 1.5:
        raise NotIdentified(
            "there is one cluster, and how clusters vary cannot be told.", remedy="Take errors='HC3', or another cluster."
        )
    meat = symmetric(found.pop("meat")) * np.outer(asked.factors, asked.factors)
    return replace(state, round=state.round + 1, kept=state.kept | {"meat": meat} | found)


def sandwich_of(state: NewtonState, errors: Errors) -> Array:
    """The covariance of the estimates of a state that holds its meat."""
    d, n = len(state.beta), float(state.kept["rows"])
    bread = solve(state.information, np.eye(d))
    found: Array = bread @ state.kept["meat"] @ bread.T
    if errors == "HC1":
        found = found * n / (n - d)
    if errors in CLUSTERED:
        k = float(state.kept["clusters"])
        found = found * k / (k - 1) * (n - 1) / (n - d)
    return (found + found.T) / 2


def _record_bounds(asked: Asked, loss: Loss, beta: Array, errors: Errors) -> dict[str, Bound] | None:
    """By how much a record moves each sum, of columns within 1 of zero; None where rows are not hidden."""
    if not (asked.hidden and asked.bounded):
        return None
    w, slope = _farthest(asked, loss, beta)
    sharper = (1 - MOST_LEVERAGE) ** -SHARPER.get(errors, 0)
    sizes = {"meat": w * (w if asked.spec.probability else 1.0) * slope**2 * sharper, "rows": max(w, 1.0), "beyond": 1.0}
    return {key: linf(size * SLACK, "record") for key, size in sizes.items()}


def _party_bounds(asked: Asked, loss: Loss, beta: Array, most: float | None) -> dict[str, Bound] | None:
    """What a party adds at most, by the most records that it has; None where rows are not hidden."""
    if not (asked.hidden and asked.bounded):
        return None
    n = most or asked.federation.protection.records
    if n is None:
        if asked.federation.protection.largest is not None:
            return None
        raise UnboundedSum(
            f"nobody says how many records a party has at most, so sums over clusters have no bound{WHOLE}.",
            remedy="Declare it: most=5000.",
        )
    w, slope = _farthest(asked, loss, beta)
    sizes = {"meat": (n * w * slope) ** 2, "rows": n * max(w, 1.0), "clusters": n}
    return {key: linf(size * SLACK, "party") for key, size in sizes.items()}


def _farthest(asked: Asked, loss: Loss, beta: Array) -> tuple[float, float]:
    """The largest weight and slope of a record by declared ranges."""
    reach = Reach.by_column(asked.spec, loss, [beta])
    return reach.weight, limits_of(loss, reach.target, reach.eta)["slope"]


def _refuse_leverage(beyond: float, errors: Errors) -> None:
    if beyond > 0.5:
        raise RangeExceeded(
            f"{beyond:.0f} records have leverages above {MOST_LEVERAGE:g}, where hidden sums of {errors} are cut off.",
            remedy="Take errors='HC1'; or look for a column that hardly any record has.",
        )
