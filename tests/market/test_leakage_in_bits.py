"""(2.2) and (2.4.1): min-entropy leakage per person, exact on matrices, never above its bound; slips told apart."""

import math

import numpy as np
import pytest

from hedgerow.errors import BudgetInvalid
from hedgerow.market.epsilon import channels
from hedgerow.market.epsilon.leakage import (
    between_values,
    database_leakage,
    leakage,
    leakage_slope,
    min_entropy,
    times_likelier,
)
from hedgerow.privacy.accounting import gaussian_delta

EPSILONS = (0.0, 1e-9, 0.01, 0.3, 1.0, 2.5, 7.0, 40.0, 800.0)


def random_channel(rng, distances, outputs, epsilon):
    """Rows whose weights, e^u with u half an epsilon steep at most, are made to sum to 1: an epsilon of `epsilon`."""
    centres = rng.integers(len(distances), size=outputs)
    flat = rng.uniform(0, len(distances), (1, outputs))
    steep = np.minimum(distances[:, centres] * rng.uniform(0, 1, outputs), flat)
    weights = rng.dirichlet(np.ones(outputs)) * np.exp(-epsilon / 2 * steep)
    return weights / weights.sum(axis=1, keepdims=True)


def test_goldens():
    assert leakage(1.0, 2) == pytest.approx(0.548059, abs=5e-7)
    assert database_leakage(0.5, 5, people=10) == pytest.approx(5.453513, abs=5e-7)
    assert database_leakage(1.0, 2, people=5) == pytest.approx(2.740295, abs=5e-7)
    three = channels.on_each(channels.randomised_response(3, 1.2), 3)
    assert channels.capacity(three) == pytest.approx(2.714215791, abs=5e-10)
    assert database_leakage(1.2, 3, people=3) == pytest.approx(2.714215791, abs=5e-10)


@pytest.mark.parametrize(("people", "exact", "bound"), [(5, 1.727087, 2.740295), (10, 2.490871, 5.480589)])
def test_a_count_leaks_less_than_the_bound(people, exact, bound):
    counts = np.array([bin(database).count("1") for database in range(2**people)])
    channel = channels.truncated_geometric(people, 1.0)
    assert channels.capacity(channel[counts]) == pytest.approx(exact, abs=5e-7)
    assert channels.capacity(channel) == pytest.approx(exact, abs=5e-7)  # databases of one count have one row
    assert database_leakage(1.0, 2, people) == pytest.approx(bound, abs=5e-7)


@pytest.mark.parametrize("values", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_attains_the_bound(values, epsilon):
    channel = channels.randomised_response(values, epsilon)
    assert channels.capacity(channel) == pytest.approx(leakage(epsilon, values), rel=1e-9, abs=1e-14)
    assert leakage(epsilon, values) <= min(math.log2(values), epsilon / math.log(2)) + 1e-15


def test_no_mechanism_exceeds_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(300):
        values, people, epsilon = int(rng.integers(2, 5)), int(rng.integers(1, 4)), rng.exponential(2)
        databases = np.array(np.meshgrid(*[range(values)] * people)).reshape(people, -1).T
        distances = (databases[:, None] != databases[None]).sum(axis=2)
        channel = random_channel(rng, distances, int(rng.integers(2, 12)), epsilon)
        assert channels.largest_loss(channel, distances == 1) <= epsilon + 1e-9
        assert channels.capacity(channel) <= database_leakage(epsilon, values, people) + 1e-12


@pytest.mark.parametrize("values", [2, 3, 7])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.4, 1.0])
def test_with_delta_the_bound_is_attained(values, delta):
    epsilon = 0.8
    told = delta * np.eye(values)  # with probability delta the value itself, on outputs of its own
    channel = np.hstack([told, (1 - delta) * channels.randomised_response(values, epsilon)])
    beyond = np.maximum(channel[:, None] - math.exp(epsilon) * channel[None], 0).sum(axis=2)
    assert beyond.max() == pytest.approx(delta)
    assert channels.capacity(channel) == pytest.approx(leakage(epsilon, values, delta), rel=1e-12)


def test_leakage_is_the_least_over_priors_of_what_is_gained():
    rng = np.random.default_rng(1)
    channel = channels.randomised_response(4, 1.0)
    assert channels.gain(channel) == pytest.approx(times_likelier(1.0, 4)) == pytest.approx(2 ** leakage(1.0, 4))
    for _ in range(100):
        prior = rng.dirichlet(np.full(4, 0.5))
        assert 1 - 1e-12 <= channels.gain(channel, prior) <= times_likelier(1.0, 4)
    sure = np.array([0.9, 0.04, 0.03, 0.03])
    assert channels.gain(channel, sure) == 1.0  # whoever believes so much already guesses no better
    assert set(channels.remap(channel, sure)) == {0}


@pytest.mark.parametrize("values", [2, 5, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_slope(values, epsilon):
    step = 1e-5
    slope = (leakage(epsilon + step, values) - leakage(epsilon - step, values)) / (2 * step)
    assert leakage_slope(epsilon, values) == pytest.approx(slope, rel=1e-7)


def test_the_logarithm_of_2_2_is_to_base_2():
    inside = 2 * math.e / (1 + math.e)
    assert leakage(1.0, 2) == pytest.approx(math.log2(inside))
    assert math.log(2 * inside) > 1.05  # "log 2 x" read as printed: above the one bit that there is to know
    assert math.log(inside) < channels.capacity(channels.randomised_response(2, 1.0))  # natural: exceeded by a mechanism


def test_the_printed_min_entropy_is_that_after_the_answer():
    rng = np.random.default_rng(2)
    channel, prior = channels.randomised_response(3, 1.0), rng.dirichlet(np.ones(3))
    joint = prior[:, None] * channel
    outputs = joint.sum(axis=0)
    printed = -math.log2((outputs * (joint / outputs).max(axis=0)).sum())  # (2.4.1) of H_inf(X)
    after = -math.log2(channels.success(channel, prior))
    assert printed == pytest.approx(after)  # so the printed leakage would be 0 for every mechanism
    assert min_entropy(prior) - after == pytest.approx(math.log2(channels.gain(channel, prior)))
    assert min_entropy(np.full(8, 1 / 8)) == 3.0


def test_two_values_are_two_steps_apart_where_people_come_and_go():
    assert between_values(1.0, 1e-5, "replace-one") == (1.0, 1e-5)
    epsilon, delta = between_values(1.0, 1e-5, "add-remove")
    assert (epsilon, delta) == (2.0, pytest.approx(1e-5 * (1 + math.e)))
    assert between_values(900.0, 1e-5, "add-remove") == (1800.0, 1.0)
    # a sum of values in [-1, 1] with Gaussian noise: a person who comes moves it by 1, another value by 2
    z = 3.0
    assert gaussian_delta(z / 2, 2.0) <= gaussian_delta(z, 1.0) * (1 + math.e)
    assert gaussian_delta(z / 2, 1.0) > gaussian_delta(z, 1.0)  # the epsilon undoubled would be broken


@pytest.mark.parametrize(
    "call",
    [
        lambda: leakage(-1.0),
        lambda: leakage(math.nan),
        lambda: leakage(math.inf),
        lambda: leakage(1.0, 0),
        lambda: leakage(1.0, 2, 1.5),
        lambda: database_leakage(1.0, 2, 0),
        lambda: channels.on_each(channels.randomised_response(10, 1.0), 5),
        lambda: channels.success(channels.randomised_response(2, 1.0), np.array([0.5, 0.6])),
        lambda: channels.success(channels.randomised_response(2, 1.0), np.array([1.0])),
        lambda: channels.truncated_geometric(0, 1.0),
    ],
)
def test_refuses(call):
    with pytest.raises(BudgetInvalid) as refused:
        call()
    assert refused.value.remedy
