"""Noise that each aggregator adds to its own total: how it is told of it, and how it draws it.

    told        "additive noise": the law, runs of so many numbers, and the scale of each run in grid steps; canonical msgpack
    drawn       by each aggregator from its own bytes, whole numbers of steps, once for each total
    added       to its total, in whole numbers modulo that of the ring or field

Parties make the same words from what they were sent, and the keys of their shares follow from them (`RoundTask.terms`). So an
aggregator that is told of less noise, or of none, makes other streams and opens no letter, and what it gives tells nothing.

It is the whole noise of the release, at each of them: colluders who know that of all aggregators but one still lack the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array, Layout
from hedgerow.core.mechanism import NoiseRuns, Sampler
from hedgerow.core.randomness import Entropy, Stream
from hedgerow.core.release import Release
from hedgerow.errors import MessageRefused, UnlawfulChannel

from ..messages import MessageForm, Positive, Several, Whole, Words
from .letters import LONGEST

MOST_RUNS = 1 << 14
"""Runs of different scales."""

_FORM = MessageForm(
    "additive noise",
    law=Words(64),
    numbers=Several(Whole(1, LONGEST), MOST_RUNS),
    scales=Several(Positive(), MOST_RUNS),
)


def noise_words(release: Release, layout: Layout, aggregators: int) -> bytes:
    """Say what each of so many aggregators adds to a total of rows with this layout; b"" where they add nothing.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The noise is to be added by aggregators, and those of this protocol are not as many: then nobody would add it.
    """
    mechanism, bounds = release.mechanism, release.bounds
    if mechanism is None or bounds is None or mechanism.at != "aggregators":
        return b""
    if mechanism.aggregators != aggregators or aggregators < 2:
        raise UnlawfulChannel(
            f"{mechanism}, through an aggregation with {aggregators} aggregators.",
            remedy="Noise at aggregators goes with additive shares: aggregation=AdditiveShares(aggregators=2).",
        )
    noise = mechanism.each_adds(bounds, layout)
    if not noise.runs:
        return b""
    numbers, scales = zip(*noise.runs, strict=True)
    return _FORM.pack(law=noise.law, numbers=list(numbers), scales=[float(scale) for scale in scales])


def noise_told(words: bytes, size: int) -> NoiseRuns | None:
    """Read what an aggregator is to add to a total of so many numbers; None for b"".

    Raises
    ------
    MessageRefused (HR-242)
    """
    if not words:
        return None
    law, numbers, scales = _FORM.unpack(words)
    if len(numbers) != len(scales) or sum(numbers) != size:
        raise MessageRefused(
            f"noise for {sum(numbers)} numbers in {len(scales)} runs, where a total has {size}.", remedy="Start a new round."
        )
    return NoiseRuns(law, tuple(zip(numbers, scales, strict=True)))


def own_entropy() -> Entropy:
    """Bytes of this process alone: AES-256-CTR under a key that the operating system draws each time."""
    return Stream(None).entropy


@dataclass(frozen=True)
class Drawing:
    """How an aggregator draws.

    Attributes
    ----------
    sampler : Sampler
        Such as `hedgerow.privacy.mechanisms.drawn`.
    entropy : callable
        Gives the bytes of one total; of a simulation with a seed those of its streams.
    """

    sampler: Sampler
    entropy: Callable[[], Entropy] = own_entropy

    def draw(self, noise: NoiseRuns) -> Array:
        """Draw what one aggregator adds to one total: shape (size,), int64."""
        return noise.draw(self.sampler, self.entropy())


def add_noise(total: Array, drawn: Array, modulus: int) -> None:
    """Add whole numbers to a total of residues, in place.

    Parameters
    ----------
    total : array of shape (size,), unsigned
        Each below the modulus.
    drawn : array of shape (size,), int64
        Below the modulus in absolute value, unless that is 2^(bits of the total).
    modulus : int
        2^(bits of the total), or less.
    """
    if modulus == 1 << (8 * total.itemsize):
        total += drawn.astype(total.dtype)
        return
    q = np.uint64(modulus)
    size = np.abs(drawn).astype(np.uint64)
    residue = np.where((drawn < 0) & (size > 0), q - size, size)
    room, here = q - residue, total.astype(np.uint64)
    total[:] = np.where(here >= room, here - room, here + residue).astype(total.dtype)
