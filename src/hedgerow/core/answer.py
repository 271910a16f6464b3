"""How a party answers a question. Everything that leaves a party passes `answer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import ContributionInvalid

from .arrays import Array, Arrays, Layout, flatten
from .engine import Outbox
from .party import Parties, Party, apart
from .randomness import Stream
from .release import LOST, Coding
from .state import stacked as stack_states

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
    question, release, ids = outbox.question, outbox.release, parties.ids
    stacked = together or len(which) > 1
    party, rngs = _asked(outbox, parties, which, stacked), Rngs(outbox, parties.ids, which)
    keeps_state = outbox.keeps_state or (bool(parties.states) and not question.additive)
    if keeps_state:
        states = [_state(outbox, parties, ids[i]) for i in which]
        party.state = stack_states(states, fill=LOST) if stacked else dict(states[0])
    if outbox.by_itself and not stacked:
        party = apart(party)
    made = question.local(question.broadcast, party, rngs if stacked else rngs[0])
    left = None
    if question.verb != "each":
        layout = Layout.of(made, lead=int(stacked))
        own = Rngs(outbox, ids, which, "compression")
        coded = Coding(lambda: outbox.public, own, party.state, LOST + question.name, stacked) if release.compression else None
        rows = _rows(made, layout, stacked, len(which), question.name)
        left = layout, release.close(rows, layout, lambda k: outbox.stream(ids[int(which[k])], "noise").entropy, coded)
    if keeps_state:
        asked_in = question.number if question.counts else NEVER
        for k, i in enumerate(which):
            kept = {key: value[k] for key, value in party.state.items()} if stacked else party.state
            parties.states.propose(ids[i], kept, asked_in)
    return left


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
