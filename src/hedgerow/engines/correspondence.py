"""Steps of a conversation for parties of this process: who answers, what they contribute, and what their refusals say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.party import Parties
from hedgerow.errors import HedgerowError

from .peer_steps import peer_steps

log = logging.getLogger("hedgerow")


@dataclass
class Leaving:
    """Which parties leave in the course of a conversation: each with some probability, at one of three moments.

    A party is silent from the beginning of a question, or from its contribution on, or after its contribution, which then
    counts. Where none `returns`, that share of the parties leaves for good in the course of the first question; `away` are
    those that are gone.
    """

    rate: float
    returns: bool = True
    away: set[str] = field(default_factory=set)
    _first: int | str | None = None
    _contributed: int | str | None = None

    def present(self, outbox: Outbox, held: Parties) -> Sequence[str]:
        """The parties that answer this step; the same for every engine and run of a seed."""
        step, place = outbox.step, outbox.question.place
        assert step is not None
        after = self._contributed == place  # the contributions of this question are in
        self._contributed = place if step.contributes else self._contributed
        ids: Sequence[str] = [name for name in outbox.ids if name not in self.away] if self.away else outbox.ids
        if not self.rate:
            return ids
        self._first = place if self._first is None else self._first
        stream = place if self.returns else 0
        leaves = outbox.streams.uniform(len(held), stream, "engine", "dropout") < self.rate
        moment = np.floor(outbox.streams.uniform(len(held), stream, "engine", "moment") * 3)
        now = 2 if after or (not self.returns and place != self._first) else 1 if step.contributes else 0
        gone = leaves & (moment <= now)
        return [name for name in ids if not gone[held.position[name]]]

    def stays(self, outbox: Outbox, ids: Sequence[str], held: Parties) -> np.ndarray:
        """Which of these parties are there for a question that is no conversation, where who leaves does not come back."""
        self._first = outbox.question.place if self._first is None else self._first
        leaves = outbox.streams.uniform(len(held), 0, "engine", "dropout") < self.rate
        moment = np.floor(outbox.streams.uniform(len(held), 0, "engine", "moment") * 3)
        gone = leaves & ((moment <= 1) | (outbox.question.place != self._first))
        return np.array([not gone[held.position[name]] for name in ids])


def converse(
    outbox: Outbox, held: Parties, ids: Sequence[str], ask: Callable[[Outbox], Inbox], forgers: Collection[str] = ()
) -> Inbox:
    """Answer one step for these parties.

    Parameters
    ----------
    ask : callable
        Asks parties for their contributions, row by row; those that decline are missing from its inbox.
    forgers : collection of str
        Parties that send what they like: as much as the ring has room for, where an honest one refuses.
    """
    step, protocol = outbox.step, outbox.protocol
    assert step is not None
    assert protocol is not None
    if getattr(protocol, "of_peers", False):
        return peer_steps(outbox, held, ids)
    if protocol not in held.correspondents:
        held.correspondents[protocol] = protocol.correspondents(held.ids)
    sides, letters, codes = held.correspondents[protocol], {}, {}
    found = Inbox(())
    if step.contributes:
        found = ask(replace(outbox, ids=ids, keep_rows=True, step=None, protocol=None))
        ids = found.answered
    made = protocol.contribution(outbox, found.layout) if step.contributes and found.layout is not None else None
    for k, name in enumerate(ids):
        contribution = None if made is None or found.rows is None else made(found.rows[k])
        if contribution is not None and name in forgers:
            encoding, row = contribution.encoding.forged(contribution.row)
            contribution = replace(contribution, encoding=encoding, row=row)
        try:
            letters[name] = sides[name].answer(step.name, step.letters[name], contribution)
        except HedgerowError as refusal:
            log.info("%s refused %s of %s: %s", name, step.name, outbox.question.name, refusal)
            codes[name] = refusal.code
    return Inbox(tuple(letters), found.layout, letters=letters, codes=codes)
