"""Alignments in one process: what parties learn, and every letter that went."""

from __future__ import annotations

from dataclasses import dataclass, field

from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi.alignment import Masked
from hedgerow.crypto.psi.curve import Curve25519
from hedgerow.crypto.psi.ids import IdRules
from hedgerow.crypto.psi.star import ALL
from hedgerow.crypto.streams import fresh

ANY = IdRules(least=0, ratio=2**31, small_domain="accepted")
"""Rules that refuse nothing but what is no id."""


@dataclass
class Tape:
    """Letters in the order in which they were carried."""

    letters: list[tuple[str, str, bytes]] = field(default_factory=list)

    def carried(self, sender: str, recipient: str, letter: bytes) -> None:
        self.letters.append((sender, recipient, letter))

    def came(self, recipient: str) -> list[bytes]:
        return [letter for _, to, letter in self.letters if to == recipient]

    def pipe(self, sender: str, recipient: str) -> bytes:
        """What one wrote to another after the two letters of the beginning."""
        return b"".join([letter for by, to, letter in self.letters if (by, to) == (sender, recipient)][2:])


def aligned(lists, rules=ANY, topology="star", told=ALL, pivot=None, entropy=fresh, tape=None, group=None):
    """`{party: (how many are common, AlignedRows)}` of lists of bytes by party."""
    names, masked = tuple(lists), Masked(group or Curve25519(), rules, topology, pivot)
    peers = {name: masked.side(name, names, ids, told, entropy) for name, ids in lists.items()}
    return meet(peers, tape and tape.carried)


def common_ids(lists, got):
    """Which ids each party has learned to be common, in the order it has learned."""
    return {name: [lists[name][i] for i in got[name][1].rows] for name in lists}
