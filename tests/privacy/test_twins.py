"""Twins of mechanisms that are wrong on purpose, each caught by a test that its honest original passes.

Every error here has been published, shipped or both (Lyu et al. 2017, Figure 1, for those of the sparse vector).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm

from attack import entropy, epsilon_lower_bound, low_bits
from hedgerow import l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.mechanism import Mechanism
from hedgerow.errors import BudgetExhausted
from hedgerow.privacy.choice import Choice, Exponential, NoisyMax, PermuteAndFlip
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.privacy.mechanisms import Gaussian, Laplace, Noise
from hedgerow.privacy.noise import discrete_gaussian
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian
from helpers import federation, totals

TRIALS = 400_000
RECORD = linf(1.0, unit="record")


def vector(size):
    return Layout((("", (size,)),))


# ---- the missing factor 2 -------------------------------------------------------------------------------------------
class CarelessChoice(Choice):
    """Takes any scores for monotonic ones: exp(epsilon u / radius) where exp(epsilon u / (2 radius)) is right."""

    _factor = 1


def choice_bound(choice):
    """One score falls by one while fifty rise by one."""
    drawn = []
    for seed, scores in enumerate((np.array([1.0] + [0.0] * 50), np.array([0.0] + [1.0] * 50))):
        total = choice.at_party(scores[None], RECORD, vector(51), lambda i: entropy())[0]
        drawn.append(np.minimum(choice.draw(total, choice._block(RECORD, vector(51)), 50_000, entropy(seed)), 1))
    return epsilon_lower_bound(*drawn)


@pytest.mark.slow
@pytest.mark.parametrize("honest", [Exponential(1.0), NoisyMax(1.0), PermuteAndFlip(1.0)], ids=str)
def test_a_choice_without_the_factor_2_is_caught(honest):
    twin = CarelessChoice(**vars(honest))
    assert choice_bound(honest) < 1.0 < choice_bound(twin)
    assert twin.event(RECORD) == honest.event(RECORD)  # it claims the same


# ---- sparse vector, variants 3 to 6 ---------------------------------------------------------------------------------
def laplace(rng, scale, shape):
    return rng.laplace(scale=scale, size=shape)


def variant_3(rng, q, epsilon, c, trials):
    """Roth 2011: the number that was compared is released, with the noise of the comparison."""
    rho, noisy = laplace(rng, 2 / epsilon, (trials, 1)), q + laplace(rng, 2 * c / epsilon, (trials, len(q)))
    return np.where(noisy >= rho, noisy, -np.inf)


def variant_4(rng, q, epsilon, c, trials):
    """Lee and Clifton 2014: the noise of questions is not scaled to the number of answers above."""
    rho = laplace(rng, 4 / epsilon, (trials, 1))
    return q + laplace(rng, 4 / (3 * epsilon), (trials, len(q))) >= rho


def variant_5(rng, q, epsilon, c, trials):
    """Stoddard et al. 2014: questions have no noise at all, and nobody counts."""
    return q + np.zeros((trials, 1)) >= laplace(rng, 2 / epsilon, (trials, 1))


def variant_6(rng, q, epsilon, c, trials):
    """Chen et al. 2015: noise that is not scaled, and nobody counts."""
    return q + laplace(rng, 2 / epsilon, (trials, len(q))) >= laplace(rng, 2 / epsilon, (trials, 1))


def honest_variant(rng, q, epsilon, c, trials):
    """Algorithm 7 as in the package, on the same questions; answers after the last one are below."""
    mechanism = SparseVector(epsilon, c, 0.0)
    block, source = mechanism._block(RECORD, vector(1)), entropy(int(rng.integers(2**31)))
    rho, left, found = mechanism.threshold_noise(block, trials, source), np.full(trials, c), []
    for total in np.rint(np.asarray(q) / block.step):
        found.append(mechanism.exceeds(np.full(trials, total), block, rho, source) & (left > 0))
        left = left - found[-1]
    return np.stack(found, 1)


def honest_variant_with_numbers(rng, q, epsilon, c, trials):
    """Algorithm 7 with half of epsilon for numbers, which have noise of their own."""
    above, [block] = honest_variant(rng, q, epsilon / 2, c, trials), Laplace(2 * c / epsilon)._plan(RECORD, vector(1))
    noise = Laplace(2 * c / epsilon)._draw(block.scale, trials * len(q), entropy(int(rng.integers(2**31))))
    return np.where(above, q + block.step * noise.reshape(trials, len(q)), -np.inf)


def is_below_then_above(answers, first):
    """Whether all of the first questions, and none of the others, were below."""
    return (~answers[:, :first].any(1) & answers[:, first:].all(1)).astype(float)


def how_many_more_above(answers, first):
    """Answers above among the later questions, less those among the first."""
    return answers[:, first:].sum(1, dtype=float) - answers[:, :first].sum(1, dtype=float)


def number_after_below(answers, first):
    """The number given for the last question, to a half, where all questions before it were below."""
    last = np.clip(np.floor(2 * answers[:, first]), -20, 20)
    return np.where(np.isinf(answers[:, :first]).all(1) & np.isfinite(answers[:, first]), last, 99.0)


def sparse_bound(variant, statistic, first, rest, epsilon=1.0, c=1, gap=1.0, trials=TRIALS):
    """Neighbours differ by one in every question: the first ones rise, the others fall (or stay, for a gap of 0)."""
    here, there = np.array([0.0] * first + [gap] * rest), np.array([1.0] * first + [0.0] * rest)
    drawn = [variant(np.random.default_rng(seed), q, epsilon, c, trials) for seed, q in enumerate((here, there))]
    return epsilon_lower_bound(*(statistic(answers, first) for answers in drawn))


@pytest.mark.slow
def test_sparse_vector_3_which_releases_the_compared_number_is_caught():
    assert sparse_bound(variant_3, number_after_below, 8, 1, gap=0.0) > 1.0
    assert sparse_bound(honest_variant_with_numbers, number_after_below, 8, 1, gap=0.0) < 1.0


@pytest.mark.slow
def test_sparse_vector_4_which_does_not_scale_noise_to_the_count_is_caught():
    assert sparse_bound(variant_4, is_below_then_above, 10, 3, c=3) > 1.0
    assert sparse_bound(honest_variant, is_below_then_above, 10, 3, c=3) < 1.0


@pytest.mark.slow
def test_sparse_vector_5_which_adds_no_noise_to_questions_is_caught():
    assert sparse_bound(variant_5, is_below_then_above, 1, 1) > 5.0
    assert sparse_bound(honest_variant, is_below_then_above, 1, 1) < 1.0


@pytest.mark.slow
def test_sparse_vector_6_which_never_stops_is_caught():
    assert sparse_bound(variant_6, how_many_more_above, 10, 10, trials=100_000) > 2.0
    assert sparse_bound(honest_variant, how_many_more_above, 10, 10, trials=100_000) < 1.0


@dataclass(frozen=True)
class Endless(SparseVector):
    """Forgets to count answers above, so that one charge pays for any number of them."""

    @property
    def over(self):
        return False


def count_of_records(broadcast, party, rng):
    """Number of records."""
    return np.array(float(len(party.w)))


def answers_above(mechanism):
    fed = federation().protect(mechanism=mechanism)
    try:
        return sum(float(fed.sum(count_of_records, bound=RECORD)) for _ in range(20))
    except BudgetExhausted:
        return float(mechanism.memory.above)


def test_sparse_vector_without_a_count_is_caught():
    assert answers_above(SparseVector(50.0, 2, 0.0)) == 2
    assert answers_above(Endless(50.0, 2, 0.0)) == 20


# ---- the classic formula --------------------------------------------------------------------------------------------
def true_delta(sigma, epsilon, steps=8192):
    """delta of discrete Gaussian noise at this epsilon for neighbours one apart, summed over the grid."""
    k = np.arange(-math.ceil(14 * sigma * steps), math.ceil((14 * sigma + 1) * steps) + 1, dtype=float) / steps
    log_ratio = (2 * k - 1) / (2 * sigma**2)
    there = np.exp(-(k**2) / (2 * sigma**2))
    gain = there * (np.exp(np.minimum(log_ratio, 700)) - np.exp(epsilon))
    return float(gain[log_ratio > epsilon].sum() / there.sum())


def test_the_classic_gaussian_at_epsilon_8_is_caught():
    """sqrt(2 ln(1.25 / delta)) / epsilon is proved for epsilon below one; at (8, 1e-3) it spends 1.31e-3."""
    classic = math.sqrt(2 * math.log(1.25 / 1e-3)) / 8
    analytic = 0.480013752480
    assert classic == pytest.approx(0.4721, abs=1e-4)
    assert true_delta(analytic, 8.0) <= 1e-3 * (1 + 1e-6)
    assert true_delta(classic, 8.0) == pytest.approx(1.31e-3, rel=5e-3)
    assert true_delta(classic, 8.0) > 1e-3


def test_the_summed_delta_is_that_of_the_noise_that_is_drawn():
    """The event {x > t} at a large delta, counted on 200 000 draws; one false alarm in a million."""
    sigma, epsilon, n = 1.0, 1.0, 200_000
    drawn = discrete_gaussian(4096.0, n, entropy()) / 4096
    t = 0.5 + epsilon * sigma**2
    here, there = ((drawn + 1 > t).mean(), (drawn > t).mean())
    error = norm.isf(0.5e-6) * math.sqrt((here + math.exp(2 * epsilon) * there) / n)
    assert abs(here - math.exp(epsilon) * there - true_delta(sigma, epsilon, 4096)) < error


# ---- seeds and bits -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SameSeed(Mechanism):
    """Gaussian noise from a seed of its own, the same for each release."""

    inner: Noise
    at: str = "server"

    def event(self, bounds):
        return self.inner.event(bounds)

    def fit(self, bounds, layout):
        self.inner.fit(bounds, layout)

    def at_party(self, rows, bounds, layout, entropies):
        return self.inner.at_party(rows, bounds, layout, entropies)

    def at_server(self, total, bounds, layout, entropy_):
        return self.inner.at_server(total, bounds, layout, entropy(42))


def scaled_totals(broadcast, party, rng):
    """The sum of x, times what is broadcast."""
    return broadcast * totals(broadcast, party, rng)["sum"]


def difference_reveals(mechanism, seed):
    """Whether two releases, with factors 1 and 2, differ by the exact total to the grid."""
    fed = federation(seed=seed).protect(mechanism=mechanism)
    one, two = (fed.sum(scaled_totals, np.array(factor), bound=l2(50.0)) for factor in (1.0, 2.0))
    return bool(np.abs(two - one - federation().sum(totals)["sum"]).max() < 0.1)


def test_seed_reuse_is_caught():
    assert difference_reveals(SameSeed(Gaussian(1.0)), seed=0)
    assert not difference_reveals(Gaussian(1.0), seed=0)
    assert not difference_reveals(Gaussian(1.0), seed=None)


@pytest.mark.slow
@pytest.mark.parametrize("radius", [1.0, 0.3])
def test_plain_floating_point_noise_is_caught_by_its_low_bits(radius):
    """Added to 0 and to 1, floating-point noise keeps different low bits; noise on a grid keeps none."""
    shares = {}
    for mechanism in (SimulatedGaussian(1.0 / radius), Gaussian(1.0 / radius)):
        shares[str(mechanism)] = [
            low_bits(unit + released(mechanism, radius, seed), 2.0**-52) for unit, seed in ((0.0, 1), (1.0, 2))
        ]
    simulated, honest = shares.values()
    assert abs(simulated[0] - simulated[1]) > 0.3
    assert honest == [1.0, 1.0]


def released(mechanism, radius, seed, trials=50_000):
    return mechanism.at_server(np.zeros(trials, np.int64), l2(radius), vector(trials), entropy(seed))


# ---- the wrong norm -------------------------------------------------------------------------------------------------
def all_coordinates_bound(scale_of, d=20, trials=50_000):
    """Laplace noise on twenty coordinates, each moved by one; the likelihood ratio as statistic."""
    [block] = Laplace(1.0)._plan(linf(1.0), vector(d))
    block = replace(block, scale=scale_of(block))
    unit = round(1.0 / block.step)
    noise = [Laplace(1.0)._draw(block.scale, trials * d, entropy(seed)).reshape(trials, d) for seed in (1, 2)]
    return epsilon_lower_bound(*((np.abs(x) - np.abs(x - unit)).sum(1) for x in (noise[0] + unit, noise[1])))


@pytest.mark.slow
def test_laplace_noise_scaled_to_the_l2_norm_is_caught():
    """Its radius is sqrt(20) where 20 is right; both claim epsilon 1."""
    assert all_coordinates_bound(lambda block: block.scale) < 1.0
    assert all_coordinates_bound(lambda block: block.scale / math.sqrt(20)) > 1.0
