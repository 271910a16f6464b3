"""What a server believes that parties remember, held against what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow.core.engine import Outbox
from hedgerow.engines.party_states import Numbers, PartyStates, holds, state_lost


@dataclass(frozen=True)
class PartyMemory:
    """Of which questions the states of one study's parties are.

    A party keeps the state of the last question that the server counted, and the one that waits to be counted; both outlive
    a restart. A server that resumed from an old checkpoint may ask it to go on from a state that is older than both.

    Parameters
    ----------
    numbers : callable
        Returns the numbers of questions by party, as they are now; of those that keep something.
    lost : bool
        Whether the station lost what parties had kept.
    """

    numbers: Callable[[], Mapping[str, Numbers]] = dict
    lost: bool = False

    @classmethod
    def of(cls, states: PartyStates) -> PartyMemory:
        """The memory of these states."""
        return cls(states.numbers, states.lost)

    def refuse_lost(self, outbox: Outbox, ids: tuple[str, ...]) -> None:
        """Refuse a question that reads what a party does not keep.

        Raises
        ------
        StateLost (HR-615)
        """
        if outbox.stateless:
            return
        kept = self.numbers()
        for id in ids:
            if not holds(kept.get(id), outbox.counted.get(id), self.lost):
                raise state_lost(id, kept.get(id), outbox.counted.get(id))
