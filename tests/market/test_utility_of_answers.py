"""(2.3): the largest chance of a right guess, against a linear program over all mechanisms; lines are not covered by it."""

import math

import numpy as np
import pytest
import scipy

from hedgerow.errors import BudgetInvalid
from hedgerow.market.epsilon import channels
from hedgerow.market.epsilon.utility import ring_borders, utility, utility_of_borders, utility_of_count


def printed(epsilon, n, c):
    e = math.exp(epsilon)
    return e**n * (1 - e) / (e**n * (1 - e) + c * (1 - e**n))


def best(distances, epsilon, prior=None):
    """Largest chance of a right guess over all channels with this epsilon, by linear programming; outputs are guesses."""
    k = len(distances)
    prior = np.full(k, 1 / k) if prior is None else prior
    rows = []
    for x, other in zip(*np.nonzero(distances == 1), strict=True):
        for z in range(k):
            row = np.zeros((k, k))
            row[x, z], row[other, z] = 1, -math.exp(epsilon)
            rows.append(row.ravel())
    sums = np.kron(np.eye(k), np.ones(k))
    found = scipy.optimize.linprog(
        -(np.diag(prior)).ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(k), method="highs"
    )
    return -found.fun


def test_goldens():
    assert utility(0.7, 3, 2) == pytest.approx(0.366129051, abs=5e-10)
    assert channels.success(channels.by_distance(channels.ring(7), 0.7)) == pytest.approx(0.366129051, abs=5e-10)
    assert utility(0.0, 3, 2) == 1 / 7
    assert utility_of_count(0.7, 6) == pytest.approx(0.431179, abs=5e-7)
    assert utility(1.0, 1, 4) == pytest.approx(0.404610, abs=5e-7)
    assert channels.success(channels.randomised_response(5, 1.0)) == pytest.approx(utility(1.0, 1, 4), rel=1e-15)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("epsilon", [0.2, 1.1])
def test_rings_and_cliques_attain_what_no_mechanism_exceeds(size, epsilon):
    for distances, borders in ((channels.ring(size), ring_borders(size)), (channels.clique(size), (size - 1,))):
        channel = channels.by_distance(distances, epsilon)
        assert channels.largest_loss(channel, distances == 1) <= epsilon + 1e-12
        assert channels.success(channel) == pytest.approx(utility_of_borders(epsilon, borders), rel=1e-12)
        assert best(distances, epsilon) == pytest.approx(utility_of_borders(epsilon, borders), rel=1e-7)


def test_an_even_ring_has_one_answer_at_its_far_end():
    assert ring_borders(6) == (2, 2, 1)
    assert utility_of_borders(1.0, ring_borders(6)) < utility(1.0, 3, 1)  # (2.3) is loose there
    assert utility_of_borders(1.0, ring_borders(6)) > utility(1.0, 3, 2)  # and with c = 2 not true
    assert utility_of_borders(0.7, ring_borders(7)) == pytest.approx(utility(0.7, 3, 2), rel=1e-15)


def test_a_line_exceeds_the_bound_of_rings():
    assert utility_of_count(0.7, 6) > utility(0.7, 3, 2) + 0.06
    rows = channels.by_distance(channels.line(7), 0.7)
    assert channels.largest_loss(rows, channels.line(7) == 1) > 0.7  # the ring's mechanism breaks its epsilon on a line


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 2.0])
def test_the_truncated_geometric_mechanism_is_best_for_every_prior(epsilon):
    rng = np.random.default_rng(int(10 * epsilon))
    line, q = channels.line(6), math.exp(-epsilon)
    channel = channels.truncated_geometric(5, epsilon)
    assert channels.largest_loss(channel, line == 1) == pytest.approx(epsilon, rel=1e-12)
    assert utility_of_count(epsilon, 5) == pytest.approx((2 + 4 * (1 - q)) / ((1 + q) * 6), rel=1e-12)
    for prior in (None, *rng.dirichlet(np.full(6, 0.6), 6)):
        assert utility_of_count(epsilon, 5, prior) == pytest.approx(best(line, epsilon, prior), rel=1e-7)


def test_remapping_is_what_makes_it_best():
    prior = np.array([0.02, 0.02, 0.02, 0.02, 0.9, 0.02])
    channel = channels.truncated_geometric(5, 0.3)
    unmapped = float(prior @ np.diag(channel))
    assert set(channels.remap(channel, prior)) == {4}
    assert unmapped < 0.2 < utility_of_count(0.3, 5, prior) == pytest.approx(0.9)


@pytest.mark.parametrize("n", [1, 3, 60])
@pytest.mark.parametrize("c", [1, 2, 9])
def test_the_printed_form_is_the_same_where_it_has_a_value(n, c):
    for epsilon in (0.01, 0.5, 3.0):
        assert utility(epsilon, n, c) == pytest.approx(printed(epsilon, n, c), rel=1e-9)
    with pytest.raises(ZeroDivisionError):
        printed(0.0, n, c)
    assert utility(0.0, n, c) == 1 / (1 + c * n)
    assert utility(1e-13, n, c) == pytest.approx(1 / (1 + c * n), rel=1e-9)
    with pytest.raises(OverflowError):
        printed(400.0, n + 1, c)
    assert utility(400.0, n + 1, c) == utility(5000.0, n, c) == 1.0


def test_refuses():
    for call in (lambda: utility(-1.0, 3, 2), lambda: utility(1.0, 0, 2), lambda: utility(1.0, 3, 0), lambda: ring_borders(1)):
        with pytest.raises(BudgetInvalid):
            call()
