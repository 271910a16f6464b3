"""Renyi divergences of Gaussian noise on a Poisson sample, for all orders at once, are those of `dp_accounting`."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from hedgerow.privacy.accounting import renyi
from hedgerow.privacy.accounting.sampled import sampled_gaussian

ORDERS = (*renyi.ORDERS[::7], 2.0, 33.0, 128.0, 1024.0)


def of_the_library(q, z):
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(z))
    return rdp.RdpAccountant(ORDERS).compose(event).rdp


def logs(divergences):
    """The logarithms that were computed: their rounding is what a divergence may differ by."""
    return divergences * (np.array(ORDERS) - 1)


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("z", [0.05, 0.3, 0.7, 1.1, 4.0, 1000.0])
def test_divergences_are_those_of_the_library(q, z):
    ours, theirs = sampled_gaussian(q, z, ORDERS), of_the_library(q, z)
    assert np.array_equal(np.isinf(ours), np.isinf(theirs))
    known = np.isfinite(theirs)
    assert known.sum() > 10
    np.testing.assert_allclose(logs(ours)[known], logs(theirs)[known], rtol=1e-13, atol=1e-14)


def test_divergences_of_less_noise_are_others():
    ours, theirs = logs(sampled_gaussian(0.1, 0.99, ORDERS)), logs(of_the_library(0.1, 1.0))
    known = np.isfinite(ours) & np.isfinite(theirs)
    assert (ours[known] > theirs[known] * (1 + 1e-3)).all()
