"""The law test on simulated mechanisms: red on twins with a fault, green on right code, and blind where scores are correlated.

Level 1e-3: of 160 runs of right code 0.16 are red. The seeds are fixed, and the power of each twin is above 0.999.
"""

import numpy as np
import pytest
from scipy.stats import binom, kstest, nct
from simulated_releases import CANARIES, LAYERS, RATE, sightings

from hedgerow.attacks import CanaryDirections, LawSums, LawTest, NoiseLaw, law_of_scores, law_test, power_of_law
from hedgerow.attacks.audits import tails
from hedgerow.core.events import Event
from hedgerow.errors import SettingsInvalid

GAUSSIAN = NoiseLaw.of(Event("gaussian", 3.0))


def found(fault, seed, *, sampled=False, law=None) -> LawTest:
    return law_test(sightings(fault, seed, sampled=sampled, law=law), rate=RATE if sampled else None)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_right_code_is_red_in_none_of_40_runs(sampled):
    tests = [found("-", seed, sampled=sampled) for seed in range(40)]
    lights = [one.light for one in tests]
    assert lights.count("red") == 0
    assert lights.count("amber") <= 1  # one of 25 such series of 40 runs has one
    assert sum(one.low <= one.accounted <= one.high for one in tests) >= 39
    assert "the noise and the clip are what the ledger says" in str(tests[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "sampled", "part"),
    [
        ("half the noise", False, "noise"),
        ("noise over root 2", False, "noise"),
        ("no clip", False, "canary"),
        ("each layer clipped, one charged", False, "canary"),
        ("noise used twice", False, "fresh"),
        ("half the noise", True, "noise"),
        ("noise over root 2", True, "noise"),
        ("no clip", True, "canary"),
        ("each layer clipped, one charged", True, "canary"),
        ("divided by who came", True, "scale"),
        ("noise used twice", True, "fresh"),
        ("shuffled and dealt", True, "canaries"),
    ],
)
def test_twins_are_red_in_all_of_20_runs(fault, sampled, part):
    tests = [found(fault, seed, sampled=sampled) for seed in range(20)]
    assert [one.light for one in tests] == ["red"] * 20
    assert all(part in {one.name for one in test.parts if one.light == "red"} for test in tests)
    assert "more leaks than the ledger says" in str(tests[0])


def test_a_clip_of_each_layer_leaves_canaries_twice_as_long_and_no_clip_three_times():
    for fault, length in (("each layer clipped, one charged", 2.0), ("no clip", 3.0)):
        test = found(fault, 0)
        assert test.mu / test.accounted == pytest.approx(length, abs=0.25)
        assert test.noise == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("sampled", [False, True])
def test_more_noise_than_charged_is_told_and_is_not_red(sampled):
    test = found("twice the noise", 3, sampled=sampled)
    assert test.light == "amber"
    assert "more noise than charged" in str(test)
    assert test.noise_low < 2 < test.noise_high
    assert test.high < test.accounted


def test_mu_is_that_of_the_run_where_canaries_are_in_all_releases_and_of_a_release_where_they_are_sampled():
    whole, sampled = found("-", 0), found("-", 0, sampled=True)
    assert (whole.of, whole.accounted) == ("run", pytest.approx(20**0.5 / 3))
    assert (sampled.of, sampled.accounted) == ("release", pytest.approx(1.0))
    assert [part.name for part in whole.parts] == ["canary", "noise", "scale", "fresh", "repeated"]
    assert [part.name for part in sampled.parts[5:]] == ["rate", "releases", "canaries"]
    assert (whole.canaries, whole.releases, sampled.releases) == (CANARIES, 20, 60)
    assert whole.parts[0].share == whole.level / 5
    assert sampled.sureness == pytest.approx(1 - 2e-3 / 8)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "light"), [("-", "green"), ("half the noise", "red"), ("no clip", "red")])
def test_laplace_noise_is_held_against_its_variance_and_kurtosis(fault, light):
    law = NoiseLaw.of(Event("laplace", 1.0))
    assert (law.deviation, law.kurtosis, law.normal) == (2**0.5, 6.0, False)
    tests = [found(fault, seed, sampled=True, law=law) for seed in range(8)]
    assert [one.light for one in tests] == [light] * 8


def correlated(fault, *, decorrelated, seed, canaries=400, d=900, mu=1.666, releases=20):
    """Scores of the sum of full releases less what is known: U S of all canaries, or with the factor (U U')^-1."""
    rng = np.random.default_rng(seed)
    directions = CanaryDirections.drawn(canaries, (d,), rng)
    inside = rng.random(canaries) < 0.5
    z = releases**0.5 / mu * (0.5 if fault else 1.0)
    total = releases * inside @ directions.rows + z * releases**0.5 * rng.standard_normal(d)
    scores = directions.scores(total) if decorrelated else directions.rows @ total
    return law_of_scores(scores[inside], scores[~inside], mu)


@pytest.mark.slow
def test_without_decorrelation_half_the_noise_looks_right_and_with_it_it_is_red():
    """At epsilon 8, mu 1.67: what other canaries add to a score hides that its noise is half of what was charged."""
    blind = [correlated(True, decorrelated=False, seed=seed) for seed in range(8)]
    sees = [correlated(True, decorrelated=True, seed=seed) for seed in range(8)]
    assert "red" not in {one.light for one in blind}
    assert [one.light for one in sees] == ["red"] * 8
    assert np.mean([one.mu for one in blind]) < 1.8  # it is 3.3
    right = [correlated(False, decorrelated=True, seed=seed) for seed in range(8)]
    assert "red" not in {one.light for one in right}


@pytest.mark.slow
def test_the_probabilities_of_right_code_are_uniform():
    """A test of Kolmogorov and Smirnov for each exact part; each errs in one of a thousand, and the seed is fixed."""
    tests = [found("-", 1000 + seed) for seed in range(100)]
    for place, name in ((0, "canary"), (1, "noise"), (3, "fresh")):
        leaks = [one.parts[place].leaks for one in tests]
        assert tests[0].parts[place].name == name
        assert kstest(leaks, "uniform").pvalue > 1e-3
    scale = np.array([one.parts[2].leaks for one in tests])
    assert (scale < 0.1).mean() < 0.1 + 3 * (0.09 / len(scale)) ** 0.5  # a bound, divided over three ways to look


def test_noncentral_t_is_that_of_scipy():
    for t, shift, freedom in ((3.0, 2.0, 10), (5.0, 5.0, 399), (-1.0, 2.0, 30), (40.0, 30.0, 2000)):
        assert tails.t_below(t, shift, freedom) == pytest.approx(nct.cdf(t, freedom, shift), abs=1e-10)
        assert tails.t_above(t, shift, freedom) == pytest.approx(nct.sf(t, freedom, shift), rel=1e-8)
    assert tails.t_quantile(1e-3, 5.0, 399) == pytest.approx(nct.isf(1e-3, 399, 5.0), rel=1e-9)
    low, high = tails.shifts(5.0, 399, 1e-3)
    assert tails.t_above(5.0, low, 399) == pytest.approx(1e-3) == tails.t_below(5.0, high, 399)


def test_binomial_and_dispersion_tails_hold():
    assert tails.binomial(3, 20, 0.1) == pytest.approx((binom.sf(2, 20, 0.1), binom.cdf(3, 20, 0.1)))
    rng = np.random.default_rng(0)
    counts = rng.binomial(50, 0.1, (150, 30))
    more, less = np.array([tails.dispersion(row, 50, 0.1) for row in counts]).T
    assert (more < 0.1).mean() < 0.1
    assert (less < 0.1).mean() < 0.1
    assert tails.dispersion(np.full(30, 5), 50, 0.1)[1] < 1e-4
    assert tails.dispersion(np.repeat([0, 10], 15), 50, 0.1)[0] < 1e-6


def test_bounds_of_noise_that_is_not_normal_hold():
    rng = np.random.default_rng(0)
    squares = (rng.laplace(0, 0.5**0.5, (4000, 50)) ** 2).mean(axis=1)
    claimed = np.array([tails.squares_below(one, 50, 6.0) for one in squares])
    assert ((claimed < 0.2).mean(), (claimed < 0.05).mean()) < (0.2, 0.05)
    sums = rng.laplace(0, 0.5**0.5, (4000, 4)).sum(axis=1) / 2
    assert (np.array([tails.fourth(abs(one), 1.0, 6.0) for one in sums]) < 0.1).mean() < 0.1


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(SettingsInvalid, match="no law of noise"):
        NoiseLaw.of(Event("pure", epsilon=1.0))
    with pytest.raises(SettingsInvalid, match="no law of noise"):
        NoiseLaw.of(Event("gaussian", 1.0, count=3))
    assert NoiseLaw.of(Event("skellam", 1.0, steps=100)).normal
    assert NoiseLaw.of(Event("gaussian", 1.0), steps=2.0) == NoiseLaw("noise on the grid", 1.0, 3.25, normal=False)
    with pytest.raises(SettingsInvalid, match="0 sightings"):
        law_test([])
    with pytest.raises(SettingsInvalid, match="sampling rate"):
        law_test(sightings("-", 0), rate=1.5)
    with pytest.raises(SettingsInvalid, match="5 canaries in and 1 out"):
        law_of_scores(np.ones(5), np.ones(1), 1.0)
    with pytest.raises(SettingsInvalid, match="mu of 0"):
        law_of_scores(np.ones(5), np.arange(3.0), 0.0)
    with pytest.raises(SettingsInvalid, match="at most as many canaries"):
        CanaryDirections(np.ones((3, 2)))
    with pytest.raises(SettingsInvalid, match="depend on each other"):
        CanaryDirections(np.ones((2, 3)))
    with pytest.raises(SettingsInvalid, match="did not diverge"):
        CanaryDirections(np.eye(2, 3)).seen(np.full(3, np.nan), np.zeros(3), np.ones(2), radius=1.0, law=GAUSSIAN)
    with pytest.raises(SettingsInvalid, match="shape"):
        CanaryDirections(np.eye(2, 3)).seen(np.zeros(2), np.zeros(3), np.ones(2), radius=1.0, law=GAUSSIAN)


def test_directions_are_as_long_in_each_layer():
    rows = CanaryDirections.drawn(5, LAYERS, np.random.default_rng(0)).rows
    parts = np.split(rows, np.cumsum(LAYERS)[:-1], axis=1)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(5))
    assert [np.linalg.norm(part, axis=1) for part in parts] == pytest.approx(np.full((4, 5), 0.5))


def test_scores_are_one_for_canaries_that_are_in_and_zero_for_others():
    directions = CanaryDirections.drawn(30, (40,), np.random.default_rng(1))
    inside = np.arange(30) % 2 == 0
    seen = directions.seen(2.0 * inside @ directions.rows + 1, np.ones(40), inside, radius=2.0, law=GAUSSIAN)
    assert seen.scores == pytest.approx(inside.astype(float), abs=1e-9)
    assert seen.whitened == pytest.approx(seen.expected)
    assert (seen.left, seen.along) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))


@pytest.mark.slow
def test_power_is_what_is_seen():
    """Of 120 runs of a fault the share of red lights is within 3.5 deviations of the power of the canaries' part."""
    rng, canaries, d, releases = np.random.default_rng(5), 40, 60, 8
    law, n = NoiseLaw.of(Event("gaussian", 4.0)), 120
    power = power_of_law(canaries, [law] * releases, d)
    seen = np.zeros(2)
    directions = CanaryDirections(np.linalg.qr(rng.standard_normal((d, canaries)))[0].T)
    for _ in range(n):
        inside = rng.permutation(canaries) < canaries // 2
        known = rng.standard_normal(d)
        noise = 4.0 * rng.standard_normal((2, releases, d))
        for place, (size, length) in enumerate(((0.85, 1.0), (1.0, 2.0))):
            total = known + length * inside @ directions.rows
            test = law_test([directions.seen(total + size * one, known, inside, radius=1.0, law=law) for one in noise[place]])
            seen[place] += test.parts[1 - place].light == "red"
    for share, wanted in zip(seen / n, (power.by_noise(0.85), power.by_canaries(1.0, 2.0)), strict=True):
        assert 0.1 < wanted < 0.98
        assert share == pytest.approx(wanted, abs=3.5 * (wanted * (1 - wanted) / n) ** 0.5)


def test_where_too_few_numbers_are_left_nothing_is_red():
    """A release of one number and no second one: no part has a probability, so none is red."""
    law = NoiseLaw.of(Event("gaussian", 1.0))
    seen = CanaryDirections(np.ones((1, 1))).seen(np.array([1.3]), np.zeros(1), np.ones(1, bool), radius=1.0, law=law)
    sums = LawSums()
    sums.add(seen, left=np.array([0.3]))
    test = law_test(sums)
    assert test.light == "green"
    assert test.power.against(0.5) == 0.0
