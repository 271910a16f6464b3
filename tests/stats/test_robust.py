"""Huber's regression is statsmodels' RLM, quantile regression reaches the objective of QuantReg."""

import numpy as np
import pytest
import statsmodels.formula.api as smf
from clinic import SCHEMA, clinic, federation

from hedgerow import data
from hedgerow.core import Party
from hedgerow.crypto import SecAgg
from hedgerow.data import Table
from hedgerow.errors import NotConverged, NotIdentified, SettingsInvalid, UnlawfulChannel
from hedgerow.privacy import Gaussian
from hedgerow.stats import Design, HuberState, design, huber_lines, huber_regression, quantile_lines, quantile_regression
from hedgerow.stats.losses.middle import median_residual, residual_bounds, residuals_below
from hedgerow.store import load_checkpoint, save_checkpoint

PAIN = "pain ~ age + dose + stage"
AREA = "mean_area ~ mean_radius + mean_texture + mean_smoothness"


def rlm(formula, frame):
    return smf.rlm(formula, frame).fit(tol=1e-13, maxiter=500)


def ordered(values, names):
    return np.array([values[name] for name in names])


# ---- Huber ----------------------------------------------------------------------------------------------------------
def assert_same_line(found, expected, rtol=1e-7):
    for ours, theirs in [(found.coef_, expected.params), (found.se_, expected.bse)]:
        np.testing.assert_allclose(ours, ordered(theirs, found.names), rtol=rtol)
    np.testing.assert_allclose(found.p_values, ordered(expected.pvalues, found.names), rtol=1e-5, atol=1e-15)
    np.testing.assert_allclose(found.scale, expected.scale, rtol=rtol)


def test_hubers_line_is_that_of_statsmodels():
    found, expected = huber_regression(federation(), PAIN), rlm(PAIN, clinic().to_pandas())
    assert_same_line(found, expected)
    low, high = expected.conf_int().loc["age"]
    np.testing.assert_allclose(found.to_frame().loc["age", ["low", "high"]].to_numpy(), [low, high], rtol=1e-6)
    assert found.rounds < 60


@pytest.mark.slow
def test_hubers_line_of_cancer_is_that_of_statsmodels():
    table = data.load("breast_cancer")
    assert_same_line(huber_regression(federation(table), AREA), rlm(AREA, table.to_pandas()))


def test_outliers_move_hubers_line_little():
    table = clinic()
    spoilt = table.columns | {"pain": np.where(np.arange(300) < 15, 40.0, table["pain"])}
    found = huber_regression(federation(Table(spoilt, SCHEMA)), "pain ~ age + dose")
    assert_same_line(found, rlm("pain ~ age + dose", clinic().to_pandas().assign(pain=spoilt["pain"])))
    np.testing.assert_allclose(found.coef_[1:], huber_regression(federation(), "pain ~ age + dose").coef_[1:], atol=0.15)


def test_weights_repeat_records():
    frame = clinic().to_pandas()
    repeated = frame.loc[np.repeat(frame.index, frame["copies"].astype(int))]
    found = huber_regression(federation(), "pain ~ age", weights="copies")
    assert_same_line(found, rlm("pain ~ age", repeated))


@pytest.mark.slow
def test_a_line_resumes_from_every_state(tmp_path):
    states = list(huber_lines(federation(), formula="pain ~ age"))
    for state in states[:-1]:
        save_checkpoint(tmp_path / "state", state, federation(), "test")
        start = load_checkpoint(tmp_path / "state", HuberState, "test").state
        *_, found = huber_lines(federation(), formula="pain ~ age", start=start)
        np.testing.assert_allclose(found.beta, states[-1].beta, rtol=1e-12)


def test_residuals_without_a_scale_are_refused():
    table = clinic()
    exact = Table(table.columns | {"pain": table["age"] / 4}, SCHEMA)
    with pytest.raises(NotConverged, match="no scale"):
        huber_regression(federation(exact), "pain ~ age", max_rounds=3)


# ---- the median of residuals ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [300, 301])
@pytest.mark.parametrize("guess", [1e-6, 3.0, 1e6])
def test_the_median_residual_is_found_from_any_guess(n, guess):
    fed, spec = federation(clinic(n)), Design.of("pain ~ age", SCHEMA)
    found, rounds = median_residual(fed.prepare(design, spec=spec), spec, np.array([5.0, 0.1]), guess=guess, tol=1e-10)
    expected = np.median(np.abs(clinic(n)["pain"] - 5 - 0.1 * clinic(n)["age"]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert rounds < 20


def test_counts_of_residuals_stack_and_stay_within_their_bound():
    rng = np.random.default_rng(0)
    columns = SCHEMA.synthetic(24, rng)
    columns |= design(columns, spec=Design.of("pain ~ age", SCHEMA))
    w, broadcast = rng.integers(0, 3, 24).astype(float), {"beta": np.array([1.0, 0.1]), "thresholds": np.array([1.0, 5, 20])}
    stacked = Party("2 parties", {k: c.reshape(2, 12, *c.shape[1:]) for k, c in columns.items()}, w.reshape(2, 12))
    together = residuals_below(broadcast, stacked, None)
    size = np.abs(columns["y"] - 1 - 0.1 * columns["age"]).reshape(2, 12)
    expected = [[(w.reshape(2, 12)[i] * (size[i] <= t)).sum() for t in broadcast["thresholds"]] for i in range(2)]
    np.testing.assert_allclose(together["below"], expected)
    np.testing.assert_allclose(together["n"], w.reshape(2, 12).sum(1))
    one = Party("one", {k: c[:1] for k, c in columns.items()}, np.array([2.0]))
    for key, bound in residual_bounds(2.0).items():
        assert np.abs(residuals_below(broadcast, one, None)[key]).max() <= bound.radius
    assert residual_bounds(None) is None


# ---- quantiles ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("name", ["clinic", "breast_cancer"])
def test_quantile_regression_reaches_the_objective_of_statsmodels(name, share):
    table, formula = (clinic(), PAIN) if name == "clinic" else (data.load(name), AREA)
    found = quantile_regression(federation(table), formula, share=share)
    model = smf.quantreg(formula, table.to_pandas())
    expected = model.fit(q=share, max_iter=5000)

    def objective(beta):
        r = model.endog - model.exog @ beta
        return (r * (share - (r < 0))).mean()

    ours = objective(ordered(dict(zip(found.names, found.coef_, strict=True)), model.exog_names))
    least = objective(np.asarray(expected.params))
    assert least * (1 - 1e-4) <= ours <= least * (1 + 2e-5)
    np.testing.assert_allclose(found.objective, ours, rtol=1e-10)
    assert found.rounds <= 60


def test_the_median_alone_is_the_median():
    found = quantile_regression(federation(clinic(301)), "pain ~ 1", share=0.5, tol=1e-8)
    np.testing.assert_allclose(found.coef_, np.median(clinic(301)["pain"]), atol=0.01)
    assert np.isnan(found.se_).all()


def test_hidden_rows_give_the_same_lines():
    protected = federation().protect(aggregation=SecAgg(records=1000, mode="simulated"))
    found, expected = (huber_regression(fed, "pain ~ age + dose") for fed in (protected, federation()))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)
    np.testing.assert_allclose(found.se_, expected.se_, rtol=1e-7)
    found, expected = (quantile_regression(fed, "pain ~ age").objective for fed in (protected, federation()))
    assert found == pytest.approx(expected, rel=1e-5)
    assert all(entry.bound != "none" for entry in protected.ledger.entries)


@pytest.mark.slow
def test_masked_rows_give_the_same_line():
    masked = federation().protect(aggregation=SecAgg(records=1000))
    found, expected = (huber_regression(fed, "pain ~ age", tol=1e-7) for fed in (masked, federation()))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


# ---- refused --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("program", [huber_regression, quantile_regression])
def test_noise_is_refused(program):
    fed = federation().protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="adds noise"):
        program(fed, PAIN)
    assert len(fed.ledger) == 0


@pytest.mark.parametrize(
    ("program", "wrong"),
    [
        (huber_lines, {"threshold": 0.0}),
        (huber_lines, {"tol": 0.0}),
        (quantile_lines, {"share": 1.0}),
        (quantile_lines, {"tol": -1.0}),
    ],
)
def test_settings_out_of_range_are_refused(program, wrong):
    with pytest.raises(SettingsInvalid):
        program(federation(), formula=PAIN, **wrong)


@pytest.mark.parametrize("program", [huber_regression, quantile_regression])
def test_dependent_columns_are_refused(program):
    with pytest.raises(NotIdentified):
        program(federation(), "pain ~ age + I(2 * age)")
