"""Verified shares that are simulated: rows that no proof would let pass leave the total in the open, and no proof is made.

An honest party shortens a row that rounding made longer than its bound, by less than one part in a thousand, so that its proof
holds; so it is done here. Any row that is longer than that is refused, as aggregators refuse it. What proofs cannot tell is
not told here either: rows within the bound pass, whatever they say.

A total has the bits that it has of the protocol itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import SLACK
from hedgerow.core.engine import Inbox
from hedgerow.errors import RoundRefused

from .field_encoding import FieldEncoding
from .proved_rows import FIELD


def without_unproved(inbox: Inbox, encoding: FieldEncoding, least: int) -> Inbox:
    """The inbox of a server to which rows were proved, from one that has them.

    Parameters
    ----------
    inbox : Inbox
        With rows; those whose parties an engine has found to send too much count as refused.
    encoding : FieldEncoding
        What would be proved of each row.
    least : int
        The fewest parties of which there is a total.

    Raises
    ------
    RoundRefused (HR-241)
        Fewer rows than that are left.
    """
    if inbox.rows is None:
        return Inbox(inbox.answered, inbox.layout, inbox.total, masked=True)
    passes = fits(inbox.rows, encoding) & ~np.isin(inbox.answered, inbox.overlong)
    came, left = len(passes), int(passes.sum())
    if left < least:
        raise RoundRefused(
            f"{came - left} of {came} rows were refused, since they are not proved; {left} are left, {least} are needed, and "
            "nothing is released.",
            remedy="Ask more parties, or lower `least` of the aggregation. Whose rows were refused is told to nobody.",
        )
    total = np.zeros(encoding.size, np.int64)
    for row in inbox.rows[passes]:
        total += encoding.encode(row)
    answered = tuple(id for id, passed in zip(inbox.answered, passes, strict=True) if passed)
    found = Inbox(answered, inbox.layout, encoding.decode(FIELD.of(total)), masked=True)
    return replace(found, refused=came - left)


def fits(rows: Array, encoding: FieldEncoding) -> Array:
    """Which rows of shape (n, size) an honest party could have sent: none longer than what it would prove; shape (n,)."""
    found = np.isfinite(rows).all(1)
    at = 0
    for part in encoding.parts:
        own = rows[:, at : at + part.claim.size].astype(np.float64)
        limit = part.radius / part.step if encoding.whole else part.radius
        lengths = np.linalg.norm(own, {"l1": 1, "l2": 2, "linf": np.inf}[part.claim.norm], axis=1)
        found &= lengths <= limit * (1 + SLACK)
        at += part.claim.size
    return np.asarray(found)
