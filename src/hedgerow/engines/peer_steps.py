"""Steps of a protocol between parties, for parties of this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from hedgerow.core.conversation import AtParty
from hedgerow.core.engine import Inbox, Outbox, declined
from hedgerow.core.party import Parties, apart
from hedgerow.crypto.context import context_of, description_digest

from .alone import ordinary_arithmetic
from .threads import threads_for_each

log = logging.getLogger("hedgerow")


def peer_steps(outbox: Outbox, held: Parties, ids: Sequence[str]) -> Inbox:
    """Answer one step for these parties; what a party keeps changes when its part is over."""
    step, protocol = outbox.step, outbox.protocol
    assert step is not None
    assert protocol is not None
    # of two that came in messages, settings are equal and objects are not; what a host's parties sign with is no setting
    key = description_digest(getattr(protocol, "aggregation", protocol))
    if key not in held.correspondents:
        held.correspondents[key] = protocol.correspondents(held.ids)
    sides, letters = held.correspondents[key], {}
    with threads_for_each(1), ordinary_arithmetic():
        for name in ids:
            try:
                at = _at(outbox, held, name) if step.contributes else None
                letters[name] = sides[name].answer(step.name, step.letters[name], at)
                if sides[name].done:
                    _keep(outbox, held, name, sides[name].at)
            except Exception as error:
                log.info("%s refused %s of %s: %s", name, step.name, outbox.question.name, error)
                raise declined(name, error) from error
    return Inbox(tuple(letters), letters=letters)


def _at(outbox: Outbox, held: Parties, name: str) -> AtParty:
    question = outbox.question
    party = apart(held.prepared(question.view, together=False)[held.position[name]])
    party.state = dict(held.states.settle(name, outbox.counted))
    if question.init is not None and not party.state:
        party.state = dict(question.init(question.broadcast, party))
    stream, context = partial(outbox.stream, name), partial(context_of, outbox)
    watch = None if shows_rows(outbox) else held.watch
    return AtParty(party, held.desks[name], question, (), stream, context, outbox.release, watch)


def shows_rows(outbox: Outbox) -> bool:
    """Whether a protocol sends rows of records to somebody; otherwise totals over records."""
    protocol: Any = getattr(outbox.protocol, "aggregation", None)
    return protocol is not None and bool(protocol.foreseen(outbox).rows)


def _keep(outbox: Outbox, held: Parties, name: str, at: AtParty | None) -> None:
    """Commit or drop what waited, and let the party's new state wait for the next question."""
    if at is not None and at.party.state:
        held.states.settle(name, outbox.counted)
        held.states.propose(name, at.party.state, outbox.question.number if outbox.question.counts else -1)
