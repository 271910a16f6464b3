"""Noise of any scale from a coarse table and a rejection: each decision against whole numbers, bytes, and twins."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from candidates import (
    BUILDS,
    COMPILED,
    LOOPS,
    SCALES,
    Bytes,
    Loop,
    candidate,
    critical,
    decided,
    ends,
    entries,
    entropy,
    exact,
    stated,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.randomness import Entropy
from hedgerow.privacy import coarse, noise
from hedgerow.privacy.coarse import CoarseLaw
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace
from hedgerow.privacy.tables import BITS, ONE, exponential


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


def check_zeros(loop: Loop) -> None:
    """Minus zero is drawn again, also where whole numbers decide."""
    for law in (noise._gaussian_law(0.3), noise._gaussian_law(70.5), noise._laplace_law(4096.0)):
        zeros = [candidate(law, 0, 0, 5, negative) for negative in (0, 1, 1, 0)]
        assert decided(loop, law, zeros) == [0, 0]
        assert decided(loop, law, [[int(law.table.high[0]), 1 << law.bits]], bytes(24)) == []


def with_both_zeros(law: CoarseLaw, words: np.ndarray, drawn: np.ndarray, made: int, source: Entropy) -> int:
    """A twin that takes minus zero for zero."""
    h, _ = law.table.by_high_word(words[:, 0])
    zero = (h == 0) & (words[:, 1] & np.uint64((1 << law.bits) - 1) == 0)
    positive = words & np.array([2**64 - 1, 2**64 - 1 - (1 << law.bits)], np.uint64)
    return coarse._by_numpy(law, np.where(zero[:, None], positive, words), drawn, made, source)


@pytest.mark.parametrize("loop", LOOPS)
def test_of_two_zeros_one_is_kept(loop):
    check_zeros(loop)


def test_a_twin_that_keeps_both_zeros_is_caught():
    with pytest.raises(AssertionError):
        check_zeros(with_both_zeros)
    law, n, drawn = noise._gaussian_law(1.0), 10_000, np.zeros((2, 10_000), np.int64)
    words = np.frombuffer(entropy()(16 * n), "<u8").reshape(-1, 2)
    share = float(stated(noise._gaussian_law, 1.0, law)[0])
    found = []
    for loop, numbers in zip((coarse._by_numpy, with_both_zeros), drawn, strict=True):
        made = loop(law, words, numbers, 0, Bytes())
        found.append(((numbers[:made] == 0).sum() - made * share) / math.sqrt(made * share * (1 - share)))
    assert abs(found[0]) < 5 < found[1]


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
