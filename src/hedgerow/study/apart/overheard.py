"""A study over columns that lie apart, tried between made-up parties: the whole of it, with its protocols, in this process.

People are made up, each party's columns of them, and ids that all have in common. What is heard are the questions that the
study would ask, and what it would be refused for it is refused now. No records are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.apart import PartiesApart
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.randomness import Streams
from hedgerow.crypto.context import description_digest
from hedgerow.data import Schema
from hedgerow.engines import InProcess
from hedgerow.errors import NotFinite, NotIdentified, RangeExceeded, Separated

from .at_stations import built_at_stations, federation_at, states_of
from .opened import aligned_of

if TYPE_CHECKING:
    from ..study import Study
    from .ready import BuiltApart

PEOPLE = 200
"""Made-up people, at least."""

MOST_PEOPLE = 20_000


@dataclass
class HeardApart:
    """An engine that remembers what was asked.

    Attributes
    ----------
    asked : list of (Outbox, protocol, digest of the broadcast)
        Questions whose answers are made from records, in order; the protocol is None where nothing leaves.
    ends : list of int
        After how many of them each round was over.
    """

    engine: Any
    asked: list[tuple[Outbox, Any, bytes | None]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    whole: bool = True
    ended: str = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    @property
    def parties(self) -> Sequence[str]:
        """Names of the made-up parties."""
        names: Sequence[str] = self.engine.parties
        return names

    def exchange(self, outbox: Outbox) -> Inbox:
        """Carry a question, or a step of a protocol about one, and remember it."""
        if outbox.step is None or outbox.step.contributes:
            sent = outbox.question.broadcast
            protocol = None if outbox.step is None else getattr(outbox.protocol, "aggregation", None)
            question = replace(outbox.question, broadcast=None, cohort=replace(outbox.question.cohort, members=()))
            kept = replace(outbox, question=question, counted={}, protocol=None, step=outbox.step)
            self.asked.append((kept, protocol, None if sent is None else description_digest(sent)))
        found: Inbox = self.engine.exchange(outbox)
        return found


def overheard(study: Study, schemas: Mapping[str, Schema], rounds: int | None = None) -> tuple[HeardApart, BuiltApart]:
    """Run a study between made-up parties, and return what was heard, and the study made ready.

    Raises
    ------
    HedgerowError
        The study or its program refuses what it was given.
    """
    built = built_at_stations(study, schemas)
    assert study.alignment is not None
    heard = HeardApart(InProcess(threads=1).hosting(PartiesApart(made_up(built.schemas, study.alignment))))
    federation = federation_at(built, heard, Streams(0))
    try:
        for state in states_of(built, aligned_of(built, federation)):
            heard.ends.append(len(heard.asked))
            if rounds is not None and len(heard.ends) >= rounds:
                heard.whole, heard.ended = False, f"is rehearsed for {state.round} rounds only"
                break
    except (NotFinite, NotIdentified, RangeExceeded, Separated) as error:
        heard.whole = False
        heard.ended = f"stops early on made-up records ({type(error).__name__}); real ones decide how many rounds it takes"
    heard.ended = heard.ended or f"ends after {len(heard.ends)} round{'s' * (len(heard.ends) != 1)}"
    return heard, built


def made_up(schemas: Mapping[str, Schema], alignment: Any) -> dict[str, dict[str, np.ndarray]]:
    """Made-up people by party, enough that no level of a category has few of them; ids are of 2^64 possible ones."""
    widest = max((len(column.levels) for schema in schemas.values() for column in schema), default=1)
    n = min(MOST_PEOPLE, max(PEOPLE, 4 * int(alignment.least) * max(2, widest)))
    rng = np.random.default_rng(0)
    ids = np.array([f"{one:016x}" for one in rng.choice(2**62, n, replace=False)])
    return {
        name: schema.synthetic(n, np.random.default_rng(1 + k)) | {alignment.on: ids[rng.permutation(n)]}
        for k, (name, schema) in enumerate(schemas.items())
    }
