"""Lies in records: labels that are flipped or aimed, columns that are noise, triggers that are stamped on records.

label flip       y <- classes - 1 - y
single target    y <- target where y = source
noise            a column's values are drawn from its declared range
stamp            a share of the records carries the trigger, and the target as its label
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from .act import RecordsAct


@dataclass(frozen=True)
class LabelFlip(RecordsAct):
    """Every label y becomes classes - 1 - y.

    Parameters
    ----------
    label : str
        The column of labels.
    classes : int
    """

    label: str
    classes: int

    def records(self, columns: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """The labels."""
        y = np.asarray(columns[self.label])
        return {self.label: np.where(y < 0, y, self.classes - 1 - y).astype(y.dtype)}


@dataclass(frozen=True)
class SingleTarget(RecordsAct):
    """Records of one class are given the label of another.

    Parameters
    ----------
    label : str
    source, target : int
        Codes of the classes.
    """

    label: str
    source: int
    target: int

    def records(self, columns: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """The labels."""
        y = np.asarray(columns[self.label])
        return {self.label: np.where(y == self.source, self.target, y).astype(y.dtype)}


@dataclass(frozen=True)
class NoiseRecords(RecordsAct):
    """Columns are drawn evenly from their declared ranges, whatever the records were.

    Parameters
    ----------
    ranges : tuple of (str, float, float)
        Column, least and largest value.
    """

    ranges: tuple[tuple[str, float, float], ...]

    def records(self, columns: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """The columns that were named."""
        found = {}
        for name, low, high in self.ranges:
            held = np.asarray(columns[name])
            drawn = rng.uniform(low, high, held.shape)
            found[name] = (np.rint(drawn) if held.dtype.kind in "iu" else drawn).astype(held.dtype)
        return found


@dataclass(frozen=True)
class Trigger:
    """What makes a record a stamped one: a bright square of an image, or values of columns.

    Parameters
    ----------
    image : str
        The column of images; "" where there is none.
    at : (int, int)
        Row and column of the square's first pixel.
    size : int
        Of its side, in pixels.
    value : float
        Of its pixels.
    side : int, optional
        Width of an image that is held as one row of pixels.
    columns : mapping from column to value
    """

    image: str = ""
    at: tuple[int, int] = (0, 0)
    size: int = 3
    value: float = 255.0
    side: int | None = None
    columns: Mapping[str, float] = field(default_factory=dict)

    def stamped(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """The columns of records that all carry the trigger.

        Raises
        ------
        SettingsInvalid (HR-511)
            The square lies outside the image.
        """
        found: dict[str, Array] = {}
        for name, value in self.columns.items():
            held = np.asarray(columns[name])
            found[name] = np.full_like(held, value)
        if self.image:
            held = np.array(columns[self.image])
            flat = held.ndim == 2
            side = self.side or (round(held.shape[1] ** 0.5) if flat else held.shape[2])
            pictures = held.reshape(len(held), -1, side) if flat else held
            down, right = self.at
            if down < 0 or right < 0 or down + self.size > pictures.shape[1] or right + self.size > pictures.shape[2]:
                raise SettingsInvalid(
                    f"a trigger of {self.size} pixels at {list(self.at)} of images of "
                    f"{pictures.shape[1]} by {pictures.shape[2]}.",
                    remedy="Give a place within the image.",
                )
            pictures[:, down : down + self.size, right : right + self.size] = self.value
            found[self.image] = pictures.reshape(held.shape)
        return found


@dataclass(frozen=True)
class Stamp(RecordsAct):
    """A backdoor: a share of the records carries a trigger, and the label that the model is to say when it sees one.

    Source: Bagdasaryan et al., AISTATS 2020, section 4.

    Parameters
    ----------
    trigger : Trigger
    label : str
    target : int
        Code of the class.
    share : float
        Of a liar's records; which ones is drawn.
    source : int, optional
        Only records of this class are stamped.
    """

    trigger: Trigger
    label: str
    target: int
    share: float = 0.5
    source: int | None = None

    def records(self, columns: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """The columns of the trigger, and the labels."""
        y = np.asarray(columns[self.label])
        lawful = np.ones(len(y), bool) if self.source is None else y == self.source
        chosen = np.flatnonzero(lawful)
        chosen = rng.permutation(chosen)[: round(self.share * len(chosen))]
        found: dict[str, Any] = {self.label: y.copy()}
        found[self.label][chosen] = self.target
        stamped = self.trigger.stamped({name: np.asarray(columns[name])[chosen] for name in self._reads})
        for name, values in stamped.items():
            found[name] = np.array(columns[name])
            found[name][chosen] = values
        return found

    @property
    def _reads(self) -> list[str]:
        return [*self.trigger.columns, *([self.trigger.image] if self.trigger.image else [])]
