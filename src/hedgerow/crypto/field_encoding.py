"""Rows as whole numbers of the field of q = 2^64 - 2^32 + 1, held to bounds that their parties prove.

A part of a contribution that has a bound of its own has a step of its own, and is proved by itself:

    with a mechanism      the steps of its grid, to which rows were rounded within the bound (`Release.close`)
    without one           a bound has 2^20 steps and fewer than 2^21 (l2), or steps in which whole numbers stay whole (l1, linf)

Rounding can lengthen a row. One that is too long on the grid is shortened and cut towards zero, which lengthens nothing, so
that no honest row is beyond what it proves.

What is proved of a bound per record is that of a whole party: the number of records that it may have, times the bound. Where
noise pays for a record, numbers are held to that range one by one, for shortening a row as a whole would move it by more than
the record did.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.bound import SLACK, Bound, blocks
from hedgerow.core.release import Release
from hedgerow.errors import RangeExceeded, UnboundedSum, UnlawfulChannel

from .fixedpoint import LEAST_RECORD_STEPS
from .proved_rows import FIELD, ClaimNorm, ProvedRows, RowClaim, proved_rows

LONGEST_L2 = 2.0**24.8
"""Most steps of an l2 bound: beyond them squares that wrap around the field could not be told."""

LONGEST = 2**62
"""Most steps of a total to either side of zero: half of what the field has room for."""

L2_BITS = 20
L1_BITS = 16
RANGE_BITS = 24
"""A bound has at least 2^bits steps where no mechanism has a grid; more where several records add up to a contribution."""

RECORDS_L2_BITS = 23
RECORD_BITS = 20
"""The same of an l2 bound of a party's records together, and of one record."""

NORMS: dict[float, ClaimNorm] = {1: "l1", 2: "l2", math.inf: "linf"}


@dataclass(frozen=True)
class ProvedPart:
    """A part of a row.

    Attributes
    ----------
    claim : RowClaim
        What is proved of it, in steps.
    step : float
        A power of two.
    radius : float
        What is proved, in units of the contribution.
    """

    claim: RowClaim
    step: float
    radius: float

    def __str__(self) -> str:
        return f"{self.claim.norm} of at most {self.radius:.6g}"


@dataclass(frozen=True)
class FieldEncoding:
    """How contributions become rows of the field, each held to what its party proves.

    Attributes
    ----------
    parties : int
        For how many parties' sum there is room.
    parts : tuple of ProvedPart
        In the order of the row's numbers.
    aggregators : int
        Among how many rows are shared.
    whole : bool
        Contributions are integers already, those of a mechanism.
    heeds_range : bool
        Whether rows are held to their bounds; that of a party that forges is not.
    spare : int
        Steps that are kept free for noise which aggregators add to the total.
    """

    parties: int
    parts: tuple[ProvedPart, ...]
    aggregators: int
    whole: bool = False
    heeds_range: bool = True
    spare: int = 0

    bits = 64

    def __post_init__(self) -> None:
        for part in self.parts:
            if part.claim.most < 1:
                raise RangeExceeded(
                    f"a bound of {part.radius:g} is less than one step of {part.step:g}, the grid of so much noise: every row "
                    "that could be proved is zero.",
                    remedy="Add less noise, clip by l2 rather than number by number, or take rows without proofs.",
                    asked=False,
                )
            steps = math.isqrt(part.claim.most) if part.claim.norm == "l2" else part.claim.most
            if part.claim.norm == "l2" and not part.claim.most <= LONGEST_L2**2:
                raise RangeExceeded(
                    f"an l2 bound of {part.radius:g} has {part.radius / part.step:.3g} steps of {part.step:g}, and a proof of "
                    f"it holds for 1 to {LONGEST_L2:.3g}.",
                    remedy="Add less noise: a step follows from the noise, and the bound is shorter than one."
                    if part.claim.most < 1
                    else "Add more noise, or bound and clip per party rather than per record.",
                    asked=False,
                )
            if steps * self.parties + self.spare > LONGEST:
                raise RangeExceeded(
                    f"{self.parties} parties of up to {steps:.3g} steps each: their total has no room in a field of 64 bits.",
                    remedy="Declare narrower ranges, or fewer records to a party: records=... of the aggregation.",
                    asked=False,
                )

    @property
    def size(self) -> int:
        """Numbers in a contribution."""
        return sum(part.claim.size for part in self.parts)

    @cached_property
    def proved(self) -> ProvedRows:
        """The proofs."""
        return proved_rows(tuple(part.claim for part in self.parts), self.aggregators)

    @property
    def proof(self) -> bytes:
        """What every row is proved to be, in words that an aggregator reads."""
        return self.proved.words

    @cached_property
    def digest(self) -> bytes:
        """Identifies the encoding, 32 bytes."""
        words = ",".join(f"{part.claim.size}:{part.step.hex()}:{part.claim.norm}:{part.claim.most}" for part in self.parts)
        return hashlib.sha256(f"field/{self.parties}/{self.aggregators}/{self.whole}/{words}".encode()).digest()

    @property
    def said(self) -> str:
        """What is proved of a party's row, in words."""
        said = list(dict.fromkeys(map(str, self.parts)))
        more = f" and {len(said) - 3} more" if len(said) > 3 else ""
        return "; ".join(said[:3]) + more

    def encode(self, row: Array) -> Array:
        """Turn numbers, or whole steps, of shape (size,) into whole steps within the bounds, int64.

        Raises
        ------
        RangeExceeded (HR-243)
            A number is not finite or beyond the range; nothing has left the party.
        """
        if row.shape != (self.size,):
            raise RangeExceeded(f"a contribution of {row.shape[-1]} numbers, where {self.size} were announced.")
        if not np.isfinite(row).all():
            if not self.whole:
                raise RangeExceeded("a contribution is not finite.", remedy="Look for missing or overflowing values.")
            row = np.where(np.isfinite(row), row, 0)
        return np.concatenate([self._steps(row[at], part) for part, at in self._places()])

    def forged(self, row: Array) -> tuple[FieldEncoding, Array]:
        """The encoding of a party that holds its row to no bound, and its row of shape (size,) cut to what the field holds.

        Of a row that is within the bounds it is an honest party's: that row has a proof.
        """
        free = replace(self, heeds_range=False)
        largest = 2.0**61 if self.whole else 2.0**61 * self._step
        cut = np.clip(row, -largest, largest).astype(row.dtype)
        if not np.isfinite(cut).all():
            return free, cut
        steps = free.encode(cut)
        return (self if all(within(steps[at], part.claim) for part, at in self._places()) else free), cut

    def decode(self, total: Array) -> Array:
        """Turn a total of the field, shape (size,), into numbers, or into whole steps."""
        signed = FIELD.centred(total)
        return signed if self.whole else signed * self._step

    @cached_property
    def _step(self) -> Array:
        return np.repeat([part.step for part in self.parts], [part.claim.size for part in self.parts])

    def _places(self) -> list[tuple[ProvedPart, slice]]:
        ends = np.cumsum([part.claim.size for part in self.parts]).tolist()
        return [(part, slice(end - part.claim.size, end)) for part, end in zip(self.parts, ends, strict=True)]

    def _steps(self, row: Array, part: ProvedPart) -> Array:
        """One part in whole steps, none longer than its bound."""
        exact = row.astype(np.float64) if self.whole else row.astype(np.float64) / part.step
        if not self.heeds_range:
            return np.rint(exact).astype(np.int64)
        norm, limit = part.claim.norm, part.radius / part.step
        if norm == "linf":
            if not self.whole and np.abs(exact).max(initial=0.0) > limit * (1 + SLACK):
                raise self._beyond(part)
            return np.clip(np.rint(exact), -part.claim.most, part.claim.most).astype(np.int64)
        if not self.whole and length(exact, norm) > limit * (1 + SLACK):
            raise self._beyond(part)
        steps = np.rint(exact).astype(np.int64)
        if within(steps, part.claim):
            return steps
        factor = min(1.0, limit / length(exact, norm)) * (1 - 2.0**-40)
        cut: Array = np.trunc(exact * factor).astype(np.int64)
        return cut if within(cut, part.claim) else np.zeros_like(cut)

    def _beyond(self, part: ProvedPart) -> RangeExceeded:
        return RangeExceeded(
            f"a contribution is longer than what would be proved of it: {part}.",
            remedy="Declare wider ranges, or more records to a party: records=... of the aggregation.",
        )


def length(numbers: Array, norm: ClaimNorm) -> float:
    """The l1 or l2 length of numbers of shape (d,)."""
    return float(np.abs(numbers).sum() if norm == "l1" else np.linalg.norm(numbers))


def within(steps: Array, claim: RowClaim) -> bool:
    """Whether whole steps of shape (d,) are what a claim says, to the last step."""
    largest = int(np.abs(steps).max(initial=0))
    if claim.norm == "linf" or largest > claim.most:
        return largest <= claim.most
    power = 1 if claim.norm == "l1" else 2
    if largest**power > claim.most:
        return False
    at_once = max(1, 2**62 // max(largest**power, 1))  # so many terms cannot overflow
    size = np.abs(steps) ** power
    return sum(int(size[i : i + at_once].sum()) for i in range(0, len(size), at_once)) <= claim.most


def field_encoding_for(
    release: Release,
    layout: Layout,
    *,
    parties: int,
    aggregators: int,
    records: float = 2.0**20,
    largest: float | None = None,
) -> FieldEncoding:
    """The encoding of one question's contributions, and what is proved of each.

    Parameters
    ----------
    release : Release
        Whose bounds are proved.
    layout : Layout
        Keys and shapes of what leaves a party.
    parties : int
        How many are asked.
    aggregators : int
    records : float
        Largest sum of record weights at one party: a bound per record, times this, is what is proved of a contribution.
    largest : float, optional
        Range of every number where no bound is declared.

    Raises
    ------
    UnboundedSum (HR-210)
        There is neither a bound nor a range.
    UnlawfulChannel (HR-211)
        Noise or a compression makes another row of the one that is bounded.
    RangeExceeded (HR-243)
        A bound has too many steps for a proof, or a total no room.
    """
    mechanism, compression = release.mechanism, release.compression
    refuse_unprovable(None if mechanism is None else mechanism.at)
    bounds = release.clip if release.clip is not None else release.bounds
    if mechanism is not None:
        found = None if bounds is None else mechanism.grid(bounds, layout)
        if found is None:
            raise UnlawfulChannel(
                f"{mechanism} has no grid on which a row could be proved to be within its bound.",
                remedy="Take Gaussian, Skellam, Laplace or counts on whole numbers, or rows without proofs: verified=False.",
            )
        parts = tuple(_on_grid(part, bound, step, records) for part, bound, step in found)
        spare = 0 if bounds is None else math.ceil(mechanism.added_reach(bounds, layout))
        return FieldEncoding(parties, parts, aggregators, whole=True, spare=spare)
    if compression is not None and not compression.remembers:
        raise UnlawfulChannel(
            f"{compression} makes a code of the clipped row, which may be longer than the clip: nothing is proved of it.",
            remedy="Leave the compression out, or take one that remembers what it left out, or add noise at the server.",
        )
    if release.plan is not None and release.clip is None:
        raise UnboundedSum(
            f"{release.plan} adds noise inside the party, and no clip bounds what comes of it.",
            remedy="Clip: federation.protect(clip=l2(1.0), ...).",
        )
    if bounds is None and largest is None:
        raise UnboundedSum(
            "a proof is about a bound, and the sum declares none.",
            remedy="Declare ranges: [data] ranges = { age = [18, 90] }; or clip; or give the aggregation largest=1e6.",
        )
    if bounds is None:
        given = [(slice(0, layout.size), Bound(math.inf, float(largest or 0.0)))]
    else:
        given = blocks(bounds, layout)
    return FieldEncoding(parties, tuple(_chosen(part, bound, records) for part, bound in given), aggregators)


def refuse_unprovable(noise_at: str | None) -> None:
    """Refuse noise that parties add to their rows (HR-211)."""
    if noise_at in ("party", "shares"):
        raise UnlawfulChannel(
            f"noise at {noise_at!r} with verified shares: a party would prove the length of its row with noise, which has no "
            "bound, and so nothing.",
            remedy="Let the aggregators or the server add the noise: at = 'aggregators', or at = 'server'.",
        )


def _on_grid(part: slice, bound: Bound, step: float, records: float) -> ProvedPart:
    """What is proved of a part whose steps a mechanism has chosen."""
    if bound.unit == "record":
        bound = Bound(math.inf, bound.radius * records)
    return _part(part, bound, step)


def _chosen(part: slice, bound: Bound, records: float) -> ProvedPart:
    """What is proved of a part, in steps that are chosen here."""
    each = bound.unit == "record"
    radius = bound.radius * (records if each else 1.0)
    if not (math.isfinite(radius) and radius > 0):
        raise RangeExceeded(f"a range of {radius!r} cannot be held.", remedy="Ranges are finite and above zero.", asked=False)
    if bound.norm == 2:
        step = _power_of_two(radius, RECORDS_L2_BITS if each else L2_BITS)
        if each and bound.radius < LEAST_RECORD_STEPS * step:
            raise RangeExceeded(
                f"with records={records:g} a record at its bound of {bound.radius:g} has {bound.radius / step:.3g} steps of an "
                f"l2 bound that can be proved, below {LEAST_RECORD_STEPS}.",
                remedy="Say how many records a party really holds at most: records=1 for one-record stores; or clip per party.",
                asked=False,
            )
    else:
        step = _power_of_two(bound.radius, RECORD_BITS if each else L1_BITS if bound.norm == 1 else RANGE_BITS)
        if bound.radius == round(bound.radius):
            step = min(step, 1.0)
    return _part(part, Bound(bound.norm, radius), step)


def _part(part: slice, bound: Bound, step: float) -> ProvedPart:
    limit = Fraction(bound.radius) / Fraction(step)
    most = math.floor(limit**2 if bound.norm == 2 else limit)
    if not most <= LONGEST:
        raise RangeExceeded(
            f"a bound of {bound.radius:g} has {float(limit):.3g} steps of {step:g}, and no field of 64 bits has room for them.",
            remedy="Say how many records a party really holds at most: records=... of the aggregation.",
            asked=False,
        )
    return ProvedPart(RowClaim(NORMS[bound.norm], part.stop - part.start, most), step, bound.radius)


def _power_of_two(radius: float, bits: int) -> float:
    """The power of two of which a radius has at least 2^bits, and fewer than twice as many."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - bits)
