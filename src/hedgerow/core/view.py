"""Views: what one observer saw. Attacks are functions of a view; a defence is what changes the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hedgerow.errors import ViewNotRecorded

from .arrays import Array, Layout
from .engine import Inbox
from .query import Query


@dataclass(frozen=True)
class Observation:
    """One thing that an observer saw: a `broadcast` (as sent), a `letter` of a conversation (its step and bytes), a party's
    `row`, or `masked row` of a ring's numbers, or a `release` (flat vectors)."""

    round: int
    kind: str
    source: str
    query: str
    values: object
    layout: Layout | None = None


@dataclass
class Views:
    """Records what server, parties and the world see. Off by default: it keeps every row in memory."""

    recording: bool = False
    seen: dict[str, list[Observation]] = field(default_factory=dict)

    def note(self, query: Query, asked: Sequence[str], inbox: Inbox, released: Array | None) -> None:
        """Record one exchange."""
        if not self.recording:
            return
        for party, step, letter in inbox.sent:
            self._add(party, Observation(query.number, "letter", "server", query.name, (step, letter)))
        for party in asked if not inbox.withheld else ():
            self._add(party, Observation(query.number, "broadcast", "server", query.name, query.broadcast))
        if inbox.rows is not None:
            kind = "masked row" if inbox.masked else "row"
            for party, row in zip(inbox.answered, inbox.rows, strict=True):
                layout = None if inbox.layout is None or inbox.masked else query.shield.code(inbox.layout)
                self._add("server", Observation(query.number, kind, party, query.name, row, layout))
        if released is not None:
            release = Observation(query.number, "release", "server", query.name, released, inbox.layout)
            self._add("server", release)
            self._add("world", release)

    def of(self, observer: str) -> list[Observation]:
        """What `server`, `world` or a party saw so far."""
        if not self.recording:
            remedy = "Record it from the start: federation.watch(), or simulate(..., record_views=True)."
            raise ViewNotRecorded(f"the view of {observer!r} is not recorded.", remedy=remedy)
        return list(self.seen.get(observer, []))

    def _add(self, observer: str, observation: Observation) -> None:
        self.seen.setdefault(observer, []).append(observation)
