"""What parties compute for boosted trees. Their columns' bins, and labels, stay with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.trees.second_order import Loss, loss_parts
from hedgerow.vertical.given import gives
from hedgerow.vertical.rows import secret_order

from .results import BoostedTree, scores_of

Columns = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns of each party that cuts may ask."""


Places = tuple[tuple[str, int, int], ...]
"""Party, column and bin of cuts."""


def left_out(n: int, holdout: float, seed: int) -> Array:
    """Which of n people are left out of training, by a seed that all know: a boolean array of shape (n,)."""
    out = np.zeros(n, bool)
    out[secret_order(seed.to_bytes(32, "little"), n)[: round(holdout * n)]] = True
    return out


@local
def cut_bins(broadcast: Any, party: Party, rng: Any, *, columns: Columns, n_bins: int, least: int) -> None:
    """Find the bins of a party's own columns, by its own quantiles, and keep them; nothing leaves.

    Bins of fewer than `least` people are joined with their neighbours.
    """
    party.state["bins"], party.state["edges"] = _binned(party, columns, n_bins, least)


def _binned(party: Party, columns: Columns, n_bins: int, least: int) -> tuple[Array, Array]:
    """The bins of each person, shape (n, columns), and their edges; they follow from the party's columns alone."""
    own = dict(columns).get(party.id, ())
    bins = np.zeros((len(party.w), len(own)), np.uint8)
    edges = np.full((len(own), n_bins - 1), np.inf)
    for k, name in enumerate(own):
        values = np.asarray(party[name], np.float64)
        found = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf"))
        found = enough_between(found, np.sort(values), least)
        edges[k, : len(found)] = found
        bins[:, k] = np.searchsorted(found, values, side="left")
    return bins, edges


def enough_between(edges: Array, values: Array, least: int) -> Array:
    """Those of sorted edges that leave at least `least` of sorted values (n,) in every bin, the first and last included."""
    kept, before = [], 0
    for edge, below in zip(edges, np.searchsorted(values, edges, side="right"), strict=True):
        if below - before >= least and len(values) - below >= least:
            kept.append(edge)
            before = below
    return np.array(kept, dtype=np.float64)


@local
def begin(broadcast: Any, party: Party, rng: Any, *, holder: str, label: str, base: float, holdout: float, seed: int) -> None:
    """Let the holder of labels begin with the base score, everybody at the root."""
    if party.id != holder:
        return
    n = len(party.w)
    party.state["score"] = np.full(n, base)
    party.state["node"] = np.ones(n, np.int64)
    party.state["in"] = ~left_out(n, holdout, seed)


@gives("indicators of bins")
@local
def in_bins(broadcast: Any, party: Party, rng: Any, *, columns: Columns, n_bins: int) -> Array:
    """One-hot rows of a party's bins, shape (n, columns x bins)."""
    bins = party.state["bins"]
    n, d = bins.shape
    hot = np.zeros((n, d * n_bins))
    hot[np.arange(n)[:, None], bins.astype(np.int64) + n_bins * np.arange(d)] = 1.0
    return hot


@gives("derivatives of the loss by node")
@local
def derivatives(
    broadcast: Any, party: Party, rng: Any, *, holder: str, label: str, loss: Loss, scale: float, nodes: tuple[int, ...]
) -> Array:
    """First derivative over `scale`, second one, and ones, in the columns of a person's node: shape (n, 3 x nodes)."""
    if party.id != holder:
        return np.zeros((len(party.w), 0))
    state, y = party.state, np.asarray(party[label], np.float64)
    g, h, _ = loss_parts(loss, y, state["score"])
    rows = np.zeros((len(y), 3 * len(nodes)))
    for k, node in enumerate(nodes):
        here = (state["node"] == node) & state["in"]
        rows[here, 3 * k : 3 * k + 3] = np.stack([g[here] / scale, h[here], np.ones(int(here.sum()))], 1)
    return rows


@gives("loss, right guesses, labels and number of people")
@local
def totals(
    broadcast: Any,
    party: Party,
    rng: Any,
    *,
    holder: str,
    label: str,
    loss: Loss,
    scale: float,
    held_out: bool,
    least: int = 0,
) -> Array:
    """Loss, right guesses, label and one for each person who counts, in units of `scale`: shape (n, 4).

    Guesses are zeros where fewer than `least` people, but some, are guessed right, or wrong.
    """
    if party.id != holder:
        return np.zeros((len(party.w), 0))
    y, score = np.asarray(party[label], np.float64), party.state["score"]
    values = loss_parts(loss, y, score)[2]
    right = (score > 0) == (y > 0.5)
    counts = ~party.state["in"] if held_out else party.state["in"]
    if any(0 < n < least for n in (right[counts].sum(), (~right[counts]).sum())):
        right = np.zeros_like(right)
    return np.stack([values / scale**2, right, y / scale, np.ones(len(y))], 1) * counts[:, None]


@gives("ones")
@local
def one(broadcast: Any, party: Party, rng: Any, *, holder: str) -> Array:
    """A column of ones at the holder of labels."""
    return np.ones((len(party.w), int(party.id == holder)))


@gives("sides of chosen cuts")
@local
def sides(broadcast: Any, party: Party, rng: Any, *, cuts: Places) -> Array:
    """Whether each person goes left at the cuts, zeros at those of other parties: shape (n, cuts)."""
    return _left(party.id, party.state["bins"], cuts)


@gives("sides of chosen cuts")
@local
def sides_anew(broadcast: Any, party: Party, rng: Any, *, cuts: Places, columns: Columns, n_bins: int, least: int) -> Array:
    """As `sides`, by bins that are found anew, since other trees may have been grown in the meantime."""
    return _left(party.id, _binned(party, columns, n_bins, least)[0], cuts)


def _left(me: str, bins: Array, cuts: Places) -> Array:
    found = np.zeros((len(bins), max(len(cuts), 1)), np.uint8)
    for k, (owner, column, bin) in enumerate(cuts):
        if owner == me:
            found[:, k] = bins[:, column] <= bin
    return found


@local
def move(broadcast: Any, party: Party, rng: Any, *, nodes: tuple[int, ...]) -> None:
    """Move people of split nodes to their children."""
    at = party.state["node"]
    for k, node in enumerate(nodes):
        here = at == node
        at = np.where(here, 2 * node + (1 - party.received[:, k].astype(np.int64)), at)
    party.state["node"] = at


@local
def add_leaves(broadcast: Mapping[str, Array], party: Party, rng: Any, *, holder: str) -> None:
    """Add what leaves say to scores, and put everybody back at the root; `broadcast` has `node` and `value`."""
    if party.id != holder:
        return
    values = np.zeros(int(max(broadcast["node"].max(), party.state["node"].max())) + 1)
    values[broadcast["node"].astype(np.int64)] = broadcast["value"]
    party.state["score"] = party.state["score"] + values[party.state["node"]]
    party.state["node"] = np.ones_like(party.state["node"])


@local
def keep_scores(broadcast: Any, party: Party, rng: Any, *, trees: tuple[BoostedTree, ...], base: float, under: str) -> None:
    """Keep the scores that follow from the sides that came."""
    party.state[under] = scores_of(np.asarray(party.received) > 0.5, trees, base)


@gives("scores")
@local
def tell_scores(broadcast: Any, party: Party, rng: Any, *, holder: str, under: str) -> Array:
    """The scores that a party keeps, zeros at the others: shape (n, 1)."""
    return np.asarray(party.state[under])[:, None] if party.id == holder else np.zeros((len(party.w), 1))
