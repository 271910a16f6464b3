"""Standardised values for stores that do not learn mean and standard deviation: the "encrypted data request".

    request   store   -> server   E(x)  under the store's own key, one number for each column
    reply     server  -> store    E(x / s - m / s)  in fixed point, and nothing else that the key could open
    store     decrypts its own standardised values

The store's number is a deviation from the middle of the column's declared range, in units of half that range. The server
multiplies by the whole number nearest to 1 / s, and adds a uniform number below one step, so that roundings tell nothing,
and a uniform multiple of 2^w, so that of whatever a store encrypted it gets w bits for each column: those of one
standardised value. Randomness is replaced as a whole (`masks`), under a key that is proved (`keyproof`).

What a store learns is one equation in m and s. Two records tell both: two stores that collude, or one store with two
records; so each store is answered once, and one record at a time. That is inherent in handing out standardised values.

Source : van Aarle 2021, section 3.2, after Mandal & Gong 2019. Differs: printed there as x / s * m; x / s - m / s is meant.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.conversation import Contribution, Conversation, Step
from hedgerow.crypto.messages import MessageForm, Octets, Whole, exactly
from hedgerow.errors import HedgerowError, MessageRefused, RangeExceeded, SettingsInvalid

from ..paillier import PaillierKey
from .keyproof import checked_key, prove
from .masks import blinded, uniform_below
from .settings import LONGEST

VALUE_BITS = 30
FACTOR_BITS = 30
MOST_COLUMNS = 1 << 10

ASK = MessageForm("scaling ask", grid=exactly(32), columns=Whole(1, MOST_COLUMNS))
REQUEST = MessageForm("scaling request", key=Octets(0, LONGEST), values=Octets(0, LONGEST))
REPLY = MessageForm("scaling reply", grid=exactly(32), values=Octets(0, LONGEST))


@dataclass(frozen=True)
class ScalingGrid:
    """Public steps of standardised values.

    Attributes
    ----------
    low, high : tuples of float
        Declared ranges of the columns.
    reach : float
        Largest absolute standardised value, a power of two.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    reach: float = 1024.0

    def __post_init__(self) -> None:
        lawful = 0 < len(self.low) == len(self.high) <= MOST_COLUMNS and 1 <= self.reach <= 2**40
        if not lawful or not all(-math.inf < a < b < math.inf for a, b in zip(self.low, self.high, strict=True)):
            raise SettingsInvalid(
                f"ranges {self.low} to {self.high} with standardised values up to {self.reach:g}.",
                remedy="Each column needs a range: finite, and its low end below its high end.",
            )

    @property
    def size(self) -> int:
        """Columns."""
        return len(self.low)

    @property
    def bits(self) -> int:
        """Bits of a standardised value with its sign."""
        return VALUE_BITS + FACTOR_BITS + math.ceil(math.log2(self.reach)) + 1

    @cached_property
    def digest(self) -> bytes:
        """Identifies the grid, 32 bytes."""
        return hashlib.sha256(repr(self).encode()).digest()

    @cached_property
    def middle(self) -> Array:
        """Of each declared range, shape (size,)."""
        return np.asarray((np.array(self.low) + np.array(self.high)) / 2)

    @cached_property
    def half(self) -> Array:
        """Half of each declared range, shape (size,)."""
        return np.asarray((np.array(self.high) - np.array(self.low)) / 2)

    def encode(self, x: Array) -> list[int]:
        """Turn one record, shape (size,), into whole steps; refuse (HR-243) what is outside its declared range."""
        if x.shape != (self.size,) or not (np.abs(x - self.middle) <= self.half * (1 + 1e-12)).all():
            raise RangeExceeded(
                f"a record of {x.size} values, where {self.size} inside their declared ranges belong.",
                remedy="One record at a time; declare wider ranges.",
            )
        return [int(step) for step in np.rint(np.ldexp((x - self.middle) / self.half, VALUE_BITS))]

    def line(self, means: Array, scales: Array) -> tuple[list[int], list[int]]:
        """Turn means and scales, shape (size,), into whole factors and whole summands.

        Raises
        ------
        RangeExceeded (HR-243)
            A value inside the declared range could be more than `reach` scales from the mean. No store was asked.
        """
        farthest = (np.abs(self.middle - means) + self.half) / scales
        if not (farthest < self.reach).all():
            raise RangeExceeded(
                f"a declared range reaches {farthest.max():.3g} standard deviations from the mean, beyond {self.reach:g}.",
                remedy="Declare narrower ranges, or ScalingGrid(reach=...) a larger power of two.",
                asked=False,
            )
        factors = [round(f) for f in np.ldexp(self.half / scales, FACTOR_BITS)]
        summands = [round(math.ldexp(s, VALUE_BITS + FACTOR_BITS)) for s in (self.middle - means) / scales]
        return factors, summands

    def decode(self, steps: Sequence[int]) -> Array:
        """Turn decrypted numbers modulo 2^bits into standardised values, shape (size,)."""
        whole, half = 1 << self.bits, 1 << (self.bits - 1)
        return np.array([math.ldexp((step + half) % whole - half, -VALUE_BITS - FACTOR_BITS) for step in steps])


class ScalingParty:
    """A store's side: sends one record encrypted, and keeps it standardised.

    Attributes
    ----------
    scaled : array of shape (size,) or None
        What came back.
    """

    def __init__(self, id: str, key: PaillierKey) -> None:
        self.id, self.key = id, key
        self.scaled: Array | None = None
        self._grid: ScalingGrid | None = None

    def answer(self, step: str, letter: bytes, contribution: Contribution | None = None) -> bytes:
        """Answer "scaling ask" with the encrypted record, and take in "scaling reply"."""
        if step == "scaling ask" and contribution is not None:
            return self._ask(letter, contribution)
        if step == "scaling reply" and contribution is None:
            return self._reply(letter)
        raise MessageRefused(f"step {step!r} is not of this protocol, or lacks a record.")

    def _ask(self, letter: bytes, contribution: Contribution) -> bytes:
        grid: ScalingGrid = contribution.encoding
        agreed, columns = ASK.unpack(letter)
        if agreed != grid.digest or columns != grid.size:
            raise MessageRefused("the server's ranges are not those that this store was told.")
        public = self.key.public
        values = public.pack([public.encrypt(step) for step in grid.encode(contribution.row)])
        self._grid = grid
        return REQUEST.pack(key=prove(self.key), values=values)

    def _reply(self, letter: bytes) -> bytes:
        grid, self._grid = self._grid, None
        agreed, raw = REPLY.unpack(letter)
        if grid is None or agreed != grid.digest:
            raise MessageRefused("standardised values that this store has not asked for.")
        self.scaled = grid.decode([self.key.decrypt(c) % self.key.public.n for c in self.key.public.unpack(raw, grid.size)])
        return b""


class ScalingServer:
    """The server's side: answers each store once.

    Parameters
    ----------
    grid : ScalingGrid
    means, scales : arrays of shape (size,)
        As `hedgerow.stats.secure_scaling` found them.
    bits : int
        Least length of a store's key.
    """

    def __init__(self, grid: ScalingGrid, means: Array, scales: Array, *, bits: int = 2048, insecure: bool = False) -> None:
        self.grid, self.bits, self.insecure = grid, bits, insecure
        self._line = grid.line(np.asarray(means, dtype=np.float64), np.asarray(scales, dtype=np.float64))
        self.served: set[str] = set()

    def standardise(self, ids: Iterable[str]) -> Conversation[tuple[str, ...]]:
        """Ask stores for their encrypted records and answer; return who was answered. Nobody is answered twice."""
        letter = ASK.pack(grid=self.grid.digest, columns=self.grid.size)
        asked = [id for id in dict.fromkeys(ids) if id not in self.served]
        letters = {}
        for id, request in (yield Step("scaling ask", dict.fromkeys(asked, letter), contributes=True)).items():
            if id in self.served or id not in asked:
                continue
            try:
                letters[id] = self._reply(request)
            except HedgerowError:
                continue
            self.served.add(id)
        yield Step("scaling reply", letters)
        return tuple(letters)

    def _reply(self, request: bytes) -> bytes:
        proof, raw = REQUEST.unpack(request)
        public = checked_key(proof, self.bits, insecure=self.insecure)
        room = 1 << self.grid.bits
        replies = []
        for value, factor, summand in zip(public.unpack(raw, self.grid.size), *self._line, strict=True):
            rounding = uniform_below(1 << VALUE_BITS) - (1 << (VALUE_BITS - 1))
            beyond = (1 + uniform_below(public.n // room - 2)) * room
            replies.append(blinded(public, public.multiply(value, factor), summand + rounding + beyond))
        return REPLY.pack(grid=self.grid.digest, values=public.pack(replies))
