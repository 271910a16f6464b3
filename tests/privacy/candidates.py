"""Candidates of noise with given words and bytes, and the laws that they belong to; for tests of the coarse table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from hedgerow.core.randomness import Entropy, Streams
from hedgerow.privacy import coarse, noise
from hedgerow.privacy.coarse import CoarseLaw
from hedgerow.privacy.tables import BITS, exponential

BUILDS = [noise._gaussian_law, noise._laplace_law]
SCALES = [0.3, 1.0, 70.5, 128.0, 300.7, 4096.0, 2.0**17 + 0.1, 1.1 * 2.0**24, 1.1 * 2.0**40, 2.0**45]
COMPILED = pytest.mark.skipif(coarse._coarse is None, reason="built without a compiler")
LOOPS = [pytest.param(coarse._compiled, marks=COMPILED, id="compiled"), pytest.param(coarse._by_numpy, id="numpy")]
Loop = Callable[[CoarseLaw, np.ndarray, np.ndarray, int, Entropy], int]


def entropy(seed: int = 0) -> Entropy:
    return Streams(seed).entropy(0, "server", "noise")


def exact(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def entries(law: CoarseLaw) -> int:
    return len(law.table.high) + 1


def ends(law: CoarseLaw) -> list[int]:
    return [(int(high) << 64) + int(low) for high, low in zip(law.table.high, law.table.low, strict=True)]


def masses(law: CoarseLaw) -> list[int]:
    """Probabilities of h times 2^128."""
    return [after - before for before, after in pairwise([0, *ends(law), 1 << 128])]


class Bytes:
    """Given bytes, of which all must be used."""

    def __init__(self, given: bytes = b"") -> None:
        self.left = given

    def __call__(self, n: int) -> bytes:
        assert n <= len(self.left), "more bytes were asked for than the candidate needs"
        found, self.left = self.left[:n], self.left[n:]
        return found


def candidate(law: CoarseLaw, h: int, low: int, top: int, negative: int = 0) -> list[int]:
    """The two words of a candidate; the first lies between the high words of the cumulatives around h."""
    before = int(law.table.high[h - 1]) if h else 0
    return [before + 1, low | negative << law.bits | top << law.bits + 1]


def decided(loop: Loop, law: CoarseLaw, candidates: Iterable[list[int]], more: bytes = b"") -> list[int]:
    """What candidates come to; all of `more` must be used."""
    words, source = np.array(list(candidates), np.uint64).reshape(-1, 2), Bytes(more)
    drawn = np.full(len(words) + 1, 99)
    made = loop(law, words, drawn[1:], 0, source)
    assert drawn[0] == 99
    assert not source.left
    return drawn[1 : 1 + made].tolist()


def critical(law: CoarseLaw, h: int, low: int) -> int:
    """exp(-t) in units of the leading bits of u, rounded down."""
    return exponential(-law.exponent(h, low)) >> BITS - 63 + law.bits


def stated(build: Callable[[float], CoarseLaw], scale: float, law: CoarseLaw) -> list[mpmath.mpf]:
    """Probabilities of the magnitudes 0, 1, 2, ... that a law of candidates can come to."""
    size = entries(law) << law.bits
    s = mpmath.mpf(scale)
    if build is noise._laplace_law:
        r = mpmath.exp(-1 / s)
        return [(1 - r) / (1 + r) * (2 * r**x if x else 1) for x in range(size)]
    total = mpmath.sqrt(2 * mpmath.pi) * s * mpmath.jtheta(3, 0, mpmath.exp(-2 * mpmath.pi**2 * s**2))
    return [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s**2)) * (2 if x else 1) / total for x in range(size)]
