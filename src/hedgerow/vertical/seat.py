"""Seats: to whom a sum goes whose rows are records. It is never released to the world.

    HubSeat     the hub, which holds no data: totals of all parties behind masks, in an order that the parties alone know
    PartySeat   named parties: rows of some parties, sealed to those who shall know them, who then run a local function

Who sees: the hub, of its seat, totals without knowing whose they are; the same record is linked between two openings only by
its value. Parties see nothing of one another's rows but what is addressed to them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import AtParty
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.question import travels
from hedgerow.crypto.context import description_digest
from hedgerow.crypto.keys import derive
from hedgerow.crypto.peer_protocol import PeerProtocol
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.errors import MessageRefused, NotAligned

from .align import GROUP
from .rows import decoded, encoded, masked, of_shape, parts, rows_of, secret_order

ORDER = "last order"
"""The entry of a desk with the key of the order in which the hub saw rows last."""

OPENINGS = "openings at the hub"
LIMITS = "limits"
"""The entry of a desk that may say `openings`, the most that this party allows."""

MOST_OPENINGS = 64
"""Columns of rows that a study may open to the hub, where a party says nothing else."""

_HEAD = struct.Struct("<QQ")
WIDE = 1 << 40


@travels
@dataclass(frozen=True)
class HubSeat(PeerProtocol):
    """The hub's seat.

    Parameters
    ----------
    n : int
        Common people.
    """

    n: int

    @property
    def name(self) -> str:
        return "rows for the hub"

    @property
    def shows(self) -> str:
        return "the hub sees totals of all parties record by record, in an order that it does not know"

    def foreseen(self, outbox: Outbox) -> Outbox:
        """Rows are records."""
        return replace(outbox, rows=True, unforeseen=False, layout=None)

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side: masked rows in the secret order."""
        rows = rows_of(at.made(), self.n, at.question.name)
        _count_openings(at, rows.shape[1])
        group = at.desk.get(GROUP)
        if group is None:
            raise NotAligned(f"{at.party.id} has no secret in common with the others.", remedy="Align the parties first.")
        key = derive(group["key"], "order of rows", at.context)
        words = masked(encoded(rows, len(at.names)), shared, at.names, at.context, "hub's seat")
        raw = words[secret_order(key, self.n)].tobytes()
        head = _HEAD.pack(*words.shape)
        for part in parts(raw):
            yield {HUB: head + part}
            head = b""
        at.desk.put(ORDER, {"key": key})  # the hub has the rows of all parties now

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Array]:
        """The server's side: the total."""
        came: dict[str, bytes] = dict.fromkeys(names, b"")
        while not all(_complete(raw, self.n) for raw in came.values()):
            letters = yield Letters()
            if not letters:
                raise MessageRefused("rows did not come from all parties.", remedy="Start anew.")
            for name, letter in letters.items():
                came[name] += letter
        k = _HEAD.unpack_from(came[names[0]])[1]
        total = sum(of_shape(came[name][_HEAD.size :], "<u8", (self.n, k), name) for name in names)
        return decoded(np.asarray(total, np.uint64))

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Array) -> Inbox:
        """The total, for the program."""
        return Inbox(answered, Layout((("", result.shape),)), total=result.reshape(-1), masked=True)


def _complete(raw: bytes, n: int) -> bool:
    if len(raw) < _HEAD.size:
        return False
    rows, k = _HEAD.unpack_from(raw)
    if rows != n or k > WIDE:
        raise MessageRefused(f"{rows} rows came of {n} common people.", remedy="Start anew.")
    return len(raw) >= _HEAD.size + 8 * n * k


def _count_openings(at: AtParty, columns: int) -> None:
    """Refuse one opening too many: with as many linked openings as a party has columns, the columns follow.

    Every column of rows is an opening.
    """
    before, limits = at.desk.get(OPENINGS), at.desk.get(LIMITS)
    n, most = (0 if before is None else int(before["n"])), MOST_OPENINGS if limits is None else int(limits["openings"])
    if n + columns > most:
        raise NotAligned(
            f"{n} columns of rows were opened to the hub in this study, and {columns} more would be more than the {most} that "
            f"{at.party.id} allows.",
            remedy="Fit fewer models, or take fewer steps.",
        )
    at.desk.put(OPENINGS, {"n": n + columns})


@travels
@dataclass(frozen=True)
class PartySeat(PeerProtocol):
    """Seats of parties.

    Parameters
    ----------
    senders : tuple of str
        Whose rows are added up.
    to : tuple of str
        Who receives the total; the hub alone, where it does a part of the work itself.
    then : callable, optional
        Local function of those who receive it.
    hidden : bool
        Whether rows of two senders or more go behind masks that cancel, so that each receiver sees their total alone, to 2^-33.
        Otherwise it sees each row, and adds them up in the senders' order, to the last bit.
    """

    senders: tuple[str, ...]
    to: tuple[str, ...]
    then: Callable[..., Any] | None
    hidden: bool = False

    @cached_property
    def digested(self) -> bytes:
        """Its digest, by which a party knows it again in later steps."""
        return description_digest(("party's seat", self.senders, self.to, self.then, self.hidden))

    @property
    def name(self) -> str:
        return "rows for " + ", ".join(self.to)

    @property
    def shows(self) -> str:
        if HUB in self.to:
            return f"the server sees rows of {', '.join(self.senders)}, record by record, of people whom it cannot name"
        return f"{', '.join(self.to)} alone see rows of {', '.join(self.senders)}; the server sees sizes of sealed letters"

    @property
    def repeatable(self) -> bool:
        """Where no mask would hide two draws of the same rows."""
        return not self._masks()

    def foreseen(self, outbox: Outbox) -> Outbox:
        """Rows are records."""
        return replace(outbox, rows=True, unforeseen=False, layout=None)

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side."""
        me, senders = at.party.id, self.senders
        own, outgoing = None, list[Letters]()
        if me in senders:
            own = np.asarray(at.made())
            to = [name for name in self.to if name != me]
            outgoing = [dict.fromkeys(to, part) for part in self._written(own, at, shared)] if to else []
        if me not in self.to:
            for letters in outgoing:  # noqa: UP028  a list cannot be sent what comes
                yield letters
            return
        came: dict[str, bytes] = {name: b"" for name in senders if name != me}
        while outgoing or not all(_arrived(raw) for raw in came.values()):
            for name, part in (yield outgoing.pop(0) if outgoing else {}).items():
                if name not in came:
                    raise MessageRefused(f"{name} sent rows that nobody asked for.", remedy="Start anew.")
                came[name] += part
        at.party.received = self._total(own, came, me)
        assert self.then is not None  # parties that receive have one
        at.then(self.then)

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Any]:
        """The server's side: it carries letters, or receives the total."""
        if HUB not in self.to:
            return super().hub(outbox, names)
        return self._received()

    def _received(self) -> Peer[Array]:
        came: dict[str, bytes] = dict.fromkeys(self.senders, b"")
        while not all(_arrived(raw) for raw in came.values()):
            letters = yield Letters()
            if not letters:
                raise MessageRefused("rows did not come from all senders.", remedy="Start anew.")
            for name, letter in letters.items():
                if name not in came:
                    raise MessageRefused(f"{name} sent rows that nobody asked for.", remedy="Start anew.")
                came[name] += letter
        return self._total(None, came, HUB)

    def _masks(self) -> tuple[str, ...]:
        others = tuple(name for name in self.senders if name not in self.to)
        return others if self.hidden and len(others) > 1 else ()

    def _written(self, rows: Array, at: AtParty, shared: PairSecrets) -> list[bytes]:
        among = self._masks()
        if at.party.id in among:
            rows = masked(encoded(rows, len(among)), shared, among, at.context, "party's seat")
        kind = rows.dtype.newbyteorder("<").str.encode().ljust(8)
        head = kind + struct.pack("<B", rows.ndim) + struct.pack(f"<{rows.ndim}Q", *rows.shape)
        return list(parts(struct.pack("<QH", rows.nbytes, len(head)) + head + np.ascontiguousarray(rows).tobytes()))

    def _total(self, own: Array | None, came: dict[str, bytes], me: str) -> Array:
        read = {name: _rows_in(raw, name) for name, raw in came.items()}
        if own is not None:
            read[me] = own
        shapes = {rows.shape for rows in read.values()}
        if len(shapes) != 1:
            raise MessageRefused(f"rows came in the shapes {sorted(shapes)}.", remedy="All senders return arrays of one shape.")
        among = self._masks()
        total: Any = None
        if among:
            words = np.zeros(next(iter(shapes)), np.uint64)
            for name in among:
                words = words + read[name]
            total = decoded(words)
        for name in self.senders:
            if name not in among:
                total = read[name] if total is None else total + read[name]
        return np.array(total)


def _arrived(raw: bytes) -> bool:
    return len(raw) >= 10 and len(raw) >= 10 + sum(struct.unpack_from("<QH", raw))


def _rows_in(raw: bytes, sender: str) -> Array:
    """Rows as they were sent."""
    n, head = struct.unpack_from("<QH", raw)
    kind, ndim = raw[10:18].strip().decode("ascii", "replace"), raw[18]
    if kind not in ("<f4", "<f8", "<f2", "<u8", "<i8", "|u1", "|b1") or head != 9 + 8 * ndim or len(raw) != 10 + head + n:
        raise MessageRefused(f"{sender} sent rows that cannot be read.", remedy="Both sides run the same version.")
    return of_shape(raw[10 + head :], kind, struct.unpack_from(f"<{ndim}Q", raw, 19), sender)
