"""Neighbours: one record moves every sum by at most its declared bound."""

import inspect
from functools import partial

import numpy as np
import pytest
from clinic import SCHEMA
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core import Bound, Party
from hedgerow.stats import Design, bisection, centred_sums, design, newton
from hedgerow.stats.columns import heaviest, range_of
from hedgerow.stats.counts import bin_counts, count_bound, level_counts, pair_counts
from hedgerow.stats.glm import EVERYTHING
from hedgerow.stats.linear.losses import LOSSES
from hedgerow.stats.linear.reach import Reach
from hedgerow.stats.linear.sums import linear_sums
from hedgerow.stats.moments import deviation_bounds, deviations
from hedgerow.stats.noisy import BOUNDED
from hedgerow.stats.quantiles import below_bounds, counts_below

WEIGHTED = SCHEMA.with_roles(weight="copies")
NUMBERS = ("age", "visits", "smoker", "pain")


def extremes(column):
    """Values of a column, its ends more often than not."""
    if column.kind == "category":
        return st.integers(0, len(column.levels) - 1)
    low, high = (float(end) for end in range_of(column) or (-9, 9))
    return st.sampled_from([low, high]) | (st.floats(low, high) if column.kind == "number" else st.sampled_from([low, high]))


records = st.fixed_dictionaries({column.name: extremes(column) for column in WEIGHTED})


def party(record, spec=None):
    """A party of one record, weighted by its copies, prepared with a design."""
    columns = {name: np.array([value]) for name, value in record.items()}
    prepared = {} if spec is None else design(columns, spec=spec)
    return Party("neighbour", columns | prepared, np.array([record["copies"]], dtype=float))


def assert_within(contribution, bounds):
    """What one record adds is what its presence moves, since every sum adds over records."""
    bounds = {None: bounds} if isinstance(bounds, Bound) else bounds
    contribution = contribution if isinstance(contribution, dict) else {None: contribution}
    assert set(contribution) == set(bounds)
    for key, bound in bounds.items():
        assert bound.unit == "record"
        size = bound.size(np.reshape(contribution[key], (1, -1))).item()
        assert size <= bound.radius * (1 + 1e-9), f"{key}: {size} exceeds {bound}"


@pytest.mark.parametrize("cross", [False, True])
@settings(deadline=None, max_examples=60)
@given(record=records, where=st.floats(0, 1))
def test_moments_and_products(cross, record, where):
    columns = [WEIGHTED[name] for name in NUMBERS]
    centre = np.array([(c.low or 0) * (1 - where) + (c.high or 1) * where for c in columns])
    found = deviations(centre, party(record), None, columns=NUMBERS, cross=cross)
    assert_within(found, deviation_bounds(centre, columns, heaviest(WEIGHTED), cross=cross))


@settings(deadline=None, max_examples=60)
@given(record=records, thresholds=st.lists(st.floats(18, 90), min_size=1, max_size=4))
def test_counts_below_thresholds(record, thresholds):
    assert_within(counts_below(np.array(thresholds), party(record), None, column="age"), below_bounds(heaviest(WEIGHTED)))


@settings(deadline=None, max_examples=60)
@given(record=records)
def test_counts(record):
    bound = count_bound(heaviest(WEIGHTED))
    sizes = (("stage", 3), ("smoker", 2))
    assert_within(level_counts(None, party(record), None, sizes=sizes), {"stage": bound, "smoker": bound})
    assert_within(pair_counts(None, party(record), None, pair=("stage", "arm"), shape=(3, 2)), bound)
    assert_within(bin_counts(np.array([18.0, 40, 90]), party(record), None, column="age"), bound)


FORMULAS = ["ill ~ age + stage * smoker + log(dose)", "ill ~ 0 + stage:visits + I(pain ** 2) + arm"]
LOGISTIC = [spec for read in (Design.of(formula, WEIGHTED) for formula in FORMULAS) for spec in (read, read.to_unit())]
LINEAR = Design.of("pain ~ age + stage", WEIGHTED, offset="exposure").to_unit()


@pytest.mark.parametrize("spec", LOGISTIC)
@settings(deadline=None, max_examples=60)
@given(record=records, beta=st.lists(st.floats(-3, 3), min_size=8, max_size=8))
def test_score_and_information_at_any_coefficients(spec, record, beta):
    ask = partial(linear_sums, loss="binomial", keys=BOUNDED["binomial"])
    found = ask({"beta": np.array(beta[: spec.size])}, party(record, spec), None)
    assert_within(found, noise_bounds(spec, "binomial"))


def noise_bounds(spec, loss):
    reach = Reach.by_length(spec, np.zeros(spec.size))
    return reach and reach.bounds(LOSSES[loss], BOUNDED[loss], lengths=True, slack=1.0)


@settings(deadline=None, max_examples=60)
@given(record=records)
def test_least_squares_at_zero(record):
    ask = partial(linear_sums, loss="gaussian", keys=BOUNDED["gaussian"])
    found = ask({"beta": np.zeros(LINEAR.size)}, party(record, LINEAR), None)
    assert_within(found, noise_bounds(LINEAR, "gaussian"))


def test_what_has_no_declared_range_has_no_bound():
    undeclared = WEIGHTED["open"]
    assert deviation_bounds(np.zeros(1), [undeclared], 1.0, cross=False) is None
    assert noise_bounds(Design.of("ill ~ open", WEIGHTED), "binomial") is None
    assert noise_bounds(Design.of("open ~ age", WEIGHTED), "gaussian") is None
    assert noise_bounds(Design.of("ill ~ age", SCHEMA, weights="open"), "binomial") is None
    assert below_bounds(None) is None
    assert count_bound(None) is None


# ---- what every local function promises -----------------------------------------------------------------------------
LOCALS = {
    "deviations": (partial(deviations, columns=NUMBERS, cross=True), np.zeros(4)),
    "level_counts": (partial(level_counts, sizes=(("stage", 3),)), None),
    "pair_counts": (partial(pair_counts, pair=("stage", "arm"), shape=(3, 2)), None),
    "bin_counts": (partial(bin_counts, column="age"), np.array([18.0, 50, 90])),
    "counts_below": (partial(counts_below, column="age"), np.array([30.0, 60])),
    "binomial": (partial(linear_sums, loss="binomial", keys=EVERYTHING), {"beta": np.full(5, 0.01), "centre": np.array(0.3)}),
    "gaussian": (partial(linear_sums, loss="gaussian", keys=EVERYTHING), {"beta": np.full(5, 0.01), "centre": np.array(0.3)}),
}


@pytest.mark.parametrize(("ask", "broadcast"), LOCALS.values(), ids=LOCALS)
def test_stacked_parties_add_up_like_single_ones_and_padding_counts_nothing(ask, broadcast):
    rng = np.random.default_rng(0)
    columns = SCHEMA.synthetic(24, rng)
    columns |= design(columns, spec=Design.of("ill ~ age + stage + dose", SCHEMA))
    w = rng.integers(0, 3, 24).astype(float)
    stacked = Party("2 parties", {k: c.reshape(2, 12, *c.shape[1:]) for k, c in columns.items()}, w.reshape(2, 12))
    alone = [Party("one", {k: c[part] for k, c in columns.items()}, w[part]) for part in (slice(0, 12), slice(12, 24))]
    nothing = Party("padding", columns, np.zeros(24))
    together, single = as_dict(ask(broadcast, stacked, None)), [as_dict(ask(broadcast, one, None)) for one in alone]
    for key, found in together.items():
        np.testing.assert_allclose(found, np.stack([one[key] for one in single]), rtol=1e-12, atol=1e-12)
        assert not np.any(as_dict(ask(broadcast, nothing, None))[key])
    assert ask.func.additive
    assert ask.func.stackable


def as_dict(contribution):
    return contribution if isinstance(contribution, dict) else {"": contribution}


def test_programs_are_generators_of_states():
    for program in (bisection, centred_sums, newton):
        assert inspect.signature(program).parameters["start"].default is None
