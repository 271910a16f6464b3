"""Noise of any scale from a coarse table and a rejection: each decision against whole numbers, the law to 110 bits, twins."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf
from scipy.stats import chi2

from hedgerow.core.randomness import Entropy, Streams
from hedgerow.privacy import coarse, noise
from hedgerow.privacy.coarse import CoarseLaw
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace
from hedgerow.privacy.tables import BITS, ONE, exponential

FALSE_ALARM = 1e-6
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


# ---- exp(-t) --------------------------------------------------------------------------------------------------------
def test_the_decisive_exponential_is_right_to_192_bits():
    rng = random.Random(0)
    with mpmath.workdps(80):
        for _ in range(400):
            t = Fraction(rng.getrandbits(200), 1 << rng.randrange(202, 260))
            assert abs(exponential(-t) - mpmath.exp(-exact(t)) * ONE) <= 1


def test_the_second_look_is_right_to_48_bits():
    t = np.concatenate([[0.0, 2.0**-60, 0.22], np.random.default_rng(0).uniform(0, 0.22, 1000)])
    found = coarse.series(t)
    with mpmath.workdps(60):
        assert (
            max(abs(mpmath.mpf(float(e)) - mpmath.exp(-mpmath.mpf(float(x)))) for e, x in zip(found, t, strict=True)) < 2**-48
        )


@pytest.mark.parametrize("build", BUILDS)
def test_t_is_known_to_50_bits_and_the_first_look_keeps_nothing_that_it_should_not(build):
    rng = random.Random(0)
    for _ in range(40):
        law = build(2.0 ** rng.uniform(-2, 45))
        h = np.array([0, entries(law) - 1, *(rng.randrange(entries(law)) for _ in range(20))])
        low = np.array([(1 << law.bits) - 1] * 2 + [rng.randrange(1 << law.bits) for _ in range(20)])
        for i, t in enumerate(law.exponents(h, low)):
            true = law.exponent(int(h[i]), int(low[i]))
            assert abs(Fraction(float(t)) - true) < Fraction(1, 2**50)
            assert true < Fraction(22, 100)
            at_most = Fraction(1.0 - float(t)) - Fraction(coarse.QUICK)  # what the first look lets u + 2^-k reach
            assert at_most < 1 - true <= Fraction(exponential(-true) + 1, ONE)


def test_exponents_are_those_of_the_law():
    """t is by how much the logarithm of the weight falls from h B to h B + l."""
    for scale in (300.7, 1.1 * 2.0**40):
        gaussian, laplace = noise._gaussian_law(scale), noise._laplace_law(scale)
        for h, low in ((0, 1), (3, (1 << gaussian.bits) - 1), (900, 1 << gaussian.bits - 1)):
            x, start = (h << gaussian.bits) + low, h << gaussian.bits
            assert gaussian.exponent(h, low) == Fraction(x**2 - start**2) / (2 * Fraction(scale) ** 2)
            assert laplace.exponent(h, low) == Fraction(low) / Fraction(scale)


# ---- constructed candidates -----------------------------------------------------------------------------------------
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


def check_looks(loop: Loop) -> None:
    """Between 1 - t and exp(-t) a candidate is kept without more bytes, above exp(-t) it is rejected."""
    for build, scale in ((noise._gaussian_law, 4096.0), (noise._laplace_law, 300.7), (noise._gaussian_law, 1.1 * 2.0**40)):
        law = build(scale)
        h, low = min(400, entries(law) // 2), (1 << law.bits) - 1
        number, limit, whole = (h << law.bits) + low, critical(law, h, low), 1 << 63 - law.bits
        first = int((1 - float(law.exponent(h, low))) * whole)
        room = max(2, whole >> 42)
        assert limit - first > 3 * room
        tops = [0, first - room, first + room, limit - room, limit + room, whole - 1]
        found = decided(loop, law, [candidate(law, h, low, top, negative) for top in tops for negative in (0, 1)])
        assert found == [number, -number] * 4


@pytest.mark.parametrize("loop", LOOPS)
def test_looks_decide_as_exp_does(loop):
    check_looks(loop)


def test_looks_catch_a_twin_without_a_second_look(monkeypatch):
    monkeypatch.setattr(coarse, "series", lambda t: 1.0 - t)
    with pytest.raises(AssertionError):
        check_looks(coarse._by_numpy)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("build", "scale"), [(b, s) for b in BUILDS for s in SCALES if s > 128])
def test_whole_numbers_decide_what_floating_point_cannot(loop, build, scale):
    """At the leading bits of exp(-t) 128 more bits decide: the last u that is kept, and the first that is not."""
    law = build(scale)
    for h, low in ((0, 1), (1, 1), (90, (1 << law.bits) - 1)):
        wanted, unit = exponential(-law.exponent(h, low)), BITS - 128 - 63 + law.bits
        last = -(-wanted >> unit) - 1 if wanted >> unit << unit == wanted else wanted >> unit  # largest u of 191 - bits bits
        for u, kept in ((last, [(h << law.bits) + low]), (last + 1, [])):
            top, more = u >> 128, u & 2**128 - 1
            assert top == critical(law, h, low)
            assert decided(loop, law, [candidate(law, h, low, top)], bytes(8) + more.to_bytes(16, "little")) == kept


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("build", "scale"), [(b, s) for b in BUILDS for s in SCALES])
def test_low_words_decide_where_high_words_tie(loop, build, scale):
    law = build(scale)
    high, cumulatives = law.table.high, ends(law)
    tail = np.flatnonzero(high == high[-1])  # many share their high word
    for i in (0, len(high) // 3, int(tail[0]), int(tail[len(tail) // 2]), len(high) - 1):
        for number in (cumulatives[i] - 1, cumulatives[i]):
            if number >> 64 == high[i]:
                more = (number & 2**64 - 1).to_bytes(8, "little") + bytes(16)  # u is zero: it is kept
                assert decided(loop, law, [[int(high[i]), 0]], more) == [bisect_right(cumulatives, number) << law.bits]
    if scale > 1:  # the high word alone would not tell them apart
        assert bisect_right(cumulatives, cumulatives[tail[1]]) > tail[0]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scale", [0.3, 70.5, 4096.0])
def test_of_two_zeros_one_is_kept(loop, scale):
    law = noise._gaussian_law(scale)
    zeros = [candidate(law, 0, 0, 5, negative) for negative in (0, 1, 1, 0)]
    assert decided(loop, law, zeros) == [0, 0]
    one = [[int(high), 1 << law.bits] for high in law.table.high[:1]]  # minus zero with a tie
    assert decided(loop, law, one, bytes(24)) == []


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("build", BUILDS)
def test_without_low_digits_nothing_is_rejected(loop, build):
    law = build(0.9)
    assert law.bits == 0
    tops = [0, 1 << 62, (1 << 63) - 2**24]
    assert decided(loop, law, [candidate(law, 3, 0, top) for top in tops]) == [3] * 3
    assert decided(loop, law, [candidate(law, 3, 0, (1 << 63) - 1)], b"\xff" * 24) == [3]  # too close for floating point


def by_whole_numbers(law: CoarseLaw, first: int, second: int, more: bytes) -> list[int]:
    """What a candidate comes to with all its bits."""
    tie, rest = int.from_bytes(more[:8], "little"), int.from_bytes(more[8:], "little")
    h = bisect_right(ends(law), (first << 64) + tie)
    low, negative, top = second & (1 << law.bits) - 1, second >> law.bits & 1, second >> law.bits + 1
    u = Fraction((top << 128) + rest, 1 << 191 - law.bits)
    with mpmath.workdps(60):
        keep = exact(u) < mpmath.exp(-exact(law.exponent(h, low)))
    x = (h << law.bits) + low
    return [-x if negative else x] if keep and not (negative and x == 0) else []


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(build=st.sampled_from(BUILDS), scale=st.sampled_from(SCALES), data=st.data())
def test_any_candidate_comes_to_what_whole_numbers_say(build, scale, data):
    """Also close calls and ties; a candidate that asks for no more bytes would come to the same with any."""
    law = build(scale)
    near_an_end = st.sampled_from(law.table.high.tolist()).flatmap(lambda end: st.integers(end - 1, end))
    first = data.draw(near_an_end | st.integers(0, 2**64 - 1))
    low, last = data.draw(st.integers(0, (1 << law.bits) - 1)), (1 << 63 - law.bits) - 1
    near = critical(law, int(np.searchsorted(law.table.high, np.uint64(first))), low)
    near += data.draw(st.integers(-3, 3)) << data.draw(st.integers(0, 30))
    top = data.draw(st.just(min(max(near, 0), last)) | st.integers(0, last))
    words = [first, low | data.draw(st.integers(0, 1)) << law.bits | top << law.bits + 1]
    more = data.draw(st.sampled_from([bytes(24), b"\xff" * 24]) | st.binary(min_size=24, max_size=24))
    for loop in [found.values[0] for found in LOOPS][coarse._coarse is None :]:
        drawn, source = np.zeros(1, np.int64), Bytes(more)
        made = loop(law, np.array([words], np.uint64), drawn, 0, source)
        possible = [more] if not source.left else [bytes(24), b"\xff" * 24]
        assert [drawn[:made].tolist()] * len(possible) == [by_whole_numbers(law, *words, bits) for bits in possible]
        assert len(source.left) in (0, 24)


# ---- the law --------------------------------------------------------------------------------------------------------
def stated(build: Callable[[float], CoarseLaw], scale: float, law: CoarseLaw) -> list[mpmath.mpf]:
    """Probabilities of the magnitudes 0, 1, 2, ... that a law of candidates can come to."""
    size = entries(law) << law.bits
    s = mpmath.mpf(scale)
    if build is noise._laplace_law:
        r = mpmath.exp(-1 / s)
        return [(1 - r) / (1 + r) * (2 * r**x if x else 1) for x in range(size)]
    total = mpmath.sqrt(2 * mpmath.pi) * s * mpmath.jtheta(3, 0, mpmath.exp(-2 * mpmath.pi**2 * s**2))
    return [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s**2)) * (2 if x else 1) / total for x in range(size)]


def keeps(law: CoarseLaw, h: int, low: int) -> Fraction:
    """The probability of keeping a candidate, counted: how many u of 191 - bits bits are below exp(-t)."""
    unit = BITS - 191 + law.bits
    return Fraction(-(-exponential(-law.exponent(h, low)) >> unit), 1 << 191 - law.bits)


def keeps_without_a_second_look(law: CoarseLaw, h: int, low: int) -> Fraction:
    return 1 - law.exponent(h, low)


def distance(
    build: Callable[[float], CoarseLaw], scale: float, keeps: Callable[[CoarseLaw, int, int], Fraction] = keeps, zeros: int = 1
) -> mpmath.mpf:
    """Total variation between the stated law and that of the candidates that are kept, from exact probabilities.

    `zeros` is how many of the two zeros are kept.
    """
    law = build(scale)
    mass = masses(law)
    weight = [
        mass[h] * keeps(law, h, low) * (Fraction(zeros, 2) if h == low == 0 else 1)
        for h in range(entries(law))
        for low in range(1 << law.bits)
    ]
    total = sum(weight)
    with mpmath.workdps(60):
        return sum(abs(exact(w / total) - p) for w, p in zip(weight, stated(build, scale, law), strict=True)) / 2


EXACT = [(noise._gaussian_law, s) for s in (0.05, 0.3, 1.0, 3.7, 70.5, 130.2)]
EXACT += [(noise._laplace_law, s) for s in (0.05, 0.3, 1.0, 3.7, 64.5)]


@pytest.mark.slow
@pytest.mark.parametrize(("build", "scale"), EXACT)
def test_the_law_is_within_110_bits_of_the_stated_one(build, scale):
    assert distance(build, scale) < mpmath.mpf(2) ** -110


@pytest.mark.parametrize(
    ("build", "scale"), [(noise._gaussian_law, 0.3), (noise._gaussian_law, 3.7), (noise._laplace_law, 1.0)]
)
def test_the_law_at_a_small_scale_is_within_110_bits_of_the_stated_one(build, scale):
    assert distance(build, scale) < mpmath.mpf(2) ** -110
    assert distance(build, scale, zeros=2) > 1e-3  # a twin that keeps both zeros


@pytest.mark.slow
@pytest.mark.parametrize(("build", "scale"), [(noise._gaussian_law, 130.2), (noise._laplace_law, 64.5)])
def test_a_twin_without_a_second_look_has_another_law(build, scale):
    assert distance(build, scale, keeps_without_a_second_look) > 2**-30


@pytest.mark.parametrize("sigma", [70.5, 4096.0, 1.1 * 2.0**24, 2.0**45])
def test_the_table_of_a_gaussian_holds_the_law_of_high_digits_to_120_bits(sigma):
    law = noise._gaussian_law(sigma)
    with mpmath.workdps(60):
        s = mpmath.mpf(sigma) / 2**law.bits
        weights = [mpmath.exp(-(mpmath.mpf(h) ** 2) / (2 * s**2)) for h in range(entries(law) + 50)]
        total = sum(weights)
        assert all(abs(mpmath.mpf(m) / 2**128 - w / total) < 2.0**-120 for m, w in zip(masses(law), weights, strict=False))
        assert sum(weights[entries(law) :]) / total < 2.0**-120
    assert entries(law) <= 1705


def p_value(draws: np.ndarray, below: Callable[[np.ndarray], np.ndarray], scale: float) -> float:
    """Chi-square test in 200 bins, with the probability of being below a half-integer."""
    edges = np.unique(np.floor(scale * np.linspace(-4, 4, 200)).astype(np.int64))
    expected = np.diff(np.concatenate([[0.0], below(edges - 0.5), [1.0]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(expected))
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def gaussian_below(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: 0.5 * (1 + erf(x / sigma / math.sqrt(2)))


def laplace_below(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(k < x) for half-integers x."""
    ends = 2 * math.cosh(0.5 / scale)
    return lambda x: np.where(x < 0, np.exp(np.minimum(x, 0) / scale) / ends, 1 - np.exp(-np.maximum(x, 0) / scale) / ends)


@pytest.mark.parametrize("scale", [150.3, 300.7, 4096.0, 2.0**17 + 0.1, 1.1 * 2.0**24, 1.1 * 2.0**40, 2.0**45])
@pytest.mark.parametrize(("sampler", "below"), [(discrete_gaussian, gaussian_below), (discrete_laplace, laplace_below)])
def test_draws_follow_the_law_at_any_scale(sampler, below, scale):
    draws = sampler(scale, 200_000, entropy())
    assert p_value(draws, below(scale), scale) > FALSE_ALARM
    assert p_value(draws, below(1.05 * scale), scale) < FALSE_ALARM
    digits = np.bincount(draws % 64, minlength=64)  # low digits are uniform: one falls by 64 / scale of itself at most
    assert chi2.sf(((digits - len(draws) / 64) ** 2 / (len(draws) / 64)).sum(), 63) > FALSE_ALARM


# ---- bytes ----------------------------------------------------------------------------------------------------------
@COMPILED
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", [discrete_gaussian, discrete_laplace])
def test_both_loops_make_the_same_draws_of_the_same_bytes(sampler, scale, monkeypatch):
    size = 2 * coarse.BLOCK + 77
    compiled = sampler(scale, size, entropy(1))
    monkeypatch.setattr(coarse, "_coarse", None)
    np.testing.assert_array_equal(compiled, sampler(scale, size, entropy(1)))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_bit_is_the_sign_and_nothing_else(loop):
    law = noise._gaussian_law(1.1 * 2.0**24)
    words = np.frombuffer(entropy()(16 * 2000), "<u8").reshape(-1, 2).copy()
    drawn = np.zeros((2, 2000), np.int64)
    counts = [loop(law, words, drawn[0], 0, Bytes())]
    words[:, 1] ^= np.uint64(1 << law.bits)
    counts.append(loop(law, words, drawn[1], 0, Bytes()))
    np.testing.assert_array_equal(drawn[0], -drawn[1])
    assert counts[0] == counts[1] > 1900


@COMPILED
def test_the_compiled_loop_refuses_arrays_that_do_not_fit():
    law = noise._gaussian_law(4096.0)
    words, out = np.zeros((4, 2), np.uint64), np.zeros(4, np.int64)

    def call(words=words, high=law.table.high, guide=law.guide, bits=law.bits, out=out, at=0, made=0):
        return coarse._coarse.draw(words, high, guide, bits, law.slopes, out, at, made)

    assert call() == (4, 4)
    for wrong in ({"at": -1}, {"at": 5}, {"made": -1}, {"made": 1}, {"made": 9}, {"out": out[:3]}):
        with pytest.raises(ValueError, match="candidates from"):
            call(**wrong)
    with pytest.raises(ValueError, match="4095 buckets"):
        call(guide=law.guide[:-1].copy())
    with pytest.raises(ValueError, match="46 bits"):
        call(bits=46)
    with pytest.raises(ValueError, match="leaves the table at 7"):
        call(guide=np.where(np.arange(4096) == 7, 60_000, law.guide).astype(np.uint16))
    for wrong in ({"words": words.astype(float)}, {"high": law.table.high.view(np.int64)}, {"out": out.astype(np.int32)}):
        with pytest.raises(ValueError, match="is needed"):
            call(**wrong)
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        call()
