"""How a party answers a question. Everything that leaves a party passes `answer`.

Noise hides what a record adds to a total, and not whether there is a total. So under a mechanism every party that is asked
has a row: one whose contribution cannot be computed from its records, or has another shape than was announced, counts as
zeros, as one with numbers that are not finite does. The reason stays in the party's log. What fails whatever the records are
was refused before anybody was asked, since it fails for made-up records as well (`layouts`). Where the bound is per record, a
record that is the cause has counted as zeros before, and the others count (`records`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.errors import CannotWrite, CheckpointMismatch, ContributionInvalid

from .arrays import Array, Arrays, Layout, flatten
from .engine import Outbox
from .party import Parties, Party, apart
from .randomness import Stream
from .records import held_to_bounds
from .release import LOST, Coding
from .state import State
from .state import stacked as stack_states

log = logging.getLogger("hedgerow")

NEVER = -1
"""In the place of a question's number: what a party keeps of a measurement aside is never counted."""


@dataclass(frozen=True)
class Rngs(Sequence[Stream]):
    """The randomness of stacked parties: item i is the own stream of party i, made when needed."""

    outbox: Outbox
    ids: Sequence[str]
    which: Array
    purpose: str = "local"

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, i: Any) -> Any:
        return self.outbox.stream(self.ids[int(self.which[i])], self.purpose)


def answer(outbox: Outbox, parties: Parties, which: Array, *, together: bool = False) -> tuple[Layout, Array] | None:
    """Answer for some parties: one alone, or several stacked.

    Parameters
    ----------
    outbox : Outbox
        The question and its protection; its `ids` are not looked at.
    parties : Parties
        Prepared for this question.
    which : array of int, shape (k,)
        Indices of the parties; more than one are stacked, which needs a stackable local function.
    together : bool
        Stack even a single party.

    Returns
    -------
    (Layout, array of shape (k, size)) or None
        The protected rows; nothing for `each`.
    """
    announced = outbox.layout
    if outbox.release.mechanism is None or announced is None or outbox.question.verb == "each":
        return _answered(outbox, parties, which, together=together)
    try:
        found = _answered(outbox, parties, which, together=together)
        if found is not None and found[0] == announced:
            return found
        why = "a shape that was not announced"
    except (CannotWrite, CheckpointMismatch):  # the machine's, not the records'; memory that is wanted may follow from a record
        raise
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
    if len(which) > 1:  # no party is zeros for what is wrong with another
        alone = [answer(outbox, parties, which[i : i + 1], together=True) for i in range(len(which))]
        return announced, np.concatenate([one[1] for one in alone if one is not None])
    log.warning("%s counts as zeros at %s: %s", outbox.question.name, parties.ids[int(which[0])], why)
    return announced, closed(outbox, parties, which, np.zeros((1, announced.size)), announced, {}, stacked=False)


def made_by(outbox: Outbox, parties: Parties, which: Array, *, stacked: bool = False) -> tuple[Any, Party]:
    """Return what the local function makes of some parties, and those parties with what they keep afterwards."""
    question, ids = outbox.question, parties.ids
    party, rngs = _asked(outbox, parties, which, stacked), Rngs(outbox, ids, which)
    if _keeps_state(outbox, parties):
        states = [_state(outbox, parties, ids[i]) for i in which]
        party.state = stack_states(states, fill=LOST) if stacked else dict(states[0])
    if outbox.by_itself and not stacked:
        party = apart(party)
    ask = held_to_bounds(question, outbox.release, outbox.layout)
    return ask(question.broadcast, party, rngs if stacked else rngs[0]), party


def _answered(outbox: Outbox, parties: Parties, which: Array, *, together: bool) -> tuple[Layout, Array] | None:
    question, ids = outbox.question, parties.ids
    stacked = together or len(which) > 1
    made, party = made_by(outbox, parties, which, stacked=stacked)
    left = None
    if question.verb != "each":
        layout = Layout.of(made, lead=int(stacked))
        rows = _rows(made, layout, stacked, len(which), question.name)
        left = layout, closed(outbox, parties, which, rows, layout, party.state, stacked=stacked)
    if _keeps_state(outbox, parties):
        asked_in = question.number if question.counts else NEVER
        for k, i in enumerate(which):
            kept = {key: value[k] for key, value in party.state.items()} if stacked else party.state
            parties.states.propose(ids[i], kept, asked_in)
    return left


def closed(
    outbox: Outbox, parties: Parties, which: Array, rows: Array, layout: Layout, state: State, *, stacked: bool
) -> Array:
    """What leaves some parties of their contributions, rows of shape (k, size): clipped, coded and noised."""
    ids, coded = parties.ids, None
    if outbox.release.compression:
        own = Rngs(outbox, ids, which, "compression")
        coded = Coding(lambda: outbox.public, own, state, LOST + outbox.question.name, stacked)
    return outbox.release.close(rows, layout, lambda k: outbox.stream(ids[int(which[k])], "noise").entropy, coded)


def _keeps_state(outbox: Outbox, parties: Parties) -> bool:
    return outbox.keeps_state or (bool(parties.states) and not outbox.question.additive)


def _asked(outbox: Outbox, parties: Parties, which: Array, stacked: bool) -> Party:
    """The party, or stack of parties, with the records that the question is about."""
    cohort = outbox.question.cohort
    if cohort.sampling.kind != "records":
        party: Party = parties.stack(which) if stacked else parties[int(which[0])]
        return party
    i = int(which[0])
    drawn = outbox.streams.recalled(outbox.question.place_of_cohort, parties.ids[i], "records")
    return parties.sampled(i, cohort.sampling.rate, drawn)


def _rows(made: Arrays, layout: Layout, stacked: bool, n_parties: int, name: str) -> Array:
    """Flatten what a local function returned to rows of shape (n_parties, size)."""
    try:
        rows = flatten(made, lead=int(stacked)).reshape(n_parties, layout.size)
    except (TypeError, ValueError) as error:
        raise ContributionInvalid(
            f"{name} returned what is not a number, an array, or a dict of them for each of {n_parties} parties.",
            remedy=str(error),
        ) from error
    return rows


def _state(outbox: Outbox, parties: Parties, name: str) -> dict[str, Any]:
    question, state = outbox.question, parties.states.settle(name, outbox.counted)
    if question.init is not None and not any(not key.startswith(LOST) for key in state):
        party = parties[parties.position[name]]
        return dict(question.init(question.broadcast, apart(party) if outbox.by_itself else party)) | state
    return dict(state)
