"""Rows that come from elsewhere are held to their bound where they arrive: one that is longer counts as zero.

Parties are asked to clip, and one that lies could send anything. What it sends moves a total by at most the bound against a
party that is absent, and by at most twice the bound against its honest row. Of a station with several parties the total alone
is seen, and is held to all their bounds together.
Behind secure aggregation nothing is seen, so nothing can be held. Neither can rows to which parties have added noise, nor rows
bounded per record, since the server does not know how many records a party has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.core.engine import Inbox, Outbox


def without_overlong(outbox: Outbox, inbox: Inbox) -> tuple[Inbox, tuple[str, ...]]:
    """An inbox in which what is too long counts as zero, and the parties that sent it."""
    layout, release = inbox.layout, outbox.release
    if layout is None or inbox.masked or outbox.step is not None:
        return inbox, ()
    if inbox.rows is not None:
        short = release.within(inbox.rows, layout)
        rows = np.where(short[:, None], inbox.rows, np.zeros(1, inbox.rows.dtype))
        added = rows.sum(0, dtype=np.int64 if rows.dtype.kind == "i" else np.float64)
        named = tuple(id for id, fits in zip(inbox.answered, short, strict=True) if not fits)
        return replace(inbox, rows=rows, total=None if inbox.total is None else added), named
    if inbox.total is None or release.within(inbox.total[None], layout, len(inbox.answered)).all():
        return inbox, ()
    return replace(inbox, total=np.zeros_like(inbox.total)), inbox.answered


def held_to_bounds(outbox: Outbox, inbox: Inbox) -> Inbox:
    """An inbox in which what is too long counts as zero and its senders are named, with the rows that were asked for."""
    held, named = without_overlong(outbox, inbox)
    return replace(held, rows=held.rows if outbox.keep_rows else None, overlong=named)
