"""`Sharded`: a simulation whose parties are spread over other processes, each of which answers for a shard of them.

    this process                                        a shard's process
    who answers, and in time; guards; the ledger        columns, prepared columns, local functions
    broadcast, once for all shards            ->        its parties' answers
    inboxes, merged in the order of shards    <-        their total, or their rows
    checkpoints                               <->       what its parties keep

Who answers is drawn here, from the same streams as `InProcess` draws it. Parties are split by position, so that all shards
hold about as many records; how many shards there are is a setting, so that results do not depend on the machine.

A process that ends takes its parties out of the question at hand: they have dropped out. It is started again for the next
question; what its parties kept is lost, and who needs it is told so (`StateLost`). The last checkpoint has it.
"""

from __future__ import annotations

import json
import logging
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.party import Parties
from hedgerow.core.question import name_of
from hedgerow.core.state import State
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.errors import (
    ConfigInvalid,
    HedgerowError,
    NotNamed,
    PartyDeclined,
    StateLost,
    UnlawfulChannel,
    catalogue,
)
from hedgerow.privacy.guard import Guard, willing
from hedgerow.wire.question import common, inbox, own
from hedgerow.wire.values import pack, unpack

from .arrivals import Arrivals
from .merging import merged
from .shard import Reply, common_to, parcels, split

log = logging.getLogger("hedgerow")


class Crew(Protocol):
    """The processes of shards, and the way to them. Shards are numbered from 0; simulations share a crew, by numbers."""

    shards: int

    def host(self, common: Mapping[str, Array], each: Sequence[tuple[str, Mapping[str, Array]]]) -> int:
        """Give columns to the first so many shards, also when they are started again; return the simulation's number."""

    def drop(self, number: int) -> None:
        """Forget a simulation; may be called at any moment."""

    def ready(self, shards: Collection[int]) -> Mapping[int, int]:
        """See to it that processes run; return for each of them how often it was started."""

    def ask(self, number: int, kind: str, common: Sequence[bytes], own: Mapping[int, bytes]) -> Mapping[int, Reply]:
        """Tell shards something that is common to all, then what is their own; those that end before they reply are missing."""

    def close(self) -> None:
        """End all processes."""


class Hosted:
    """The parties of one simulation, as its server's process knows them.

    Parameters
    ----------
    crew : Crew
    held : Parties
        They are sent to the shards with the first question.
    """

    def __init__(self, crew: Crew, held: Parties, *, collapse: bool) -> None:
        self.crew, self.collapse = crew, collapse
        self.bounds = split(held.sizes, crew.shards)
        self.position = held.position
        self.ids = held.ids
        self.whole = [held.ids[begin:end] for begin, end in pairwise(self.bounds)]
        self._held: Parties | None = held
        self._number = 0
        self._keeps: dict[int, int] = {}
        self._introduced: dict[int, int] = {}

    def shards_of(self, ids: Sequence[str]) -> dict[int, Sequence[str]]:
        """Parties by the shard that holds them, shards and parties in order."""
        if len(ids) == len(self.ids) and tuple(ids) == self.ids:
            return dict(enumerate(self.whole))
        at = np.array([self.position[id] for id in ids])
        shard = np.searchsorted(self.bounds, at, side="right") - 1
        if (shard == shard[0]).all():
            return {int(shard[0]): tuple(ids)}
        found: dict[int, list[str]] = {int(k): [] for k in np.unique(shard)}
        for id, k in zip(ids, shard.tolist(), strict=True):
            found[k].append(id)
        return {k: tuple(theirs) for k, theirs in found.items()}

    def told(
        self, kind: str, shared: Sequence[bytes], own: Mapping[int, bytes], *, needs: bool
    ) -> dict[int, bytes | memoryview]:
        """What shards reply; those that end before they reply are missing.

        Parameters
        ----------
        needs : bool
            Whether what is asked depends on what parties keep.

        Raises
        ------
        StateLost (HR-615)
            It does, and a shard was started again after its parties had kept something. Nobody was asked.
        HedgerowError
            What a shard said instead of an answer.
        """
        self._send()
        lives = self.crew.ready(own)
        lost = [k for k in own if self._keeps.get(k, lives[k]) != lives[k]]
        if needs and lost:
            raise StateLost(
                f"the process of shard {lost[0] + 1} of {len(self.bounds) - 1} ended, and with it what its parties kept.",
                remedy="Resume from the last checkpoint, or start again.",
            )
        replies = self.crew.ask(self._number, kind, shared, own)
        for k in sorted(own.keys() - replies.keys()):
            log.warning("the process of shard %d ended; its parties are missing from this question", k + 1)
        for k, (how, body) in sorted(replies.items()):
            if how == "refused":
                raise _raised(body)
            if how == "keeps" and k not in lost:
                self._keeps[k] = lives[k]
        return {k: body for k, (_, body) in sorted(replies.items())}

    def _send(self) -> None:
        """Let shards have their parties, once."""
        if self._held is not None:
            held, self._held = self._held, None
            each = [parcels(held, begin, end, collapse=self.collapse) for begin, end in pairwise(self.bounds)]
            self._number = self.crew.host(common_to(held), each)
            weakref.finalize(self, self.crew.drop, self._number).atexit = False

    def forget(self) -> None:
        """Learn that other states take the place of all that were kept."""
        self._keeps = {}

    @cached_property
    def identities(self) -> dict[str, Identity]:
        """An identity for each party, as each would have its own between organisations; made when a protocol needs them."""
        return {id: Identity.fresh() for id in self.position}

    @cached_property
    def roster(self) -> Roster:
        """Everybody's public identity."""
        return Roster({id: identity.public for id, identity in self.identities.items()})

    def introduce(self, shards: Iterable[int]) -> None:
        """Let parties know who they are and who the others are, where their process does not know yet."""
        if "roster" not in vars(self):  # no protocol has asked for it
            return
        self._send()
        lives = self.crew.ready(list(shards))
        new = {k: life for k, life in lives.items() if self._introduced.get(k) != life}
        if new:
            names, public = list(self.position), dict(self.roster)
            own = {k: {id: self.identities[id].private for id in names[self.bounds[k] : self.bounds[k + 1]]} for k in new}
            self.told("roster", [], {k: pack({"public": public, "own": theirs}) for k, theirs in own.items()}, needs=False)
        self._introduced |= new

    @property
    def pristine(self) -> bool:
        """Whether nobody was asked yet."""
        return self._held is not None

    @property
    def keeping(self) -> list[int]:
        """Shards whose parties keep something."""
        return sorted(self._keeps)

    @property
    def all(self) -> range:
        """All shards that hold parties."""
        return range(len(self.bounds) - 1)


class ShardStates:
    """What the parties of all shards keep, as the server's process reaches it for checkpoints."""

    def __init__(self, hosted: Hosted) -> None:
        self.hosted = hosted

    def __bool__(self) -> bool:
        return bool(self.hosted.keeping)

    def settle(self, id: str, counted: Mapping[str, int]) -> State:
        """Commit or drop what waits at all parties of its shard, then return a party's state."""
        return dict(self._fetched(list(self.hosted.shards_of([id])), counted).get(id, {}))

    def propose(self, id: str, state: State, asked_in: int) -> None:
        """Keep a new state until the next question says whether this one was counted."""
        (k,) = self.hosted.shards_of([id])
        self.hosted.told("propose", [], {k: pack((id, dict(state), asked_in))}, needs=True)

    def committed(self, counted: Mapping[str, int]) -> dict[str, State]:
        """Settle and return every party's state, for a checkpoint."""
        return self._fetched(self.hosted.keeping, counted)

    def restore(self, states: Mapping[str, State]) -> None:
        """Put checkpointed states back."""
        self.hosted.forget()
        if not states and self.hosted.pristine:
            return
        theirs: dict[int, dict[str, State]] = {k: {} for k in self.hosted.all}
        for k, ids in self.hosted.shards_of(list(states)).items() if states else ():
            theirs[k] = {id: dict(states[id]) for id in ids}
        done = self.hosted.told("restore", [], {k: pack(kept) for k, kept in theirs.items()}, needs=False)
        if len(done) < len(theirs):
            raise StateLost("a shard's process ended while states were restored.", remedy="Resume again.")

    def _fetched(self, shards: Sequence[int], counted: Mapping[str, int]) -> dict[str, State]:
        if not shards:
            return {}
        replies = self.hosted.told("states", [], dict.fromkeys(shards, pack(dict(counted))), needs=True)
        if len(replies) < len(shards):
            raise StateLost("a shard's process ended, and with it what its parties kept.", remedy="Resume from the checkpoint.")
        return {id: state for body in replies.values() for id, state in unpack(body).items()}


@dataclass
class Sharded:
    """What `Processes` and `Ray` have in common; everything but the way to the shards.

    Parameters
    ----------
    shards : int
        Into how many the parties are split; results depend on it as little as on the number of threads.
    threads_each : int
        Threads of a shard's process.
    dropout_rate, dropped, returns, deadline, latency, collapse, guards
        As of `InProcess`; guards are asked in this process.

    Raises
    ------
    ConfigInvalid (HR-601)
        There is no such number of shards or threads.
    """

    shards: int = 2
    threads_each: int = 1
    dropout_rate: float = 0.0
    dropped: Collection[str] = ()
    returns: bool = True
    deadline: float | None = None
    latency: tuple[float, float] = (1.0, 0.5)
    collapse: bool = True
    guards: Mapping[str, Guard] = field(default_factory=dict)
    held: Parties = field(default_factory=lambda: Parties((), {}, ()), repr=False)
    crew: Any = field(default=None, repr=False, compare=False)

    elsewhere: ClassVar[bool] = True
    """Parties' sides of protocols are made where the parties are."""

    def __post_init__(self) -> None:
        for name, value in {"shards": self.shards, "threads_each": self.threads_each}.items():
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
                raise ConfigInvalid(f"{name}={value!r} is no number of processes or threads.", remedy="For example 2.")
        self._arrivals = Arrivals(self.dropout_rate, self.dropped, self.returns, self.deadline, self.latency)
        self._leaving = self._arrivals.leaving
        self.crew = self.crew or self._crew()
        if not isinstance(self.held.states, ShardStates):
            self.held = self.held.fresh()
            self.held.states = ShardStates(Hosted(self.crew, self.held, collapse=self.collapse))

    def _crew(self) -> Crew:
        raise ConfigInvalid("Sharded() has no processes.", remedy="Use Processes(shards=2), or engines.Ray(shards=2).")

    def hosting(self, held: Parties) -> Any:
        """Return this engine, on the same processes, with these parties."""
        return replace(self, held=held.fresh())

    @property
    def parties(self) -> Sequence[str]:
        return self.held.ids

    @property
    def roster(self) -> Roster:
        """The parties' identities, for protocols whose servers may lie."""
        return self.hosted.roster

    @property
    def hosted(self) -> Hosted:
        """The parties, by shards."""
        states = self.held.states
        assert isinstance(states, ShardStates)
        return states.hosted

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask every party in the outbox; those that decline, drop out, come too late or whose process ends are missing."""
        question, step = outbox.question, outbox.step
        if step is None:
            ids = self._arrivals.of_question(outbox, willing(self.guards, outbox.ids, outbox)[0], self.held)
        else:
            ids = self._arrivals.of_step(outbox, self.held)
            ids = willing(self.guards, ids, outbox)[0] if step.contributes else ids
        if not ids:
            return Inbox(())
        _refuse_script(question.function)
        if step is not None and getattr(outbox.protocol, "aggregation", None) is None:
            raise UnlawfulChannel(
                f"the step {step.name!r} belongs to a protocol whose sides are made in one process only.",
                remedy="Run these parties by InProcess().",
            )
        asked = replace(outbox, ids=ids, question=replace(question, cohort=replace(question.cohort, first=None)))
        shards = self.hosted.shards_of(ids)
        bodies = {k: own(asked, some, named=some is not self.hosted.whole[k]) for k, some in shards.items()}
        if step is not None:
            self.hosted.introduce(shards)
        replies = self.hosted.told("question", [common(asked)], bodies, needs=not outbox.stateless)
        return merged(question.name, ids, [inbox(cast(bytes, body), shards[k], asked) for k, body in replies.items()])

    def close(self) -> None:
        """End the processes of all simulations on this crew."""
        self.crew.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _raised(body: bytes | memoryview) -> HedgerowError:
    """The error of which a shard told the code."""
    said = json.loads(bytes(body))
    code, codes = said["code"], said["codes"]
    remedy = "The reason is in the log of the shard's process, which is this program's standard error unless set otherwise."
    if code == PartyDeclined.code:
        party = next(iter(codes), "a party")
        return PartyDeclined(f"{party} declined: {codes.get(party, code)}.", codes=codes, remedy=remedy)
    return catalogue().get(code, PartyDeclined)("a shard's process gave this code instead of an answer.", remedy=remedy)


def _refuse_script(function: Any) -> None:
    if name_of(function).startswith("__main__:"):
        raise NotNamed(
            f"{name_of(function)} is defined in the script itself, which other processes cannot import.",
            remedy="Move it to a module beside the script, or run parties by InProcess().",
        )
