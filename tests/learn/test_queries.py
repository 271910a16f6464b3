"""Gradient queries: bounds by brute force, the loop by hand, optima, refusals, engines."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.errors import BudgetExhausted, BudgetInvalid, SettingsInvalid, UnboundedSum
from hedgerow.learn.queries import (
    Inputs,
    QueryLoss,
    Steps,
    answers_for,
    gradient,
    gradient_queries,
    inputs,
    length_of,
    loss_of,
    noiseless,
    optimum,
    partial_gradient,
    pooled,
    relative_fitness,
)
from hedgerow.learn.queries.inputs import buckets
from helpers import ENGINE_NAMES, ENGINES

KINDS = ["squared", "logistic", "hinge"]
BOXED = Inputs(("a", "b", "c"), "t", (0.0,) * 3, (1.0,) * 3)
BALL = replace(BOXED, radius=1.0)
SHAPES = {
    "box": BOXED,
    "ball": BALL,
    "box and constant": replace(BOXED, constant=0.5),
    "ball and constant": replace(BALL, constant=1.0),
}
STEPS = {
    "algorithm-1": Steps("algorithm-1", 300.0, 2.0),
    "algorithm-2": Steps("algorithm-2", 0.4, 2.0),
    "strongly-convex": Steps("strongly-convex", 0.4, 2.0, convexity=0.1),
}
ROUNDS = 12


def table(n=60, classes=False, weight=False):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n, 3))
    y = x @ [0.5, -0.4, 0.1] + rng.normal(scale=0.2, size=n)
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "t": (y > 0).astype(float) if classes else np.clip(y, -1, 1)}
    made = [hr.data.Column(name, "number", low=-1, high=1) for name in "abc"]
    target = (
        hr.data.Column("t", "binary", role="target") if classes else hr.data.Column("t", "number", "target", low=-1, high=1)
    )
    if weight:
        columns["w"] = rng.integers(1, 4, n).astype(float)
        made.append(hr.data.Column("w", "number", "weight", low=0, high=3))
    schema = hr.data.Schema((*made, target))
    return hr.data.Table(schema.admit(columns), schema)


def federation(engine=None, **kwargs):
    return hr.simulate(table(**kwargs), hr.data.iid(parties=3), seed=0, engine=engine)


def told(fed, rounds=ROUNDS, kind="squared", steps="algorithm-2", **more):
    classes = kind != "squared"
    spec = replace(BOXED, classes=classes)
    return gradient_queries(fed, loss=QueryLoss(kind, 0.1), spec=spec, n_records=60, rounds=rounds, steps=STEPS[steps], **more)


def planned(fed, epsilons=2.0, horizon=ROUNDS, **more):
    each = dict.fromkeys(fed.names, epsilons) if isinstance(epsilons, float) else epsilons
    return answers_for(fed.schema, each, horizon, QueryLoss("squared", 0.1), BOXED, 2.0, **more)


# ---- bounds ---------------------------------------------------------------------------------------------------------
def corners(spec, width=3):
    """The longest rows: corners of the box, or of the ball the points where all coordinates are equal and the axes."""
    signs = np.array(list(product([-1.0, 1.0], repeat=width)))
    rows = signs if spec.radius is None else np.vstack([signs / np.sqrt(width), np.eye(width)])
    return np.column_stack([rows, np.full(len(rows), spec.constant)]) if spec.constant else rows


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_the_longest_gradient_of_all_corners(kind, shape, norm):
    loss, spec, box = QueryLoss(kind), SHAPES[shape], 1.5
    longest = 0.0
    for x, theta, y in product(corners(spec), product([-box, box], repeat=spec.size), [-1.0, 1.0]):
        found = loss.gradient_sums(np.array(theta), x[None], np.array([y]), np.ones(1))
        longest = max(longest, np.linalg.norm(found, ord=norm))
    bound = length_of(loss, spec, box, norm)
    assert longest <= bound * (1 + 1e-12)
    reached = 1 / (1 + np.exp(-spec.length(1) * box)) if kind == "logistic" else 1.0  # a slope of 1 is never quite reached
    assert longest == pytest.approx(reached * bound, rel=1e-12)


def test_the_squared_loss_is_bounded_by_its_box_and_by_nothing_else():
    loss, x, y = QueryLoss("squared"), np.ones((1, 3)), -np.ones(1)
    outside = loss.gradient_sums(np.full(3, 3.0), x, y, np.ones(1))
    assert np.abs(outside).sum() > length_of(loss, BOXED, 1.0, 1)


def drawn(data, n):
    values = st.floats(-1e308, 1e308)
    columns = {name: np.array(data.draw(st.lists(values, min_size=n, max_size=n))) for name in "abct"}
    return columns | {"t": (columns["t"] > 0).astype(float)}


@pytest.mark.slow
@given(st.data(), st.sampled_from(KINDS), st.sampled_from(sorted(SHAPES)), st.integers(1, 4))
def test_neighbours_sums_of_gradients_are_within_the_bound(data, kind, shape, n):
    spec, loss, box = replace(SHAPES[shape], classes=True), QueryLoss(kind, 0.3), 1.5
    theta = np.array(data.draw(st.lists(st.floats(-box, box), min_size=spec.size, max_size=spec.size)))

    def asked(columns):
        prepared = inputs(columns, spec=spec)
        return gradient(theta, Party("p", prepared, np.ones(len(columns["a"]))), None, loss=loss, box=box)

    columns, other, i = drawn(data, n), drawn(data, 1), data.draw(st.integers(0, n - 1))
    removed = {name: np.delete(column, i) for name, column in columns.items()}
    replaced = {name: np.append(column, other[name]) for name, column in removed.items()}
    for norm in (1, 2):
        bound = length_of(loss, spec, box, norm) * (1 + 1e-9)
        assert np.linalg.norm(asked(columns) - asked(removed), ord=norm) <= bound
        assert np.linalg.norm(asked(columns) - asked(replaced), ord=norm) <= 2 * bound


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_share_of_the_records_moves_by_one_record_too(share):
    """The broken twin takes the first so many: where a record is removed another moves up, twice the bound away."""
    columns = {name: np.linspace(0.9, 1.0, 40) for name in "abc"} | {"t": np.repeat([-1.0, 1.0], [round(40 * share), 40])[:40]}
    loss, theta = QueryLoss("squared"), np.zeros(3)  # gradients of -2 y x: the first records pull one way, the others back

    def twin(theta, party, rng, *, loss, box, share):
        n = round(share * len(party.w))
        return loss.gradient_sums(theta, party["queried x"][:n], party["queried y"][:n], party.w[:n])

    def furthest(question):
        """How far the sum moves where one record is removed, in multiples of the longest gradient at zero."""
        sums = [
            question(
                theta, Party("p", inputs(kept, spec=BOXED), np.ones(len(kept["a"]))), None, loss=loss, box=1.0, share=share
            )
            for kept in [columns, *({name: np.delete(column, i) for name, column in columns.items()} for i in range(40))]
        ]
        return max(np.abs(sums[0] - other).sum() for other in sums[1:]) / 6.0

    assert furthest(partial_gradient) <= 1 + 1e-9
    if share == 0.5:
        assert furthest(twin) > 1.8


def test_lots_are_spread_evenly():
    """Kolmogorov-Smirnov, one false alarm in a million."""
    x = np.random.default_rng(0).normal(size=(20_000, 2)).round(3)
    assert kstest(np.unique(buckets([*x.T])), "uniform").pvalue > 1e-6


def test_a_weight_is_a_number_of_records():
    light, heavy = (
        answers_for(table(weight=w).schema, {"p": 1.0}, 5, QueryLoss("hinge"), BOXED, 1.0).bound.radius for w in (0, 1)
    )
    assert heavy == 3 * light


def test_weights_without_a_range_are_refused():
    schema = table(weight=True).schema
    open_ended = schema.replace(replace(schema["w"], high=None))
    with pytest.raises(UnboundedSum, match="HR-210"):
        answers_for(open_ended, {"p": 1.0}, 5, QueryLoss("hinge"), BOXED, 1.0)


# ---- the algorithm --------------------------------------------------------------------------------------------------
def by_hand(kind, steps, rounds=ROUNDS):
    """Algorithms 1 and 2 as boxes of formulas, one record after the other."""
    data = table(classes=kind != "squared")
    x = np.column_stack([data["a"], data["b"], data["c"]])
    y = data["t"] if kind == "squared" else 2 * data["t"] - 1
    theta, average, states, weighted = np.zeros(3), np.zeros(3), [], []
    for k in range(1, rounds + 1):
        total = np.zeros(3)
        for row, target in zip(x, y, strict=True):
            m = row @ theta
            slope = {
                "squared": 2 * (m - target),
                "logistic": -target / (1 + np.exp(target * m)),
                "hinge": -target * (target * m < 1),
            }[kind]
            total += slope * row
        g = total / 60 + 0.1 * theta
        rho = {"algorithm-1": 300 / (rounds**2 * k), "algorithm-2": 0.4 / np.sqrt(k), "strongly-convex": 0.4 / (1 + 0.02 * k)}
        moved = np.clip(theta - rho[steps] * g, -2, 2)
        weighted.append(k * theta)
        if steps == "algorithm-2":
            eta = 1 / np.sqrt(rounds)
            average = (k - 1) / (eta + k) * average + (eta + 1) / (eta + k) * theta
        else:
            average = moved if steps == "algorithm-1" else np.sum(weighted, 0) / (k * (k + 1) / 2)
        theta = moved
        states.append((theta, average))
    return states


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_program_is_the_loop_by_hand(kind, steps):
    states = list(told(federation(classes=kind != "squared"), kind=kind, steps=steps))
    for state, (theta, average) in zip(states, by_hand(kind, steps), strict=True):
        np.testing.assert_allclose(state.theta, theta, atol=1e-12)
        np.testing.assert_allclose(state.average, average, atol=1e-12)


def test_many_models_at_once_have_the_gradients_of_each():
    rng = np.random.default_rng(0)
    x, y, w, theta = rng.normal(size=(30, 3)), rng.normal(size=30), rng.random(30), rng.normal(size=(2, 5, 3))
    together = QueryLoss("squared").gradient_sums(theta, x, y, w)
    alone = [[QueryLoss("squared").gradient_sums(one, x, y, w) for one in row] for row in theta]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_steps_as_printed_stand_still_and_the_longer_the_more():
    data = federation()
    loss = QueryLoss("squared")
    rows = pooled(hr.engines.records(data), BOXED)
    best = optimum(loss, *rows, 2.0)

    def left(steps, horizon):
        return float(relative_fitness(loss, noiseless(loss, steps, horizon, *rows), best, *rows))

    printed = [left(Steps("algorithm-1", 1.0, 2.0), horizon) for horizon in (10, 100, 1000)]
    corrected = [left(Steps("strongly-convex", 1.0, 2.0, convexity=0.5), horizon) for horizon in (10, 100, 1000)]
    assert printed == sorted(printed)
    assert printed[-1] > 0.99 * float(relative_fitness(loss, np.zeros(3), best, *rows))
    assert corrected == sorted(corrected, reverse=True)
    assert corrected[-1] < 1e-4


@pytest.mark.parametrize("box", [0.05, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_model_has_fitness_zero_and_no_other_in_the_box_is_better(kind, box):
    spec, loss = replace(BOXED, classes=kind != "squared"), QueryLoss(kind, 0.1)
    rows = pooled(hr.engines.records(federation(classes=kind != "squared")), spec)
    best = optimum(loss, *rows, box)
    assert np.abs(best).max() <= box
    assert relative_fitness(loss, best, best, *rows) == 0.0
    rng = np.random.default_rng(0)
    others = np.clip(best + np.concatenate([rng.normal(scale=s, size=(200, 3)) for s in (1e-3, 1e-2, 0.1)]), -box, box)
    assert relative_fitness(loss, others, best, *rows).min() > -1e-6


def test_a_run_is_continued_where_it_stopped():
    whole = list(told(federation()))
    continued = list(told(federation(), start=whole[4]))
    np.testing.assert_array_equal(continued[-1].average, whole[-1].average)


# ---- inputs ---------------------------------------------------------------------------------------------------------
def test_scaled_inputs_take_declared_ranges_to_one():
    data = table().declare(a=(-1, 3))
    spec = Inputs.scaled(data.schema)
    np.testing.assert_allclose(spec.rows({"a": [-1, 1, 3], "b": [-1, 0, 1], "c": [0, 0, 0]})[:, 0], [-1, 0, 1])
    with pytest.raises(SettingsInvalid, match="HR-511"):
        Inputs.scaled(data.schema.replace(replace(data.schema["a"], high=None)))


def test_projected_inputs_have_variance_one_before_they_are_shortened():
    spec = Inputs.projected(table(), 2, radius=1e3)
    rows = 1e3 * spec.rows(table().columns)
    np.testing.assert_allclose(np.cov(rows.T), np.eye(2) * 60 / 59, atol=0.02)


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_owner_without_a_lawful_epsilon_is_refused(epsilon):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        planned(federation(), epsilon)


def test_an_owner_that_agreed_on_nothing_is_not_asked():
    fed = federation()
    with pytest.raises(BudgetInvalid, match="agreed on no epsilon"):
        hr.last(told(fed, answers=planned(fed, {fed.names[0]: 1.0})))
    assert len(fed.ledger) == 0


def test_more_rounds_than_were_agreed_are_refused_before_anybody_is_asked():
    fed = federation()
    with pytest.raises(BudgetExhausted, match="HR-213"):
        hr.last(told(fed, rounds=ROUNDS + 1, answers=planned(fed)))
    assert len(fed.ledger) == 0


def test_a_second_training_does_not_get_the_questions_of_the_first():
    fed = federation()
    answers = planned(fed)
    hr.last(told(fed, answers=answers))
    with pytest.raises(BudgetExhausted, match="12 questions were answered"):
        hr.last(told(fed, answers=answers))
    assert len(fed.ledger) == ROUNDS


def test_answers_for_a_smaller_box_are_refused():
    fed = federation()
    small = answers_for(fed.schema, dict.fromkeys(fed.names, 1.0), ROUNDS, QueryLoss("squared", 0.1), BOXED, 1.0)
    with pytest.raises(UnboundedSum, match="HR-210"):
        hr.last(told(fed, answers=small))


@pytest.mark.parametrize("wrong", [{"rule": "newton"}, {"size": 0.0}, {"box": float("inf")}, {"rule": "strongly-convex"}])
def test_unlawful_steps_are_refused(wrong):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        Steps(**wrong)


def test_unknown_models_and_ridges_are_refused():
    for wrong in (("tree", None), ("svm", -1.0)):
        with pytest.raises(SettingsInvalid, match="HR-511"):
            loss_of(*wrong)
    assert loss_of("svm") == QueryLoss("hinge", 1.0)


# ---- engines --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("noise", ["none", "owners", "laplace", "server"])
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_computes_the_same(engine, noise):
    def run(on):
        fed = federation(on)
        if noise == "owners":
            epsilons = dict(zip(fed.names, (0.5, 5.0, 50.0), strict=True))
            return hr.last(told(fed, answers=planned(fed, epsilons)))
        mechanism = {"none": None, "laplace": hr.Laplace(3.0, at="party"), "server": hr.Gaussian(3.0)}[noise]
        return hr.last(told(fed.protect(mechanism=mechanism)))

    np.testing.assert_allclose(run(engine).average, run(hr.Loop()).average, atol=1e-12)


def test_a_model_outside_the_box_does_not_lengthen_gradients():
    """Whoever sends it: a state of a wider box, or a server that wants to know more than was agreed."""
    party = Party("p", inputs({name: np.ones(1) for name in "abct"}, spec=BOXED), np.ones(1))
    far = gradient(np.array([1e6, np.inf, np.nan]), party, None, loss=QueryLoss("squared"), box=2.0)
    assert np.abs(far).sum() <= length_of(QueryLoss("squared"), BOXED, 2.0, 1) * (1 + 1e-12)


def test_a_record_that_overflows_takes_no_other_with_it():
    spec = replace(BOXED, projection=((1.0, -1.0, 0.0),), radius=1.0)
    columns = {name: np.array([0.5, 1e308]) for name in "abct"}
    rows = spec.rows(columns)
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[:1], spec.rows({name: column[:1] for name, column in columns.items()}))


@pytest.mark.parametrize("radius", [None, 1.5], ids=["box", "ball"])
def test_a_record_s_row_and_bucket_are_the_same_bits_whatever_it_is_prepared_with(radius):
    """A projection by a product of matrices is not, and a bucket made of its last bits put a record in or out of a share."""
    rng, names = np.random.default_rng(3), tuple(f"f{i}" for i in range(30))
    projection = tuple(map(tuple, rng.normal(size=(10, 30))))
    spec = Inputs(names, "y", (0.1,) * 30, (1.7,) * 30, projection, radius=radius, target_spread=2.0)
    table = {name: rng.normal(size=67) for name in (*names, "y")}
    together = inputs(table, spec=spec)
    for rows in ([0], [5], [66], [5, 66], [1, 2, 5], list(range(3, 20)), list(range(66, -1, -1))):
        found = inputs({name: column[rows] for name, column in table.items()}, spec=spec)
        for name, values in found.items():
            np.testing.assert_array_equal(values, together[name][rows], err_msg=name)
    x = (np.column_stack([table[name] for name in names]) - 0.1) / 1.7 @ np.array(projection).T
    x = np.clip(x, -1, 1) if radius is None else x / radius / np.maximum(np.linalg.norm(x / radius, axis=1, keepdims=True), 1)
    np.testing.assert_allclose(together["queried x"], x, rtol=1e-12)
