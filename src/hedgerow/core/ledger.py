"""The ledger: one entry for every question, written before any party is asked.

Entries are data; accountants interpret them. A ledger with a limit is a filter: it refuses the next question while nothing
has been asked yet. A durable record (`hedgerow.store.LedgerFile`) has each entry before the question leaves; one that
several runs share (`hedgerow.store.LedgerBase`) is read and charged in one transaction, so that they cannot spend a budget
twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from hedgerow.display import displayed
from hedgerow.errors import BudgetExhausted, BudgetInvalid, CheckpointMismatch, LedgerDamaged, MixedUnits

from .disclosure import ExactNumbers
from .events import Charge, Debit, Event, Part, Sampling, Unit, charges_of
from .ledger_frame import frame_of
from .limits import Limit, Record, Spending
from .question import MAIN
from .tally import PartyCosts, Priced, Tally

if TYPE_CHECKING:
    import pandas

OMITTED = frozenset({"run", "branch", "key", "cites", "part", "drawn", "distinct", "by_party"})
"""Fields of an entry that are written where they say something."""


@dataclass(frozen=True)
class Entry:
    """One question: what was asked of whom, how large the answer is, and what its release costs.

    Attributes
    ----------
    round : int
        Number of the query.
    cohort : int
        Queries of one cohort compose inside one sampling event; 0 is everybody.
    parties : float
        How many were asked; for a Poisson cohort how many were expected, since who came is a secret.
    numbers : int or None
        Numbers in each contribution, where the schema tells before anybody is asked; `contribution` names their keys.
    bytes_up, bytes_down : float
        What a party sends and receives, with 32 bits to a number that is not compressed.
    run : str
        Which run of a shared record asked, since numbers of questions and cohorts are a run's own; "" is this one.
    branch : str
        Of the question's name: "" for a program's own questions, "aside" for measurements.
    key : str
        Names what several questions share, such as the noise of a tree; "" where the question stands alone.
    cites : int
        Number of the question whose charge covers this one; 0 where this one is charged itself.
    part : Part, optional
        Which part of a partition was asked, where questions to other parts cost nothing more (`debit`).
    drawn : str
        Branch in which the cohort was drawn, whose count its number and that of the partition are of.
    distinct : int, optional
        Numbers that are no copies of others, where they are fewer: the upper triangle of a symmetric matrix.
    by_party : tuple of (party, Event)
        What it costs parties whose own noise makes that another event, or who are left out by name: nobody more than `event`.
    """

    round: int
    cohort: int
    verb: str
    query: str
    parties: float
    numbers: int | None
    contribution: str
    bytes_up: float | None
    bytes_down: float
    bound: str
    clip: str
    compression: str
    mechanism: str
    aggregation: str
    unit: Unit | None
    event: Event
    sampling: Sampling
    randomness: str
    run: str = ""
    branch: str = MAIN
    key: str = ""
    cites: int = 0
    part: Part | None = None
    drawn: str = MAIN
    distinct: int | None = None
    by_party: tuple[tuple[str, Event], ...] = ()

    @property
    def exact_numbers(self) -> int | None:
        """Numbers that an answer tells: those that it has, without the copies among them."""
        return self.numbers if self.distinct is None else self.distinct

    @property
    def free(self) -> bool:
        """Whether nothing more is charged: nothing was released, or an earlier charge covers it."""
        return self.event.kind == "none" or self.cites != 0

    @property
    def cost(self) -> str:
        """The charge in words."""
        return f"charged with question {self.cites}" if self.cites else str(self.event)

    @property
    def protection(self) -> tuple[str, str]:
        """The bound that held, and the noise."""
        return (self.bound if self.clip == "none" else self.clip), self.mechanism

    def debit(self, unit: Unit, event: Event | None = None) -> Debit | None:
        """Return what an accountant has to know of it, or of a party with an event of its own; None where it costs nothing.

        An event at a party is never amplified by sampling: the server sees who answered. What of a sample counts depends on
        the unit (`Sampling.as_charged`). Parts of a sampled cohort stay in its sampling event; parts of everybody, or of a
        public schedule, are one group whatever the numbers of their cohorts.

        Raises
        ------
        MixedUnits (HR-215)
            It is bounded for another unit.
        """
        if self.free or (event is not None and event.kind == "none"):
            return None
        if not self.event.open and self.unit != unit:
            raise MixedUnits(
                f"round {self.round} ({self.query}) is bounded per {self.unit}; the guarantee was asked per {unit}.",
                remedy="Ask for the unit that the queries are bounded by, and keep to one unit in one ledger.",
            )
        sampling = self.sampling.as_charged(unit)
        part = None if self.part is None else ((self.part.partition, self.part.n_parts), self.part.index)
        cohort: Hashable = (self.run, self.branch, self.round, sampling)
        if self.cohort:
            cohort = (self.run, self.drawn, "cohort", self.cohort, sampling)
        if part is not None and sampling.kind in ("all", "given", "part", "dealt"):
            cohort = (self.run, self.drawn, sampling.kind, part[0])
        return Debit(cohort, sampling, event or self.event, part)

    def to_json(self) -> dict[str, Any]:
        values = vars(self) | {"event": self.event.to_json(), "sampling": self.sampling.to_json()}
        values |= {"part": self.part and self.part.to_json(), "by_party": {k: event.to_json() for k, event in self.by_party}}
        return {name: value for name, value in values.items() if value or name not in OMITTED}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Entry:
        part = Part(*found["part"]) if found.get("part") else None
        read = {"event": Event(**found["event"]), "sampling": Sampling(**found["sampling"]), "part": part}
        read["by_party"] = tuple((name, Event(**event)) for name, event in found.get("by_party", {}).items())
        return cls(**found | read)


@displayed
class Ledger:
    """An append-only list of entries, optionally limited, optionally with a durable record.

    Parameters
    ----------
    limit : Limit, optional
        Refuses the next question when it would exceed the budget.
    record : Record, optional
        See `attach`.

    Attributes
    ----------
    entries : list of Entry
        What was asked by this run.
    others : list of Entry
        What other runs wrote to a shared record: charged like this run's own.
    party_limits : mapping from party to Limit
        Each limits what one party loses, counted by its own noise; a question that exceeds one of them is refused.
    judged : mapping from (branch, number) to str
        How many rows were refused of questions whose rows are proved. It is known after they were asked, and in no record.
    """

    def __init__(self, limit: Limit | None = None, record: Record | None = None) -> None:
        self.limit: Limit | None = limit
        self.party_limits: Mapping[str, Limit] = {}
        self.record: Record | None = None
        self.entries: list[Entry] = []
        self.others: list[Entry] = []
        self.judged: dict[tuple[str, int], str] = {}
        self._read = 0
        self._expected: list[Entry] = []
        self._counted: Tally | None = None
        self._priced: Priced | None = None
        self._by_party: PartyCosts | None = None
        self._claimed: object = None
        if record is not None:
            self.attach(record)

    def afresh(self) -> Ledger:
        """An empty ledger under the same limits."""
        found = Ledger(self.limit)
        found.party_limits = self.party_limits
        return found

    def claim(self, numbers: object) -> None:
        """Take this ledger for the runs that count questions and cohorts by these numbers.

        Raises
        ------
        BudgetInvalid (HR-214)
            Other runs have it. Two cohorts of one number would count as one sample, and cost what one costs.
        """
        if self._claimed is not None and self._claimed is not numbers:
            raise BudgetInvalid(
                "the ledger is that of another federation, and cohorts of both would have the same numbers.",
                remedy="Give each federation a ledger of its own. For one budget, let them share a file: "
                "Ledger(budget, hedgerow.store.LedgerBase(path)).",
            )
        self._claimed = numbers

    def attach(self, record: Record) -> None:
        """Keep this ledger, still empty, in a durable record from now on; what the record holds is continued."""
        if self.entries:
            remedy = "Attach it before the first question."
            raise BudgetInvalid(f"a record comes too late: the ledger holds {len(self.entries)} questions.", remedy=remedy)
        if self.record is not None and self.record is not record:
            remedy = "Start from a federation without one."
            raise BudgetInvalid(f"the ledger is kept in {self.record} already; {record} would replace it.", remedy=remedy)
        if self.record is None and _ATTACHED.get(id(record)) is record:  # what one of them writes the other would not read
            remedy = "Open the file once more: each ledger reads and writes by a record of its own."
            raise BudgetInvalid(f"{record} keeps another ledger already.", remedy=remedy)
        _ATTACHED[id(record)] = record
        self.record, self.entries = record, list(record.read())
        self._read = len(self.entries)
        self.catch_up()

    def catch_up(self) -> None:
        """Take in what other runs wrote to a shared record; `debit` does so by itself."""
        if self.record is not None:
            with self.record.transaction() as newer:
                self.others += newer

    def __len__(self) -> int:
        return len(self.entries)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each question of this run: what was asked of whom, what left, how it was protected and charged."""
        return frame_of(self.entries, self.judged)

    def epsilon(self, *, delta: float | None = None, unit: Unit | None = None, accountant: str | None = None) -> float:
        """Epsilon of everything asked so far, other runs of a shared record included: what the ledger shows.

        Parameters
        ----------
        delta : float, optional
            By default that of the budget, or 1e-6 without one. At 0 pure epsilons add up.
        unit : {"party", "record"}, optional
            Whose presence is protected; by default that of the budget, or of the questions.
        accountant : str, optional
            As of `hedgerow.privacy.epsilon`; by default that of the budget, or the tightest.

        Returns
        -------
        float
            0 where nothing was released, infinity where something was released without noise, or at delta 0 with noise that has
            no pure epsilon, as Gaussian noise. Under a filter, and with nothing
            given, that of the budget, whatever was used of it.
        """
        found: float = import_module("hedgerow.privacy.spent").spent(self, delta, unit, accountant)
        return found

    @property
    def continued(self) -> bool:
        """Whether its record held entries of this run when it was attached."""
        return self._read > 0

    def numbers(self, branch: str = MAIN) -> tuple[int, int]:
        """Largest numbers of a question, and of a cohort or partition, of a branch so far; zero at first."""
        return self._tally().numbers.get(branch, (0, 0))

    @property
    def exact(self) -> ExactNumbers:
        """Numbers without noise that this run has asked of a party."""
        return self._tally().exact

    def payment(self, key: str) -> Entry | None:
        """The last question with this key that was charged itself."""
        return self._tally().payments.get(key)

    def uses(self, key: str, *, since_start: bool) -> int:
        """How many questions have this key; of this process only, where the noise that they share dies with it."""
        tally = self._tally()
        return (tally.recent if since_start else tally.uses)[key]

    def debit(self, entry: Entry) -> None:
        """Write an entry, or refuse it while nothing has been asked.

        Raises
        ------
        BudgetExhausted (HR-213)
            The entry would exceed the limit. Nothing was written and nobody was asked.
        """
        if self._expected:
            return self._repeat(entry)
        if self.record is None:
            self._admit(entry)
        else:
            with self.record.transaction() as newer:  # nobody else writes between what was read and what is written
                self.others += newer
                self._admit(entry)
                self.record.write(entry)
        self.entries.append(entry)
        return None

    def charges(self, unit: Unit, also: Entry | None = None) -> list[Charge]:
        """Group the events of all runs by run and cohort, for an accountant; refuse to mix units (`Entry.debit`)."""
        return grouped([*self.released, *([also] if also else [])], unit)

    @property
    def released(self) -> list[Entry]:
        """What all runs asked; what a resumed run expects was released before."""
        return [*self.others, *self.own]

    @property
    def own(self) -> list[Entry]:
        """What this run asked, also what it expects to ask once more after a resumption."""
        return [*self.entries, *self._expected]

    def rewind(self, length: int, *, replay: bool) -> None:
        """Return to an earlier length, for a resumed run.

        Parameters
        ----------
        replay : bool
            With seeded randomness the questions after that point will be asked again in the same way and release the
            same values: they are expected, not written twice. Otherwise they stay, since asking again releases anew.
        """
        if length > len(self.entries):
            raise LedgerDamaged(f"the ledger has {len(self.entries)} entries, the checkpoint knows {length}: some were lost.")
        if replay:
            self._expected = self.entries[length:]
            del self.entries[length:]

    def _repeat(self, entry: Entry) -> None:
        expected = self._expected.pop(0)
        if entry != expected:
            self._expected.insert(0, expected)
            raise CheckpointMismatch(
                f"the resumed run asks {entry.query} in round {entry.round}, not what the ledger has next: {expected.query}.",
                remedy="Resume with the same study, data and version.",
            )
        self.entries.append(entry)

    def _admit(self, entry: Entry) -> None:
        limit = self.limit
        if entry.free:
            return
        if self.party_limits:
            self.by_party().refuse(entry)
        if limit is None:
            return
        so_far, debit = self._running(limit), entry.debit(limit.unit)
        if debit is not None and not so_far.would(debit):
            raise BudgetExhausted(
                f"round {entry.round} ({entry.query}, {entry.event}) would exceed the budget of {limit}.",
                remedy="What was released stands. For more, raise the noise or the budget, or lower the sampling rate.",
            )

    def by_party(self) -> PartyCosts:
        """What everything so far cost the parties that have limits; what a resumed run expects cost them before."""
        if self._expected:
            return PartyCosts(self.party_limits, self.released).caught_up()
        if self._by_party is None or not self._by_party.fits(self.party_limits, self.others, self.entries):
            self._by_party = PartyCosts(self.party_limits, self.others, self.entries)
        return self._by_party.caught_up()

    def _tally(self) -> Tally:
        if self._counted is None or not self._counted.fits(self.entries, self._read):
            self._counted = Tally(self.entries, self._read)
        return self._counted.caught_up()

    def _running(self, limit: Limit) -> Spending:
        if self._priced is None or not self._priced.fits(limit, self.others, self.entries):
            self._priced = Priced(limit, self.others, self.entries)
        return self._priced.caught_up()


_ATTACHED: WeakValueDictionary[int, Record] = WeakValueDictionary()
"""Records that keep a ledger, by their identity; they need not be hashable."""


def grouped(entries: Iterable[Entry], unit: Unit) -> list[Charge]:
    """The events of entries by run and cohort, for an accountant."""
    debits = (entry.debit(unit) for entry in entries)
    return charges_of(debit for debit in debits if debit is not None)
