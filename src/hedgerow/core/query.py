"""Queries: one question to one party, and how a party answers it. Everything that leaves a party passes `answer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np

from hedgerow.errors import ContributionInvalid, NotNamed, UnboundedSum

from .arrays import Array, Arrays, Layout, flatten
from .channel import Compression, Plan, Shield
from .events import Sampling
from .party import Local, Parties, Party
from .randomness import Stream, Streams
from .state import State
from .state import stacked as stack_states

Function = TypeVar("Function", bound=Callable[..., Any])
Marked = TypeVar("Marked", bound=Callable[..., Any])
Verb = Literal["each", "sum", "gather"]


def travels(thing: Marked) -> Marked:
    """Mark what a message may name: a function that parties may be asked to run, or a class whose objects are settings.

    Only what is marked is run at a party in another process, whoever asks; see `hedgerow.wire`. In one process nobody looks.
    """
    thing.travels = True  # type: ignore[attr-defined]
    return thing


def may_travel(thing: Any) -> bool:
    """Whether a function or class is marked itself; what a class inherits does not count."""
    return getattr(thing, "__dict__", {}).get("travels", False) is True


def local(
    function: Function | None = None, *, additive: bool = False, stackable: bool = False, private: str | None = None
) -> Any:
    """Declare what an engine may do with a local function, beyond calling it for one party; parties elsewhere may be asked it.

    Parameters
    ----------
    additive : bool
        Its contribution is a sum over records that uses no randomness and no state: the contribution of pooled records
        is the sum of the parties' contributions, so an engine may pool records where nothing is done party by party.
    stackable : bool
        It accepts parties stacked along a leading axis (columns of shape (n_parties, n_records, ...)), and returns
        arrays with that leading axis.
    private : str, optional
        It is a private mechanism in itself: the setting of this name (`core.channel.Plan`) makes its noise and states what
        a call of it costs.
    """

    def declare(function: Function) -> Function:
        function.additive, function.stackable = additive, stackable  # type: ignore[attr-defined]
        function.private = private  # type: ignore[attr-defined]
        return travels(function)

    return declare if function is None else declare(function)


def name_of(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which a function is named on the wire, or refuse a function without such a name."""
    name = f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', repr(function))}"
    if "<" in name:
        raise NotNamed(
            f"{name} is not a top-level function, so it has no name that a party could look up or allow.",
            remedy="Define it at the top of a module; pass settings with functools.partial(function, setting=...).",
        )
    return name


def function_of(local: Local) -> Callable[..., Any]:
    """The function of a `functools.partial` with its settings, or the function itself."""
    return local.func if isinstance(local, partial) else local


def plan_of(local: Local) -> Plan | None:
    """The plan of a local function that is a private mechanism in itself."""
    name = getattr(function_of(local), "private", None)
    if name is None:
        return None
    settings = local.keywords if isinstance(local, partial) else {}
    if name not in settings:
        raise UnboundedSum(
            f"{name_of(function_of(local))} is private by its setting {name!r}, which is missing, so its cost is unknown.",
            remedy=f"functools.partial(function, {name}=...)",
        )
    plan: Plan = settings[name]
    return plan


@dataclass(frozen=True)
class Preparation:
    """A named, record-by-record change of columns at the party: `(columns, **settings) -> new columns`.

    Row i of every new column depends on row i of the old ones alone, so preparing pooled records is the same as
    preparing each party's. Nothing leaves the party. Settings must be hashable.
    """

    function: Callable[..., Mapping[str, Array]]
    settings: tuple[tuple[str, Any], ...] = ()

    def __call__(self, party: Party) -> Mapping[str, Array]:
        return self.function(party.columns, **dict(self.settings))


@dataclass(frozen=True)
class Query:
    """One question, as every party of the cohort receives it."""

    number: int
    verb: Verb
    local: Local
    broadcast: Arrays = None
    shield: Shield = field(default_factory=Shield)
    preparations: tuple[Preparation, ...] = ()
    init: Local | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    streams: Streams = field(default_factory=Streams)
    keep_rows: bool = False
    public_seed: int = 0
    first: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    cohort: int = 0

    @property
    def function(self) -> Callable[..., Any]:
        return function_of(self.local)

    @cached_property
    def name(self) -> str:
        return name_of(self.function)

    @property
    def additive(self) -> bool:
        return bool(getattr(self.function, "additive", False))

    @property
    def poolable(self) -> bool:
        """Whether pooled records give the same total: not where each party draws a sample of its own."""
        return self.additive and self.sampling.kind != "records"

    @property
    def stackable(self) -> bool:
        """Whether the local function accepts a leading axis, and no setting of it objects."""
        settings = self.local.keywords.values() if isinstance(self.local, partial) else ()
        lawful = getattr(self.function, "stackable", False) and self.sampling.kind != "records"
        return bool(lawful) and all(getattr(value, "stackable", True) for value in settings)

    @property
    def keeps_state(self) -> bool:
        """Whether a party that answers keeps something anew."""
        compression = self.shield.compression
        return self.init is not None or self.verb == "each" or (compression is not None and compression.remembers)

    def stream(self, party: str, purpose: str) -> Stream:
        """The party's own randomness, by default for its local function."""
        return self.streams.stream(self.number, party, purpose)

    @property
    def public(self) -> Stream:
        """Randomness that the server draws for this query and sends along: the same for every party, from its beginning."""
        return Streams(self.public_seed).stream(self.number, "server", "public")


@dataclass(frozen=True)
class Rngs(Sequence[Stream]):
    """The randomness of stacked parties: item i is the own stream of party i, made when needed."""

    query: Query
    ids: Sequence[str]
    which: Array
    purpose: str = "local"

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, i: Any) -> Any:
        return self.query.stream(self.ids[int(self.which[i])], self.purpose)


def answer(query: Query, parties: Parties, which: Array, *, together: bool = False) -> tuple[Layout, Array] | None:
    """Answer for some parties: one alone, or several stacked.

    Parameters
    ----------
    parties : Parties
        Prepared for this query.
    which : array of int, shape (k,)
        Indices of the parties; more than one are stacked, which needs a stackable local function.
    together : bool
        Stack even a single party.

    Returns
    -------
    (Layout, array of shape (k, size)) or None
        The protected rows; nothing for `each`.
    """
    stacked = together or len(which) > 1
    party = _asked(query, parties, which, stacked)
    rngs, ids = Rngs(query, parties.ids, which), parties.ids
    shield, compression = query.shield, query.shield.compression
    keeps_state = query.keeps_state or (bool(parties.states) and not query.additive)
    if keeps_state:
        states = [_state(query, parties, ids[i]) for i in which]
        party.state = stack_states(states, fill=LOST) if stacked else dict(states[0])
    made = query.local(query.broadcast, party, rngs if stacked else rngs[0])
    rows, layout = np.zeros((len(which), 0)), Layout(())
    if query.verb != "each":
        layout = Layout.of(made, lead=int(stacked))
        rows = shield.bounded(_rows(made, layout, stacked, len(which), query.name), layout)
        if compression is not None:
            rows = _compressed(query, compression, rows, layout, Rngs(query, ids, which, "compression"), party.state, stacked)
    if keeps_state:
        for k, i in enumerate(which):
            kept = {key: value[k] for key, value in party.state.items()} if stacked else party.state
            parties.states.propose(ids[i], kept, query.number)
    if query.verb == "each":
        return None
    return layout, shield.at_party(rows, layout, lambda k: query.streams.entropy(query.number, ids[int(which[k])], "noise"))


def _asked(query: Query, parties: Parties, which: Array, stacked: bool) -> Party:
    """The party, or stack of parties, with the records that the query asks about."""
    if query.sampling.kind != "records":
        party: Party = parties.stack(which) if stacked else parties[int(which[0])]
        return party
    i = int(which[0])
    return parties.sampled(i, query.sampling.rate, query.streams.recalled(query.cohort, parties.ids[i], "records"))


LOST = "lost in compression by "
"""Key of a party's state, with the name of the query: what a compression that remembers has left out so far."""


def _compressed(query: Query, by: Compression, rows: Array, layout: Layout, own: Rngs, state: State, stacked: bool) -> Array:
    """Encode rows; a compression that remembers adds what it left out before, and keeps what it leaves out now."""
    key = LOST + query.name
    if not by.remembers:
        return by.encode(rows, layout, query.public, own)
    lost = np.asarray(state.get(key, np.zeros(rows.shape if stacked else layout.size, np.float32)))
    wanted = rows + lost.reshape(rows.shape)
    code = by.encode(wanted, layout, query.public, own)
    code = query.shield.bounded(code, by.code(layout))  # only now: what waits may be long, and would shrink what is sent
    with np.errstate(invalid="ignore", over="ignore"):
        waits = (wanted - by.decode(code, layout, query.public)).astype(np.float32)
    state[key] = np.where(np.isfinite(waits).all(-1, keepdims=True), waits, np.float32(0)).reshape(lost.shape)
    return code


def _rows(made: Arrays, layout: Layout, stacked: bool, n_parties: int, name: str) -> Array:
    """Flatten what a local function returned to rows of shape (n_parties, size)."""
    try:
        rows = flatten(made, lead=int(stacked)).reshape(n_parties, layout.size)
    except (TypeError, ValueError) as error:
        raise ContributionInvalid(
            f"{name} returned what is not a number, an array, or a dict of them for each of {n_parties} parties.",
            remedy=str(error),
        ) from error
    return rows


def _state(query: Query, parties: Parties, name: str) -> dict[str, Any]:
    state = parties.states.settle(name, query.counted)
    if query.init is not None and not any(not key.startswith(LOST) for key in state):
        return dict(query.init(query.broadcast, parties[parties.position[name]])) | state
    return dict(state)
