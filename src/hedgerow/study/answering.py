"""The engine of rehearsals: made-up parties are alike, so that of many a hundred answer for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.engines import InProcess

MOST_ASKED = 100
"""Parties that compute an answer to a question."""


@dataclass(frozen=True)
class FewAnswer:
    """Reaches all parties; a sum is that of the first `MOST_ASKED`, times as many as go into all of them.

    Questions whose answers parties keep something of, or that show rows, and steps of conversations go to everybody.
    """

    everybody: InProcess

    @property
    def parties(self) -> Sequence[str]:
        return self.everybody.parties

    def exchange(self, outbox: Outbox) -> Inbox:
        plain = outbox.step is None and outbox.question.verb == "sum" and not (outbox.keeps_state or outbox.keep_rows)
        if not plain or len(outbox.ids) <= MOST_ASKED:
            return self.everybody.exchange(outbox)
        few = self.everybody.exchange(replace(outbox, ids=outbox.ids[:MOST_ASKED]))
        times = len(outbox.ids) // MOST_ASKED
        return replace(few, answered=tuple(outbox.ids), total=None if few.total is None else few.total * times)
