"""Noise of a mechanism in words: shares of it at the parties, or all of it at the hub.

The steps of the mechanism's grid are those of the ring (`bits.choose_private`), so noise is added to words as whole steps, and
the hub's total is a whole number of steps: nothing is rounded after the columns were, at their parties.

    at="shares"    each party adds its share before its row is masked; the hub sees the noisy total alone
    at="server"    the hub adds the noise to the exact total, which it therefore sees
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bound
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.randomness import Entropy

from .ring import Words, signed
from .terms import Terms


def share_of_noise(mechanism: Mechanism, bound: Bound, layout: Layout, entropy: Entropy) -> Callable[[], Array]:
    """Return what draws a party's share of the noise, shape (size,), int64, in steps of the ring; zeros at the server."""

    def drawn() -> Array:
        rows = mechanism.at_party(np.zeros((1, layout.size)), bound, layout, lambda which: entropy)
        steps: Array = rows[0].astype(np.int64)
        return steps

    return drawn


def opened(terms: Terms, total: Words, mechanism: Mechanism, bound: Bound, entropy: Entropy) -> Array:
    """Return the released result, of shape (D, D) or (D, c), of a total of words.

    Raises
    ------
    BudgetInvalid (HR-214)
        Fewer parties have added noise than the mechanism counts on.
    """
    mechanism.enough(len(terms.names))
    units = mechanism.at_server(signed(total), bound, terms.asked.layout, entropy)
    return terms.result(units)
