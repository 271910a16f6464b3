"""Parties that act in a simulation: below programs, channels and ledgers, which are asked and charged as ever.

    all        <- every party answers honestly, so that honest rows have the bits that they have without liars
    liars      <- asked again, with the records that they made up
    lie        what their local function returned is changed, then clipped, noised and coded as a party's own code does
    forge      what would have left them is changed, after all lies

Where the server sees rows it holds them to their bound (`overlong`); behind masks nobody can.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.attacks.acts.act import Moment, RowsAct
from hedgerow.attacks.acts.liars import Liars
from hedgerow.core.answer import closed
from hedgerow.core.arrays import Array, Layout, flatten
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.later import is_later
from hedgerow.core.party import Parties
from hedgerow.core.release import LOST, Release
from hedgerow.core.state import State, StateStore, stacked
from hedgerow.errors import SettingsInvalid

Ask = Callable[[Outbox, Sequence[str], Parties], Inbox]
"""How an engine asks parties: question, who, and the parties with their records."""


@dataclass
class ProposalsHeard:
    """What parties keep, and what liars wanted to keep last: an act in rows changes what a compression left out of them."""

    states: StateStore
    of: Collection[str]
    proposed: dict[str, tuple[State, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.states)

    @property
    def behind(self) -> StateStore:
        """The store itself, which a checkpoint writes or refers to."""
        return self.states

    def settle(self, id: str, counted: Mapping[str, int]) -> State:
        return self.states.settle(id, counted)

    def propose(self, id: str, state: State, asked_in: int) -> None:
        if id in self.of:
            self.proposed[id] = dict(state), asked_in
        self.states.propose(id, state, asked_in)

    def committed(self, counted: Mapping[str, int]) -> Mapping[str, State]:
        return self.states.committed(counted)

    def restore(self, states: Mapping[str, State]) -> None:
        self.states.restore(states)


def remembers(outbox: Outbox) -> bool:
    """Whether a compression keeps at the parties what it left out."""
    by = outbox.release.compression
    return by is not None and by.remembers


@dataclass
class Acting:
    """Liars among the parties of an engine.

    Attributes
    ----------
    liars : Liars
    """

    liars: Liars
    _made: tuple[Parties, Parties] | None = field(default=None, repr=False)

    def answers(self, outbox: Outbox, ids: Sequence[str], held: Parties, ask: Ask) -> Inbox:
        """What comes back of a question when liars act; without one among those asked, what came back before."""
        if self.liars.lying and not isinstance(held.states, ProposalsHeard):
            held.states = ProposalsHeard(held.states, self.liars.parties)
        lying = [id for id in self.liars.parties if id in set(ids)] if self.liars.act_in(outbox.question) else []
        if not lying or not self.liars.acts:
            return ask(outbox, ids, held)
        each = outbox.question.verb == "each"
        seen, theirs = replace(outbox, keep_rows=not each), self._records(held, outbox)
        raw = None if each else self._raw(seen, ids, lying, theirs, ask)
        honest = ask(seen, ids, held)
        if each or honest.rows is None or honest.layout is None:
            if self.liars.on_records:
                ask(seen, lying, theirs)  # what they keep follows from what they made up
            return honest
        where = [honest.answered.index(id) for id in lying]
        own = honest.rows[where]
        if self.liars.on_records:
            own = self._own(seen, lying, theirs, ask)
        own = self._lied(own, raw, seen, honest, lying, theirs)
        for act in self.liars.forging:
            known = {"own": own, "colluders": honest.rows[where], "all": honest.rows}[act.knows]
            own = self._told(act, own, known, outbox, honest)
        rows = honest.rows.copy()
        rows[where] = own
        total = rows.sum(0, dtype=np.int64 if rows.dtype.kind == "i" else np.float64)
        return replace(honest, rows=rows, total=total)

    def refuse_unclipped(self, outbox: Outbox) -> None:
        """Refuse a lie in rows that no clip of the party's own would limit.

        Raises
        ------
        SettingsInvalid (HR-511)
            The question is bounded per record.
        """
        if self.liars.lying and self.liars.parties and outbox.release.unit == "record":
            raise SettingsInvalid(
                f"{outbox.question.name} is bounded per record, and a lie in a whole row passes no clip of a record's.",
                remedy='Lie in the records, or forge the row: kind = "forge".',
            )

    def _own(self, outbox: Outbox, lying: Sequence[str], theirs: Parties, ask: Ask) -> Array:
        found = ask(outbox, lying, theirs)
        if found.rows is None or len(found.answered) != len(lying):
            raise SettingsInvalid("a party that lies did not answer.", remedy="Choose an act that its local function survives.")
        return found.rows

    def _raw(
        self, outbox: Outbox, ids: Sequence[str], lying: Sequence[str], theirs: Parties, ask: Ask
    ) -> tuple[Array, Array] | None:
        """What liars make before their channel, and what those make whom they see; None where there is no channel, or no lie.

        It is asked first: what parties keep is what they made when they were asked last.
        """
        if not self.liars.lying or outbox.release.bare:
            return None
        self.refuse_unclipped(outbox)
        bare = replace(outbox, release=Release())
        own = self._own(bare, lying, theirs, ask)
        everybody = any(act.knows == "all" for act in self.liars.lying)
        return own, self._own(bare, ids, theirs, ask) if everybody else own

    def _lied(
        self,
        own: Array,
        raw: tuple[Array, Array] | None,
        outbox: Outbox,
        honest: Inbox,
        lying: Sequence[str],
        theirs: Parties,
    ) -> Array:
        """The liars' rows after all lies in rows, closed once by each party's own channel; without such lies as they were."""
        assert honest.layout is not None
        assert honest.rows is not None
        if not self.liars.lying:
            return own
        told, everybody = (own, honest.rows) if raw is None else raw
        for act in self.liars.lying:
            told = self._told(act, told, everybody if act.knows == "all" else told, outbox, honest)
        which = np.array([theirs.position[id] for id in lying])
        kept = theirs.states
        if not remembers(outbox) or not isinstance(kept, ProposalsHeard):
            return closed(outbox, theirs, which, told, honest.layout, {}, stacked=True)
        before = [
            {key: v for key, v in theirs.states.settle(id, outbox.counted).items() if key.startswith(LOST)} for id in lying
        ]
        lost = stacked(before, fill=LOST)
        rows = closed(outbox, theirs, which, told, honest.layout, lost, stacked=True)
        for k, id in enumerate(lying):
            state, asked_in = kept.proposed[id]
            theirs.states.propose(id, state | {key: value[k] for key, value in lost.items()}, asked_in)
        return rows

    def _told(self, act: RowsAct, own: Array, seen: Array, outbox: Outbox, honest: Inbox) -> Array:
        """Rows after an act, in the type of `own`; their weights stay as they are."""
        assert honest.layout is not None
        rng = outbox.stream("liars", "act").generator
        told, layout = changed_part(honest.layout, own.shape[1], self.liars.keeps)
        moment = Moment(rng, layout, len(honest.answered), broadcast_of(outbox))
        mine = own[:, told]
        if act.knows == "own":
            made = np.concatenate([act.rows(row[None], row[None], moment) for row in mine])
        else:
            made = act.rows(mine, seen[:, told], moment)
        rows = own.copy()
        rows[:, told] = as_sent(made, own.dtype)
        return rows

    def _records(self, held: Parties, outbox: Outbox) -> Parties:
        """The parties with the records that liars made up, once for a run."""
        if not self.liars.on_records:
            return held
        if self._made is None or self._made[0] is not held:
            self._made = held, with_lies(held, self.liars, outbox)
        return self._made[1]


def changed_part(layout: Layout, size: int, keeps: Collection[str]) -> tuple[Array, Layout]:
    """Which numbers of a row an act changes, shape (size,), and their keys and shapes: all but those of the keys that it keeps.

    All are changed where nothing would be left, and of codes of a compression, which have no keys.
    """
    rest = Layout(tuple((key, shape) for key, shape in layout.shapes if key not in keeps))
    told = np.ones(size, bool)
    if size != layout.size or not rest.size:
        return told, layout
    for key, part in layout.slices.items():
        told[part] = key not in keeps
    return told, rest


def broadcast_of(outbox: Outbox) -> Array | None:
    """The numbers that parties were sent, flat."""
    told = outbox.question.broadcast
    return None if told is None else flatten(told)


def as_sent(rows: Array, dtype: np.dtype) -> Array:
    """Forged rows as numbers of the channel: whole ones within 62 bits on a grid."""
    if dtype.kind != "i":
        return rows.astype(dtype)
    return np.clip(np.rint(rows.astype(np.float64)), -(2.0**62), 2.0**62).astype(dtype)


def with_lies(held: Parties, liars: Liars, outbox: Outbox) -> Parties:
    """Parties of which the liars hold records that they made up; the others' columns are shared where nobody changed them.

    Raises
    ------
    SettingsInvalid (HR-511)
        Records stay in files, or are held by several parties; an act makes other columns, or another number of records.
    """
    if is_later(held.columns) or type(held) is not Parties:
        raise SettingsInvalid(
            "liars make up records of parties whose records stay in files, are shared, or are prepared by each.",
            remedy="Simulate from a table in memory, with a partition that gives each record to one party.",
        )
    columns = dict(held.columns)
    for name in liars.parties:
        i = held.position[name]
        part = slice(int(held.offsets[i]), int(held.offsets[i + 1]))
        own = {key: np.asarray(column[part]) for key, column in columns.items()}
        for k, act in enumerate(liars.on_records):
            rng = outbox.streams.stream(0, name, f"act {k}" if k else "act").generator
            made = act.records(own, rng)
            if wrong := [key for key, values in made.items() if key not in own or np.shape(values) != own[key].shape]:
                raise SettingsInvalid(
                    f"{type(act).__name__} makes a column {wrong[0]!r} that {name} does not hold in this shape.",
                    remedy="A liar changes columns that are there, and has as many records as before.",
                )
            own |= made
        for key, values in own.items():
            if values is not columns[key][part] and not np.array_equal(values, columns[key][part]):
                if columns[key] is held.columns[key]:
                    columns[key] = np.array(held.columns[key])
                columns[key][part] = values
    return held._same(held._like(columns, held.w))
