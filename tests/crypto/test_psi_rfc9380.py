"""Hashing to curve25519 by RFC 9380: its vectors, and an alignment."""

from __future__ import annotations

import pytest
from psi_driver import aligned, common_ids

from hedgerow.crypto import integers
from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi import X25519, rfc9380
from hedgerow.crypto.psi.curve import FIELD, ORDER, Scalar, check, on_curve
from hedgerow.crypto.psi.rfc9380 import StandardCurve25519, added, expanded, hashed, mapped
from hedgerow.crypto.streams import fresh
from hedgerow.errors import SettingsInvalid

TAG = b"QUUX-V01-CS02-with-curve25519_XMD:SHA-512_ELL2_RO_"
VECTORS = [
    (
        b"",
        "2de3780abb67e861289f5749d16d3e217ffa722192d16bbd9d1bfb9d112b98c0",
        "3b5dc2a498941a1033d176567d457845637554a2fe7a3507d21abd1c1bd6e878",
    ),
    (
        b"abc",
        "2b4419f1f2d48f5872de692b0aca72cc7b0a60915dd70bde432e826b6abc526d",
        "1b8235f255a268f0a6fa8763e97eb3d22d149343d495da1160eff9703f2d07dd",
    ),
    (
        b"abcdef0123456789",
        "68ca1ea5a6acf4e9956daa101709b1eee6c1bb0df1de3b90d4602382a104c036",
        "2a375b656207123d10766e68b938b1812a4a6625ff83cb8d5e86f58a4be08353",
    ),
    (
        b"q128_" + b"q" * 128,
        "096e9c8bae6c06b554c1ee69383bb0e82267e064236b3a30608d4ed20b73ac5a",
        "1eb5a62612cafb32b16c3329794645b5b948d9f8ffe501d4e26b073fef6de355",
    ),
]


@pytest.fixture(params=["gmpy2", "python"], autouse=True)
def either(request, monkeypatch):
    """Both arithmetics."""
    if request.param == "python":
        monkeypatch.setattr(integers, "library", lambda: None)
    rfc9380._field.cache_clear()
    yield
    rfc9380._field.cache_clear()


@pytest.mark.parametrize(("message", "x", "y"), VECTORS, ids=["empty", "abc", "sixteen", "long"])
def test_rfc_9380_j_4_1(message, x, y):
    assert [int(c) for c in hashed(message, TAG)] == [int(x, 16), int(y, 16)]


def test_rfc_9380_j_4_1_on_the_way_for_the_empty_message():
    u = [
        0x005FE8A7B8FEF0A16C105E6CADF5A6740B3365E18692A9C05BFBB4D97F645A6A,
        0x1347EDBEC6A2B5D8C02E058819819BEE177077C9D10A4CE165AAB0FD0252261A,
    ]
    raw = expanded(b"", TAG, 96)
    assert [int.from_bytes(raw[i : i + 48], "big") % FIELD for i in (0, 48)] == u
    assert tuple(map(int, mapped(u[0]))) == (
        0x36B4DF0C864C64707CBF6CF36E9EE2C09A6CB93B28313C169BE29561BB904F98,
        0x6CD59D664FB58C66C892883CD0EB792E52055284DAC3907DD756B45D15C3983D,
    )
    assert tuple(map(int, mapped(u[1]))) == (
        0x3FA114783A505C0B2B2FBEEF0102853C0B494E7757F2A089D0DAAE7ED9A0DB2B,
        0x76C0FE7FEC932AAAFB8EEFB42D9CBB32EB931158F469FF3050AF15CFDBBEFF94,
    )


def test_points_are_on_the_curve_in_the_subgroup_of_prime_order():
    raw = StandardCurve25519().elements_of([b"%d" % i for i in range(10)], b"salt")
    check(raw)
    on, off = Scalar.invertible(fresh)
    assert off.mask(on.mask(raw)) == raw  # nothing of small order is lost
    assert ORDER % 8 == 5
    assert tuple(map(int, mapped(0))) == (0, 0)  # the point of order two
    assert on_curve(int(mapped(3)[0]))


def test_a_point_has_no_sum_with_minus_itself():
    x, y = mapped(5)
    with pytest.raises(ArithmeticError):
        added((x, y), (x, FIELD - y))
    with pytest.raises(ValueError, match="255"):
        expanded(b"", b"t" * 256, 32)


def test_an_alignment_with_the_standards_hash():
    lists = {"tax": [b"a", b"b", b"c"], "town": [b"c", b"d", b"b"]}
    common = common_ids(lists, aligned(lists, group=StandardCurve25519()))
    assert set(common["tax"]) == {b"b", b"c"}
    by = X25519(least=3, hashing="rfc9380", small_domain="accepted")
    got = meet({name: by.peer(name, ("a", "b"), by.read(range(4))) for name in "ab"})
    assert sorted(got["a"].rows) == [0, 1, 2, 3]
    with pytest.raises(SettingsInvalid):
        X25519(hashing="md5")
