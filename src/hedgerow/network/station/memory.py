"""What a server believes that parties remember, held against what they do."""

from __future__ import annotations

from dataclasses import dataclass, field

from hedgerow.core.answer import NEVER
from hedgerow.core.engine import Outbox
from hedgerow.errors import StateLost


@dataclass
class PartyMemory:
    """Of which questions the states of one study's parties are, in this life of the station.

    A party keeps the state of the last question that the server counted, and the one that waits to be counted. After a
    restart it keeps nothing; and a server that resumed from a checkpoint may ask it to go on from an older state.
    """

    settled: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)

    def refuse_lost(self, outbox: Outbox, ids: tuple[str, ...]) -> None:
        """Refuse a question that reads what a party does not keep.

        Raises
        ------
        StateLost (HR-615)
        """
        if outbox.stateless:
            return
        for id in ids:
            counted = outbox.counted.get(id)
            if counted != self.settled.get(id) and (counted is None or counted != self.waiting.get(id)):
                raise StateLost(
                    f"{outbox.question.name} is to go on from what {id} kept in question {counted}, and it keeps that of "
                    f"{self.settled.get(id)}.",
                    remedy="The station, or the study, began anew in between: submit the study anew.",
                )

    def take(self, outbox: Outbox, ids: tuple[str, ...]) -> None:
        """Learn that a question was answered."""
        if outbox.stateless:
            return
        for id in ids:
            if id in outbox.counted:
                self.settled[id] = outbox.counted[id]
            self.waiting[id] = outbox.question.number if outbox.question.counts else NEVER
