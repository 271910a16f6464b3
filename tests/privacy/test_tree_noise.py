"""Tree noise: running totals carry little of it, its cost is that of the node sums, and cohorts keep to their turns."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from hedgerow import Budget, Gaussian, l2
from hedgerow.core.events import Sampling
from hedgerow.errors import BudgetExhausted, BudgetInvalid, UnlawfulChannel
from hedgerow.privacy import Tree, epsilon
from hedgerow.privacy.tree import distance, tiles
from helpers import ENGINES, charged, federation, zeros


@pytest.mark.parametrize("t", [1, 2, 7, 8, 100, 1023])
def test_tiles_cover_every_question_once(t):
    covered = [q for level, number in tiles(t) for q in range(number << level, (number + 1) << level)]
    assert covered == list(range(t))
    assert len(list(tiles(t))) <= math.log2(t) + 1


@pytest.mark.parametrize(("rounds", "every"), [*product([1, 2, 5, 8, 13], [1, 2, 3, 8])])
def test_the_distance_is_that_of_the_node_sums(rounds, every):
    """Node by node: how far a party whose contribution is a unit vector moves the sums that are released."""
    nodes = {node for t in range(1, rounds + 1) for node in tiles(t)}
    longest = 0.0
    for first in range(every):
        answers = np.zeros(rounds)
        answers[first::every] = 1
        sums = [answers[number << level : (number + 1) << level].sum() for level, number in nodes]
        longest = max(longest, float(np.linalg.norm(sums)))
    assert distance(rounds, every) == pytest.approx(longest, rel=1e-12)


def totals_of(fed, rounds, size, every=1):
    ask = partial(zeros, size=size)
    return np.cumsum([(fed.sample(every=every) if every > 1 else fed).sum(ask) for _ in range(rounds)], axis=0)


def test_running_totals_carry_the_noise_of_their_tiles():
    rounds, size, z = 8, 4000, 1.5
    found = totals_of(federation().protect(clip=l2(2.0), mechanism=Tree(z, rounds)), rounds, size)
    for t in range(1, rounds + 1):
        low, high = chi2.interval(1 - 1e-7, size)
        variance = len(list(tiles(t))) * (2.0 * z * distance(rounds, 1)) ** 2
        assert low < (found[t - 1] ** 2).sum() / variance < high


def test_the_whole_tree_is_charged_with_its_first_question():
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 4))
    spent = []
    for _ in range(6):
        fed.sum(partial(zeros, size=2))
        spent.append(epsilon(fed.ledger.charges("party"), delta=1e-5, adjacency="add-remove"))
    once = epsilon([(Sampling(), (Gaussian(2.0).event(l2(1.0)),))], delta=1e-5, adjacency="add-remove")
    assert spent[:4] == [once] * 4
    assert spent[4] == spent[5] > once
    assert charged(fed.ledger) == ["gaussian", *["covered"] * 3, "gaussian", "covered"]


def test_a_second_tree_is_refused_by_a_budget_for_one():
    once = epsilon([(Sampling(), (Gaussian(2.0).event(l2(1.0)),))], delta=1e-5, adjacency="add-remove")
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 3)).within(Budget(once * 1.001, 1e-5))
    totals_of(fed, 3, 2)
    with pytest.raises(BudgetExhausted):
        fed.sum(partial(zeros, size=2))


def test_every_party_takes_its_turn_once():
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 6, every=3))
    groups = []
    for _ in range(6):
        cohort = fed.sample(every=3)
        cohort.sum(partial(zeros, size=2))
        groups.append(set(cohort.members))
    assert groups[:3] == groups[3:]
    assert set.union(*groups[:3]) == set(fed.members)
    assert sum(map(len, groups[:3])) == fed.size
    assert fed.ledger.entries[0].sampling.kind == "given"


@pytest.mark.parametrize("ask", [lambda fed: fed, lambda fed: fed.sample(rate=0.5), lambda fed: fed.sample(size=2)])
def test_a_cohort_out_of_turn_is_refused(ask):
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 6, every=3))
    with pytest.raises(UnlawfulChannel, match="take turns"):
        ask(fed).sum(partial(zeros, size=2))
    assert not fed.ledger.entries


def test_a_cohort_is_not_asked_twice():
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 6, every=3))
    cohort = fed.sample(every=3)
    cohort.sum(partial(zeros, size=2))
    with pytest.raises(UnlawfulChannel):
        cohort.sum(partial(zeros, size=2))


def test_a_sampled_cohort_would_claim_an_amplification_that_a_tree_has_not():
    fed = federation().protect(clip=l2(1.0), mechanism=Tree(2.0, 6))
    with pytest.raises(UnlawfulChannel):
        fed.sample(rate=0.5).sum(partial(zeros, size=2))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_draws_the_same(engine):
    run = [totals_of(federation(on).protect(clip=l2(1.0), mechanism=Tree(1.0, 5)), 5, 3) for on in (engine, ENGINES[0])]
    np.testing.assert_array_equal(*run)


def test_without_a_seed_a_node_keeps_its_noise():
    """The noise of a tile comes again in every running total that it is part of, and leaves with it."""
    fed = federation(seed=None).protect(clip=l2(1.0), mechanism=Tree(1.0, 8))
    other = federation(seed=None).protect(clip=l2(1.0), mechanism=Tree(1.0, 8))
    found = totals_of(fed, 8, 1000)
    scale = distance(8, 1)
    assert np.std(found[4] - found[3]) == pytest.approx(scale, rel=0.2)  # totals 4 and 5 share the node of 1..4
    assert np.std(found[7]) == pytest.approx(scale, rel=0.2)
    assert not np.isin(totals_of(other, 1, 1000)[0], found[0]).all()


def test_fewer_than_one_round_is_refused():
    with pytest.raises(BudgetInvalid):
        Tree(1.0, 0)
