"""`Loop` asks one party after the other: slow, obvious, and what every other engine must equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.engine import Inbox, Outbox, collect, declined
from hedgerow.core.party import Parties
from hedgerow.privacy.guard import Guard, willing

from .acting import Acting
from .alone import answered, at_places, prepared
from .arrivals import counted
from .correspondence import converse
from .overlong import held_to_bounds
from .threads import threads_for_each


@dataclass
class Loop:
    """The reference engine: a plain `for`.

    Parameters
    ----------
    held : Parties
        The parties of this process; set by `hosting`.
    guards : mapping from party to Guard
        Parties with a policy of their own, as of `InProcess`.
    acts : Acting, optional
        Parties that lie.
    """

    held: Parties = field(default_factory=lambda: Parties((), {}, ()), repr=False)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    acts: Acting | None = None

    def hosting(self, held: Parties) -> Loop:
        """Return this engine with these parties."""
        return Loop(held, self.guards, self.acts)

    @property
    def parties(self) -> Sequence[str]:
        return self.held.ids

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask every party in turn."""
        if outbox.step is not None:
            return converse(outbox, self.held, outbox.ids, self._rows, () if self.acts is None else self.acts.liars.forgers)
        found = self._rows(outbox)
        return found if self.acts is None else held_to_bounds(outbox, found)

    def _rows(self, outbox: Outbox) -> Inbox:
        asked, _ = willing(self.guards, outbox.ids, outbox)
        ids = counted(outbox, asked, np.ones(len(asked), bool))
        if self.acts is not None and len(ids):
            return self.acts.answers(outbox, ids, self.held, self._asked)
        return self._asked(outbox, ids, self.held)

    def _asked(self, outbox: Outbox, ids: Sequence[str], held: Parties) -> Inbox:
        """Ask some parties, which hold these records."""
        answers, outbox = [], at_places(outbox)
        parties = prepared(held, outbox, together=False)
        with threads_for_each(1):
            for name in ids:
                try:
                    answers.append(answered(outbox, parties, np.array([parties.position[name]])))
                except Exception as error:
                    raise declined(name, error) from error
        return collect(outbox, answers, tuple(ids))
