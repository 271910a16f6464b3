"""An aggregator of verified shares: it adds up rows whose proofs hold, and decides by itself which those are.

    offer, settle   once in an epoch, before any letter of a party: each aggregator seals a random half for each of the others,
                    and the digest of all of them is the verification key, which no party and no server knows
    tell            of a part of the letters: its shares of rows and proofs, and what it tells the others of each, under a MAC
                    for each of them
    judge           what all of them told of that part: which rows are accepted, which it adds to its total
    agree, total    as without proofs; the set is that of the rows that it accepted

What is told of a row, and the public parts that all were given, decide alike at every honest aggregator. Of a row one is told
once, in rounds that follow one another, and with the nonce and public part that its party gave: a second look at the same
shares, or one with other joint randomness, would tell of the row.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import KeyInvalid, MessageRefused

from ..cohort import bitmap, cut, mask_of
from ..keys import TAG_BYTES, seal, unseal
from ..messages import digest
from ..proofs.letters import NONCE_BYTES
from ..proved_rows import FIELD, ProvedRows, VerifiedRows, proofs_in
from ..streams import ZERO_NONCE, mask_bytes
from .aggregator import Aggregator, _Round
from .derived import (
    agreement,
    correction_key,
    offer_key,
    proof_context,
    public_mark,
    sealed_about,
    share_key,
    verification_key,
)
from .letters import JUDGE, JUDGED, MARK_BYTES, OFFER, OFFER_BYTES, OFFERED, SALT_BYTES, SETTLE, SETTLED, TELL, TOLD


@dataclass
class _Part:
    """Letters of a round that are told about and not yet judged.

    about, told    places whose letters came, and those of them that are well formed here
    """

    about: Array
    told: Array
    ctxs: list[bytes]
    publics: list[bytes]
    found: VerifiedRows
    letters: bytes


class VerifyingAggregator(Aggregator):
    """An aggregator that adds up proved rows alone; parameters as those of `Aggregator`."""

    def __init__(self, key: Any, aggregators: Sequence[bytes], **how: Any) -> None:
        super().__init__(key, aggregators, **how)
        if len(aggregators) < 2:
            raise KeyInvalid("one aggregator would see rows.", remedy="Give the keys of 2 or 3.", asked=False)
        self._key_of_epoch = b""
        self._own_offer = b""
        self._begun_in = 0
        self._part: _Part | None = None
        self._nonces: set[bytes] = set()

    def _steps(self) -> dict[str, Callable[[bytes], bytes]]:
        own = {"offer": self._offer, "settle": self._settle, "tell": self._tell, "judge": self._judge}
        return {name: step for name, step in super()._steps().items() if name != "collect"} | own

    @property
    def _judges(self) -> bool:
        return True

    def _modulus(self, bits: int) -> int:
        return FIELD.modulus

    # ---- an epoch -------------------------------------------------------------------------------------------------------
    def _anew(self, epoch: bytes) -> None:
        super()._anew(epoch)
        self._own_offer, self._key_of_epoch, self._begun_in = secrets.token_bytes(32), b"", 0
        self._part, self._nonces = None, set()

    def _offer(self, letter: bytes) -> bytes:
        (epoch,) = OFFER.unpack(letter)
        self._refuse_unless(epoch == self._epoch and bool(epoch), "an offer is asked for an epoch that is not open here.")
        boxes = [
            bytes(OFFER_BYTES) if secret is None else self._sealed_offer(secret, j) for j, secret in enumerate(self._among)
        ]
        return OFFERED.pack(epoch=epoch, boxes=b"".join(boxes))

    def _sealed_offer(self, secret: bytes, to: int) -> bytes:
        salt = secrets.token_bytes(SALT_BYTES)
        return salt + seal(offer_key(secret, self._epoch, self.place, to, salt), self._own_offer, self._pinned)

    def _settle(self, letter: bytes) -> bytes:
        epoch, joined = SETTLE.unpack(letter)
        self._refuse_unless(epoch == self._epoch and bool(epoch), "an epoch is settled that is not open here.")
        self._refuse_unless(not self._key_of_epoch, "the epoch has its verification key.")
        offers = []
        for j, (secret, box) in enumerate(zip(self._among, cut(joined, len(self._among), OFFER_BYTES), strict=True)):
            if secret is None:
                offers.append(self._own_offer)
                continue
            salt, sealed = box[:SALT_BYTES], box[SALT_BYTES:]
            offers.append(unseal(offer_key(secret, epoch, j, self.place, salt), sealed, self._pinned))
        self._key_of_epoch = verification_key(epoch, offers)
        return SETTLED.pack(epoch=epoch)

    # ---- a round --------------------------------------------------------------------------------------------------------
    def _tell(self, letter: bytes) -> bytes:
        *head, nonces, publics, marks, boxes = TELL.unpack(letter)
        found, about = self._begun(*head)
        proofs = self._proofs(found)
        self._refuse_unless(bool(self._key_of_epoch), "letters came before the verification key.")
        held = self._round
        if held is not None and held.number == found.number:
            self._refuse_unless(held.head == found.head, "letters came for different terms.")
            self._refuse_unless(self._part is None, "letters came before those before them were judged.")
            self._refuse_unless(not (held.seen & about).any(), "letters came twice.")
            found = held
        else:
            self._refuse_unless(found.number > self._begun_in, f"round {found.number} was begun here before.")
        which = np.flatnonzero(about).tolist()
        nonces, publics = cut(nonces, len(which), NONCE_BYTES), cut(publics, len(which), proofs.public_bytes)
        sealed = cut(
            boxes if self._opens else marks, len(which), proofs.leader_bytes + TAG_BYTES if self._opens else MARK_BYTES
        )
        given = [self._share(*one, found, proofs) for one in zip(which, nonces, publics, sealed, strict=True)]
        ctxs = [proof_context(self._epoch, found.purpose, self._publics[i]) for i in which]
        j = 0 if self._opens else self.place + 1
        verified = proofs.verify(self._key_of_epoch, ctxs, j, nonces, publics, given)
        told = np.array([bool(one) for one in verified.told], bool)
        for k in np.flatnonzero(told):
            told[k] = nonces[k] not in self._nonces
            self._nonces.add(nonces[k])
        places = np.zeros(len(about), bool)
        places[[i for i, fits in zip(which, told, strict=True) if fits]] = True
        said = b"".join(one for one, fits in zip(verified.told, told, strict=True) if fits)
        letters = digest("additive letters", *nonces, *publics)
        found.seen |= about
        self._round, self._begun_in = found, found.number
        self._part = _Part(about, places, ctxs, publics, verified, letters)
        tags = [
            bytes(32) if secret is None else agreement(secret, self.place, j, self._said(places, said))
            for j, secret in enumerate(self._among)
        ]
        return TOLD.pack(epoch=self._epoch, round=found.number, places=bitmap(places), told=said, tags=b"".join(tags))

    def _proofs(self, found: _Round) -> ProvedRows:
        return proofs_in(found.task.proof, len(self._among), found.size)

    def _share(self, i: int, nonce: bytes, public: bytes, sealed: bytes, found: _Round, proofs: ProvedRows) -> bytes:
        """A party's letter as it was before it was sealed, or the seed that stands for it; empty where there is none.

        There is none where nonce or public part are not those that the party gave.
        """
        secret = self._bonds[i]
        if secret is None:
            return b""
        if not self._opens:
            key = share_key(secret, found.purpose)
            known = hmac.compare_digest(sealed, public_mark(key, found.purpose, nonce, public))
            return mask_bytes(key, ZERO_NONCE, proofs.seed_bytes) if known else b""
        try:
            return unseal(correction_key(secret, found.purpose), sealed, sealed_about(found.purpose, nonce, public))
        except MessageRefused:
            return b""

    def _said(self, places: Array, told: bytes) -> bytes:
        """What a MAC between aggregators is over: epoch, round, letters and parties as this one has them, and what is told."""
        part, held = self._part, self._round
        assert part is not None
        assert held is not None
        return digest(
            "additive told", self._members, self._epoch, held.purpose, bitmap(part.about), part.letters, bitmap(places), told
        )

    def _agree(self, letter: bytes) -> bytes:
        self._refuse_unless(self._part is None, "letters of this round wait to be judged.")
        return super()._agree(letter)

    def _judge(self, letter: bytes) -> bytes:
        epoch, round, bitmaps, tolds, joined = JUDGE.unpack(letter)
        held, part, n = self._round, self._part, len(self._among)
        if held is None or part is None or (epoch, round) != (self._epoch, held.number):
            raise MessageRefused("nothing of this round waits to be judged.", remedy=_ANEW)
        proofs = self._proofs(held)
        self._refuse_unless(len(bitmaps) == n == len(tolds), "not all aggregators told of their shares.")
        places = [mask_of(one, len(self._bonds)) for one in bitmaps]
        said = [cut(one, int(where.sum()), proofs.told_bytes) for one, where in zip(tolds, places, strict=True)]
        for j, (secret, tag) in enumerate(zip(self._among, cut(joined, n, 32), strict=True)):
            if secret is None:
                mine = np.array_equal(places[j], part.told) and said[j] == self._own_words(part)
                self._refuse_unless(mine, "what this aggregator told was changed.")
            elif not hmac.compare_digest(tag, agreement(secret, j, self.place, self._said(places[j], tolds[j]))):
                raise MessageRefused("what another aggregator told was changed, or is about other letters.", remedy=_ANEW)
        which = np.flatnonzero(part.about)
        everywhere = np.logical_and.reduce(places) & part.about
        asked = [k for k, i in enumerate(which.tolist()) if everywhere[i]]
        rank = [np.cumsum(one) - 1 for one in places]
        in_order = [n - 1, *range(n - 1)]  # of the proofs, which begin with the aggregator that opens letters
        words = [[said[j][rank[j][which[k]]] for k in asked] for j in in_order]
        accepted = proofs.judge(
            [part.ctxs[k] for k in asked], [part.publics[k] for k in asked], [part.found.states[k] for k in asked], words
        )
        taken = [k for k, fits in zip(asked, accepted, strict=True) if fits]
        verdict = np.zeros(len(part.about), bool)
        verdict[which[taken]] = True
        if taken:
            held.total = FIELD.add(held.total, FIELD.sum(part.found.shares[taken], axis=0))
        held.sound |= verdict
        self._part = None
        return JUDGED.pack(epoch=epoch, round=round, places=bitmap(verdict))

    def _add_noise(self, total: Array, drawn: Array, modulus: int) -> None:
        super()._add_noise(total, drawn, FIELD.modulus)

    def _own_words(self, part: _Part) -> list[bytes]:
        told = part.told[part.about]
        return [one for one, fits in zip(part.found.told, told, strict=True) if fits]

    def _refuse_unless(self, lawful: bool, why: str) -> None:
        if not lawful:
            raise MessageRefused(why, remedy=_ANEW)


_ANEW = "Start a new round; nothing was revealed."
