"""KKRT as an alignment: settings, announcements, who receives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import travels
from hedgerow.core.randomness import Entropy
from hedgerow.errors import AlignmentRefused, IdsInvalid, MessageRefused, SettingsInvalid

from ...cohort import lawful_least
from ...messages import MessageForm, Whole, digest, exactly
from ...peers import HUB, Peer
from ...streams import fresh
from ..ids import IdRules
from ..interface import AlignedRows
from .base_ot import POINT_BYTES, SeedOffer, group
from .code import SALT_BYTES
from .protocol import TwoLists, letter_of, receive, send

_ANNOUNCED = MessageForm(
    "kkrt", size=Whole(0, 2**31 - 1), part=exactly(SALT_BYTES), point=exactly(POINT_BYTES), rules=exactly(32)
)

MOST = 10**9
"""Ids of a list whose bins are counted in 32 bits."""


@travels
@dataclass(frozen=True)
class KKRT:
    """Alignment of two large lists: oblivious transfers extended by symmetric ciphers, some microseconds a pair of ids.

    Two parties that follow the protocol (semi-honest) learn how long the other's list is and which of their own ids the other
    has. The server carries sealed letters and learns their sizes. A party can put ids on its list that it does not have
    records of, and learns whether the other has them: `most` and `ratio` limit that, nothing prevents it.

    Parameters
    ----------
    least : int
        Fewest common records, at least 3; with fewer the alignment is refused. The party that receives has then seen which
        they are.
    most : int
        Longest list.
    ratio : float
        The longest list may be so many times as long as the shortest.
    normal, small_domain : str
        As of `IdRules`.
    learns : str, optional
        The one party that learns the result; the other gets no rows, only that there were enough. Both learn it by default. For
        `peer` alone: `align` refuses it, since both parties need the order.

    References
    ----------
    V. Kolesnikov, R. Kumaresan, M. Rosulek and N. Trieu, Efficient Batched Oblivious PRF with Applications to Private Set
    Intersection, CCS 2016.
    """

    least: int = 10
    most: int = 10_000_000
    ratio: float = 100.0
    normal: str = "nfkc-casefold"
    small_domain: str = "refused"
    learns: str | None = None

    def __post_init__(self) -> None:
        _ = self.rules
        lawful_least(self.least)
        if self.most > MOST:
            raise SettingsInvalid(f"most={self.most}, and KKRT takes {MOST} at most.", remedy="Say less.")

    @cached_property
    def rules(self) -> IdRules:
        """What lists of ids must be."""
        return IdRules(self.least, self.most, self.ratio, self.normal, self.small_domain)

    @property
    def name(self) -> str:
        return "kkrt"

    @property
    def shows(self) -> Mapping[str, str]:
        learns = "how long the other's list is, and which of its own ids the other has"
        alone = "how long the other's list is, and that at least `least` ids are common"
        return {
            "party": learns if self.learns is None else alone,
            **({} if self.learns is None else {self.learns: learns}),
            "hub": "the sizes of sealed letters, which tell how long both lists are"
            + (" and how many ids are common" if self.learns is None else ""),
            "world": "nothing",
        }

    def read(self, values: Sequence[Any] | Array) -> list[bytes]:
        """Bring a column of ids into the normal form; as `IdRules.read`."""
        return self.rules.read(values)

    def peer(
        self, me: str, names: tuple[str, ...], ids: Sequence[bytes], *, entropy: Entropy | None = None
    ) -> Peer[AlignedRows]:
        """Return one party's side.

        Raises
        ------
        SettingsInvalid (HR-511)
            There are not two parties.
        IdsInvalid (HR-413)
            An id stands in the list twice: equal ids would share their three bins. No letter was written.
        MissingExtra (HR-105)
            PyNaCl is not installed.
        """
        if len(set(names)) != 2 or len(names) != 2 or me not in names or HUB in names or self.learns not in (None, *names):
            raise SettingsInvalid(
                f"KKRT aligns two parties, not {len(names)}: {', '.join(map(repr, names))}, of whom {me!r} is this one"
                + ("." if self.learns is None else f", and {self.learns!r} learns the result."),
                remedy="Align more than two by X25519.",
            )
        twice = _repeated(ids)
        if twice:
            raise IdsInvalid(f"{twice} of {len(ids)} ids are there already.", remedy="Bring the rows of an id together.")
        group()
        return self._aligned(me, names, ids, entropy or fresh)

    def _aligned(self, me: str, names: tuple[str, ...], ids: Sequence[bytes], entropy: Entropy) -> Peer[AlignedRows]:
        (other,) = set(names) - {me}
        offer, rules = (
            SeedOffer(entropy),
            digest("kkrt rules", self.rules.digest, (self.learns or "").encode(), "\0".join(names).encode()),
        )
        mine = _ANNOUNCED.pack(size=len(ids), part=entropy(SALT_BYTES), point=offer.letter, rules=rules)
        theirs = letter_of((yield {other: mine}), other)
        size, _, point, their_rules = _ANNOUNCED.unpack(theirs)
        if their_rules != rules:
            raise MessageRefused(
                "the other party aligns under other settings.", remedy="Give both the same `KKRT(...)`, and names in one order."
            )
        sizes = {me: len(ids), other: size}
        self.rules.check_sizes(sizes)
        letters = {me: mine, other: theirs}
        run = TwoLists(other, size, digest("kkrt session", *(letters[name] for name in names)), self.learns is None, self.least)
        # Columns cost more than tags: the shorter list is placed in bins, the first named of equal ones.
        receiver = self.learns or min(names, key=lambda name: sizes[name])
        rows = yield from receive(ids, run, offer, entropy) if me == receiver else send(ids, run, point, entropy)
        if rows is None:
            raise AlignmentRefused(
                f"fewer than {self.least} people are in both lists.",
                remedy=f"{receiver} has seen which they are, nobody else. Align larger lists.",
            )
        return AlignedRows(np.asarray(rows, np.int64), {name: sizes[name] for name in names})


def _repeated(ids: Sequence[bytes]) -> int:
    """Return how many ids stand in the list already; Python's keyed hashes, once sorted, mostly show that none does."""
    hashes = np.sort(np.fromiter(map(hash, ids), np.int64, len(ids)))
    return len(ids) - len(set(ids)) if bool((hashes[1:] == hashes[:-1]).any()) else 0
