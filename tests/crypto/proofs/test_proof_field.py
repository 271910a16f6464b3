"""Arithmetic of the fields against Python's whole numbers, and words that are refused or left out."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hedgerow.crypto.proofs.field import Field, Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.errors import MessageRefused

f64, f128 = Field64(), Field128()
Q = f64.modulus
EDGES = [0, 1, 2, 2**22 - 1, 2**22, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**43, 2**44 - 1, 2**44, 2**63 - 1, 2**63]
EDGES += [Q - 1, Q - 2, Q - 2**22, Q - 2**32, Q - 2**32 + 1, Q // 2, Q // 2 + 1]


def pairs() -> tuple[list[int], list[int]]:
    draw = random.Random(5)
    a = [x for x in EDGES for _ in EDGES] + [draw.randrange(Q) for _ in range(10_000)]
    b = [y for _ in EDGES for y in EDGES] + [draw.randrange(Q) for _ in range(10_000)]
    return a, b


def words(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def test_sums_differences_and_products_are_those_of_whole_numbers() -> None:
    a, b = pairs()
    x, y = words(a), words(b)
    assert f64.add(x, y).tolist() == [(i + j) % Q for i, j in zip(a, b, strict=True)]
    assert f64.sub(x, y).tolist() == [(i - j) % Q for i, j in zip(a, b, strict=True)]
    assert f64.mul(x, y).tolist() == [i * j % Q for i, j in zip(a, b, strict=True)]
    assert x.tolist() == a


def test_operations_broadcast_as_numpy_does() -> None:
    draw = random.Random(6)
    a = words([draw.randrange(Q) for _ in range(3 * 4000)]).reshape(3, 1, 4000)
    b = words([draw.randrange(Q) for _ in range(5)]).reshape(5, 1)
    found = f64.mul(a, b)
    assert found.shape == (3, 5, 4000)
    i, j, k = 2, 3, 3999
    assert int(found[i, j, k]) == int(a[i, 0, k]) * int(b[j, 0]) % Q
    assert np.array_equal(found[:, 4], f64.mul(a[:, 0], np.full((3, 4000), b[4, 0])))
    assert f64.add(a[:0], b).shape == (0, 5, 4000)


@pytest.mark.parametrize("n", [1, 7, 70_000])
def test_a_sum_of_the_largest_numbers_is_exact(n: int) -> None:
    assert int(f64.sum(np.full(n, Q - 1, np.uint64))) == n * (Q - 1) % Q
    columns = np.full((n, 2), 2**32 - 1, np.uint64)
    assert f64.sum(columns, axis=0).tolist() == [n * (2**32 - 1) % Q] * 2


@pytest.mark.parametrize("terms", [1, 2, 511, 512, 513, 1030])
def test_matrix_products_are_exact_where_limbs_are_full(terms: int) -> None:
    draw = random.Random(terms)
    a = [[draw.choice(EDGES) for _ in range(terms)], [Q - 1] * terms, [2**44 - 1] * terms, [2**64 - 2**32] * terms]
    b = [[draw.randrange(Q), Q - 1, 2**44 - 1, draw.choice(EDGES)] for _ in range(terms)]
    found = f64.product(np.array(a, np.uint64), np.array(b, np.uint64))
    due = (np.array(a, object) @ np.array(b, object)) % Q
    assert (found.astype(object) == due).all()


def test_whole_numbers_of_either_sign_become_numbers_and_come_back() -> None:
    signed = np.array([0, 1, -1, 2**62, -(2**62), 2**63 - 2**32, -(2**63) + 2**32], np.int64)
    assert f64.of(signed).tolist() == [int(v) % Q for v in signed]
    assert f64.of([int(v) for v in signed]).tolist() == [int(v) % Q for v in signed]
    assert np.array_equal(f64.centred(f64.of(signed[:5])), signed[:5])
    assert f128.centred(f128.of([-5, 7])).tolist() == [-5, 7]


@pytest.mark.parametrize("field", [f64, f128], ids=repr)
def test_bytes_become_numbers_only_if_each_word_is_below_the_modulus(field: Field) -> None:
    q, size = field.modulus, field.size
    good = [0, 1, q - 1]
    raw = b"".join(v.to_bytes(size, "little") for v in good)
    assert [int(v) for v in field.decode(raw, 3)] == good
    assert field.encode(field.decode(raw, 3)) == raw
    for beyond in (q, q + 1, 256**size - 1):
        for place in range(3):
            bad = bytearray(raw)
            bad[place * size : (place + 1) * size] = beyond.to_bytes(size, "little")
            with pytest.raises(MessageRefused, match="modulus"):
                field.decode(bytes(bad), 3)
    for wrong in (raw[:-1], raw + b"\0", raw[:-size], b""):
        with pytest.raises(MessageRefused, match="bytes"):
            field.decode(wrong, 3)
    assert len(field.decode(b"", 0)) == 0


class Recorded:
    """A stream that gives prepared bytes and counts what was read."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def read(self, n: int) -> bytes:
        self.at += n
        return self.raw[self.at - n : self.at]


@pytest.mark.parametrize("field", [f64, f128], ids=repr)
def test_words_of_a_stream_that_are_beyond_the_modulus_are_left_out_and_not_reduced(field: Field) -> None:
    q, size = field.modulus, field.size
    given = [q, 3, 256**size - 1, q - 1, q + 5, q, 0, 9, 11]
    stream = Recorded(b"".join(v.to_bytes(size, "little") for v in given))
    assert [int(v) for v in field.stream(stream, 4)] == [3, q - 1, 0, 9]
    assert stream.at == 8 * size


def test_roots_generate_what_they_should() -> None:
    for field in (f64, f128):
        assert pow(field.root, 1 << field.adicity, field.modulus) == 1
        assert pow(field.root, 1 << (field.adicity - 1), field.modulus) == field.modulus - 1
