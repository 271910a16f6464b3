"""Folds of each party's own records, and sums for each fold.

A record's fold is a public function of its party's name and its place there, the same in every round; a store of one
record is a fold's as a whole.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local

from ..linear.losses import FamilyName, loss_of
from ..linear.sums import At, along, products, triangle


def folds_of(party: Party, rng: Any, n_folds: int) -> Array:
    """Return each record's fold, of the shape of the weights: they take turns, from a place that the party's name decides.

    Records of weight zero take no turn.
    """
    stacked = party.w.ndim == 2
    names = [rng.ids[int(i)] for i in rng.which] if stacked else [party.id]
    first = np.array([first_fold(name, n_folds) for name in names])
    counted = np.atleast_2d(party.w) != 0
    folds: Array = (first[:, None] + np.maximum(counted.cumsum(-1) - 1, 0)) % n_folds
    return folds if stacked else folds[0]


def first_fold(name: str, n_folds: int) -> int:
    """Return the fold of a party's first record."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") % n_folds


@local(stackable=True)
def fold_products(broadcast: None, party: Party, rng: Any, *, n_folds: int) -> dict[str, Array]:
    """Add up, for each fold, records, products of columns (upper triangle), products with the target, and its squares."""
    X, y, fold = party["X"], party["y"] - party["offset"], folds_of(party, rng, n_folds)
    ws = [party.w * (fold == k) for k in range(n_folds)]
    with np.errstate(all="ignore"):
        return {
            "n": np.stack([w.sum(-1) for w in ws], -1),
            "information": np.stack([triangle(products(X, w)) for w in ws], -2),
            "score": np.stack([along(X, w * y) for w in ws], -2),
            "yy": np.stack([(w * y**2).sum(-1) for w in ws], -1),
        }


@local(stackable=True)
def fold_sums(broadcast: dict[str, Array], party: Party, rng: Any, *, family: FamilyName, n_folds: int) -> dict[str, Array]:
    """Add up sums at `beta` (L, F + 1, d): of model f without the records of fold f, and its deviance on them.

    The last model leaves nothing out. With `reach` (2,) linear predictors are cut off, and those beyond are counted.
    """
    loss, beta, fold = loss_of(family), broadcast["beta"], folds_of(party, rng, n_folds)
    lead, axis = beta.shape[:-1], party.w.ndim - 1
    found = []
    with np.errstate(all="ignore"):
        for i, point in enumerate(beta.reshape(-1, beta.shape[-1])):
            at, w = At(loss, party, point, broadcast), party.w * (fold != i % (n_folds + 1))
            left_out = at.sums(("deviance",), party.w - w)["deviance"]
            sums = at.sums(("score", "information", "deviance"), w, upper=True) | at.sums(("beyond",))
            found.append(sums | {"left_out": left_out})
        stacked = {key: np.stack([sums[key] for sums in found], axis) for key in found[0]}
    shaped = {key: value.reshape(*value.shape[:axis], *lead, *value.shape[axis + 1 :]) for key, value in stacked.items()}
    counts = np.stack([(party.w * (fold == k)).sum(-1) for k in range(n_folds)], -1)
    return shaped | {"n": counts}
