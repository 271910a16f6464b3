"""FoolsGold: parties whose summed updates point the same way count little, as sybils' do.

    H_i  <- H_i + r_i                                       the sum of party i's rows over all rounds
    c_ij  = cosine of H_i and H_j                           v_i = max over j != i of c_ij
    c_ij  = c_ij v_i / v_j   where v_j > v_i                pardons honest parties that resemble a sybil
    a_i   = 1 - max_j c_ij, in [0, 1];  a_i / max a;  a_i = ln(a_i / (1 - a_i)) + 0.5, in [0, 1]
    found = sum_i a_i r_i / sum_i a_i

Keeps  : H, of shape (parties, d), which is what the server has seen of every party.
Needs  : nothing of f. It is against several parties with one aim, and does not stop a single one. Where honest parties are
         alike they lose their weight as sybils do.
Source : Fung et al., RAID 2020, Algorithm 1. Differs: cosines over all coordinates, without the feature importance of section
         5.2; the weights are divided by their sum, so that the result is a mean. Without any weight it is zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .centres import weighted_sum
from .columns import products_of
from .rule import Array, Beside, Rule

SURE = 0.99
"""A weight of one becomes this before its logit is taken, as in the authors' code."""


@dataclass(frozen=True)
class FoolsGold(Rule):
    """Weights that fall with the cosine of parties' summed updates (Fung et al. 2020); against sybils."""

    @property
    def name(self) -> str:
        return "foolsgold"

    @property
    def mixes(self) -> bool:
        return False

    def combine(self, rows: Array, beside: Beside) -> Array:
        weights = weights_of(self._summed(rows, beside))
        total = weights.sum()
        found = weighted_sum(weights / total, rows) if total > 0 else np.zeros(rows.shape[1])
        return found.astype(rows.dtype)

    def kept(self, rows: Array, beside: Beside, found: Array) -> dict[str, Array]:
        history, places = _history(rows, beside), _places(len(rows), beside)
        history[places] += rows
        return {"history": history}

    def _summed(self, rows: Array, beside: Beside) -> Array:
        """The history of those whose rows these are, this round included."""
        if "history" not in beside.memory:
            return rows
        summed: Array = beside.memory["history"][_places(len(rows), beside)] + rows
        return summed


def _history(rows: Array, beside: Beside) -> Array:
    """A copy of what was kept, or zeros."""
    kept = beside.memory.get("history")
    parties: Sequence[str] = beside.parties or range(len(rows))  # type: ignore[assignment]
    return np.zeros((len(parties), rows.shape[1]), rows.dtype) if kept is None else np.array(kept)


def _places(n: int, beside: Beside) -> Array:
    """Where the members stand among all parties."""
    if not beside.parties:
        return np.arange(n)
    place = {name: k for k, name in enumerate(beside.parties)}
    return np.array([place[name] for name in beside.members])


def cosines(rows: Array) -> Array:
    """Cosines of all pairs of rows (n, d), shape (n, n); of a row of zeros they are zero."""
    products = products_of(rows)
    norms = np.sqrt(np.diag(products))
    both = norms[:, None] * norms
    found: Array = np.divide(products, both, out=np.zeros_like(products), where=both > 0)
    return found


def weights_of(history: Array) -> Array:
    """Weights in [0, 1] of parties with a history (n, d), shape (n,)."""
    if len(history) == 1:
        return np.ones(1)
    alike = cosines(history)
    np.fill_diagonal(alike, -np.inf)
    most = alike.max(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        pardon = np.where((most > most[:, None]) & (most > 0), most[:, None] / most, 1.0)
    off = ~np.eye(len(alike), dtype=bool)
    scaled = np.where(off, np.where(off, alike, 0.0) * pardon, -np.inf)
    share = np.clip(1 - scaled.max(1), 0.0, 1.0)
    if share.max() == 0:
        return np.zeros(len(share))
    share = np.minimum(share / share.max(), SURE)
    with np.errstate(divide="ignore"):
        weights: Array = np.clip(np.log(share / (1 - share)) + 0.5, 0.0, 1.0)
    return weights
