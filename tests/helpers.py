"""Small federations and local functions that many tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hedgerow.core import Federation, Parties, Party, local
from hedgerow.core.aggregation import Plain
from hedgerow.core.arrays import Arrays
from hedgerow.core.cohort import Cohort
from hedgerow.core.engine import Outbox
from hedgerow.core.events import Sampling
from hedgerow.core.federation import handle, inside
from hedgerow.core.ledger import Ledger
from hedgerow.core.ledger_view import LedgerView
from hedgerow.core.party import Local
from hedgerow.core.question import Question
from hedgerow.core.randomness import Streams
from hedgerow.core.release import Release
from hedgerow.core.run import Run
from hedgerow.core.state import State
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop, records

BARE, EVERYBODY = Release(), Sampling()
OUTBOX = {field.name for field in fields(Outbox)}
ENGINES = [Loop(), InProcess(threads=1), InProcess(threads=2), InProcess(threads=2, collapse=False)]
ENGINE_NAMES = ["loop", "one-thread", "two-threads", "no-collapse"]


@dataclass(frozen=True)
class Hiding(Plain):
    """An aggregation that shows the server nothing but the total, as far as a test goes."""

    name: str = "hiding"
    hides_rows: bool = True
    aggregators: int = 0


def parties(n_parties: int = 6, seed: int = 0) -> Parties:
    """Ragged parties with `x` of shape (n, 3) and `y` in {0, 1}."""
    rng = np.random.default_rng(seed)
    sizes = [4 + 3 * i for i in range(n_parties)]
    x = rng.normal(size=(sum(sizes), 3))
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    return Parties([f"party {i + 1}" for i in range(n_parties)], {"x": x, "y": y}, sizes)


def run_of(federation: Federation) -> Run:
    """What a program may not reach: engine, randomness, ledger and counters of a federation."""
    return inside(federation).run


def altered(federation: Federation, **changed: object) -> Federation:
    """The same handle on a run with another engine, schema, randomness or ledger; counters are shared."""
    values = inside(federation)
    return handle(values._replace(run=replace(values.run, **changed)))  # type: ignore[arg-type]


def outbox(
    local: Local,
    broadcast: Arrays = None,
    release: Release = BARE,
    number: int = 1,
    *,
    ids: Sequence[str] = ("party 1",),
    sampling: Sampling = EVERYBODY,
    cohort: int = 0,
    first: int | None = None,
    **others: Any,
) -> Outbox:
    """A question to some parties, by default a sum, with its protection; other fields of outbox and question by their names."""
    about = {name: others.pop(name) for name in OUTBOX & others.keys()}
    asked = {"verb": "sum", "local": local, "broadcast": broadcast, "number": number} | others
    return Outbox(ids, Question(cohort=Cohort(ids, sampling, cohort, first), **asked), release, **about)


def with_question(box: Outbox, **changed: object) -> Outbox:
    """The same outbox about a question that differs."""
    return replace(box, question=replace(box.question, **changed))  # type: ignore[arg-type]


def charged(ledger: Ledger | LedgerView) -> list[str]:
    """What each question was charged: the kind of its event, or "covered" where an earlier charge covers it."""
    return ["covered" if entry.cites else entry.event.kind for entry in ledger.entries]


def kept_by(federation: Federation) -> dict[str, State]:
    """What parties of a simulation keep after the questions that were counted."""
    return records(federation).states.committed(run_of(federation).counted)


def party_of(federation: Federation, name: str) -> Party:
    """One party of a simulation, with its records."""
    held = records(federation)
    return held[held.position[name]]


def federation(engine: object = None, seed: int | None = 0, recording: bool = False, **kwargs: int) -> Federation:
    """A federation of `parties` on an engine."""
    hosted = (engine or InProcess(threads=1)).hosting(parties(**kwargs))  # type: ignore[attr-defined]
    schema = Schema((Column("x", "number", shape=(3,)), Column("y", "binary", role="target")))
    return Federation(hosted, schema, Streams(seed), record_views=recording)


@local(additive=True, stackable=True)
def totals(broadcast, party, rng):
    """Sum of x and number of records."""
    return {"sum": (party.w[..., None] * party["x"]).sum(-2), "n": party.n}


def norm_of_x(broadcast, party, rng):
    """Something that cannot be stacked or pooled."""
    return np.linalg.norm(party["x"])


def zeros(broadcast, party, rng, *, size):
    """A contribution of nothing."""
    return np.zeros(size)


def noisy(broadcast, party, rng):
    """A contribution from the party's own randomness."""
    return rng.normal(size=2)


def remember(broadcast, party, rng):
    """Keep the sum of x, plus the broadcast."""
    party.state["kept"] = party["x"].sum(0) + broadcast


def recall(broadcast, party, rng):
    """Contribute what was kept."""
    return party.state["kept"]


def one_count(broadcast, party):
    """Initial state of `counting`."""
    return {"count": np.zeros(())}


def counting(broadcast, party, rng):
    """Count the rounds that were counted."""
    party.state["count"] = party.state["count"] + 1
    return party.state["count"]
