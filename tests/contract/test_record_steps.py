"""One record more adds its own whole steps behind noise, for every program of the catalogue; nobody lists them here."""

from functools import lru_cache, partial

import numpy as np
import pytest
import torch

from hedgerow import Gaussian, Laplace
from hedgerow.core.bound import Bound, l2, linf
from hedgerow.core.party import Party
from hedgerow.core.question import Question, local
from hedgerow.core.records import held_to_bounds, in_whole_steps, record_by_record
from hedgerow.core.release import Release
from hedgerow.core.whole import held, in_steps, linear, whole
from hedgerow.data import load
from hedgerow.privacy.mechanisms import Geometric
from hedgerow.study import PROGRAMS
from hedgerow.testing.records import apart, asked_behind, violations
from hedgerow.testing.subject import Subject

LAWS = {"gaussian": Gaussian(0.01), "laplace": Laplace(0.01), "geometric": Geometric(1.0)}


@lru_cache
def subject(name):
    return Subject(PROGRAMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_record_more_adds_its_own_steps_and_nothing_else(name, law):
    asked = asked_behind(LAWS[law], subject(name))
    for one, question, release in asked:
        assert apart(question), one.name
        assert (one.name, violations(question, release, subject(name).case.table)) == (one.name, [])


@pytest.mark.slow
def test_the_programs_that_are_known_to_ask_such_sums_do():
    found = {one.name.partition(":")[2] for name in KNOWN for one, *_ in asked_behind(LAWS["gaussian"], subject(name))}
    expected = {"linear_sums", "deviations", "scaled_deviations", "level_counts", "pair_counts", "bin_counts", "counts_below"}
    assert expected | {"histogram", "survival_tally", "linear_terms"} <= found


KNOWN = (
    "logistic_regression",
    "linear_regression",
    "gradient_descent",
    "moments",
    "means",
    "counts",
    "contingency",
    "histogram",
    "quantiles",
    "survival_counts",
    "decision_tree",
    "hidden_gradient_descent",
)


# ---- twins ----------------------------------------------------------------------------------------------------------
@local(additive=True, stackable=True)
def squares(broadcast, party, rng):
    """A sum as one would write it."""
    x = np.stack([party["bmi"], party["bp"]], axis=-1) * broadcast
    return (party.w[..., None] * x * x).sum(-2)


@local(additive=True, stackable=True)
def about_their_mean(broadcast, party, rng):
    """No sum over records: a record moves the others."""
    x = np.stack([party["bmi"], party["bp"]], axis=-1) * broadcast
    return (x - x.mean(-2, keepdims=True)).sum(-2)


TABLE = load("diabetes").take(range(200))
ASKED = Question("sum", squares, np.array([0.01, 0.005]))
RELEASE = in_whole_steps(Release(bounds=l2(1.0, "record"), mechanism=Gaussian(1.0)), ASKED)


def rounded_after_adding(question, release):
    """A twin: the total is in whole steps, and what a record adds is not."""
    return partial(afterwards, ask=question.local, bounds=release.bounds)


def afterwards(broadcast, party, rng, *, ask, bounds):
    return np.rint(ask(broadcast, party, rng) / bounds.step) * bounds.step


def not_held(question, release):
    """A twin: whole steps, and no bound."""
    return partial(record_by_record, ask=question.local, bounds=l2(1e6, "record", release.bounds.step))


@pytest.mark.slow
def test_a_sum_as_one_would_write_it_adds_whole_steps():
    assert violations(ASKED, RELEASE, TABLE) == []


@pytest.mark.slow
def test_twins_are_caught():
    assert violations(ASKED, RELEASE, TABLE, ask=rounded_after_adding, sizes=(17,))
    far = Question("sum", squares, np.array([1.0, 1.0]))
    assert violations(far, RELEASE, TABLE, sizes=(1,)) == []
    assert violations(far, RELEASE, TABLE, ask=not_held, sizes=(1,))


@local(additive=True, stackable=True, holds=True)
def on_one_side(beta, party, rng, *, exact, bounds=None):
    """Count the records on one side of a plane."""
    eta = linear(party["X"], beta, exact=True) if exact else party["X"] @ beta
    return held(party.w, bounds)[..., eta > 0].sum(-1)


def test_a_product_of_matrices_lets_one_record_change_the_side_of_the_others():
    """Copies of a record on the plane: their side follows from how many they are, unless columns are added one by one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 37))
    beta = rng.normal(size=37)
    X[:, -1] -= X @ beta / beta[-1]
    caught = 0
    for x in X:
        few, many = (counted_alike(x, beta, n, exact=False) for n in (3, 4))
        caught += few != many
        assert counted_alike(x, beta, 3, exact=True) == counted_alike(x, beta, 4, exact=True)
    if not caught:
        pytest.skip("the products of this machine have one pattern of bits for these shapes")


def counted_alike(x, beta, n, *, exact):
    """The share of n copies of a record that is counted."""
    party = Party("copies", {"X": np.tile(x, (n, 1))}, np.ones(n))
    return on_one_side(beta, party, None, exact=exact, bounds=linf(1.0, "record")) / n


def test_a_float_sum_is_in_no_whole_steps_and_caught(caplog):
    assert violations(ASKED, RELEASE, TABLE, ask=lambda question, release: question.local)
    assert "not in whole steps" in caplog.text


@local(additive=True, stackable=True)
def above(broadcast, party, rng):
    """One where a score is above its threshold, else minus one: a product of matrices, of which a last bit decides."""
    found = torch.from_numpy(np.ascontiguousarray(party["x"]).astype(np.float32)) @ LAYER
    return (party.w[..., None] * np.where(found.numpy() > broadcast, 1.0, -1.0)).sum(-2)


@local(additive=True, stackable=True, rowwise=True)
def above_at_once(broadcast, party, rng):
    """A twin: wide chunks, of which the library makes one product."""
    return above(broadcast, party, rng)


LAYER = torch.from_numpy(np.random.default_rng(1).normal(size=(30, 16)).astype(np.float32))


def turning(function):
    """How many bounds three and four copies of a record lie apart, at most, over records whose scores are thresholds."""
    farthest, rng = 0.0, np.random.default_rng(0)
    for _ in range(100):
        x = rng.uniform(-1, 1, 30)
        three, four = (np.tile(x, (n, 1)) for n in (3, 4))
        scores = [(torch.from_numpy(some.astype(np.float32)) @ LAYER).numpy()[0].astype(float) for some in (three, four)]
        question = Question("sum", function, np.minimum(*scores))
        release = in_whole_steps(Release(bounds=l2(4.0, "record"), mechanism=Gaussian(1.0)), question)
        ask = held_to_bounds(question, release)
        sums = [ask(question.broadcast, Party("copies", {"x": some}, np.ones(len(some))), None) for some in (three, four)]
        farthest = max(farthest, float(np.linalg.norm(sums[1] - sums[0])) / 4.0)
    return farthest


def test_a_product_of_matrices_is_asked_about_one_record_a_call():
    assert turning(above) <= 1
    if turning(above_at_once) <= 1:
        pytest.skip("the products of this machine have one pattern of bits for these shapes")


@pytest.mark.slow
def test_what_records_add_follows_from_each_alone():
    """Asked about each record alone, a function that is no sum has nothing to say of the others."""
    question = Question("sum", about_their_mean, np.array([0.01, 0.005]))
    assert violations(question, RELEASE, TABLE) == []
    assert held_to_bounds(question, RELEASE).func is record_by_record


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_rows_are_shortened_in_whole_numbers_and_short_ones_are_rounded(norm):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 7)) * rng.choice([0.1, 1.0, 1e9], size=(2000, 1))
    bound = in_steps(Bound(norm, 1.3, "record"))
    steps = whole(rows, bound) / bound.step
    limit = bound.radius / bound.step
    assert (steps == np.rint(steps)).all()
    for row, made in zip(rows, steps, strict=True):
        numbers = [abs(int(k)) for k in made]
        length = {1: sum(numbers), 2: sum(k * k for k in numbers) ** 0.5, np.inf: max(numbers)}[norm]
        assert length <= limit
        if np.linalg.norm(row, norm) < bound.radius * (1 - 1e-6):
            np.testing.assert_array_equal(made, np.rint(row / bound.step))
        else:
            assert length > limit * (1 - 1e-6)
    lost = whole(np.array([[np.nan, 1.0], [np.inf, 0.0], [1e308, 1e308]]), bound)
    assert not lost[:2].any()
