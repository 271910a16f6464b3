"""Random forests, all trees of which grow in lock step: one question for a level of every tree.

    server:  B roots
             for each level:
                 m features      drawn for each open node, from a public seed
                 trees           -> parties                                            broadcast
                 H               <- for each open node, chosen feature and bin:        local
                                    sum of k w, by class; or sums of (k w, k w y)
                                    k ~ Poisson(1) for each record and tree, from the seed
                 H               <- sum over parties                                   sum, server
                 trees           <- each open node split where impurity falls most

A forest of depth d asks d questions, however many trees it has. With the same draws and features each tree is that of the
pooled records.

Releases : H, once per level, of shape (cells of the open nodes, classes), or (.., 2) for a regression.
State    : none at the parties; draws follow from the seed (see `bootstrap`).
Unit     : record. It lies in m bins of one node of each of B trees: its l2 length is sqrt(B m), or sqrt(2 B m), its l1 length
           B m, or 2 B m, times the heaviest weight. Draws are 20 at most and make that 20 times as long, which is enough for
           the range of masked sums, and too much for noise: behind noise there is no bootstrap. Trees share a budget, so few
           trees, or those of `private_forest`, are better.
Numbers  : many trees show more exact numbers than parties hold values, from which records can be solved for, masked totals or
           not; a study refuses that unless its `[protection] disclosure` allows it (HR-216).
Source   : Breiman 2001. Differs: Poisson weights, bins with public cut points, trees of one depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import complete_cases, load
from hedgerow.display import cell
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.privacy.shares import BudgetShares, Share

from . import results
from .bins import Bins, binned
from .bootstrap import MOST_DRAWS, draws, subsets
from .growing import broadcast_of, count_open, grown
from .histograms import CellLayout, padded
from .noise import ball, refuse_whole_noise
from .tree import LEAF, DecisionTree, TreeState, descend, numbered, owners, subtree


@local
def drawn_histogram(
    forest: Mapping[str, Array], party: Party, rng: Any, *, sizes: tuple[int, ...], n_classes: int, trees: int, seed: int
) -> Array:
    """Count the records of each open node of each tree, as often as the tree draws them: shape (cells, n_classes or 2).

    The broadcast is that of `growing.broadcast_of`, with the features `chosen` (open nodes, m) besides.
    """
    drawn = draws(seed, party.id, len(party.w), trees)
    layout = CellLayout.of(forest["chosen"], sizes)
    return count_open(forest, party, layout, n_classes=n_classes, trees=trees, drawn=drawn)


@local(additive=True, stackable=True, holds=True)
def whole_histogram(
    forest: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    n_classes: int,
    trees: int,
    bounds: Bounds | None = None,
) -> Array:
    """The same where every tree counts every record once; a record is held to `bounds` behind noise."""
    layout = CellLayout.of(forest["chosen"], sizes)
    return count_open(forest, party, layout, n_classes=n_classes, trees=trees, bounds=bounds)


@program(
    "A random forest from sums of histograms, all trees level by level (Breiman 2001).",
    name="random_forest",
    outcome=results.forest_outcome,
    watch=results.forest_watch,
    score=results.forest_score,
    metric=results.metric,
    most=lambda settings, schema: {"whole_histogram": settings["depth"]},
    case=lambda: Case(load("diabetes").take(range(200)), {"trees": 5, "depth": 2, "bootstrap": False}),
)
def grow_forest(
    federation: Federation,
    *,
    trees: int = 100,
    depth: int = 6,
    n_bins: int = 32,
    log: Sequence[str] = (),
    features_per_node: int | None = None,
    bootstrap: bool = True,
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    seed: int = 0,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: TreeState | None = None,
) -> Iterator[TreeState]:
    """Grow a forest, one level of all trees in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature.
    trees : int
        How many.
    depth : int
        Levels of splits, and so questions to the parties.
    n_bins : int
        Bins of a number (see `Bins`).
    log : sequence of str
        Features with bins of equal widths of a logarithm (see `Bins.of`).
    features_per_node : int, optional
        Features that are drawn for each node; by default the root of their number, rounded down, or a third of it for a
        regression.
    bootstrap : bool
        Whether each tree draws records; without noise only.
    min_records : float
        Weighted records, as a tree draws them, that every leaf must have; above zero. See `grow` for what that holds back, and
        what it does not: records of a class in a leaf may be few, and the trees of a forest show counts of nearly the same
        records, whose differences may be small.
    min_gain : float
        A split is made where its gain would be above this.
    features, target : optional
        The columns with these roles by default.
    seed : int
        Draws of records and features follow from it; it is public.
    epsilon, delta : float, optional
        A budget for all levels (see `hedgerow.privacy.shares`).
    noise_at : {"server", "aggregators", "shares", "party"}
        Where its noise is added.
    least : int
        For shares of noise: as many parties make the whole.
    start : TreeState, optional
        Continue from this state.

    Yields
    ------
    TreeState
        Of all trees, after each level: the first nodes are their roots. Fewer than `depth` when no node can be split any more.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        Before any party is asked; see `Bins.of`.
    UnlawfulChannel (HR-211)
        A bootstrap behind noise.
    UnboundedSum (HR-210)
        The channel adds noise, and target or weights declare no range.
    """
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    yield from _grown(
        federation,
        bins,
        ForestPlan(trees, depth, features_per_node, bootstrap, min_records, min_gain, seed),
        BudgetShares(epsilon, delta, noise_at, least),
        start,
    )


@dataclass(frozen=True)
class ForestPlan:
    """Settings of a forest, checked; fields are parameters of `grow_forest`."""

    trees: int = 100
    depth: int = 6
    features_per_node: int | None = None
    bootstrap: bool = True
    min_records: float = 10
    min_gain: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trees < 1 or self.depth < 1 or self.min_records <= 0 or self.seed < 0:
            raise SettingsInvalid(
                f"{self.trees!r} trees of depth {self.depth!r} with at least {self.min_records!r} records in a leaf, from the "
                f"seed {self.seed!r}, cannot be grown.",
                remedy="Give trees and depth of 1 or more, min_records above zero and a seed of zero or more.",
            )

    def drawn_features(self, bins: Bins) -> int:
        """Features of each node."""
        n = len(bins.features)
        size = self.features_per_node
        if size is None:
            return max(1, int(np.sqrt(n)) if bins.classes else n // 3)
        if not 1 <= size <= n:
            raise SettingsInvalid(f"features_per_node={size!r} of {n} features.", remedy="Give 1 or more, or leave it out.")
        return size

    def bound(self, federation: Federation, bins: Bins) -> Bound | None:
        """How far one record moves a level of all trees: it lies in m bins of a node of each, as often as it is drawn."""
        if bins.bound is None or bins.heaviest is None:
            return None
        heaviest = bins.heaviest * (MOST_DRAWS if self.bootstrap else 1)
        most = 1 if bins.classes else 2
        return ball(federation, self.trees * self.drawn_features(bins), heaviest, most, most)


def _grown(
    federation: Federation, bins: Bins, plan: ForestPlan, budget: BudgetShares, start: TreeState | None
) -> Iterator[TreeState]:
    """The forest after each level."""
    m = plan.drawn_features(bins)
    if plan.bootstrap and (federation.protection.noisy or budget.epsilon is not None):
        raise UnlawfulChannel(
            f"a bootstrap of {plan.trees} trees behind noise: a tree may draw a record {MOST_DRAWS} times, and noise would "
            "be as much larger.",
            remedy="Give bootstrap=False and few trees; or take private_forest, whose trees ask for their leaves alone.",
        )
    if not bins.classes:
        refuse_whole_noise(federation, "sums of a number")
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=budget.epsilon is None)
    asked = budget.handles(federation, {"levels": Share(1.0, plan.depth)}, begins=start is None)["levels"].prepare(
        binned, bins=bins
    )
    counting = {"sizes": bins.sizes, "n_classes": len(bins.classes), "trees": plan.trees}
    count = partial(drawn_histogram, **counting, seed=plan.seed) if plan.bootstrap else partial(whole_histogram, **counting)
    state = start or TreeState.root(bins, plan.trees)
    roots = np.arange(plan.trees)
    while state.round < plan.depth and len(state.open):
        chosen = subsets(plan.seed, state.round, len(state.open), len(bins.features), m)
        broadcast = broadcast_of(state) | {"chosen": chosen}
        flat = asked.sum(count, broadcast, bound=plan.bound(asked, bins))
        root = owners(vars(state), roots, bins.sizes)[state.open]
        found = padded(flat, chosen, bins.sizes)
        state = grown(state, found, bins, min_records=plan.min_records, min_gain=plan.min_gain, chosen=chosen, root=root)
        yield state


def random_forest(
    federation: Federation,
    *,
    trees: int = 100,
    depth: int = 6,
    n_bins: int = 32,
    log: Sequence[str] = (),
    features_per_node: int | None = None,
    bootstrap: bool = True,
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    seed: int = 0,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    bins: Bins | None = None,
) -> Forest:
    """Grow a random forest to its end.

    Parameters
    ----------
    trees, depth, n_bins, log, features_per_node, bootstrap, min_records, min_gain, features, target, seed, epsilon, delta, \
noise_at, least
        As `hedgerow.trees.forest.grow_forest`.
    bins : Bins, optional
        In place of those that `n_bins`, `log`, `features` and `target` make, such as `quantile_bins`.

    Returns
    -------
    Forest

    Raises
    ------
    As `grow_forest`.
    """
    bins = bins or Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    plan = ForestPlan(trees, depth, features_per_node, bootstrap, min_records, min_gain, seed)
    *_, state = _grown(federation, bins, plan, BudgetShares(epsilon, delta, noise_at, least), None)
    return Forest(state, bins, trees)


@dataclass(frozen=True, repr=False)
class Forest:
    """A grown forest.

    Parameters
    ----------
    state : TreeState
        The last state of `grow_forest`.
    bins : Bins
    trees : int
        How many; their roots are the first nodes.
    """

    state: TreeState
    bins: Bins
    trees: int

    def predict(self, data: Any) -> Array:
        """Return the class of the largest mean probability (0 or 1 for a binary target, else the level's word) or the mean
        of the trees' means: shape (n,). Data and errors are those of `DecisionTree.predict`."""
        found = self.probabilities(data)
        if not self.bins.classes:
            return found[:, 0]
        best = found.argmax(-1)
        named: Array = best.astype(float) if self.bins.target.kind == "binary" else np.array(self.bins.classes)[best]
        return named

    def probabilities(self, data: Any) -> Array:
        """Return the mean over trees of the probability of each class, shape (n, classes); of a regression of the mean."""
        rows = numbered(self.bins, data)
        total = np.zeros((len(rows), self.state.value.shape[1]))
        for root in range(self.trees):
            total += self.state.value[descend(vars(self.state), rows, np.array([root]))[0]]
        return total / self.trees

    @property
    def importance(self) -> dict[str, float]:
        """Mean over trees that split of the share of each feature in the tree's gain."""
        split, roots = self.state.feature != LEAF, np.arange(self.trees)
        tree, n = owners(vars(self.state), roots, self.bins.sizes)[split], len(self.bins.features)
        cell = tree * n + self.state.feature[split]
        found = np.bincount(cell, self.state.gain[split], self.trees * n).reshape(self.trees, n)
        total = found.sum(1, keepdims=True)
        shares = (found / np.where(total > 0, total, 1.0)).sum(0) / max(1, int((total > 0).sum()))
        return {column.name: float(share) for column, share in zip(self.bins.features, shares, strict=True)}

    def tree(self, number: int) -> DecisionTree:
        """Return one of the trees."""
        if not 0 <= number < self.trees:
            raise SettingsInvalid(f"tree {number!r} of {self.trees}.", remedy="Trees are numbered from zero.")
        return DecisionTree(subtree(self.state, np.arange(self.trees), number, self.bins.sizes), self.bins)

    def to_text(self, tree: int = 0) -> str:
        """Return one of the trees as rules, one line for each node."""
        return self.tree(tree).to_text()

    _repr_html_ = cell

    def __repr__(self) -> str:
        leaves = int((self.state.feature == LEAF).sum())
        return f"Forest({self.bins.target.name!r}, {self.trees} trees, depth {self.state.round}, {leaves} leaves)"
