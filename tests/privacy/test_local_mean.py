"""Signs: a yes or no, and means of vectors, unbiased and as private as they say."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hedgerow import l1, l2, linf
from hedgerow.core import Federation, Parties
from hedgerow.core.arrays import Layout
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.local import Duchi, RandomisedResponse
from hedgerow.privacy.local.chance import WORD
from hedgerow.privacy.local.mean import agreement

FALSE_ALARM = 1e-6


def flat(size):
    return Layout((("", (size,)),))


def released(mechanism, rows, seed, bound):
    entropy = Streams(seed).entropy(1, "everybody", "noise")
    left = mechanism.at_party(rows, bound, flat(rows.shape[1]), lambda i: entropy)
    return mechanism.at_server(left.sum(0, dtype=np.int64), bound, flat(rows.shape[1]), None)


def at_most(ratio, epsilon):
    """Whether a ratio of whole numbers is at most e^epsilon, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()


def law(mechanism, row):
    """The exact chance of every vector of signs, from the words: over rounded signs, drawn signs, and honesty."""
    size = len(row)
    wrong = Fraction(mechanism.wrong(size), WORD)
    chances = dict.fromkeys(itertools.product((-1, 1), repeat=size), Fraction(0))
    for wanted in chances:
        rounding = math.prod((1 + Fraction(x) * v) / 2 for x, v in zip(row, wanted, strict=True))
        for drawn in chances:
            agreement = sum(t * v for t, v in zip(drawn, wanted, strict=True))
            for honest, chance in ((1, 1 - wrong), (-1, wrong)):
                said = tuple(-t for t in drawn) if agreement * honest < 0 else drawn
                chances[said] += rounding * chance * Fraction(1, 2**size)
    return chances


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_law_of_a_mean_is_private_and_unbiased(size):
    """Exactly: the ratio of chances under any two corners of the cube, and the expectation of the release inside it."""
    mechanism = Duchi(1.0)
    laws = [law(mechanism, corner) for corner in itertools.product((-1, 1), repeat=size)]
    worst = max(one[said] / other[said] for one in laws for other in laws for said in one)
    assert at_most(worst, 1.0)
    assert float(worst) == pytest.approx(math.exp(1.0), rel=1e-12)
    row = [Fraction(k, 7) for k in (3, -5, 0, 7)][:size]
    for j in range(size):
        expected = sum(chance * said[j] for said, chance in law(mechanism, row).items()) * Fraction(mechanism.factor(size))
        assert float(expected) == pytest.approx(float(row[j]), abs=1e-12)


@pytest.mark.slow
def test_signs_follow_the_law():
    """Chi-square of the drawn vectors against the exact law, at one false alarm in a million."""
    row, n = [Fraction(1, 2), Fraction(-1, 4), Fraction(1)], 40_000
    words = np.random.default_rng(0).integers(0, WORD, (n, 7), np.uint64)
    drawn = Duchi(1.0).signs(np.tile(np.array(row, float), (n, 1)), words)
    expected = law(Duchi(1.0), row)
    codes = [tuple(int(s) for s in said) for said in drawn]
    seen = np.array([codes.count(said) for said in expected])
    assert stats.chisquare(seen, np.array([float(chance) for chance in expected.values()]) * n).pvalue > FALSE_ALARM


@pytest.mark.parametrize("size", range(1, 12))
def test_agreement_is_that_of_random_signs(size):
    sums = [abs(2 * k - size) * math.comb(size, k) for k in range(size + 1)]
    assert agreement(size) == pytest.approx(sum(sums) / 2**size / size, rel=1e-12)
    duchi = (2 ** (size - 1) + (size % 2 == 0) * math.comb(size, size // 2) / 2) / math.comb(
        size - 1, (size - 1) // 2 + (size % 2 == 0)
    )
    assert 1 / agreement(size) <= duchi * (1 + 1e-12)  # never more noise than the publication's constant
    assert size % 2 == 0 or 1 / agreement(size) == pytest.approx(duchi)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "low"), [(Duchi(1.0), -2.0), (RandomisedResponse(3.0), 0.0)], ids=["mean", "yes-no"])
def test_totals_are_unbiased_and_deviate_no_more_than_declared(mechanism, low):
    rows = np.random.default_rng(1).uniform(low, 2.0, (300, 3))
    found = np.array([released(mechanism, rows, seed, linf(2.0)) for seed in range(500)])
    deviation = mechanism.deviation(300, 3, 2.0)
    assert np.abs((found.mean(0) - rows.sum(0)) / deviation * math.sqrt(500)).max() < stats.norm.isf(FALSE_ALARM / 6)
    assert (found.std(0) / deviation).max() < math.sqrt(stats.chi2.isf(FALSE_ALARM, 500) / 500)


def test_randomised_response_lies_as_rarely_as_allowed():
    for epsilon in (0.5, math.log(3), 5.0):
        assert at_most(RandomisedResponse(epsilon).ratio(1), epsilon)
        assert float(RandomisedResponse(epsilon).ratio(1)) == pytest.approx(math.exp(epsilon))
    assert RandomisedResponse(math.log(3)).wrong(1) / WORD == pytest.approx(0.25)
    assert float(RandomisedResponse(2.0).ratio(4)) == pytest.approx(math.exp(2.0))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [Duchi(1.0), RandomisedResponse(1.0)], ids=["mean", "yes-no"])
def test_an_attacker_stays_below_epsilon_and_catches_a_twin(mechanism):
    """Guess a party's sign: Clopper-Pearson, one false alarm in a million. The twin forgets that it has two numbers."""

    def lower_bound(mechanism, size, trials=60_000):
        words = np.random.default_rng(5).integers(0, WORD, (2, trials, 2 * size + 1), np.uint64)
        floor = 0.0 if mechanism.law == "yes or no" else -1.0
        ones = [
            (mechanism.signs(np.full((trials, size), x), w) > 0).all(1).sum() for x, w in zip((1.0, floor), words, strict=True)
        ]
        low = stats.beta.ppf(FALSE_ALARM / 2, ones[0], trials - ones[0] + 1)
        return math.log(low / stats.beta.isf(FALSE_ALARM / 2, ones[1] + 1, trials - ones[1]))

    assert 0.6 < lower_bound(mechanism, 1) < 1.0
    assert lower_bound(mechanism, 2) < 1.0
    assert lower_bound(RandomisedResponse(2.0), 2) > 1.0


def share(broadcast, party, rng):
    return np.array([party["x"].mean(), -party["x"].mean()])


@pytest.mark.parametrize("make", [Duchi, RandomisedResponse])
def test_every_engine_releases_the_same(make):
    held = Parties([f"party {i}" for i in range(9)], {"x": np.linspace(0, 1, 18)}, [2] * 9)
    found = []
    for engine in (Loop(), InProcess(threads=2)):
        fed = Federation(engine.hosting(held), Schema((Column("x", "number"),)), streams=Streams(4)).protect(
            clip=linf(1.0), mechanism=make(1.0)
        )
        found.append(fed.sum(share))
        assert str(fed.ledger.entries[0].event) == "pure(1)"
    np.testing.assert_array_equal(*found)


def test_a_row_that_is_not_finite_or_too_long_says_as_little():
    rows = np.array([[math.nan, 1.0], [1e300, -1e300], [math.inf, 0.0]])
    left = Duchi(1.0).at_party(rows, linf(1.0), flat(2), lambda i: Streams(i).entropy(1, "p", "noise"))
    assert set(left.ravel()) <= {-1, 1}
    assert np.isfinite(released(Duchi(1.0), rows, 0, linf(1.0))).all()


@pytest.mark.parametrize(
    ("mechanism", "bound"),
    [(Duchi(1.0), l2(1.0)), (Duchi(1.0), l1(1.0)), (Duchi(1.0), linf(1.0, "record")), (Duchi(1.0), {"": linf(1.0)})],
    ids=["l2", "l1", "record", "several"],
)
def test_bounds_that_signs_do_not_keep_are_refused(mechanism, bound):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        mechanism.fit(bound, flat(2))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 30.0])
@pytest.mark.parametrize("make", [Duchi, RandomisedResponse])
def test_an_epsilon_that_hides_nothing_or_nobody_is_refused(make, epsilon):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        make(epsilon)
    with pytest.raises(BudgetInvalid, match="cannot be taken apart"):
        make(1.0, records=2)
