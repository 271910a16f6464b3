"""Inboxes of several hosts as one: parties that answered in the order asked, totals added in the order of the hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.core.engine import Inbox
from hedgerow.core.query import Query
from hedgerow.errors import BudgetExhausted, ContributionInvalid, HedgerowError, PartyDeclined


def grouped(ids: Sequence[str], home: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Parties by the host where they are, in the order asked; hosts in the order in which they come first."""
    found: dict[str, list[str]] = {}
    for id in ids:
        found.setdefault(home[id], []).append(id)
    return {host: tuple(there) for host, there in found.items()}


def merged(query: Query, inboxes: Sequence[Inbox], ids: Sequence[str]) -> Inbox:
    """One inbox of several, given in the order of their hosts.

    Raises
    ------
    ContributionInvalid (HR-222)
        Hosts returned different keys or shapes.
    """
    codes = {id: code for inbox in inboxes for id, code in inbox.codes.items()}
    letters = {id: letter for inbox in inboxes for id, letter in inbox.letters.items()}
    came = {id for inbox in inboxes for id in inbox.answered}
    answered = tuple(id for id in ids if id in came)
    whole = [inbox for inbox in inboxes if inbox.layout is not None]
    if not whole:
        return Inbox(answered, letters=letters, codes=codes)
    layout = whole[0].layout
    for inbox in whole:
        if inbox.layout != layout:
            remedy = "Declare levels and shapes in the schema, so that every party returns the same keys and shapes."
            raise ContributionInvalid(f"{query.name}: one party contributed {layout}, another {inbox.layout}.", remedy=remedy)
    totals = [inbox.total for inbox in whole if inbox.total is not None]
    total = None
    if totals:
        total = totals[0].copy()
        for part in totals[1:]:
            total += part
    rows = None
    if any(inbox.rows is not None for inbox in whole):
        by_party = {
            id: row for inbox in whole if inbox.rows is not None for id, row in zip(inbox.answered, inbox.rows, strict=True)
        }
        rows = np.stack([by_party[id] for id in answered])
    return Inbox(answered, layout, total, rows, letters=letters, codes=codes)


def nobody(query: Query, codes: Mapping[str, str]) -> HedgerowError:
    """What to raise where every party that was asked declined."""
    if set(codes.values()) == {BudgetExhausted.code}:
        return BudgetExhausted(
            f"all {len(codes)} parties that were asked for {query.name} declined: their own budgets are spent.",
            remedy="What was released stands. Only the parties can allow more.",
            asked=True,
        )
    said = ", ".join(sorted(set(codes.values())))
    return PartyDeclined(
        f"all {len(codes)} parties that were asked for {query.name} declined: {said}.",
        codes=dict(codes),
        remedy="Each code has a page in docs/errors; the reasons are in the parties' own logs.",
    )
