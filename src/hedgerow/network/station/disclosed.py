"""A guard's rule of exact numbers against values held (`hedgerow.core.disclosure`), counted from the station's own journal.

    boarding    the numbers of the whole rehearsal, against the values of the smallest party here
    question    those of all questions of the study so far, and of this one, against the values of each party that is asked

Under hidden rows the values of all parties count. What others hold nobody tells a station: each is taken to hold as much as
the party here. Each study is counted by itself; `guard.disclosure_overall` limits besides what was told over all of them, in
the values of all declared columns. A refusal tells a coordinator something of the number of records, as `least_records` does;
so records count by whole fives, and of fewer than five no exact number leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.disclosure import LEAST, MOST, REMEDY, Disclosure, ExactNumbers, Told, width
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry
from hedgerow.data import Schema
from hedgerow.privacy.guard import COUNTS, Trust, entry_of

from .config import GuardSection
from .journal import StationEntry, StationJournal, pack_parties, unpack_parties
from .local_data import LocalData

if TYPE_CHECKING:
    from hedgerow.study import Study

RANK: dict[str, Trust] = {"none": "nobody", "party": "nobody", "shares": "parties", "server": "server"}
"""Whom a guard trusts that requires noise of somebody, and has no budget that says whom."""

OWNER = "\nThe owner of the data can allow more: guard.disclosure."


def trust_of(guard: GuardSection) -> Trust:
    """Whose noise covers numbers: that which counts for every budget, or else that which the guard requires."""
    trusts = [limit.trust for limit in (guard.budget, guard.study_budget) if limit is not None]
    return min(trusts, key=list(COUNTS).index) if trusts else RANK[guard.require.noise]


def limit_of(guard: GuardSection, study: Study) -> Disclosure:
    """The limit that holds for a study: the guard's, or its own where that is lower."""
    own = study.protection.disclosure
    return Disclosure(guard.disclosure if own is None else min(guard.disclosure, own))


def asked_in(entries: Iterable[Entry], trust: Trust) -> ExactNumbers:
    """The exact numbers of a rehearsal's questions, for a guard that trusts so far."""
    found = ExactNumbers()
    for entry in entries:
        noise = entry.mechanism
        at = "party" if noise.endswith("at the party") else "shares" if "in shares of" in noise else "server"
        if at not in COUNTS[trust] and entry.verb != "each":
            entry = replace(entry, event=Event("nonprivate"))
        found = found.plus(ExactNumbers.of(entry))
    return found


def rehearsed_disclosure(
    guard: GuardSection, study: Study, schema: Schema, held: LocalData, n_parties: int, entries: Iterable[Entry]
) -> str:
    """Refuse a study that would ask too many exact numbers; else say how many, for the person who approves.

    Parameters
    ----------
    schema : Schema
        Of the columns that the study was granted, in the roles that it gives them.
    n_parties : int
        Of the whole study.

    Raises
    ------
    DisclosureExceeded (HR-216)
    """
    rule, exact = limit_of(guard, study), asked_in(entries, trust_of(guard))
    smallest = min((int(size) for size in held.sizes if size), default=0)
    values = float(counted(np.array(smallest))) * study_width(study, schema)
    told = Told(exact, values, values * n_parties)
    rule.refuse(told, "the rehearsal asks too much", remedy=REMEDY + OWNER)
    return told.sentence(rule.most) + (f" Above {MOST:.2g} records may be solved for." if told.ratio > MOST else "")


def counted(sizes: np.ndarray) -> np.ndarray:
    """Numbers of records as the rule counts them."""
    return np.asarray(sizes // LEAST * LEAST)


def study_width(study: Study, schema: Schema) -> int:
    """Values of one record in the columns that a study reads."""
    from hedgerow.study.disclosed import columns_of

    return width(schema, columns_of(study, schema))


class Disclosed:
    """Exact numbers that each party here has given, in one study or over everything.

    Parameters
    ----------
    rule : Disclosure
    held : LocalData
    width : int
        Values of a record in the columns read.
    trust : {"nobody", "parties", "server"}
    """

    def __init__(self, rule: Disclosure, held: LocalData, width: int, trust: Trust) -> None:
        self.rule, self.sizes, self.trust, self.ids = rule, held.sizes, trust, held.ids
        self.values, ids = counted(held.sizes) * float(width), held.ids
        self.position = {id: i for i, id in enumerate(ids)}
        self.plain, self.hidden = np.zeros(len(ids)), np.zeros(len(ids))  # hidden: each shared by the parties of its total

    @classmethod
    def of_study(
        cls, guard: GuardSection, study: Study, schema: Schema, held: LocalData, id: str, journal: StationJournal
    ) -> Disclosed:
        """What a study has asked so far, by the journal."""
        found = cls(limit_of(guard, study), held, study_width(study, schema), trust_of(guard))
        return found.after(journal.told(id))

    @classmethod
    def overall(cls, guard: GuardSection, held: LocalData, journal: StationJournal) -> Disclosed | None:
        """What everybody has asked so far, where the guard limits it."""
        if guard.disclosure_overall is None:
            return None
        n = width(held.schema, frozenset(held.schema.names))
        return cls(Disclosure(guard.disclosure_overall), held, n, trust_of(guard)).after(journal.told())

    def after(self, entries: Iterable[StationEntry]) -> Disclosed:
        """This, with entries of the journal counted."""
        for entry in entries:
            self.add(unpack_parties(entry.whom, self.position), entry.exact, entry.hidden)
        return self

    def add(self, which: np.ndarray, exact: float, hidden: float) -> None:
        """Count numbers of the parties at positions `which`."""
        self.plain[which] += exact
        self.hidden[which] += hidden

    def admit(self, which: np.ndarray, exact: ExactNumbers, asked: int, query: str) -> None:
        """Refuse a question to the parties at positions `which`, whose total is of so many parties.

        Raises
        ------
        DisclosureExceeded (HR-216)
        """
        which = which[self.sizes[which] > 0]
        plain, hidden = self.plain[which] + exact.plain, self.hidden[which] + exact.hidden / asked
        if not len(which):
            return
        values, numbers = self.values[which], plain + hidden
        ratios = np.where(values > 0, numbers / np.maximum(values, 1), np.where(numbers > 0, np.inf, 0))
        k = int(ratios.argmax())
        told = Told(ExactNumbers(float(plain[k]), float(hidden[k]) * asked), float(values[k]), float(values[k]) * asked)
        self.rule.refuse(told, f"with {query}", remedy=REMEDY + OWNER, asked=True)


def noted(counts: Sequence[Disclosed], outbox: Outbox, aggregation: str, came: int | None = None) -> dict[str, Any]:
    """Refuse a question that asks too many exact numbers, or count it; return what the journal keeps of it.

    Parameters
    ----------
    counts : sequence of Disclosed
        Of the study, and over everything where the guard limits that.
    outbox : Outbox
        With the layout that this station foresees.
    aggregation : str
        That hides rows; "" for none.
    came : int, optional
        How many numbers an answer had of which nobody knew beforehand.

    Raises
    ------
    DisclosureExceeded (HR-216)
    """
    first = counts[0]
    entry = replace(entry_of(outbox, first.trust), aggregation=aggregation, sampling=Sampling())  # it is asked now
    size = came if came is not None else outbox.layout.size if outbox.layout is not None else None
    exact, asked = ExactNumbers.of(entry, size), max(1, outbox.asked)
    which = np.array([first.position[id] for id in outbox.ids], np.int64)
    for one in counts if came is None else ():
        one.admit(which, exact, asked, entry.query)
    about = {"exact": exact.plain, "hidden": exact.hidden / asked}
    if not any(about.values()):
        return {}
    for one in counts:
        one.add(which, *about.values())
    return about | {"whom": pack_parties(which, first.ids)}
