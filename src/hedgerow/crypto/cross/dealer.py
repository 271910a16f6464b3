"""The hub's side of `cross`: it holds no column, deals shares of its own rows, and opens the total.

opening     seeds of the pads A and B come from the parties; h_p, shares of its rows in its own order, go to them
rows        (weighted) shares of V = b * A go to the parties; b is the sum of the pads that it gave with the shares
products    (weighted) seeds of the pads of the weighted columns come
shares      masked shares come; their sum, and what follows from pads alone, is the result

gram        A_j' A_k for j before k
right       A_j' (b + sum over o other than j of B_o)
weighted    A' V, and A_j' B_k where k opens its weighted columns to j
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.randomness import Entropy
from hedgerow.crypto.keys import KEY_BYTES, derive
from hedgerow.crypto.peers import HUB, Peer
from hedgerow.errors import SettingsInvalid

from .letters import exchange
from .pads import pad_of, shared
from .ring import BYTES, Words, encode, product, uniform, words_of
from .terms import HEAD, Terms, refuse_shape


def hub_peer(terms: Terms, rows: Array | None, entropy: Entropy) -> Peer[Words]:
    """Deal and open one question; return the total, words of shape (size,), before noise of the server.

    Parameters
    ----------
    terms : Terms
    rows : array of shape (n, c) or (n,), optional
        The hub's rows on the right, or its weights, in the order of the rows that it knows.
    entropy : callable
        Gives uniform bytes; never the same for two questions.

    Raises
    ------
    MessageRefused (HR-242)
        A letter is not what it should be.
    """
    names, n, asked = terms.names, terms.asked.n, terms.asked
    if (rows is None) != (terms.hub_columns == 0):
        raise SettingsInvalid("rows of the hub, which were announced otherwise.", remedy="Declare their reach with them.")
    seeds = {name: entropy(KEY_BYTES) for name in names}
    out = {name: terms.digest + (seeds[name] if terms.hub_columns else b"") for name in names}
    if rows is not None:
        h = _rows(terms, rows)
        out[names[0]] += shared(h, [seeds[name] for name in names[1:]], "hedgerow cross rows").tobytes()
    lawful = {name: (HEAD + KEY_BYTES * (2 if name in terms.holders else 1),) for name in names}
    came = yield from exchange(HUB, out, terms.everyone, lawful)
    bodies = {name: terms.body(came[name], name) for name in names}
    A = {name: pad_of(bodies[name][:KEY_BYTES], n, terms.width(name)) for name in names}
    b = np.zeros((n, terms.hub_columns), np.uint64)
    V = np.zeros((n, 0), np.uint64)
    if terms.hub_columns:
        for name in names:
            b += uniform(derive(seeds[name], "hedgerow cross again"), n, terms.hub_columns)
        dealt = {}
        if asked.weighted:
            V = b * np.concatenate([A[name] for name in names], 1)
            rest = shared(V, [seeds[name] for name in names[1:]], "hedgerow cross weighted pads")
            dealt = {names[0]: rest.tobytes()}
        yield from exchange(HUB, dealt, terms.everyone, {})
    B = {name: pad_of(bodies[name][KEY_BYTES:], n, asked.right) for name in terms.holders}
    if asked.weighted:
        came = yield from exchange(HUB, {}, terms.everyone, dict.fromkeys(names, (KEY_BYTES,)))
        B = {name: pad_of(came[name], n, terms.width(name)) for name in names}
    total = terms.flat(_own(terms, A, B, b, V))
    came = yield from exchange(HUB, {}, terms.everyone, dict.fromkeys(names, (asked.size * BYTES,)))
    for name in names:
        total = total + words_of(came[name], (1, asked.size), name)[0]
    return total


def _rows(terms: Terms, rows: Array) -> Words:
    """The hub's rows in the ring, shape (n, columns)."""
    bits = terms.bits.weight if terms.asked.weighted else terms.bits.right
    table = np.reshape(rows, (len(rows), -1))
    refuse_shape(table.shape, (terms.asked.n, terms.hub_columns), "what the hub has")
    return encode(table, bits)


def _own(terms: Terms, A: Mapping[str, Words], B: Mapping[str, Words], b: Words, V: Words) -> Words:
    """What follows from pads alone: the hub's part of the result, (D, D) or (D, c)."""
    names, d, c = terms.names, sum(terms.asked.widths), terms.asked.right
    if c:
        right = np.zeros((d, c), np.uint64)
        for name in names:
            rows = sum((B[o] for o in terms.holders if o != name), np.zeros((terms.asked.n, c), np.uint64))
            right[terms.columns(name)] = product(A[name], rows + b if terms.hub_columns else rows)
        return right
    every = np.concatenate([A[name] for name in names], 1)
    if not terms.asked.weighted:
        found = product(every, every)
        for name in names:
            found[terms.columns(name), terms.columns(name)] = 0  # which each party computes by itself
        return found
    found = product(every, V)
    for j, one in enumerate(names):
        for other in names[j + 1 :]:
            if terms.opener(one, other) == other:
                found[terms.columns(one), terms.columns(other)] += product(A[one], B[other])
            else:
                found[terms.columns(one), terms.columns(other)] += product(A[other], B[one]).T
    return found
