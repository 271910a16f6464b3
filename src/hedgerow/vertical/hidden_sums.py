"""Means by group where nobody learns who is in both tables: salary by gender, without saying whose salary is known.

    the groups' owner    learns how many people of each group the other has; it leaves out its groups of few people before
    the values' owner    learns sums of its values over them, of groups that are told
    hub, world           counts and sums of groups that are told

`federation.align` tells each party which of its people the other has; here nobody learns it. The price is encryption of every
value, and that nothing but sums by group comes out. See `hedgerow.crypto.psi.join_sums` for the protocol and what it refuses.

A list is joined once in a study, whatever comes of it: counts are exact, so that those of two joins could be subtracted.
For the same reason a party whose list has changed within a study refuses.

Releases : counts and sums of the groups that are told, exactly; the ledger charges them as every exact sum.
Source   : Ion, Kreuter et al. 2020; the example is Sempere 2024, section 3.1.
"""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.conversation import AtParty
from hedgerow.core.desk import Desk
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import Federation, inside
from hedgerow.core.party import Party
from hedgerow.core.question import Question, local, travels
from hedgerow.crypto.peer_protocol import PeerProtocol
from hedgerow.crypto.peers import HUB, Letters, Peer
from hedgerow.crypto.psi.ids import list_digest
from hedgerow.crypto.psi.join_sums import JoinSums
from hedgerow.crypto.sealing import PairSecrets
from hedgerow.display import displayed
from hedgerow.errors import AlignmentRefused, MessageRefused, NotAligned, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.stats.columns import COUNTED, NUMERIC, chosen, levels_of

from .terms import admit_column, joint_schema, refuse_shared

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Column

JOINS = "hidden joins"
"""The entry of a desk that has the digest of the list that was joined."""

_COUNT = struct.Struct("<Q")
_SUM_BYTES = 12


@dataclass(frozen=True)
class HiddenUnit:
    """How a column's values become whole numbers: x = low + step * number."""

    name: str
    low: float
    step: float
    bits: int

    @classmethod
    def of(cls, column: Column, bits: int) -> HiddenUnit:
        """The unit of a column by its declared range: 1 for whole numbers that fit, otherwise the finest power of two."""
        if column.low is None or column.high is None:
            raise UnboundedSum(
                f"column {column.name!r} has no declared range, from which its unit follows.",
                remedy="Declare low and high in its schema.",
            )
        width = max(float(column.high) - float(column.low), 1e-300)
        whole = column.kind in ("integer", "binary") and float(column.low).is_integer() and width < 2**bits - 1
        step = 1.0 if whole else 2.0 ** math.ceil(math.log2(width / (2**bits - 2)))
        return cls(column.name, float(column.low), step, max(1, math.ceil(width / step)).bit_length())

    def numbers(self, values: Array) -> Array:
        """Values as whole numbers; those out of the range are brought to its ends."""
        found = np.rint((np.asarray(values, float) - self.low) / self.step)
        if not np.isfinite(found).all():
            raise MessageRefused(f"a value of {self.name!r} is missing.", remedy="Leave out the records that lack it.")
        clipped: Array = np.clip(found, 0, 2**self.bits - 1).astype(np.int64)
        return clipped


@local
def hidden_columns(broadcast: Any, party: Party, rng: Any, *, on: str, groups: Mapping[str, str], values: Any) -> None:
    """What a hidden join reads: the column by which people are known, and groups or values. None of it leaves bare."""
    party[on]
    for column in [name for owner, name in groups.items() if owner == party.id]:
        party[column]
    for column in values.get(party.id, ()):
        party[column]


@travels
@dataclass(frozen=True)
class HiddenJoin(PeerProtocol):
    """Sums by group over a hidden join, on the rails.

    Parameters
    ----------
    by : JoinSums
    on : str
        The column by which people are known.
    group_owner, group : str
        The party that knows groups, and its column.
    n_levels : int
    value_owner : str
    columns : tuple of (name, low, step, bits)
        Its columns, and their units.
    """

    by: JoinSums
    on: str
    group_owner: str
    group: str
    n_levels: int
    value_owner: str
    columns: tuple[tuple[str, float, float, int], ...]

    def __post_init__(self) -> None:
        if self.by.insecure:
            raise SettingsInvalid("short keys for a join that travels.", remedy="They are for tests of the protocol alone.")

    @property
    def name(self) -> str:
        return "hidden join"

    @property
    def shows(self) -> str:
        return "the server sees counts and sums of groups that are told, and sizes of sealed letters"

    @property
    def agrees(self) -> bool:
        return True

    def foreseen(self, outbox: Outbox) -> Outbox:
        """A count and sums for each level."""
        return replace(outbox, rows=False, unforeseen=False, layout=self._layout)

    @property
    def _layout(self) -> Layout:
        return Layout((("", (self.n_levels, 1 + len(self.columns))),))

    def peer(self, at: AtParty, shared: PairSecrets) -> Peer[None]:
        """A party's side; others than the two have none. Secrets are the system's, also where a seed is given."""
        me, names = at.party.id, (self.group_owner, self.value_owner)
        if me not in names:
            return
        ids = self.by.read(at.party[self.on])
        _count_join(me, at.desk, ids)
        if me == self.group_owner:
            codes = np.asarray(at.party[self.group]).astype(np.int64)
            counts = yield from self.by.counts(me, names, ids, codes, labels=range(self.n_levels))
            yield {HUB: b"".join(_COUNT.pack(count or 0) for count in counts.values())}
            return
        values = np.column_stack([HiddenUnit(*column).numbers(at.party[column[0]]) for column in self.columns])
        sums = yield from self.by.sums(me, names, ids, values)
        rows = [row or (0,) * len(self.columns) for row in sums]
        yield {HUB: b"".join(number.to_bytes(_SUM_BYTES, "little") for row in rows for number in row)}

    def hub(self, outbox: Outbox, names: tuple[str, ...]) -> Peer[Array]:
        """The server's side: counts from one, sums from the other."""
        came: dict[str, bytes] = {}
        while len(came) < 2:
            letters: Mapping[str, bytes] = yield Letters()
            for name, letter in letters.items():
                if name in came or name not in (self.group_owner, self.value_owner):
                    raise MessageRefused(f"{name} sent a result that is not its to send.", remedy="Start anew.")
                came[name] = letter
        k = len(self.columns)
        raw, sums = came[self.group_owner], came[self.value_owner]
        if len(raw) != _COUNT.size * self.n_levels or len(sums) != _SUM_BYTES * self.n_levels * k:
            raise MessageRefused("counts or sums came for other groups than there are.", remedy="Start anew.")
        counts = [float(count) for (count,) in _COUNT.iter_unpack(raw)]
        numbers = [float(int.from_bytes(sums[i : i + _SUM_BYTES], "little")) for i in range(0, len(sums), _SUM_BYTES)]
        return np.column_stack([np.array(counts), np.array(numbers).reshape(self.n_levels, k)])

    def inbox(self, outbox: Outbox, answered: tuple[str, ...], result: Array) -> Inbox:
        """Counts and sums, for the program."""
        return Inbox(answered, self._layout, total=result.reshape(-1), masked=True)


def _count_join(me: str, desk: Desk, ids: Sequence[bytes]) -> None:
    """Refuse a second join in this study, of the same list or of another."""
    before = desk.get(JOINS)
    if before is None:
        key = secrets.token_bytes(32)
        desk.put(JOINS, {"key": key, "digest": list_digest(ids, key)})
        return
    if before["digest"] != list_digest(ids, before["key"]):
        raise NotAligned(
            f"{me} joined another list in this study; the two would differ by single people.", remedy="Begin a new study."
        )
    raise NotAligned(
        f"{me} joined its list before in this study; counts of two joins could be subtracted.",
        remedy="Ask for all columns at once.",
    )


@displayed
@dataclass(frozen=True, eq=False)
class HiddenMeans:
    """Means by group over a join that nobody saw.

    Attributes
    ----------
    means : pandas.DataFrame
        One row for each group, with `count` and the mean of every column; NaN of a group that is not told.
    saw : mapping from role to str
        Who learned what.
    step : mapping from column to float
        To half of which values were rounded.
    """

    means: pandas.DataFrame
    saw: Mapping[str, str]
    step: Mapping[str, float] = field(default_factory=dict)

    def to_frame(self) -> pandas.DataFrame:
        """The means."""
        return self.means

    def __str__(self) -> str:
        withheld = int(self.means["count"].isna().sum())
        lines = [self.means.to_string(na_rep="-", float_format=lambda value: f"{value:.6g}")]
        if withheld:
            lines.append(
                f"{withheld} of {len(self.means)} groups are not told: too few people, or easily found ones, or beside such"
            )
        return "\n".join([*lines, *(f"{who} saw {what}" for who, what in self.saw.items())])


def hidden_means(
    federation: Federation, columns: str | Sequence[str], by: str, *, on: str, settings: JoinSums | None = None
) -> HiddenMeans:
    """Means of one party's columns in each group of another party's, over the people in both tables, whom nobody learns.

    Parameters
    ----------
    federation : Federation
        Parties apart, not aligned: `simulate({"tax": ..., "town": ...}, on="nin")`.
    columns : str or sequence of str
        Numbers with declared ranges, all of one party.
    by : str
        A category or binary column of another party.
    on : str
        The column by which people are known at both.
    settings : JoinSums, optional
        Fewest people in a group, and the like. `value_bits` says how finely values are rounded: to 2^-20 of the declared range
        by default, and not at all for whole numbers that fit.

    Returns
    -------
    HiddenMeans

    Releases
    --------
    Counts and sums of the groups that are told.

    Raises
    ------
    MissingColumn (HR-403), ColumnsDiffer (HR-407), SchemaInvalid (HR-409), UnboundedSum (HR-210), NotAligned (HR-248)
        Before any party is asked.
    AlignmentRefused (HR-246)
        No group is told.
    PartyDeclined (HR-221), RoundRefused (HR-241)
        A party refused: it joined its list before in this study, has ids that cannot be joined, or small groups or many.
    """
    import pandas

    opened, settings = inside(federation), settings or JoinSums()
    names = [columns] if isinstance(columns, str) else list(columns)
    if len(opened.run.schemas) < 2 or opened.view or opened.cohort.number:
        raise NotAligned("parties hold the same columns, or are aligned.", remedy="Ask parties apart: simulate({...}, on=...).")
    schema, owners, shared = joint_schema(opened.run.schemas)
    refuse_shared([*names, by], shared)
    read, (group,) = chosen(schema, names, NUMERIC), chosen(schema, [by], COUNTED)
    for column in (*read, group):
        admit_column(column)
    holders = {owners[name] for name in names}
    if len(holders) != 1 or owners[by] in holders:
        raise SchemaInvalid(
            f"{', '.join(names)} and {by} are columns of {', '.join(sorted({*holders, owners[by]}))}.",
            remedy="All values are of one party, and groups of another.",
        )
    (value_owner,), levels = holders, levels_of(group)
    if len(names) > settings.capacity:
        raise SchemaInvalid(f"{len(names)} columns.", remedy=f"A key of {settings.bits} bits carries {settings.capacity}.")
    units = [HiddenUnit.of(column, settings.value_bits) for column in read]
    settings = replace(settings, value_bits=max(unit.bits for unit in units))
    packed = tuple((unit.name, unit.low, unit.step, unit.bits) for unit in units)
    protocol = HiddenJoin(settings, on, owners[by], by, len(levels), value_owner, packed)
    reads = partial(hidden_columns, on=on, groups={owners[by]: by}, values={value_owner: tuple(names)})
    number = opened.run.next_question(opened.branch)
    question = Question("sum", reads, None, None, None, (), opened.cohort, opened.branch, number)
    found = np.asarray(opened.run.ask(question, opened.channel.by(protocol)))
    if not found[:, 0].any():
        raise AlignmentRefused(
            f"no group of {by} has {settings.least} people of the other table, leaves as many, and is hard to find by its sum.",
            remedy="Join levels, round values (value_bits), or join larger tables.",
        )
    counts = np.where(found[:, 0] > 0, found[:, 0], np.nan)
    low, step = np.array([unit.low for unit in units]), np.array([unit.step for unit in units])
    means = low + step * found[:, 1:] / counts[:, None]
    table = pandas.DataFrame(np.column_stack([counts, means]), index=pandas.Index(levels, name=by), columns=["count", *names])
    saw = {
        owners[
            by
        ]: f"how many people of each of its groups of {settings.least} or more {value_owner} has, and lengths of lists",
        value_owner: "sums of its values over the groups that are told, and lengths of lists and of groups without names",
        HUB: "counts and sums of the groups that are told",
        "world": f"{int((~np.isnan(counts)).sum())} counts and {found[~np.isnan(counts), 1:].size} means",
    }
    return HiddenMeans(table, saw, {unit.name: unit.step for unit in units})
