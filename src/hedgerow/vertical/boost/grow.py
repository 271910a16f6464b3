"""Gradient-boosted trees across columns, level by level, without ciphertexts.

    each party   cuts its own columns into bins, by its own quantiles, and keeps the edges
    for each tree, for each level:
        cross        H = onehot(bins)' [g h 1 of each node]       sums over people, released
        hub          for every node the (party, column, bin) with the largest gain
                         gain = (G_l^2/(H_l + r) + G_r^2/(H_r + r) - G^2/(H + r)) / 2
        send         the cut's owner tells the holder of labels, sealed, who goes left
    leaves           w = -eta G / (H + r)

The hub sees  : histograms by (party, column number, bin number), whose edges only the owner of the column knows.
The holder of labels sees : for each cut, on which side of a threshold that it does not know each person is. That is a bit
                per person and cut about another party's column, as `aligned.saw` says.
Other parties see : which of their cuts were chosen.
Releases      : one histogram a level, bounded per record; with `rows` in the ledger for the sides, which a budget refuses.
Source        : Chen & Guestrin 2016 (gain, leaves), Cheng et al. 2021, SecureBoost (who keeps thresholds). Differs: histograms
                are shared products in place of Paillier ciphertexts, and the holder of labels sees none; nodes of fewer than
                `least` people are not made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Column
from hedgerow.errors import CohortTooSmall, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.trees.second_order import Loss, newton_score
from hedgerow.vertical.aligned import Aligned

from . import locals as at_party
from .results import BoostedTree, BoostedTrees, BoostState, Cut


def boosted_trees(
    aligned: Aligned,
    label: str,
    *,
    trees: int = 20,
    depth: int = 3,
    bins: int = 32,
    learning_rate: float = 0.3,
    regularisation: float = 1.0,
    loss: Loss | None = None,
    columns: Collection[str] | None = None,
    holdout: float = 0.0,
    seed: int = 0,
) -> BoostedTrees:
    """Grow boosted trees to the end.

    Parameters
    ----------
    aligned : Aligned
    label, trees, depth, bins, learning_rate, regularisation, loss, columns, holdout, seed
        As of `grow_trees`.

    Returns
    -------
    BoostedTrees

    Raises
    ------
    As `grow_trees`.
    """
    chosen = _Settings(
        aligned,
        label,
        trees=trees,
        depth=depth,
        bins=bins,
        learning_rate=learning_rate,
        regularisation=regularisation,
        loss=loss,
        columns=columns,
        holdout=holdout,
        seed=seed,
    )
    state = None
    losses = []
    for state in _states(chosen):
        losses.append(state.loss)
    assert state is not None  # at least one tree, by _check
    made = BoostedTrees(
        label,
        chosen.holder,
        chosen.loss,
        state.base,
        state.trees,
        tuple(losses),
        dict(chosen.columns),
        chosen.holdout,
        chosen.seed,
        chosen.bins,
    )
    return made if not chosen.holdout else replace(made, measured=chosen.measured(held_out=True))


def grow_trees(
    aligned: Aligned,
    label: str,
    *,
    trees: int = 20,
    depth: int = 3,
    bins: int = 32,
    learning_rate: float = 0.3,
    regularisation: float = 1.0,
    loss: Loss | None = None,
    columns: Collection[str] | None = None,
    holdout: float = 0.0,
    seed: int = 0,
) -> Iterator[BoostState]:
    """Grow boosted trees, and yield a state after each.

    Parameters
    ----------
    aligned : Aligned
    label : str
        The column to predict: binary, a category of two levels, of which the second counts as 1, or a number.
    trees, depth : int
        How many trees, and how many questions one asks of a person at most.
    bins : int
        Bins of a column, at most 256. Those of fewer people than the alignment's `least` are joined with neighbours.
    learning_rate : float
        What a tree's leaves are multiplied by.
    regularisation : float
        Added to the second derivatives of a leaf.
    loss : {"logistic", "squared"}, optional
        By the label's declaration if not given.
    columns : collection of str, optional
        Columns that cuts may ask; all but the label.
    holdout : float
        Share of people who are left out of training, by `seed`.
    seed : int
        Who is left out follows from it, and all parties know it.

    Yields
    ------
    BoostState

    Raises
    ------
    UnboundedSum (HR-210)
        The label is a number without a declared range.
    MissingColumn (HR-403), SettingsInvalid (HR-511), CohortTooSmall (HR-240), UnlawfulChannel (HR-211)
        Before any party is asked.
    BudgetExhausted (HR-213)
        There is a budget: who goes left is told of single people.
    """
    chosen = _Settings(
        aligned,
        label,
        trees=trees,
        depth=depth,
        bins=bins,
        learning_rate=learning_rate,
        regularisation=regularisation,
        loss=loss,
        columns=columns,
        holdout=holdout,
        seed=seed,
    )
    yield from _states(chosen)


def _states(chosen: _Settings) -> Iterator[BoostState]:
    """The state after each tree."""
    chosen.aligned.each(partial(at_party.cut_bins, columns=chosen.columns, n_bins=chosen.bins, least=chosen.least))
    _, _, sum_of_labels, people = chosen.totals_at_start()
    mean = sum_of_labels / people
    base = float(mean if chosen.loss == "squared" else np.log(mean / (1 - mean)))
    chosen.begin(base)
    grown: list[BoostedTree] = []
    for number in range(1, chosen.trees + 1):
        loss = chosen.measured(held_out=False)["loss"]
        grown.append(chosen.grown())
        yield BoostState(number, tuple(grown), base, loss)


class _Settings:
    """What a run of boosting needs from level to level."""

    def __init__(
        self,
        aligned: Aligned,
        label: str,
        *,
        trees: int,
        depth: int,
        bins: int,
        learning_rate: float,
        regularisation: float,
        loss: Loss | None,
        columns: Collection[str] | None,
        holdout: float,
        seed: int,
    ) -> None:
        self.aligned, self.label, self.holder = aligned, label, aligned.owner(label)
        declared = aligned.schemas[self.holder][label]
        self.loss: Loss = loss or ("logistic" if declared.kind in ("binary", "category") else "squared")
        self.trees, self.depth, self.bins = trees, depth, bins
        self.learning_rate, self.regularisation, self.holdout, self.seed = learning_rate, regularisation, holdout, seed
        wanted = {name: aligned.owner(name) for name in columns} if columns is not None else None
        self.columns: at_party.Columns = tuple(
            (party, tuple(name for name in schema.names if name != label and (wanted is None or name in wanted)))
            for party, schema in aligned.schemas.items()
        )
        self._check()
        self._check_label(declared)
        self._about: dict[str, Any] = {"holder": self.holder, "label": label}
        self.scale = 1.0 if self.loss == "logistic" else _scale(label, declared.absolute)
        self._loss = {"loss": self.loss, "scale": self.scale}

    def _check(self) -> None:
        wrong = [
            f"{name}={value!r}"
            for name, value, lawful in (
                ("trees", self.trees, self.trees >= 1),
                ("depth", self.depth, 1 <= self.depth <= 10),
                ("bins", self.bins, 2 <= self.bins <= 256),
                ("learning_rate", self.learning_rate, 0 < self.learning_rate <= 1),
                ("regularisation", self.regularisation, self.regularisation >= 0),
                ("holdout", self.holdout, 0 <= self.holdout < 1),
            )
            if not lawful
        ]
        if wrong or self.loss not in ("logistic", "squared") or not any(names for _, names in self.columns):
            raise SettingsInvalid(
                f"{', '.join(wrong) or self.loss!r} cannot be boosted by.",
                remedy="trees and depth of at least 1, 2 to 256 bins, rates in (0, 1], holdout in [0, 1), and columns to cut.",
            )
        if self.aligned.n * min(1 - self.holdout, self.holdout or 1) < self.least:
            raise CohortTooSmall(
                f"a part of {self.aligned.n} people with holdout={self.holdout} has fewer than {self.least}.",
                remedy="Leave out others.",
            )

    def _check_label(self, declared: Column) -> None:
        """Refuse labels that no loss is for, and noise, which would not cover what trees tell of people."""
        if declared.kind == "category" and len(declared.levels) != 2:
            raise SettingsInvalid(
                f"label {self.label!r} is a category of {len(declared.levels)} levels, and trees are grown for two classes or "
                "a number.",
                remedy="Make a column that is 1 for one level and 0 for the others, at the party that holds it.",
            )
        if self.loss == "logistic" and declared.kind not in ("binary", "category"):
            raise SettingsInvalid(
                f"label {self.label!r} is declared {declared.kind!r}, and loss='logistic' takes labels of 0 and 1.",
                remedy="Declare it binary, or take loss='squared'.",
            )
        if self.aligned.protection.noisy:
            raise UnlawfulChannel(
                "boosted trees were asked for through a channel that adds noise: trees tell sides of single people, and noise "
                "in histograms does not cover them.",
                remedy="Leave the mechanism out, or fit by products alone: means, tables and linear regression go with noise.",
            )

    @property
    def least(self) -> int:
        """Fewest people of a bin, of a node and of a part."""
        return max(2, self.aligned.least)

    # ---- sums -------------------------------------------------------------------------------------------------------
    def totals_at_start(self) -> Array:
        """Loss, right guesses, sum of labels and number of the training people, at a score of zero."""
        self.begin(0.0)
        return self._totals(held_out=False)

    def begin(self, base: float) -> None:
        """Put everybody at the root, with the base score."""
        self.aligned.each(partial(at_party.begin, **self._about, base=base, holdout=self.holdout, seed=self.seed))

    def measured(self, *, held_out: bool) -> dict[str, float]:
        """Mean loss, and for classes accuracy, of the people in training, or of those left out.

        The accuracy is NaN where few people are guessed right, or wrong, and where nobody is guessed right.
        """
        loss, right, _, people = self._totals(held_out=held_out)
        found = {"loss": float(loss / people)}
        return found | ({"accuracy": float(right / people) if right else float("nan")} if self.loss == "logistic" else {})

    def _totals(self, *, held_out: bool) -> Array:
        right = partial(at_party.totals, **self._about, **self._loss, held_out=held_out, least=self.least)
        units = np.array([self.scale**2, 1.0, self.scale, 1.0])
        found: Array = self.aligned.cross(partial(at_party.one, holder=self.holder), right)[0] * units
        return found

    # ---- one tree ---------------------------------------------------------------------------------------------------
    def grown(self) -> BoostedTree:
        """Grow one tree, and add what its leaves say to scores."""
        open_nodes, cuts, sums = [1], list[Cut](), dict[int, Array]()
        for _ in range(self.depth):
            made = self._level(open_nodes, sums)
            if not made:
                break
            self._split(made)
            cuts += made
            open_nodes = [child for cut in made for child in (2 * cut.node, 2 * cut.node + 1)]
        split = {cut.node for cut in cuts}
        rate, r = self.learning_rate, self.regularisation
        leaves = {node: float(-rate * s[0] / (s[1] + r)) for node, s in sums.items() if node not in split}
        broadcast = {"node": np.array(list(leaves), float), "value": np.array(list(leaves.values()))}
        self.aligned.each(partial(at_party.add_leaves, holder=self.holder), broadcast)
        return BoostedTree(tuple(cuts), leaves)

    def _level(self, nodes: list[int], sums: dict[int, Array]) -> list[Cut]:
        """The best cut of every node that one is worth making for; `sums` learns what nodes and children hold."""
        left = partial(at_party.in_bins, columns=self.columns, n_bins=self.bins)
        right = partial(at_party.derivatives, **self._about, **self._loss, nodes=tuple(nodes))
        histogram = self.aligned.cross(left, right, pairs=False).reshape(-1, self.bins, len(nodes), 3) * np.array(
            [self.scale, 1.0, 1.0]
        )
        places = [(party, k) for party, names in self.columns for k in range(len(names))]
        found = []
        for at, node in enumerate(nodes):
            below = histogram[:, :, at].cumsum(1)
            whole = below[:, -1:]
            sums[node] = whole[0, 0]
            gain = self._gains(below[:, :-1], whole)
            column, bin = np.unravel_index(int(gain.argmax()), gain.shape)
            if gain[column, bin] > 1e-9:
                found.append(Cut(node, *places[column], int(bin), float(gain[column, bin])))
                sums[2 * node], sums[2 * node + 1] = below[column, bin], (whole[0, 0] - below[column, bin])
        return found

    def _gains(self, left: Array, whole: Array) -> Array:
        """The gain of every cut, zero where a child would have fewer than `least` people."""
        right, r = whole - left, self.regularisation
        parts = [newton_score(part[..., 0], part[..., 1], r) for part in (left, right, whole)]
        enough = np.minimum(left[..., 2], right[..., 2]) >= self.least - 0.5
        gains: Array = np.where(enough, (parts[0] + parts[1] - parts[2]) / 2, 0.0)
        return gains

    def _split(self, cuts: list[Cut]) -> None:
        """Let owners of the cuts tell the holder of labels who goes left."""
        asked = tuple((cut.party, cut.column, cut.bin) for cut in cuts)
        nodes = tuple(cut.node for cut in cuts)
        owners = sorted({cut.party for cut in cuts})
        self.aligned.send(
            partial(at_party.sides, cuts=asked), parties=owners, to=self.holder, then=partial(at_party.move, nodes=nodes)
        )


def _scale(label: str, largest: float | None) -> float:
    """The power of two that brings a label's derivatives to about one."""
    if largest is None:
        raise UnboundedSum(
            f"{label} is a number without a declared range, and products between parties have a fixed point.",
            remedy=f"Declare it: table.declare({label}=(0, 100)).",
        )
    return 2.0 ** math.ceil(math.log2(2 * max(largest, 1e-300)))
