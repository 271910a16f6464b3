"""A party's side of a hidden model.

    "key"           once     checks that the server's key is well formed, pins it, and counts the rounds under it
    "predictors"    cubic    answers  E(z_j + rho_j)  for each of its records
    "contribution"           answers  E(A theta - b + r), and gives the limbs of r to its side of the sum of masks

Every reply is uniform among all ciphertexts of the key, and with the sum of masks tells a total, whatever was asked
(`masks`): of a cohort that the sum's own rules call large enough, and of parties that got the same letter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Contribution, Correspondent
from hedgerow.errors import KeyInvalid, MessageRefused
from hedgerow.store import Answered

from ..messages import digest
from ..paillier import PaillierPublic
from .grid import Cubic, GradientGrid, LinearGradientGrid
from .keyproof import checked_key
from .masks import Limbs, Slots, blinded, signed, uniform_below
from .settings import (
    MODEL,
    PREDICTORS,
    REPLY,
    PrivFL,
    limbs_of,
    masks_context,
    masks_contribution,
)

MOST_KEYS = 4
"""Keys that a party holds; a server needs one."""


@dataclass(frozen=True)
class EncryptedModel:
    """The encrypted model of one letter.

    Attributes
    ----------
    public : PaillierPublic
    ciphertexts : list of int
        Of the model, in steps of its grid.
    key, model : bytes
        Digest of the key, and the ciphertexts as they were sent: the same to every party.
    """

    public: PaillierPublic
    ciphertexts: list[int]
    key: bytes
    model: bytes


class PrivFLParty:
    """Answered for one party.

    Parameters
    ----------
    id : str
    settings : PrivFL
        The party's own: its least key length and most rounds.
    inner : Correspondent
        The party's side of the sum that adds up masks.
    pinned : bytes, optional
        Digest of the only key that is accepted; by default any that is well formed.
    journal : Answered, optional
        Keeps the number of rounds across restarts.
    """

    def __init__(
        self,
        id: str,
        settings: PrivFL,
        inner: Correspondent,
        *,
        pinned: bytes | None = None,
        journal: Answered | None = None,
    ) -> None:
        self.id, self.settings, self.inner, self.pinned = id, settings, inner, pinned
        self.journal = Answered(None) if journal is None else journal
        self._keys: dict[bytes, PaillierPublic] = {}
        self._pending: tuple[EncryptedModel, list[int]] | None = None

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer one step; those that are not of this protocol go to the sum of masks."""
        if step == "paillier-key":
            return self._key(letter)
        if contribution is None:
            return self.inner.answer(step, letter, None)
        if step == "predictors":
            return self._predictors(letter, contribution)
        return self._contribution(step, letter, contribution)

    def rounds(self, key: bytes) -> int:
        """How many rounds were answered under the key of this digest."""
        found = 0
        while self.journal.seen(_place(key, found)) is not None:
            found += 1
        return found

    # ---- steps ------------------------------------------------------------------------------------------------------
    def _key(self, letter: bytes) -> bytes:
        public = checked_key(letter, self.settings.bits, insecure=self.settings.insecure)
        found = public.digest
        if self.pinned is not None and found != self.pinned:
            raise KeyInvalid("the server's key is not the one that this party was told to expect.")
        if found not in self._keys and len(self._keys) >= MOST_KEYS:
            raise KeyInvalid(f"a server with more than {MOST_KEYS} keys.", remedy="A key serves many rounds.")
        self._keys[found] = public
        return found

    def _predictors(self, letter: bytes, contribution: Contribution) -> bytes:
        key, model = PREDICTORS.unpack(letter)
        grid = contribution.encoding
        if not isinstance(grid, Cubic):
            raise MessageRefused("predictors were asked for of a gradient that needs none.")
        question = self._question(key, model, grid)
        X, _, _ = grid.encode_rows(contribution.layout, contribution.row)
        public, room = question.public, 1 << grid.predictor_room
        masks = [room + uniform_below(public.n - 2 * room) for _ in X]
        predictors = public.matrix(question.ciphertexts, X)
        replies = [blinded(public, z, rho) for z, rho in zip(predictors, masks, strict=True)]
        self._pending = (question, masks)
        return REPLY.pack(reply=public.pack(replies), inner=b"")

    def _contribution(self, step: str, letter: bytes, contribution: Contribution) -> bytes:
        key, model, powers, inner = MODEL.unpack(letter)
        grid = contribution.encoding
        question = self._question(key, model, grid)
        if isinstance(grid, LinearGradientGrid) and not powers:
            A, b = grid.encode_terms(contribution.layout, contribution.row)
            rows, plain = question.public.matrix(question.ciphertexts, A), [-number for number in b]
        elif isinstance(grid, Cubic):
            rows, plain = self._cubic(question, powers, grid, contribution)
        else:
            raise MessageRefused("squares and cubes were sent for a gradient that needs none.")
        n = question.public.n
        replies, limbs = _masked(question.public, limbs_of(grid, n), rows, plain)
        context = masks_context(contribution.context, grid, key, model)
        answered = self.inner.answer(step, inner, masks_contribution(limbs, grid, n, context, contribution.steady))
        self.journal.write(_place(key, self.rounds(key)), digest("privfl round", letter))
        self._pending = None
        return REPLY.pack(reply=question.public.pack(replies), inner=answered)

    # ---- inside -----------------------------------------------------------------------------------------------------
    def _question(self, key: bytes, model: bytes, grid: GradientGrid) -> EncryptedModel:
        """Read a model, and refuse a key that is unknown or worn out."""
        public = self._keys.get(key)
        if public is None:
            raise KeyInvalid("a model under a key that this party has not checked.")
        if self.rounds(key) >= self.settings.most_rounds:
            raise MessageRefused(
                f"{self.settings.most_rounds} rounds were answered under this key, after which their totals would tell more "
                "than this party agreed to."
            )
        return EncryptedModel(public, public.unpack(model, grid.size), key, model)

    def _cubic(
        self, question: EncryptedModel, letter: bytes, grid: Cubic, contribution: Contribution
    ) -> tuple[list[int], list[int]]:
        """Unmix squares and cubes, and add up records: ciphertexts of a part of the gradient, and the rest in the clear."""
        _, weighted, y = grid.encode_rows(contribution.layout, contribution.row)
        sent = None if self._pending is None else (self._pending[0].key, self._pending[0].model, len(self._pending[1]))
        if self._pending is None or sent != (question.key, question.model, len(y)):
            raise MessageRefused("squares and cubes of predictors that this party has not sent.")
        public, n = question.public, question.public.n
        powers = public.unpack(letter, 3 * len(y))
        c0, c1, c3 = grid.coefficients
        unmixed, cubes = [], []
        for j, rho in enumerate(self._pending[1]):
            h, square, cube = powers[3 * j : 3 * j + 3]
            r = rho >> grid.cut
            unmixed.append(public.add_plain(h, signed(-r, n)))
            mixed = public.linear([square, h], [signed(-3 * r, n), signed(3 * r * r, n)])
            cubes.append(public.add_plain(public.add(cube, mixed), signed(-(r**3), n)))
        by_cube = _whole(weighted.T * c3, grid.factor_bits)
        by_predictor = _whole(weighted.T * c1, grid.total_bits - grid.predictor_bits)
        rows = public.matrix(cubes + unmixed, [a + b for a, b in zip(by_cube, by_predictor, strict=True)])
        (plain,) = _whole((weighted.T @ (c0 - y))[None], grid.total_bits)
        return rows, plain


def _masked(public: PaillierPublic, limbs: Limbs, rows: list[int], plain: list[int]) -> tuple[list[int], Array]:
    """Replies that carry `rows + plain + masks`, and the limbs of the masks one after the other."""
    slots, replies, masks = Slots(public.n), [], []
    for part in slots.parts(len(rows)):
        drawn = limbs.fresh()
        carried = slots.side_by_side(plain[part]) + limbs.value(drawn)
        replies.append(blinded(public, slots.packed(public, rows[part]), carried))
        masks.append(drawn)
    return replies, np.concatenate(masks)


def _place(key: bytes, i: int) -> str:
    return f"privfl/{key.hex()}/{i}"


def _whole(numbers: Array, bits: int) -> list[list[int]]:
    return [[int(number) for number in line] for line in np.rint(np.ldexp(numbers, bits))]
