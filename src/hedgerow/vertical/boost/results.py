"""What boosting learns: which party's column a node asks, and what leaves add. Thresholds stay with the column's owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.arrays import Array


@dataclass(frozen=True)
class Cut:
    """A question of a tree.

    Attributes
    ----------
    node : int
        The root is 1; the children of k are 2k (left) and 2k + 1.
    party : str
        Who can answer it.
    column, bin : int
        Records in bins up to `bin` of the party's column number `column` go left; what the bins are the party alone knows.
    gain : float
        By how much the split lowers the second-order loss.
    """

    node: int
    party: str
    column: int
    bin: int
    gain: float


@dataclass(frozen=True)
class BoostedTree:
    """One tree.

    Attributes
    ----------
    cuts : tuple of Cut
    leaves : mapping from node to float
        What a leaf adds to the score.
    """

    cuts: tuple[Cut, ...]
    leaves: dict[int, float]


@dataclass(frozen=True)
class BoostState:
    """After a tree.

    Attributes
    ----------
    round : int
        Trees so far.
    trees : tuple of BoostedTree
    base : float
        The score before the first tree.
    loss : float
        Mean loss on the training people, before the newest tree.
    """

    round: int
    trees: tuple[BoostedTree, ...]
    base: float
    loss: float


@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees whose questions several parties answer.

    Attributes
    ----------
    label, holder : str
        The column that is predicted, and its party.
    loss : {"logistic", "squared"}
    base : float
    trees : tuple of BoostedTree
    losses : tuple of float
        Mean training loss before each tree.
    columns : mapping from party to tuple of str
        Names of the columns that cuts number.
    holdout : float
        Share of the common people who were left out of training.
    seed : int
        By which they were chosen.
    bins : int
        Bins of a column.
    measured : mapping
        Loss, and for classes accuracy, of the people left out; empty where there are none.
    """

    label: str
    holder: str
    loss: str
    base: float
    trees: tuple[BoostedTree, ...]
    losses: tuple[float, ...]
    columns: dict[str, tuple[str, ...]]
    holdout: float
    seed: int
    bins: int
    measured: dict[str, float] = field(default_factory=dict)

    def importance(self) -> dict[str, float]:
        """The summed gain of each column's cuts, the largest first."""
        found: dict[str, float] = {}
        for cut in self.cuts():
            name = self.columns[cut.party][cut.column]
            found[name] = found.get(name, 0.0) + cut.gain
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def cuts(self) -> Iterator[Cut]:
        """The cuts of all trees, in order."""
        for tree in self.trees:
            yield from tree.cuts

    def __str__(self) -> str:
        depth = max((cut.node.bit_length() for cut in self.cuts()), default=0)
        lines = [f"{len(self.trees)} trees of depth {depth} for {self.label} of {self.holder}"]
        lines += [f"  {name:<24} gain {gain:.5g}" for name, gain in self.importance().items()]
        lines += [f"  {name:<24} {value:.4f} on people left out" for name, value in self.measured.items()]
        return "\n".join(lines)


def scores_of(sides: Array, trees: tuple[BoostedTree, ...], base: float) -> Array:
    """Scores of people by the sides that they take at every cut.

    Parameters
    ----------
    sides : boolean array of shape (n, number of cuts)
        Whether a person goes left, for the cuts of all trees in order.
    """
    score, first = np.full(len(sides), base), 0
    for tree in trees:
        at = np.ones(len(sides), np.int64)
        for k, cut in enumerate(tree.cuts, start=first):  # parents come before their children
            here = at == cut.node
            at[here] = 2 * cut.node + ~sides[here, k]
        first += len(tree.cuts)
        values = np.zeros(max(tree.leaves, default=1) + 1)
        values[list(tree.leaves)] = list(tree.leaves.values())
        score += values[at]
    return score
