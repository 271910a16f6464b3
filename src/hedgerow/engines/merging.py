"""Inboxes of several hosts as one: parties that answered in the order asked, totals added in the order of the hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.engine import Inbox
from hedgerow.errors import ContributionInvalid


def grouped(ids: Sequence[str], home: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Parties by the host where they are, in the order asked; hosts in the order in which they come first."""
    found: dict[str, list[str]] = {}
    for id in ids:
        found.setdefault(home[id], []).append(id)
    return {host: tuple(there) for host, there in found.items()}


def merged(query: str, ids: Sequence[str], inboxes: Sequence[Inbox]) -> Inbox:
    """One inbox of several: totals added in their order, parties and rows in the order in which they were asked."""
    layout: Layout | None = None
    for one in inboxes:
        if layout is not None and one.layout not in (None, layout):
            remedy = "Declare levels and shapes in the schema, so that every party returns the same keys and shapes."
            raise ContributionInvalid(f"{query}: parties contributed different keys or shapes.", remedy=remedy)
        layout = layout or one.layout
    came = tuple(chain.from_iterable(one.answered for one in inboxes))
    letters = {id: letter for one in inboxes for id, letter in one.letters.items()}
    order: Array | None = None
    if came != tuple(ids):
        place = {id: i for i, id in enumerate(ids)}
        order = np.argsort([place[id] for id in came], kind="stable")
        came = tuple(came[i] for i in order)
    totals = [one.total for one in inboxes if one.total is not None]
    rows = [one.rows for one in inboxes if one.rows is not None]
    return Inbox(
        came,
        layout,
        _added(totals) if totals else None,
        (np.concatenate(rows) if order is None else np.concatenate(rows)[order]) if rows else None,
        masked=any(one.masked for one in inboxes),
        letters={id: letters[id] for id in came if id in letters} if letters else {},
        codes={id: code for one in inboxes for id, code in one.codes.items()},
        overlong=tuple(id for one in inboxes for id in one.overlong),
    )


def _added(totals: Sequence[Array]) -> Array:
    whole = all(total.dtype.kind == "i" for total in totals)
    found = np.zeros(totals[0].shape, np.int64 if whole else np.float64)
    for total in totals:
        found += total
    return found
