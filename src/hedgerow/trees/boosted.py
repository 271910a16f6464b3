"""Gradient boosting over parties with the same columns: trees of second order, level by level, from histograms of derivatives.

    base            <- log odds, or mean, of the target                                   one sum
    for each tree, for each level:
        trees       -> parties                                                            broadcast
        g, h        <- derivatives of each record's loss at the score of the trees        local
        H           <- for each open node, feature and bin: sum of (w g, w c h)           local
        H           <- sum over parties                                                   sum, server
        tree        <- each open node split where G_l^2/(H_l + r) + G_r^2/(H_r + r) - G^2/(H + r) is largest
        leaves      <- -rate G/(H + r)

Without noise the trees are those of the pooled records on the same bins.

Releases : H, once per level of each tree, of shape (open nodes, sum of the features' bins, 2); before that n and the sum of y.
State    : none at the parties: scores are computed anew from the trees.
Unit     : record. It lies in one bin of each of F features, and adds (w g, w c h) there.
           logistic: g = p - y, h = p (1 - p), and g^2 + (c h)^2 <= 1 for c = 13/4, so that the l2 length is sqrt(F) times the
           heaviest weight: with q = |g|, h = q (1 - q), and q^2 (1 + c^2 (1 - q)^2) <= 1 as long as
           c^2 <= (1 + q) / (q^2 (1 - q)), whose least value is phi^5 = 11.09, at q = 1 / phi, the golden section; c^2 = 10.56.
           It is reached at q = 1. The l1 length is F times q + c q (1 - q) <= (1 + c)^2 / (4 c) = 289 / 208, at q = 17 / 26.
           The sum of the separate largest values, F (1 + 1/16) for c = 1, is larger, and c times noisier for H.
           squared: y and scores in [-1, 1], so |g| <= 2 and h = 1, c = 1: sqrt(5 F), and 3 F in l1.
Settings : behind noise few trees, whose leaves hold much more than the noise. Adult, epsilon 1 and delta 1e-5, 24 000 of its
           training records, accuracy on the others, 3 seeds: 5 trees of depth 2 with a rate of 0.6 and min_curvature=200 83.5
           percent; 10 trees with 0.3 and 25 79.4. `additive`, which chooses no splits, is better there.
Source   : Friedman 2001; Chen & Guestrin 2016. Differs: bins with public cut points, trees grown to one depth.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import complete_cases, load
from hedgerow.errors import HedgerowWarning, SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share

from . import results
from .bins import Bins, binned
from .boosted_forest import BoostedForest, BoostingState, scores
from .charged import charged
from .growing import split_nodes
from .histograms import CellLayout, every_feature, padded, slots, tally
from .noise import ball, refuse_whole_noise
from .second_order import Loss, loss_parts, newton_score, newton_step
from .split import splits_by
from .tree import LEAF, TreeState, descend

CURVED = {"logistic": 13 / 4, "squared": 1.0}
"""By what second derivatives are multiplied before they are asked."""
SQUARES = {"logistic": 1.0, "squared": 5.0}
"""Largest g^2 + (c h)^2 of a record."""
MOST = {"logistic": Fraction(289, 208), "squared": Fraction(3)}
"""Largest |g| + c h of a record."""
BASE = 0.05
"""Share of a budget for the base score."""
FEWEST = 1e-3
"""Base probabilities are at least this far from 0 and 1."""


@local(additive=True, stackable=True, holds=True)
def target_total(broadcast: Any, party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """Records and the sum of their targets, shape (2,): the class 1, or the number in units of `Bins.scale`."""
    added = np.stack([party.w, party.w * party["target"]], axis=-1)
    total: Array = (added if bounds is None else whole(added, bound_in(bounds, ""))).sum(-2)
    return total


@local(additive=True, stackable=True, holds=BITS)
def gradient_histogram(
    trees: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    loss: Loss,
    bounds: Bounds | None = None,
) -> Array:
    """Add up derivatives of the records of each open node of the last tree in the bins of each feature.

    Parameters
    ----------
    trees : mapping
        `feature`, `threshold`, `left`, `value`, `roots`, `base` as in `BoostingState`, `round`, the levels of a tree at most,
        and the nodes `open` of the last tree.
    party : Party
        With the columns that `binned` prepares.

    Returns
    -------
    array of shape (cells, 2), with a leading axis for parties where they are stacked
    """
    lead, bins, w = party.w.shape[:-1], party["bins"], party.w.reshape(-1)
    bins = bins.reshape(-1, bins.shape[-1])
    *before, root = trees["roots"]
    score = scores(trees, bins, before)
    g, h, _ = loss_parts(loss, party["target"].reshape(-1).astype(np.float64), _within(score, loss, bounds))
    added = np.stack([w * g, w * (CURVED[loss] * h)], axis=-1)
    if bounds is not None:
        added = whole(added, bound_in(bounds, ""), times=len(sizes))
    slot = slots(descend(trees, bins, np.array([root])), trees["open"], len(trees["feature"]))
    layout = CellLayout.of(every_feature(len(trees["open"]), len(sizes)), sizes)
    found = tally(slot, bins, added.T[:, None], layout, parties=int(np.prod(lead, dtype=int)))
    return found.reshape((*lead, *found.shape[1:]))


def _within(score: Array, loss: Loss, bounds: Bounds | None) -> Array:
    """Scores as derivatives behind noise take them: a number's is within its range."""
    return score if bounds is None or loss == "logistic" else np.clip(score, -1.0, 1.0)


@program(
    "Gradient-boosted trees from sums of histograms of derivatives (Friedman 2001; Chen & Guestrin 2016).",
    name="boosted_trees",
    outcome=results.boosted_outcome,
    watch=results.boosted_watch,
    score=results.boosted_score,
    metric=results.metric,
    most=lambda settings, schema: {"gradient_histogram": settings["trees"] * settings["depth"]},
    case=lambda: Case(load("diabetes").take(range(200)), {"trees": 3, "depth": 2}),
)
def grow_boosted(
    federation: Federation,
    *,
    trees: int = 50,
    depth: int = 3,
    n_bins: int = 32,
    log: Sequence[str] = (),
    learning_rate: float = 0.3,
    regularisation: float = 1.0,
    min_curvature: float = 2.5,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: BoostingState | None = None,
) -> Iterator[BoostingState]:
    """Boost, one tree in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature. The target is binary, a category of two levels, of which
        the second counts as 1, or a number.
    trees, depth : int
        How many trees, and levels of each: trees x depth + 1 questions to the parties at most.
    n_bins : int
        Bins of a number (see `Bins`).
    log : sequence of str
        Features with bins of equal widths of a logarithm (see `Bins.of`).
    learning_rate : float
        What leaves are multiplied by; in (0, 1].
    regularisation : float
        Added to the second derivatives of a leaf, and to those of a split's children.
    min_curvature : float
        Sum of second derivatives that every leaf must have; above zero. A record has 1/4 at most (a squared loss 1), so a leaf
        has at least 4 times as many records (as many). Small counts are held back by that as in `grow`, with the same residue,
        and between trees, too, whose nodes show sums over nearly the same records.
    min_gain : float
        A split is made where its gain is above this.
    features, target : optional
        The columns with these roles by default.
    epsilon, delta : float, optional
        A budget for all questions (see `hedgerow.privacy.shares`): 5 percent of it for the base score.
    noise_at : {"server", "aggregators", "shares", "party"}
        Where its noise is added.
    least : int
        For shares of noise: as many parties make the whole.
    start : BoostingState, optional
        Continue from this state.

    Yields
    ------
    BoostingState
        After each tree.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        Before any party is asked; see `Bins.of`.
    UnboundedSum (HR-210)
        The channel adds noise, and target or weights declare no range.
    BudgetInvalid (HR-214)
        The channel's noise is on whole numbers.
    """
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    plan = BoostingPlan(trees, depth, learning_rate, regularisation, min_curvature, min_gain)
    yield from _boosted(federation, bins, plan, BudgetShares(epsilon, delta, noise_at, least), start)


@dataclass(frozen=True)
class BoostingPlan:
    """Settings of boosting, checked; fields are parameters of `grow_boosted`."""

    trees: int = 50
    depth: int = 3
    learning_rate: float = 0.3
    regularisation: float = 1.0
    min_curvature: float = 2.5
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        lawful = self.trees >= 1 and self.depth >= 1 and 0 < self.learning_rate <= 1
        if not (lawful and self.regularisation >= 0 and self.min_curvature > 0):
            raise SettingsInvalid(
                f"{self} cannot be boosted by.",
                remedy="trees and depth of 1 or more, a learning rate in (0, 1], regularisation of zero or more, min_curvature "
                "above zero.",
            )


def loss_of(bins: Bins) -> Loss:
    """The loss that fits a target.

    Raises SettingsInvalid (HR-511) where the target has more than two classes.
    """
    if len(bins.classes) > 2:
        raise SettingsInvalid(
            f"the target {bins.target.name!r} has {len(bins.classes)} classes, and boosting is for two, or for a number.",
            remedy="Take random_forest or decision_tree, or a target that is 1 for one class.",
        )
    return "logistic" if bins.classes else "squared"


def gradient_bound(federation: Federation, bins: Bins) -> Bound | None:
    """How far one record moves a level's histogram; None where target or weights declare no range."""
    if bins.bound is None or bins.heaviest is None:
        return None
    loss = loss_of(bins)
    return ball(federation, len(bins.features), bins.heaviest, SQUARES[loss], MOST[loss])


def _boosted(
    federation: Federation, bins: Bins, plan: BoostingPlan, budget: BudgetShares, start: BoostingState | None
) -> Iterator[BoostingState]:
    """The trees after each round."""
    loss, names = loss_of(bins), [column.name for column in bins.features]
    refuse_whole_noise(federation, "derivatives")
    parts = {"base": Share(BASE), "levels": Share(1 - BASE, plan.trees * plan.depth)}
    known = complete_cases(federation, [*names, bins.target.name], count=budget.epsilon is None)
    handles = budget.handles(known, parts, begins=start is None)
    asked = {name: handle.prepare(binned, bins=bins) for name, handle in handles.items()}
    if start is None:
        bound = None if bins.bound is None or bins.heaviest is None else ball(asked["base"], 1, bins.heaviest, 2, 2)
        start = _nothing(_base(asked["base"].sum(target_total, bound=bound), loss, bins))
    state = start
    while state.round < plan.trees:
        state = _one_more(asked["levels"], state, bins, plan, loss)
        yield state


def _base(total: Array, loss: Loss, bins: Bins) -> float:
    """The base score of records and their sum of targets."""
    mean = total[1] / max(total[0], 1.0)
    if loss == "logistic":
        return float(scipy.special.logit(np.clip(mean, FEWEST, 1 - FEWEST)))
    return float(mean if bins.bound is None else np.clip(mean, -1.0, 1.0))


def _nothing(base: float) -> BoostingState:
    none, no_number = np.zeros(0, np.int64), np.zeros(0)
    return BoostingState(0, base, none, none, none, none, no_number, no_number, np.zeros((0, 1)))


def _one_more(asked: Federation, state: BoostingState, bins: Bins, plan: BoostingPlan, loss: Loss) -> BoostingState:
    """Grow one more tree."""
    root = len(state.feature)
    nodes = TreeState(
        round=0,
        feature=np.append(state.feature, LEAF),
        threshold=np.append(state.threshold, 0),
        left=np.append(state.left, 0),
        gain=np.append(state.gain, 0.0),
        records=np.append(state.records, 0.0),
        value=np.append(state.value, np.zeros((1, 1)), axis=0),
        open=np.array([root]),
    )
    roots, count = np.append(state.roots, root), partial(gradient_histogram, sizes=bins.sizes, loss=loss)
    while nodes.round < plan.depth and len(nodes.open):
        broadcast = {name: getattr(nodes, name) for name in ("feature", "threshold", "left", "value", "open")}
        broadcast |= {"roots": roots, "base": np.asarray(state.base), "round": np.asarray(plan.depth)}
        flat = asked.sum(count, broadcast, bound=gradient_bound(asked, bins))
        nodes = _level(nodes, flat / np.array([1.0, CURVED[loss]]), bins, plan)
    grown = {name: getattr(nodes, name) for name in ("feature", "threshold", "left", "gain", "records", "value")}
    return replace(state, round=state.round + 1, roots=roots, **grown)


def _level(nodes: TreeState, flat: Array, bins: Bins, plan: BoostingPlan) -> TreeState:
    """Add a level to the last tree."""
    chosen = every_feature(len(nodes.open), len(bins.features))
    found = padded(flat, chosen, bins.sizes)

    def valued(cells: Array) -> tuple[Array, Array]:
        curvature = np.maximum(cells[..., 1], plan.min_curvature)  # a public floor, against noise
        step = newton_step(cells[..., 0], curvature, plan.regularisation)
        return np.maximum(cells[..., 1], 0.0), (plan.learning_rate * step)[..., None]

    def scored(cells: Array) -> Array:
        return newton_score(cells[..., 0], np.maximum(cells[..., 1], plan.min_curvature), plan.regularisation)

    records, value = nodes.records.copy(), nodes.value.copy()
    records[nodes.open], value[nodes.open] = valued(found.sum(2).mean(1))
    splits = splits_by(scored, lambda cells: cells[..., 1], found, chosen, bins.sizes, least=plan.min_curvature)
    return split_nodes(
        replace(nodes, records=records, value=value),
        splits,
        splits.gain,
        splits.gain > plan.min_gain,
        valued=valued,
        opens=lambda records, value: records >= 2 * plan.min_curvature,
    )


def boosted_trees(
    federation: Federation,
    *,
    trees: int = 50,
    depth: int = 3,
    n_bins: int = 32,
    log: Sequence[str] = (),
    learning_rate: float = 0.3,
    regularisation: float = 1.0,
    min_curvature: float = 2.5,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    bins: Bins | None = None,
) -> BoostedForest:
    """Boost to the end.

    Parameters
    ----------
    trees, depth, n_bins, log, learning_rate, regularisation, min_curvature, min_gain, features, target, epsilon, delta, \
noise_at, least
        As `hedgerow.trees.boosted.grow_boosted`.
    bins : Bins, optional
        In place of those that `n_bins`, `log`, `features` and `target` make, such as `quantile_bins`.

    Returns
    -------
    BoostedForest

    Raises
    ------
    As `grow_boosted`.

    Warns
    -----
    HedgerowWarning
        An epsilon is given: on Adult at epsilon 1 these defaults are right for 77 percent, `additive` for 85.6.
    """
    if epsilon is not None:
        warnings.warn(
            f"each level of each tree pays for its splits out of epsilon={epsilon:g}; "
            "hr.trees.additive, or random_trees where columns interact, have been more accurate for the same budget.",
            HedgerowWarning,
            stacklevel=2,
        )
    bins = bins or Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    plan = BoostingPlan(trees, depth, learning_rate, regularisation, min_curvature, min_gain)
    asked_before = len(federation.ledger)
    *_, state = _boosted(federation, bins, plan, BudgetShares(epsilon, delta, noise_at, least), None)
    made: BoostedForest = charged(BoostedForest(state, bins, depth), federation, asked_before, delta)
    return made
