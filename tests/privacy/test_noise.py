"""Discrete noise: its law, its table to the last bit, and what it does not give away.

Statistical tests use fixed seeds; each would raise a false alarm for one seed in a million.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from hedgerow.core.randomness import Entropy, Streams
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy import noise, tables
from hedgerow.privacy.noise import discrete_gaussian, discrete_laplace, grid_step, polya_difference, skellam

FALSE_ALARM = 1e-6
DRAWS = 50_000
Sampler = Callable[[float, int, Entropy], np.ndarray]


def entropy(seed: int = 0) -> Entropy:
    return Streams(seed).entropy(0, "server", "noise")


# ---- exact laws -----------------------------------------------------------------------------------------------------
def gaussian_pmf(sigma: float, values: Iterable[int]) -> dict[int, mpmath.mpf]:
    with mpmath.workdps(60):
        variance = mpmath.mpf(sigma) ** 2
        total = mpmath.sqrt(2 * mpmath.pi * variance) * mpmath.jtheta(3, 0, mpmath.exp(-2 * mpmath.pi**2 * variance))
        return {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * variance)) / total for k in values}


def laplace_pmf(scale: float, values: Iterable[int]) -> dict[int, mpmath.mpf]:
    with mpmath.workdps(60):
        r = mpmath.exp(-1 / mpmath.mpf(scale))
        return {k: (1 - r) / (1 + r) * r**k for k in values}


def skellam_pmf(sigma: float, values: Iterable[int]) -> dict[int, mpmath.mpf]:
    with mpmath.workdps(60):
        mu = mpmath.mpf(sigma) ** 2
        return {k: mpmath.exp(-mu) * mpmath.besseli(k, mu) for k in values}


def law_p_value(draws: np.ndarray, pmf: Mapping[int, mpmath.mpf]) -> float:
    """Chi-square test of signed integers against a symmetric law; values that are expected rarely share a bin."""
    kept = [k for k, p in pmf.items() if float(p) * len(draws) >= 10]
    values = np.array([-k for k in kept if k][::-1] + kept)
    expected = np.array([float(pmf[abs(k)]) for k in values]) * len(draws)
    observed = np.array([(draws == k).sum() for k in values])
    expected, observed = (
        np.append(expected, len(draws) - expected.sum()),
        np.append(observed, len(draws) - observed.sum()),
    )
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(values)))


LAWS = [(discrete_gaussian, gaussian_pmf, 1.0), (discrete_gaussian, gaussian_pmf, 3.7)]
LAWS += [(discrete_laplace, laplace_pmf, 1.0), (discrete_laplace, laplace_pmf, 3.7)]
LAWS += [(skellam, skellam_pmf, 0.7), (skellam, skellam_pmf, 1.0), (skellam, skellam_pmf, 3.7)]
SAMPLERS = [discrete_gaussian, discrete_laplace, skellam]


@pytest.mark.parametrize(("sampler", "pmf", "scale"), LAWS)
def test_draws_follow_the_law(sampler, pmf, scale):
    assert law_p_value(sampler(scale, DRAWS, entropy()), pmf(scale, range(61))) > FALSE_ALARM


def wider(sampler: Sampler, scale: float) -> np.ndarray:
    return sampler(1.05 * scale, DRAWS, entropy())


def without_negative_side(sampler: Sampler, scale: float) -> np.ndarray:
    return np.abs(sampler(scale, DRAWS, entropy()))


def with_zero_counted_for_both_signs(sampler: Sampler, scale: float) -> np.ndarray:
    draws = sampler(scale, 2 * DRAWS, entropy())
    return np.append(draws, np.zeros((draws == 0).sum(), draws.dtype))


@pytest.mark.parametrize("broken", [wider, without_negative_side, with_zero_counted_for_both_signs])
@pytest.mark.parametrize(("sampler", "pmf", "scale"), LAWS)
def test_broken_twins_do_not_follow_the_law(sampler, pmf, scale, broken):
    assert law_p_value(broken(sampler, scale), pmf(scale, range(61))) < FALSE_ALARM


@pytest.mark.parametrize("sampler", [discrete_gaussian, pytest.param(skellam, marks=pytest.mark.slow)])
def test_a_large_scale_is_the_standard_deviation(sampler):
    sigma, n = 5000.3, 100_000
    low, high = chi2.interval(1 - FALSE_ALARM, n)
    assert low < (sampler(sigma, n, entropy()).astype(float) ** 2).sum() / sigma**2 < high


# ---- shares ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("parties", [2, 9])
def test_shares_of_skellam_add_up_to_skellam(parties):
    source = entropy()
    total = sum(skellam(3.7 / math.sqrt(parties), DRAWS, source) for _ in range(parties))
    assert law_p_value(total, skellam_pmf(3.7, range(61))) > FALSE_ALARM


@pytest.mark.parametrize("parties", [2, 9])
def test_polya_shares_add_up_to_the_discrete_laplace(parties):
    source = entropy()
    total = sum(polya_difference(3.7, parties, DRAWS, source) for _ in range(parties))
    assert law_p_value(total, laplace_pmf(3.7, range(61))) > FALSE_ALARM
    fewer = sum(polya_difference(3.7, parties, DRAWS, source) for _ in range(parties - 1))
    assert law_p_value(fewer, laplace_pmf(3.7, range(61))) < FALSE_ALARM


def test_one_polya_share_of_one_is_the_discrete_laplace():
    assert law_p_value(polya_difference(3.7, 1, DRAWS, entropy()), laplace_pmf(3.7, range(61))) > FALSE_ALARM


def added(share: dict[int, float], parties: int, reach: int) -> np.ndarray:
    """Probabilities of -reach..reach under the sum of so many discrete Gaussians."""
    one = np.array([share[abs(k)] for k in range(-reach, reach + 1)])
    whole = np.ones(1)
    for _ in range(parties):
        whole = np.convolve(whole, one)
    middle = len(whole) // 2
    return whole[middle - reach : middle + reach + 1]


@pytest.mark.parametrize(("steps", "is_one"), [(3.0, True), (0.5, False)])
def test_gaussian_shares_add_up_to_a_gaussian_from_three_steps_on(steps, is_one):
    """The ratio of probabilities is within tau of one; at half a step it is far from it."""
    parties, reach = 4, 60
    share = {k: float(p) for k, p in gaussian_pmf(steps, range(reach + 1)).items()}
    whole = gaussian_pmf(steps * math.sqrt(parties), range(13))
    ratio = added(share, parties, reach)[reach : reach + 13] / np.array([float(p) for p in whole.values()])
    assert (np.abs(ratio - 1) < 1e-12).all() == is_one


@pytest.mark.parametrize("scale", [5000.3, 1e5])
def test_laplace_magnitudes_have_the_declared_mean(scale):
    draws = np.abs(discrete_laplace(scale, DRAWS, entropy()))
    low, high = chi2.interval(1 - FALSE_ALARM, 2 * DRAWS)  # 2 |K| / scale has the law of chi-square with 2 degrees
    assert low < 2 * draws.sum() / scale < high


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_both_signs_come_equally_often_at_a_large_scale(sampler):
    signs = np.sign(sampler(5000.0, DRAWS, entropy()))
    assert abs(signs.sum()) < norm.isf(FALSE_ALARM / 2) * np.sqrt(np.abs(signs).sum())


# ---- the table ------------------------------------------------------------------------------------------------------
def cumulative(table: tables.CumulativeTable) -> list[int]:
    return [(int(high) << 64) + int(low) for high, low in zip(table.high, table.low, strict=True)]


def masses(table: tables.CumulativeTable) -> np.ndarray:
    ends = np.array([0, *cumulative(table), 2**128], dtype=object)
    return ends[1:] - ends[:-1]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.7, 60.5])
def test_cumulatives_are_even_rise_and_end_at_one_exactly(sigma):
    ends = tables.cumulative(noise._skellam_weights(sigma))
    assert ends[-1] == 2**128
    assert all(end % 2 == 0 for end in ends)
    assert ends == sorted(ends)
    assert ends[:-1] == cumulative(noise._skellam_table(sigma))


@pytest.mark.parametrize("sigma", [0.05, 1.0, 3.7, pytest.param(60.5, marks=pytest.mark.slow)])
def test_skellam_table_holds_the_law_to_120_bits(sigma):
    mass = masses(noise._skellam_table(sigma))
    values = [k for k in (0, 1, 2, *(round(far * sigma) for far in (1, 3, 6, 12))) if k < len(mass)]
    with mpmath.workdps(60):
        for k, p in skellam_pmf(sigma, values).items():
            assert abs(mpmath.mpf(int(mass[k])) / 2**128 - (2 if k else 1) * p) < 2.0**-120


@pytest.mark.parametrize("sigma", [0.05, 1.0, 30.0])
def test_skellam_table_ends_only_where_128_bits_do(sigma):
    n = len(masses(noise._skellam_table(sigma)))
    with mpmath.workdps(60):
        assert skellam_pmf(sigma, [n])[n] < mpmath.mpf(2) ** -127


@pytest.mark.parametrize(("scale", "shares"), [(3.7, 3), (50.0, 1000)])
def test_polya_table_holds_the_law_to_120_bits(scale, shares):
    mass = masses(noise._polya_table(scale, shares))
    with mpmath.workdps(60):
        r, n = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(1) / shares
        for k in (0, 1, 2, 10, 100):
            p = mpmath.gamma(k + n) / mpmath.gamma(n) / mpmath.factorial(k) * (1 - r) ** n * r**k
            assert abs(mpmath.mpf(int(mass[k])) / 2**128 - p) < 2.0**-120


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, 0, 0], [0, 1, 0], [3, 1, 0, 0, 0]])
def test_last_weights_of_zero_own_no_number(weights):
    table = tables.tabulate([weight * tables.ONE for weight in weights])
    ends = [end for end in tables.cumulative(weights) if end < 2**128]
    assert cumulative(table) == ends
    last = max(i for i, weight in enumerate(weights) if weight)
    assert [invert_one(table, number) for number in (2**128 - 1, 2**127 + 2**126)] == [last, last]
    assert invert_one(table, 0) == weights.index(max(weights))


def invert_one(table: tables.CumulativeTable, number: int) -> int:
    words = np.frombuffer(number.to_bytes(16, "little"), "<u8").reshape(1, 2)
    return int(table.invert(words)[0])


@pytest.mark.slow
@settings(deadline=None)
@given(sigma=st.sampled_from([0.05, 0.3, 1.0, 3.7, 60.5]), data=st.data())
def test_inversion_equals_bisection_of_whole_numbers(sigma, data):
    table = noise._skellam_table(sigma)
    ends = cumulative(table)
    near_an_end = st.sampled_from([0, *ends, 2**128 - 1]).flatmap(lambda end: st.integers(end - 2, end + 2))
    number = data.draw((near_an_end | st.integers(0, 2**128 - 1)).filter(lambda u: 0 <= u < 2**128))
    assert invert_one(table, number) == table.outcome(number) == bisect_right(ends, number)


def test_low_word_decides_where_high_words_agree():
    table = noise._skellam_table(60.5)
    ends = cumulative(table)
    tied = np.flatnonzero(table.high == table.high[-1])
    assert len(tied) > 100  # the far tail shares its high word
    for i in tied[:: len(tied) // 10]:
        for number in (ends[i] - 1, ends[i]):
            assert invert_one(table, number) == bisect_right(ends, number)


def test_high_words_alone_would_miss_the_tail():
    table = noise._skellam_table(60.5)
    i = int(np.flatnonzero(table.high == table.high[-1])[50])
    by_high_word_alone = int(np.searchsorted(table.high, table.high[i]))
    assert by_high_word_alone != invert_one(table, cumulative(table)[i])


# ---- the grid -------------------------------------------------------------------------------------------------------
def share_on_grid(values: np.ndarray, grid: float) -> float:
    """Share of outputs in (-1/2, 1/2) that are whole multiples of the grid."""
    near = values[np.abs(values) < 0.5]
    return float((near / grid == np.round(near / grid)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_grid_probe_learns_nothing_from_discrete_noise(sampler):
    grid = grid_step(1.0)
    for datum in (0.0, 1.0, np.round(0.1 / grid) * grid):
        assert share_on_grid(datum + sampler(1 / grid, DRAWS, entropy()) * grid, grid) == 1.0


def test_grid_probe_tells_data_apart_under_floating_point_noise():
    draws = np.random.default_rng(0).laplace(size=DRAWS)
    assert share_on_grid(0.0 + draws, 2.0**-52) < 0.3 < 0.6 < share_on_grid(1.0 + draws, 2.0**-52)


@given(st.floats(1e-300, 1e300))
def test_grid_is_a_power_of_two_of_thousands_per_scale(scale):
    grid = grid_step(scale)
    assert np.frexp(grid)[0] == 0.5
    assert 4096 <= scale / grid < 8192


@pytest.mark.parametrize(("steps", "shift"), [(1.0, 1), (3.5, 2), (40.0, 41), (4096.0, 4096)])
def test_discrete_laplace_costs_what_a_laplace_with_a_little_less_noise_costs(steps, shift):
    """delta(epsilon) of discrete noise, summed, is never above that of a Laplace with 2 ln cosh(1/(2b)) more of epsilon."""
    k = np.arange(-60 * math.ceil(steps), 60 * math.ceil(steps) + shift + 1, dtype=float)
    there, here = np.exp(-np.abs(k) / steps), np.exp(-np.abs(k - shift) / steps)
    more = shift / steps + 2 * math.log(math.cosh(0.5 / steps))
    costs = []
    for epsilon in np.linspace(0, shift / steps, 9):
        discrete = np.maximum(here - np.exp(epsilon) * there, 0).sum() / there.sum()
        assert discrete <= -math.expm1((epsilon - more) / 2) + 1e-12
        costs.append(discrete > -math.expm1((epsilon - shift / steps) / 2) + 1e-12)
    assert any(costs) == (steps < 1000)  # on a coarse grid the plain Laplace would understate it


def test_golden_discrete_laplace_of_scale_one():
    assert (math.e - math.exp(0.5)) / (math.e + 1) == pytest.approx(0.2876491366449679, rel=1e-12)
    k = np.arange(-60, 62)
    there, here = np.exp(-np.abs(k)), np.exp(-np.abs(k - 1.0))
    assert np.maximum(here - np.exp(0.5) * there, 0).sum() / there.sum() == pytest.approx(0.2876491366449679, rel=1e-12)


@pytest.mark.parametrize(("factor", "dominates"), [(8, True), (0, False)])
def test_a_discrete_gaussian_on_whole_numbers_costs_what_the_corrected_multiplier_says(factor, dominates):
    """delta(epsilon), summed over whole numbers, against a Gaussian with z / (1 + 1/(8 sigma^2)), and without correction."""
    above = []
    for sigma in (3.0, 3.3, 10.0):
        for shift in (1, 2, 5):
            k = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + shift + 1, dtype=float)
            there, here = np.exp(-(k**2) / (2 * sigma**2)), np.exp(-((k - shift) ** 2) / (2 * sigma**2))
            mu = shift / sigma * (1 + (1 / (factor * sigma**2) if factor else 0))
            for epsilon in np.linspace(0, 3 * mu, 61):
                discrete = np.maximum(here - np.exp(epsilon) * there, 0).sum() / there.sum()
                continuous = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
                above.append(discrete > continuous * (1 + 1e-9) + 1e-13)
    assert any(above) != dominates


def test_discrete_gaussian_costs_what_the_continuous_one_does():
    steps = 4096  # the coarsest grid that grid_step gives, for a noise multiplier of 1
    k = np.arange(-12 * steps, 13 * steps, dtype=float)
    here, there = (np.exp(-((k - shift) ** 2) / (2 * steps**2)) for shift in (steps, 0))
    for epsilon in (0.5, 2.0, 4.0):
        discrete = np.maximum(here - np.exp(epsilon) * there, 0).sum() / there.sum()
        continuous = norm.cdf(0.5 - epsilon) - np.exp(epsilon) * norm.cdf(-0.5 - epsilon)
        assert discrete == pytest.approx(continuous, rel=1e-6)


# ---- the bytes ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_same_bytes_give_same_draws(sampler):
    first, again, other = (sampler(5000.0, 1000, entropy(seed)) for seed in (1, 1, 2))
    assert first.dtype == np.int64
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_lowest_bit_of_a_skellam_is_the_sign_and_nothing_else():
    def flipped(n: int) -> bytes:
        words = np.frombuffer(same(n), np.uint8).reshape(-1, 16).copy()
        words[:, 0] ^= 1
        return words.tobytes()

    same = entropy()
    np.testing.assert_array_equal(skellam(5.0, 1000, flipped), -skellam(5.0, 1000, entropy()))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blocks_cover_the_vector_and_spend_the_stated_bytes(sampler):
    spent = []

    def counted(n: int) -> bytes:
        spent.append(n)
        return bytes(n)

    assert len(sampler(1.0, tables.BLOCK + 3, counted)) == tables.BLOCK + 3
    assert sum(spent) == 16 * (tables.BLOCK + 3)


def test_blocks_follow_one_another():
    source = entropy()
    blocks = [discrete_gaussian(1.0, n, source) for n in (tables.BLOCK, 3)]
    np.testing.assert_array_equal(discrete_gaussian(1.0, tables.BLOCK + 3, entropy()), np.concatenate(blocks))


def test_no_coordinates_need_no_bytes():
    assert discrete_gaussian(1.0, 0, lambda n: pytest.fail("asked for bytes")).shape == (0,)


def test_vanishing_scale_is_no_noise():
    for sampler in SAMPLERS:
        assert not sampler(1e-4, 100, entropy()).any()


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, np.nextafter(noise.LARGEST_SCALE, np.inf)])
def test_samplers_refuse_a_scale_out_of_range(sampler, scale):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        sampler(scale, 1, entropy())


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, -np.inf, 1e-320])
def test_grid_refuses_a_scale_out_of_range(scale):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        grid_step(scale)


def test_polya_and_skellam_refuse_a_scale_beyond_their_tables():
    with pytest.raises(BudgetInvalid, match="16384"):
        polya_difference(20_000.0, 3, 1, entropy())
    with pytest.raises(BudgetInvalid, match="32768"):
        skellam(40_000.0, 1, entropy())
