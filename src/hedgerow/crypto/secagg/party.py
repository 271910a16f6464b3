"""A party's side of SecAgg: what it checks before it answers, and what it never answers.

A message that is refused changes nothing. What is answered is in the journal before the answer leaves, so that neither a
repeated letter nor a restart makes a party answer twice:

    one key                for each epoch
    one row                for each round, and for each context where the settings say so
    one set of survivors   for each round, signed
    one opening            for each round: of every neighbour one of its two secrets
    one standing set       for each study, where totals are exact: see `standing`
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.conversation import Contribution
from hedgerow.crypto.cohort import FLOOR
from hedgerow.crypto.graph import neighbours_of
from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.crypto.messages import digest
from hedgerow.crypto.standing import PartySet, StandingSet, names_digest
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused, SettingsInvalid
from hedgerow.store import Answered

from . import letters
from .epoch import Epoch, Gateway, Round, set_up
from .letters import Members
from .settings import SecAgg


class SecAggParty:
    """The correspondent of one party.

    Parameters
    ----------
    id : str
    settings : SecAgg
    roster : Roster, optional
        Everybody's public identity, had from elsewhere than the server. Needed when the server may lie.
    identity : Identity, optional
        The party's own, which the roster lists.
    journal : Answered, optional
        What was answered; give one with a path where the party may be restarted.
    gateway : Gateway, optional
        Shared by parties of one process, which then set up at half the cost.
    standing : StandingSet, optional
        The parties of the study's exact totals, where they are held to be the same; not in a simulation.

    Raises
    ------
    SettingsInvalid (HR-511)
        The server may lie, and there is no roster or identity.
    KeyInvalid (HR-244)
        The roster does not list this identity.
    """

    def __init__(
        self,
        id: str,
        settings: SecAgg,
        roster: Roster | None = None,
        identity: Identity | None = None,
        journal: Answered | None = None,
        gateway: Gateway | None = None,
        standing: StandingSet | None = None,
    ) -> None:
        if settings.active:
            if roster is None or identity is None:
                raise SettingsInvalid(
                    f"party {id!r} is to stand a server that lies, without identities.",
                    remedy="Give a roster and the party's identity, or take adversary = 'curious'.",
                )
            if roster.get(id) != identity.public:
                raise KeyInvalid(f"the roster does not list party {id!r} with this identity.", remedy="Enrol the party first.")
        self.id, self.settings, self.roster, self.identity = id, settings, roster, identity
        self.journal = Answered(None) if journal is None else journal
        self._gateway, self.standing = gateway, standing
        if standing is not None and roster is not None and settings.active:
            standing.over(_named(roster))
        self._binding = letters.binding(settings.digest, None if roster is None else roster.digest)
        self._pending: tuple[bytes, AgreementKey] | None = None
        self._epoch: Epoch | None = None

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer one step of the server, or refuse it and stay as before.

        Raises
        ------
        MessageRefused (HR-242), KeyInvalid (HR-244), RangeExceeded (HR-243)
        """
        steps: dict[str, Callable[[bytes], bytes]] = {
            "keys": self._keys,
            "shares": self._shares,
            "contribution": lambda letter: self._contribution(letter, contribution),
            "consistency": self._consistency,
            "unmask": self._unmask,
        }
        if step not in steps:
            raise MessageRefused(f"SecAgg has no step {str(step)[:40]!r}.", remedy=f"Steps: {', '.join(steps)}.")
        return steps[step](letter)

    # ---- set-up ----------------------------------------------------------------------------------------------------
    def _keys(self, letter: bytes) -> bytes:
        name, binding = letters.KEYS_ASKED.unpack(letter)
        if binding != self._binding:
            _refuse("the server has other settings or another roster", "Give both sides the same.")
        once = f"{name.hex()}/key"
        if self.journal.seen(once) is not None:
            _refuse("an epoch of this name has been set up before", "The name of an epoch is fresh.")
        key = AgreementKey.fresh()
        signature = b""
        if self.identity is not None and self.settings.active:
            signature = self.identity.sign(letters.key_statement(self._binding, name, self.id, key.public))
        self.journal.write(once, digest("secagg journal", key.public))
        self._pending = name, key
        standing = b"" if self.standing is None else self.standing.report()
        return letters.KEY.pack(epoch=name, public=key.public, signature=signature, standing=standing)

    def _shares(self, letter: bytes) -> bytes:
        name, order, members, size, place, raw, publics, signatures = letters.NEIGHBOURS.unpack(letter)
        if self._pending is None or self._pending[0] != name:
            _refuse("shares are asked for an epoch that has no key of this party", "Ask for its key first, and once.")
        key = self._pending[1]
        try:
            k, t = self._degree(size)
        except HedgerowError as error:
            raise MessageRefused(f"an epoch of {size} parties: {error.reason}", remedy=error.remedy) from None
        neighbours = letters.places(raw, size)
        given = [publics[i : i + 32] for i in range(0, len(publics), 32)]
        if len(neighbours) != k or len(publics) != 32 * k or place >= size or place in neighbours:
            _refuse(f"{len(neighbours)} neighbours, {len(publics)} bytes of keys", f"{k} others with a key each.")
        if len({*given, key.public}) != k + 1:
            _refuse("two neighbours have the same key, or this party's", "Each party makes its own.")
        if self.settings.active:
            ids, everybody = self._check_neighbours(name, members, size, place, neighbours)
            if self.roster is not None and order != _order(self.roster):
                _refuse("members over other names than the roster's", "Pin the same roster everywhere.")
            self._check_keys(name, ids, given, signatures)
        else:
            ids, everybody = (), letters.members_told(order, members)
            if len(PartySet(order, members)) != size or signatures:
                _refuse(
                    f"{size} members who are not told, or signatures without a roster", "Take the same settings on both sides."
                )
        epoch, boxes, lists, commitments = set_up(
            key,
            name=name,
            bond=letters.bond(name, self._binding, everybody, size),
            size=size,
            place=place,
            neighbours=neighbours,
            publics=given,
            ids=ids,
            threshold=t,
            rounds=self.settings.rounds_per_epoch,
            gateway=self._gateway,
        )
        epoch.everybody = PartySet(order, members)
        answer = letters.SHARES.pack(epoch=name, boxes=boxes, lists=lists, commitments=commitments)
        self._epoch, self._pending = epoch, None
        return answer

    def _check_neighbours(
        self, name: bytes, members: bytes, size: int, place: int, neighbours: NDArray[np.int64]
    ) -> tuple[tuple[str, ...], bytes]:
        """Derive this party's neighbours from the roster and the epoch's name; the server cannot choose them."""
        assert self.roster is not None
        ids, everybody = _listed(self.roster, members)
        if len(ids) != size or ids[place] != self.id:
            _refuse(f"{size} members with this party at {place}", f"The set names {len(ids)} of the roster.")
        k, _ = self._degree(size)
        seed = letters.graph_seed(letters.bond(name, self._binding, everybody, size))
        if not np.array_equal(neighbours, neighbours_of(seed, size, k, place)):
            _refuse("neighbours other than those that follow from the epoch and the roster", "Parties derive them themselves.")
        return tuple(ids[i] for i in neighbours.tolist()), everybody

    def _degree(self, size: int) -> tuple[int, int]:
        return self.settings.degree(size, len(self.roster or ()))

    def _check_keys(self, name: bytes, ids: tuple[str, ...], publics: list[bytes], signatures: bytes) -> None:
        """Every neighbour's key is signed by the identity that the roster lists."""
        assert self.roster is not None
        if len(signatures) != 64 * len(ids):
            _refuse(f"{len(signatures)} bytes of signatures of {len(ids)} neighbours", "One from each.")
        for j, (id, public) in enumerate(zip(ids, publics, strict=True)):
            statement = letters.key_statement(self._binding, name, id, public)
            self.roster.verify(id, signatures[64 * j : 64 * j + 64], statement)

    # ---- a round ---------------------------------------------------------------------------------------------------
    def _contribution(self, letter: bytes, contribution: Contribution | None) -> bytes:
        name, number, raw, context, bits, inbox = letters.ROUND.unpack(letter)
        epoch = self._current(name)
        cohort = letters.read_set(raw, epoch.size)
        once, about = f"{name.hex()}/{number}/row", f"{context.hex()}/context"
        self._check_order(epoch, number, once)
        near = cohort.flags[epoch.neighbours]
        if contribution is None:
            _refuse("a row is asked and there is none", "Rows go with the step that contributes.")
        self._check_enough(epoch, cohort, near, "a cohort", contribution.least)
        self._check_context(contribution, cohort, context, about)
        if self.standing is not None and contribution.steady:
            self.standing.refuse_other(epoch.parties(cohort), self._least(contribution.least))
        present, held = self._inbox(epoch, bits, inbox)
        if (near & ~present).any():
            _refuse("the cohort has neighbours whose shares never came", "Leave them out until the next epoch.")
        row = contribution.encoding.encode(contribution.row)
        epoch.mask(row, number, near, letters.nonce(epoch.bond, number, context, cohort.digest))
        answer = letters.ROW.pack(epoch=name, round=number, row=row.astype(row.dtype.newbyteorder("<"), copy=False).tobytes())
        self.journal.write(once, digest("secagg journal", context, cohort.digest))
        if self.settings.once_per_context:
            self.journal.write(about, digest("secagg journal", once.encode()))
        if epoch.held is None:
            epoch.keep(present, inbox, held)
        epoch.begin(number, cohort, near, contribution.least, contribution.steady)
        return answer

    def _consistency(self, letter: bytes) -> bytes:
        name, number, raw = letters.SURVIVORS.unpack(letter)
        epoch, now = self._round(name, number)
        survivors = letters.read_set(raw, epoch.size)
        if self.identity is None or not self.settings.active:
            _refuse("a signature on the survivors is asked of a party without an adversary that lies", "Skip this step.")
        if now.agreed is not None:
            _refuse("the survivors of this round are signed already", "One set for each round.")
        self._check_survivors(epoch, now, survivors)
        self._keep(epoch, now, survivors)
        self.journal.write(f"{name.hex()}/{number}/survivors", survivors.digest)
        now.agreed = survivors
        statement = letters.survivors_statement(epoch.bond, number, now.cohort.digest, survivors.digest)
        return letters.AGREED.pack(epoch=name, round=number, signature=self.identity.sign(statement))

    def _unmask(self, letter: bytes) -> bytes:
        name, number, raw, signers, signatures = letters.UNMASK.unpack(letter)
        epoch, now = self._round(name, number)
        survivors = letters.read_set(raw, epoch.size)
        self._check_survivors(epoch, now, survivors)
        if self.settings.active:
            self._check_agreement(epoch, now, survivors, signers, signatures)
        elif signers or signatures:
            _refuse("signatures without a roster", "Take the same settings on both sides.")
        once = f"{name.hex()}/{number}/opening"
        if self.journal.seen(once) is not None:
            _refuse(f"round {number} was opened before", "One opening for each round.")
        self._keep(epoch, now, survivors)
        self.journal.write(once, survivors.digest)
        return letters.OPENING.pack(epoch=name, round=number, shares=epoch.reveal(survivors))

    # ---- checks ----------------------------------------------------------------------------------------------------
    def _current(self, name: bytes) -> Epoch:
        if self._epoch is None or self._epoch.name != name:
            _refuse("the epoch is not this party's", "Set it up; a party that came back waits for the next one.")
        return self._epoch

    def _round(self, name: bytes, number: int) -> tuple[Epoch, Round]:
        epoch = self._current(name)
        now = epoch.round
        if now is None or now.number != number or now.closed:
            _refuse(f"round {number} is not open", "A round is opened once, after its rows and before the next one's.")
        return epoch, now

    def _check_order(self, epoch: Epoch, number: int, once: str) -> None:
        """Rounds go forwards, and each is answered once, whatever was forgotten in between."""
        if not epoch.last < number <= epoch.rounds:
            _refuse(f"round {number} after round {epoch.last} of {epoch.rounds}", "Rounds go forwards; then comes a new epoch.")
        if self.journal.seen(once) is not None:
            _refuse(f"round {number} was answered before", "One row for each round.")

    def _check_enough(self, epoch: Epoch, members: Members, near: NDArray[np.bool_], what: str, least: int) -> None:
        """This party and enough others, also among its neighbours, and for shares of noise to be whole."""
        least = self._least(least)
        if not members.flags[epoch.place]:
            _refuse(f"{what} without this party", "Ask only members of it.")
        if members.count < least:
            _refuse(f"{what} of {members.count} parties", f"{least} or more hide a row.")
        if int(near.sum()) < epoch.threshold:
            _refuse(f"{what} with {int(near.sum())} neighbours of this party", f"{epoch.threshold} or more hide a row.")

    def _least(self, least: int) -> int:
        return max(self.settings.least, FLOOR, least)

    def _keep(self, epoch: Epoch, now: Round, survivors: Members) -> None:
        """Keep of whom the total is that is about to be opened, or refuse it beside the study's earlier ones."""
        if self.standing is None:
            return
        if now.steady:
            self.standing.keep(epoch.parties(survivors), self._least(now.least))
        else:
            self.standing.hear(epoch.parties(survivors))

    def _check_survivors(self, epoch: Epoch, now: Round, survivors: Members) -> None:
        if (survivors.flags & ~now.cohort.flags).any():
            _refuse("survivors who were not in the cohort", "Survivors are those of the cohort whose rows came.")
        self._check_enough(epoch, survivors, survivors.flags[epoch.neighbours], "a set of survivors", now.least)

    def _check_context(self, contribution: Contribution, cohort: Members, context: bytes, about: str) -> None:
        """The round is about what this party has been sent."""
        if context != letters.context_of(contribution):
            _refuse(
                "the round is about another model, question or fixed point than this party was sent", "Send everybody the same."
            )
        if contribution.encoding.bits != self.settings.bits or cohort.count > contribution.encoding.parties:
            _refuse(
                f"{contribution.encoding.bits} bits for {contribution.encoding.parties} parties, and {cohort.count} are asked",
                f"{self.settings.bits} bits, and room for the cohort.",
            )
        if self.settings.once_per_context and self.journal.seen(about) is not None:
            _refuse("a row for this model and question was sent before", "Two totals of the same show who is in one of them.")

    def _inbox(self, epoch: Epoch, bits: bytes, inbox: bytes) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
        """Neighbours' shares: those that come with this letter, or those that are held."""
        if epoch.held is not None and epoch.present is not None:
            if inbox and digest("secagg inbox", inbox) != epoch.inbox:
                _refuse("other shares of the neighbours than before", "They come once in an epoch.")
            return epoch.present, epoch.held
        present = letters.read_set(bits, len(epoch.neighbours)).flags
        return present, epoch.open(present, inbox)

    def _check_agreement(self, epoch: Epoch, now: Round, survivors: Members, signers: bytes, signatures: bytes) -> None:
        """As many neighbours as the threshold have signed the set of survivors that this party has signed."""
        assert self.roster is not None
        if now.agreed is None or now.agreed.digest != survivors.digest:
            _refuse("survivors that this party has not signed", "Agree on them first.")
        chosen = letters.places(signers, len(epoch.neighbours))
        if len(signatures) != 64 * len(chosen) or len(chosen) < epoch.threshold:
            _refuse(f"{len(chosen)} neighbours' signatures on the survivors", f"{epoch.threshold} or more.")
        if not survivors.flags[epoch.neighbours[chosen]].all():
            _refuse("signatures of parties that are not survivors", "Survivors sign.")
        statement = letters.survivors_statement(epoch.bond, now.number, now.cohort.digest, survivors.digest)
        for i, j in enumerate(chosen.tolist()):
            self.roster.verify(epoch.ids[j], signatures[64 * i : 64 * i + 64], statement)


@lru_cache(maxsize=32)
def _listed(roster: Roster, members: bytes) -> tuple[tuple[str, ...], bytes]:
    """The members of an epoch by the roster's order of ids, and their digest."""
    ids = sorted(roster)
    flags = letters.read_set(members, len(ids)).flags
    found = tuple(id for id, is_in in zip(ids, flags.tolist(), strict=True) if is_in)
    return found, letters.members_digest(found)


@lru_cache(maxsize=32)
def _order(roster: Roster) -> bytes:
    """Digest of the roster's names in their order, over which sets of members are told."""
    return names_digest(_named(roster))


@lru_cache(maxsize=32)
def _named(roster: Roster) -> tuple[str, ...]:
    """The roster's names in their order."""
    return tuple(sorted(roster))


def _refuse(why: str, remedy: str) -> NoReturn:
    raise MessageRefused(f"{why}.", remedy=remedy)
