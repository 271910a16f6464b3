"""ID3: a tree of multiway splits by information gain, from secure counts.

    server:  tree <- root
             for each level:
                 tree            -> parties                                          broadcast
                 S_vi            <- for each open node, unused feature A, value v and class i: sum of w     local
                                    zeros from records that reach no open node
                 S_vi            <- sum over parties                                 sum, server
                 p_i = |S_i| / |S|,   Entropy(S) = - sum_i p_i log2 p_i
                 InfGain(S, A) = Entropy(S) - sum_v |S_v| / |S| Entropy(S_v)
                 tree            <- each open node split by the feature of largest InfGain, a child for each value

A feature is used once on a path; numbers take their bins as values. Every store answers every question, one that is not reached
with zeros, so answering tells nothing.

Small counts are held back: values of fewer than `min_records` records of a node are joined into one group, which has none or at
least `min_records` records in an exact tree; their children are leaves that show the group's shares of classes and no records.
So the records of every node, and of its complement in the parent, are none or at least `min_records`.

What is left: records by class are not held back. A leaf shows its shares of classes beside its records, so a class that one
record of 183 has is told exactly, and so is one that nobody or everybody has. Besides, a value that nobody of a node has is
shown, so are differences of two trees of nearly the same records, and the hub sees the histograms. As van Aarle says, a total
of zero tells that everybody's contribution was zero, masked or not.

Releases : S_vi, once per level, of shape (cells of the open nodes, classes).
State    : none at the parties.
Unit     : record. At level l it lies in one value of each of F - l unused features of one node: l2 length sqrt(F - l), l1
           length F - l, times the heaviest weight, so later levels are asked with less noise.
Source   : van Aarle 2021, section 7.2, equations 7.3 and 7.4; Quinlan 1986. Equation 7.3 prints the entropy without its minus
           sign, by which the largest gain would be the smallest; the sign is mended here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import complete_cases, load
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share

from . import results
from .bins import Bins, binned
from .forest import whole_histogram
from .growing import broadcast_of, node_values
from .histograms import padded
from .noise import ball
from .split import TIE
from .tree import LEAF, MULTIWAY, DecisionTree, TreeState, links


@program(
    "One tree of multiway splits by information gain, from secure counts (Quinlan 1986; van Aarle 2021, 7.2).",
    name="id3",
    outcome=results.outcome,
    watch=results.watch,
    score=results.score,
    metric=results.metric,
    most=lambda settings, schema: {"whole_histogram": min(settings["depth"], len(results.bins_of(settings, schema).features))},
    case=lambda: Case(load("breast_cancer").take(range(200)), {"depth": 2, "n_bins": 3}),
)
def grow_id3(
    federation: Federation,
    *,
    depth: int = 4,
    n_bins: int = 4,
    log: Sequence[str] = (),
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: TreeState | None = None,
) -> Iterator[TreeState]:
    """Grow a tree by ID3, one level in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature, and a target of classes.
    depth : int
        Levels of splits, and so questions to the parties; no more than there are features.
    n_bins : int
        Bins of a number, which are its values.
    log : sequence of str
        Features with bins of equal widths of a logarithm (see `Bins.of`).
    min_records : float
        Weighted records of a child; values with fewer are joined. Above zero; 1 is Quinlan's ID3. Records of a class in a
        child are not held back.
    min_gain : float
        A split is made where its information gain in bits, times the node's share of all records, is above this.
    features, target : optional
        The columns with these roles by default.
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
        After each level; `gain` is in bits times the node's share of all records. Fewer than `depth` when no node can be split.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409)
        Before any party is asked; see `Bins.of`. Also where the target is a number.
    UnboundedSum (HR-210)
        The channel adds noise, and weights declare no range.
    """
    if depth < 1 or min_records <= 0:
        raise SettingsInvalid(
            f"a tree of depth {depth!r} with at least {min_records!r} records in a child cannot be grown.",
            remedy="Give a depth of 1 or more and min_records above zero.",
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    if not bins.classes:
        raise SettingsInvalid(
            f"the target {bins.target.name!r} is a number, and entropy is of classes.", remedy="Take decision_tree."
        )
    n_features, budget = len(bins.features), BudgetShares(epsilon, delta, noise_at, least)
    depth = min(depth, n_features)
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=epsilon is None)
    asked = budget.handles(federation, {"levels": Share(1.0, depth)}, begins=start is None)["levels"].prepare(binned, bins=bins)
    count = partial(whole_histogram, sizes=bins.sizes, n_classes=len(bins.classes), trees=1)
    exact = budget.epsilon is None and not federation.protection.noisy
    state = start or TreeState.root(bins)
    while state.round < depth and len(state.open):
        chosen = unused(state, bins)
        bound = None if bins.heaviest is None else ball(asked, n_features - state.round, bins.heaviest)
        flat = asked.sum(count, broadcast_of(state) | {"chosen": chosen}, bound=bound)
        state = _grown(state, padded(flat, chosen, bins.sizes), chosen, bins, min_records, min_gain, exact=exact)
        yield state


def id3(
    federation: Federation,
    *,
    depth: int = 4,
    n_bins: int = 4,
    log: Sequence[str] = (),
    min_records: float = 10,
    min_gain: float = 0.0,
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> DecisionTree:
    """Grow a tree by ID3 to its end; parameters, releases and errors are those of `grow_id3`."""
    *_, state = grow_id3(
        federation,
        depth=depth,
        n_bins=n_bins,
        log=log,
        min_records=min_records,
        min_gain=min_gain,
        features=features,
        target=target,
        epsilon=epsilon,
        delta=delta,
        noise_at=noise_at,
        least=least,
    )
    return DecisionTree(state, Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log))


def unused(state: TreeState, bins: Bins) -> Array:
    """The features that each open node's path has not used, ascending: shape (open nodes, features - levels)."""
    used = np.zeros((len(state.feature), len(bins.features)), bool)
    for parent, child in links(vars(state), bins.sizes):
        used[child] = used[parent]
        used[child, state.feature[parent]] = True
    return np.nonzero(~used[state.open])[1].reshape(len(state.open), -1)


def negative_entropy(counts: Array) -> Array:
    """Minus n times the entropy in bits of class counts (..., classes): sum of m log2(m / n), zero of nothing."""
    found: Array = (scipy.special.xlogy(counts, counts).sum(-1) - scipy.special.xlogy(n := counts.sum(-1), n)) / np.log(2)
    return found


@dataclass(frozen=True)
class Ways:
    """Multiway splits of k nodes by m features each.

    Attributes
    ----------
    gain : array of shape (k, m)
        Records times information gain in bits; zero where a split is not lawful.
    small : array of bool, shape (k, m, largest)
        Values that are joined.
    joined : array of shape (k, m, classes)
        What they hold together.
    """

    gain: Array
    small: Array
    joined: Array

    @classmethod
    def of(cls, counts: Array, widths: Array, min_records: float, *, exact: bool) -> Ways:
        """Weigh splits of class counts (k, m, largest, classes), where features have `widths` (k, m) values.

        Behind noise a joined group may have few records, since its count is noisy.
        """
        real = np.arange(counts.shape[2]) < widths[..., None]
        small = real & (counts.sum(-1) < min_records)
        joined = (counts * small[..., None]).sum(2)
        together = joined.sum(-1)
        groups = (real & ~small).sum(2) + (together >= min_records)
        lawful = groups >= 2
        if exact:
            lawful &= (together == 0) | (together >= min_records)
        kept = (negative_entropy(counts) * ~small).sum(2)
        gain = kept + negative_entropy(joined) - negative_entropy(counts.sum(2))
        return cls(np.where(lawful, gain, 0.0), small, joined)


def _grown(
    state: TreeState, found: Array, chosen: Array, bins: Bins, min_records: float, min_gain: float, *, exact: bool
) -> TreeState:
    """Add a level."""
    records, value = state.records.copy(), state.value.copy()
    records[state.open], value[state.open] = node_values(found.sum(2).mean(1), bins)
    counts, sizes = np.maximum(found, 0.0), np.array(bins.sizes)
    splits = Ways.of(counts, sizes[chosen], min_records, exact=exact)
    tie = TIE * np.maximum(1.0, np.abs(negative_entropy(counts.sum(2))).max(1))
    best = (splits.gain >= (splits.gain.max(1) - tie)[:, None]).argmax(1)
    at = np.arange(len(best)), best
    gains = np.where(splits.gain[at] > tie, splits.gain[at], 0.0) / max(float(records[0]), min_records)
    made = np.flatnonzero(gains > min_gain)
    parents, by, n_before = state.open[made], chosen[at][made], len(state.feature)
    feature, threshold, left, gain = (x.copy() for x in (state.feature, state.threshold, state.left, state.gain))
    feature[parents], threshold[parents], gain[parents] = by, MULTIWAY, gains[made]
    left[parents] = n_before + np.cumsum(sizes[by]) - sizes[by]
    real = np.arange(counts.shape[2]) < sizes[by][:, None]  # children in order
    cells, small = counts[at][made][real], splits.small[at][made][real]
    joined = splits.joined[at][made]
    few = joined.sum(-1) < min_records
    shared = np.where(few[:, None], value[parents], node_values(joined, bins)[1])
    own_records, own_value = node_values(cells, bins)
    parent_of = np.nonzero(real)[0]
    child_records = np.where(small, 0.0, own_records)
    child_value = np.where(small[:, None], shared[parent_of], own_value)
    is_open = (child_records >= 2 * min_records) & (child_value.max(-1) < 1) & (state.round + 1 < len(bins.features))
    nothing = np.zeros(len(cells), np.int64)
    return replace(
        state,
        round=state.round + 1,
        feature=np.append(feature, nothing + LEAF),
        threshold=np.append(threshold, nothing),
        left=np.append(left, nothing),
        gain=np.append(gain, nothing),
        records=np.append(records, child_records),
        value=np.concatenate([value, child_value]),
        open=n_before + np.flatnonzero(is_open),
    )
