"""Hybrid forests, corrected: splits by a private choice, leaves by noisy counts, all nodes of a level in one event.

    server:  root of each tree
             for each level, of D:
                 trees    -> parties                                                         broadcast
                 C        <- for each node, feature, bin: counts of the classes              local, then sum
                 scores   <- of each node and split, from C                                  server, `SplitRule`
                 splits   <- one for each node, by the exponential mechanism at s epsilon / D   server, `ManyChoice`
             leaves       <- counts of classes + Laplace noise                               sum, (1 - s) epsilon

A record lies in one node of a level: nodes are disjoint and cost one event (`hedgerow.privacy.choice.many`). With `parts` every
tree has records of its own, by a public hash of a record's bins, and so do trees; else trees add up, and the scores of T trees
move by T times as much together, in T rows that are rounded one by one. No node is stopped where it is empty: all trees have D
levels, and an empty node splits at random, since to be empty is a fact of the data.

    score "max count"   sum over both children of the largest class count     moves by 0 or 1: sensitivity 1, monotone
    score "gini"        n times the decrease of Gini impurity                 moves by less than 2, up or down

Max-count: a record adds 1 to one count of one child, and raises the largest there by 0 or 1. Gini: with p the share of the
record's class in a node of n records and q the sum of squared shares, n (1 - q) grows by n (1 + q - 2 p) / (n + 1), which lies
in [0, 2), since q is between p^2 and p^2 + (1 - p)^2; the gain grows by this number of the parent less that of one child. Both
hold for any number of classes, and for weights in proportion.

Differs from the source, which has no valid scale: its score adds up information gain and gain ratio. One record moves a gain
ratio by its whole range, since the split information that it is divided by tends to zero; n times information gain moves by up
to log2(n + 1) + 1 / ln 2, which needs n, a number that is itself private.

Releases : one split for each node of a level, D times; counts of classes at leaves, of shape (trees, 2^D, classes), once.
State    : none at the parties.
Unit     : record.
Source   : Hou, Li, Meng, Ning & Chen 2019 (hybrid decision trees with exponential and Laplace noise); max-count and Gini
           scores of Friedman & Schuster 2010.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.data import Schema, complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import CheckpointMismatch, SettingsInvalid
from hedgerow.privacy.choice import ManyChoice, choose_many
from hedgerow.privacy.choice.mechanisms import Law
from hedgerow.privacy.shares import BudgetShares, Share, divided

from .bins import Bins, binned
from .charged import charged
from .heaps import HeapTrees, SplitRule, SplitScore
from .noise import ball, deviation, refuse_choices_elsewhere
from .reading import refuse_undeclared, score_of
from .structures import part_of
from .votes import VotingForest, classes_only, shares_of, shown, watched


@displayed
@dataclass(frozen=True)
class HybridState:
    """A hybrid forest after some questions.

    Attributes
    ----------
    round : int
        Levels asked so far; one more once the leaves were.
    feature, cut : array of int, shape (trees, 2^depth - 1)
        The split of each node, the root first, level after level: of a number, bins up to the cut go left; of a category, the
        level of this number does.
    value : array of shape (trees, 2^depth, classes)
        What each leaf says of the classes; zero before leaves were asked.
    """

    round: int
    feature: Array
    cut: Array
    value: Array


@local(additive=True, stackable=True, holds=True)
def node_counts(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    level: int,
    leaves: bool,
    sizes: tuple[int, ...],
    ordered: tuple[bool, ...],
    n_classes: int,
    parts: bool,
    structure: int,
    bounds: Bounds | None = None,
) -> Array:
    """Count the classes of the records of each node of a level: in the bins of each feature, or at leaves altogether.

    Parameters
    ----------
    broadcast : mapping
        `feature` and `cut`, as in `HybridState`.
    party : Party
        With the columns that `binned` prepares.
    level : int
        From 0.
    leaves : bool
        Whether records are counted by class alone.
    sizes, ordered : tuple
        As in `SplitRule`.
    n_classes : int
    parts : bool
        Whether a record is in one tree alone.
    structure : int
        Public seed of the parts.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (trees * nodes, sum(sizes), n_classes), or (trees * nodes, n_classes) at leaves
        With a leading axis for parties where they are stacked.
    """
    bins, lead = party["bins"], party.w.shape[:-1]
    trees = HeapTrees(broadcast["feature"], broadcast["cut"], ordered)
    count, nodes, parties = len(trees.feature), 2**level, int(np.prod(lead, dtype=int))
    places = 1 if leaves else len(sizes)
    w = held(party.w, bounds, times=places * (1 if parts else count))
    whose = part_of(bins, count, structure) if parts else None
    first = nodes * np.arange(parties).reshape((*lead, 1))
    target = party["target"].astype(np.int64)
    widths = (1,) if leaves else sizes
    found = np.empty((parties, count, nodes, sum(widths), n_classes))
    for tree in range(count):
        node = first + trees.descended(tree, bins, level)
        weight = w if whose is None else np.where(whose == tree, w, 0.0)
        start = 0
        for j, size in enumerate(widths):
            cell = ((node * size + (0 if leaves else bins[..., j])) * n_classes + target).ravel()
            counted = np.bincount(cell, weight.ravel(), parties * nodes * size * n_classes)
            found[:, tree, :, start : start + size] = counted.reshape(parties, nodes, size, n_classes)
            start += size
    found = found.reshape((*lead, count * nodes, sum(widths), n_classes))
    return found[..., 0, :] if leaves else found


@program(
    "A forest whose splits are private choices and whose leaves are noisy counts (Hou et al. 2019, corrected).",
    name="hybrid_forest",
    watch=lambda settings, state, schema, test: watched(model_of(settings, state, schema), schema, test),
    score=lambda settings, state, schema, table: score_of(model_of(settings, state, schema), schema, table),
    metric=lambda schema: ("accuracy", True),
    outcome=lambda federation, settings, state: shown(
        model_of(settings, state, federation.schema),
        {"feature": state.feature, "cut": state.cut, "value": state.value},
    ),
    case=lambda: Case(load("breast_cancer").take(range(200)), {"trees": 2, "depth": 2, "n_bins": 4}),
)
def grow_hybrid_forest(
    federation: Federation,
    *,
    trees: int = 4,
    depth: int = 4,
    score: SplitScore = "gini",
    law: Law = "exponential",
    split_share: float = 0.5,
    parts: bool = True,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    structure: int = 0,
    start: HybridState | None = None,
) -> Iterator[HybridState]:
    """Grow a hybrid forest, one level of all trees in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; the target has classes.
    trees, depth : int
        Trees, and levels of splits of each.
    score : {"gini", "max count"}
        Of a split. Looked at on Adult and cardio: by Gini impurity the area under the curve is larger from epsilon 1 on (Adult
        .86 and .74, cardio .78 and .77), and trees gain from more budget; by max count, whose sensitivity is half as large,
        accuracy is higher at epsilon 0.1 and below (Adult 80.1 and 77.4 percent), and on cardio at epsilon 1 as well.
    law : {"exponential", "noisy max", "permute and flip"}
        Of choices; see `hedgerow.privacy.choice.Choice`.
    split_share : float
        Of epsilon, for the splits of all levels; the rest is for the leaves.
    parts : bool
        Whether every tree has records of its own.
    n_bins, log, features, target
        As `hedgerow.trees.additive.additive_model`.
    epsilon, delta : float, optional
        A budget for the program. Delta is spent on the leaves, whose noise is then Gaussian. Without a budget every histogram
        is asked through the channel as it is, and splits have the best score; of equal ones the first is taken.
    noise_at, least
        The server alone: it makes the choices, from exact counts.
    structure : int
        Public seed of the parts.
    start : HybridState, optional
        Continue from this state.

    Yields
    ------
    HybridState
        After each level, and after the leaves.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409), BudgetInvalid (HR-214), SlotFilled (HR-212),
    BudgetExhausted (HR-213)
        Before any party is asked.
    UnboundedSum (HR-210)
        Noise is added, and weights declare no range.
    CheckpointMismatch (HR-103)
        `start` is of other trees, another depth or another target.
    """
    if not 1 <= depth <= 10 or trees < 1 or not 0 < split_share < 1 or score not in ("max count", "gini"):
        raise SettingsInvalid(
            f"{trees!r} trees of depth {depth!r} by {score!r}, with {split_share!r} of the budget for splits.",
            remedy='Give one tree or more, a depth from 1 to 10, a share between 0 and 1, and "max count" or "gini".',
        )
    refuse_choices_elsewhere(noise_at)
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    classes_only(bins)
    refuse_undeclared(bins, noisy=federation.protection.noisy or epsilon is not None)
    plan = BudgetShares(None if epsilon is None else (1 - split_share) * epsilon, delta, noise_at, least)
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=epsilon is None)
    prepared = federation.prepare(binned, bins=bins)
    heaviest, nodes = bins.heaviest or 1.0, 1 if parts else trees
    rule = SplitRule(score, bins.sizes, ordered_of(bins), heaviest, nodes)
    if not rule.candidates:
        raise SettingsInvalid(
            f"none of {[column.name for column in bins.features]} has two bins or levels, and a node could not be split.",
            remedy="Give features of two values or more, or a larger n_bins.",
        )
    candidates = np.array(rule.candidates)
    split_bound = l1(len(bins.features) * nodes * heaviest, "record")
    spent = None if epsilon is None else divided(split_share * epsilon, depth)
    choices = [] if spent is None else depth * [ManyChoice(law, spent, rule=rule).event(split_bound)]
    asked = plan.handles(prepared, {"leaves": Share(1.0)}, besides=choices, begins=start is None)["leaves"]
    ask = partial(
        node_counts, sizes=bins.sizes, ordered=rule.ordered, n_classes=len(bins.classes), parts=parts, structure=structure
    )
    state = _roots(trees, depth, len(bins.classes))
    if start is not None:
        state = _continued(start, like=state)
    while state.round < depth:
        told, level = {"feature": state.feature, "cut": state.cut}, state.round
        count = partial(ask, level=level, leaves=False)
        if spent is None:
            bound = None if bins.bound is None else ball(prepared, len(bins.features) * nodes, heaviest)
            chosen = rule.best(prepared.sum(count, told, bound=bound))
        else:
            chosen = choose_many(prepared, count, told, bound=split_bound, epsilon=spent, law=law, rule=rule)[
                : trees * 2**level
            ]
        state = _grown(state, candidates[chosen].reshape(trees, -1, 2))
        yield state
    if state.round == depth:
        bound = None if bins.bound is None else ball(asked, nodes, heaviest)
        told = {"feature": state.feature, "cut": state.cut}
        sigma = deviation(asked, bound, state.value.size)
        counts = asked.sum(partial(ask, level=depth, leaves=True), told, bound=bound).reshape(state.value.shape)
        yield replace(state, round=depth + 1, value=shares_of(counts, sigma))


def hybrid_forest(
    federation: Federation,
    *,
    trees: int = 4,
    depth: int = 4,
    score: SplitScore = "gini",
    law: Law = "exponential",
    split_share: float = 0.5,
    parts: bool = True,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    structure: int = 0,
) -> VotingForest:
    """Grow a hybrid forest to its end; parameters, releases and errors are those of `grow_hybrid_forest`."""
    bins: dict[str, Any] = {"n_bins": n_bins, "log": log, "features": features, "target": target}
    grown: dict[str, Any] = {"trees": trees, "depth": depth, "score": score, "law": law, "split_share": split_share}
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least}
    asked_before = len(federation.ledger)
    *_, state = grow_hybrid_forest(federation, parts=parts, structure=structure, **bins, **grown, **budget)
    made: VotingForest = charged(model_of(bins, state, federation.schema), federation, asked_before, delta)
    return made


def ordered_of(bins: Bins) -> tuple[bool, ...]:
    """Which features are cut between bins: all but categories of more than two levels."""
    return tuple(column.kind != "category" or len(column.levels) <= 2 for column in bins.features)


def model_of(settings: Mapping[str, Any], state: HybridState, schema: Schema) -> VotingForest:
    """The forest of a state; before leaves were asked they say nothing."""
    bins = Bins.of(schema, **{name: settings[name] for name in ("features", "target", "n_bins", "log")})
    return VotingForest("hybrid", bins, HeapTrees(state.feature, state.cut, ordered_of(bins)), state.value)


def _roots(trees: int, depth: int, n_classes: int) -> HybridState:
    """Trees before anybody was asked."""
    feature, cut = np.zeros((2, trees, 2**depth - 1), np.int64)
    return HybridState(0, feature, cut, np.full((trees, 2**depth, n_classes), 1 / n_classes))


def _continued(start: HybridState, *, like: HybridState) -> HybridState:
    """A state from which a forest goes on, if it is of its trees, depth and classes."""
    if start.feature.shape != like.feature.shape or start.value.shape != like.value.shape:
        raise CheckpointMismatch(
            f"a state of splits {start.feature.shape} and leaves {start.value.shape}, in a forest of splits "
            f"{like.feature.shape} and leaves {like.value.shape}.",
            remedy="Continue with the trees, depth and target with which the state was grown.",
        )
    return start


def _grown(state: HybridState, splits: Array) -> HybridState:
    """Set the splits (trees, nodes, 2) of a level."""
    here = slice(2**state.round - 1, 2 ** (state.round + 1) - 1)
    feature, cut = state.feature.copy(), state.cut.copy()
    feature[:, here], cut[:, here] = splits[..., 0], splits[..., 1]
    return replace(state, round=state.round + 1, feature=feature, cut=cut)
