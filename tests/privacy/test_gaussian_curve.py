"""The privacy curve of Gaussian noise on a Poisson sample, for a whole grid at once, is that of `dp_accounting`."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism as library

from hedgerow.privacy.accounting.costs import Use
from hedgerow.privacy.accounting.losses import _gaussian_curve


@pytest.mark.parametrize("adjacency", ["ADD", "REMOVE"])
@pytest.mark.parametrize("z", [0.3, 0.7, 1.1, 4.0, 40.0])
@pytest.mark.parametrize("q", [1e-4, 0.01, 0.1, 0.5, 0.99, 1.0])
def test_the_curve_is_that_of_the_library(adjacency, z, q):
    side = library.AdjacencyType[adjacency]
    noise = library.GaussianPrivacyLoss(z, sampling_prob=q, adjacency_type=side)
    ends = noise.connect_dots_bounds()
    x = np.linspace(ends.epsilon_lower - 0.01, ends.epsilon_upper + 0.01, 300)
    ours = _gaussian_curve(noise, Use("gaussian", z, rate=q), removed=adjacency == "REMOVE")(x)
    theirs = np.asarray(noise.get_delta_for_epsilon(x))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)
    np.testing.assert_allclose(ours[theirs > 1e-9], theirs[theirs > 1e-9], rtol=1e-6)


def test_a_curve_that_is_moved_is_another():
    """A twin with a tenth less noise is caught by the comparison above."""
    noise = library.GaussianPrivacyLoss(1.0, sampling_prob=0.1, adjacency_type=library.AdjacencyType.REMOVE)
    x = np.linspace(0, 1, 50)
    twin = _gaussian_curve(noise, Use("gaussian", 0.9, rate=0.1), removed=True)(x)
    assert np.abs(twin - noise.get_delta_for_epsilon(x)).max() > 1e-6
