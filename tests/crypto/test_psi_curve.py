"""Points of curve25519: vectors of RFC 7748, hashes on the curve and not on its twist, masks that commute and come off."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest

from hedgerow.crypto import integers
from hedgerow.crypto.psi import curve
from hedgerow.crypto.psi.curve import FIELD, ORDER, SMALL_ORDER, Scalar, check, clamped, on_curve, points_of
from hedgerow.crypto.psi.tags import matches, permutation, refuse_repeats, tags_of
from hedgerow.crypto.streams import fresh
from hedgerow.errors import MessageRefused


@pytest.fixture(params=["libsodium", "openssl"])
def either(request, monkeypatch):
    """Both ways to multiply."""
    if request.param == "openssl":
        monkeypatch.setattr(curve, "_sodium", lambda: None)
    else:
        pytest.importorskip("nacl")


@pytest.fixture(params=["gmpy2", "python"])
def arithmetic(request, monkeypatch):
    """Both ways to tell the curve from its twist."""
    if request.param == "python":
        monkeypatch.setattr(curve, "library", lambda: None)
        monkeypatch.setattr(integers, "library", lambda: None)
    else:
        pytest.importorskip("gmpy2")
    curve._curve_test.cache_clear()
    yield
    curve._curve_test.cache_clear()


def twin_points(ids, salt):
    """The broken twin: a hash is taken as u directly."""
    return b"".join(
        (int.from_bytes(hashlib.sha256(salt + id).digest(), "little") % 2**255 % FIELD).to_bytes(32, "little") for id in ids
    )


def us(raw):
    return [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)]


IDS = [b"%d" % i for i in range(200)]


def test_rfc_7748_section_5_2_first_vector(either):
    k = bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    u = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert Scalar(k).mask(u).hex() == "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"


def test_rfc_7748_section_5_2_second_vector(either):
    k = bytes.fromhex("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d")
    u = bytes.fromhex("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493")
    assert Scalar(k).mask(u).hex() == "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"


@pytest.mark.parametrize(
    ("times", "result"),
    [
        (1, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"),
        pytest.param(1000, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51", marks=pytest.mark.slow),
    ],
)
def test_rfc_7748_section_5_2_iterated(times, result, either):
    k = u = b"\x09" + bytes(31)
    for _ in range(times):
        k, u = Scalar(k).mask(u), k
    assert k.hex() == result


def test_t20_hashes_are_on_the_curve_where_the_twin_has_half_of_them_on_its_twist(arithmetic):
    assert all(map(on_curve, us(points_of(IDS, b"salt"))))
    n_twin = sum(map(on_curve, us(twin_points(IDS, b"salt"))))
    assert binomtest(n_twin, len(IDS)).pvalue > 1e-6
    with pytest.raises(MessageRefused):
        check(twin_points(IDS, b"salt"))


def test_t20_masks_keep_the_twist_so_that_a_bit_of_the_twins_hash_shows():
    raw = twin_points(IDS, b"salt")
    masked = Scalar.fresh(fresh).mask(raw)
    assert [on_curve(u) for u in us(masked)] == [on_curve(u) for u in us(raw)]


def test_both_arithmetics_give_one_hash(monkeypatch):
    pytest.importorskip("gmpy2")
    found = points_of(IDS[:20], b"salt")
    monkeypatch.setattr(curve, "library", lambda: None)
    monkeypatch.setattr(integers, "library", lambda: None)
    curve._curve_test.cache_clear()
    assert points_of(IDS[:20], b"salt") == found
    curve._curve_test.cache_clear()


def test_hashes_are_uniform_and_depend_on_salt_and_id():
    values = np.array([u / FIELD for u in us(points_of([b"%d" % i for i in range(2000)], b""))])
    assert kstest(values, "uniform").pvalue > 1e-6
    assert len({points_of([id], salt) for id in (b"a", b"b", b"") for salt in (b"", b"a", b"b")}) == 9


def test_small_order_is_what_masks_turn_to_zero(either):
    for u in SMALL_ORDER:
        with pytest.raises(Exception, match=r"(?i)computing shared key|unexpected|error|fail"):
            Scalar.fresh(fresh).mask(u.to_bytes(32, "little"))
        with pytest.raises(MessageRefused):
            check(u.to_bytes(32, "little"))


def test_points_not_in_canonical_form_are_refused(arithmetic):
    good = next(u for u in range(2, 19) if on_curve(u))
    check(good.to_bytes(32, "little"))
    for alias in (good + FIELD, good + 2**255):
        with pytest.raises(MessageRefused):
            check(alias.to_bytes(32, "little"))
    with pytest.raises(MessageRefused):
        check(good.to_bytes(32, "little") + b"\0")


@settings(max_examples=10, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.binary(max_size=8))
def test_masks_commute_and_stay_on_the_curve(one, other, id):
    a, b, u = Scalar(one), Scalar(other), points_of([id], b"")
    both = a.mask(b.mask(u))
    assert both == b.mask(a.mask(u))
    check(both)


def test_a_mask_comes_off_again():
    on, off = Scalar.invertible(fresh)
    raw = points_of(IDS[:5], b"")
    other = Scalar.fresh(fresh)
    assert off.mask(other.mask(on.mask(raw))) == other.mask(raw)
    for scalar in (on, off):
        number = int.from_bytes(scalar._raw, "little")
        assert clamped(scalar._raw) == scalar._raw
        assert math.gcd(number, ORDER) == 1
        assert repr(scalar) == "Scalar()"


def test_equal_tags_are_found_in_their_order():
    raw = points_of(IDS[:50], b"")
    one, other = tags_of(raw, 32, b""), tags_of(raw, 32, b"")[::-1][10:]
    here, there = matches(one, other)
    assert len(here) == 40
    assert np.array_equal(one[here], other[there])
    assert [bytes(tag) for tag in one[here]] == sorted(bytes(tag) for tag in one[here])
    with pytest.raises(MessageRefused):
        matches(one[[0, 1, 0]], other)
    with pytest.raises(MessageRefused):
        matches(one, other[[0, 1, 0]])
    with pytest.raises(MessageRefused):
        refuse_repeats(one[[0, 1, 0]])
    refuse_repeats(one)
    refuse_repeats(one[:0])


def test_tags_that_share_their_first_bytes_are_told_apart():
    one = np.zeros((3, 12), np.uint8)
    one[:, 11] = [1, 2, 3]
    here, there = matches(one, one[[2, 0]])
    assert (here.tolist(), there.tolist()) == ([0, 2], [1, 0])


def test_a_permutation_has_everything_once():
    assert sorted(permutation(100, fresh)) == list(range(100))
    assert permutation(0, fresh).size == 0
    assert permutation(100, fresh).tolist() != permutation(100, fresh).tolist()
