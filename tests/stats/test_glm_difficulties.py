"""Estimates that are ambiguous, infinite or undefined are named; those that are merely large are found."""

import numpy as np
import pytest
import statsmodels.api as sm
from clinic import federation
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import data
from hedgerow.data import Column, Schema, Table
from hedgerow.engines import InProcess
from hedgerow.errors import DisclosureExceeded, HedgerowWarning, NotConverged, NotFinite, NotIdentified, Separated
from hedgerow.stats import design_of, linear_regression, logistic_regression, newton

LEVELS = ("a", "b", "c")


def made(y, **columns):
    """A federation of numbers, binaries (0 and 1) and categories (int16 codes), with the target `y`."""
    kinds = {
        name: Column(name, "category", levels=LEVELS) if np.asarray(values).dtype == np.int16 else Column(name, "number")
        for name, values in columns.items()
    }
    schema = Schema((*kinds.values(), Column("y", "binary" if set(np.unique(y)) <= {0, 1} else "number", role="target")))
    return federation(Table(schema.admit({**columns, "y": y}), schema), n_parties=4)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


# ---- not identified -------------------------------------------------------------------------------------------------
def test_combinations_of_columns_are_named(rng):
    a, b, d = rng.normal(size=(3, 200))
    fed = made(rng.normal(size=200), a=a, b=b, c=2 * a - 3 * b, d=d)
    with pytest.raises(NotIdentified, match="'a', 'b', 'c' are linear combinations"):
        linear_regression(fed, "y ~ a + b + c + d")
    binary = made((rng.random(200) < 0.5).astype(float), a=a, b=b, c=2 * a - 3 * b, d=d)
    with pytest.raises(NotIdentified, match="'a', 'b', 'c' are"):
        logistic_regression(binary, "y ~ a + b + c + d")


def test_a_constant_column_is_named(rng):
    fed = made(rng.normal(size=50), a=rng.normal(size=50), b=np.full(50, 3.7))
    with pytest.raises(NotIdentified, match="'b' is constant"):
        linear_regression(fed, "y ~ a + b")
    linear_regression(fed, "y ~ 0 + a + b")


def test_a_level_that_nobody_has_is_named(rng):
    fed = made(rng.normal(size=50), g=rng.integers(0, 2, 50).astype(np.int16))
    with pytest.raises(NotIdentified, match=r"'g\[T.c\]' is zero in every record"):
        linear_regression(fed, "y ~ g")


def test_more_coefficients_than_records_are_refused(rng):
    fed = made(rng.normal(size=4), a=rng.normal(size=4))
    with pytest.raises(NotIdentified, match="4 records"):
        linear_regression(fed, "y ~ a + I(a ** 2) + I(a ** 3)")


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_correlated_columns_are_still_identified(seed):
    rng = np.random.default_rng(seed)
    a = 10 ** rng.uniform(-2, 3) + rng.normal(size=100)
    fed = made(rng.normal(size=100), a=a, b=a + 1e-3 * rng.normal(size=100))
    assert np.isfinite(linear_regression(fed, "y ~ a + b").se_).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), far=st.sampled_from([0.0, 1.0, 1e3]), noise=st.sampled_from([0.0, 1e-13, 1e-9, 1e-3]))
def test_perfect_fits_converge(seed, far, noise):
    rng = np.random.default_rng(seed)
    a, b = far + rng.normal(size=(2, 60))
    fit = linear_regression(made(3 - 2 * a + 0.5 * b + noise * rng.normal(size=60), a=a, b=b), "y ~ a + b")
    np.testing.assert_allclose(fit.coef_[1:], [-2, 0.5], rtol=1e-7 + 2 * noise)
    assert fit.rounds < 8


# ---- separated ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [20, 300, 5000])
def test_complete_separation_is_named(rng, n):
    x = np.sort(rng.normal(size=n))
    fed = made((x > x[n // 3]).astype(float), x=x, z=rng.normal(size=n))
    with pytest.raises(Separated, match="'x'"):
        logistic_regression(fed, "y ~ x + z")


@pytest.mark.parametrize("n_carriers", [3, 40])
def test_quasi_separation_by_a_binary_column_is_named(rng, n_carriers):
    x, carrier = rng.normal(size=1000), (np.arange(1000) < n_carriers).astype(float)
    y = np.where(carrier == 1, 0.0, rng.random(1000) < 1 / (1 + np.exp(-x)))
    with pytest.raises(Separated, match="'carrier' separates the classes"):
        logistic_regression(made(y, x=x, carrier=carrier), "y ~ x + carrier")


def test_quasi_separation_by_a_level_is_named(rng):
    g = rng.integers(0, 3, 500).astype(np.int16)
    y = np.where(g == 2, 1.0, rng.random(500) < 0.4)
    with pytest.raises(Separated, match=r"'g\[T.c\]' separates"):
        logistic_regression(made(y, g=g), "y ~ g")


def test_all_thirty_columns_separate_the_cancers():
    with pytest.raises(Separated, match="24 more columns"):
        logistic_regression(federation(data.load("breast_cancer")), "malignant ~ .")


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_target_without_variation_is_named(rng, value):
    with pytest.raises(Separated, match=f"the target is {value:.0f} in all of 30 records"):
        logistic_regression(made(np.full(30, value), x=rng.normal(size=30)), "y ~ x")


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    intercept=st.floats(-7, 7),
    slope=st.floats(-8, 8),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_separation_is_told_from_large_coefficients_and_rare_events(seed, intercept, slope, scale):
    """The refusal is right if and only if one threshold of the only column separates the classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-intercept - slope * x))).astype(float)
    fed = made(y, x=scale * x)
    if min(x[y == 1], default=np.inf) >= max(x[y == 0], default=-np.inf) or max(x[y == 1], default=-np.inf) <= min(
        x[y == 0], default=np.inf
    ):
        with pytest.raises(Separated):
            logistic_regression(fed, "y ~ x")
        return
    fit = logistic_regression(fed, "y ~ x")
    expected = sm.Logit(y, np.column_stack([np.ones(400), x])).fit(method="newton", maxiter=100, tol=1e-10, disp=0)
    np.testing.assert_allclose(fit.coef_ * [1, scale], expected.params, rtol=1e-6, atol=1e-8)


def test_one_event_in_ten_thousand_is_not_separation(rng):
    y = np.zeros(10_000)
    y[17] = 1
    fit = logistic_regression(made(y, x=rng.normal(size=10_000)), "y ~ x")
    assert fit.n_events == pytest.approx(1)
    assert fit.coef_[0] < -8


# ---- not finite, not converged --------------------------------------------------------------------------------------
def test_an_undefined_expression_is_named(rng):
    fed = made(rng.normal(size=30), x=np.arange(30.0))
    with pytest.raises(NotFinite, match=r"log\(x\).*is not finite"):
        linear_regression(fed, "y ~ log(x)")


def test_parties_that_come_and_go_keep_it_from_converging(rng):
    x = rng.normal(size=500)
    fed = hr.engines.on(made((rng.random(500) < 1 / (1 + np.exp(-x))).astype(float), x=x), InProcess(dropout_rate=0.2))
    with (
        pytest.warns(HedgerowWarning, match=r"round \d+ of this fit (lost|added) about \d+ records"),
        pytest.raises(NotConverged, match="after 12 rounds") as caught,
    ):
        logistic_regression(fed, "y ~ x", max_rounds=12)
    assert "drop out" in str(caught.value)


@pytest.mark.parametrize(("lost", "refused"), [(0, False), (3, True), (40, False)])
def test_a_round_about_a_few_records_more_or_less_is_refused(rng, lost, refused):
    x = rng.normal(size=500)
    y = (rng.random(500) < 1 / (1 + np.exp(-x))).astype(float)

    def rounds(n, start=None):
        some = made(y[:n], x=x[:n])
        return newton(some, design_of(some.schema, "y ~ x", "binomial"), start=start)

    whole = rounds(500)
    states = [next(whole) for _ in range(3)]
    resumed = rounds(500 - lost, states[-1])
    if refused:
        with pytest.raises(DisclosureExceeded, match="round 4 of this fit lost fewer than 5 records"):
            next(resumed)
    elif lost:
        with pytest.warns(HedgerowWarning, match="round 4 of this fit lost about 40 records"):
            next(resumed)
    else:
        next(resumed)
