"""Neighbours that differ by one record, replayed to the last bit: one record more adds its own whole steps and nothing else.

Every sum that a program asks behind noise, with a bound per record, is heard. What enters the noise is then computed for worlds
with and without one more record, of several sizes, at several positions, with weights and without, among records of the
table and copies of records at the ends of the declared ranges:

    steps(D + r) - steps(D) = steps({r})          in whole numbers, key by key
    |steps({r})| <= radius / step                 in whole numbers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hedgerow.core.arrays import Layout, flatten
from hedgerow.core.bound import Bound
from hedgerow.core.federation import Federation, inside
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.party import Local, Parties
from hedgerow.core.question import Question, plan_of
from hedgerow.core.randomness import Streams
from hedgerow.core.records import comes_apart, held_to_bounds, in_whole_steps, scaled_by_records
from hedgerow.core.release import Release, no_entropy
from hedgerow.data import Table
from hedgerow.engines import InProcess
from hedgerow.errors import HedgerowError
from hedgerow.privacy.mechanisms import Gaussian

from .neighbours import Heard, corner, few, hearing
from .subject import Subject, quiet

SIZES = (1, 2, 3, 17, 1000)
FAINT = Gaussian(2.0**-16)
"""Noise so small that nothing is rounded for it."""
ROUNDS = 3
MOST_BY_SHARD = 20
"""Records from which shards are dealt, at most: each of them is trained on anew."""

Columns = dict[str, np.ndarray]
Held = Callable[[Question, Release], Local]


def asked_behind(mechanism: Mechanism, subject: Subject) -> list[tuple[Heard, Question, Release]]:
    """The first sums of each local function with a bound per record that a program asks behind noise; none if it refuses."""
    with quiet():
        built = subject.built(InProcess(threads=1))
        federation: Federation = built.federation
        if not federation.protection.noisy:
            federation = federation.protect(mechanism=mechanism)
        with hearing() as heard:
            try:
                for round_, _ in enumerate(built.listing.program(built.settings)(federation)):
                    if round_ == ROUNDS:
                        break
            except HedgerowError:  # it refuses noise, or this noise leaves nothing to go on with
                pass
    return [(one, *settled) for one in few(heard) if (settled := _settled(one)) is not None]


def _settled(one: Heard) -> tuple[Question, Release] | None:
    """A question and its release, where that has bounds per record."""
    question = Question("sum", one.local, one.broadcast, one.bound, one.init, view=one.preparations)
    try:
        release = inside(one.federation).channel.release(one.name, one.bound, plan_of(one.local))
        return (question, in_whole_steps(release, question)) if scaled_by_records(release) else None
    except HedgerowError:
        return None


def apart(question: Question) -> bool:
    """Whether records add whole steps by construction, so that the replay must be exact."""
    return comes_apart(question) or question.by_shard


def violations(
    question: Question, release: Release, table: Table, *, sizes: tuple[int, ...] = SIZES, ask: Held = held_to_bounds
) -> list[str]:
    """What is not as it should be, in words; nothing where all is well."""
    if question.by_shard:
        return _violations_by_shard(question, release, table, [size for size in sizes if size <= MOST_BY_SHARD], ask)
    rng, found = np.random.default_rng(7), []
    local, faint = ask(question, release), replace(release, mechanism=FAINT)
    for size, weighted, crowded in product(sizes, (False, True), (False, True)):
        some, w = _world(table, size, rng, weighted=weighted, crowded=crowded)
        more = corner(table, rng) if crowded else {name: values[-1:] for name, values in table.columns.items()}
        own = np.array([rng.uniform()]) if weighted else np.ones(1)
        alone, layout = _steps(question, faint, local, more, own)
        before, _ = _steps(question, faint, local, some, w)
        found += [f"{size} records: {what}" for what in _beyond(alone, layout, faint)]
        for at in dict.fromkeys((0, size // 2, size)):
            with_it = {name: np.insert(values, at, more[name], axis=0) for name, values in some.items()}
            after, _ = _steps(question, faint, local, with_it, np.insert(w, at, own))
            if not (after - before == alone).all():
                far = int(np.abs(after - before - alone).max())
                found.append(f"{size} records, one more at {at}: the others moved by {far} steps")
    return found


def _violations_by_shard(question: Question, release: Release, table: Table, sizes: list[int], ask: Held) -> list[str]:
    """The same of a function that deals records to shards: one record more at the end, another record, or one left out.

    Where each record's shard is drawn by its place, these neighbours are dealt alike: the rows of other shards stay. Where it
    follows from its contents, another record may be another shard's: two neighbours one after the other, so it is left out.
    """
    rng, found = np.random.default_rng(7), []
    local, faint = ask(question, release), replace(release, mechanism=FAINT)
    for size, crowded in product(sizes, (False, True)):
        some, w = _world(table, size, rng, weighted=False, crowded=crowded)
        more, at = corner(table, rng), int(rng.integers(size))
        before, layout = _steps(question, faint, local, some, w)
        other = {name: values.copy() for name, values in some.items()}
        for name, values in other.items():
            values[at : at + 1] = more[name]
        longer = {name: np.concatenate([values, more[name]]) for name, values in some.items()}
        left_out = np.where(np.arange(size) == at, 0.0, w)
        worlds = {"one more": (longer, np.append(w, 1.0)), "another one": (other, w), "one left out": (some, left_out)}
        if question.function.by_shard == "contents":  # type: ignore[attr-defined]
            del worlds["another one"]
        for what, (columns, weights) in worlds.items():
            after, _ = _steps(question, faint, local, columns, weights)
            found += [f"{size} records, {what}: {said}" for said in _beyond(after - before, layout, faint)]
    return found


def _world(table: Table, size: int, rng: np.random.Generator, *, weighted: bool, crowded: bool) -> tuple[Columns, np.ndarray]:
    """Records of the table, or copies of few records at the ends of the ranges; with weights of one, or between 0 and 1."""
    if crowded:
        ends = [corner(table, rng) for _ in range(2)]
        pool = {name: np.concatenate([one[name] for one in ends]) for name in table.columns}
    else:
        pool = table.columns
    rows = rng.integers(len(next(iter(pool.values()))), size=size)
    return {name: values[rows] for name, values in pool.items()}, rng.uniform(size=size) if weighted else np.ones(size)


def _steps(question: Question, release: Release, local: Local, columns: Columns, w: np.ndarray) -> tuple[np.ndarray, Layout]:
    """What enters the noise, in whole steps."""
    party = Parties(("one",), columns, [len(w)], w).prepared(question.view, together=True)[0]
    if question.init is not None:
        party.state = dict(question.init(question.broadcast, party))
    made: Any = local(question.broadcast, party, Streams(0).stream(1, "one", "local"))
    layout = Layout.of(made)
    row = np.asarray(flatten(made), np.float64)[None]
    return release.close(row, layout, no_entropy)[0].astype(np.int64), layout


def _beyond(steps: np.ndarray, layout: Layout, release: Release) -> Iterator[str]:
    """Keys of which a record adds more than its bound, compared in whole numbers."""
    assert release.bounds is not None
    for block in FAINT._plan(release.bounds, layout):
        limit, numbers = Fraction(block.bound.radius) / Fraction(block.step), [abs(int(k)) for k in steps[block.part]]
        if not block.whole or _longer(numbers, limit, block.bound):
            yield f"a record adds more than {block.bound}"


def _longer(numbers: list[int], limit: Fraction, bound: Bound) -> bool:
    if bound.norm == 2:
        return sum(k * k for k in numbers) > limit * limit
    return (max(numbers, default=0) if bound.norm == math.inf else sum(numbers)) > limit
