"""Streams for proofs: reading on, domains that are apart, and signs of the right frequencies."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest

from hedgerow.crypto.proofs import signs as signs_module
from hedgerow.crypto.proofs.field import Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.signs import dots, sign_blocks, squared_norm
from hedgerow.crypto.proofs.xof import EARLY_TURBO_SHAKE128, SHAKE128, TURBO_SHAKE128, Domain, Shake128, TurboShake128
from hedgerow.errors import SettingsInvalid


@pytest.mark.parametrize("kind", [Shake128, TurboShake128])
def test_pieces_of_a_stream_are_the_stream(kind: type) -> None:
    whole, stream = kind(b"a", memoryview(b"bc")).read(2000), kind(b"abc")
    assert b"".join(stream.read(n) for n in (1, 0, 8, 167, 168, 169, 1000, 487)) == whole


def test_shake_is_that_of_the_standard() -> None:
    assert Shake128(b"abc").read(50) == hashlib.shake_128(b"abc").digest(50)
    due = (2).to_bytes(2, "little") + b"dd" + bytes([3]) + b"sss" + b"message"
    assert SHAKE128.open(b"sss", b"dd", b"mess", b"age").read(40) == hashlib.shake_128(due).digest(40)


def test_reading_on_squeezes_no_more_than_a_few_times_what_is_read() -> None:
    class Counted:
        squeezed = 0

        def digest(self, n: int) -> bytes:
            self.squeezed += n
            return bytes(n)

    stream, counted = Shake128(b""), Counted()
    stream._hash = counted  # type: ignore[assignment]
    for _ in range(1000):
        stream.read(100)
    assert counted.squeezed <= 4 * 100_000


def test_every_part_of_a_domain_changes_the_stream() -> None:
    prefix = bytes([18, 0]) + bytes(4)
    given = [
        (SHAKE128, prefix, 1, b"ctx", b"seed", b"message"),
        (SHAKE128, prefix, 1, b"cty", b"seed", b"message"),
        (SHAKE128, prefix, 2, b"ctx", b"seed", b"message"),
        (SHAKE128, b"\x12\1" + bytes(4), 1, b"ctx", b"seed", b"message"),
        (SHAKE128, prefix, 1, b"ctx", b"seee", b"message"),
        (SHAKE128, prefix, 1, b"ctx", b"seed", b"messag"),
        (SHAKE128, prefix, 1, b"ctxs", b"eed", b"message"),
        (SHAKE128, prefix, 1, b"ctx", b"seedm", b"essage"),
        (TURBO_SHAKE128, prefix, 1, b"ctx", b"seed", b"message"),
        (EARLY_TURBO_SHAKE128, prefix, 1, b"ctx", b"seed", b"message"),
    ]
    found = [Domain(xof, head).open(usage, ctx, seed, message).read(16) for xof, head, usage, ctx, seed, message in given]
    assert all(a != b for a, b in itertools.combinations(found, 2))


def test_a_domain_that_its_length_cannot_hold_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match="domain"):
        SHAKE128.open(b"", bytes(1 << 16))
    with pytest.raises(SettingsInvalid, match="domain"):
        EARLY_TURBO_SHAKE128.open(b"", bytes(256))


def all_signs(message: bytes, vectors: int, length: int) -> np.ndarray:
    return np.concatenate([block for _, block in sign_blocks(Shake128(message), vectors, length)], axis=1)


def test_signs_are_two_bits_of_the_stream_less_one() -> None:
    found = all_signs(b"x", 3, 4101)
    raw = np.frombuffer(hashlib.shake_128(b"x").digest(3 * 1026), np.uint8).reshape(3, 1026)
    bits = np.unpackbits(raw, axis=1, bitorder="little").astype(int)
    assert found.shape == (3, 4101)
    assert np.array_equal(found, (bits[:, 0::2] + bits[:, 1::2] - 1)[:, :4101])


def test_signs_have_a_quarter_a_half_and_a_quarter() -> None:
    found = all_signs(b"frequencies", 64, 10_000)
    n = found.size
    for value, p in ((-1, 0.25), (0, 0.5), (1, 0.25)):
        assert abs((found == value).sum() - n * p) < 4.5 * np.sqrt(n * p * (1 - p))
    products = found[0::2] * found[1::2]  # neighbouring vectors: independent
    assert abs(products.sum()) < 4.5 * np.sqrt(products.size / 4)


@pytest.mark.parametrize("length", [1, 4, 5, 4096, 4097, 9000])
def test_dot_products_of_shares_are_exact(length: int) -> None:
    field = Field64()
    rng = np.random.default_rng(length)
    row = rng.integers(0, field.modulus, length, dtype=np.uint64)
    row[0] = field.modulus - 1
    z = all_signs(b"z", 5, length).astype(int).astype(object)
    assert dots(field, Shake128(b"z"), 5, row).tolist() == [int(v) % field.modulus for v in z @ row.astype(object)]
    wide = Field128()
    assert [int(v) for v in dots(wide, Shake128(b"z"), 5, row.astype(object))] == [
        int(v) % wide.modulus for v in z @ row.astype(object)
    ]


def test_full_bytes_under_equal_signs_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest sums that float32 meets: 255 in every byte and +1 in every sign."""
    field, length = Field64(), 3 * 4096
    monkeypatch.setattr(
        signs_module, "sign_blocks", lambda s, v, n: ((a, np.ones((v, 4096), np.float32)) for a in range(0, n, 4096))
    )
    row = np.full(length, 0xFFFFFFFE_FFFFFFFF, np.uint64)
    assert dots(field, Shake128(b""), 2, row).tolist() == [length * 0xFFFFFFFE_FFFFFFFF % field.modulus] * 2


@pytest.mark.parametrize("row", [[], [3, -4], [2**31, -(2**32) + 1] * 9, [2**40, 1], [-(2**62)]])
def test_squared_norms_are_exact(row: list[int]) -> None:
    assert squared_norm(np.array(row, np.int64)) == sum(v * v for v in row)
