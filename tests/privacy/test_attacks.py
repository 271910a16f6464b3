"""Every mechanism under attack: from 100 000 releases on two neighbours nobody proves more than the ledger charges.

The lower bound is Clopper-Pearson's at one false alarm in a million; the same attack also has to find most of the epsilon
that is there, or it would say nothing.
"""

import numpy as np
import pytest

from attack import TRIALS, entropy, epsilon_lower_bound
from hedgerow import l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.events import Sampling
from hedgerow.privacy import epsilon
from hedgerow.privacy.choice import Exponential, NoisyMax, PermuteAndFlip, TruncatedGeometric
from hedgerow.privacy.choice.sparse import SparseVector
from hedgerow.privacy.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, Skellam
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian

pytestmark = pytest.mark.slow
DELTA = 1e-3


def vector(size):
    return Layout((("", (size,)),))


def charged(mechanism, bound, delta):
    return epsilon([(Sampling(), (mechanism.event(bound),))], delta=max(delta, 1e-12), adjacency="add-remove")


def many(mechanism, bound, value, seed, trials=TRIALS):
    """Releases of one number: every coordinate of a long vector has the noise of one, by an l1 or l2 bound."""
    step = mechanism.at_party(np.array([[value]]), bound, vector(1), lambda i: entropy(seed))
    return mechanism.at_server(np.full(trials, step[0, 0]), bound, vector(trials), entropy(seed, "server"))


SERVER = [
    (Laplace(1.0), l1(1.0), 0.0),
    (Laplace(0.25), l1(3.0), 0.0),
    (Geometric(1.0), l1(1.0, "record"), 0.0),
    (Geometric(0.5), l1(2.0, "record"), 0.0),
    (TruncatedGeometric(1.0, 0, 5), l1(1.0, "record"), 0.0),
    (Gaussian(1.0), l2(1.0), DELTA),
    (Gaussian(2.5), l2(7.0), DELTA),
    (DiscreteGaussian(3.0), l2(1.0, "record"), DELTA),
    (Skellam(1.0), l2(1.0), DELTA),
    (SimulatedGaussian(1.0), l2(1.0), DELTA),
]


@pytest.mark.parametrize(("mechanism", "bound", "delta"), SERVER, ids=lambda x: str(x) if not isinstance(x, float) else "")
def test_presence_of_a_unit_is_not_proved_beyond_epsilon(mechanism, bound, delta):
    here, there = (many(mechanism, bound, value, seed) for value, seed in ((bound.radius, 1), (0.0, 2)))
    claimed = charged(mechanism, bound, delta)
    found = epsilon_lower_bound(here, there, delta=delta)
    assert found < claimed
    assert found > (0.75 if not delta else 0.3) * claimed


@pytest.mark.parametrize(("mechanism", "delta"), [(Laplace(2.0, "party"), 0.0), (Gaussian(2.0, "party"), DELTA)], ids=str)
def test_at_a_party_any_two_contributions_are_told_apart_by_epsilon_at_most(mechanism, delta):
    """Neighbours are two radii apart, and the event says so."""
    bound, trials = (l1(1.0) if not delta else l2(1.0)), 20_000
    sources = [entropy(1), entropy(2)]
    here, there = (
        mechanism.at_party(np.full((trials, 1), value), bound, vector(1), lambda i, own=source: own)[:, 0]
        for value, source in zip((1.0, -1.0), sources, strict=True)
    )
    claimed, found = charged(mechanism, bound, delta), epsilon_lower_bound(here, there, delta=delta)
    assert 0.3 * claimed < found < claimed
    assert found > charged(Laplace(4.0) if not delta else Gaussian(8.0), bound, delta)


SHARES = [(Laplace(1.0, "shares", 4), 0.0), (Skellam(1.0, "shares", 4), DELTA), (Gaussian(1.0, "shares", 4), DELTA)]


@pytest.mark.parametrize(("mechanism", "delta"), SHARES, ids=str)
def test_shares_of_the_least_parties_hide_one_of_them(mechanism, delta):
    bound = l1(1.0) if not delta else l2(1.0)
    [block] = mechanism._plan(bound, vector(1))
    noise = [sum(mechanism._draw(block.scale, TRIALS, entropy(10 * k + i)) for i in range(4)) for k in (1, 2)]
    unit = mechanism.at_party(np.array([[1.0]]), bound, vector(1), lambda i: entropy()) * 0 + round(1.0 / block.step)
    claimed = charged(mechanism, bound, delta)
    assert 0.3 * claimed < epsilon_lower_bound(noise[0] + unit[0, 0], noise[1], delta=delta) < claimed


@pytest.mark.parametrize("mechanism", [Laplace(2.0), Geometric(2.0), Gaussian(4.0), Skellam(4.0)], ids=str)
def test_a_unit_that_moves_every_coordinate_is_not_proved_beyond_epsilon(mechanism):
    """Twenty coordinates move by one each; the likelihood ratio is the best statistic there is."""
    d, trials, bound = 20, 50_000, linf(1.0)
    [block] = mechanism._plan(bound, vector(d))
    unit = round(1.0 / block.step)
    noise = [mechanism._draw(block.scale, trials * d, entropy(seed)).reshape(trials, d) for seed in (1, 2)]
    laplace = mechanism.law in ("laplace", "geometric")
    here, there = (
        (np.abs(x) - np.abs(x - unit)).sum(1) if laplace else x.sum(1).astype(float) for x in (noise[0] + unit, noise[1])
    )
    delta = 0.0 if laplace else DELTA
    claimed = charged(mechanism, bound, delta)
    assert epsilon_lower_bound(here, there, delta=delta) < claimed


# ---- choices --------------------------------------------------------------------------------------------------------
OTHERS = 50
UP_AND_DOWN = (np.array([1.0] + [0.0] * OTHERS), np.array([0.0] + [1.0] * OTHERS))
UP_ONLY = (np.zeros(OTHERS + 1), np.array([0.0] + [1.0] * OTHERS))


def chosen(choice, scores, seed, trials=TRIALS):
    bound = linf(1.0, unit="record")
    block = choice._block(bound, vector(len(scores)))
    total = choice.at_party(scores[None], bound, vector(len(scores)), lambda i: entropy())[0]
    return np.minimum(choice.draw(total, block, trials, entropy(seed)), 1)


@pytest.mark.parametrize("make", [Exponential, NoisyMax, PermuteAndFlip])
@pytest.mark.parametrize(("monotonic", "pair"), [(False, UP_AND_DOWN), (True, UP_ONLY)], ids=["any", "monotonic"])
def test_a_choice_gives_away_no_more_than_epsilon(make, monotonic, pair):
    """The worst neighbours there are: one score falls while all others rise, or all rise but one."""
    choice = make(1.0, monotonic)
    trials = 2 * TRIALS if make is NoisyMax else TRIALS  # its telling outcomes are the rarest
    here, there = (chosen(choice, scores, seed, trials) for seed, scores in enumerate(pair))
    found = epsilon_lower_bound(here, there)
    assert 0.5 < found < 1.0


# ---- sparse vector --------------------------------------------------------------------------------------------------
def transcripts(mechanism, totals, seed, trials=TRIALS):
    """Answers of many conversations as one number each: the position of every answer above, none after the last."""
    bound = linf(1.0, unit="record")
    block = mechanism._block(bound, Layout((("", ()),)))
    noise, source = mechanism.threshold_noise(block, trials, entropy(seed, "threshold")), entropy(seed)
    code, left = np.zeros(trials, np.int64), np.full(trials, mechanism.most)
    for total in totals:
        steps = mechanism.at_party(np.array([[total]]), bound, Layout((("", ()),)), lambda i: entropy())[0, 0]
        above = mechanism.exceeds(np.full(trials, steps), block, noise, source) & (left > 0)
        code, left = 2 * code + above, left - above
    return code


CONVERSATIONS = [
    (SparseVector(1.0, 1, 0.0), [0.0] * 4 + [1.0], [1.0] * 4 + [0.0]),
    (SparseVector(1.0, 1, 2.0), [0.0] * 4 + [1.0], [1.0] * 4 + [0.0]),
    (SparseVector(2.0, 3, 1.0), [0.0] * 3 + [1.0] * 3, [1.0] * 3 + [0.0] * 3),
    (SparseVector(1.0, 1, 1.0, True), [0.0] * 5, [1.0] * 5),
    (SparseVector(2.0, 2, 1.0, True), [0.0] * 5, [1.0] * 5),
]


@pytest.mark.parametrize(("mechanism", "here", "there"), CONVERSATIONS, ids=str)
def test_a_conversation_gives_away_no_more_than_epsilon(mechanism, here, there):
    found = epsilon_lower_bound(transcripts(mechanism, here, 1), transcripts(mechanism, there, 2))
    assert 0.15 * mechanism.epsilon < found < mechanism.epsilon


def test_the_attack_finds_most_of_what_is_there():
    """On randomised response with known epsilon the bound is close, and it rises with the number of releases."""
    rng, truth = np.random.default_rng(0), 2.0
    honest = np.exp(truth) / (1 + np.exp(truth))
    found = [epsilon_lower_bound((rng.random(n) < honest) * 1, (rng.random(n) < 1 - honest) * 1) for n in (2000, 200_000)]
    assert 1.0 < found[0] < found[1] < truth
    assert found[1] > 1.9
