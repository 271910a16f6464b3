"""A guard's rule of exact numbers against values held (`hedgerow.core.disclosure`), counted from the station's own journal.

    boarding    the numbers of the whole rehearsal, against the values of the smallest party here
    question    those of all questions of the study so far, and of this one, against the values of each party that is asked

Under hidden rows the values of all parties count. What others hold nobody tells a station: each is taken to hold as much as
the party here. Each study is counted by itself; `guard.disclosure_overall` limits besides what was told over all of them, in
the values of all declared columns. A refusal tells a coordinator something of the number of records, as `least_records` does;
so records count by whole fives, and of fewer than five no exact number leaves.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hedgerow.core.disclosure import LEAST, MOST, REMEDY, Disclosure, ExactNumbers, Told, rounded, width, worn, worn_out
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry
from hedgerow.data import Schema
from hedgerow.errors import TooFewRecords
from hedgerow.privacy.guard import COUNTS, Trust, entry_of
from hedgerow.privacy.statement import added_at

from .config import GuardSection
from .journal import ANEW, StationEntry, StationJournal, pack_parties, unpack_parties
from .local_data import Held

if TYPE_CHECKING:
    from hedgerow.study import Study

    from .children.facts import AskedQuestion

RANK: dict[str, Trust] = {
    "none": "nobody",
    "party": "nobody",
    "shares": "parties",
    "aggregators": "aggregators",
    "server": "server",
}
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


def asked_in(entries: Iterable[Entry], trust: Trust, limited: bool) -> ExactNumbers:
    """The exact numbers of a rehearsal's questions, for a guard that trusts so far."""
    found = ExactNumbers()
    for entry in entries:
        if added_at(entry.mechanism) not in COUNTS[trust] and entry.verb != "each":
            entry = replace(entry, event=Event("nonprivate"))
        one = ExactNumbers.of(entry if limited else replace(entry, cites=0))
        if one.noise and entry.sampling.kind not in ("all", "records"):  # who is drawn is seen, so that it covers nothing
            one = one._replace(noise=worn(entry.event, Sampling()) * entry.sampling.rate)
        found = found.plus(one)
    return found


def limits(guard: GuardSection) -> bool:
    """Whether a budget checks what is said to be paid for."""
    return guard.budget is not None or guard.study_budget is not None


def rehearsed_disclosure(
    guard: GuardSection,
    study: Study,
    schema: Schema,
    held: Held,
    n_parties: int,
    entries: Iterable[Entry],
    more: Iterable[Entry] | None = (),
) -> str:
    """Refuse a study that would ask too many exact numbers; else say how many, for the person who approves.

    Parameters
    ----------
    schema : Schema
        Of the columns that the study was granted, in the roles that it gives them.
    n_parties : int
        Of the smallest total that the server sees in the whole study.
    more : iterable of Entry, optional
        Questions that it may ask beyond those; None where nothing limits them.

    Raises
    ------
    DisclosureExceeded (HR-216), TooFewRecords (HR-604)
    """
    found = list(entries)
    rule, exact = limit_of(guard, study), asked_in(found, trust_of(guard), limits(guard))
    smallest = min((int(size) for size in held.sizes if size), default=0)
    hidden = all(entry.aggregation not in ("", "plain") for entry in found if entry.verb == "sum")
    refuse_small_folds(study, int(held.sizes.sum()) if hidden else smallest)
    values = float(counted(np.array(smallest))) * study_width(study, schema)
    told = Told(exact, values, values * n_parties)
    rule.refuse(told, "the rehearsal asks too much", remedy=REMEDY + OWNER)
    above = f" Above {MOST:.2g} records may be solved for." if told.ratio > MOST else ""
    return told.sentence(rule.most) + above + _asked_further(guard, told, rule, found, more)


def _asked_further(
    guard: GuardSection, told: Told, rule: Disclosure, entries: list[Entry], more: Iterable[Entry] | None
) -> str:
    """What a study tells that asks as often as it may, beyond its rehearsal."""
    ends = "" if math.isinf(rule.most) else f" Beyond {rule.most:.2g} nothing is answered."
    if more is None:
        return f" It may ask any number of times.{ends}"
    rest = list(more)
    all_ = replace(told, exact=asked_in([*entries, *rest], trust_of(guard), limits(guard)))
    if not rest or all_.numbers == told.numbers:
        return ""
    return f" Asked as often as it may be: {all_.numbers:,.0f} exact numbers, a ratio of {all_.ratio:.2g}.{ends}"


def refuse_small_folds(study: Study, n_records: int) -> None:
    """Refuse cross-validation where a fold has so few of the records here that its sums show them.

    Raises
    ------
    TooFewRecords (HR-604)
    """
    from hedgerow.study.catalogue import listing
    from hedgerow.study.several import programs_in

    for name, given in programs_in(study):
        own = inspect.signature(listing(name).function).parameters.get("folds")
        folds = given.get("folds", own and own.default)
        if isinstance(folds, int) and n_records < folds * LEAST:
            raise TooFewRecords(
                f"each of {folds} folds would have fewer than {LEAST} of {rounded(n_records)} records here.",
                remedy="Take fewer folds.",
            )


def refuse_few(guard: GuardSection, asked: AskedNumbers, noise: np.ndarray) -> None:
    """Refuse exact sums of a formula that is about a few of the records here, unless the guard allows any number.

    Parameters
    ----------
    noise : array, shape (k,)
        How much of the noise that may cover numbers of the parties was used up before.

    Raises
    ------
    TooFewRecords (HR-604)
    """
    covered = asked.noise > 0 and not worn_out(noise + asked.noise).any()
    if asked.few and not covered and not math.isinf(guard.disclosure):
        raise TooFewRecords(
            f"{asked.few} may choose fewer than {LEAST} of the records here, or leave out so few, and the sums are exact.",
            remedy="Compare with other numbers, join levels, leave the term out, or add noise. The owner of the data can allow "
            "it: guard.disclosure = inf.",
        )


def counted(sizes: np.ndarray) -> np.ndarray:
    """Numbers of records as the rule counts them."""
    return np.asarray(sizes // LEAST * LEAST)


def study_width(study: Study, schema: Schema) -> int:
    """Values of one record in the columns that a study reads."""
    from hedgerow.study.disclosed import columns_of

    return width(schema, columns_of(study, schema))


def own_sample(outbox: Outbox) -> Sampling:
    """How a question that is asked samples: records of a party do so in secret, parties do not."""
    sampling = outbox.question.cohort.sampling
    return sampling if sampling.kind == "records" else Sampling()


class AskedNumbers(NamedTuple):
    """What a question asks of each party, as a gate learns it.

    Attributes
    ----------
    exact, hidden : float
        Exact numbers, from itself and in a total of many, divided by how many.
    parties : int
        Of how many the smallest such total is.
    width : int
        Values of each record in the columns that the study reads.
    most : float
        The study's own limit; infinity without one.
    unknown : bool
        Whether nobody knows how many they will be.
    noise : float
        How much of the noise that may cover them they use up; 0 where there is none.
    steady : bool
        Whether the same question again is answered by the same parties.
    complete : sequence of int
        Records of each party of the station that lack nothing that the study reads; none where no value may be missing.
    few : str
        What in a formula chooses fewer than `LEAST` of the records here, or leaves out so few; "" for nothing.
    """

    exact: float = 0.0
    hidden: float = 0.0
    parties: int = 1
    width: int = 0
    most: float = math.inf
    unknown: bool = False
    noise: float = 0.0
    steady: bool = True
    complete: Sequence[int] = ()
    few: str = ""

    @classmethod
    def of(
        cls,
        guard: GuardSection,
        outbox: Outbox,
        aggregation: str,
        width: int,
        most: float | None,
        n_parties: int,
        together: Callable[[int], int] = int,
    ) -> AskedNumbers:
        """The numbers of a question.

        Parameters
        ----------
        outbox : Outbox
            With the layout that this station foresees.
        aggregation : str
            That hides rows; "" for none.
        most : float, optional
            The study's own limit.
        n_parties : int
            Of the whole study, as it was approved; a question that says it is about more counts as about these.
        together : callable
            How many of so many parties are in the smallest total that the server sees: of a group, where there are groups.
        """
        asked = max(1, together(max(1, min(outbox.asked, n_parties))))
        size = None if outbox.layout is None else outbox.distinct or outbox.layout.size
        entry = replace(
            entry_of(outbox, trust_of(guard)), aggregation=aggregation, sampling=own_sample(outbox)
        )  # it is asked now
        found = ExactNumbers.of(entry if limits(guard) else replace(entry, cites=0), size)
        plain, hidden = found.plain + found.veiled[0], found.hidden + found.veiled[1]
        own = math.inf if most is None else most
        return cls(plain, hidden / asked, asked, width, own, found.unknown > 0, found.noise)

    def came(self, size: int, aggregation: str) -> AskedNumbers:
        """The same when it was answered by so many numbers."""
        return self._replace(exact=0.0, hidden=size / self.parties) if aggregation else self._replace(exact=float(size))


class Disclosures:
    """Exact numbers that each party here has given: in each study, and over everything.

    Parameters
    ----------
    held : Held
    journal : StationJournal
        From which they are counted when a study asks for the first time in this life of the station.
    """

    def __init__(self, held: Held, journal: StationJournal) -> None:
        self._held, self._journal = held, journal
        self._width = width(held.schema, frozenset(held.schema.names))
        self._position = {id: i for i, id in enumerate(held.ids)}
        self._counts: dict[str, np.ndarray] = {}
        self._answered: dict[str, set[tuple[str, str, str]]] = {}

    def noted(self, guard: GuardSection, study: str, ids: Sequence[str], question: AskedQuestion) -> dict[str, Any]:
        """Refuse what asks too many exact numbers of parties here, or count it; return what the journal keeps of it.

        The same question again, of which there is one answer, counts no more.

        Raises
        ------
        DisclosureExceeded (HR-216), TooFewRecords (HR-604)
        """
        asked = question.exact
        if asked is None or (_repeats(question) and self._mark(question, ids) in self._answered_of(study)):
            return {}
        which = np.array([self._position[id] for id in ids], np.int64)
        refuse_few(guard, asked, self._of(study)[2, which])
        self._admit(self._of(study), which, asked, Disclosure(min(guard.disclosure, asked.most)))
        if guard.disclosure_overall is not None:
            self._admit(self._of(""), which, asked._replace(width=self._width), Disclosure(guard.disclosure_overall))
        self._answered_of(study).add(self._mark(question, ids))
        return self.counted(study, ids, asked)

    def counted(self, study: str, ids: Sequence[str], asked: AskedNumbers | None) -> dict[str, Any]:
        """Count numbers, and return what the journal keeps of them."""
        if asked is None or not (asked.exact or asked.hidden or asked.noise):
            return {}
        which = np.array([self._position[id] for id in ids], np.int64)
        for key in (study, ""):
            if key in self._counts:  # what is read later has it from the journal
                self._counts[key][:, which] = _after(self._counts[key][:, which], asked)
        told = {"exact": asked.exact, "hidden": asked.hidden, "noise": asked.noise}
        return told | {"whom": pack_parties(which, self._held.ids)}

    def drop(self, study: str) -> None:
        """Forget a study that has ended; the journal does not."""
        self._counts.pop(study, None)
        self._answered.pop(study, None)

    def _of(self, study: str) -> np.ndarray:
        """Exact and hidden numbers of each party, and noise used up, shape (3, n_parties); of everything for ""."""
        if study not in self._counts:
            values = counted(self._held.sizes) * float(self._width)
            self._counts[study] = counts_of(self._journal.told(study or None), self._position, values)
        return self._counts[study]

    def _answered_of(self, study: str) -> set[tuple[str, str, str]]:
        """Questions that were counted: kind, what decides of the answer, and parties."""
        if study not in self._answered:
            self._answered[study] = {
                (entry.signature, entry.about, entry.whom)
                for entry in self._journal.told(study)
                if entry.code == "asked" and (entry.exact or entry.hidden)
            }
        return self._answered[study]

    def _mark(self, question: AskedQuestion, ids: Sequence[str]) -> tuple[str, str, str]:
        kind = "" if question.signature is None else question.signature.mark
        return kind, question.about, pack_parties(np.array([self._position[id] for id in ids], np.int64), self._held.ids)

    def _admit(self, counts: np.ndarray, which: np.ndarray, asked: AskedNumbers, rule: Disclosure) -> None:
        sizes = np.minimum(self._held.sizes, asked.complete) if asked.complete else self._held.sizes
        which = which[sizes[which] > 0]
        if not len(which):
            return
        values = counted(sizes[which]) * float(asked.width)
        exact, hidden, _ = _after(counts[:, which], asked)
        ratios = np.where(values > 0, (exact + hidden) / np.maximum(values, 1), np.where(exact + hidden > 0, np.inf, 0))
        k = int(ratios.argmax())
        numbers = ExactNumbers(float(exact[k]), float(hidden[k]) * asked.parties)
        told = Told(numbers, float(values[k]), float(values[k]) * asked.parties)
        rule.refuse(told, "with this question", remedy=REMEDY + OWNER, asked=True)


def counts_of(entries: Iterable[StationEntry], position: Mapping[str, int], values: np.ndarray) -> np.ndarray:
    """Exact and hidden numbers of each party in a journal's entries, and noise used up, shape (3, n_parties).

    Parameters
    ----------
    values : array of float, shape (n_parties,)
        That parties hold: what a station that began anew counts as asked is told for each of them.
    """
    found = np.zeros((3, len(position)))
    for entry in entries:
        if entry.code == ANEW:
            found[0] += entry.exact * values
            found[2] += entry.noise
            continue
        which = unpack_parties(entry.whom, position)
        found[:, which] = _after(found[:, which], AskedNumbers(entry.exact, entry.hidden, noise=entry.noise))
    return found


def _after(counts: np.ndarray, asked: AskedNumbers) -> np.ndarray:
    """Counts of parties with one more question; numbers behind noise count where the noise is used up."""
    noise = counts[2] + asked.noise
    count = worn_out(noise) if asked.noise else np.ones(len(noise), bool)
    return np.stack([counts[0] + asked.exact * count, counts[1] + asked.hidden * count, noise])


def _repeats(question: AskedQuestion) -> bool:
    """Whether a question that comes again has the same answer: of the same records, and of the same parties."""
    kind, asked = question.signature, question.exact
    if kind is None or asked is None or question.random or asked.unknown or asked.noise or " of records" in kind.sampling:
        return False
    return asked.steady
