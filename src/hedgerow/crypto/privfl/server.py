"""The server's side of a hidden model.

    theta        -> E(theta), the same ciphertexts to every party of the cohort
    replies      <- E(A theta - b + r)  of each party, in the same trip as its part of the sum of masks
    total        <- decrypted sum of replies - sum of r, modulo n, over the parties whose masks were counted
    gradient     <- total in steps of the grid

A cubic sigmoid takes one trip more: E(z_j + rho_j) of each record comes back as ciphertexts of the number, cut to fewer
bits, of its square and of its cube.

Source : van Aarle 2021, section 4.2.1, after Mandal & Gong 2019 (PrivFL). Differs: masks are of the whole key and their sum
is taken modulo the key, replies are packed and their randomness is uniform (`masks`), replies are added up before one of them
is decrypted, the key is proved (`keyproof`), the sum of masks is bound to the encrypted model, and the cubic's trip is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Conversation, Step
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.errors import MessageRefused, RoundRefused

from ..cohort import addressed
from ..conversation import Total
from ..paillier import PaillierKey
from .grid import Cubic, GradientGrid
from .keyproof import prove
from .masks import Slots, signed
from .settings import MODEL, PREDICTORS, REPLY, PrivFL, limbs_of, masks_context, residues


class SumOfMasks(Protocol):
    """The server's side of the sum that adds up masks."""

    def total(
        self, ids: Iterable[str], encoding: RingEncoding, context: bytes = b"", *, steady: bool = False
    ) -> Conversation[Total]:
        """Form a total over those of `ids` who stay."""


@dataclass(frozen=True)
class Replies(Mapping[str, Array]):
    """Each party's reply as the server can read it: what lies where totals will, modulo 2^64; decrypted when asked for."""

    key: PaillierKey
    ciphertexts: Mapping[str, list[int]]
    parts: list[slice]

    def __getitem__(self, id: str) -> Array:
        slots = Slots(self.key.public.n)
        plain = [self.key.decrypt(c) for c in self.ciphertexts[id]]
        return np.concatenate([slots.unpacked(m, p.stop - p.start) for m, p in zip(plain, self.parts, strict=True)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.ciphertexts)

    def __len__(self) -> int:
        return len(self.ciphertexts)


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
        answers = yield Step("paillier-key", dict.fromkeys(self.members if ids is None else ids, self._proof))
        self.ready |= {id for id, answer in answers.items() if answer == self.digest}

    @cached_property
    def _proof(self) -> bytes:
        return prove(self.key)

    def total(
        self, ids: Iterable[str], theta: Array, encoding: GradientGrid, context: bytes = b"", steady: bool = False
    ) -> Conversation[Total]:
        """Form the total gradient of those of `ids` who stay.

        Parameters
        ----------
        theta : array of shape (size,)
        encoding : Linear or Cubic
            Public steps; `encoding.decode` makes the total a gradient.
        context : bytes
            Digest of question and settings, as parties compute it.
        steady : bool
            Parties hold such totals to be over the same of them.

        Returns
        -------
        Total
            `masked` has each counted reply as the server can decrypt it.

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
        parts, context = Slots(public.n).parts(encoding.size), masks_context(context, encoding, self.digest, model)
        inner = self.inner.total(tuple(powers), residues(encoding, public.n), context, **({"steady": True} if steady else {}))
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
        return self._opened(masks, found, parts, encoding)

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

    def _opened(self, masks: Total, found: Mapping[str, list[int]], parts: list[slice], grid: GradientGrid) -> Total:
        """Add up the replies of exactly those whose masks were counted, decrypt, and take the masks away."""
        if not set(masks.counted) <= set(found):
            raise RoundRefused("masks were added up of parties that sent no reply.")
        public, counted = self.key.public, {id: found[id] for id in masks.counted}
        slots, limbs, totals = Slots(public.n), limbs_of(grid, public.n), []
        for j, part in enumerate(parts):
            together = reduce(public.add, (replies[j] for replies in counted.values()))
            hidden = limbs.value(masks.total[j * limbs.count : (j + 1) * limbs.count])
            totals.append(slots.unpacked(self.key.decrypt(together) - hidden, part.stop - part.start))
        return Total(np.concatenate(totals), masks.counted, Replies(self.key, counted, parts))
