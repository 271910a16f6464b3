"""`Aligned`: the handle of parties that hold different columns of the same people.

    verb                             leaves each party                           use
    each(local)                      nothing                                     train now, ask twice later
    sum(local)                       rows behind masks, to the hub's seat        linear predictors of a generalised linear model
    send(local, to=..., then=...)    rows, sealed to parties                     split networks, predictions
    cross(left, right)               shares of bounded sums over records         everything else

Local functions are those of any federation; a party's columns are its own, with the common people in a common order. Products,
`cross`, are released, and so bounded, noised and charged. Rows are never released; a budget refuses them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hedgerow.core.aggregation import Aggregation, Plain
from hedgerow.core.apart import alignment, alignment_of
from hedgerow.core.arrays import Array, Arrays
from hedgerow.core.bound import Bounds
from hedgerow.core.closed import Closed
from hedgerow.core.cohort import Cohort
from hedgerow.core.events import Event
from hedgerow.core.federation import Federation, handle, inside
from hedgerow.core.ledger_view import LedgerView
from hedgerow.core.limits import Limit
from hedgerow.core.party import Local
from hedgerow.core.question import Question, Verb, function_of, name_of
from hedgerow.crypto.peer_protocol import Traffic
from hedgerow.crypto.peers import HUB
from hedgerow.crypto.psi.interface import AlignmentProtocol
from hedgerow.errors import BudgetInvalid, ColumnsDiffer, MissingColumn, NotAligned, UnlawfulChannel, suggestion

from .align import Aligning, people, refuse_protocol
from .given import given_by, told_for
from .own_total import OwnTotal
from .quiet import AtHome, Between
from .seat import HubSeat, PartySeat

MOST_SEATS = 64
"""Seats that are kept for further questions."""


@dataclass
class _Facts:
    """What all handles of one alignment share."""

    on: str
    by: AlignmentProtocol
    n: int
    schemas: Mapping[str, Any]
    saw: dict[str, list[str]] = field(default_factory=dict)
    cohorts: dict[tuple[str, ...], Cohort] = field(default_factory=dict)
    said: dict[Any, float] = field(default_factory=dict)  # epsilon that was paid for labels of a party, by their settings
    seats: dict[Any, PartySeat] = field(default_factory=dict)

    def seat(self, *how: Any) -> PartySeat:
        """A seat, the same for the same settings: a training asks for it thousands of times."""
        if how not in self.seats:
            if len(self.seats) >= MOST_SEATS:
                self.seats.clear()
            self.seats[how] = PartySeat(*how)
        return self.seats[how]

    def note(self, who: str, what: str) -> None:
        said = self.saw.setdefault(who, [])
        if what not in said:
            said.append(what)


class Aligned(Closed):
    """Parties with different columns of the same people, as one handle; made by `federation.align`."""

    __slots__ = ("__weakref__", "_facts", "_federation")

    def __init__(self, federation: Federation, facts: _Facts) -> None:
        self._federation, self._facts = federation, facts

    def __repr__(self) -> str:
        return f"Aligned({self.n} people common to {', '.join(self.names)}, on {self._facts.on!r})"

    # ---- what a program may know ------------------------------------------------------------------------------------
    @property
    def names(self) -> Sequence[str]:
        """Names of the parties, in the order of their blocks in products."""
        return self._federation.names

    @property
    def n(self) -> int:
        """How many people are common to all parties: public."""
        return self._facts.n

    @property
    def alignment(self) -> str:
        """The name under which the parties keep the alignment, which tells nothing of it; see `aligned_before`."""
        return str(alignment_of(inside(self._federation).view))

    @property
    def least(self) -> int:
        """The fewest people about whom a number is told."""
        return int(self._facts.by.least)

    @property
    def schemas(self) -> Mapping[str, Any]:
        """What each party declares of its columns."""
        return self._facts.schemas

    def owner(self, column: str) -> str:
        """The party that holds a column.

        Raises
        ------
        MissingColumn (HR-403), ColumnsDiffer (HR-407)
            Nobody holds it, or several parties do.
        """
        owners = [name for name, schema in self.schemas.items() if column in schema]
        if not owners:
            known = [name for schema in self.schemas.values() for name in schema.names]
            raise MissingColumn(f"no party holds a column {column!r}.", remedy=suggestion(column, known))
        if len(owners) > 1:
            said = f"{' and '.join(owners)} both hold a column {column!r}."
            raise ColumnsDiffer(said, remedy="Rename one, or leave it out at one of them.")
        return owners[0]

    @property
    def ledger(self) -> LedgerView:
        """What was asked and charged, to read."""
        return self._federation.ledger

    @property
    def protection(self) -> Any:
        """How products are protected, in words and numbers."""
        return self._federation.protection

    @property
    def saw(self) -> Mapping[str, Sequence[str]]:
        """Who saw what so far, in sentences: of every party, the hub and the world."""
        return {who: tuple(self._facts.saw.get(who, ())) for who in (*self.names, HUB, "world")}

    @property
    def traffic(self) -> Sequence[Traffic]:
        """What was sent between parties and hub, question by question."""
        found: list[Traffic] = inside(self._federation).run.sessions.open.get(Traffic, [])
        return tuple(found)

    def stream(self, number: int, purpose: str) -> Any:
        """As of `Federation.stream`."""
        return self._federation.stream(number, purpose)

    # ---- how --------------------------------------------------------------------------------------------------------
    def protect(self, *, mechanism: Any) -> Aligned:
        """Return this handle with noise in all products; rows cannot be asked for through it."""
        return Aligned(self._federation.protect(mechanism=mechanism), self._facts)

    def within(self, budget: Limit) -> Aligned:
        """Limit what is released of these people; refused (HR-214) after an answer that no noise covers."""
        if any(entry.event.open for entry in self.ledger.entries):
            raise BudgetInvalid("a budget comes after answers without noise.", remedy="Call within(...) before the first one.")
        inside(self._federation).run.limit_to(budget)
        return self

    # ---- the verbs --------------------------------------------------------------------------------------------------
    def each(
        self,
        local: Local,
        broadcast: Arrays = None,
        *,
        parties: Collection[str] | None = None,
        charge: Event | None = None,
    ) -> None:
        """Let parties compute and keep; nothing leaves.

        Parameters
        ----------
        charge : Event, optional
            What all that is made of what they keep now costs for each record, such as labels that were replaced at random.
        """
        self._ask("each", local, broadcast, Plain() if charge is None else AtHome(charge=charge), parties)

    def sum(self, local: Local, broadcast: Arrays = None) -> Array:
        """Add up all parties' rows for the hub, in an order that it does not know.

        Parameters
        ----------
        local : callable
            Returns an array of shape (n, k) at each party, zeros where it has nothing to add; below 2^30 in size.

        Returns
        -------
        array of shape (n, k)
            To 2^-33. The next `cross` takes rows of the hub in this order.

        Raises
        ------
        UnlawfulChannel (HR-211)
            The channel adds noise, which no row survives.
        BudgetExhausted (HR-213)
            There is a budget: rows have no finite epsilon.
        """
        self._without_noise("a sum whose rows are records")
        total: Array = self._ask("sum", local, broadcast, HubSeat(self.n), None)
        what = f"totals of {given_by(local)}, record by record, in secret order"
        self._note(told_for(local), *self.names)
        self._facts.note(HUB, f"{what}; with the coefficients, values of columns with few of them follow, unnamed")
        return total

    def send(
        self,
        local: Local,
        broadcast: Arrays = None,
        *,
        parties: Collection[str],
        to: str | Collection[str],
        then: Local,
        hidden: bool = False,
    ) -> None:
        """Add up rows of some parties for others, who run a local function on them; the hub sees sealed letters.

        Parameters
        ----------
        local : callable
            Returns an array of one shape at each of `parties`.
        to : str, or several
            Who receives the total.
        then : callable
            Local function of those who receive it, which find it in `party.received`. What parties keep changes together.
        hidden : bool
            Whether rows of two parties or more are masked, so that a receiver sees their total alone.
        """
        self._without_noise("rows for a party")
        receivers = (to,) if isinstance(to, str) else tuple(to)
        senders = tuple(name for name in self.names if name in set(parties))
        everybody = tuple(name for name in self.names if name in {*senders, *receivers})
        self._known({*parties, *receivers})
        self._ask("each", local, broadcast, self._facts.seat(senders, receivers, then, hidden), everybody)
        for name in receivers:
            whose = [sender for sender in senders if sender != name]
            alone = hidden and len(whose) > 1
            what = "the total of rows" if alone else "rows, record by record,"
            if whose:
                self._facts.note(name, f"{what} of {', '.join(whose)} ({given_by(local)})")

    def open_rows(self, local: Local, broadcast: Arrays = None, *, parties: Collection[str], hidden: bool = False) -> Array:
        """Let the hub receive rows of some parties, in the order in which they stand there, and return their total.

        It cannot name the people, but follows each from question to question, which the secret order of `sum` keeps from it, so
        openings are not counted: for rows that it may have so, as in the middle of a split network. Parameters as of `send`.
        """
        self._without_noise("rows for the hub")
        self._known(parties)
        senders = tuple(name for name in self.names if name in set(parties))
        found: Array = self._ask("each", local, broadcast, self._facts.seat(senders, (HUB,), None, hidden), senders)
        what = "the total of rows" if hidden and len(senders) > 1 else "rows, record by record,"
        self._facts.note(HUB, f"{what} of {', '.join(senders)} ({given_by(local)}), of people whom it cannot name")
        return found

    def total(self, local: Local, broadcast: Arrays = None, *, party: str) -> Array:
        """Ask one party for sums over records of a few of its own columns; they are released.

        Parameters
        ----------
        local : callable
            Returns an array of shape (n, k).

        Returns
        -------
        float64 array of shape (k,)

        Raises
        ------
        UnlawfulChannel (HR-211)
            The channel adds noise: `cross` has it in products.
        """
        self._without_noise("a party's own total")
        self._known([party])
        found: Array = self._ask("sum", local, broadcast, OwnTotal(), [party])
        self._note(f"sums over {self.n} people of {party}: {given_by(local)}", HUB, "world")
        return found

    def cross(
        self,
        left: Local,
        right: Local | None = None,
        broadcast: Arrays = None,
        *,
        bound: Bounds | None = None,
        hub: Array | None = None,
        weights: Array | None = None,
        pairs: bool = True,
    ) -> Array:
        """Sums over records of products of columns that lie apart; see `hedgerow.vertical.cross`."""
        from .cross import cross  # the only module that needs the ring

        found: Array = cross(self, left, right, broadcast, bound=bound, hub=hub, weights=weights, pairs=pairs)
        what = f"{' x '.join(map(str, found.shape))} sums over {self.n} people: {given_by(left)}"
        of = what if right is None else f"{what}, by {given_by(right)}"
        self._note(f"{of}, before noise" if getattr(self._mechanism, "at", None) == "server" else of, HUB)
        self._note(of, "world")
        return found

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _note(self, what: str | None, *who: str) -> None:
        for one in who if what else ():
            self._facts.note(one, str(what))

    def _known(self, parties: Collection[str]) -> None:
        if not parties or (unknown := set(parties) - set(self.names)):
            named = sorted(unknown)[0] if parties else ""
            raise MissingColumn(f"no party is called {named!r}.", remedy=suggestion(named, self.names))

    @property
    def _mechanism(self) -> Any:
        return inside(self._federation).channel.mechanism

    def _without_noise(self, what: str) -> None:
        if (mechanism := inside(self._federation).channel.mechanism) is not None:
            raise UnlawfulChannel(
                f"{what} was asked for through a channel that adds noise ({mechanism}), which rows do not survive.",
                remedy="Fit by products alone: means, tables and linear regression go with noise; or leave the mechanism out.",
            )

    def _ask(
        self,
        verb: Verb,
        local: Local,
        broadcast: Arrays,
        aggregation: Aggregation,
        parties: Collection[str] | None,
        bound: Bounds | None = None,
    ) -> Any:
        name_of(function_of(local))
        run, cohort, channel, view, branch = inside(self._federation)
        if parties is not None and set(parties) != set(self.names):
            self._known(parties)
            chosen = tuple(name for name in self.names if name in parties)
            if chosen not in self._facts.cohorts:
                self._facts.cohorts[chosen] = inside(self._federation.pick(chosen)).cohort
            cohort = self._facts.cohorts[chosen]
        mechanism = channel.mechanism if verb == "sum" else None
        how = replace(channel, mechanism=mechanism).by(aggregation)
        told = tuple(preparation.told for preparation in view)
        return run.ask(Question(verb, local, broadcast, bound, None, told, cohort, branch, run.next_question(branch)), how)


def align(federation: Federation, on: str, by: AlignmentProtocol) -> Aligned:
    """Let parties find the people they have in common; what `federation.align` calls.

    Raises
    ------
    NotAligned (HR-248)
        Parties hold the same columns, or fewer than two, or too few people are common.
    ArgumentInvalid (HR-107), SettingsInvalid (HR-511)
        `by` is no protocol, or one in which a single party learns who is common. Nobody was asked.
    """
    refuse_protocol(by, federation.names)
    values = inside(federation)
    run, schemas = values.run, values.run.schemas
    if len(schemas) < 2 or values.view or values.cohort.number:
        raise NotAligned(
            "parties are aligned that hold the same columns, or are fewer than two, or a cohort.",
            remedy=f"simulate(..., on={on!r}) takes a table for each party, with columns of its own.",
        )
    if HUB in schemas:
        raise NotAligned(f"a party is called {HUB!r}, as the server is.", remedy="Give it another name.")
    name = str(run.next_question(values.branch))
    question = Question("each", partial(people, on=on), None, None, None, (), values.cohort, values.branch, int(name))
    n = run.ask(question, values.channel.by(Aligning(by, on, name)))
    return aligned_before(federation, on, by, name, int(n))


def aligned_before(federation: Federation, on: str, by: AlignmentProtocol, name: str, n: int) -> Aligned:
    """The handle of an alignment that the parties keep; its name is the number of the question by which it was made."""
    values = inside(federation)
    schemas = values.run.schemas
    channel = values.channel.by(Between())
    view = handle(values._replace(view=(alignment(name),), channel=channel))
    facts = _Facts(on, by, n, schemas)
    for party in schemas:
        facts.note(party, by.shows.get("party", "the sizes of the lists, and which of its own people are common"))
        if len(schemas) > 2 and "pivot" in by.shows:  # the hub does not know whose list is the shortest
            facts.note(party, by.shows["pivot"])
    facts.note(HUB, by.shows.get("hub", "sizes of sealed letters, and how many people are common"))
    return Aligned(view, facts)
