"""The federation: the handle that a program holds.

    verb                          leaves each party                        use
    each(local, broadcast)        nothing; party state may change          train now, ask twice later
    sum(local, broadcast, bound)  only the total leaves the cohort         everything that can be a sum
    gather(local, broadcast)      every party's contribution               medians, debugging; costs "nonprivate"

A handle is closed: a program can add protection and read what was charged, and reaches neither protection nor ledger nor
records. Rooms that run programs (engines, runs, studies) open handles by `inside`; rooms of programs may not import it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from hedgerow.display import cell
from hedgerow.errors import BudgetInvalid, SlotFilled, UnlawfulChannel

from .arrays import Array, Arrays
from .bound import Bounds
from .channel import Channel, Protection
from .closed import Closed
from .cohort import Cohort, check_sampling, groups_of
from .engine import Engine
from .events import Part, Sampling
from .judged_rows import JudgedRows, refused_words
from .ledger import Ledger
from .ledger_view import LedgerView
from .limits import Limit, Record
from .party import Local
from .question import ASIDE, MAIN, Preparation, Question, Verb, function_of, name_of
from .randomness import Stream, Streams, uniforms
from .run import Run, begun_at
from .view import Views


class Inside(NamedTuple):
    """The five values of a handle.

    Attributes
    ----------
    run : Run
        Engine, schema, randomness, ledger and counters: the one mutable thing, which all handles of a federation share.
    cohort, channel : Cohort, Channel
        Who is asked, and how sums travel.
    view : tuple of Preparation
        The columns that parties prepare.
    branch : str
        To which a question's number belongs.
    """

    run: Run
    cohort: Cohort
    channel: Channel = Channel()
    view: tuple[Preparation, ...] = ()
    branch: str = MAIN


_INSIDE: WeakKeyDictionary[Federation, Inside] = WeakKeyDictionary()


def inside(federation: Federation) -> Inside:
    """Open a handle; for rooms that run programs, not for programs."""
    return _INSIDE[federation]


def handle(values: Inside) -> Federation:
    """Close values into a handle."""
    made = Federation.__new__(Federation)
    _INSIDE[made] = values
    return made


class Federation(Closed):
    """The parties as one handle.

    Parameters
    ----------
    engine : Engine
        Carries questions and answers.
    schema : Schema, optional
        Declares every party's columns; bounds are computed from it, never from data.
    streams : Streams
        All randomness; by default of the operating system.
    ledger : Ledger, optional
    record_views : bool
    asked : int
        Questions that were asked before, of a run that is continued.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        engine: Engine,
        schema: Any = None,
        streams: Streams | None = None,
        *,
        ledger: Ledger | None = None,
        record_views: bool = False,
        asked: int = 0,
    ) -> None:
        run = Run(engine, schema, streams or Streams(), Ledger() if ledger is None else ledger, Views(record_views))
        begun_at(run, asked)
        _INSIDE[self] = Inside(run, Cohort(engine.parties))

    def __repr__(self) -> str:
        run, cohort, channel, *_ = _INSIDE[self]
        noise, asked = channel.mechanism or "no noise", f"{len(run.ledger)} questions{refused_words(run.judged)}"
        return f"Federation({len(cohort.members)} of {run.size} parties, {type(run.engine).__name__}, {noise}, {asked})"

    _repr_html_ = cell

    # ---- what a program may know ------------------------------------------------------------------------------------
    @property
    def schema(self) -> Any:
        """The declaration of every party's columns (`hedgerow.data.Schema`), prepared ones included; or None."""
        run, *_, view, _ = _INSIDE[self]
        columns = [column for preparation in view for column in preparation.declares]
        return run.schema.with_columns(columns) if columns and run.schema is not None else run.schema

    @property
    def size(self) -> int:
        """Parties in the whole federation, which is public."""
        return _INSIDE[self].run.size

    @property
    def names(self) -> Sequence[str]:
        """Names of all parties of the federation, which are public."""
        return _INSIDE[self].run.engine.parties

    @property
    def members(self) -> Sequence[str]:
        """Names of the parties in this cohort; of one that was drawn by a rate, who is in it is the server's secret."""
        return _INSIDE[self].cohort.members

    @property
    def is_cohort(self) -> bool:
        """Whether parties, or records, were sampled or picked."""
        return _INSIDE[self].cohort.number != 0

    @property
    def expected_size(self) -> float:
        """Expected number of parties in this cohort: public, unlike the number that came."""
        run, cohort, *_ = _INSIDE[self]
        return run.expected_size(cohort.sampling)

    @property
    def protection(self) -> Protection:
        """How sums are protected, in words and numbers."""
        return _INSIDE[self].channel.protection

    @property
    def ledger(self) -> LedgerView:
        """What was asked and charged, to read."""
        return LedgerView(_INSIDE[self].run.ledger)

    @property
    def asked(self) -> int:
        """Number of the last question that a program asked."""
        return _INSIDE[self].run.counts[MAIN].questions

    @property
    def missing(self) -> int:
        """Answers that never came."""
        return _INSIDE[self].run.missing

    @property
    def judged(self) -> tuple[JudgedRows, ...]:
        """Of each question whose rows were proved to be within their bound, how many were refused."""
        return tuple(_INSIDE[self].run.judged)

    @property
    def keeps_state(self) -> bool:
        """Whether parties may keep something from earlier questions."""
        return bool(_INSIDE[self].run.counted)

    @property
    def prepares(self) -> bool:
        """Whether parties prepare columns."""
        return bool(_INSIDE[self].view)

    def stream(self, number: int, purpose: str) -> Stream:
        """Randomness of the server's own, for a program's choices, such as an order of parties.

        Parameters
        ----------
        number : int
            Of the round; the same number and purpose give the same stream of a seeded run.
        purpose : str
            In words; those of the waist's own draws are refused.
        """
        return _INSIDE[self].run.streams.for_program(number, purpose)

    # ---- who --------------------------------------------------------------------------------------------------------
    def sample(
        self,
        *,
        rate: float | None = None,
        size: int | None = None,
        spare: int = 0,
        records: float | None = None,
        every: int | None = None,
    ) -> Federation:
        """Draw a cohort; all questions to it compose inside one sampling event.

        Parameters
        ----------
        rate : float
            Each party joins by itself with this probability (Poisson sampling). The cohort may be empty.
        size : int
            Exactly this many parties, without replacement.
        spare : int
            With `size`: so many more are asked; the first `size` count.
        records : float
            Everybody is asked, about records of which each joins by itself with this probability.
        every : int
            Parties take turns: the cohort is the next of so many groups of parties.
        """
        run = _INSIDE[self].run
        check_sampling(rate, size, spare, records, every, n=run.size, of_cohort=self.is_cohort)
        if records is not None:
            return self._cohort(Sampling("records", records))
        if every is not None:
            return self._in_turn(every)
        draws = run.streams.uniform(run.size, self._place_of_cohort, "server", "cohort")
        if rate is not None:
            return self._cohort(Sampling("poisson", rate), draws < rate)
        assert size is not None  # by check_sampling
        chosen = draws.argsort(kind="stable").argsort() < size + spare
        return self._cohort(Sampling("fixed", size / run.size, size), chosen, first=size if spare else None)

    def pick(self, names: Collection[str]) -> Federation:
        """Return the cohort of these parties, whose choice is public and depends on nobody's data."""
        run, wanted = _INSIDE[self].run, set(names)
        if self.is_cohort or not wanted or (unknown := wanted - set(run.engine.parties)):
            what = "a cohort of a cohort" if self.is_cohort else f"a cohort of {sorted(unknown)[:3] if wanted else 'nobody'}"
            raise BudgetInvalid(f"{what} cannot be picked.", remedy="Pick parties of the federation, by their names.")
        chosen = np.array([name in wanted for name in run.engine.parties])
        return self._cohort(Sampling("given", len(wanted) / run.size, len(wanted)), chosen)

    def split(self, groups: int, *, balanced: bool = False) -> tuple[Federation, ...]:
        """Return a partition of the parties into so many disjoint groups.

        A party's group follows from its name and from randomness of the server, whatever the data are. A unit is in one group,
        so questions to all groups cost what those to the dearest one cost. Groups differ in size, and one may be empty; where
        they are `balanced`, by one party at most, and a group follows from all names together: a public schedule.

        Raises BudgetInvalid (HR-214) where there are fewer parties than groups, or this is a cohort.
        """
        run = _INSIDE[self].run
        whole = isinstance(groups, int) and not isinstance(groups, bool)
        if self.is_cohort or not whole or not 0 < groups <= run.size:
            what = "a cohort" if self.is_cohort else f"{run.size} parties"
            raise BudgetInvalid(
                f"{what} cannot be split into {groups!r} groups.",
                remedy="Split the federation, into at least one group and at most as many as there are parties.",
            )
        partition = run.next_cohort(_INSIDE[self].branch)
        key = run.streams.entropy(self._place_of_cohort, "server", "groups")(32)
        own = groups_of(run.engine.parties, groups, key, balanced=balanced)
        return tuple(self._group("dealt" if balanced else "part", own == k, Part(partition, k, groups)) for k in range(groups))

    def _in_turn(self, every: int) -> Federation:
        """The group whose turn it is: by the questions that share the mechanism's noise, else by cohorts."""
        run, _, channel, *_ = _INSIDE[self]
        key = None if channel.mechanism is None else channel.mechanism.key
        now = (run.counts[MAIN].cohorts if key is None else run.uses(key)) % every
        order = np.argsort(uniforms(run.streams.recalled(0, "server", "turns"), run.size), kind="stable")
        chosen = np.zeros(run.size, bool)
        chosen[order[np.arange(run.size) % every == now]] = True
        return self._group("given", chosen, Part(0, now, every))

    def _group(self, kind: Literal["given", "part", "dealt"], chosen: Array, part: Part) -> Federation:
        return self._cohort(Sampling(kind, float(chosen.mean()), int(chosen.sum())), chosen, part=part)

    @property
    def _place_of_cohort(self) -> int | str:
        run, *_, branch = _INSIDE[self]
        number = run.next_cohort(branch)
        return number if branch == MAIN else f"{branch} {number}"

    def _cohort(
        self, sampling: Sampling, chosen: Array | None = None, first: int | None = None, part: Part | None = None
    ) -> Federation:
        run, *_, branch = values = _INSIDE[self]
        number = run.counts[branch].cohorts = run.next_cohort(branch)
        return handle(values._replace(cohort=Cohort(run.parties_named(chosen), sampling, number, first, part, branch)))

    def align(self, *, on: str, by: Any) -> Any:
        """Let parties with columns of their own find the people they have in common; return `hedgerow.vertical.Aligned`."""
        return import_module("hedgerow.vertical.aligned").align(self, on, by)  # a room above this one

    # ---- how --------------------------------------------------------------------------------------------------------
    def protect(
        self, *, clip: Bounds | None = None, compression: Any = None, mechanism: Any = None, aggregation: Any = None
    ) -> Federation:
        """Return this federation with slots of its channel filled; a slot that is filled cannot be replaced."""
        values = _INSIDE[self]
        slots = {"clip": clip, "compression": compression, "mechanism": mechanism, "aggregation": aggregation}
        return handle(values._replace(channel=values.channel.fill(**slots)))

    def within(self, budget: Limit) -> Federation:
        """Limit what is released of these parties, through this handle or any other: a question beyond it is refused."""
        run = _INSIDE[self].run
        if any(branch.questions for branch in run.counts.values()):
            raise BudgetInvalid(
                "a budget comes too late after the first question.",
                remedy="Call within(budget) before it, or simulate(...) anew: budget and ledger belong to the records.",
            )
        if (held := run.ledger.limit) is not None and (type(budget) is not type(held) or held != budget):
            raise SlotFilled(
                f"the budget is already {held}; {budget} would replace it.", remedy="Set it once, or simulate(...) anew."
            )
        run.limit_to(held or budget)
        return self

    def recorded(self, record: Record) -> Federation:
        """Keep the ledger, still empty, in a durable record from now on; what the record holds is continued."""
        _INSIDE[self].run.ledger.attach(record)
        return self

    def prepare(
        self, function: Callable[..., Mapping[str, Array]], *, declares: Sequence[Any] = (), **settings: Any
    ) -> Federation:
        """Return this federation with columns prepared at each party, record by record; nothing leaves.

        Parameters
        ----------
        function : callable
            Top-level function `(columns, **settings) -> new columns`.
        declares : sequence of hedgerow.data.Column
            What columns are from then on, new ones and others. Parties are not told.
        """
        name_of(function)
        made = Preparation(function, tuple(sorted(settings.items())), tuple(declares))
        return handle(_INSIDE[self]._replace(view=(*_INSIDE[self].view, made)))

    def aside(self) -> Federation:
        """Return this federation for a measurement that leaves a program as it is: same parties, channel and ledger.

        Questions aside have numbers of their own, so that streams of the program stay as they are; so does what parties keep.
        """
        return handle(_INSIDE[self]._replace(branch=ASIDE))

    # ---- the three verbs --------------------------------------------------------------------------------------------
    def each(self, local: Local, broadcast: Arrays = None, *, init: Local | None = None) -> None:
        """Let each party compute and keep; nothing leaves."""
        name_of(function_of(local))
        self._ask("each", local, broadcast, None, init)

    def sum(self, local: Local, broadcast: Arrays = None, *, bound: Bounds | None = None, init: Local | None = None) -> Any:
        """Ask for the total of the parties' contributions.

        Parameters
        ----------
        local : callable
            Top-level function `(broadcast, party, rng, **settings) -> array or dict of arrays`.
        broadcast : array or dict of arrays
            Sent to every party.
        bound : Bound or dict of Bound, optional
            By how much one unit can move the total; needed where the channel adds noise and does not clip.
        init : callable, optional
            `(broadcast, party) -> state` of a party that keeps none yet.

        Returns
        -------
        array or dict of arrays, as `local` returns
            The released total: exact through an open channel, clipped and noisy through a private one.

        Raises
        ------
        UnboundedSum (HR-210), BudgetExhausted (HR-213)
            Before any party is asked.
        NobodyAnswered (HR-220), PartyDeclined (HR-221), ContributionInvalid (HR-222)
        """
        return self._ask("sum", local, broadcast, bound, init)

    def gather(
        self, local: Local, broadcast: Arrays = None, *, bound: Bounds | None = None, init: Local | None = None
    ) -> dict[str, Any]:
        """Ask for every party's contribution; refused where rows are hidden, costs `nonprivate` unless parties add noise."""
        protection = self.protection
        if protection.hides_rows or protection.noise_at not in (None, "party"):
            raise UnlawfulChannel(
                "gather asks for every row, but this channel protects only their total.",
                remedy="Ask for a sum, or add noise at the party.",
            )
        found: dict[str, Any] = self._ask("gather", local, broadcast, bound, init)
        return found

    def _ask(self, verb: Verb, local: Local, broadcast: Arrays, bound: Bounds | None, init: Local | None) -> Any:
        run, cohort, channel, view, branch = _INSIDE[self]
        told, number = tuple(preparation.told for preparation in view), run.next_question(branch)
        return run.ask(Question(verb, local, broadcast, bound, init, told, cohort, branch, number), channel)
