"""Privacy curves of noise on a Poisson sample, for a whole grid at once, are those of `dp_accounting`."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism as library

from hedgerow.privacy.accounting.costs import Use
from hedgerow.privacy.accounting.losses import _curve

LAWS = {"gaussian": library.GaussianPrivacyLoss, "laplace": library.LaplacePrivacyLoss}
CASES = [
    ("gaussian", 0.3),
    ("gaussian", 0.7),
    ("gaussian", 1.1),
    ("gaussian", 4.0),
    ("gaussian", 40.0),
    ("laplace", 0.2),
    ("laplace", 3.0),
    ("laplace", 60.0),
]


def curves(law, z, q, adjacency, twin=None):
    """Both curves at losses on and beside the grid, at 0 and at the ends, where sampling leaves no loss."""
    noise = LAWS[law](z, sampling_prob=q, adjacency_type=library.AdjacencyType[adjacency])
    ends = noise.connect_dots_bounds()
    low, high = ends.epsilon_lower - 0.01, ends.epsilon_upper + 0.01
    grid = np.arange(math.floor(low / 1e-3), math.ceil(high / 1e-3) + 1)[:4000] * 1e-3
    edge = [] if q == 1 else [math.log1p(-q), -math.log1p(-q), math.log(1 - q) * (1 - 1e-10)]
    x = np.concatenate([np.linspace(low, high, 300), grid, [0.0, *edge]])
    ours = _curve(noise, Use(law, z if twin is None else twin, rate=q), removed=adjacency == "REMOVE")(x)
    return ours, np.asarray(noise.get_delta_for_epsilon(x))


@pytest.mark.parametrize("adjacency", ["ADD", "REMOVE"])
@pytest.mark.parametrize("q", [1e-4, 0.01, 0.1, 0.5, 0.99, 1.0])
@pytest.mark.parametrize(("law", "z"), CASES)
def test_the_curve_is_that_of_the_library(law, z, q, adjacency):
    ours, theirs = curves(law, z, q, adjacency)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("law", LAWS)
def test_a_curve_of_less_noise_is_another(law):
    ours, theirs = curves(law, 1.0, 0.1, "REMOVE", twin=0.9)
    assert np.abs(ours - theirs).max() > 1e-6
