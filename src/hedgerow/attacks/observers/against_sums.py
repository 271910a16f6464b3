"""Attacks of a server on sums that hide rows: it asks so that the total is about one party. They run on our own protocols.

    inconsistent models    all but one are sent weights at which a layer's slope is zero, so the total's slope is one party's
    sybils                 all but one of a cohort are the server's inventions, whose rows it takes off the total
    differencing           two totals over parties that differ by one: the difference is that one's row

What stops them: masks are bound to the question as each party was sent it (HR-242, and HR-241 for the round); keys are those of
a roster that people keep (`SecAgg(adversary="active")`, HR-244); between stations exact totals of a study are over one set of
parties (HR-245). Noise at the parties helps against all three, and an honest total over few parties needs none of them.

Source : inconsistent models, Pasquini, Francati and Ateniese 2022 (CCS), section 4; sybils, Douceur 2002 (IPTPS); differencing,
         Denning 1980 (ACM TODS 5), trackers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.arrays import Array, Arrays
from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.party import Parties
from hedgerow.core.view import Observation
from hedgerow.crypto.context import description_digest
from hedgerow.crypto.conversation import Contribution, drive
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.secagg import SecAggParty, Server, letters
from hedgerow.display import displayed
from hedgerow.errors import RoundRefused, SettingsInvalid
from hedgerow.learn.models import Model

from .first_layer import layers

DEAD = -1e4
"""A bias at which no input in a declared range moves a unit."""


# ---- inconsistent models ------------------------------------------------------------------------------------------------
def silencing_weights(model: Model) -> Array:
    """Weights at which the first layer of a network has no slope, whatever the record: shape (d,).

    Its units are pushed to where a ReLU or a sigmoid is flat.

    Raises
    ------
    SettingsInvalid (HR-511)
        The first layer is the last, or not linear with a bias.
    """
    (name, first), *others = layers(model.module)
    if not others or not isinstance(first, nn.Linear) or first.bias is None:
        raise SettingsInvalid(
            f"the module has {1 + len(others)} layers, the first of which is {type(first).__name__}.",
            remedy="A linear layer with a bias, before another one, can be silenced.",
        )
    weights = {key: np.array(value) for key, value in model.named(model.initial).items()}
    weights[f"{name}.weight" if name else "weight"][:] = 0.0
    weights[f"{name}.bias" if name else "bias"][:] = DEAD
    return model.flat(weights)


@dataclass
class InconsistentServer:
    """An engine whose server sends all but one party another broadcast than the question's. For simulations.

    Parameters
    ----------
    engine : engine
        Such as `hedgerow.engines.InProcess()`.
    victim : str
        Who is sent the question as it is.
    decoy : arrays
        What the others are sent.
    """

    engine: Any
    victim: str
    decoy: Arrays
    refused: dict[str, str] = field(default_factory=dict)

    def hosting(self, held: Parties) -> InconsistentServer:
        """The same with these parties."""
        return replace(self, engine=self.engine.hosting(held), refused=self.refused)

    @property
    def parties(self) -> Sequence[str]:
        return list(self.engine.parties)

    @property
    def held(self) -> Parties:
        found: Parties = self.engine.held
        return found

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the victim about the question, and the others about the decoy; what parties refuse is kept in `refused`."""
        step = outbox.step
        others = [name for name in outbox.ids if name != self.victim]
        if step is None or not step.contributes or len(others) == len(outbox.ids):
            found: Inbox = self.engine.exchange(outbox)
        else:
            decoy = replace(outbox.question, broadcast=self.decoy)
            parts = [
                self.engine.exchange(replace(outbox, ids=ids, question=question, step=replace(step, letters=letters_of)))
                for ids, question in (((self.victim,), outbox.question), (others, decoy))
                for letters_of in ({name: step.letters[name] for name in ids},)
            ]
            one, more = parts
            both = {**one.letters, **more.letters}
            found = replace(more, answered=tuple(both), letters=both, codes={**one.codes, **more.codes})
        self.refused.update(found.codes)
        return found


# ---- sybils ---------------------------------------------------------------------------------------------------------------
@displayed
@dataclass(frozen=True, eq=False)
class SybilAttempt:
    """What came of a cohort that the server invented but for one party.

    Attributes
    ----------
    row : array or None
        The victim's contribution, exact to the step of its encoding; None where it was refused.
    refused : mapping from party to code
        Who refused, and why.
    cohort : int
        Parties that the victim believed to be in the total.
    """

    row: Array | None
    refused: Mapping[str, str]
    cohort: int


def sybil_cohort(
    victim: SecAggParty, contribution: Contribution, *, sybils: Sequence[str] = ("sybil 1", "sybil 2")
) -> SybilAttempt:
    """Ask a party for a secure total over itself and parties that the server makes up.

    Where the victim stands a server that lies, the sybils go by names of its roster and know everything but the private keys of
    those whose names they bear.

    Parameters
    ----------
    victim : SecAggParty
        As it stands in a federation, with its settings and the roster that it pins.
    contribution : Contribution
        What it would send.
    sybils : sequence of str
        Two or more names; of a roster's parties where the victim has one.
    """
    settings, roster = victim.settings, victim.roster
    names, refused = [victim.id, *sybils], dict[str, str]()
    fake, identities = None, dict[str, Identity | None](dict.fromkeys(sybils))
    if settings.active and roster is not None:
        made = {name: Identity.fresh() for name in sybils}
        identities = dict(made)
        fake = Roster({**roster, **{name: identity.public for name, identity in made.items()}})
    invented = {name: SecAggParty(name, settings, fake, identities[name]) for name in sybils}
    server = Server(settings, names, fake)
    if fake is not None and roster is not None:  # a digest of the true roster is no secret
        server._binding = letters.binding(settings.digest, roster.digest)
        for party in invented.values():
            party._binding = server._binding
    nothing = replace(contribution, row=np.zeros_like(np.asarray(contribution.row, float)))
    given = {victim.id: contribution, **dict.fromkeys(sybils, nothing)}
    conversation = server.total(names, contribution.encoding, contribution.context)
    try:
        total = drive(conversation, {victim.id: victim, **invented}, given, refused=refused)
    except RoundRefused:
        return SybilAttempt(None, refused, len(names))
    return SybilAttempt(contribution.encoding.decode(total.total), refused, len(names))


# ---- differencing -----------------------------------------------------------------------------------------------------------
def differences(view: Sequence[Observation], *, cohorts: Mapping[int, Collection[str]] | None = None) -> list[Observation]:
    """Rows that follow from totals over cohorts that differ by one party: larger total less smaller.

    Parameters
    ----------
    view : list of Observation
        Of the server: who sent a row, masked or not, was in the total.
    cohorts : mapping from question to parties, optional
        Who was in each total, where the view does not tell; a server knows whom it asked.

    Returns
    -------
    list of Observation
        Of kind "row", under the number of the larger total; `invert(differences(view), ..., party=...)` goes on from there.
        With noise in both totals the noise of a difference has twice the variance of one. Totals of two questions, such as
        of one function at two models, give none; of a view that does not hold questions, as the world's, this is not checked.
    """
    inside: dict[int, frozenset[str]] = {key: frozenset(value) for key, value in (cohorts or {}).items()}
    for one in view:
        if one.kind in ("row", "masked row") and one.round not in (cohorts or {}):
            inside[one.round] = inside.get(one.round, frozenset()) | {one.source}
    totals = [one for one in view if one.kind == "release" and inside.get(one.round)]
    found = []
    for first, second in combinations(totals, 2):
        if (first.query, first.layout) != (second.query, second.layout) or not _asked_the_same(first, second):
            continue
        more, less = (first, second) if len(inside[first.round]) > len(inside[second.round]) else (second, first)
        alone = inside[more.round] - inside[less.round]
        if len(alone) == 1 and inside[less.round] < inside[more.round]:
            values = np.asarray(more.values) - np.asarray(less.values)
            found.append(replace(more, kind="row", source=next(iter(alone)), values=values))
    return found


def _asked_the_same(first: Observation, second: Observation) -> bool:
    """Whether two totals are of one function with the same settings, records and broadcast, as far as the view tells."""
    told = [one.question for one in (first, second) if one.question is not None]
    about = [description_digest((one.name, one.settings, one.view, one.init, one.broadcast)) for one in told]
    return len(set(about)) < 2
