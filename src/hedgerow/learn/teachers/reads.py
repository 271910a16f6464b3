"""What teachers and students read: the features of records and of public inputs as rows of numbers.

    record     -> model_input                     as everywhere in learn: declared ranges to 0..1, levels to indicators
    images     -> straightened, scattered         record by record: hedgerow.learn.features
    rows       -> (row - middle) basis            the leading directions of the PUBLIC inputs: no record has shaped them

A party makes these numbers for one shard at a time, so that no teacher's numbers follow from another's records, to the last
bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.data import Schema
from hedgerow.errors import SettingsInvalid

from ..features.chunks import by_chunks
from ..features.scattering import AT_ONCE, GROUPS, bank, grouped, scatter
from ..features.straight import straighten
from ..tensors import scaling, width

_made: list[tuple[Any, dict[str, Array]]] = []
"""The features of the last pool of public inputs."""


@travels
@dataclass(frozen=True)
class Reads:
    """From `model_input` to rows of numbers.

    Parameters
    ----------
    low, scale : float
        An array-shaped column is read as (x - low) * scale.
    straighten, scatter : bool
        Images are moved upright; and seen through fixed wavelets.
    components : int
        Leading directions of the public inputs that are kept; 0 keeps all numbers.
    """

    low: float = 0.0
    scale: float = 1.0
    straighten: bool = False
    scatter: bool = False
    components: int = 0

    @classmethod
    def of(cls, schema: Schema, *, straighten: bool = False, scatter: bool = False, components: int = 0) -> Reads:
        """How a schema's features are read.

        Raises
        ------
        SettingsInvalid (HR-511)
            Records are no images, and are to be straightened or scattered; more components than numbers, or fewer than none.
        """
        low, scale = scaling(schema)
        made = cls(float(low), float(scale), straighten, scatter, components)
        shape = width(schema)
        if (straighten or scatter) and not 2 <= len(shape) <= 3:
            raise SettingsInvalid(
                f"straighten={straighten}, scatter={scatter} of features of shape {shape}.",
                remedy="These read one column of images, such as (28, 28).",
            )
        if straighten and len(shape) != 2:
            raise SettingsInvalid(f"straighten=True of images of shape {shape}.", remedy="It reads images of one channel.")
        if scatter:
            bank(*shape[-2:])
        numbers = math.prod(shape) if not scatter else len(made.plain(np.zeros((1, *shape), np.float32))[0])
        if not 0 <= components <= numbers:
            raise SettingsInvalid(
                f"{components} components of {numbers} numbers.", remedy="At least one, at most all; 0 for all."
            )
        return made

    def plain(self, x: Array) -> Array:
        """Rows (n, d) of numbers, each of its own record (n, ...) alone."""
        values: Any = torch.from_numpy(np.ascontiguousarray(x)).to(torch.float32)
        if values.ndim > 2:
            values = (values - self.low) * self.scale
        if not len(values):
            values = values.new_zeros((1, *values.shape[1:]))
            return self.plain(values.numpy())[:0]
        with torch.no_grad():
            if self.straighten:
                values = by_chunks(lambda part: straighten(part.clamp_min(0.0)), values, 1024)
            if self.scatter:
                values = by_chunks(lambda part: grouped(scatter(part).flatten(1, -3), GROUPS).flatten(1), values, AT_ONCE)
        made: Array = values.flatten(1).numpy()
        return made

    def public(self, pool: Array) -> dict[str, Array]:
        """Features of public inputs (N, ...) as `inputs`, (N, d); with components, `middle` and `basis` besides.

        Those of the last pool are kept: the question and its students read the same numbers, in copies of their own.
        """
        key = self, pool.shape, blake2b(np.ascontiguousarray(pool).tobytes()).digest()
        if not (_made and _made[0][0] == key):
            _made[:] = [(key, self._public(pool))]
        return {name: array.copy() for name, array in _made[0][1].items()}

    def _public(self, pool: Array) -> dict[str, Array]:
        rows = self.plain(pool)
        if not self.components:
            return {"inputs": rows}
        middle = rows.mean(0)
        basis = _leading(rows - middle, self.components)
        return {"inputs": (rows - middle) @ basis, "middle": middle, "basis": basis}

    def features(self, x: Array, public: Mapping[str, Array]) -> Array:
        """Rows (n, d) of other records, as those of the public inputs."""
        rows = self.plain(x)
        return (rows - public["middle"]) @ public["basis"] if self.components else rows


def _leading(rows: Array, components: int) -> Array:
    """Leading directions of centred rows (N, d): shape (d, k), float32, with signs that do not depend on the library."""
    import scipy

    n, d = rows.shape
    square = (rows.T @ rows if n >= d else rows @ rows.T).astype(np.float64)
    kept = min(components, len(square))
    _, vectors = scipy.linalg.eigh(square, subset_by_index=[len(square) - kept, len(square) - 1])
    found = vectors[:, ::-1]
    if n < d:
        found = rows.T @ found
        found = found / np.maximum(np.linalg.norm(found, axis=0), 1e-12)
    if found.shape[1] < components:
        found = np.concatenate([found, np.zeros((d, components - found.shape[1]))], 1)
    signs = np.sign(found[np.abs(found).argmax(0), np.arange(components)])
    return np.asarray(found * np.where(signs == 0, 1, signs), np.float32)
