"""Partitions whose parties differ in labels or in size.

Each scheme sorts records by the label of the target: its levels, or ten quantile bins of a numeric target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import EmptyParty, PartitionInvalid

from .partition import NO_PARTY, Draw, Labels, Partitioner, numbered, require, require_whole, target_of
from .table import Table

MOST_DRAWS = 1000
"""Dirichlet draws before a scheme gives up on its smallest party."""


@dataclass(frozen=True)
class shards(Partitioner):
    """Records sorted by target and cut into equal shards; each party gets some shards at random.

    Parameters
    ----------
    parties : int
    shards_per_party : int
        With 2, most parties hold two labels.
    copies : int
        Shards are given out so many times, so that a small table serves many parties: there are as many different shards
        as parties times `shards_per_party` over `copies`.

    Source
    ------
    McMahan et al., AISTATS 2017, section 3. Differs: shard sizes may differ by one record. Copies: Geyer et al. 2017,
    section 4, whose 1000 and 10 000 parties hold 600 of 60 000 records each.
    """

    parties: int
    shards_per_party: int = 2
    copies: int = 1

    def __post_init__(self) -> None:
        require_whole(self, "parties", "shards_per_party", "copies")
        whole = self.parties * self.shards_per_party % self.copies == 0
        require(self, "copies", whole, f"Choose a divisor of {self.parties * self.shards_per_party}, the shards in all.")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        n_shards = self.parties * self.shards_per_party // self.copies
        target = target_of(self, table)
        if n_shards > len(table):
            raise EmptyParty(
                f"{self} cuts {len(table)} records into {n_shards} shards.", remedy="Ask for fewer parties or shards."
            )
        order = np.argsort(table[target], kind="stable")
        party_of_shard = rng.permutation(np.repeat(np.arange(self.parties), self.shards_per_party))
        dealt = party_of_shard if self.copies == 1 else party_of_shard.reshape(n_shards, self.copies)
        owner = np.empty((len(table), *dealt.shape[1:]), int)
        owner[order] = dealt[np.arange(len(table)) * n_shards // len(table)]
        again = f", each given out {self.copies} times" if self.copies > 1 else ""
        sentence = (
            f"{len(table)} records sorted by {target} and cut into {n_shards} shards{again}; "
            f"each of {self.parties} parties got {self.shards_per_party} at random."
        )
        return Draw(owner, numbered(self.parties), sentence)


@dataclass(frozen=True)
class labels_per_party(Partitioner):
    """Each party holds records of a fixed number of labels, the same for all or one for each party.

    Parties choose their labels in turn, at random among those that the fewest parties hold so far; the records of a label
    are dealt equally to the parties that hold it. With fewer choices than labels, the labels that nobody chose are left
    out, and the sentence says so.

    Parameters
    ----------
    parties : int
    labels : int, or list of int
        Labels at each party; a list gives each party its own number.

    Source
    ------
    Li et al., ICDE 2022, section IV-A, "quantity-based label imbalance". Differs: labels are held by equally many
    parties, up to one. Numbers that add up to the labels that occur give a disjoint split, as in Sempere 2024, section 2.3.
    """

    parties: int
    labels: int | list[int]

    def __post_init__(self) -> None:
        require_whole(self, "parties")
        for count in self._counts:
            require(self, "labels", isinstance(count, int) and count >= 1, "Give whole numbers of at least one.")
        require(
            self, "labels", len(self._counts) == self.parties, f"Give one number, or one for each of {self.parties} parties."
        )

    @property
    def _counts(self) -> list[int]:
        return list(self.labels) if isinstance(self.labels, (list, tuple)) else [self.labels] * self.parties

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        target, labels = target_of(self, table), Labels.of(table)
        n_labels = len(labels.present)
        require(self, "labels", max(self._counts) <= n_labels, f"Choose at most {n_labels}: as many labels occur.")
        holds = np.zeros((self.parties, n_labels), bool)
        for party, count in enumerate(self._counts):
            holds[party, np.lexsort((rng.random(n_labels), holds.sum(0)))[:count]] = True
        owner = np.full(len(table), NO_PARTY)
        for code, held_by in zip(labels.present, holds.T, strict=True):
            records, holders = labels.records(code, rng), np.flatnonzero(held_by)
            if len(holders):
                owner[records] = holders[np.arange(len(records)) % len(holders)]
        left_out = np.count_nonzero(owner == NO_PARTY)
        shares = " and ".join(map(str, dict.fromkeys(self._counts)))
        sentence = f"{self.parties} parties hold {shares} of {n_labels} labels of {target} each."
        if left_out:
            sentence += f" {left_out} records of labels that no party holds are left out."
        return Draw(owner, numbered(self.parties), sentence)


@dataclass(frozen=True)
class dirichlet_labels(Partitioner):
    """The records of each label are divided among the parties in proportions from a Dirichlet distribution.

    Proportions are drawn again, up to 1000 times, until each party has `min_records`.

    Parameters
    ----------
    parties : int
    alpha : float
        Concentration: small for parties with few labels, large for parties alike.
    min_records : int
        Records that the smallest party must have.

    Source
    ------
    Li et al., ICDE 2022, section IV-A, "distribution-based label imbalance", after Yurochkin et al., ICML 2019.
    """

    parties: int
    alpha: float
    min_records: int = 1

    def __post_init__(self) -> None:
        _check_dirichlet(self)

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        target, labels = target_of(self, table), Labels.of(table)
        groups = [labels.records(code, rng) for code in labels.present]
        owner, draws = _divide(self, groups, len(table), rng)
        sentence = (
            f"{len(table)} records divided among {self.parties} parties, label by label of {target}, in "
            f"Dirichlet({self.alpha:g}) proportions (draw {draws}, the first with at least {self.min_records} records each)."
        )
        return Draw(owner, numbered(self.parties), sentence)


@dataclass(frozen=True)
class dirichlet_quantity(Partitioner):
    """Records dealt at random; how many each party gets is drawn from a Dirichlet distribution.

    Parameters
    ----------
    parties : int
    alpha : float
        Concentration: small for very unequal sizes, large for equal ones.
    min_records : int
        Records that the smallest party must have.

    Source
    ------
    Li et al., ICDE 2022, section IV-C, "quantity skew".
    """

    parties: int
    alpha: float
    min_records: int = 1

    def __post_init__(self) -> None:
        _check_dirichlet(self)

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        owner, draws = _divide(self, [rng.permutation(len(table))], len(table), rng)
        sentence = (
            f"{len(table)} records dealt at random to {self.parties} parties, sizes in Dirichlet({self.alpha:g}) "
            f"proportions (draw {draws}, the first with at least {self.min_records} records each)."
        )
        return Draw(owner, numbered(self.parties), sentence)


def _check_dirichlet(scheme: dirichlet_labels | dirichlet_quantity) -> None:
    require_whole(scheme, "parties", "min_records")
    positive = isinstance(scheme.alpha, int | float) and 0 < scheme.alpha < math.inf
    require(scheme, "alpha", positive, "Choose a finite number above 0.")


def _divide(
    scheme: dirichlet_labels | dirichlet_quantity, groups: list[np.ndarray], n_records: int, rng: np.random.Generator
) -> tuple[np.ndarray, int]:
    """Divide each group of records in its own proportions; return the owners and how many draws it took."""
    if n_records < scheme.parties * scheme.min_records:
        raise PartitionInvalid(
            f"{scheme} needs {scheme.parties * scheme.min_records} records, the table has {n_records}.",
            remedy="Ask for fewer parties or a smaller min_records.",
        )
    group_sizes = np.array([len(group) for group in groups])
    for draw in range(1, MOST_DRAWS + 1):
        proportions = rng.dirichlet(np.full(scheme.parties, float(scheme.alpha)), size=len(groups))
        cuts = np.rint(np.cumsum(proportions, axis=1) * group_sizes[:, None]).astype(int)
        cuts[:, -1] = group_sizes
        sizes = np.diff(cuts, axis=1, prepend=0)
        if sizes.sum(0).min() >= scheme.min_records:
            owner = np.empty(n_records, int)
            owner[np.concatenate(groups)] = np.tile(np.arange(scheme.parties), len(groups)).repeat(sizes.ravel())
            return owner, draw
    raise EmptyParty(
        f"{scheme}: in {MOST_DRAWS} draws some party had fewer than {scheme.min_records} of {n_records} records.",
        remedy="Raise alpha, or ask for fewer parties or a smaller min_records.",
    )
