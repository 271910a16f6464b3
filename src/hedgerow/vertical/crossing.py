"""A question of `cross` on the rails: shapes first, then the protocol of `hedgerow.crypto.cross`.

shapes      everybody tells everybody how many columns it has, and marks of what it remembers of earlier openings
products    the peers of `hedgerow.crypto.cross`
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import AtParty
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.question import travels
from hedgerow.crypto.context import description_digest
from hedgerow.crypto.cross.bits import Bits, ColumnReach, Products, choose, record_bound
from hedgerow.crypto.cross.dealer import hub_peer
from hedgerow.crypto.cross.letters import exchange
from hedgerow.crypto.cross.noise import share_of_noise
from hedgerow.crypto.cross.party import party_peer
from hedgerow.crypto.cross.ring import decode, signed
from hedgerow.crypto.cross.terms import Terms
from hedgerow.crypto.keys import derive
from hedgerow.crypto.peer_protocol import PeerProtocol, PeerSide
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.errors import ContributionInvalid, MessageRefused, NotAligned

from .few import refuse_few
from .openings import of_desk, to_desk
from .rows import rows_of, secret_order
from .seat import ORDER

log = logging.getLogger("hedgerow")

_SHAPE = struct.Struct("<II")
MARK = 8
"""Bytes that stand for what a party remembers of another's openings."""

Widths = dict[str, tuple[int, int]]
"""Columns of each party on the left and on the right."""


@travels
@dataclass(frozen=True)
class Crossing(PeerProtocol):
    """One question, as parties are told it.

    Parameters
    ----------
    n : int
        Common people.
    right : callable, optional
        Local function of the right rows.
    left_reach, right_reach : tuple of (party, ColumnReach)
    hub_reach : ColumnReach, optional
        Of the hub's rows or weights, where it has some.
    weighted : bool
        Whether they are weights.
    lengths : (float, float), optional
        Largest lengths of one person's row at each party on the left, and at each party and the hub on the right.
    shapes : tuple of (party, columns on the left, columns on the right)
        Behind noise, where parties have to keep to them.
    bits : Bits, optional
        Where noise has fixed them; otherwise they follow from the shapes of what parties have.
    least : int
        Fewest people whom a party's column may single out where no noise is added; a station keeps its own number besides.
    pairs : bool
        Whether two columns are also compared with one another.
    """

    n: int
    right: Any = None
    left_reach: tuple[tuple[str, ColumnReach], ...] = ()
    right_reach: tuple[tuple[str, ColumnReach], ...] = ()
    hub_reach: ColumnReach | None = None
    weighted: bool = False
    lengths: tuple[float, float] | None = None
    shapes: tuple[tuple[str, int, int], ...] = ()
    bits: Bits | None = None
    least: int = 0
    pairs: bool = True

    @property
    def name(self) -> str:
        return "products between parties"

    @property
    def shows(self) -> str:
        return "the server sees seeds of pads, and totals behind masks that cancel"

    # ---- what is known beforehand -------------------------------------------------------------------------------------
    def foreseen(self, outbox: Outbox) -> Outbox:
        """Behind noise shapes follow from the declared reaches, and the noise from the bound that is proved of them."""
        if outbox.release.mechanism is None:
            return replace(outbox, rows=False, unforeseen=False)
        asked = self.asked(tuple(outbox.ids), self.declared(tuple(outbox.ids)))
        bound = record_bound(asked, self.bits or choose(asked))
        return replace(outbox, rows=False, unforeseen=False, layout=asked.layout, release=replace(outbox.release, bounds=bound))

    def declared(self, names: tuple[str, ...]) -> Widths:
        """Columns of each party, as they were announced."""
        told = {name: (left, right) for name, left, right in self.shapes}
        return {name: told.get(name, (0, 0)) for name in names}

    def asked(self, names: tuple[str, ...], widths: Widths) -> Products:
        """What is multiplied, by the shapes of what parties have.

        Raises
        ------
        ContributionInvalid (HR-222)
            Right rows have different numbers of columns.
        """
        left, right = dict(self.left_reach), dict(self.right_reach)
        holders = [name for name in names if widths[name][1]]
        hub = [] if self.hub_reach is None or self.weighted else [len(self.hub_reach.largest or ())]
        columns = {widths[name][1] for name in holders} | set(hub)
        if len(columns) > 1 or (self.right is not None and not columns):
            raise ContributionInvalid(
                f"right rows have {' and '.join(map(str, sorted(columns))) or 'no'} columns.",
                remedy="Parties and hub have as many; a party that has nothing returns zeros, or an array of shape (n, 0).",
            )
        if not any(d for d, _ in widths.values()):
            raise ContributionInvalid("nobody has columns on the left.", remedy="Return an array (n, d) somewhere.")
        return Products(
            self.n,
            tuple(widths[name][0] for name in names),
            max(columns, default=0),
            tuple(left.get(name, ColumnReach()) for name in names),
            tuple(right.get(name, ColumnReach()) for name in holders),
            self.hub_reach,
            self.weighted,
            *(self.lengths or ()),
        )

    def terms(self, question: Any, names: tuple[str, ...], widths: Widths) -> Terms:
        """The question as the peers have it."""
        asked = self.asked(names, widths)
        study = str([dict(preparation.settings) for preparation in question.view]).encode()
        holders = tuple(name for name in names if widths[name][1])
        return Terms(study, str(question.place).encode(), names, asked, self.bits or choose(asked), holders)

    # ---- the party's side -----------------------------------------------------------------------------------------------
    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side."""
        me, names = at.party.id, at.names
        mechanism, entropy = at.release.mechanism, at.stream("pads").entropy
        rows = (self._rows if mechanism is None else self._rows_behind_noise)(at)
        memory = of_desk(at.desk, names, entropy)
        kept = at.desk.get(ORDER)
        mark = bytes(MARK) if kept is None else derive(kept["key"], "mark of an order", b"")[:MARK]
        widths, memory, alike = yield from _shapes(me, names, rows, memory, mark)
        terms = self.terms(at.question, names, widths)
        left, right = self._lawful(me, rows, noisy=mechanism is not None)
        noise = None if mechanism is None else self._noise(at, terms, mechanism)
        order = None
        if terms.hub_columns:
            if kept is None:
                raise NotAligned("the hub has rows, and no sum whose rows it knows came before.", remedy="Ask for `sum` first.")
            if not alike:
                raise NotAligned(
                    "parties have other orders of the hub's rows: the last sum failed.", remedy="Ask for `sum` again."
                )
            order = secret_order(kept["key"], self.n)
        pairs = {name: shared.secret(name) for name in names if name != me}
        memory = yield from party_peer(
            terms, me, left, right if me in terms.holders else None, order, pairs, memory, entropy, noise, self._about(at)
        )
        to_desk(at.desk, names, memory)

    def _about(self, at: AtParty) -> tuple[bytes, bytes] | None:
        """How the question describes columns; nothing behind noise, which does not cover that they are as before."""
        if at.release.mechanism is not None:
            return None
        told = (at.question.broadcast, at.question.view)
        return description_digest((at.question.local, *told)), description_digest((self.right, *told))

    def _rows(self, at: AtParty) -> tuple[Array, Array]:
        """What this party has on the left and on the right."""
        left = rows_of(at.made(), self.n, at.question.name).astype(np.float64)
        if self.right is None:
            return left, np.zeros((self.n, 0))
        made = at.seen(self.right(at.question.broadcast, at.party, at.stream("right")))
        return left, rows_of(made, self.n, "the function on the right").astype(np.float64)

    def _rows_behind_noise(self, at: AtParty) -> tuple[Array, Array]:
        """The same in the declared shapes: zeros for what fails or has another shape, which would tell of records."""
        due = self.declared(at.names)[at.party.id]
        try:
            left, right = self._rows(at)
            if (left.shape[1], right.shape[1]) == due:
                return left, right
            why = f"{left.shape[1]} and {right.shape[1]} columns, where {due[0]} and {due[1]} are declared"
        except Exception as error:  # whatever a local function makes of records
            why = f"{type(error).__name__}: {error}"
        log.warning("%s counts as zeros at %s: %s", at.question.name, at.party.id, why)
        return np.zeros((self.n, due[0])), np.zeros((self.n, due[1]))

    def _lawful(self, me: str, rows: tuple[Array, Array], *, noisy: bool) -> tuple[Array, Array]:
        """Rows within their reach: cut behind noise, where a refusal would tell of them; refused beyond it otherwise.

        Without noise columns that single out few people are refused too.
        """
        reaches = dict(self.left_reach).get(me, ColumnReach()), dict(self.right_reach).get(me, ColumnReach())
        if noisy:
            lengths = self.lengths or (None, None)
            left, right = (reach.cut(one, length) for reach, one, length in zip(reaches, rows, lengths, strict=True))
            return left, right
        for reach, one, side in zip(reaches, rows, ("left", "right"), strict=True):
            if one.shape[1]:
                reach.refuse(one, f"what {me} has on the {side}")
                refuse_few(one, self.least, f"what {me} has on the {side}", pairs=self.pairs)
        return rows

    def _noise(self, at: AtParty, terms: Terms, mechanism: Mechanism) -> Any:
        """What draws this party's share, after a look at the bound from which it is scaled."""
        bound = record_bound(terms.asked, terms.bits)
        if at.release.bounds != bound:
            raise MessageRefused(
                f"noise for a bound of {at.release.bounds}, where what a record adds is within {bound}.",
                remedy="Both sides run the same version.",
            )
        mechanism.enough(len(terms.names))  # whoever opens the total has seen it
        return share_of_noise(mechanism, bound, terms.asked.layout, at.stream("noise").entropy)

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Any]:
        """The server's side, where it has no rows."""
        return _at_hub(self, None, outbox, names)

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Any) -> Inbox:
        """The total, for the program: whole steps where noise is added, numbers otherwise."""
        terms, words = result
        total = signed(words) if outbox.release.mechanism is not None else decode(words, terms.bits.total)
        return Inbox(answered, terms.asked.layout, total=total, masked=True)


@dataclass(frozen=True)
class Dealing(PeerProtocol):
    """The same question at the server, with its rows, which do not travel."""

    crossing: Crossing
    rows: Array | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.crossing.name

    @property
    def shows(self) -> str:
        return self.crossing.shows

    @property
    def aggregation(self) -> PeerProtocol:
        return self.crossing

    def correspondents(self, ids: tuple[str, ...]) -> Mapping[str, PeerSide]:
        """Parties' sides of the question without the rows."""
        return self.crossing.correspondents(ids)

    def foreseen(self, outbox: Outbox) -> Outbox:
        """As of the question."""
        return self.crossing.foreseen(outbox)

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """As of the question."""
        return self.crossing.peer(at, shared)

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Any]:
        """The server's side."""
        return _at_hub(self.crossing, self.rows, outbox, names)

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Any) -> Inbox:
        """As of the question."""
        return self.crossing.inbox(outbox, answered, result)


def _at_hub(crossing: Crossing, rows: Array | None, outbox: Outbox, names: tuple[str, ...]) -> Peer[Any]:
    widths, _, _ = yield from _shapes(HUB, names, None, None)
    terms = crossing.terms(outbox.question, names, widths)
    words = yield from hub_peer(terms, rows, outbox.stream("server", "pads").entropy)
    return terms, words


def _shapes(
    me: str, names: tuple[str, ...], rows: tuple[Array, Array] | None, memory: Any, order: bytes = b""
) -> Generator[Letters, Mapping[str, bytes], tuple[Widths, Any, bool]]:
    """Tell everybody shapes and marks of what is remembered; forget openings that are not remembered alike.

    Also whether all parties have the same order of the rows that the hub saw last.
    """
    length = _SHAPE.size + MARK * (len(names) + 1)
    own = b""
    if rows is not None:
        own = _SHAPE.pack(rows[0].shape[1], rows[1].shape[1]) + b"".join(memory.mark(me, name, MARK) for name in names) + order
    everyone = (*names, HUB)
    due = {name: (length,) for name in names if name != me}
    came = yield from exchange(me, {name: own for name in everyone if name != me}, everyone, due)
    told = {name: own if name == me else came[name] for name in names}
    if memory is not None:
        for place, name in enumerate(names):
            start = _SHAPE.size + MARK * place
            if len({letter[start : start + MARK] for letter in told.values()}) > 1:
                memory = memory.without(me, name)
    widths: Widths = {}
    for name, letter in told.items():
        left, right = _SHAPE.unpack_from(letter)
        widths[name] = left, right
    return widths, memory, len({letter[-MARK:] for letter in told.values()}) == 1
