"""Local reports: unbiased estimates, exact chances, an attack that stays below epsilon, and twins that do not."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from hedgerow import l1, l2
from hedgerow.core import Federation, Parties
from hedgerow.core.arrays import Layout
from hedgerow.core.cohort import Cohort
from hedgerow.core.federation import handle, inside
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Schema
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import BudgetExhausted, BudgetInvalid
from hedgerow.privacy import Budget
from hedgerow.privacy.local import (
    Bloom,
    CountMeanSketch,
    HadamardSketch,
    KRandomisedResponse,
    OptimisedUnary,
    Rappor,
    Reports,
    SymmetricUnary,
)
from hedgerow.privacy.local.bits import Generalised, GeneralisedScheme, Unary
from hedgerow.privacy.local.chance import WORD, lie
from hedgerow.privacy.local.hashing import buckets
from hedgerow.privacy.local.reports import listed
from hedgerow.privacy.local.sketches import Sketch, transform
from hedgerow.stats import counts

FALSE_ALARM = 1e-6
ENCODINGS = [
    Generalised(),
    Generalised(nothing=True),
    Unary("symmetric"),
    Unary("optimised"),
    Bloom(bits=16, cohorts=4),
    Sketch(4, 32),
    Sketch(4, 32, hadamard=True),
]
NAMES = ["k-rr", "k-rr and nothing", "symmetric", "optimised", "bloom", "sketch", "hadamard"]
ORACLES = [KRandomisedResponse, SymmetricUnary, OptimisedUnary, Rappor, CountMeanSketch, HadamardSketch]


def table(size):
    return Layout((("", (size,)),))


def one_hot(values, levels):
    rows = np.zeros((len(values), levels))
    rows[np.arange(len(values)), values] = 1
    return rows


def shared(seed):
    """The entropy of all parties in turn: quick, and as good as one for each where only the law matters."""
    entropy = Streams(seed).entropy(1, "everybody", "noise")
    return lambda i: entropy


def released(mechanism, rows, seed, bound=None):
    bound = bound or l1(1)
    layout = table(rows.shape[1])
    left = mechanism.at_party(rows, bound, layout, shared(seed))
    return mechanism.at_server(left.sum(0, dtype=np.int64), bound, layout, None)


def patients(n, levels=10):
    """More of the first levels than of the last."""
    return (np.random.default_rng(0).random(n) ** 2 * levels).astype(int)


# ---- what a report tells ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("encoding", ENCODINGS, ids=NAMES)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, math.log(3), 2.0, 8.0, 20.0])
@pytest.mark.parametrize("levels", [2, 7])
def test_no_report_is_more_likely_under_another_value_than_epsilon_allows(encoding, epsilon, levels):
    """Computed in whole numbers from the words themselves: not beyond, and hardly below."""
    ratio = encoding.scheme(epsilon, levels).ratio()
    with localcontext() as context:
        context.prec = 60
        found, allowed = Decimal(ratio.numerator) / Decimal(ratio.denominator), Decimal(epsilon).exp()
        assert found <= allowed
        assert found > allowed * (1 - Decimal("1e-8"))


def test_golden_chances():
    scheme = Generalised().scheme(1.0, 10)
    assert scheme.truth / WORD == pytest.approx(0.231969316684, abs=1e-12)
    assert Sketch().scheme(2.0, 10).wrong == pytest.approx(0.268941421370, abs=1e-12)
    assert Sketch(hadamard=True).scheme(2.0, 10).wrong == pytest.approx(1 / (math.exp(2) + 1), abs=1e-12)


def test_every_word_gives_the_answer_that_the_ratio_counts():
    """The first and last word of each answer: their stretches are as long as claimed, and nothing is left over."""
    scheme = Generalised().scheme(1.0, 5)
    starts = [0, *(scheme.truth + j * scheme.lie for j in range(4)), WORD]
    answers = []
    for first, end in pairwise(starts):
        words = np.array([[[first]], [[end - 1]]], np.uint64)
        said = scheme.report(np.array([[2], [2]]), words).argmax(1)
        assert said[0] == said[1]
        answers.append(int(said[0]))
    assert answers[0] == 2
    assert sorted(answers) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["symmetric", "optimised"])
def test_every_bit_is_set_by_as_many_words_as_claimed(name):
    scheme = Unary(name).scheme(1.0, 3)
    for value, words_set in ((0, scheme.truth), (1, scheme.other), (3, scheme.other)):
        words = np.full((2, 1, 3), WORD - 1, np.uint64)
        words[:, 0, 0] = words_set - 1, words_set
        np.testing.assert_array_equal(scheme.report(np.full((2, 1), value), words)[:, 0], [1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [encoding.scheme(1.0, 6) for encoding in ENCODINGS], ids=NAMES)
def test_nothing_is_reported_as_the_estimate_expects(scheme):
    """Having no record counts for no level, or 1 / levels for each where k-ary randomised response has no word for it."""
    n = 40_000
    words = np.random.default_rng(1).integers(0, WORD, (n, 1, scheme.words), np.uint64)
    estimate = scheme.estimate(scheme.report(np.full((n, 1), 6), words).sum(0), n)
    expected = n / 6 if isinstance(scheme, GeneralisedScheme) and not scheme.nothing else 0.0
    deviation = np.sqrt(scheme.variance(np.r_[np.zeros(5), n]))[0]
    assert np.abs(estimate - expected).max() < stats.norm.isf(FALSE_ALARM / 12) * deviation * 1.2


# ---- what is estimated ------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("make", [KRandomisedResponse, SymmetricUnary, OptimisedUnary, Rappor])
def test_estimates_are_unbiased_with_the_declared_deviation(make):
    """The mean of 400 releases of 200 parties, level by level, and the sum of squares of one: a million to one each."""
    rows, runs = one_hot(patients(200), 10), 400
    mechanism = make(1.0)
    true, deviation = rows.sum(0), mechanism.deviation(rows.sum(0))
    found = np.array([released(mechanism, rows, seed) for seed in range(runs)])
    assert np.abs((found.mean(0) - true) / deviation * math.sqrt(runs)).max() < stats.norm.isf(FALSE_ALARM / 20)
    low, high = stats.chi2.interval(1 - FALSE_ALARM, runs)
    assert low < (((found[:, 0] - true[0]) / deviation[0]) ** 2).sum() < high


@pytest.mark.slow
@pytest.mark.parametrize("make", [CountMeanSketch, HadamardSketch])
def test_sketches_are_unbiased_over_hash_functions(make):
    rows, runs = one_hot(patients(200), 10), 400
    mechanisms = [make(1.0, hashes=4, width=32, salt=salt) for salt in range(runs)]
    true, deviation = rows.sum(0), mechanisms[0].deviation(rows.sum(0))
    found = np.array([released(mechanism, rows, salt) for salt, mechanism in enumerate(mechanisms)])
    assert np.abs((found.mean(0) - true) / deviation * math.sqrt(runs)).max() < stats.norm.isf(FALSE_ALARM / 20)
    squares = (((found - true) / deviation) ** 2).mean(0)
    assert np.abs(squares - 1).max() < 6 * math.sqrt(2 / runs)  # collisions have longer tails than a normal law


@pytest.mark.slow
@pytest.mark.parametrize("make", ORACLES)
def test_many_parties_are_counted_to_within_the_noise(make):
    rows = one_hot(patients(4000), 10)
    mechanism = make(4.0)
    z = (released(mechanism, rows, 3) - rows.sum(0)) / mechanism.deviation(rows.sum(0))
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 20)


def test_the_best_oracle_changes_with_the_number_of_levels():
    """Wang et al. 2017: k-ary randomised response below about 3 e^eps + 2 levels, the optimised unary encoding above."""
    few, many = np.full(4, 250.0), np.full(100, 10.0)
    assert KRandomisedResponse(1.0).deviation(few)[0] < OptimisedUnary(1.0).deviation(few)[0]
    assert KRandomisedResponse(1.0).deviation(many)[0] > OptimisedUnary(1.0).deviation(many)[0]
    assert OptimisedUnary(1.0).deviation(many)[0] < SymmetricUnary(1.0).deviation(many)[0]


def test_the_transform_is_that_of_the_matrix_of_signs():
    index = np.arange(8)
    signs = 1 - 2 * (np.bitwise_count(index[:, None] & index) % 2).astype(float)
    rows = np.random.default_rng(0).normal(size=(3, 8))
    np.testing.assert_allclose(transform(rows), rows @ signs)


def test_hash_functions_spread_levels_evenly_and_apart():
    places = buckets(3, 8, 6400, 64)
    for row in places:
        assert stats.chisquare(np.bincount(row, minlength=64)).pvalue > FALSE_ALARM / 8
    together = (places[0] == places[1]).mean()
    assert abs(together - 1 / 64) < 6 * math.sqrt(1 / 64 / 6400)


# ---- parties with any number of records -------------------------------------------------------------------------------
def test_every_party_makes_as_many_reports_whatever_it_holds():
    rows = np.array([[0.0, 0, 0], [1, 0, 0], [2, 3, 0], [9, 9, 9], [math.nan, 1, 0]])
    for make in (KRandomisedResponse, OptimisedUnary, Rappor, HadamardSketch):
        left = make(1.0, 5).at_party(rows, l1(1, "record"), table(3), shared(0))
        assert (left[:, -1] == 5).all()


def test_records_are_listed_one_by_one_and_too_many_are_drawn():
    rows = np.array([[2.0, 0, 1], [0, 0, 0], [40, 0, 40]])
    found = listed(rows, 4, [shared(seed)(0) for seed in range(3)])
    np.testing.assert_array_equal(found[:2], [[0, 0, 2, 3], [3, 3, 3, 3]])
    assert set(found[2]) <= {0, 2}
    many = np.array([listed(rows[2:], 4, [shared(seed)(0)])[0] for seed in range(500)])
    assert abs((many == 0).mean() - 0.5) < 5 * math.sqrt(0.25 / 2000)


def test_hospitals_are_counted_record_by_record():
    rows = np.random.default_rng(2).integers(0, 60, (8, 6)).astype(float)
    reports = int(rows.sum(1).max())
    missing = 8 * reports - rows.sum()
    for make in (KRandomisedResponse, SymmetricUnary, OptimisedUnary):
        mechanism = make(4.0, reports)
        z = (released(mechanism, rows, 1, l1(1, "record")) - rows.sum(0)) / mechanism.deviation(np.r_[rows.sum(0), missing])[:6]
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 12) * 1.1


@pytest.mark.slow
def test_a_party_level_report_estimates_the_clipped_table():
    rows = np.array([[3.0, 1, 0], [0.5, 0, 0], [0, 0, 0]])
    clipped = np.array([0.75 + 0.5, 0.25, 0.0])
    found = np.array([released(OptimisedUnary(4.0), rows, seed) for seed in range(4000)])
    error = found.std(0) / math.sqrt(len(found))
    assert np.abs((found.mean(0) - clipped) / error).max() < stats.norm.isf(FALSE_ALARM / 6)


# ---- on engines, in ledgers -------------------------------------------------------------------------------------------
def clinics(engine, sizes, seed=0):
    n = sum(sizes)
    rng = np.random.default_rng(1)
    columns = {"stage": rng.integers(0, 3, n).astype(np.int16), "smoker": (rng.random(n) < 0.4).astype(float)}
    schema = Schema((Column("stage", "category", levels=("I", "II", "III")), Column("smoker", "binary")))
    held = Parties([f"party {i}" for i in range(len(sizes))], columns, sizes)
    return Federation(engine.hosting(held), schema, streams=Streams(seed))


@pytest.mark.parametrize("make", ORACLES)
@pytest.mark.parametrize("sizes", [[1] * 40, [3, 1, 7, 2]], ids=["one-record", "hospitals"])
def test_every_engine_releases_the_same(make, sizes):
    found = [
        counts(clinics(engine, sizes).protect(mechanism=make(2.0, 4)))["count"].to_numpy()
        for engine in (Loop(), InProcess(threads=1), InProcess(threads=2))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_the_ledger_has_epsilon_once_for_all_columns_and_no_amplification():
    fed = clinics(Loop(), [1] * 30).within(Budget(1.0, 1e-6, unit="record"))
    counts(fed.sample(rate=0.5).protect(mechanism=KRandomisedResponse(1.0, records=1)))
    [entry] = fed.ledger.entries
    assert (entry.event.kind, entry.event.epsilon, entry.unit, entry.cohort) == ("pure", 1.0, "record", 0)
    assert str(entry.sampling) == "all parties"
    with pytest.raises(BudgetExhausted):
        counts(fed.protect(mechanism=KRandomisedResponse(0.1, records=1)))


def test_columns_share_epsilon():
    one, both = KRandomisedResponse(2.0, 1), Layout((("a", (3,)), ("b", (2,))))
    parts = one._plan(dict.fromkeys("ab", l1(1, "record")), both)
    assert [part.scheme for part in parts] == [Generalised().scheme(1.0, 3), Generalised().scheme(1.0, 2)]


def test_gathered_estimates_add_up_to_the_sum():
    made = [clinics(InProcess(threads=1), [1] * 20).protect(clip=l1(1), mechanism=OptimisedUnary(3.0)) for _ in range(2)]
    total = made[0].sum(stages)
    np.testing.assert_allclose(sum(made[1].gather(stages).values()), total)


def stages(broadcast, party, rng):
    return np.bincount(party["stage"], weights=party.w, minlength=3)


def test_an_empty_cohort_releases_zeros():
    fed = clinics(Loop(), [1] * 3).protect(clip=l1(1), mechanism=HadamardSketch(1.0))
    np.testing.assert_array_equal(handle(inside(fed)._replace(cohort=Cohort(number=1))).sum(stages), np.zeros(3))


# ---- refusals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", ORACLES)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 21.0, 1e-5])
def test_an_epsilon_that_hides_nothing_or_nobody_is_refused(make, epsilon):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        make(epsilon)


@pytest.mark.parametrize(
    ("mechanism", "bound", "size", "words"),
    [
        (KRandomisedResponse(1.0), l1(1, "record"), 3, "records=1"),
        (KRandomisedResponse(1.0, 5), l1(1), 3, "Leave records out"),
        (KRandomisedResponse(1.0), l2(1), 3, "one level of a table"),
        (KRandomisedResponse(1.0, 1), l1(2, "record"), 3, "one level of a table"),
        (KRandomisedResponse(1.0), l1(1), 1, "RandomisedResponse"),
        (Rappor(1.0, bloom=Bloom(bits=4, cohorts=2)), l1(1), 20, "cannot be told apart"),
    ],
    ids=["unknown-records", "records-per-party", "l2", "heavy-record", "one-level", "bloom-too-small"],
)
def test_a_table_that_cannot_be_reported_is_refused_before_anybody_is_asked(mechanism, bound, size, words):
    with pytest.raises(BudgetInvalid, match=words):
        mechanism.fit(bound, table(size))


@pytest.mark.parametrize("wrong", [{"hashes": 0}, {"width": 1}, {"width": 100, "hadamard": True}, {"salt": -1}])
def test_sketches_have_a_lawful_shape(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Sketch(**wrong)


@pytest.mark.parametrize("wrong", [{"bits": 1}, {"hashes": 0}, {"hashes": 65}, {"cohorts": 0}, {"salt": -1}])
def test_bloom_filters_have_a_lawful_shape(wrong):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        Bloom(**wrong)


# ---- an attack, and twins that are wrong on purpose --------------------------------------------------------------------
def lower_bound(scheme, trials=100_000, confidence=1 - FALSE_ALARM):
    """Epsilon that an attacker proves from reports about levels 0 and 1, by the event that tells them apart best.

    The event is chosen on one half of the reports; Clopper-Pearson on the other half.
    """
    seen = []
    for value in (0, 1):
        words = np.random.default_rng(value).integers(0, WORD, (trials, 1, scheme.words), np.uint64)
        reports = scheme.report(np.full((trials, 1), value), words)
        seen.append(reports @ (3 ** np.arange(reports.shape[1])))
    half = trials // 2
    kinds = np.unique(np.concatenate([one[:half] for one in seen]))
    often = [np.array([(one[:half] == kind).sum() for kind in kinds]) for one in seen]
    best = kinds[np.argmax((often[0] + 1) / (often[1] + 20))]
    hits = [int((one[half:] == best).sum()) for one in seen]
    tail = (1 - confidence) / 2
    low = stats.beta.ppf(tail, hits[0], half - hits[0] + 1) if hits[0] else 0.0
    return math.log(max(low, 1e-12) / stats.beta.isf(tail, hits[1] + 1, half - hits[1]))


SMALL = [
    Generalised(),
    Unary("symmetric"),
    Unary("optimised"),
    Bloom(bits=4, hashes=1, cohorts=2, salt=1),
    Sketch(1, 4),
    Sketch(2, 4, hadamard=True, salt=2),
]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", SMALL, ids=str)
def test_an_attacker_stays_below_epsilon(encoding):
    assert 0.4 < lower_bound(encoding.scheme(1.0, 4)) < 1.0


@pytest.mark.slow
def test_k_ary_randomised_response_with_the_chances_of_a_binary_one_is_caught():
    """The truth with e^eps / (e^eps + 1), the rest divided among all others: its lies are far too rare."""
    twin = GeneralisedScheme(4, lie(1.0, 2) // 3)
    assert lower_bound(twin) > 1.0
    assert twin.ratio() > Fraction(math.exp(1.0)) * 2


@pytest.mark.slow
def test_a_unary_encoding_that_spends_epsilon_on_every_bit_is_caught():
    """Two bits differ: each at epsilon makes twice epsilon together."""
    honest = Unary("symmetric").scheme(1.0, 4)
    twin = Unary("symmetric").scheme(2.0, 4)
    assert lower_bound(honest) < 1.0 < lower_bound(twin)


def test_reports_that_follow_the_number_of_records_are_caught():
    """A twin that reports each record and no nothing: how many reports there are tells neighbours apart for certain."""
    rows = np.array([[2.0, 0, 1], [2.0, 0, 0]])
    honest = KRandomisedResponse(1.0, 3).at_party(rows, l1(1, "record"), table(3), shared(0))
    twin = [Reports(Generalised(), 1.0, int(row.sum())) for row in rows]
    said = [one.at_party(row[None], l1(1, "record"), table(3), shared(0)) for one, row in zip(twin, rows, strict=True)]
    assert honest[0, -1] == honest[1, -1]
    assert said[0][0, -1] != said[1][0, -1]


def test_a_record_more_is_one_report_more_at_most_whatever_the_weights():
    """Rounding half to even would make two of one: a half is none, and one and a half are two."""
    levels, n = 3, 4
    for before in np.arange(0, 3, 0.25):
        held = [listed(np.array([[weight, 0.0, 0.0]]), n, [lambda k: bytes(k)])[0] for weight in (before, before + 1.0)]
        reports = [(one < levels).sum() for one in held]
        assert reports[1] - reports[0] <= 1
