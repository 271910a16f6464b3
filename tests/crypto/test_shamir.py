"""Shamir's shares: exact, secret below the threshold, and refused where they do not belong together."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.crypto import shamir
from hedgerow.crypto.shamir import LIMBS, P, at_zero, combine, pack, packed, split, unpack, unpacked
from hedgerow.crypto.streams import fresh, uniform_below
from hedgerow.errors import MessageRefused, SettingsInvalid


def secrets(m: int) -> np.ndarray:
    return np.frombuffer(fresh(32 * m), np.uint8).reshape(m, 32)


def some_holders(n: int, t: int) -> np.ndarray:
    """The points of t holders of n, in random order."""
    return np.argsort(uniform_below(2**63, n))[:t] + 1


# ---- exactness ------------------------------------------------------------------------------------------------------
@settings(max_examples=25)
@given(st.data())
def test_any_holders_as_many_as_the_threshold_open_the_secrets(data):
    n = data.draw(st.integers(2, 40))
    t, m = data.draw(st.integers(2, n)), data.draw(st.integers(1, 5))
    hidden = secrets(m)
    shares = split(hidden, n, t)
    assert shares.shape == (n, m, LIMBS)
    assert shares.dtype == np.uint32
    xs = some_holders(n, data.draw(st.integers(t, n)))
    assert (combine(xs, shares[xs - 1]) == hidden).all()


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, bytes(31) + b"\x80", b"\x01" + bytes(31)])
def test_secrets_at_the_edges_survive(secret):
    hidden = np.frombuffer(secret, np.uint8)[None]
    shares = split(hidden, 5, 3)
    assert combine(np.array([5, 1, 3]), shares[[4, 0, 2]]).tobytes() == secret


def test_shares_equal_those_of_plain_integers():
    coefficients = uniform_below(P, (67, 26)).astype(object)
    expected = [[sum(c * x**j for j, c in enumerate(column)) % P for column in coefficients.T] for x in range(1, 12)]
    drawn = coefficients[1:].astype(np.uint32).tobytes()
    assert shamir._shares(coefficients[0].astype(np.int64), 11, 67, P, lambda n: drawn[:n]).tolist() == expected


def test_products_are_exact_at_the_largest_threshold():
    t = shamir.LARGEST_THRESHOLD
    largest = np.full((t, 1), P - 1, np.uint32)
    shares = shamir._shares(np.array([P - 1]), 3, t, P, lambda n: largest.tobytes()[:n])
    expected = [(P - 1) * sum(pow(x, j, P) for j in range(t)) % P for x in (1, 2, 3)]
    assert shares[:, 0].tolist() == expected
    assert t * (P - 1) ** 2 < 2**53 <= (t + 1) * 2**42  # why no larger one is allowed


def test_weights_at_zero_equal_those_of_plain_integers():
    xs = np.array([some_holders(200, 25) for _ in range(8)])
    for row, weights in zip(xs.tolist(), at_zero(xs).tolist(), strict=True):
        for i, x in enumerate(row):
            above = below = 1
            for other in row[:i] + row[i + 1 :]:
                above, below = above * other % P, below * (other - x) % P
            assert weights[i] == above * pow(below, -1, P) % P


def test_batches_of_different_holders_open_like_one_by_one(monkeypatch):
    monkeypatch.setattr(shamir, "_AT_A_TIME", 50)
    hidden = secrets(60)
    shares = split(hidden, 12, 5)
    xs = np.array([some_holders(12, 5) for _ in range(30)]).reshape(3, 10, 5)
    batch = np.stack([shares[row - 1, 2 * i : 2 * i + 2] for i, row in enumerate(xs.reshape(30, 5))]).reshape(3, 10, 5, 2, 13)
    assert (combine(xs, batch).reshape(60, 32) == hidden).all()


def test_nothing_is_opened_from_nothing():
    assert combine(np.zeros((0, 3), np.int64), np.zeros((0, 3, 2, 13), np.uint32)).shape == (0, 2, 32)


@pytest.mark.slow
def test_secrets_among_a_thousand_holders():
    hidden = secrets(40)
    shares = split(hidden, 1000, 667)
    xs = some_holders(1000, 667)
    assert (combine(xs, shares[xs - 1]) == hidden).all()


# ---- secrecy --------------------------------------------------------------------------------------------------------
def every_share(p: int, t: int, draws) -> dict[int, Counter]:
    """For each secret, how often each share of the first holder occurs over all coefficients."""
    seen = {}
    for secret in range(p):
        seen[secret] = Counter()
        for coefficients in itertools.product(draws, repeat=t - 1):
            raw = np.array(coefficients, np.uint32).tobytes()
            seen[secret][shamir._shares(np.array([secret]), 3, t, p, lambda n, raw=raw: raw[:n])[0, 0]] += 1
    return seen


def test_one_share_of_two_says_nothing_about_any_secret():
    seen = every_share(7, 2, range(7))
    assert all(counts == Counter(range(7)) for counts in seen.values())


def test_two_shares_of_three_say_nothing_about_any_secret():
    seen = {}
    for secret in range(7):
        seen[secret] = Counter()
        for coefficients in itertools.product(range(7), repeat=2):
            raw = np.array(coefficients, np.uint32).tobytes()
            seen[secret][tuple(shamir._shares(np.array([secret]), 3, 3, 7, lambda n, raw=raw: raw[:n])[1:, 0])] += 1
    pairs = Counter(itertools.product(range(7), repeat=2))
    assert all(counts == pairs for counts in seen.values())


def test_T13_a_top_coefficient_that_is_never_zero_would_rule_a_secret_out():
    seen = every_share(7, 2, range(1, 7))  # the twin: no zero
    assert all(secret not in counts for secret, counts in seen.items())


def test_T13_the_top_coefficient_is_uniform_zero_included():
    p = 7
    shares = shamir._shares(np.zeros(20_000, np.int64), 1, 2, p, fresh)
    counts = np.bincount(shares[0], minlength=p)  # f(1) = 0 + c_1
    expected = counts.sum() / p
    assert ((counts - expected) ** 2).sum() / expected < 44  # chi-square, 6 degrees: one false alarm in ten million


def test_shares_of_one_holder_are_uniform_whatever_the_secret():
    shares = split(np.zeros((3000, 32), np.uint8), 3, 2)[0].reshape(-1)
    counts = np.bincount(shares // 8192, minlength=256)
    expected = len(shares) / 256
    assert ((counts - expected) ** 2).sum() / expected < 375  # chi-square, 255 degrees: one false alarm in a million


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("xs", [[1, 2, 2], [0, 1, 2], [P, 1, 2], [P + 1, 1, 2], [-1, 1, 2]])
def test_T13_points_that_are_zero_repeated_or_outside_are_refused(xs):
    shares = split(secrets(1), 3, 3)
    with pytest.raises(MessageRefused):
        combine(np.array(xs), shares)


def test_T13_without_that_check_the_share_at_zero_would_be_the_secret():
    hidden = secrets(1)
    at_p = shamir._limbs(hidden)  # what a holder with x = p, that is 0, would be sent
    assert (shamir._unlimbed(at_p) == hidden).all()


@pytest.mark.parametrize(
    ("xs", "shape"),
    [((3,), (4, 1, 13)), ((3,), (3, 1, 12)), ((2, 3), (3, 1, 13)), ((), (1, 13)), ((3,), (3, 13)), ((0,), (0, 1, 13))],
)
def test_shares_of_another_shape_are_refused(xs, shape):
    with pytest.raises(MessageRefused):
        combine(np.ones(xs, np.int64), np.zeros(shape, np.uint32))


def test_shares_outside_the_field_or_not_whole_are_refused():
    shares = split(secrets(1), 3, 3).astype(np.int64)
    with pytest.raises(MessageRefused, match="whole numbers"):
        combine(np.array([1, 2, 3]), shares.astype(float))
    for wrong in (P, -1):
        shares[1, 0, 4] = wrong
        with pytest.raises(MessageRefused, match="outside the field"):
            combine(np.array([1, 2, 3]), shares)


def test_a_wrong_share_never_opens_the_right_secret_unnoticed():
    hidden, refused = secrets(1), 0
    for limb in 5 * list(range(13)):
        shares = split(hidden, 3, 3)
        shares[1, 0, limb] = (shares[1, 0, limb] + 1 + uniform_below(P - 1, 1)[0]) % P
        try:
            assert (combine(np.array([1, 2, 3]), shares) != hidden).any()  # which a commitment shows
        except MessageRefused:
            refused += 1
    assert refused > 0  # half of all numbers of the field are no limb


@pytest.mark.parametrize(("n", "t"), [(5, 6), (5, 1), (5, 0), (3000, 2049), (P, 2), (1, 1)])
def test_thresholds_that_open_too_early_or_not_exactly_are_refused(n, t):
    with pytest.raises(SettingsInvalid, match="threshold"):
        split(secrets(1), n, t)


@pytest.mark.parametrize("hidden", [np.zeros((1, 31), np.uint8), np.zeros(32, np.uint8), np.zeros((1, 32))])
def test_secrets_of_another_form_are_refused(hidden):
    with pytest.raises(SettingsInvalid, match="uint8"):
        split(hidden, 3, 2)


# ---- packing --------------------------------------------------------------------------------------------------------
def test_packed_shares_are_35_bytes_a_secret_and_return():
    shares = split(secrets(4), 6, 3)
    packs = packed(shares)
    assert [len(raw) for raw in packs] == [4 * 35] * 6
    assert packs[2] == pack(shares[2])
    assert (unpacked(packs, 4) == shares).all()
    assert (unpack(packs[5], 4) == shares[5]).all()


def test_limbs_lie_21_bits_apart_the_lowest_first():
    share = uniform_below(P, (1, 13))
    number = int.from_bytes(pack(share), "little")
    assert [number >> 21 * i & (2**21 - 1) for i in range(14)] == [*share[0].tolist(), 0]


@pytest.mark.parametrize("limb", range(13))
def test_packs_with_numbers_outside_the_field_are_refused(limb):
    for number in (P, 2**21 - 1):
        with pytest.raises(MessageRefused, match="outside the field"):
            unpack((number << 21 * limb).to_bytes(35, "little"), 1)
    assert unpack(((P - 1) << 21 * limb).to_bytes(35, "little"), 1)[0, limb] == P - 1


@pytest.mark.parametrize("bit", range(273, 280))
def test_packs_with_stray_bits_are_refused(bit):
    with pytest.raises(MessageRefused, match="stray bits"):
        unpack((1 << bit).to_bytes(35, "little"), 1)


@pytest.mark.parametrize(("length", "m"), [(34, 1), (36, 1), (35, 2), (70, 1), (0, 1)])
def test_packs_of_another_length_are_refused(length, m):
    with pytest.raises(MessageRefused, match="bytes for shares"):
        unpack(bytes(length), m)
