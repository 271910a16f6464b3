"""Totals of one party's own columns: a few sums over the common people, which are released as they are.

The party adds up itself what its local function makes of each person, so that a guard sees the rows that it looks at.

Who sees : the hub, and whoever reads the results. No row of a person leaves.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import AtParty
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.question import travels
from hedgerow.crypto.peer_protocol import PeerProtocol
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.errors import ContributionInvalid, MessageRefused

from .rows import of_shape, rows_of

MOST = 64
"""Numbers of a total, at most."""


@travels
@dataclass(frozen=True)
class OwnTotal(PeerProtocol):
    """A total of one party."""

    @property
    def name(self) -> str:
        return "a party's own total"

    @property
    def shows(self) -> str:
        return "the server sees sums over all common people of one party's columns"

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """The party's side."""
        rows = rows_of(at.made(), len(at.party.w), at.question.name)
        total = rows.sum(0, dtype=np.float64)
        if not 0 < len(total) <= MOST or not np.isfinite(total).all():
            raise ContributionInvalid(
                f"{at.question.name} has {len(total)} columns, or such that are not finite.",
                remedy=f"Return at most {MOST} finite numbers for each person.",
            )
        yield {HUB: struct.pack("<Q", len(total)) + total.tobytes()}

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Array]:
        """The server's side: the total, as it came."""
        letters = yield Letters()
        if len(letters) != 1 or len(raw := next(iter(letters.values()))) < 8:
            raise MessageRefused("a total did not come from one party.", remedy="Start anew.")
        n = struct.unpack_from("<Q", raw)[0]
        return np.array(of_shape(raw[8:], "<f8", (n if n <= MOST else 0,), next(iter(letters))))

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Array) -> Inbox:
        """The total, for the program."""
        return Inbox(answered, Layout((("", result.shape),)), total=result, masked=True)
