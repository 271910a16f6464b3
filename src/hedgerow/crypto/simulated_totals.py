"""Totals of simulations in which a protocol is accounted for and not carried out.

Of rows to be proved those leave the total in the open that no proof would let pass (`unproved_rows`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.randomness import Entropy

from .field_encoding import FieldEncoding
from .unproved_rows import without_unproved


def simulated_total(inbox: Inbox, outbox: Outbox, encoding: FieldEncoding | None = None, least: int = 0) -> Inbox:
    """What a server would learn of the rows of an inbox: their total, with the noise of aggregators, without rows refused.

    Parameters
    ----------
    encoding : FieldEncoding, optional
        What would be proved of each row.
    least : int
        The fewest rows that may be left then.
    """
    return with_noise(without_rows(inbox) if encoding is None else without_unproved(inbox, encoding, least), outbox)


def without_rows(inbox: Inbox) -> Inbox:
    """An inbox as a server sees it from which rows are hidden."""
    return Inbox(inbox.answered, inbox.layout, inbox.total, masked=True)


def bytes_of(outbox: Outbox, place: int) -> Entropy:
    """The bytes from which an aggregator in this process draws its noise for one question: its own; by the seed, if any."""
    return outbox.stream("server", f"noise of aggregator {place}").entropy


def with_noise(inbox: Inbox, outbox: Outbox) -> Inbox:
    """An inbox whose total has the noise of every aggregator, where a simulation adds it in their place."""
    mechanism, bounds, layout = outbox.release.mechanism, outbox.release.bounds, inbox.layout or outbox.layout
    if inbox.total is None or layout is None or mechanism is None or bounds is None or mechanism.at != "aggregators":
        return inbox
    noise, total = mechanism.each_adds(bounds, outbox.release.code(layout)), inbox.total.astype(np.int64)
    for place in range(mechanism.aggregators if noise.runs else 0):
        total = total + noise.draw(mechanism.sampler, bytes_of(outbox, place))
    return replace(inbox, total=total)
