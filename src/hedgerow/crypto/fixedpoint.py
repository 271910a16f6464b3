"""Fixed point: numbers as integers modulo 2^16, 2^32 or 2^64, so that masks cancel exactly and totals do not overflow.

Each key of a contribution has a public step, a power of two taken from its bound: with n parties asked, whatever they
contribute within the bound, their total fits the ring. What a mechanism has put on its own grid is whole already.

A range that does not fit is refused before anybody is asked, or by the party before anything leaves it: after masking
nobody can check it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import Bounds, blocks
from hedgerow.core.mechanism import Mechanism
from hedgerow.core.release import Release
from hedgerow.errors import RangeExceeded, SettingsInvalid, UnboundedSum

Bits = Literal[16, 32, 64]

WORDS: dict[int, type[np.unsignedinteger]] = {16: np.uint16, 32: np.uint32, 64: np.uint64}
SIGNED: dict[int, type[np.signedinteger]] = {16: np.int16, 32: np.int32, 64: np.int64}

LEAST_STEPS = 64
"""A contribution at its bound has at least so many steps; fewer would leave nothing of small ones."""


class WholeEncoding(Protocol):
    """What a protocol knows of how rows become whole numbers."""

    @property
    def parties(self) -> int: ...
    @property
    def bits(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def digest(self) -> bytes: ...
    @property
    def proof(self) -> bytes: ...


@dataclass(frozen=True)
class RingEncoding:
    """How contributions become vectors of a ring.

    Attributes
    ----------
    bits : {16, 32, 64}
    parties : int
        For how many parties' sum there is room.
    steps : tuple of (int, float)
        Runs of so many numbers with the same step.
    whole : bool
        Contributions are integers already, those of a mechanism: a number out of range leaves as the end of the range. To
        refuse it would reveal it, and to leave out the row would let one record more move the total by a whole row.
    heeds_range : bool
        Whether a number stays below its part of the ring's range; one of a party that forges does not.
    spare : int
        Steps of the range, to either side of zero, that are kept free for noise which aggregators add to the total.
    """

    bits: int
    parties: int
    steps: tuple[tuple[int, float], ...]
    whole: bool = False
    heeds_range: bool = True
    spare: int = 0

    def __post_init__(self) -> None:
        if self.bits not in WORDS or self.parties < 1:
            raise SettingsInvalid(
                f"fixed point of {self.bits!r} bits for {self.parties} parties.", remedy="bits: 16, 32 or 64."
            )
        if not self.most:
            raise RangeExceeded(
                f"{self.bits} bits leave no room for a step of each of {self.parties} parties.",
                remedy="Take more bits, or fewer parties.",
                asked=False,
            )

    @property
    def size(self) -> int:
        """Numbers in a contribution."""
        return sum(n for n, _ in self.steps)

    @property
    def most(self) -> int:
        """Largest absolute value, in steps, of one party's number."""
        return most(self.bits, self.parties if self.heeds_range else 1, self.spare)

    @property
    def proof(self) -> bytes:
        """What rows are proved to be: nothing."""
        return b""

    @cached_property
    def digest(self) -> bytes:
        """Identifies the encoding, 32 bytes."""
        words = f"{self.bits}/{self.parties}/{self.whole}/" + ",".join(f"{n}:{step.hex()}" for n, step in self.steps)
        words += f"/{self.spare}" if self.spare else ""
        return hashlib.sha256(words.encode()).digest()

    @cached_property
    def _step(self) -> Array:
        return np.repeat([step for _, step in self.steps], [n for n, _ in self.steps])

    def encode(self, row: Array) -> Array:
        """Turn numbers, or whole steps, of shape (..., size) into the ring.

        Raises
        ------
        RangeExceeded (HR-243)
            A number is not finite or beyond the range; nothing has left the party.
        """
        if row.shape[-1] != self.size:
            raise RangeExceeded(f"a contribution of {row.shape[-1]} numbers, where {self.size} were announced.")
        if self.whole:
            numbers = np.where(np.isnan(row), 0, row) if row.dtype.kind == "f" else row.astype(np.int64, copy=False)
            inside: Array = np.clip(numbers, -self.most, self.most).astype(np.int64)
            return inside.astype(WORDS[self.bits])
        with np.errstate(invalid="ignore", over="ignore"):
            steps = np.rint(row / self._step)
            largest = np.abs(steps).max(initial=0.0)
        if not largest <= self.most:
            raise RangeExceeded(
                f"a contribution reaches {largest:.3g} fixed-point steps, and {self.parties} parties have room for "
                f"{self.most:.3g} each.",
                remedy="Declare wider ranges, or more records to a party: aggregation = {by = 'secagg', records = ...}.",
            )
        return steps.astype(np.int64).astype(WORDS[self.bits])

    def forged(self, row: Array) -> tuple[RingEncoding, Array]:
        """The encoding of a party that heeds no range, and its row of shape (size,) cut to what the ring holds."""
        free = replace(self, heeds_range=False)
        largest = float(free.most) if self.whole else free.most * self._step * (1 - 2.0**-50)
        return free, np.clip(row, -largest, largest).astype(row.dtype)

    def decode(self, total: Array) -> Array:
        """Turn a total of the ring, shape (size,), into numbers, or into whole steps."""
        signed = total.astype(WORDS[self.bits]).view(SIGNED[self.bits])
        return signed.astype(np.int64) if self.whole else signed * self._step


LEAST_RECORD_STEPS = 1024
"""And a record at its bound so many, where the range has room for many records; else sums would be made of rounding."""


def most(bits: int, parties: int, spare: int = 0) -> int:
    """Largest absolute value that each of so many parties may add: a power of two, which floating point compares exactly.

    0 where there is not even room for one, with `spare` steps kept free.
    """
    room: int = max(2 ** (bits - 1) - 1 - spare, 0) // parties
    return 1 << room.bit_length() >> 1


def encoding_for(
    release: Release,
    layout: Layout,
    *,
    parties: int,
    bits: int = 64,
    records: float = 2.0**20,
    largest: float | None = None,
) -> RingEncoding:
    """The encoding of one question's contributions.

    Parameters
    ----------
    release : Release
        Whose bounds set the steps.
    layout : Layout
        Keys and shapes of what leaves a party.
    parties : int
        How many are asked.
    records : float
        Largest sum of record weights at one party: a bound per record, times this, is the range of a contribution.
    largest : float, optional
        Range of every number where no bound is declared.

    Raises
    ------
    UnboundedSum (HR-210)
        There is neither a bound nor a range.
    RangeExceeded (HR-243)
        The range does not fit so many bits.
    """
    bounds: Bounds | None = release.clip if release.clip is not None else release.bounds
    if release.mechanism is not None:
        spare = math.ceil(release.mechanism.added_reach(bounds, layout)) if bounds is not None else 0
        _room_for_steps(release.mechanism, bounds, layout, parties, bits, records, spare)
        return RingEncoding(bits, parties, ((layout.size, 1.0),), whole=True, spare=spare)
    if bounds is None and largest is None:
        raise UnboundedSum(
            "an aggregation that hides rows makes integers of them, and the sum declares no bound, so they have no range.",
            remedy="Declare ranges: [data] ranges = { age = [18, 90] }; or clip; or give the aggregation largest=1e6.",
        )
    room = most(bits, parties)
    if bounds is None:
        return RingEncoding(bits, parties, ((layout.size, _step(float(largest or 0.0), room, bits)),))
    runs = []
    for part, bound in blocks(bounds, layout):
        times = records if bound.unit == "record" else 1.0
        step = _step(bound.radius * times, room, bits)
        if bound.unit == "record" and bound.radius < LEAST_RECORD_STEPS * step:
            raise RangeExceeded(
                f"with {bits} bits, {parties} parties and records={records:g} a record at its bound of {bound.radius:g} has "
                f"{bound.radius / step:.3g} fixed-point steps, below {LEAST_RECORD_STEPS}.",
                remedy="Take more bits, or say how many records a party really holds at most: records=1 for one-record stores.",
                asked=False,
            )
        runs.append((part.stop - part.start, step))
    return RingEncoding(bits, parties, tuple(runs))


def _room_for_steps(
    mechanism: Mechanism, bounds: Any, layout: Layout, parties: int, bits: int, records: float, spare: int
) -> None:
    """Refuse a ring in which the steps of a mechanism's grid, noise included, could overflow."""
    reach, room = mechanism.reach(bounds, layout, records), most(bits, parties, spare)
    if reach > room:
        kept = f", besides {spare:.3g} for the noise of aggregators" if spare else ""
        raise RangeExceeded(
            f"a contribution through {mechanism} reaches {reach:.3g} steps of its grid, and {parties} parties have room for "
            f"{room:.3g} each in {bits} bits{kept}.",
            remedy="Take more bits, fewer parties, or fewer records at a party.",
            asked=False,
        )


def _step(reach: float, room: int, bits: int) -> float:
    """The least power of two of which `room` steps hold `reach`."""
    if not (math.isfinite(reach) and reach > 0):
        raise RangeExceeded(f"a range of {reach!r} cannot be held.", remedy="Ranges are finite and above zero.", asked=False)
    if room < LEAST_STEPS:
        raise RangeExceeded(
            f"{bits} bits leave {room} steps for a contribution.", remedy="Take more bits, or fewer parties.", asked=False
        )
    mantissa, exponent = math.frexp(reach / room)  # exact, since room is a power of two
    return math.ldexp(1.0, exponent - (mantissa == 0.5))
