"""Paillier: sums and multiples are right, results show nothing of their making, and unfit keys are refused."""

from __future__ import annotations

import itertools
import math
import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from hedgerow.crypto import integers, paillier
from hedgerow.crypto.paillier import PaillierKey, PaillierPublic
from hedgerow.errors import KeyInvalid, MessageRefused, RangeExceeded

SMALL = PaillierKey.fresh(256, insecure=True)


@pytest.fixture(params=["gmpy2", "python"])
def either(request, monkeypatch):
    """Both ways to compute, on a key of its own."""
    if request.param == "python":
        monkeypatch.setattr(integers, "library", lambda: None)
    else:
        pytest.importorskip("gmpy2")
    return PaillierKey(int(SMALL._p), int(SMALL._q), insecure=True)


# ---- the scheme -----------------------------------------------------------------------------------------------------
def test_a_tiny_key_is_right_for_every_number_and_every_randomness():
    key = PaillierKey(5, 7, insecure=True)
    units = [r for r in range(1, 35) if math.gcd(r, 35) == 1]
    seen = {key.public.encrypt(m, r): m for m, r in itertools.product(range(-17, 18), units)}
    assert len(seen) == 35 * len(units)  # all units modulo 35^2, once each
    for m, r in [(3, 2), (-3, 33)]:
        assert key.public.encrypt(m, r) == pow(36, m, 1225) * pow(r, 35, 1225) % 1225
    assert all(key.decrypt(c) == m for c, m in seen.items())


def test_what_is_encrypted_returns_at_the_edges_too(either):
    half = either.public.n // 2
    for m in (0, 1, -1, half, -half, 2**64, -(2**104)):
        assert either.decrypt(either.public.encrypt(m)) == m
    for m in (half + 1, -half - 1, 2**300):
        with pytest.raises(RangeExceeded, match="does not fit"):
            either.public.encrypt(m)


def test_both_ways_to_compute_give_the_same_numbers(monkeypatch):
    pytest.importorskip("gmpy2")
    results = []
    for library in (integers.library, lambda: None):
        monkeypatch.setattr(integers, "library", library)
        key = PaillierKey(int(SMALL._p), int(SMALL._q), insecure=True)
        c = [key.public.encrypt(m, 12345 + m) for m in range(-4, 5)]
        rows = [[(-3) ** (i + j) for j in range(9)] for i in range(4)]
        made = [*c, *key.public.matrix(c, rows), key.public.multiply(c[0], -7), key.public.add_plain(c[1], -9)]
        results.append((made, [key.decrypt(each) for each in made]))
    assert results[0] == results[1]


@settings(max_examples=15)
@given(a=st.integers(-(2**100), 2**100), b=st.integers(-(2**100), 2**100), k=st.integers(-(2**60), 2**60))
def test_sums_and_multiples_are_those_of_the_numbers(a, b, k):
    public = SMALL.public
    c, d = public.encrypt(a), public.encrypt(b)
    assert SMALL.decrypt(public.add(c, d)) == a + b
    assert SMALL.decrypt(public.add_plain(c, b)) == a + b
    assert SMALL.decrypt(public.multiply(c, k)) == k * a


@settings(max_examples=15)
@given(st.data())
def test_a_matrix_of_any_numbers_times_encrypted_numbers(data):
    d, rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    bits = data.draw(st.sampled_from([0, 1, 7, 40, 130]))
    number = st.integers(-(2**bits), 2**bits)
    matrix = data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=rows, max_size=rows))
    m = [secrets.randbelow(2**40) - 2**39 for _ in range(d)]
    encrypted = [SMALL.public.encrypt(each) for each in m]
    expected = [sum(a * b for a, b in zip(row, m, strict=True)) for row in matrix]
    assert [SMALL.decrypt(c) for c in SMALL.public.matrix(encrypted, matrix)] == expected
    assert SMALL.decrypt(SMALL.public.linear(encrypted, matrix[0])) == expected[0]


def test_matrices_may_be_arrays_and_must_be_whole_and_fit(either):
    public = either.public
    encrypted = [public.encrypt(m) for m in (5, -6)]
    assert [either.decrypt(c) for c in public.matrix(encrypted, np.array([[1, 2], [3, -4]]))] == [-7, 39]
    for wrong in (np.array([[0.5, 2.0]]), [[True, 1]], [["1", 2]]):
        with pytest.raises(RangeExceeded, match="not a whole number"):
            public.matrix(encrypted, wrong)
    with pytest.raises(RangeExceeded, match="one column for each"):
        public.matrix(encrypted, [[1, 2, 3]])


# ---- randomness -----------------------------------------------------------------------------------------------------
def randomness(key: PaillierKey, c: int) -> int:
    """The rho of a ciphertext, which the key's holder can always find."""
    n = key.public.n
    p, q = int(key._p), int(key._q)
    return pow(c % n, pow(n, -1, (p - 1) * (q - 1)), n)


def test_no_two_encryptions_of_a_number_are_alike():
    public = SMALL.public
    assert len({public.encrypt(7) for _ in range(50)}) == 50
    c = public.encrypt(7)
    assert len({public.rerandomise(c) for _ in range(50)}) == 50
    assert {SMALL.decrypt(public.rerandomise(c)) for _ in range(8)} == {7}


def test_what_is_not_rerandomised_tells_the_coefficients_to_the_keys_holder():
    sent, n = SMALL.public.encrypt(3), SMALL.public.n
    scaled = SMALL.public.linear([sent], [41])
    guess = pow(randomness(SMALL, sent), 41, n)
    assert randomness(SMALL, scaled) == guess
    assert randomness(SMALL, SMALL.public.rerandomise(scaled)) != guess


P, Q = 1019, 1283  # (P - 1) / 2 and (Q - 1) / 2 are primes, so that every square but 1 generates all squares


def rerandomised(monkeypatch, times: int) -> np.ndarray:
    """The randomness of one ciphertext, rerandomised again and again."""
    key = PaillierKey(P, Q, insecure=True)
    draw = key.public._unit
    monkeypatch.setattr(key.public, "_unit", lambda: next(x for x in iter(draw, 0) if x * x % P != 1 and x * x % Q != 1))
    fixed = key.public.encrypt(5, 17)
    return np.array([randomness(key, key.public.rerandomise(fixed)) for _ in range(times)])


def uniform_units(found: np.ndarray, prime: int) -> bool:
    """A chi-square test over the units modulo a prime, with one false alarm in a million runs."""
    counts = np.bincount(found % prime, minlength=prime)[1:]
    expected = len(found) / (prime - 1)
    return float(((counts - expected) ** 2).sum() / expected) < chi2.isf(1e-6, prime - 2)


def quarters(found: np.ndarray) -> set[tuple[int, int]]:
    """Squares or not modulo either prime."""
    return {(integers.jacobi(r, P), integers.jacobi(r, Q)) for r in found.tolist()}


def test_rerandomised_results_have_the_randomness_of_fresh_ones(monkeypatch):
    found = rerandomised(monkeypatch, 3000)
    assert uniform_units(found, P)
    assert uniform_units(found, Q)
    assert len(quarters(found)) == 4


def test_squares_alone_would_leave_two_bits_of_the_way_there(monkeypatch):
    monkeypatch.setattr(PaillierPublic, "_long_mask", lambda self: self._mask(88))
    found = rerandomised(monkeypatch, 3000)
    assert not uniform_units(found, P)
    assert len(quarters(found)) == 1


def test_stocked_randomness_is_used_once():
    public = PaillierPublic(SMALL.public.n, insecure=True)
    c = public.encrypt(1)
    public.stock(3)
    masks = [int(mask) for mask in public._stock]
    made = [public.rerandomise(c) for _ in range(3)]
    assert public._stock == []
    assert sorted(made) == sorted(mask * c % public.n**2 for mask in masks)
    assert len({*made, public.rerandomise(c)}) == 4


def test_a_table_gives_every_power(either):
    modulus = integers.whole(either.public.n)
    table = integers.FixedBase(integers.whole(3), modulus)
    for exponent in [*range(300), 2**70 - 1, 2**70, int("1" * 200, 2), 64 + (64 << 7), secrets.randbits(500)]:
        assert table.power(exponent) == pow(3, exponent, int(modulus))


# ---- keys -----------------------------------------------------------------------------------------------------------
def test_fresh_keys_have_the_form_that_rerandomising_needs(either):
    key = PaillierKey.fresh(256, insecure=True)
    p, q = int(key._p), int(key._q)
    assert key.public.n.bit_length() == 256
    assert p % 4 == q % 4 == 3
    assert math.gcd(p - 1, q - 1) == 2
    for prime in (p, q):
        assert math.gcd(prime * ((prime - 1) // 2), integers.small_product()) == 1
        assert all(pow(a, prime - 1, prime) == 1 for a in (2, 3, 5, 7))


def test_python_knows_primes_as_gmpy2_does(monkeypatch):
    gmpy2 = pytest.importorskip("gmpy2")
    carmichael = [561, 41041, 825265, 321197185, 3778118040573702001, (2**61 - 1) * (2**89 - 1)]
    monkeypatch.setattr(integers, "library", lambda: None)
    numbers = [*range(2, 300), *range(2**16, 2**16 + 200), *carmichael, 2**127 - 1, (2**127 - 1) ** 2]
    assert [n for n in numbers if integers.probably_prime(n)] == [n for n in numbers if gmpy2.is_prime(n)]


def test_jacobi_symbols_are_those_of_gmpy2():
    gmpy2 = pytest.importorskip("gmpy2")
    pairs = [(a, n) for n in range(1, 60, 2) for a in range(-30, 90)]
    assert [integers.jacobi(a, n) for a, n in pairs] == [gmpy2.jacobi(a, n) for a, n in pairs]


@pytest.mark.parametrize("bits", [1024, 2047, 2056, 0, 20000])
def test_key_lengths_that_are_weak_or_odd_are_refused(bits):
    with pytest.raises(KeyInvalid, match="bits"):
        PaillierKey.fresh(bits)


def test_moduli_that_a_look_shows_to_be_unfit_are_refused(either):
    p, q = int(either._p), int(either._q)
    for n, reason in [(p * q, "2048"), (2 * p * q, "2048"), (7, "bits")]:
        with pytest.raises(KeyInvalid, match=reason):
            PaillierPublic(n)
    for n, reason in [(2 * p, "2\\^16"), (p * p, "two primes"), (p, "two primes"), (2**127 - 1, "two primes")]:
        with pytest.raises(KeyInvalid, match=reason):
            PaillierPublic(n, insecure=True)
    with pytest.raises(KeyInvalid, match="factor below"):
        PaillierPublic.from_bytes(b"\xff" * 256)  # 2^2048 - 1 is a multiple of 3


def test_primes_that_do_not_make_a_key_are_refused():
    p = int(SMALL._p)
    for first, second in [(p, p), (p, p * p), (3, 7)]:  # equal; not prime; 3 divides 7 - 1
        with pytest.raises(KeyInvalid):
            PaillierKey(first, second, insecure=True)


def test_keys_survive_their_bytes():
    public = SMALL.public
    again = PaillierPublic.from_bytes(public.to_bytes(), insecure=True)
    assert again == public
    assert again.digest == public.digest
    assert PaillierPublic.from_bytes(public.to_bytes(), insecure=True) is again  # one table for all parties of a process
    assert PaillierKey.from_bytes(SMALL.to_bytes(), insecure=True).decrypt(public.encrypt(-5)) == -5
    assert str(int(SMALL._p)) not in repr(SMALL)


@pytest.mark.parametrize(
    "raw", [b"", b"\0" + SMALL.public.to_bytes(), bytes(256), b"\xff" * 5000], ids=["nothing", "longer", "zeros", "ones"]
)
def test_public_keys_of_another_form_are_refused(raw):
    with pytest.raises(KeyInvalid, match="bytes"):
        PaillierPublic.from_bytes(raw, insecure=True)


def test_a_key_that_a_test_allowed_is_not_allowed_afterwards():
    PaillierPublic.from_bytes(SMALL.public.to_bytes(), insecure=True)
    with pytest.raises(KeyInvalid, match="2048"):
        PaillierPublic.from_bytes(SMALL.public.to_bytes())


# ---- ciphertexts ----------------------------------------------------------------------------------------------------
def test_ciphertexts_survive_their_bytes():
    public = SMALL.public
    encrypted = [public.encrypt(m) for m in range(5)]
    assert len(public.pack(encrypted)) == 5 * 64
    assert public.unpack(public.pack(encrypted), 5) == encrypted


def test_numbers_that_are_no_ciphertexts_are_refused(either):
    public = either.public
    good = public.encrypt(1)
    for wrong in (0, public.n, int(either._p), public.n**2, -good, 5 * public.n):
        with pytest.raises(MessageRefused, match="not a Paillier"):
            public.check([good, wrong])
        with pytest.raises(MessageRefused, match="not a Paillier"):
            either.decrypt(wrong)
    for raw, count in [(b"", 1), (bytes(64), 1), (public.pack([good]) + b"\0", 1), (public.pack([good]), 2)]:
        with pytest.raises(MessageRefused):
            public.unpack(raw, count)
    with pytest.raises(MessageRefused, match="not a Paillier"):
        public.multiply(public.n, -1)
    with pytest.raises(MessageRefused, match="not a Paillier"):
        public.linear([public.n], [-3])


@pytest.mark.slow
def test_a_key_of_the_real_size_hides_a_gradient():
    key = PaillierKey.fresh(2048)
    public = key.public
    theta = [secrets.randbelow(2**40) - 2**39 for _ in range(6)]
    terms = [[secrets.randbelow(2**41) - 2**40 for _ in range(6)] for _ in range(6)]
    hidden = [secrets.randbelow(2**104) for _ in range(6)]
    made = public.matrix([public.encrypt(m) for m in theta], terms)
    sent = public.pack([public.rerandomise(public.add_plain(c, r)) for c, r in zip(made, hidden, strict=True)])
    opened = [key.decrypt(c) for c in public.unpack(sent, 6)]
    totals = [m - r for m, r in zip(opened, hidden, strict=True)]
    assert totals == [sum(a * m for a, m in zip(row, theta, strict=True)) for row in terms]
    assert paillier.DEFAULT_BITS == 3072
