"""Definitions and their conversions: the arrows that are theorems, with the right constants."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.accounting import (
    CDP,
    GDP,
    RDP,
    ZCDP,
    ApproximateDP,
    PureDP,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise,
    group,
)

E, DELTA = st.floats(0.01, 20), st.floats(-12, -1).map(lambda power: 10**power)
ORDER = st.floats(1.05, 200)


def responses(e):
    """The two outcomes of randomised response under both neighbours."""
    p = 1 / (1 + math.exp(-e))
    return np.array([p, 1 - p]), np.array([1 - p, p])


# ---- pure -----------------------------------------------------------------------------------------------------------
@given(e=st.floats(0.01, 8), order=st.floats(1.05, 80))
def test_rho_of_a_pure_mechanism_covers_randomised_response(e, order):
    a, b = responses(e)
    exact = math.log((a * (a / b) ** (order - 1)).sum()) / (order - 1)
    assert exact <= PureDP(e).to_zcdp().rho * order * (1 + 1e-9)
    assert PureDP(e).to_rdp(order).epsilon == pytest.approx(exact, rel=1e-6)


@given(e=E)
def test_rho_is_below_the_constant_that_the_survey_quotes(e):
    quoted = e * math.expm1(e) / 2
    assert PureDP(e).to_zcdp() == ZCDP(e**2 / 2)
    assert e**2 / 2 < quoted == PureDP(e).to_cdp().mu


@given(e=st.floats(0.01, 5))
def test_mean_and_scale_of_a_pure_loss_are_within_its_cdp(e):
    a, b = responses(e)
    loss = np.log(a / b)
    mean = (a * loss).sum()
    cdp = PureDP(e).to_cdp()
    assert mean <= cdp.mu
    for t in (-3.0, -0.5, 0.5, 3.0):
        assert (a * np.exp(t * (loss - mean))).sum() <= math.exp(t**2 * cdp.tau**2 / 2) * (1 + 1e-9)


def test_cdp_gives_zcdp_that_may_start_below_zero():
    assert CDP(0.5, 1.0).to_zcdp() == ZCDP(0.5, 0.0)  # a Gaussian of multiplier 1
    assert CDP(0.1, 1.0).to_zcdp() == ZCDP(0.5, -0.4)
    together = CDP(0.1, 3.0).and_then(CDP(0.2, 4.0))
    assert (together.mu, together.tau) == pytest.approx((0.3, 5.0))


# ---- the Gaussian, under every definition ---------------------------------------------------------------------------
@given(z=st.floats(0.2, 50), delta=DELTA)
def test_weaker_definitions_of_a_gaussian_cost_more(z, delta):
    exact = GDP.of_gaussian(z).to_approximate(delta).epsilon
    rho = GDP.of_gaussian(z).to_zcdp()
    by_order = [rho.to_rdp(a) for a in (1.5, 2, 4, 8, 16, 32, 64, 128)]
    best = min(one.to_approximate(delta).epsilon for one in by_order)
    assert exact <= best * (1 + 1e-9)
    assert best <= min(one.classic(delta).epsilon for one in by_order)
    assert exact <= rho.to_approximate(delta).epsilon


@given(z=st.floats(0.01, 1e4), e=st.floats(0, 50))
def test_gaussian_delta_is_the_difference_of_two_tails(z, e):
    exact = norm.sf(e * z - 0.5 / z) - math.exp(e) * norm.sf(e * z + 0.5 / z)
    if exact > 1e-9:
        assert gaussian_delta(z, e) == pytest.approx(exact, rel=1e-6)
    else:
        assert gaussian_delta(z, e) < 1.1e-9


@given(e=st.floats(0.001, 100), delta=st.floats(-300, -0.1).map(lambda power: 10**power))
def test_noise_and_epsilon_of_a_gaussian_are_inverse_and_safe(e, delta):
    z = gaussian_noise(e, delta)
    assert gaussian_delta(z, e) <= delta * (1 + 1e-6)
    assert gaussian_epsilon(z, delta) == pytest.approx(e, rel=1e-6)


@given(z=st.floats(0.05, 100), factor=st.floats(1.01, 3), delta=DELTA)
def test_gaussian_epsilon_falls_with_noise_and_with_delta(z, factor, delta):
    assert gaussian_epsilon(z * factor, delta) <= gaussian_epsilon(z, delta)
    assert gaussian_epsilon(z, min(delta * factor, 0.5)) <= gaussian_epsilon(z, delta)


@pytest.mark.parametrize("e", [1e-6, 0.01, 1.0])
def test_neighbours_that_are_very_close_keep_their_digits(e):
    z = 1e7 / max(e, 1e-3)
    apart = 1 / z
    series = norm.pdf(e * z) * apart - e * norm.sf(e * z)  # to first order in the distance
    assert gaussian_delta(z, e) <= max(series, 0) * (1 + 1e-3) + apart**2


# ---- composition and groups -----------------------------------------------------------------------------------------
def test_definitions_compose_by_their_own_arithmetic():
    assert PureDP(0.5).and_then(PureDP(1.0)) == PureDP(1.5)
    assert ApproximateDP(0.5, 0.5).and_then(ApproximateDP(1.0, 0.75)) == ApproximateDP(1.5, 1.0)
    assert ZCDP(0.5, 0.25).and_then(ZCDP(0.25)) == ZCDP(0.75, 0.25)
    assert RDP(4, 0.5).and_then(RDP(4, 0.25)) == RDP(4, 0.75)
    assert GDP(3.0).and_then(GDP(4.0)) == GDP(5.0)


@given(e=st.floats(0.01, 2), delta=DELTA, size=st.integers(1, 6))
def test_group_is_the_chain_of_its_neighbours(e, delta, size):
    chained = 0.0
    for _ in range(size):
        chained = delta + math.exp(e) * chained
    assert group(e, delta, size) == pytest.approx((size * e, min(1.0, chained)), rel=1e-9)
    assert ApproximateDP(e, delta).of_group(size).epsilon == pytest.approx(size * e)


@given(z=st.floats(0.5, 20), size=st.integers(2, 5), delta=DELTA)
def test_group_of_a_gaussian_is_within_every_definition_of_it(z, size, delta):
    exact = GDP.of_gaussian(z).of_group(size)
    assert exact.mu == pytest.approx(size / z)
    assert GDP.of_gaussian(z).to_zcdp().of_group(size).rho == pytest.approx(exact.to_zcdp().rho)
    one = ApproximateDP(gaussian_epsilon(z, delta), delta).of_group(size)
    if one.delta < 1:
        assert exact.delta(one.epsilon) <= one.delta * (1 + 1e-6)


def test_group_of_a_divergence_costs_orders():
    moved = RDP(16, 0.1).of_group(4)
    assert (moved.order, moved.epsilon) == pytest.approx((4, 0.9))
    assert moved.epsilon > ZCDP(0.1 / 16).of_group(4).to_rdp(4).epsilon


def test_group_of_a_large_epsilon_does_not_overflow():
    assert group(400.0, 1e-9, 2) == (800.0, 1.0)
    assert group(0.0, 1e-9, 3) == (0.0, pytest.approx(3e-9))
    assert group(800.0, 0.0, 3) == (2400.0, 0.0)


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PureDP(-1.0),
        lambda: PureDP(math.nan),
        lambda: ApproximateDP(1.0, 1.5),
        lambda: ZCDP(-0.1),
        lambda: RDP(1.0, 0.5),
        lambda: GDP(-1.0),
        lambda: CDP(0.1, -0.1),
        lambda: RDP(4, 0.5).and_then(RDP(5, 0.5)),
        lambda: RDP(4, 0.5).of_group(4),
        lambda: ZCDP(0.5, 0.1).of_group(2),
        lambda: ZCDP(0.5).to_approximate(0.0),
        lambda: group(1.0, 1e-6, 0),
    ],
)
def test_refuses_values_that_mean_nothing(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        wrong()


def test_the_least_epsilon_over_orders_is_bit_for_bit_that_of_dp_accounting():
    from dp_accounting import rdp

    from hedgerow.privacy.accounting.renyi import ORDERS, epsilon_of

    rng = np.random.default_rng(0)
    for delta in (1e-12, 1e-6, 1e-3, 0.3):
        for scale in (0.0, 1e-13, 1e-6, 1e-2, 1.0, 50.0):
            curve = np.sort(rng.random(len(ORDERS))) * scale
            curve[-3:] = np.inf if scale > 1 else curve[-3:]
            assert epsilon_of(curve, delta) == rdp.compute_epsilon(ORDERS, curve, delta)[0]
    assert epsilon_of(np.full(len(ORDERS), np.nan), 1e-6) == np.inf
    assert epsilon_of(np.ones(len(ORDERS)), 0.0) == np.inf
    assert epsilon_of(np.zeros(len(ORDERS)), 0.0) == 0.0
