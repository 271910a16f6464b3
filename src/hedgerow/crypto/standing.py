"""Over whom the exact totals of one study are: never over two sets of parties whose difference is a few of them.

Two exact totals over nearly the same parties show the rest by subtraction, also where their broadcasts differ a little. So
every party keeps the set of the last total that it was part of, the standing set, and takes part in no other than

    the same set                          or one that
    is part of it                         nobody joins,
    leaves out `least` or more of it      nobody is alone in a difference,
    has three quarters of the first set   any two sets have honest parties in common that opened both.

Why that is enough. The masks of a total over X come off where t of each member's k neighbours have signed or opened X, and
keep X first. By counting neighbours twice they are at least t/k |X| parties, of whom c collude. With t > 2k/3, c below a
quarter of the first set, and |Y| >= 3/4 of it for a later one, an honest one of them is in Y. (Where the server keeps to the
protocol, t > k/2 and c = 0.) It lets Y be only if Y is X or leaves out `least` of it. So all totals of a study are over one
chain of sets, and what is computed from them by adding and subtracting is about whole steps of that chain, of `least` parties
or more each, or about its last set.

`least` counts all parties, as it does for a single total: those who collude know their own rows and take them off. Of a step of
`least` parties, c of whom collude, the server learns what the other `least` - c add up to. So `least` is the number of honest
parties that are to hide each other, and those who may collude besides.

A set is told as a bitmap over an order of names. Parties behind a roster know that order themselves, and keep it with the set:
on a roster that has grown, the set is the same parties at other places. Others are told the order's digest by a server that
keeps to the protocol.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import CohortChanged, MessageRefused, RoundRefused
from hedgerow.store import Answered

from .messages import MessageForm, Octets, Whole, digest, exactly

MOST = 1 << 22
"""Parties of an order."""

REPORT = MessageForm("standing set", order=exactly(32), first=Whole(0, MOST), places=Octets(1, MOST // 8))
REPORT_BYTES = REPORT.most
"""Most bytes of a report."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class PartySet:
    """A set of parties.

    Attributes
    ----------
    order : bytes
        Digest of the names that the set is told over, in their order.
    places : bytes
        Which of them, eight to a byte; bits beyond the last name are zero.
    """

    order: bytes
    places: bytes

    @classmethod
    def of(cls, order: bytes, flags: Flags) -> PartySet:
        """The set of those with a flag."""
        return cls(order, np.packbits(flags, bitorder="little").tobytes())

    @property
    def flags(self) -> Flags:
        """Whether each is in the set; padded to whole bytes."""
        return _flags(self.places)

    @property
    def digest(self) -> bytes:
        """Identifies the set, 32 bytes."""
        return digest("standing set", self.order, self.places)

    def __len__(self) -> int:
        return int(self.flags.sum())

    def within(self, other: PartySet) -> bool:
        """Whether every member is one of the other set's."""
        same = self.order == other.order and len(self.places) == len(other.places)
        return same and not bool((self.flags & ~other.flags).any())


@lru_cache(maxsize=64)
def _flags(places: bytes) -> Flags:
    found = np.unpackbits(np.frombuffer(places, np.uint8), bitorder="little").astype(bool)
    found.flags.writeable = False
    return found


def may_follow(found: PartySet, last: PartySet, first: int, least: int) -> bool:
    """Whether an exact total over `found` may follow one over `last`, where the first was over so many parties."""
    if found == last:
        return True
    return found.within(last) and len(last) - len(found) >= least and 4 * len(found) >= 3 * first


class StandingSet:
    """One party's sets of one study, kept across restarts.

    Parameters
    ----------
    journal : Answered, optional
        The party's; in memory if not given.
    shared : Answered, optional
        Where the sets themselves are written, once for all parties of a process; the party's journal if not given.
    heard : callable, optional
        Learns each set that is kept.
    """

    def __init__(
        self,
        journal: Answered | None = None,
        shared: Answered | None = None,
        heard: Callable[[PartySet], object] | None = None,
    ) -> None:
        self._journal = Answered(None) if journal is None else journal
        self._shared = self._journal if shared is None else shared
        self._heard = heard
        self._n, self._first = 0, 0
        self._last: PartySet | None = None
        self._names: tuple[str, ...] = ()
        self._order = b""

    def over(self, names: tuple[str, ...]) -> None:
        """Know the names over which sets are told, in their order."""
        self._names, self._order = names, names_digest(names)

    def report(self) -> bytes:
        """What a server is told that has to ask these parties again, perhaps after a restart; b"" before the first total."""
        self._read()
        if self._last is None:
            return b""
        return REPORT.pack(order=self._last.order, first=self._first, places=self._last.places)

    def refuse_other(self, found: PartySet, least: int) -> None:
        """Refuse an exact total over a set that may not follow.

        Raises
        ------
        CohortChanged (HR-245)
        """
        self._read()
        if self._last is None or may_follow(found, self._last, self._first, least):
            return
        if found.within(self._last):
            how = f", and leave out {len(self._last) - len(found)} of them."
        elif found.order == self._last.order:
            how = ", of which some were not among those."
        else:
            how = ", and names are others than at that time: one of those parties left the roster, or it was not kept."
        raise CohortChanged(
            f"an exact total over {len(found)} parties would follow one over {len(self._last)}{how}",
            remedy=f"The same parties are asked for all exact totals of a study; or {least} and more are left out for good, "
            f"while three quarters of the first {self._first} stay. Wait for those who are missing.",
        )

    def keep(self, found: PartySet, least: int) -> None:
        """Keep the set of a total that may be opened from now on; refuses as `refuse_other`."""
        self.refuse_other(found, least)
        if self._last != found:
            self._shared.write(f"set/{found.digest.hex()}", found.order + found.places)  # before it is cited
            if found.order == self._order:
                self._shared.write(f"names/{found.order.hex()}", _packed(self._names))
            self._journal.write(f"standing/{self._n}", found.digest)
            self._read()
        self.hear(found)

    def hear(self, found: PartySet) -> None:
        """Tell of whom a total is, also where another may be of others; the set itself is kept."""
        self._shared.write(f"set/{found.digest.hex()}", found.order + found.places)
        if self._heard is not None:
            self._heard(found)

    def _read(self) -> None:
        """Learn what was written: also by this party's side of another protocol, or before a restart."""
        while (mark := self._journal.seen(f"standing/{self._n}")) is not None:
            raw = self._shared.seen(f"set/{mark.hex()}")
            if raw is None:
                raise MessageRefused(
                    "the set of an earlier total is not in the list of answers.", remedy="Submit the study anew."
                )
            self._last = PartySet(raw[:32], raw[32:])
            self._first = self._first or len(self._last)
            self._n += 1
        last = self._last
        if last is not None and self._order and last.order != self._order:
            before = self._shared.seen(f"names/{last.order.hex()}")
            self._last = last if before is None else _moved(last, before, self._names)


def _packed(names: tuple[str, ...]) -> bytes:
    return json.dumps(names).encode()


@lru_cache(maxsize=16)
def _moved(found: PartySet, before: bytes, names: tuple[str, ...]) -> PartySet:
    """The same parties over other names; the set as it was where one of them is not among these."""
    place = {name: i for i, name in enumerate(names)}
    members = list(compress(json.loads(before), found.flags.tolist()))
    if not place.keys() >= set(members):
        return found
    flags = np.zeros(len(names), bool)
    flags[[place[name] for name in members]] = True
    return PartySet.of(names_digest(names), flags)


@dataclass
class StandingSets:
    """The sets of a process's parties in one study, and what a journal tells of the last one.

    Parameters
    ----------
    answered : Answered, optional
        The study's.
    """

    answered: Answered | None = None
    latest: PartySet | None = field(default=None, init=False)

    def of(self, party: str) -> StandingSet:
        """One party's."""
        if self.answered is None:
            return StandingSet(heard=self._hear)
        return StandingSet(self.answered.of(party), self.answered.of(""), self._hear)

    def _hear(self, found: PartySet) -> None:
        self.latest = found

    def taken(self) -> PartySet | None:
        """The set that was kept since this was asked last."""
        found, self.latest = self.latest, None
        return found


class ServerStanding:
    """What a server knows of the standing set of those whom it asks, and how it keeps to it.

    Parameters
    ----------
    names : list of str
        Over which sets are told, in their order.
    """

    def __init__(self, names: list[str]) -> None:
        self._position, self._order = {id: i for i, id in enumerate(names)}, names_digest(tuple(names))
        self._last: PartySet | None = None
        self._first = 0

    def hear(self, reports: Iterable[bytes]) -> None:
        """Take what most parties report; of two that are told as often the smaller, for a set follows a larger one."""
        told = Counter(report for report in reports if report)
        found: list[tuple[int, int, PartySet, int]] = []
        for report, times in told.items():
            with suppress(MessageRefused):
                order, first, places = REPORT.unpack(report)
                one = PartySet(order, places)
                found.append((-times, len(one), one, first))
        if found:
            _, _, self._last, self._first = min(found, key=lambda entry: entry[:2])

    def set_of(self, ids: Sequence[str], flags: Flags | None = None) -> PartySet:
        """Some of these parties, or all, as a set."""
        which = np.zeros(len(self._position), bool)
        places = np.array([self._position[id] for id in ids], np.int64)
        which[places if flags is None else places[flags]] = True
        return PartySet.of(self._order, which)

    def part(self, ids: Sequence[str], flags: Flags) -> Flags:
        """Of those with a flag the ones that are in the standing set."""
        if self._last is None or self._last.order != self._order:
            return flags
        standing, position = self._last.flags, self._position
        found: Flags = flags & np.array([standing[position[id]] for id in ids], bool)
        return found

    def settled(self, ids: Sequence[str], flags: Flags, least: int) -> Flags:
        """Those with a flag, as parties let a total be over them.

        Where fewer than `least` of many are missing, so many more stay out that these are `least`: the first that are left.

        Raises
        ------
        RoundRefused (HR-241)
            Too few are missing, or too many: parties would refuse.
        """
        found, last = self.set_of(ids, flags), self._last
        if last is None or may_follow(found, last, self._first, least):
            return flags
        lost = len(last) - len(found)
        if found.within(last) and lost < least and FEW * least <= len(last):
            fewer = flags.copy()
            fewer[np.flatnonzero(flags)[: least - lost]] = False
            if may_follow(self.set_of(ids, fewer), last, self._first, least):
                return fewer
        raise RoundRefused(
            f"{lost} of the {len(last)} parties of this study's exact totals are missing.",
            remedy=f"Ask again when they are back: the difference of two totals is of {least} parties or more.",
        )

    def keep(self, found: PartySet) -> None:
        """Remember the set of a total."""
        self._last, self._first = found, self._first or len(found)


FEW = 20
"""Where `least` parties are so small a part of the set, some more are left out rather than those waited for who are missing."""


@lru_cache(maxsize=16)
def names_digest(names: tuple[str, ...]) -> bytes:
    """Identifies names in their order."""
    return digest("standing names", *(name.encode() for name in names))
