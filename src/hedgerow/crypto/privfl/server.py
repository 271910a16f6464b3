"""The server's side of a hidden model.

    theta        -> E(theta), the same ciphertexts to every party of the cohort
    replies      <- E(A theta - b + r)  of each party, in the same trip as its part of the sum of masks
    total        <- sum of decrypted replies - sum of r, modulo 2^64, over the parties whose masks were counted
    gradient     <- total in steps of the grid

A cubic sigmoid takes one trip more: E(z_j + rho_j) of each record comes back as ciphertexts of the number, cut to fewer
bits, of its square and of its cube.

Source : van Aarle 2021, section 4.2.1, after Mandal & Gong 2019 (PrivFL). Differs: masks are of the whole key, replies are
packed and their randomness is uniform (`masks`), the key is proved (`keyproof`), the sum of masks is bound to the
encrypted model, and the cubic's trip is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Conversation, Step
from hedgerow.errors import MessageRefused, RoundRefused

from ..cohort import addressed
from ..conversation import Total
from ..fixedpoint import Encoding
from ..paillier import PaillierKey
from .grid import Cubic, Grid
from .keyproof import prove
from .masks import Slots, signed
from .settings import MODEL, PREDICTORS, REPLY, PrivFL, masks_context, residues


class SumOfMasks(Protocol):
    """The server's side of the sum that adds up masks."""

    def total(self, ids: Iterable[str], encoding: Encoding, context: bytes = b"") -> Conversation[Total]:
        """Form a total over those of `ids` who stay."""


class PrivFLServer:
    """Asks for gradients at a model that parties do not see.

    Parameters
    ----------
    settings : PrivFL
    members : sequence of str
    inner : SumOfMasks
        Adds up masks: SecAgg, pairwise masks, or additive shares.
    key : PaillierKey, optional
        By default a fresh one.
    """

    def __init__(self, settings: PrivFL, members: Sequence[str], inner: SumOfMasks, key: PaillierKey | None = None) -> None:
        self.settings, self.members, self.inner = settings, tuple(members), inner
        self.key = PaillierKey.fresh(settings.bits, insecure=settings.insecure) if key is None else key
        self.digest = self.key.public.digest
        self.ready: frozenset[str] = frozenset()

    def open(self, ids: Iterable[str] | None = None) -> Conversation[None]:
        """Send the key with its proof; who accepts it can be asked. The sum of masks is opened by itself."""
        letter = prove(self.key)
        answers = yield Step("paillier-key", dict.fromkeys(self.members if ids is None else ids, letter))
        self.ready |= {id for id, answer in answers.items() if answer == self.digest}

    def total(self, ids: Iterable[str], theta: Array, encoding: Grid, context: bytes = b"") -> Conversation[Total]:
        """Form the total gradient of those of `ids` who stay.

        Parameters
        ----------
        theta : array of shape (size,)
        encoding : Linear or Cubic
            Public steps; `encoding.decode` makes the total a gradient.
        context : bytes
            Digest of question and settings, as parties compute it.

        Returns
        -------
        Total
            `masked` holds each counted reply as the server decrypted it, modulo 2^64.

        Raises
        ------
        RangeExceeded (HR-243)
            The model is beyond its limit. No party was asked.
        CohortTooSmall (HR-240), RoundRefused (HR-241)
            Too few parties are asked, or stay.
        """
        public = self.key.public
        asked = tuple(id for id in addressed(ids, self.members, self.settings.least) if id in self.ready)
        if len(asked) < self.settings.least:
            raise RoundRefused(f"{len(asked)} parties accepted the key, of {self.settings.least} that are needed.")
        model = public.pack([public.encrypt(step) for step in encoding.encode_model(theta)])
        powers = dict.fromkeys(asked, b"")
        if isinstance(encoding, Cubic):
            powers = yield from self._powers(asked, model, encoding)
        slots = Slots(public.n, encoding.number_bits)
        parts = slots.parts(encoding.size)
        inner = self.inner.total(tuple(powers), residues(encoding), masks_context(context, encoding, self.digest, model))
        found: dict[str, list[int]] = {}
        answers: Mapping[str, bytes] | None = None
        while True:
            try:
                step = next(inner) if answers is None else inner.send(answers)
            except StopIteration as end:
                masks: Total = end.value
                break
            if not step.contributes:
                answers = yield step
                continue
            letters = {
                id: MODEL.pack(key=self.digest, model=model, powers=powers[id], inner=letter)
                for id, letter in step.letters.items()
            }
            found, answers = self._parted((yield replace(step, letters=letters)), len(parts))
        return self._opened(masks, found, slots, parts)

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _powers(self, ids: tuple[str, ...], model: bytes, grid: Cubic) -> Conversation[dict[str, bytes]]:
        """Ask for masked predictors; return for each party who answered the letter of numbers, squares and cubes."""
        public, n = self.key.public, self.key.public.n
        letter = PREDICTORS.pack(key=self.digest, model=model)
        answers = yield Step("predictors", dict.fromkeys(ids, letter), contributes=True)
        found = {}
        for id, answer in answers.items():
            try:
                reply, _ = REPLY.unpack(answer)
                ciphertexts = public.unpack(reply, len(reply) // public.ciphertext_bytes)
            except MessageRefused:
                continue
            if 0 < len(ciphertexts) <= grid.records:
                heads = [(self.key.decrypt(c) % n) >> grid.cut for c in ciphertexts]
                powers = [public.encrypt(signed(pow(head, power, n), n)) for head in heads for power in (1, 2, 3)]
                found[id] = public.pack(powers)
        if len(found) < self.settings.least:
            raise RoundRefused(f"{len(found)} parties sent predictors, of {self.settings.least} that are needed.")
        return found

    def _parted(self, answers: Mapping[str, bytes], n: int) -> tuple[dict[str, list[int]], dict[str, bytes]]:
        """Part each answer into its reply and what belongs to the sum of masks; who sent no reply has not answered."""
        public = self.key.public
        found, inner = {}, {}
        for id, answer in answers.items():
            try:
                reply, rest = REPLY.unpack(answer)
                found[id] = public.unpack(reply, n)
                inner[id] = rest
            except MessageRefused:
                continue
        return found, inner

    def _opened(self, masks: Total, found: Mapping[str, list[int]], slots: Slots, parts: list[slice]) -> Total:
        """Decrypt the replies of exactly those whose masks were counted, and take the masks away."""
        if not set(masks.counted) <= set(found):
            raise RoundRefused("masks were added up of parties that sent no reply.")
        opened = {
            id: np.concatenate(
                [slots.unpacked(self.key.decrypt(c), p.stop - p.start) for c, p in zip(found[id], parts, strict=True)]
            )
            for id in masks.counted
        }
        total = np.zeros(parts[-1].stop, np.uint64)
        for plain in opened.values():
            total += plain
        return Total(total - masks.total.astype(np.uint64), masks.counted, opened)
