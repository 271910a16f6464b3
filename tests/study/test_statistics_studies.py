"""Statistics as programs of study files: pooled fits, hidden rows, resumption, rehearsals, scores, and refusals."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn import metrics

import hedgerow as hr
from hedgerow.data import load as table_of
from hedgerow.errors import HedgerowError, StudyInvalid
from hedgerow.stats import HuberState, Scaling, logistic_regression
from hedgerow.store import LedgerFile, drive, last
from hedgerow.store.checkpoint import load_checkpoint
from hedgerow.study import PROGRAMS, parse, rehearse, run_study
from hedgerow.study.build import build
from hedgerow.study.keys import settings_of

CANCER, DIABETES, VISITS, WORK = ({"name": name} for name in ("breast_cancer", "diabetes", "hie", "fair"))
LOG = "malignant ~ mean_radius + mean_texture + mean_smoothness"
LINE = "progression ~ bmi + bp + sex"
COUNT = "mdvis ~ lncoins + hlthp"
CASES = {
    "poisson_regression": (VISITS, {"formula": COUNT}),
    "gamma_regression": (DIABETES | {"ranges": {"progression": [1, 400]}}, {"formula": LINE}),
    "negative_binomial_regression": (VISITS, {"formula": COUNT}),
    "multinomial_regression": (WORK, {"formula": "occupation ~ educ + age"}),
    "firth_regression": (CANCER, {"formula": LOG}),
    "penalised_regression": (CANCER, {"formula": LOG, "family": "binomial", "penalty": 0.02, "standardised": True}),
    "penalty_path": (CANCER, {"formula": LOG, "family": "binomial", "n_penalties": 4, "folds": 3}),
    "gradient_descent": (
        CANCER,
        {"formula": LOG, "family": "binomial", "learning_rate": 1.0, "rounds": 20, "standardise": True},
    ),
    "hidden_gradient_descent": (DIABETES, {"formula": LINE, "learning_rate": 0.5, "rounds": 10}),
    "svm": (CANCER, {"formula": LOG, "standardise": True}),
    "huber_regression": (DIABETES, {"formula": LINE, "tol": 1e-5}),
    "quantile_regression": (DIABETES, {"formula": LINE, "share": 0.8, "tol": 1e-3}),
}
HIDDEN = {"aggregation": {"by": "additive", "records": 9000}}


def study(name, program=None, **changes):
    data, settings = CASES[name]
    changes["protection"] = {"disclosure": math.inf} | changes.get("protection", {})  # tables are small
    sections = {"name": "small", "data": data, "partition": {"by": "iid", "parties": 4}, "baselines": False}
    return parse(sections | {"program": {"name": name, **settings, **(program or {})}} | changes)


def fitted(built):
    """The last state, and what the page shows of it."""
    state = last(built.listing.program(built.settings)(built.federation))
    return state, built.listing.outcome(built.federation, built.settings, state)


def queries(built):
    return [entry.query for entry in built.federation.ledger.entries]


@pytest.fixture(scope="module")
def plain():
    """Each study built and fitted once."""
    kept = {}

    def once(name):
        if name not in kept:
            built = build(study(name))
            kept[name] = (built, *fitted(built))
        return kept[name]

    return once


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Each study run once, with its page and baselines."""
    kept = {}

    def once(name):
        if name not in kept:
            kept[name] = run_study(study(name, baselines=True), tmp_path_factory.mktemp("runs") / name)
        return kept[name]

    return once


# ---- pages ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_page_has_coefficients_a_summary_and_baselines(name, run):
    result = run(name)
    titles = [grid.title for grid in result.report.tables]
    assert any(title.startswith("Coefficients") for title in titles)
    assert "left each party" in dict(result.report.text)["Summary"]
    assert (result.folder / "coefficients.csv").exists()
    scores = {row: value for row, value, _ in result.report.comparison.rows}
    if name != "penalty_path":  # parties have other names there, and so other folds
        assert scores["federated"] == pytest.approx(scores["centralised"], rel=1e-6)
    assert np.isfinite(scores["local only"])


def test_coefficients_of_counts_are_those_of_statsmodels(plain):
    frame = table_of("hie").to_pandas().astype(float)
    pooled = sm.Poisson(frame["mdvis"], sm.add_constant(frame[["lncoins", "hlthp"]])).fit(disp=0)
    tables = plain("poisson_regression")[2].tables
    np.testing.assert_allclose(tables["Coefficients"]["coef"], pooled.params, rtol=1e-6)
    found = tables["Ratios of means"]
    np.testing.assert_allclose(found["ratio of means"], np.exp(pooled.params), rtol=1e-6)
    np.testing.assert_allclose(found[["low", "high"]], np.exp(pooled.conf_int()), rtol=1e-5)


def test_a_binary_regression_shows_its_odds_ratios():
    built = build(study("firth_regression", program={"name": "logistic_regression"}))
    found = fitted(built)[1].tables["Odds ratios"]
    frame = table_of("breast_cancer").to_pandas().astype(float)
    pooled = sm.Logit(frame["malignant"], sm.add_constant(frame[["mean_radius", "mean_texture", "mean_smoothness"]]))
    fit = pooled.fit(disp=0, method="newton", tol=1e-10, maxiter=100)
    np.testing.assert_allclose(found["odds ratio"], np.exp(fit.params), rtol=1e-6)
    np.testing.assert_allclose(found[["low", "high"]], np.exp(fit.conf_int()), rtol=1e-6)


def test_odds_ratios_of_several_levels_have_a_row_for_each(plain):
    _, _, shown = plain("multinomial_regression")
    found = shown.tables["Odds ratios"]
    assert list(found.index[:4]) == ["Intercept (2)", "educ (2)", "age (2)", "Intercept (3)"]
    np.testing.assert_allclose(np.log(found["odds ratio"]), shown.coefficients["coef"])
    np.testing.assert_allclose(np.log(found["low"]), shown.coefficients["low"])


def test_a_path_shows_curve_and_choice(plain):
    built, state, best = plain("penalty_path")
    one_se = built.listing.outcome(built.federation, built.settings | {"choose": "one_se"}, state)
    choice = best.tables["Choice"]
    assert best.metrics["penalty"] == choice["penalty"].iloc[0] <= choice["penalty"].iloc[1] == one_se.metrics["penalty"]
    mean = best.tables["Cross-validation"]["deviance"]
    assert best.metrics["deviance of left-out records"] == mean.min()
    assert [curve.title for curve in best.curves] == ["Cross-validation", "Coefficients"]
    read = {choose: built.listing.score(built.settings | {"choose": choose}, state, built.schema, built.table)
            for choose in ("best", "one_se")}  # fmt: skip
    assert read["best"] > read["one_se"]


def test_coefficients_of_standardised_columns_come_in_their_own_units(plain):
    frame = table_of("diabetes").to_pandas()
    x = np.column_stack([np.ones(len(frame)), frame[["bmi", "bp"]].astype(float), frame["sex"] == "2"])
    built = build(study("hidden_gradient_descent", program={"rounds": 200}))
    found = fitted(built)[1].coefficients.loc[["Intercept", "bmi", "bp", "sex[T.2]"]]
    np.testing.assert_allclose(found["coef"], np.linalg.lstsq(x, frame["progression"], rcond=None)[0], rtol=1e-6)
    assert list(found.columns) == ["coef", "per standard deviation"]


@pytest.mark.slow
def test_a_diverged_descent_says_so(tmp_path):
    rate = {"learning_rate": 1e9, "rounds": 300, "standardise": False, "family": "gaussian", "formula": LINE}
    result = run_study(study("gradient_descent", program=rate, data=DIABETES, baselines=True), tmp_path / "run")
    assert result.run.state.diverged
    assert "diverged" in dict(result.report.text)["Summary"]
    assert not np.isfinite([value for _, value, _ in result.report.comparison.rows]).any()


# ---- scores ---------------------------------------------------------------------------------------------------------
def scored(built, state):
    return built.listing.score(built.settings, state, built.schema, built.table)


def logits(coefficients):
    frame = table_of("breast_cancer").to_pandas()
    x = np.column_stack([np.ones(len(frame)), frame[["mean_radius", "mean_texture", "mean_smoothness"]]])
    return frame["malignant"].astype(int), x @ coefficients["coef"].to_numpy()


def lines(coefficients):
    frame = table_of("diabetes").to_pandas()
    x = np.column_stack([np.ones(len(frame)), frame[["bmi", "bp"]].astype(float), frame["sex"] == "2"])
    return frame["progression"], x @ coefficients["coef"].loc[["Intercept", "bmi", "bp", "sex[T.2]"]].to_numpy()


def probability(eta):
    return 1 / (1 + np.exp(-eta))


@pytest.mark.parametrize(
    ("name", "predict", "measure"),
    [
        ("firth_regression", logits, lambda y, eta: metrics.log_loss(y, probability(eta))),
        ("gradient_descent", logits, lambda y, eta: metrics.log_loss(y, probability(eta))),
        ("svm", logits, lambda y, eta: metrics.accuracy_score(y, eta > 0)),
        ("penalised_regression", logits, lambda y, eta: metrics.d2_log_loss_score(y, probability(eta))),
        ("gamma_regression", lines, lambda y, eta: metrics.d2_tweedie_score(y, np.exp(eta), power=2)),
        ("hidden_gradient_descent", lines, metrics.r2_score),
        ("huber_regression", lines, metrics.mean_absolute_error),
        ("quantile_regression", lines, lambda y, eta: metrics.mean_pinball_loss(y, eta, alpha=0.8)),
    ],
)
def test_scores_are_those_of_scikit_learn(name, predict, measure, plain):
    built, state, shown = plain(name)
    assert scored(built, state) == pytest.approx(measure(*predict(shown.coefficients)), rel=1e-9)


def test_scores_of_counts_and_levels_are_their_likelihoods(plain):
    for name in ("negative_binomial_regression", "multinomial_regression"):
        built, state, shown = plain(name)
        assert scored(built, state) == pytest.approx(-shown.metrics["log-likelihood"] / len(built.table), rel=1e-9)
    built, state, shown = plain("poisson_regression")
    y = built.table["mdvis"]
    mean = np.full(len(y), y.mean())
    null = metrics.mean_poisson_deviance(y, mean) * len(y)
    assert scored(built, state) == pytest.approx(1 - shown.metrics["deviance"] / null, rel=1e-9)


# ---- metrics by sums ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_metrics_are_asked_for_once_and_only_where_a_key_says_so(tmp_path):
    quiet = build(study("firth_regression"))
    fitted(quiet)
    assert not [entry for entry in quiet.federation.ledger.entries if "metrics" in entry.query or "roc" in entry.query]
    result = run_study(study("firth_regression", evaluation={"on": "parties", "bins": 400}), tmp_path / "run")
    found = dict(result.report.metrics)
    y, eta = logits(result.outcome.coefficients)
    assert found["log-loss"] == pytest.approx(metrics.log_loss(y, probability(eta)), rel=1e-9)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, eta > 0), rel=1e-9)
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(y, eta), abs=1e-3)
    asked = [row[0] for row in result.report.left.rows if "classified" in row[0]]
    assert asked == ["stats.classified"]
    assert next(row[1] for row in result.report.left.rows if row[0] == "stats.classified") == 1


def test_metrics_of_a_standardised_target_are_in_its_own_units(plain):
    built, state, shown = plain("hidden_gradient_descent")
    found = built.listing.ask(build(study("hidden_gradient_descent")).federation, built.settings, state)
    y, line = lines(shown.coefficients)
    assert found["R2"] == pytest.approx(metrics.r2_score(y, line), rel=1e-9)
    assert found["mean squared error"] == pytest.approx(metrics.mean_squared_error(y, line), rel=1e-9)
    assert found["mean absolute error"] == pytest.approx(metrics.mean_absolute_error(y, line), rel=1e-9)


def test_a_rehearsal_counts_metrics():
    queries = {entry.query for entry in rehearse(study("gradient_descent", evaluation={"on": "parties"})).entries}
    assert {"hedgerow.stats.quality.metrics:classified", "hedgerow.stats.quality.roc:scores_by_class"} <= queries


@pytest.mark.slow
def test_a_test_table_gives_a_curve(tmp_path):
    more = {"evaluation": {"holdout": 0.2}}
    result = run_study(study("gradient_descent", program={"with_loss": True}, **more), tmp_path / "run")
    curves = {curve.title: curve.series[0].y for curve in result.report.curves}
    assert set(curves) == {"Training loss", "Test loss"}
    assert len(curves["Test loss"]) == 20
    assert curves["Training loss"][-1] < curves["Training loss"][0]


# ---- channels -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_hidden_rows_change_nothing(name, plain):
    built = build(study(name, protection=HIDDEN))
    _, shown = fitted(built)
    assert {entry.aggregation for entry in built.federation.ledger.entries} == {built.federation.protection.aggregation}
    assert built.federation.protection.hides_rows
    expected = plain(name)[2].coefficients["coef"]
    np.testing.assert_allclose(shown.coefficients["coef"], expected, rtol=1e-6, atol=1e-9)


def test_noise_and_penalties_do_not_go_together():
    mechanism = {"mechanism": {"law": "gaussian", "noise_multiplier": 1.0}}
    for name in ("penalised_regression", "penalty_path", "firth_regression", "svm", "poisson_regression"):
        built = build(study(name, protection=mechanism))
        with pytest.raises(HedgerowError, match="HR-21"):
            fitted(built)
        assert not built.federation.ledger.entries


@pytest.mark.slow
def test_a_budget_decides_the_noise_of_a_descent():
    private = {"protection": {"mechanism": {"law": "gaussian"}}, "budget": {"epsilon": 1.0, "delta": 1e-6, "unit": "record"}}
    rehearsed = rehearse(study("gradient_descent", program={"rounds": 5, "standardise": False}, **private))
    assert len(rehearsed.entries) == 5
    assert 0.9 < rehearsed.statement.epsilon <= 1.0


@pytest.mark.slow
def test_a_hidden_model_is_standardised_through_the_sum_of_masks(plain):
    aggregation = {"by": "privfl", "records": 400, "key_bits": 2048, "most_rounds": 10}
    built = build(study("hidden_gradient_descent", protection={"aggregation": aggregation}))
    _, shown = fitted(built)
    np.testing.assert_allclose(shown.coefficients["coef"], plain("hidden_gradient_descent")[2].coefficients["coef"], rtol=1e-6)
    names = [entry.aggregation for entry in built.federation.ledger.entries]  # means and deviations twice, n, then gradients
    assert [name.startswith("PrivFL") for name in names] == [False] * 3 + [True] * 10


# ---- running --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", CASES)
def test_a_run_is_continued_as_if_it_had_never_stopped(name, plain, tmp_path):
    whole, expected, _ = plain(name)
    path, rounds = tmp_path / "checkpoint", []
    first = build(study(name))
    first.federation.recorded(LedgerFile(tmp_path / "ledger"))

    def enough():
        return "stopped" if len(rounds) == 2 else ""

    program = first.listing.program(first.settings)
    drive(program, first.federation, watch=rounds.append, enough=enough, checkpoint=path, study="x")
    assert len(rounds) == 2
    again = build(study(name))
    again.federation.recorded(LedgerFile(tmp_path / "ledger"))
    ended = drive(program, again.federation, start=load_checkpoint(path, again.listing.state, "x"))
    assert queries(again) == queries(whole)
    assert ended.state.round == expected.round
    for key, value in vars(expected).items():
        same(getattr(ended.state, key), value)


def same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            same(found[key], value)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, float):
        assert found == expected or (np.isnan(found) and np.isnan(expected))
    elif not hasattr(expected, "__dict__"):  # what a state caches is made of the rest
        assert found == expected


@pytest.mark.parametrize("name", CASES)
def test_a_rehearsal_asks_what_the_run_asks(name, plain):
    built = plain(name)[0]
    rehearsed = rehearse(study(name))
    assert "ends after" in rehearsed.ended
    assert {entry.query for entry in rehearsed.entries} == set(queries(built))


def test_intervals_are_not_asked_for_before_the_line_is_there(plain):
    built, state, _ = plain("huber_regression")
    first = next(iter(built.listing.program(built.settings)(build(study("huber_regression")).federation)))
    assert isinstance(first, HuberState)
    assert np.isnan(first.covariance).all()
    assert np.isfinite(state.covariance).all()


def test_a_standardised_descent_asks_for_its_scaling_once(plain):
    built, state, _ = plain("svm")
    scaling = [entry for entry in built.federation.ledger.entries if entry.query.endswith(":deviations")]
    assert len(scaling) == 2  # about a centre, then about the mean
    assert isinstance(state.scaling, Scaling)


# ---- refusals -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        ("penalised_regression", {"family": "binomail"}, "family"),
        ("penalised_regression", {"alpha": 1.0}, "unknown key 'alpha'"),
        ("penalty_path", {"choose": "first"}, "choose"),
        ("poisson_regression", {"rounds": 3}, "unknown key 'rounds'"),
        ("poisson_regression", {"family": "gamma"}, "unknown key 'family'"),
        ("gradient_descent", {"optimiser": "adam"}, "optimiser"),
        ("gradient_descent", {"learningrate": 0.1}, "Did you mean 'learning_rate'"),
        ("hidden_gradient_descent", {"degree": 2}, "degree"),
        ("svm", {"cost": 1.0}, "unknown key 'cost'"),
    ],
)
def test_a_wrong_key_is_refused_with_the_study(name, keys, words):
    with pytest.raises(StudyInvalid, match="HR-101") as caught:
        settings_of(PROGRAMS[name], CASES[name][1] | keys)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("penalised_regression", {"penalty": -1.0}),
        ("penalty_path", {"folds": 1}),
        ("gradient_descent", {"rounds": 0}),
        ("hidden_gradient_descent", {"degree": 3}),
        ("svm", {"C": 1.0, "penalty": 0.1}),
        ("huber_regression", {"threshold": 0.0}),
        ("quantile_regression", {"share": 1.0}),
        ("multinomial_regression", {"formula": "age ~ educ"}),
        ("poisson_regression", {"formula": "mdvis ~ nothing"}),
    ],
)
def test_a_value_out_of_range_is_refused_before_anybody_is_asked(name, keys):
    built = build(study(name, program=keys))
    with pytest.raises(HedgerowError, match="No party was asked"):
        fitted(built)
    assert not built.federation.ledger.entries


def test_the_program_is_the_function(plain):
    built, _, shown = plain("firth_regression")
    federation = hr.simulate(built.table, hr.data.iid(4), seed=0)
    np.testing.assert_allclose(shown.coefficients["coef"], logistic_regression(federation, LOG, firth=True).coef_, rtol=1e-9)
