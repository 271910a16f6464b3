"""FLTrust: rows count as far as they point where the server's own row points.

    g_0   = the server's own row, trained on its root records as a party trains
    t_i   = max(0, cosine of r_i and g_0)
    found = sum_i t_i (|g_0| / |r_i|) r_i / sum_i t_i

Needs  : root records at the server, which are no test records; nothing of f.
Source : Cao et al., NDSS 2021, Algorithm 2. Differs: rows of zeros have no direction and get weight 0; where no row gets
         weight, the result is zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from hedgerow.errors import SettingsInvalid

from .centres import norms_of, weighted_sum
from .columns import blocks
from .rule import Array, Beside, Rule


@dataclass(frozen=True)
class FLTrust(Rule):
    """Rows weighed by their cosine with the server's own row, and brought to its length (Cao et al. 2021, Algorithm 2).

    Attributes
    ----------
    root : hedgerow.data.Table or int
        The server's root records, or in a study how many are taken off its test table before anything is measured on that.
    """

    root: Any = field(repr=False)

    @property
    def name(self) -> str:
        return "fltrust"

    @property
    def root_records(self) -> Any:
        return self.root

    def with_root(self, table: Any) -> Self:
        return replace(self, root=table)

    def combine(self, rows: Array, beside: Beside) -> Array:
        if beside.root is None:
            raise SettingsInvalid("FLTrust has no row of the server's own.", remedy="Give one: Beside(root=...).")
        root = np.asarray(beside.root, np.float64)
        length, norms = float(np.linalg.norm(root)), norms_of(rows)
        if not np.isfinite(length):
            raise SettingsInvalid(
                "the server's own row has numbers that are not finite.", remedy="Lower the learning rate: training diverged."
            )
        products = np.zeros(len(rows)) if length == 0 else _products(rows, root / length)
        trust = np.divide(np.maximum(products, 0.0), norms, out=np.zeros(len(rows)), where=norms > 0)
        if trust.sum() == 0:
            return np.zeros(rows.shape[1], rows.dtype)
        share = np.divide(trust * length, norms, out=np.zeros(len(rows)), where=norms > 0) / trust.sum()
        return weighted_sum(share, rows).astype(rows.dtype)


def _products(rows: Array, direction: Array) -> Array:
    found = np.zeros(len(rows))
    for part in blocks(rows):
        found += rows[:, part].astype(np.float64) @ direction[part]
    return found
