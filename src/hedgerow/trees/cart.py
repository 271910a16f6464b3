"""CART: a classification or regression tree, grown level by level from histograms.

    server:  tree <- root
             for each level:
                 tree            -> parties                                          broadcast
                 H               <- for each open node, feature and bin:             local
                                    sum of w, by class; or sums of (w, w y)
                 H               <- sum over parties                                 sum, server
                 tree            <- each open node split where impurity falls most

The tree equals that of the pooled records on the same bins. A node is open while it is on the deepest level and has
records for two children, so deep trees ask for few nodes, and every record counts in one node of a level.

Releases : H, once per level, of shape (open nodes, sum of the features' bins, classes), or (.., 2) for a regression.
State    : none at the parties.
Unit     : record; see `Bins.bound`, and `noise.ball` for Laplace noise. Each level is one release, so `depth` of them compose.
Source   : Breiman, Friedman, Olshen & Stone 1984. Differs: bins with public cut points, no surrogate splits, no pruning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.data import complete_cases, load
from hedgerow.errors import SettingsInvalid

from . import results
from .bins import Bins, binned
from .growing import broadcast_of, count_open, grown
from .histograms import CellLayout, every_feature
from .noise import ball, refuse_whole_noise
from .split import by_feature
from .tree import DecisionTree, TreeState


@local(additive=True, stackable=True, holds=True)
def histogram(
    tree: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    n_classes: int,
    bounds: Bounds | None = None,
) -> Array:
    """Count the records of each open node in the bins of each feature.

    Parameters
    ----------
    tree : mapping
        `round`, `feature`, `threshold`, `left` and `open`, as in `TreeState`.
    party : Party
        With the columns that `binned` prepares.
    sizes : tuple of int
        Bins of each feature.
    n_classes : int
        Classes of the target; zero for a regression.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (open nodes, sum(sizes), n_classes), or (open nodes, sum(sizes), 2) of (w, w y)
        With a leading axis for parties where they are stacked.
    """
    layout = CellLayout.of(every_feature(len(tree["open"]), len(sizes)), sizes)
    found = count_open(tree, party, layout, n_classes=n_classes, bounds=bounds)
    return found.reshape((*party.w.shape[:-1], len(tree["open"]), sum(sizes), n_classes or 2))


@program(
    "One decision tree from sums of histograms, level by level (Breiman et al. 1984).",
    name="decision_tree",
    outcome=results.outcome,
    watch=results.watch,
    score=results.score,
    metric=results.metric,
    most=lambda settings, schema: {"histogram": settings["depth"]},
    case=lambda: Case(load("diabetes").take(range(200)), {"depth": 2}),
)
def grow(
    federation: Federation,
    *,
    depth: int,
    n_bins: int = 32,
    log: Sequence[str] = (),
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    start: TreeState | None = None,
) -> Iterator[TreeState]:
    """Grow a tree, one level in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; a regression through a channel that adds noise
        needs the range of the target, too.
    depth : int
        Levels of splits, and so questions to the parties.
    n_bins : int
        Bins of a number (see `Bins`).
    log : sequence of str
        Features with bins of equal widths of a logarithm (see `Bins.of`).
    min_records : float
        Weighted records that every leaf must have; above zero. A split shows both children, so each child and its complement
        in the parent has so many: the records of no node, and no difference of those of two nodes that split one, are fewer.
        What is left: records by class, which follow from a leaf's shares and may be few, one, or none; differences of two trees
        of nearly the same records; and the histograms, whose small counts reach whoever adds up.
    min_gain : float
        A split is made where `TreeState.gain` would be above this.
    features, target : optional
        The columns with these roles by default.
    start : TreeState, optional
        Continue from this state.

    Yields
    ------
    TreeState
        After each level. Fewer than `depth` when no node can be split any more.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        Before any party is asked; see `Bins.of`.
    UnboundedSum (HR-210)
        The channel adds noise, and target or weights declare no range.
    """
    if depth < 1 or min_records <= 0:
        raise SettingsInvalid(
            f"a tree of depth {depth!r} with at least {min_records!r} records in a leaf cannot be grown.",
            remedy="Give a depth of 1 or more and min_records above zero.",
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    if not bins.classes:
        refuse_whole_noise(federation, "sums of a number")
    federation = complete_cases(federation, [*(column.name for column in bins.features), bins.target.name])
    prepared = federation.prepare(binned, bins=bins)
    count = partial(histogram, sizes=bins.sizes, n_classes=len(bins.classes))
    most = 1 if bins.classes else 2
    bound = None if bins.bound is None else ball(prepared, len(bins.features), bins.heaviest or 1.0, most, most)
    state = start or TreeState.root(bins)
    while state.round < depth and len(state.open):
        found = by_feature(prepared.sum(count, broadcast_of(state), bound=bound), bins)
        state = grown(state, found, bins, min_records=min_records, min_gain=min_gain)
        yield state


def decision_tree(
    federation: Federation,
    *,
    depth: int = 4,
    n_bins: int = 32,
    log: Sequence[str] = (),
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
) -> DecisionTree:
    """Grow a decision tree to its end; parameters, releases and errors are those of `grow`."""
    *_, state = grow(
        federation,
        depth=depth,
        n_bins=n_bins,
        log=log,
        min_records=min_records,
        min_gain=min_gain,
        features=features,
        target=target,
    )
    return DecisionTree(state, Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log))
