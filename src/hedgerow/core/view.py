"""Views: what one observer saw. Attacks are functions of a view; a defence is what changes the view."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from hedgerow.errors import ViewNotRecorded

from .arrays import Array, Layout
from .engine import Inbox, Outbox
from .question import Question


@dataclass(frozen=True)
class Observation:
    """One thing that an observer saw: a `broadcast` (as sent), a `letter` of a conversation (its step and bytes), a party's
    `row`, or `masked row` of a ring's numbers, or a `release` (flat vectors). The server knows of a release what it had asked,
    as `question`."""

    round: int
    kind: str
    source: str
    query: str
    values: object
    layout: Layout | None = None
    question: Question | None = field(default=None, repr=False, compare=False)


@dataclass
class Views:
    """Records what server, parties and the world see. Off by default: it keeps every row in memory."""

    recording: bool = False
    seen: dict[str, list[Observation]] = field(default_factory=dict)

    def note(self, outbox: Outbox, inbox: Inbox, released: Array | None) -> None:
        """Record one exchange."""
        if not self.recording:
            return
        question = outbox.question
        seen = partial(Observation, question.number)
        for party, step, letter in inbox.sent:
            self._add(party, seen("letter", "server", question.name, (step, letter)))
        for party in outbox.ids if not inbox.withheld else ():
            self._add(party, seen("broadcast", "server", question.name, question.broadcast))
        if inbox.rows is not None:
            kind = "masked row" if inbox.masked else "row"
            for party, row in zip(inbox.answered, inbox.rows, strict=True):
                layout = None if inbox.layout is None or inbox.masked else outbox.release.code(inbox.layout)
                self._add("server", seen(kind, party, question.name, row, layout))
        if released is not None:
            release = seen("release", "server", question.name, released, inbox.layout)
            self._add("server", replace(release, question=question))
            self._add("world", release)

    def of(self, observer: str) -> list[Observation]:
        """What `server`, `world` or a party saw so far."""
        if not self.recording:
            remedy = "Record it from the start: hr.engines.watch(federation), or simulate(..., record_views=True)."
            raise ViewNotRecorded(f"the view of {observer!r} is not recorded.", remedy=remedy)
        return list(self.seen.get(observer, []))

    def _add(self, observer: str, observation: Observation) -> None:
        self.seen.setdefault(observer, []).append(observation)
