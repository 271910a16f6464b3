"""Partitions whose parties differ in features, or in how features and labels belong together.

    feature_noise     P(x)    each party measures with its own noise
    covariate_shift   P(x)    parties prefer ranges of one feature
    concept_drift     P(x|y)  same label, different features
    concept_shift     P(y|x)  same features, different labels

Altered values stay inside their declared range. The terms are those of Kairouz et al. 2021, section 3.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from hedgerow.errors import PartitionInvalid

from .column import Column
from .partition import Draw, Partitioner, deal, numbered, require_number, require_whole, target_of
from .table import Table


@dataclass(frozen=True)
class feature_noise(Partitioner):
    """Records dealt at random; party i of N adds Gaussian noise of variance `sigma * i / N` to its numeric features.

    A feature is measured in units of its declared range, or of its standard deviation where no range is declared, so that
    noise of variance 0.01 moves a feature by a tenth of its range. Noisy values are clipped to the range, and rounded
    where the column is whole.

    Parameters
    ----------
    parties : int
    sigma : float
        Variance of the noise at the last party, in squared units of the feature's range.

    Source
    ------
    Li et al., ICDE 2022, section IV-B, "noise-based feature imbalance". Differs: the clipping, and features that are
    not pixels.
    """

    parties: int
    sigma: float

    def __post_init__(self) -> None:
        require_whole(self, "parties")
        require_number(self, "sigma")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        owner = deal(len(table), self.parties, rng)
        deviation = np.sqrt(self.sigma * np.arange(1, self.parties + 1) / self.parties)
        columns = {}
        for column in _numeric_features(self, table):
            columns[column.name] = altered = table[column.name].copy()
            scale = _scale(column, altered)
            for party, records in enumerate(_records_of(owner, self.parties)):
                noise = rng.standard_normal((len(records), *column.shape), np.float32) * float(scale * deviation[party])
                altered[records] = column.settle(altered[records] + noise, altered.dtype)
        sentence = (
            f"{len(table)} records dealt at random to {self.parties} parties; party i adds noise of variance "
            f"{self.sigma:g} * i / {self.parties}, in units of the range, to {len(columns)} features."
        )
        return Draw(owner, numbered(self.parties), sentence, columns=columns)


@dataclass(frozen=True)
class covariate_shift(Partitioner):
    """Parties of equal size that prefer ranges of one feature.

    Records are sorted by `strength * rank + (1 - strength) * uniform`, rank and uniform both in [0, 1], and cut into equal
    parts: strength 0 is a deal at random, 1 gives each party its own range.

    Parameters
    ----------
    parties : int
    column : str
        The feature; a category counts in the order of its levels.
    strength : float
        Between 0 and 1.
    """

    parties: int
    column: str
    strength: float

    def __post_init__(self) -> None:
        require_whole(self, "parties")
        require_number(self, "strength", most=1)

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        if table.schema[self.column].shape:
            raise PartitionInvalid(f"{self}: the column holds arrays.", remedy="Choose a column of single values.")
        n = len(table)
        rank = np.empty(n)
        rank[np.lexsort((rng.random(n), table[self.column]))] = np.arange(n) / n
        order = np.argsort(self.strength * rank + (1 - self.strength) * rng.random(n), kind="stable")
        owner = np.empty(n, int)
        owner[order] = np.arange(n) * self.parties // max(n, 1)
        sentence = f"{n} records in {self.parties} parties that prefer ranges of {self.column}, strength {self.strength:g}."
        return Draw(owner, numbered(self.parties), sentence)


@dataclass(frozen=True)
class concept_drift(Partitioner):
    """Records dealt at random; each party transforms its features in its own fixed way, and keeps the labels.

    Square images, with or without planes before height and width, are turned: party i of 0, 1, ... by `i * degrees`,
    with linear interpolation unless the angle is a multiple of 90. Other numeric features are moved: the first party by
    `-shift / 2`, the last by `+shift / 2` of the declared range (or standard deviations, without a range).

    Parameters
    ----------
    parties : int
    degrees : float
        Angle between one party's images and the next one's, counter-clockwise.
    shift : float
        Distance between the first and last party's features.

    Source
    ------
    Kairouz et al. 2021, section 3.1, "same label, different features"; rotation as in Ghosh et al., NeurIPS 2020.
    """

    parties: int
    degrees: float = 15.0
    shift: float = 0.2

    def __post_init__(self) -> None:
        require_whole(self, "parties")
        require_number(self, "degrees", least=-math.inf)
        require_number(self, "shift")

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        owner = deal(len(table), self.parties, rng)
        moves = _spread(self.parties) * self.shift
        columns, n_images = {}, 0
        for column in _numeric_features(self, table):
            columns[column.name] = altered = table[column.name].copy()
            scale, is_image = _scale(column, altered), _is_image(column)
            n_images += is_image
            for party, records in enumerate(_records_of(owner, self.parties)):
                values = altered[records]
                changed = _turn(values, party * self.degrees) if is_image else values + moves[party] * scale
                altered[records] = column.settle(changed, altered.dtype)
        what = [f"{n_images} images turned by {self.degrees:g} degrees from party to party"] if n_images else []
        if len(columns) > n_images:
            what.append(f"{len(columns) - n_images} features spread over {self.shift:g} of their range")
        sentence = f"{len(table)} records dealt at random to {self.parties} parties; {', '.join(what)}."
        return Draw(owner, numbered(self.parties), sentence, columns=columns)


@dataclass(frozen=True)
class concept_shift(Partitioner):
    """Records dealt at random; each party labels a fraction of its records in its own way, and keeps the features.

    Each party has its own permutation of the labels, without fixed label, and applies it to that fraction of its records,
    chosen at random. A numeric target is moved instead, at every record: at the first party by `-fraction / 2` of the
    declared range (or standard deviations, without a range), at the last by `+fraction / 2`.

    Parameters
    ----------
    parties : int
    fraction : float
        Between 0 and 1.

    Source
    ------
    Kairouz et al. 2021, section 3.1, "same features, different label".
    """

    parties: int
    fraction: float

    def __post_init__(self) -> None:
        require_whole(self, "parties")
        require_number(self, "fraction", most=1)

    def draw(self, table: Table, rng: np.random.Generator) -> Draw:
        target = target_of(self, table)
        owner = deal(len(table), self.parties, rng)
        if table.schema[target].kind in ("number", "integer"):
            altered = self._moved(table, target, owner)
            what = f"{target} is spread over {self.fraction:g} of its range"
        else:
            altered = self._permuted(table, target, owner, rng)
            what = f"each permutes the labels of {self.fraction:.0%} of its records"
        sentence = f"{len(table)} records dealt at random to {self.parties} parties; {what}."
        return Draw(owner, numbered(self.parties), sentence, columns={target: altered})

    def _moved(self, table: Table, target: str, owner: np.ndarray) -> np.ndarray:
        column, values = table.schema[target], table[target]
        moves = _spread(self.parties) * self.fraction * _scale(column, values)
        return column.settle(values + moves[owner], values.dtype)

    def _permuted(self, table: Table, target: str, owner: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        n_labels = len(table.schema[target].levels) or 2
        if n_labels < 2:
            raise PartitionInvalid(f"{self}: {target} has one level.", remedy="Choose a target with two or more.")
        altered = table[target].copy()
        for records in _records_of(owner, self.parties):
            chosen = rng.permutation(records)[: round(self.fraction * len(records))]
            known = chosen[~table.schema[target].lacks(altered[chosen])]
            altered[known] = _derangement(n_labels, rng)[altered[known].astype(int)]
        return altered


def _numeric_features(scheme: Partitioner, table: Table) -> list[Column]:
    found = [table.schema[name] for name in table.schema.features if table.schema[name].kind in ("number", "integer")]
    if not found:
        raise PartitionInvalid(
            f"{scheme} alters numeric features, and table {table.name!r} has none.",
            remedy="Choose another partitioner, or declare numeric features.",
        )
    return found


def _scale(column: Column, values: np.ndarray) -> float:
    if column.low is not None and column.high is not None:
        return column.high - column.low
    return float(np.nanstd(values))


def _spread(parties: int) -> np.ndarray:
    return np.linspace(-0.5, 0.5, parties) if parties > 1 else np.zeros(1)


def _records_of(owner: np.ndarray, parties: int) -> list[np.ndarray]:
    return [np.flatnonzero(owner == party) for party in range(parties)]


def _is_image(column: Column) -> bool:
    return len(column.shape) in (2, 3) and column.shape[-1] == column.shape[-2]


def _turn(images: np.ndarray, degrees: float) -> np.ndarray:
    if degrees % 90 == 0:
        return np.rot90(images, int(degrees // 90) % 4, axes=(-2, -1))
    plain = images.astype(np.float32)
    return np.asarray(scipy.ndimage.rotate(plain, degrees, axes=(-2, -1), reshape=False, order=1))


def _derangement(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random cyclic permutation of 0, ..., n - 1: no value stays where it is."""
    cycle = rng.permutation(n)
    permutation = np.empty(n, int)
    permutation[cycle] = np.roll(cycle, 1)
    return permutation
