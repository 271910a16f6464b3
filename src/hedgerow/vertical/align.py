"""Alignment on the rails: parties agree on secrets, find the people that they have in common, and keep their order.

    keys        every two parties agree on a secret; the first party gives all of them a common one
    protocol    private set intersection, as `hedgerow.crypto.psi` says
    n           every party tells the hub how many are common: the same number, or nothing is aligned

A party keeps on its desk where the common records are, in an order that follows from secrets of the protocol. One list is
aligned once in a study: the difference of two alignments against a changed list would show a person.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.conversation import AtParty
from hedgerow.core.engine import Outbox
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.crypto.peer_protocol import PeerProtocol
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.psi.interface import AlignmentProtocol
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.errors import ArgumentInvalid, MessageRefused, NotAligned, SettingsInvalid, suggestion

GROUP = "group secret"
"""The entry of a desk with the secret that all parties have in common, and the hub lacks."""

MADE = "alignments made"


def entry_name(name: str) -> str:
    """Under which a desk has an alignment."""
    return f"alignment {name}"


@local
def people(broadcast: Any, party: Party, rng: Any, *, on: str) -> None:
    """What an alignment reads: the column by which people are known. Nothing of it leaves in the clear."""
    party[on]


@travels
@dataclass(frozen=True)
class Aligning(PeerProtocol):
    """One alignment.

    Parameters
    ----------
    by : AlignmentProtocol
    on : str
        The column by which people are known.
    alignment : str
        Its name.
    """

    by: AlignmentProtocol
    on: str
    alignment: str

    @property
    def name(self) -> str:
        return f"alignment by {self.by.name}"

    @property
    def shows(self) -> str:
        said: Mapping[str, str] = self.by.shows
        return said.get("hub", "the server sees sizes of sealed letters, and how many people are common")

    @property
    def agrees(self) -> bool:
        return True

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side."""
        me, names = at.party.id, at.names
        if at.desk.get(MADE) is not None:
            raise NotAligned(
                f"{me} has aligned its list in this study, or tried to, and a second alignment could show a person.",
                remedy="Use the alignment that there is, or begin a new study.",
            )
        ids = self.by.read(at.party[self.on])
        group = secrets.token_bytes(32)
        if me == names[0]:
            yield dict.fromkeys(names[1:], group)
        else:
            came = yield {}
            group = came.get(names[0], b"")
            if len(group) != 32 or len(came) != 1:
                raise MessageRefused("a party was not given the common secret.", remedy="Start anew.")
        at.desk.put(MADE, {"n": 0})  # a refusal tells of the lists as well
        found = yield from self.by.peer(me, names, ids)
        rows = np.asarray(found.rows, np.int64)
        yield {HUB: len(rows).to_bytes(8, "little")}
        at.desk.put(GROUP, {"key": group})
        at.desk.put(entry_name(self.alignment), {"rows": rows})
        at.desk.put(MADE, {"n": len(rows)})

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[int]:
        """The server's side: how many people are common."""
        told: dict[str, int] = {}
        while len(told) < len(names):
            came: Mapping[str, bytes] = yield Letters()
            told |= {name: int.from_bytes(letter, "little") for name, letter in came.items()}
        if len(set(told.values())) > 1:
            raise MessageRefused(
                "parties count different numbers of common people.", remedy="Look at their logs, and start anew."
            )
        return next(iter(told.values()))


def refuse_protocol(by: Any, names: Sequence[str]) -> None:
    """Refuse what is no protocol, and one after which a party would not know who is common."""
    if isinstance(by, type) or not callable(getattr(by, "peer", None)):
        called = f"the class {by.__name__}" if isinstance(by, type) else f"{by!r}"
        raise ArgumentInvalid(
            f"align: by={called}; it takes the settings of a protocol.",
            remedy="Give by=hr.vertical.X25519(), or hr.vertical.KKRT() for two long lists.",
        )
    if (learns := getattr(by, "learns", None)) is None:
        return
    if learns not in names:
        raise SettingsInvalid(f"learns={learns!r}: no party is called so.", remedy=suggestion(learns, names))
    raise SettingsInvalid(
        f"learns={learns!r}: {learns} alone would learn who is common, and the others could not put their rows in its order.",
        remedy="Leave learns out: all parties of an alignment learn which of their own people are common. It is for `by.peer` "
        "alone.",
    )
