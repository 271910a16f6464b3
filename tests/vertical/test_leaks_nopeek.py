"""NoPeek: distance correlation by a naive loop, a gradient that is finite, and a term of the feature holder's own."""

import math

import numpy as np
import pytest
import torch
from plain_split import made, train

from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import NoPeek, distance_correlation


def naive(x, z):
    def centred(rows):
        d = np.array([[np.linalg.norm(a - b) for b in rows] for a in rows])
        return d - d.mean(0) - d.mean(1)[:, None] + d.mean()

    a, b = centred(x), centred(z)
    return math.sqrt(max(0.0, (a * b).mean()) / math.sqrt((a * a).mean() * (b * b).mean()))


def test_distance_correlation_is_that_of_a_naive_loop():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    z = np.column_stack([x[:, 0] ** 2, rng.normal(size=60)])
    assert float(distance_correlation(x, z)) == pytest.approx(naive(x, z), rel=1e-9)


def test_a_rotated_and_scaled_copy_has_one():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert float(distance_correlation(x, 3 * x @ turn)) == pytest.approx(1.0)


def test_independent_rows_have_little_and_constant_rows_have_none():
    rng = np.random.default_rng(2)
    assert float(distance_correlation(rng.normal(size=(500, 1)), rng.normal(size=(500, 1)))) < 0.15
    assert float(distance_correlation(np.ones((20, 2)), rng.normal(size=(20, 2)))) == 0.0


def test_images_and_whole_numbers_are_flattened():
    x = np.arange(24).reshape(6, 2, 2)
    assert float(distance_correlation(x, x.reshape(6, 4).astype(float))) == pytest.approx(1.0)


def test_the_gradient_is_finite_where_rows_are_alike():
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    z = torch.zeros(8, 2)
    z[:4] = 1.0
    z.requires_grad_()
    NoPeek(2.0).term(x, z).backward()
    assert torch.isfinite(z.grad).all()


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(3)
    x, z = torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.normal(size=(6, 2)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda given: NoPeek(0.7).term(x, given), (z,))


def test_the_feature_holders_own_term_lowers_the_correlation():
    people = made(1000)
    x = torch.tensor(people.held_x[:300], dtype=torch.float32)
    dcor = {}
    for own in (None, NoPeek(5.0)):
        run = train(people, epochs=3, batch=50, own=own)
        with torch.no_grad():
            dcor[own] = float(distance_correlation(x, run.a(x)))
    assert dcor[NoPeek(5.0)] < dcor[None] - 0.1


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf])
def test_a_weight_that_is_none_is_refused(alpha):
    with pytest.raises(SettingsInvalid):
        NoPeek(alpha)
