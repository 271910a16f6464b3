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

from ..families import FamilyName, law_of
from ..limits import triangle


def folds_of(party: Party, rng: Any, n_folds: int) -> Array:
    """Return each record's fold, of the shape of the weights: they take turns, from a place that the party's name decides."""
    stacked = party.w.ndim == 2
    names = [rng.ids[int(i)] for i in rng.which] if stacked else [party.id]
    first = np.array([first_fold(name, n_folds) for name in names])
    folds: Array = (first[:, None] + np.arange(party.w.shape[-1])) % n_folds
    return folds if stacked else folds[0]


def first_fold(name: str, n_folds: int) -> int:
    """Return the fold of a party's first record."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") % n_folds


@local(stackable=True)
def fold_products(broadcast: None, party: Party, rng: Any, *, n_folds: int) -> dict[str, Array]:
    """Add up, for each fold, records, products of columns (upper triangle), products with the target, and its squares."""
    X, y, fold = party["X"], party["y"] - party["offset"], folds_of(party, rng, n_folds)
    ws = [party.w * (fold == k) for k in range(n_folds)]
    transposed = np.swapaxes(X, -1, -2)
    with np.errstate(all="ignore"):
        return {
            "n": np.stack([w.sum(-1) for w in ws], -1),
            "information": np.stack([triangle(transposed @ (w[..., None] * X)) for w in ws], -2),
            "score": np.stack([(transposed @ (w * y)[..., None])[..., 0] for w in ws], -2),
            "yy": np.stack([(w * y**2).sum(-1) for w in ws], -1),
        }


@local(stackable=True)
def fold_sums(broadcast: dict[str, Array], party: Party, rng: Any, *, family: FamilyName, n_folds: int) -> dict[str, Array]:
    """Add up sums at `beta` (L, F + 1, d): of model f without the records of fold f, and its deviance on them.

    The last model leaves nothing out. With `reach` (2,) linear predictors are cut off, and those beyond are counted.
    """
    law, X, y, offset = law_of(family), party["X"], party["y"], party["offset"]
    fold, transposed, beta = folds_of(party, rng, n_folds), np.swapaxes(X, -1, -2), broadcast["beta"]
    found: dict[str, list[Array]] = {key: [] for key in ("score", "information", "deviance", "left_out", "beyond")}
    with np.errstate(all="ignore"):
        for one in beta.reshape(-1, n_folds + 1, beta.shape[-1]):
            for k, b in enumerate(one):
                w = party.w * (fold != k)
                linear = X @ b + offset
                eta = np.clip(linear, *broadcast["reach"]) if "reach" in broadcast else linear
                mean = law.mean(eta)
                residual = y - mean if law.gain is None else law.gain(mean) * (y - mean)
                deviance = law.deviance(y, eta)
                found["score"].append((transposed @ (w * residual)[..., None])[..., 0])
                found["information"].append(triangle(transposed @ ((w * law.variance(mean))[..., None] * X)))
                found["deviance"].append((w * deviance).sum(-1))
                found["left_out"].append(((party.w - w) * deviance).sum(-1))
                found["beyond"].append((party.w * (eta != linear)).sum(-1))
        lead, axis = beta.shape[:-1], party.w.ndim - 1
        sums = {key: np.stack(values, axis) for key, values in found.items()}
    shaped = {key: value.reshape(*value.shape[:axis], *lead, *value.shape[axis + 1 :]) for key, value in sums.items()}
    counts = np.stack([(party.w * (fold == k)).sum(-1) for k in range(n_folds)], -1)
    return shaped | {"n": counts}
