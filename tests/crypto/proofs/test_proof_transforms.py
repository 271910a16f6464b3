"""Transforms and interpolation against evaluation term by term."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hedgerow.crypto.proofs.field import Field, Field128
from hedgerow.crypto.proofs.field64 import Field64
from hedgerow.crypto.proofs.transforms import between, inverses, is_root, lagrange, nodes, ntt, powers, root_of_unity
from hedgerow.errors import SettingsInvalid

FIELDS = [Field64(), Field128()]


class SlowField64(Field64):
    """Without products of limbs: transforms only."""

    exact = 0


def drawn(field: Field, *shape: int) -> np.ndarray:
    draw = random.Random(sum(shape))
    return field.of([draw.randrange(field.modulus) for _ in range(int(np.prod(shape)))]).reshape(shape)


def at(field: Field, coefficients: np.ndarray, x: int) -> int:
    return sum(int(c) * pow(x, k, field.modulus) for k, c in enumerate(coefficients)) % field.modulus


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 16])
def test_a_transform_evaluates_at_the_roots_of_unity_and_comes_back(field: Field, n: int) -> None:
    a, w = drawn(field, 3, n), root_of_unity(field, n)
    found = ntt(field, a)
    assert [[int(v) for v in row] for row in found] == [
        [at(field, row, pow(w, k, field.modulus)) for k in range(n)] for row in a
    ]
    assert (ntt(field, found, inverse=True) == a).all()


@pytest.mark.parametrize("field", FIELDS, ids=repr)
@pytest.mark.parametrize("n", [1, 2, 32])
def test_values_at_roots_give_the_value_at_any_other_point(field: Field, n: int) -> None:
    coefficients, t = drawn(field, n), drawn(field, 4)
    values, c = ntt(field, coefficients), lagrange(field, n, t)
    assert [int(v) for v in field.sum(field.mul(values, c))] == [at(field, coefficients, int(x)) for x in t]


@pytest.mark.parametrize("n", [1, 4, 64])
def test_values_between_the_roots_are_the_same_by_products_of_limbs_and_by_transforms(n: int) -> None:
    fast, slow = Field64(), SlowField64()
    values = drawn(fast, 2, n, 5)
    found = between(fast, values)
    assert np.array_equal(found, between(slow, values))
    coefficients = ntt(fast, values[1, :, 3], inverse=True)
    points = nodes(fast, 2 * n)[1::2]
    assert [int(v) for v in found[1, :, 3]] == [at(fast, coefficients, int(x)) for x in points]


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_powers_and_inverses(field: Field) -> None:
    base = drawn(field, 2, 3)
    found = powers(field, base, 9)
    assert found.shape == (2, 3, 9)
    assert [int(v) for v in found[1, 2]] == [pow(int(base[1, 2]), k, field.modulus) for k in range(9)]
    a = drawn(field, 3, 8)
    assert (field.mul(a, inverses(field, a)) == 1).all()
    a[1, 5] = 0
    assert (inverses(field, a)[1] == 0).all()
    assert (field.mul(a[2], inverses(field, a)[2]) == 1).all()


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_roots_of_unity_are_known_and_their_number_is_limited(field: Field) -> None:
    points = np.concatenate([nodes(field, 16), field.of([3, field.modulus - 2])])
    assert is_root(field, 16, points).tolist() == [True] * 16 + [False] * 2
    for n in (3, 0, 1 << (field.adicity + 1)):
        with pytest.raises(SettingsInvalid):
            root_of_unity(field, n)
