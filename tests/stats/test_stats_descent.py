"""Gradient programs are those of the pooled records, and what one record adds to them is bounded."""

from functools import partial

import numpy as np
import pytest
from clinic import ENGINE_NAMES, ENGINES, SCHEMA, clinic, federation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.crypto import SecAgg
from hedgerow.data import Table, stores
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.errors import FormulaInvalid, NotBinary, NotFinite, SettingsInvalid, UnboundedSum
from hedgerow.privacy import Gaussian
from hedgerow.runs import load_checkpoint, save_checkpoint
from hedgerow.stats import (
    DescentState,
    Design,
    design,
    gradient_descent,
    linear_regression,
    logistic_regression,
    mean_loss,
    raw_coefficients,
    scaling,
    sweep,
)
from hedgerow.stats.losses.descent import EPSILON, TABLE_6_1
from hedgerow.stats.losses.sums import LOSSES, Reach, loss_sums, sum_bounds, sums_at_points, symmetric, upper

KEYS = ("gradient", "curvature", "n", "loss", "smooth", "gap", "pull", "inside")
CORNERS = ("hinge", "check")
ILL, PAIN = "ill ~ age + dose + stage", "pain ~ age + dose + stage"
TINY = {"binomial": 1e-4, "gaussian": 1e-4, "hinge": 1e-4, "check": 1e-3}


def shop(n=60, seed=0):
    """One party for each visit."""
    return simulate(clinic(n, seed), stores(), seed=1, engine=InProcess(threads=1))


def rows(fed, formula):
    held = hr.engines.records(fed)
    found = design(held.columns, spec=Design.of(formula, fed.schema))
    return found["X"], found["y"]


def slope(family, y, eta, share=0.5):
    sign = 2 * y - 1
    return {
        "gaussian": lambda: 2 * (eta - y),
        "binomial": lambda: expit(eta) - y,
        "hinge": lambda: np.where(sign * eta < 1, -sign, 0.0),
        "check": lambda: np.where(y > eta, -share, 1 - share),
    }[family]()


def last(program):
    *_, state = program
    return state


# ---- equal to pooled loops ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("family", "formula"), [("gaussian", PAIN), ("binomial", ILL), ("hinge", ILL), ("check", PAIN)], ids=list(TINY)
)
def test_rounds_are_the_steps_of_a_pooled_loop(family, formula):
    fed = shop()
    X, y = rows(fed, formula)
    beta, penalised = np.zeros(X.shape[1]), np.array([0.0, 1, 1, 1, 1])
    for state in gradient_descent(fed, formula=formula, family=family, learning_rate=TINY[family], rounds=40, penalty=0.3):
        gradient = slope(family, y, X @ beta) @ X / len(y) + 0.6 * penalised * beta
        beta = beta - TINY[family] * gradient
        np.testing.assert_allclose(state.gradient, gradient, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.beta, beta, rtol=1e-12, atol=1e-14)
    assert state.round == 40
    assert state.n == 60


@pytest.mark.parametrize("optimiser", ["adagrad", "adagrad-printed"])
def test_adagrad_divides_by_the_root_of_squares_and_the_printed_one_by_the_squares(optimiser):
    fed = shop()
    X, y = rows(fed, ILL)
    beta, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _ in range(25):
        gradient = (expit(X @ beta) - y) @ X / len(y)
        squares += gradient**2
        beta = beta - 0.05 * gradient / ((squares + EPSILON) ** (0.5 if optimiser == "adagrad" else 1.0))
    state = last(gradient_descent(fed, formula=ILL, family="binomial", learning_rate=0.05, rounds=25, optimiser=optimiser))
    np.testing.assert_allclose(state.beta, beta, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_takes_the_same_steps(engine):
    settings = {"formula": ILL, "family": "binomial", "learning_rate": 1e-3, "rounds": 5, "with_loss": True}
    found, expected = (last(gradient_descent(federation(engine=on), **settings)) for on in (engine, Loop()))
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-12)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)


@pytest.mark.slow
def test_standardised_descent_reaches_the_exact_fit_in_the_columns_own_units():
    fed = federation()
    state = last(gradient_descent(fed, formula=PAIN, **TABLE_6_1["FedLinReg-v2"]))
    assert state.scaling.names == ("age", "dose", "pain")
    found = raw_coefficients(fed, PAIN, state.scaling, state.beta)
    np.testing.assert_allclose(found, linear_regression(fed, PAIN).coef_, rtol=1e-6)
    state = last(gradient_descent(fed, formula=ILL, family="binomial", learning_rate=2.0, rounds=800, standardise=True))
    found = raw_coefficients(fed, ILL, state.scaling, state.beta)
    np.testing.assert_allclose(found, logistic_regression(fed, ILL).coef_, rtol=1e-6)


def test_a_given_scaling_is_used_without_asking_for_another():
    fed = federation()
    scale = scaling(fed, ["age", "dose", "pain"])
    asked = len(fed.ledger)
    state = last(gradient_descent(fed, formula=PAIN, learning_rate=0.1, rounds=3, standardise=scale))
    assert len(fed.ledger) == asked + 3
    expected = last(gradient_descent(federation(), formula=PAIN, learning_rate=0.1, rounds=3, standardise=True))
    np.testing.assert_allclose(state.beta, expected.beta, rtol=1e-12)


def test_the_loss_is_that_where_the_step_began_and_mean_loss_that_where_it_ended():
    fed = shop()
    X, y = rows(fed, ILL)
    chosen = {"formula": ILL, "family": "binomial", "penalty": 0.1}
    states = list(gradient_descent(fed, learning_rate=1e-3, rounds=2, with_loss=True, **chosen))

    def loss(beta):
        return np.logaddexp(0, np.where(y > 0.5, -X @ beta, X @ beta)).mean() + 0.1 * (beta[1:] ** 2).sum()

    np.testing.assert_allclose([s.loss for s in states], [np.log(2), loss(states[0].beta)], rtol=1e-12)
    np.testing.assert_allclose(mean_loss(fed, states[1], **chosen), loss(states[1].beta), rtol=1e-12)


# ---- cohorts, stopping, divergence ----------------------------------------------------------------------------------
def test_mini_batches_are_cohorts_of_so_many_stores():
    fed = shop(200)
    program = partial(gradient_descent, formula=ILL, family="binomial", learning_rate=1e-3, rounds=6, batch=20)
    states = list(program(fed))
    assert {state.n for state in states} == {20}
    assert {entry.parties for entry in fed.ledger.entries} == {20}
    assert len({entry.cohort for entry in fed.ledger.entries}) == 6
    np.testing.assert_array_equal(last(program(shop(200))).beta, states[-1].beta)


@pytest.mark.slow
def test_mini_batches_approach_the_optimum():
    fed = shop(400)
    exact = logistic_regression(fed, "ill ~ smoker").coef_
    run = {"formula": "ill ~ smoker", "family": "binomial", "batch": 100}
    state = last(gradient_descent(fed, learning_rate=1.0, rounds=60, **run))
    state = last(gradient_descent(fed, learning_rate=0.05, rounds=160, start=state, **run))
    np.testing.assert_allclose(state.beta, exact, atol=0.12)


def test_a_small_gradient_stops_the_iteration_after_some_rounds():
    chosen = {"formula": PAIN, "learning_rate": 0.2, "rounds": 500, "standardise": True}
    states = list(gradient_descent(federation(), stop=1e-3, patience=4, **chosen))
    assert states[-1].stopped
    assert len(states) < 500
    small = [np.abs(state.gradient).max() <= 1e-3 for state in states]
    assert all(small[-4:])
    assert not small[-5]
    assert list(gradient_descent(federation(), start=states[-1], **chosen)) == []


@pytest.mark.parametrize("engine", [Loop(), InProcess(threads=1)], ids=["loop", "collapse"])
def test_a_diverging_iteration_ends_and_says_so(engine):
    fed = federation(engine=engine)
    states = list(gradient_descent(fed, formula=PAIN, learning_rate=50.0, rounds=400, with_loss=True))
    assert states[-1].diverged
    assert states[-1].loss == np.inf
    assert len(states) < 400
    assert not any(state.diverged for state in states[:-1])
    assert max(state.loss for state in states[:-1]) > 1e100
    assert mean_loss(fed, states[-1], formula=PAIN) == np.inf


def test_an_undefined_expression_is_not_taken_for_divergence():
    with pytest.raises(NotFinite, match="log of zero"):
        last(gradient_descent(federation(), formula="pain ~ log(visits)", learning_rate=0.1, rounds=3))


def test_a_sweep_goes_on_beyond_its_ends_until_the_best_lies_inside():
    fed = federation()
    found = sweep(fed, formula=PAIN, rounds=20, exponents=(-3, -2), family="gaussian")
    assert found.best == pytest.approx(5e-5)
    assert found.learning_rates == pytest.approx((5e-6, 5e-5, 5e-4, 5e-3, 5e-2))
    assert found.losses[0] > found.losses[1] < found.losses[2]
    expected = last(gradient_descent(fed, formula=PAIN, learning_rate=found.best, rounds=20))
    np.testing.assert_allclose(found.state.beta, expected.beta, rtol=1e-12)


@pytest.mark.parametrize("name", TABLE_6_1)
def test_the_programs_of_the_thesis_are_settings(name):
    chosen = {"learning_rate": 1e-5} | TABLE_6_1[name] | {"rounds": 3}
    formula, batch = (PAIN if chosen["family"] == "gaussian" else ILL), (20 if name.startswith("S") else None)
    states = list(gradient_descent(shop(), formula=formula, batch=batch, **chosen))
    assert len(states) == 3
    assert bool(states[-1].names) == chosen["standardise"]


@pytest.mark.slow
def test_a_descent_resumes_from_every_state(tmp_path):
    chosen = {"formula": PAIN, "learning_rate": 0.1, "rounds": 4, "standardise": True, "optimiser": "adagrad", "batch": 20}
    states = list(gradient_descent(shop(), **chosen))
    for state in states[:-1]:
        fed = shop()
        for _ in zip(range(state.round), gradient_descent(fed, **chosen), strict=False):
            pass
        save_checkpoint(tmp_path / "state", state, fed, "test")
        start = load_checkpoint(tmp_path / "state", DescentState, "test").state
        np.testing.assert_array_equal(last(gradient_descent(fed, start=start, **chosen)).beta, states[-1].beta)


# ---- protected channels ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("family", "formula"), [("gaussian", PAIN), ("binomial", ILL), ("check", PAIN)])
def test_hidden_rows_give_the_same_steps_and_every_sum_has_a_bound(family, formula):
    chosen = {"formula": formula, "family": family, "learning_rate": 1e-4, "rounds": 10, "with_loss": True}
    hidden = federation().protect(aggregation=SecAgg(records=1000))
    found, expected = (last(gradient_descent(fed, **chosen)) for fed in (hidden, federation()))
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-9)
    assert all(entry.bound.count("linf") == 3 for entry in hidden.ledger.entries)


def test_hidden_rows_need_declared_ranges_unless_the_aggregation_has_one():
    chosen = {"formula": "pain ~ age + open", "learning_rate": 1e-4, "rounds": 1}
    fed = federation().protect(aggregation=SecAgg(mode="simulated"))
    with pytest.raises(UnboundedSum, match="open declares no range"):
        last(gradient_descent(fed, **chosen))
    assert len(fed.ledger) == 0
    assert last(gradient_descent(federation().protect(aggregation=SecAgg(mode="simulated", largest=1e6)), **chosen)).round == 1


def test_noise_takes_its_scale_from_the_bound_of_the_gradient():
    fed = federation().protect(mechanism=Gaussian(1e-9))
    chosen = {"formula": ILL, "family": "binomial", "learning_rate": 1e-4, "rounds": 3}
    found, expected = last(gradient_descent(fed, **chosen)), last(gradient_descent(federation(), **chosen))
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-3, atol=1e-6)
    assert all(entry.event.kind != "nonprivate" for entry in fed.ledger.entries)


# ---- local functions ------------------------------------------------------------------------------------------------
def extremes(column):
    if column.kind == "category":
        return st.integers(0, len(column.levels) - 1)
    low, high = (float(0 if column.low is None else column.low), float(1 if column.high is None else column.high))
    return st.sampled_from([low, high]) | (st.floats(low, high) if column.kind == "number" else st.sampled_from([low, high]))


WEIGHTED = SCHEMA.with_roles(weight="copies")
UNIT = {binary: Design.of(ILL if binary else PAIN, WEIGHTED, offset="exposure").to_unit() for binary in (True, False)}
records = st.fixed_dictionaries({column.name: extremes(column) for column in WEIGHTED})


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(record=records, beta=st.lists(st.floats(-3, 3), min_size=5, max_size=5), width=st.floats(0.01, 4))
def test_one_record_adds_at_most_its_bound(record, beta, width):
    columns = {name: np.array([value], dtype=float) for name, value in record.items()}
    broadcast, w = {"beta": np.array(beta), "width": np.array(width)}, np.array([record["copies"]], dtype=float)
    for family, law in LOSSES.items():
        spec = UNIT[law.binary]
        one = Party("neighbour", columns | design(columns, spec=spec), w)
        keys = tuple(key for key in KEYS if key != "gap" or family in CORNERS)
        found = loss_sums(broadcast, one, None, loss=family, keys=keys, share=0.2)
        for noisy in (False, True):
            bounds = sum_bounds(law, Reach.of(spec, broadcast["beta"]), keys, width, noisy=noisy)
            assert set(bounds) == set(keys)
            for key, bound in bounds.items():
                assert bound.unit == "record"
                assert bound.size(np.reshape(found[key], (1, -1))).item() <= bound.radius, (family, key)


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("family", LOSSES)
def test_stacked_parties_add_up_like_single_ones_and_padding_counts_nothing(family, points):
    rng = np.random.default_rng(0)
    columns = SCHEMA.synthetic(24, rng)
    columns |= design(columns, spec=Design.of(ILL if LOSSES[family].binary else PAIN, SCHEMA))
    w, d = rng.integers(0, 3, 24).astype(float), columns["X"].shape[1]
    stacked = Party("2 parties", {k: c.reshape(2, 12, *c.shape[1:]) for k, c in columns.items()}, w.reshape(2, 12))
    alone = [Party("one", {k: c[part] for k, c in columns.items()}, w[part]) for part in (slice(0, 12), slice(12, 24))]
    ask = partial(sums_at_points if points else loss_sums, loss=family, keys=KEYS)
    broadcast = {"beta": rng.normal(size=(3, d) if points else d) / 50, "width": np.array(0.7)}
    together, single = ask(broadcast, stacked, None), [ask(broadcast, one, None) for one in alone]
    nothing = ask(broadcast, Party("padding", columns, np.zeros(24)), None)
    for key in KEYS:
        np.testing.assert_allclose(together[key], np.stack([one[key] for one in single]), rtol=1e-12, atol=1e-12)
        assert not np.any(nothing[key])


@pytest.mark.parametrize("family", LOSSES)
def test_slopes_and_curvatures_are_derivatives(family):
    rng, h = np.random.default_rng(1), 1e-6
    y = rng.integers(0, 2, 50).astype(float) if LOSSES[family].binary else rng.normal(size=50)
    eta = rng.normal(size=50)
    at, up, down = (LOSSES[family].at(y, eta + shift, 0.4, 0.3) for shift in (0, h, -h))
    np.testing.assert_allclose(at.slope, (up.smooth - down.smooth) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(at.curvature, (up.slope - down.slope) / (2 * h), atol=1e-4)
    if family in CORNERS:
        assert (at.smooth <= at.value + 1e-12).all()
        assert (at.value <= at.smooth + 0.2 + 1e-12).all()


def test_triangles_keep_a_matrix():
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(symmetric(upper(a + a.T), 3), a + a.T)


# ---- refused beforehand ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"family": "poison"}, SettingsInvalid),
        ({"optimiser": "adam"}, SettingsInvalid),
        ({"learning_rate": 0.0}, SettingsInvalid),
        ({"learning_rate": float("nan")}, SettingsInvalid),
        ({"rounds": 0}, SettingsInvalid),
        ({"batch": 0}, SettingsInvalid),
        ({"patience": 0}, SettingsInvalid),
        ({"penalty": -1.0}, SettingsInvalid),
        ({"share": 1.0}, SettingsInvalid),
        ({"family": "hinge"}, NotBinary),
        ({"formula": "arm ~ age"}, FormulaInvalid),
    ],
)
def test_settings_out_of_range_are_refused_before_any_party_is_asked(wrong, error):
    fed = federation()
    with pytest.raises(error):
        gradient_descent(fed, **({"formula": PAIN, "learning_rate": 0.1, "rounds": 2} | wrong))
    assert len(fed.ledger) == 0


def test_a_diverging_iteration_is_no_missing_range_where_rows_are_hidden():
    fed = federation().protect(aggregation=SecAgg(mode="simulated"))
    states = list(gradient_descent(fed, formula=PAIN, learning_rate=1e60, rounds=20))
    assert states[-1].diverged


def test_a_column_inside_an_expression_is_not_standardised_behind_its_back():
    with pytest.raises(SettingsInvalid, match="'age' stands by itself"):
        last(gradient_descent(federation(), formula="pain ~ age + log(age)", learning_rate=0.1, rounds=1, standardise=True))


def test_coefficients_of_scaled_products_have_no_own_units():
    scale = scaling(federation(), ["age"])
    with pytest.raises(SettingsInvalid, match="product"):
        raw_coefficients(federation(), "pain ~ age:dose", scale, np.zeros(2))


@pytest.mark.slow
def test_many_stores_are_quick():
    table = clinic(70_000)
    fed = simulate(
        Table({k: table[k] for k in ("ill", "age", "dose")}, table.schema.select(("ill", "age", "dose"))), stores(), seed=1
    )
    state = last(gradient_descent(fed, formula="ill ~ age + dose", family="binomial", learning_rate=1e-3, rounds=20))
    X, y = rows(fed, "ill ~ age + dose")
    beta = np.zeros(3)
    for _ in range(20):
        beta = beta - 1e-3 * ((expit(X @ beta) - y) @ X / len(y))
    np.testing.assert_allclose(state.beta, beta, rtol=1e-12)
