"""Neighbouring worlds, said once and run: what a guarantee is about, how far a release moves, and how far it is charged for.

Which parties there are, and what is told about them, is public and the same in both worlds; a party may have no records.

    unit     one world has                   the other has                charged in bounds
    record   some records at a party         one more of them             1, whoever is sampled
    party    all data of a party             none                         1; 2 where a cohort has a fixed size or is a schedule
    party    any data of a party, noise its  any other                    2, in the event of the mechanism itself
             own

What is charged covers more than that in two cases: with noise at the server, a cohort of fixed size may hold another party in
place of one that is not on the roster at all, and a party of a schedule may have other data instead of none.

Each pair of worlds is asked the same question with equal randomness and no noise. What would have entered the noise are whole
steps, in both worlds; their distance is compared with what the accountant prices of the ledger's charge. `mishaps` are pairs
that differ by one record which goes wrong: only that record may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from hedgerow.core.arrays import Array, Layout, flatten
from hedgerow.core.bound import Bounds, l1, l2
from hedgerow.core.events import Event, Unit
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Mechanism, NoiseRuns, Position
from hedgerow.core.party import Parties, Party
from hedgerow.core.question import Verb, local, travels
from hedgerow.core.randomness import Entropy, Streams
from hedgerow.core.whole import bound_in, whole
from hedgerow.data import Column, Schema
from hedgerow.privacy.accounting.costs import Batch, costs
from hedgerow.privacy.grid import Block, to_steps
from hedgerow.privacy.mechanisms import Law, Noise, in_units

Way = Literal["all", "poisson", "records", "fixed", "given", "turns", "part", "dealt"]
"""How a cohort is drawn: as kinds of `Sampling`, and by turns."""

WAYS: tuple[Way, ...] = ("all", "poisson", "records", "fixed", "given", "turns", "part", "dealt")

SCHEMA = Schema((Column("x", "number", shape=(3,), low=-1.0, high=1.0),))

SIZES = (4, 1, 7, 0, 3, 2)
"""Records of the parties; one of them has none."""

RADIUS = 3.0**0.5
"""Longest record, and longest contribution of a party."""


POINT = np.array([0.25, -0.5, 0.125])
"""A record at which functions fail."""

KINK = np.array([-1.0, 0.8, 0.2])
"""A record whose sum is above zero or not, by the order of additions."""

FAINT = 2.0**-36
"""Noise of which the grid is so fine that a record takes 2^48 steps."""


@dataclass(frozen=True)
class Neighbours:
    """Two worlds that differ by one unit."""

    change: str
    one: Parties
    other: Parties

    def __str__(self) -> str:
        return self.change


def neighbours(unit: Unit, way: Way = "all", position: Position = "server", seed: int = 0) -> Iterator[Neighbours]:
    """Give the pairs of worlds that a guarantee per `unit` is about, and those that its charge covers besides."""
    rng = np.random.default_rng(seed)
    world = [rng.choice([-1.0, -0.3, 0.4, 1.0], size=(n, 3)) for n in SIZES]
    more = rng.choice([-1.0, 1.0], size=(1, 3))
    one = held(world)
    if unit == "record":
        for i, change in ((0, "a record more"), (SIZES.index(0), "the first record"), (len(SIZES) - 1, "a record at the end")):
            yield Neighbours(change, one, held(_with(world, i, np.concatenate([world[i], more]))))
        return
    for i in (0, 2, len(SIZES) - 1):
        yield Neighbours("a party without its data", one, held(_with(world, i, world[i][:0])))
        if position == "party" or (way in ("given", "turns", "dealt") and position == "server"):
            yield Neighbours("a party with other data", one, held(_with(world, i, -world[i])))
    if way == "fixed" and position == "server":
        yield Neighbours("a party that is not on the roster", held([*world, np.ones((2, 3))]), one)


def held(world: list[Array], w: Array | None = None) -> Parties:
    """The parties of a world, of which each item is the records of one; all with weight one, unless weights are given."""
    names = [f"party {i}" for i in range(len(world))]
    return Parties(names, {"x": np.concatenate(world)}, [len(records) for records in world], w)


@dataclass(frozen=True)
class Mishap:
    """Neighbours that differ by a record which goes wrong, with what is asked of them.

    Attributes
    ----------
    laws : tuple of str
        Of the noise.
    noise_multiplier : float
        Where it is very small, totals have more steps than are counted.
    """

    worlds: Neighbours
    function: Callable[..., Any]
    bound: Bounds
    laws: tuple[Law, ...] = ("gaussian", "laplace")
    noise_multiplier: float = 4.0

    def __str__(self) -> str:
        return f"{self.worlds}: {self.function.__name__}"


def mishaps() -> Iterator[Mishap]:
    """Records that fail, that have weights, that are too many for the grid, and that lie where a last bit decides."""
    rng = np.random.default_rng(0)
    world = [rng.choice([-1.0, -0.3, 0.4, 1.0], size=(n, 3)) for n in (40, 0, 7)]
    bound, everything = l2(RADIUS, unit="record"), get_args(Law)
    for i, at in ((0, 0), (0, 17), (1, 0), (2, 7)):
        one = held(world)
        failing = Neighbours(
            f"a record at {at} of {i} that fails", one, held(_with(world, i, np.insert(world[i], at, POINT, 0)))
        )
        for function in (fails_at_a_point, fails_together, fails_within_bounds, other_shape_at_a_point):
            yield Mishap(failing, function, bound)
        for weight in (0.3, 0.5, 0.7, 1.0):
            start, n = sum(map(len, world[:i])) + at, len(one.w)
            more = held(_with(world, i, np.insert(world[i], at, world[0][0], 0)), np.insert(np.ones(n), start, weight))
            weighted = Neighbours(f"a record of weight {weight} at {at} of {i}", one, more)
            for function in (totals, sides, fails_within_bounds):
                yield Mishap(weighted, function, l1(3.0, unit="record"), everything)
    many = [np.ones((40, 3))]
    for function in (totals, fails_within_bounds):
        yield Mishap(
            Neighbours("a record too many", held(many), held([np.ones((41, 3))])), function, bound, noise_multiplier=FAINT
        )
    few, more = ([np.tile(KINK, (n, 1))] for n in (3, 4))
    yield Mishap(Neighbours("a fourth copy of a record", held(few), held(more)), sides, l2(1.0, unit="record"))


def _with(world: list[Array], i: int, records: Array) -> list[Array]:
    return [*world[:i], records, *world[i + 1 :]]


# ---- local functions ------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True)
def totals(broadcast: Any, party: Party, rng: Any) -> Array:
    """The sum of x: a record moves it by at most `RADIUS`."""
    found: Array = (party.w[..., None] * party["x"]).sum(-2)
    return found


@local(stackable=True)
def own_direction(broadcast: Any, party: Party, rng: Any) -> Array:
    """Something of a party's own that is no sum over records, and longer than its clip."""
    found: Array = 5 * np.tanh((party.w[..., None] * party["x"]).sum(-2))
    return found


@local
def one_by_one(broadcast: Any, party: Party, rng: Any) -> Array:
    """The same for one party at a time; a party without records fails."""
    return 5 * np.tanh(party["x"][0] + party["x"].sum(0))


@local
def keep_records(broadcast: Any, party: Party, rng: Any) -> None:
    """Keep the sum of x; nothing leaves."""
    party.state["kept"] = party["x"].sum(0)


@local(additive=True)
def fails_at_a_point(broadcast: Any, party: Party, rng: Any) -> Array:
    """The sum of x; it fails where a record is `POINT`."""
    if (party["x"] == POINT).all(-1).any():
        raise ValueError("a record that nobody thought of")
    return np.asarray(totals(broadcast, party, rng))


@local(additive=True, stackable=True, rowwise=True)
def fails_together(broadcast: Any, party: Party, rng: Any) -> Array:
    """The same of a function that sees many records at once."""
    return np.asarray(fails_at_a_point(broadcast, party, rng))


@local(additive=True, stackable=True, holds=True)
def fails_within_bounds(broadcast: Any, party: Party, rng: Any, *, bounds: Bounds | None = None) -> Array:
    """The same of a function that holds records to bounds by itself."""
    plain = np.asarray(fails_at_a_point(broadcast, party, rng))
    return plain if bounds is None else whole(party.w[..., None] * party["x"], bound_in(bounds, "")).sum(-2)


@local(additive=True)
def other_shape_at_a_point(broadcast: Any, party: Party, rng: Any) -> Array:
    """The sum of x, and one number more where a record is `POINT`."""
    found = np.asarray(totals(broadcast, party, rng))
    return np.append(found, 1.0) if (party["x"] == POINT).all(-1).any() else found


@local(additive=True, stackable=True)
def sides(broadcast: Any, party: Party, rng: Any) -> Array:
    """One, or minus one, by the side of a plane on which a record lies.

    Its product is as libraries make them: the order of its additions follows from how many rows there are.
    """
    columns = np.moveaxis(party["x"], -1, 0)
    size = sum(columns if party.w.size < 4 else columns[::-1])
    return np.asarray((party.w * np.where(size > 0, 1.0, -1.0)).sum(-1))


FUNCTIONS: Mapping[Unit, tuple[Callable[..., Any], ...]] = {"record": (totals,), "party": (own_direction, one_by_one)}


# ---- a question without noise ---------------------------------------------------------------------------------------
@travels
@dataclass(frozen=True)
class Silent(Mechanism):
    """A mechanism without its noise, which tells what would have entered it."""

    noise: Noise

    def __post_init__(self) -> None:
        object.__setattr__(self, "heard", [])

    @property
    def at(self) -> Position:
        return self.noise.at

    @property
    def least(self) -> int:
        return self.noise.least

    @property
    def aggregators(self) -> int:
        return self.noise.aggregators

    def added_by(self, aggregators: int) -> Silent:
        found = replace(self, noise=self.noise.added_by(aggregators))
        object.__setattr__(found, "heard", self.heard)  # type: ignore[attr-defined]
        return found

    def each_adds(self, bounds: Bounds, layout: Layout) -> NoiseRuns:
        """Aggregators add nothing either."""
        return NoiseRuns(self.noise.law, ())

    @property
    def record_step(self) -> float | None:
        return self.noise.record_step

    def event(self, bounds: Bounds) -> Event:
        return self.noise.event(bounds)

    def fit(self, bounds: Bounds, layout: Layout) -> None:
        self.noise.fit(bounds, layout)

    def reach(self, bounds: Bounds, layout: Layout, records: float = 1.0) -> float:
        return self.noise.reach(bounds, layout, records)

    def at_party(self, rows: Array, bounds: Bounds, layout: Layout, entropies: Callable[[int], Entropy]) -> Array:
        """Round, and add nothing."""
        return to_steps(rows, self.planned(bounds, layout))

    def at_server(self, total: Array, bounds: Bounds, layout: Layout, entropy: Entropy) -> Array:
        """Keep the steps, and return their units."""
        planned = self.planned(bounds, layout)
        self.heard.append((np.array(total), planned))  # type: ignore[attr-defined]
        return in_units(total, planned)

    def planned(self, bounds: Bounds, layout: Layout) -> list[Block]:
        """Grid and noise of a contribution."""
        return self.noise._plan(bounds, layout)

    def __str__(self) -> str:
        return f"{self.noise} that is not added"


@dataclass(frozen=True)
class Replay:
    """What would have entered the noise, release by release, and how many lengths of noise the charge pays for."""

    steps: tuple[tuple[Array, list[Block]], ...]
    paid: float
    released: tuple[Array, ...] = ()


def asked(
    parties: Parties,
    engine: Any,
    unit: Unit,
    way: Way,
    noise: Noise,
    *,
    verb: Verb = "sum",
    function: Callable[..., Any] = totals,
    aggregation: Any = None,
    bound: Bounds | None = None,
    seed: int = 0,
) -> Replay:
    """Ask a question of a world, without noise, and price what the ledger says of it."""
    silent = Silent(noise)
    fed = Federation(engine.hosting(parties), SCHEMA, Streams(seed))
    clip = l2(RADIUS) if unit == "party" else None
    fed = fed.protect(mechanism=silent, clip=clip, aggregation=aggregation)
    bound = bound or (l2(RADIUS, unit="record") if unit == "record" else None)
    released = []
    for cohort in _cohorts(fed, way):
        if verb == "each":
            cohort.each(keep_records)
        elif verb == "gather":
            released += [flatten(row) for row in cohort.gather(function, bound=bound).values()]
        else:
            released.append(flatten(cohort.sum(function, bound=bound)))
    return Replay(tuple(silent.heard), paid(fed, unit), tuple(released))  # type: ignore[attr-defined]


def _cohorts(fed: Federation, way: Way) -> tuple[Federation, ...]:
    drawn: dict[Way, Callable[[], tuple[Federation, ...]]] = {
        "all": lambda: (fed,),
        "poisson": lambda: (fed.sample(rate=0.5),),
        "records": lambda: (fed.sample(records=0.5),),
        "fixed": lambda: (fed.sample(size=3),),
        "given": lambda: (fed.pick(fed.names[:4]),),
        "turns": lambda: tuple(fed.sample(every=2) for _ in range(2)),
        "part": lambda: fed.split(3),
        "dealt": lambda: fed.split(3, balanced=True),
    }
    return drawn[way]()


def paid(fed: Federation, unit: Unit) -> float:
    """How many standard deviations, or scales, of the noise neighbours may be apart by what an accountant prices."""
    priced = costs(fed.ledger.charges(unit), "add-remove")
    uses = chain.from_iterable(cost.uses if isinstance(cost, Batch) else ((cost, 1),) for cost, _ in priced)
    lengths = [use.epsilon or 1 / use.noise_multiplier for use, _ in uses]
    return max(lengths, default=0.0)


def apart(one: Replay, other: Replay, law: str) -> float:
    """The distance of two worlds in scales of the noise: of Gaussians the l2 distance, of Laplace noise the l1 distance.

    Of several releases, such as those of all parts, it is that of all of them together.
    """
    assert len(one.steps) == len(other.steps), "the number of releases tells of the unit"
    found = []
    for (here, planned), (there, _) in zip(one.steps, other.steps, strict=True):
        found += [np.abs(here[block.part] - there[block.part]).astype(float) / block.scale for block in planned]
    order = 1 if law in ("laplace", "geometric") else 2
    return float(np.linalg.norm(np.concatenate(found), ord=order))
