"""Noise on gradients: its law, its type, and that nothing finite is promised of it."""

import math

import numpy as np
import pytest
from plain_split import made, train
from scipy import stats

from hedgerow.core.randomness import Streams
from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import IsotropicNoise, MaxNormNoise, NoPeek, measured
from hedgerow.vertical.leaks.noise import normals
from hedgerow.vertical.leaks.observer import pooled

FALSE_ALARM = 1e-6


def entropy(seed=0):
    return Streams(seed).entropy(0, "label", "noise")


def gradients(n=256, cut=8):
    rng = np.random.default_rng(1)
    return (rng.normal(size=(n, cut)) * rng.lognormal(size=(n, 1))).astype(np.float32)


def test_numbers_are_standard_normal():
    assert stats.kstest(normals(50_000, entropy()), "norm").pvalue > FALSE_ALARM
    assert np.isfinite(normals(1000)).all()


def test_isotropic_noise_has_the_declared_size_in_every_direction():
    g = gradients()
    noise = (IsotropicNoise(2.0).protect(g, entropy()) - g).astype(float)
    deviation = 2 * np.linalg.norm(g, axis=1).max() / math.sqrt(g.shape[1])
    assert stats.kstest(noise.ravel() / deviation, "norm").pvalue > FALSE_ALARM


def test_max_norm_noise_gives_all_gradients_the_same_expected_squared_length():
    g, source = gradients(20), entropy()
    squares = [(MaxNormNoise().protect(g, source).astype(float) ** 2).sum(1) for _ in range(4000)]
    largest = (g.astype(float) ** 2).sum(1).max()
    assert np.mean(squares, axis=0) == pytest.approx(np.full(20, largest), rel=0.15)


def test_max_norm_noise_keeps_directions_and_the_largest_gradient():
    g = gradients()
    left = MaxNormNoise().protect(g, entropy())
    stretch = (left * g).sum(1) / (g * g).sum(1)
    assert left == pytest.approx(stretch[:, None] * g, rel=1e-4)
    top = np.linalg.norm(g, axis=1).argmax()
    assert left[top] == pytest.approx(g[top], rel=1e-6)


@pytest.mark.parametrize("defence", [IsotropicNoise(1.0), MaxNormNoise()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_leave_in_the_type_in_which_they_came(defence, dtype):
    g = gradients().astype(dtype)
    assert defence.protect(g).dtype == dtype
    assert (defence.protect(g) != defence.protect(g)).any()  # the system's entropy
    assert (defence.protect(g, entropy()) == defence.protect(g, entropy())).all()


def test_gradients_that_are_zero_stay_finite():
    g = gradients(10)
    g[3] = 0
    assert np.isfinite(MaxNormNoise().protect(g)).all()
    assert (MaxNormNoise().protect(np.zeros((4, 2))) == 0).all()


@pytest.mark.parametrize("defence", [IsotropicNoise(1.0), MaxNormNoise(), NoPeek(0.5)])
def test_no_heuristic_promises_a_finite_epsilon(defence):
    assert defence.event().open
    assert "no finite epsilon" in defence.promise


def test_a_batch_of_one_record_is_refused_where_nothing_would_hide_it():
    with pytest.raises(SettingsInvalid, match="one record"):
        MaxNormNoise().protect(gradients(1))


@pytest.mark.parametrize("level", [0.0, -1.0, math.inf, math.nan])
def test_noise_of_no_size_is_refused(level):
    with pytest.raises(SettingsInvalid):
        IsotropicNoise(level)


def test_gradients_that_are_not_finite_are_refused():
    g = gradients(4)
    g[1, 1] = np.nan
    for defence in (IsotropicNoise(1.0), MaxNormNoise()):
        with pytest.raises(SettingsInvalid, match="not finite"):
            defence.protect(g)


def test_v16_noise_that_is_drawn_anew_averages_out_over_epochs():
    """What one epoch hides, the sum over epochs shows: there is no epsilon that could hold for all of them."""
    people = made()
    run = train(people, IsotropicNoise(2.0), epochs=8, entropy=entropy(2))
    seen = run.observer.seen(run.label_holder)
    found = measured(IsotropicNoise(2.0), run.task, seen, people.y)
    single = [found.of("direction", epoch).attack for epoch in range(2, 9)]
    assert pooled(seen).epoch == 0
    assert found.of("direction", 0).attack > max(single) + 0.05
    assert found.of("direction", 0).attack > 0.95
