"""Noise in shares: what least parties add is the whole noise, fewer are refused, and rows must be hidden."""

import math

import numpy as np
import pytest
from scipy import stats

from attack import FALSE_ALARM, chi_square_p_value
from hedgerow import l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.randomness import Streams
from hedgerow.engines import InProcess
from hedgerow.errors import BudgetInvalid, UnlawfulChannel
from hedgerow.privacy.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, Skellam
from helpers import Hiding, federation, totals

SIZE = 20_000


def vector(size):
    return Layout((("", (size,)),))


def added(mechanism, bound, parties, size=SIZE):
    """The release of so many parties that contribute zeros."""
    total = np.zeros(size, np.int64)
    for i in range(parties):
        source = Streams(3).entropy(1, f"party {i}", "noise")
        total += mechanism.at_party(np.zeros((1, size)), bound, vector(size), lambda _, own=source: own)[0]
    return mechanism.at_server(total, bound, vector(size), Streams(3).entropy(1, "server", "noise"))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [Gaussian(2.0, "shares", 5), Skellam(2.0, "shares", 5)], ids=str)
def test_shares_of_the_least_parties_have_the_declared_law(mechanism):
    """Kolmogorov-Smirnov at one false alarm in a million; the grid is 4096 times finer than the noise."""
    assert stats.kstest(added(mechanism, l2(1.0), 5) / 2.0, "norm").pvalue > FALSE_ALARM


@pytest.mark.slow
def test_polya_shares_of_the_least_parties_have_the_law_of_laplace():
    found = added(Laplace(2.0, "shares", 5), linf(1.0), 5, 4000)
    assert stats.kstest(found / (2.0 * 4000), "laplace").pvalue > FALSE_ALARM


def test_shares_on_whole_numbers_add_up_to_the_geometric_law():
    found = added(Geometric(3.0, "shares", 4), linf(1.0), 4, 1)
    assert float(found[0]).is_integer()
    mechanism = Geometric(3.0, "shares", 4)
    total = sum(mechanism._draw(3.0, 50_000, Streams(i).entropy(1, "p", "noise")) for i in range(4))
    r = math.exp(-1 / 3)
    assert chi_square_p_value(total, {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-60, 61)}) > FALSE_ALARM


@pytest.mark.parametrize("mechanism", [Gaussian(2.0, "shares", 5), Skellam(2.0, "shares", 5)], ids=str)
@pytest.mark.parametrize(("parties", "whole"), [(4, False), (5, True), (8, True)])
def test_noise_is_whole_from_the_least_number_of_parties_on(mechanism, parties, whole):
    """The variance of 4000 numbers against chi-square; four of five shares are found out."""
    found = added(mechanism, l2(1.0), parties, 4000)
    assert ((found**2).sum() / 4.0 > stats.chi2.isf(1 - FALSE_ALARM, 4000)) == whole
    expected = stats.chi2.interval(1 - FALSE_ALARM, 4000)
    assert expected[0] < (found**2).sum() / (4.0 * parties / 5) < expected[1]


def test_a_total_of_fewer_shares_is_refused():
    mechanism = Skellam(2.0, "shares", 5)
    mechanism.enough(5)
    for answered in (0, 4):
        with pytest.raises(BudgetInvalid, match=rf"{answered} parties answered.*with 5"):
            mechanism.enough(answered)


def test_shares_need_hidden_rows():
    fed = federation()
    with pytest.raises(UnlawfulChannel, match="HR-211"):
        fed.protect(mechanism=Skellam(1.0, "shares", 6))
    protected = fed.protect(mechanism=Skellam(1.0, "shares", 6), aggregation=Hiding())
    bound = {"sum": l2(5.0), "n": linf(30.0)}
    released = protected.sum(totals, bound=bound)
    entry = protected.ledger.entries[-1]
    assert entry.mechanism == "Skellam(1) in shares of 6 parties"
    assert entry.event.kind == "skellam"
    assert released["sum"].shape == (3,)


def test_small_gaussian_shares_are_refused_and_skellam_is_offered():
    with pytest.raises(BudgetInvalid, match="Skellam"):
        DiscreteGaussian(10.0, "shares", 12).fit(l2(1.0), vector(3))
    DiscreteGaussian(10.0, "shares", 11).fit(l2(1.0), vector(3))
    Gaussian(1.0, "shares", 1_000_000).fit(l2(1.0), vector(3))
    with pytest.raises(BudgetInvalid, match="add up"):
        Gaussian(1.0, "shares", 10_000_000).fit(l2(1.0), vector(3))


def test_laplace_shares_beyond_their_table_are_refused():
    with pytest.raises(BudgetInvalid, match="16384"):
        Laplace(1.0, "shares", 3).fit(linf(1.0, unit="record"), vector(20_000))


@pytest.mark.parametrize(("at", "least"), [("shares", 0), ("server", 3), ("party", 3)])
def test_least_is_for_shares_and_only_for_them(at, least):
    with pytest.raises(BudgetInvalid, match="shares"):
        Skellam(1.0, at, least)


def test_a_unit_is_one_radius_from_its_absence_in_shares():
    assert Gaussian(2.0, "shares", 5).event(l2(1.0)).noise_multiplier == 2.0
    assert Skellam(2.0, "shares", 5).event(l2(1.0)).steps == 4096


def test_the_federation_releases_nothing_that_too_few_shares_protect():
    engine = InProcess(threads=1, dropped=("party 1", "party 2"))
    protected = federation(engine).protect(mechanism=Skellam(1.0, "shares", 5), aggregation=Hiding())
    with pytest.raises(BudgetInvalid, match="4 parties answered"):
        protected.sum(totals, bound={"sum": l2(5.0), "n": linf(30.0)})
    assert len(protected.ledger) == 1


def test_a_server_that_sees_who_answers_is_charged_for_everybody():
    protected = federation().protect(mechanism=Skellam(1.0, "shares", 1), aggregation=Hiding())
    protected.sample(rate=0.99).sum(totals, bound={"sum": l2(5.0), "n": linf(30.0)})
    assert protected.ledger.entries[-1].sampling.kind == "all"
