"""The power of a law test of scores: in closed form, by simulation, and the canaries that it takes."""

import numpy as np
import pytest

from hedgerow.attacks import NoiseLaw, law_of_scores, power_of_law, power_of_scores
from hedgerow.core.events import Event
from hedgerow.errors import SettingsInvalid

MU = 0.5015516891691552
"""Of epsilon 2 at delta 1e-5."""


def test_power_at_epsilon_2():
    """Near the normal approximation (0.97 and 0.16 with 400 canaries, 0.94 with 2000), which knows the noise of right code."""
    some, many = power_of_scores(200, 200, MU), power_of_scores(1000, 1000, MU)
    assert some.against(noise=0.5) == pytest.approx(0.94, abs=0.005)
    assert some.against(noise=0.5**0.5) == pytest.approx(0.12, abs=0.005)
    assert many.against(noise=0.5**0.5) == pytest.approx(0.91, abs=0.005)
    assert some.against() == pytest.approx(some.level, rel=1e-6)
    assert "400 canaries at level 0.001 would see half the noise 0.94; noise over root 2 0.12;" in str(some)


@pytest.mark.slow
def test_power_is_the_share_of_runs_that_are_red():
    """Of 150 runs; 3.5 deviations are exceeded in one of 2000 tests, and the seed is fixed."""
    rng, n = np.random.default_rng(0), 150
    for noise, length in ((0.5, 1.0), (0.7, 1.0), (1.0, 1.8)):
        wanted = power_of_scores(60, 60, 0.9, level=0.01).against(noise, length)
        inside, outside = rng.standard_normal((2, n, 60))
        red = [
            law_of_scores(0.9 * length / noise + x, y, 0.9, level=0.01).light == "red"
            for x, y in zip(inside, outside, strict=True)
        ]
        assert 0.05 < wanted < 0.999
        assert np.mean(red) == pytest.approx(wanted, abs=3.5 * (wanted * (1 - wanted) / n) ** 0.5)


@pytest.mark.slow
def test_as_many_canaries_as_are_said_to_be_needed_are_enough():
    plan = power_of_scores(200, 200, MU)
    for noise in (0.5, 0.5**0.5):
        needed = plan.canaries_for(0.95, noise)
        assert power_of_scores(needed // 2, needed - needed // 2, MU).against(noise) == pytest.approx(0.95, abs=2e-3)
    assert plan.canaries_for(0.95, 0.5) == pytest.approx(418, abs=2)
    with pytest.raises(SettingsInvalid, match="would not see noise of 1 and a length of 1"):
        plan.canaries_for(0.95, 1.0)


def test_what_is_left_in_all_directions_sees_more_than_canaries_do():
    law = NoiseLaw.of(Event("gaussian", 9.0))
    power = power_of_law(100, [law] * 20, 500)
    assert power.by_noise(0.9) > 0.999 > 0.1 > power.by_canaries(0.9)
    assert power.against(length=3.0) == power.by_canaries(length=3.0)
    assert power.by_noise(1.0) == pytest.approx(power.share, rel=1e-6)
    sampled = power_of_law(100, [law] * 20, 500, rate=0.1)
    assert sampled.weight == pytest.approx(power.weight * 0.2**0.5)
    assert sampled.share == pytest.approx(1e-3 / 8)
    assert sampled.by_scale(100, 0.1, 5.0) == pytest.approx(0.8165, abs=1e-3)
    assert sampled.by_scale(100, 0.0, 5.0) == pytest.approx(sampled.share / 3)


def test_power_of_what_cannot_be_is_refused():
    with pytest.raises(SettingsInvalid, match="no power is known"):
        power_of_law(100, [NoiseLaw.of(Event("laplace", 1.0))], 10)
    with pytest.raises(SettingsInvalid, match="0 canaries in"):
        power_of_scores(0, 10, 1.0)
