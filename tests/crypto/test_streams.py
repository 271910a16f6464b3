"""Streams: the published cipher, exact modular sums, and uniform numbers."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from scipy.stats import chi2
from vectors import CTR_CIPHER, CTR_COUNTER, CTR_KEY, CTR_PLAIN, published

from hedgerow.crypto import streams
from hedgerow.crypto.streams import SHORT, add_streams, fresh, keystream, mask_bytes, uniform_below
from hedgerow.errors import KeyInvalid, SettingsInvalid

KINDS = [np.uint16, np.uint32, np.uint64]


def key(i: int) -> bytes:
    return hashlib.sha256(f"key {i}".encode()).digest()


def keys(n: int) -> list[bytes]:
    return [key(i) for i in range(n)]


def signs(n: int) -> list[int]:
    return [1 if hashlib.sha256(i.to_bytes(4, "big")).digest()[0] % 2 else -1 for i in range(n)]


def xored(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))


# ---- the stream -----------------------------------------------------------------------------------------------------
def test_the_stream_encrypts_as_in_sp_800_38a():
    plain = bytes.fromhex(CTR_PLAIN)
    assert xored(plain, keystream(bytes.fromhex(CTR_KEY), bytes.fromhex(CTR_COUNTER), 64)) == bytes.fromhex(CTR_CIPHER)


def test_the_stream_encrypts_as_in_rfc_3686():
    for v in published("ciphers/AES/CTR/aes-256-ctr.txt"):
        plain = bytes.fromhex(v["plaintext"])
        stream = keystream(bytes.fromhex(v["key"]), bytes.fromhex(v["iv"]), len(plain))
        assert xored(plain, stream) == bytes.fromhex(v["ciphertext"])


def test_the_stream_is_the_cipher_of_a_counter_that_wraps_around():
    start = 2**128 - 3
    counters = b"".join(((start + i) % 2**128).to_bytes(16, "big") for i in range(8))
    assert keystream(key(1), start.to_bytes(16, "big"), 128) == Cipher(AES(key(1)), ECB()).encryptor().update(counters)


def test_the_stream_of_a_key_stays_what_it_is():
    pinned = "b11219a05a8ac5f9"
    assert hashlib.sha256(keystream(key(7), b"n" * 16, 100_000)).hexdigest()[:16] == pinned


@pytest.mark.parametrize(("secret", "nonce"), [(b"k" * 16, bytes(16)), (b"k" * 33, bytes(16)), (b"k" * 32, bytes(12))])
def test_keys_and_nonces_of_another_length_are_refused(secret, nonce):
    with pytest.raises(KeyInvalid, match="bytes"):
        keystream(secret, nonce, 16)
    with pytest.raises(KeyInvalid, match="bytes"):
        add_streams(np.zeros(4, np.uint32), [secret], [1], nonce)


# ---- masks ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [0, 1, 3, 20, 700, 5_000, 70_001])
def test_masks_are_the_signed_sum_of_the_streams(d, kind):
    row = np.arange(d).astype(kind)
    modulus, expected = 1 << 8 * row.itemsize, row.astype(object)
    for k, sign in zip(keys(5), signs(5), strict=True):
        raw = mask_bytes(k, b"n" * 16, d * row.itemsize)
        expected = expected + sign * np.frombuffer(raw, np.dtype(kind).newbyteorder("<")).astype(object)
    add_streams(row, keys(5), signs(5), b"n" * 16)
    assert row.tolist() == (expected % modulus).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "n"), [(2_000, 300), (40_000, 10)])
def test_rows_are_masked_alike_in_batches_and_chunks_of_any_size(d, n, kind, monkeypatch):
    rows = []
    for batch, chunk in ((512, 1 << 17), (3, 1 << 12), (1, 1 << 20)):
        monkeypatch.setattr(streams, "_BATCH", batch)
        monkeypatch.setattr(streams, "_CHUNK", chunk)
        monkeypatch.setattr(streams, "_ZERO", memoryview(bytes(max(chunk, 8 * d))))
        row = np.zeros(d, kind)
        add_streams(row, keys(n), signs(n), bytes(16))
        rows.append(row)
    assert (rows[0] == rows[1]).all()
    assert (rows[0] == rows[2]).all()


def test_short_rows_are_masked_with_shake_and_long_ones_with_aes():
    label = b"hedgerow mask\0"
    assert mask_bytes(key(1), b"n" * 16, SHORT) == hashlib.shake_128(label + key(1) + b"n" * 16).digest(SHORT)
    assert mask_bytes(key(1), b"n" * 16, SHORT + 2) == keystream(key(1), b"n" * 16, SHORT + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_adds_and_the_other_subtracts_cancels(kind):
    row = np.arange(30_000).astype(kind)
    masked = row.copy()
    add_streams(masked, keys(9), signs(9), b"n" * 16)
    assert (masked != row).mean() > 0.99
    add_streams(masked, keys(9), [-s for s in signs(9)], b"n" * 16)
    assert (masked == row).all()


def test_T4_each_coordinate_has_a_mask_of_its_own():
    def gaps(mask):
        return np.diff(mask)[::2]

    row = np.zeros(20_001, np.uint32)
    add_streams(row, [key(3)], [1], bytes(16))
    twin = np.full(20_001, row[0])  # one number for all coordinates
    assert uniform(gaps(row) >> np.uint32(28), 16)
    assert not uniform(gaps(twin) >> np.uint32(28), 16)


@pytest.mark.parametrize("row", [np.zeros(4), np.zeros(4, np.int32), np.zeros((2, 2), np.uint32), np.zeros(8, np.uint16)[::2]])
def test_rows_that_cannot_be_masked_exactly_are_refused(row):
    with pytest.raises(SettingsInvalid, match="cannot be masked"):
        add_streams(row, keys(1), [1], bytes(16))


def test_a_stream_without_a_sign_is_refused_and_the_row_left_alone():
    row = np.zeros(4, np.uint32)
    with pytest.raises(SettingsInvalid, match="sign 0"):
        add_streams(row, keys(2), [1, 0], bytes(16))
    with pytest.raises(ValueError):
        add_streams(row, keys(2), [1], bytes(16))
    with pytest.raises(KeyInvalid):
        add_streams(row, [key(0), b"short"], [1, 1], bytes(16))
    assert not row.any()


# ---- uniform numbers ------------------------------------------------------------------------------------------------
def uniform(values: np.ndarray, p: int) -> bool:
    """A chi-square test that a fair source fails once in a million runs."""
    counts = np.bincount(values.astype(np.int64), minlength=p)
    expected = len(values) / p
    return float(((counts - expected) ** 2).sum() / expected) < chi2.isf(1e-6, p - 1)


def remainder_below(p: int, size: int) -> np.ndarray:
    """The shortcut that favours small numbers: a remainder of random bits."""
    bits = (p - 1).bit_length()
    return (np.frombuffer(fresh(4 * size), np.uint32) & np.uint32((1 << bits) - 1)) % np.uint32(p)


def upper_bound_missed(p: int, size: int) -> np.ndarray:
    """The bound taken as exclusive twice, so that p - 1 never occurs."""
    return uniform_below(p - 1, size)


@pytest.mark.parametrize("p", [2, 3, 5, 7, 11, 1000])
def test_T5_uniform_numbers_are_uniform(p):
    assert uniform(uniform_below(p, 60_000), p)


@pytest.mark.parametrize("biased", [remainder_below, upper_bound_missed])
@pytest.mark.parametrize("p", [3, 5, 7, 11])
def test_T5_the_test_of_uniformity_sees_a_bias(biased, p):
    assert not uniform(biased(p, 60_000), p)


def test_T5_the_whole_field_of_shamir_is_met():
    p = 2**21 - 9
    values = uniform_below(p, 400_000)
    assert values.dtype == np.uint32
    assert values.max() < p
    assert uniform(values // 8192, math.ceil(p / 8192))  # the last of 256 cells is nine numbers short: a 0.001 part
    assert uniform(values % 64, 64)


@pytest.mark.parametrize(("p", "kind"), [(1, np.uint32), (2**32, np.uint32), (2**32 + 1, np.uint64), (2**64, np.uint64)])
def test_uniform_numbers_reach_every_size(p, kind):
    values = uniform_below(p, (300, 2))
    assert values.shape == (300, 2)
    assert values.dtype == kind
    assert int(values.max()) < p
    assert p == 1 or int(values.max()) > p * 0.9  # 0.9^600 is below 1e-27


@pytest.mark.parametrize("p", [0, -1, 2**64 + 1])
def test_uniform_numbers_need_a_bound(p):
    with pytest.raises(SettingsInvalid, match="uniform numbers"):
        uniform_below(p, 3)


def test_numbers_beyond_the_bound_are_drawn_again():
    asked = []

    def entropy(n):
        asked.append(n)
        return np.array([6, 7, 5, 7] if len(asked) == 1 else [7, 2] if len(asked) == 2 else [4], np.uint32).tobytes()

    assert uniform_below(7, 4, entropy).tolist() == [6, 4, 5, 2]
    assert asked == [16, 8, 4]


# ---- fresh bytes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 256, 257, 5000])
def test_fresh_bytes_are_as_many_as_asked_and_never_the_same(n):
    assert len(fresh(n)) == n
    assert n < 2 or len({fresh(max(n, 16)) for _ in range(20)}) == 20


def test_fresh_bytes_are_uniform():
    assert uniform(np.frombuffer(fresh(100_000), np.uint8), 256)
