"""Additive histograms: bounds at corners, the fit of a trusted implementation, what a budget buys, and twins."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special
from sklearn.linear_model import LinearRegression, LogisticRegression

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.bound import l1, l2
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import BudgetInvalid, MissingColumn, SchemaInvalid, SettingsInvalid, SlotFilled, UnboundedSum
from hedgerow.privacy import DiscreteGaussian, Gaussian, Geometric
from hedgerow.trees import AdditiveModel, AdditiveState, Bins, additive, additive_model, binned
from hedgerow.trees.additive import bin_records, bin_residuals
from hedgerow.trees.noise import ball
from hedgerow.trees.reading import bin_numbers

TWO = ("ill", "days")


def indicators(bins: Bins, numbers: np.ndarray) -> np.ndarray:
    return np.concatenate([np.eye(size)[numbers[:, j]] for j, size in enumerate(bins.sizes)], axis=1)


def party_of(schema: Schema, bins: Bins, n: int, seed: int = 0) -> Party:
    columns = schema.synthetic(n, np.random.default_rng(seed))
    return Party("one", binned(columns, bins=bins), columns["dose"])


# ---- bounds ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TWO)
@pytest.mark.parametrize("size", [0.0, 1.0, 50.0])
def test_residuals_move_at_most_their_bound_and_reach_it(weighted_schema, target, size):
    """Every single record at every sign of the model: l2 sqrt(F) times the weight, never more."""
    bins = Bins.of(weighted_schema, target=target, n_bins=4)
    bound = ball(hr.simulate(weighted_schema_table(weighted_schema)), len(bins.features), bins.heaviest)
    rng, longest = np.random.default_rng(0), 0.0
    one = partial(bin_residuals, rng=None, sizes=bins.sizes, classified=bool(bins.classes), clip=True)
    for seed in range(40):
        party = party_of(weighted_schema, bins, 1, seed)
        party.w[:] = 10.0
        party.columns["target"][:] = rng.choice([0.0 if bins.classes else -1.0, 1.0])
        theta = size * rng.choice([-1.0, 1.0], sum(bins.sizes))
        longest = max(longest, float(np.linalg.norm(one(theta, party))))
    assert longest <= bound.radius * (1 + 1e-12)
    if size == 50.0:
        assert longest == pytest.approx(bound.radius, rel=1e-9)


@pytest.mark.parametrize("target", TWO)
def test_counts_reach_their_bound(weighted_schema, target):
    bins = Bins.of(weighted_schema, target=target)
    party = party_of(weighted_schema, bins, 1)
    party.w[:] = 10.0
    moved = bin_records(None, party, None, sizes=bins.sizes)
    assert np.linalg.norm(moved) == pytest.approx(bins.bound.radius / (1 if bins.classes else np.sqrt(2)))
    assert np.abs(moved).sum() == pytest.approx(10.0 * len(bins.features))


def test_laplace_noise_of_counts_at_l1_of_one_is_a_broken_twin(table):
    """A record is in one bin of every feature: l1 is F, and a twin that declares 1 is caught by the length that it moves."""
    bins = Bins.of(table.schema)
    laplace = hr.simulate({"one": table}).protect(mechanism=hr.Laplace(1.0))
    declared, twin = ball(laplace, len(bins.features)), l1(1.0, "record")
    few = Party("one", binned(table.take([0]).columns, bins=bins), np.ones(1))
    moved = np.abs(bin_records(None, few, None, sizes=bins.sizes)).sum()
    assert moved == declared.radius == len(bins.features)
    assert moved > twin.radius


@pytest.mark.parametrize("target", TWO)
def test_stacked_and_pooled_parties_add_up_the_same(table, target):
    bins = Bins.of(table.schema, target=target)
    columns, w = binned(table.columns, bins=bins), np.linspace(0, 2, 400)
    stacked = {name: column.reshape(4, 100, *column.shape[1:]) for name, column in columns.items()}
    theta = np.random.default_rng(0).normal(size=sum(bins.sizes))
    one = partial(bin_residuals, theta, rng=None, sizes=bins.sizes, classified=bool(bins.classes), clip=True)
    of_each = one(Party("stack", stacked, w.reshape(4, 100)))
    for i in range(4):
        alone = Party("one", {name: column[i] for name, column in stacked.items()}, w.reshape(4, 100)[i])
        assert_array_equal(of_each[i], one(alone))
    assert_allclose(of_each.sum(0), one(Party("all", columns, w)), atol=1e-11)
    counts = bin_records(None, Party("all", columns, w), None, sizes=bins.sizes)
    assert_allclose(counts.sum(), w.sum() * len(bins.features))


# ---- without noise --------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_without_noise_it_is_the_logistic_regression_of_the_same_bins(federate, table):
    """Each record's indicators, no penalty: log-odds agree to 1e-6 (coefficients have a freedom in each feature)."""
    model = additive(
        federate(table), rounds=4000, n_bins=3, momentum=0.9, tol=1e-11, features=["age", "dose", "smoker", "stage"]
    )
    X = indicators(model.bins, bin_numbers(model.bins, table))
    trusted = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky", fit_intercept=False)
    trusted.fit(X[:, [i for i in range(X.shape[1]) if i not in (3, 6, 8)]], table["ill"])
    expected = X[:, [i for i in range(X.shape[1]) if i not in (3, 6, 8)]] @ trusted.coef_[0]
    assert_allclose(model.decide(table), expected, atol=1e-6)
    assert_allclose(model.probabilities(table)[:, 1], special.expit(expected), atol=1e-6)
    assert model.rounds < 4000


@pytest.mark.slow
def test_without_noise_it_is_the_least_squares_of_the_same_bins(federate, table):
    model = additive(federate(table), rounds=2000, n_bins=4, momentum=0.8, tol=1e-12, target="days")
    X = indicators(model.bins, bin_numbers(model.bins, table))
    fitted = LinearRegression().fit(X, table["days"])
    assert np.abs(table["days"] - fitted.predict(X)).max() < model.bins.scale  # nothing is cut
    assert_allclose(model.decide(table), fitted.predict(X), atol=1e-6)


def test_without_noise_the_mean_is_the_mean_however_skew_the_target():
    """A tenth is at the end of the declared range; cut residuals would end at 5.6."""
    from hedgerow.trees import random_trees

    schema = Schema((Column("b", "binary"), Column("y", "number", low=0, high=100, role="target")))
    table = Table({"b": np.zeros(200), "y": np.where(np.arange(200) < 20, 100.0, 0.0)}, schema)
    skew = hr.simulate(table, hr.data.iid(parties=3), seed=0)
    assert additive(skew, rounds=80).predict({"b": np.zeros(1)}) == pytest.approx(10, abs=1e-3)
    assert random_trees(skew, trees=40, batch=5, depth=1).predict({"b": np.zeros(1)}) == pytest.approx(10, abs=0.1)


def test_masked_residuals_beyond_the_range_fit_their_bound():
    """Of a model that is far off, every residual is 7 halves of the range: the bound of the sum says so."""
    schema = Schema((Column("b", "binary"), Column("y", "number", low=0, high=2, role="target")))
    table = Table({"b": np.zeros(64), "y": np.zeros(64)}, schema)
    masked = hr.simulate(dict.fromkeys("abc", table), seed=0).protect(aggregation=hr.SecAgg(records=64))
    far = AdditiveState(1, np.array([192.0, 0.0]), np.array([6.0, 0.0]), np.zeros(2))
    (state,) = additive_model(masked, rounds=2, n_bins=2, start=far)
    assert state.theta[0] == pytest.approx(6 - 2 * 7, rel=1e-6)
    assert masked.ledger.entries[-1].bound == "l2(7) per record"


# ---- with noise -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("delta", "bound"), [(1e-5, "l2(2.23607) per record"), (None, "l1(5) per record")])
def test_a_budget_is_spent_and_each_round_is_one_question(federate, table, delta, bound):
    federation = federate(table)
    additive(federation, rounds=5, epsilon=2.0, delta=delta)
    charged = [entry.event.noise_multiplier for entry in federation.ledger.entries]
    spent = federation.ledger.epsilon(delta=delta, unit="record") if delta else sum(1 / multiplier for multiplier in charged)
    assert 2.0 * (1 - 1e-6) <= spent <= 2.0
    assert [entry.query.partition(":")[2] for entry in federation.ledger.entries] == ["bin_records"] + 5 * ["bin_residuals"]
    assert {entry.bound.partition(" in ")[0] for entry in federation.ledger.entries} == {bound}


def test_counts_and_residuals_are_charged_their_shares(federate, table):
    federation = federate(table)
    additive(federation, rounds=5, epsilon=2.0, delta=1e-5)
    first, *others = (entry.event.noise_multiplier**-2 for entry in federation.ledger.entries)
    assert first / (first + sum(others)) == pytest.approx(0.1)


def test_a_channel_with_noise_is_used_as_it_is_and_never_twice(federate, table):
    noisy = federate(table).protect(mechanism=Gaussian(1e-3))
    close = additive(noisy, rounds=5)
    assert_allclose(close.theta, additive(federate(table), rounds=5).theta, atol=0.01)
    with pytest.raises(SlotFilled, match="HR-212"):
        additive(noisy, rounds=5, epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (Gaussian(2.0), 2 * np.sqrt(5)),
        (Gaussian(2.0, "party"), 2 * np.sqrt(5 * 8)),
        (Gaussian(2.0, "shares", 2), 2 * np.sqrt(5 * 8 / 2)),
        (hr.Laplace(2.0), 2 * np.sqrt(2) * 5),
    ],
    ids=str,
)
def test_the_deviation_of_a_round_counts_the_shares_that_parties_add(federate, table, mechanism, expected):
    """Of eight parties whose noise is whole with two, the sum has twice the deviation. The counts are such a question, too."""
    slots = {"aggregation": hr.SecAgg()} if mechanism.at == "shares" else {}
    noisy = [federate(table, seed=seed).protect(mechanism=mechanism, **slots) for seed in range(3)]
    fits = [next(iter(additive_model(federation, rounds=1))) for federation in noisy]
    assert fits[0].sigma == pytest.approx(expected, rel=1e-6)
    exact = next(iter(additive_model(federate(table), rounds=1))).counts
    errors = np.concatenate([fit.counts - exact for fit in fits])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("mechanism", [DiscreteGaussian(5.0), Geometric(2.0)], ids=str)
def test_noise_on_whole_numbers_is_refused_before_the_first_question(federate, table, mechanism):
    """Counts are whole numbers, and the residuals that follow are not: nothing is asked or charged."""
    from hedgerow.trees import boosted_trees, decision_tree, random_forest

    federation = federate(table).protect(mechanism=mechanism)
    for fit in (additive, boosted_trees, partial(decision_tree, target="days")):
        with pytest.raises(BudgetInvalid, match="no whole numbers"):
            fit(federation)
    with pytest.raises(BudgetInvalid, match="no whole numbers"):
        random_forest(federation, target="days", bootstrap=False, trees=2)
    assert not federation.ledger.entries


def test_pure_noise_still_predicts(federate, table):
    model = additive(federate(table), rounds=3, epsilon=1e-3, delta=1e-5, target="days")
    assert np.isfinite(model.predict(table)).all()
    assert (np.abs(model.predict(table) - 15) <= 45).all()


def test_it_goes_on_from_a_state(federate, table):
    *_, whole = additive_model(federate(table), rounds=6)
    first = next(iter(additive_model(federate(table), rounds=6)))
    *_, resumed = additive_model(federate(table), rounds=6, start=first)
    assert_array_equal(whole.theta, resumed.theta)


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_one_feature_on_a_logarithmic_scale_is_a_plain_str_too(federate, table):
    model = additive(federate(table), rounds=2, n_bins=4, log="dose")
    assert model.log == ("dose",)
    assert model.bins == additive(federate(table), rounds=2, n_bins=4, log=["dose"]).bins


def test_what_has_no_bound_or_follows_from_data_is_refused(federate, table):
    with pytest.raises(SettingsInvalid, match="number of rounds is fixed beforehand"):
        additive(federate(table), epsilon=1.0, delta=1e-5, tol=1e-3)
    with pytest.raises(SchemaInvalid, match="3 classes"):
        additive(federate(table), target="arm")
    with pytest.raises(SettingsInvalid, match="log="):
        additive(federate(table), log=["stage"])
    with pytest.raises(SettingsInvalid, match="HR-511"):
        additive(federate(table), rounds=0)
    schema = Schema((Column("x", "number", low=0, high=1), Column("y", "number", role="target")))
    bare = Table({"x": np.linspace(0, 1, 9), "y": np.linspace(0, 1, 9)}, schema)
    federation = hr.simulate({"one": bare})
    with pytest.raises(UnboundedSum, match="HR-210"):
        additive(federation, epsilon=1.0, delta=1e-5)
    assert not federation.ledger.entries


# ---- shapes ---------------------------------------------------------------------------------------------------------
def test_shapes_are_centred_and_add_up_to_the_prediction(federate, table):
    model = additive(federate(table), rounds=10, n_bins=4, log=["dose"])
    numbers = bin_numbers(model.bins, table)
    total = np.full(len(table), model.intercept)
    for j, column in enumerate(model.bins.features):
        frame = model.shape(column.name)
        assert frame["contribution"] @ frame["records"] == pytest.approx(0, abs=1e-9)
        assert frame["records"].sum() == pytest.approx(len(table))
        total += frame["contribution"].to_numpy()[numbers[:, j]]
    assert_allclose(total, model.decide(table), atol=1e-12)
    assert list(model.shape("stage")["level"]) == ["I", "II", "III", "IV"]
    edges = model.shape("dose")
    assert (edges["low"].iloc[0], edges["high"].iloc[-1]) == (0.0, 10.0)
    assert_allclose(np.diff(np.log1p(np.append(edges["low"], 10.0))), np.log(11) / 4)
    with pytest.raises(MissingColumn, match="age"):
        model.shape("agee")


def test_a_noisy_shape_claims_no_deviation_and_says_why(federate, table):
    """Noise goes through the residuals of all features, by joint counts that nobody released: no band, no column."""
    noisy = additive(federate(table), rounds=3, n_bins=4, epsilon=2.0, delta=1e-5)
    frame, figure = noisy.shape("age"), noisy.plot("age")
    assert list(frame) == ["low", "high", "contribution", "records"]
    (curve,) = figure.drawn
    assert not curve.series[0].low
    assert "no band is drawn" in curve.note
    assert f"standard deviation {noisy.sigma:.4g}" in str(noisy)
    assert noisy.plot("stage").drawn[0].note == curve.note
    assert not additive(federate(table), rounds=3, n_bins=4).plot("age").drawn[0].note


def test_shapes_are_drawn(federate, table):
    model = additive(federate(table), rounds=3, n_bins=4, log=["dose"])
    assert "Shape of dose" in model.plot("dose", "stage").svg
    assert model.plot().svg.count("Shape of") >= 5
    assert "intercept" in str(model)


def test_a_program_shows_its_shapes(federate, table):
    from hedgerow.trees.additive import outcome

    settings = {"n_bins": 4, "log": [], "features": None, "target": None, "momentum": 0.7, "caution": 2.0}
    *_, state = additive_model(federate(table), rounds=3, n_bins=4)
    shown = outcome(federate(table), settings, state)
    assert len(shown.curves) + len(shown.dots) == 5
    assert len(shown.tables["Importance of the features"]) == 5


# ---- real data ------------------------------------------------------------------------------------------------------
DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "tabular").exists(), reason="needs the data folder")
def test_adult_at_epsilon_one(monkeypatch):
    """85.5 +- 0.1 percent; a floor that noise of ten times the variance does not reach."""
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    adult = hr.data.load("adult")
    federation = hr.simulate(adult, hr.data.iid(parties=5), seed=0)
    model = additive(federation, epsilon=1.0, delta=1e-5, log=("capital_gain", "capital_loss"))
    assert (model.predict(adult.test) == adult.test["income_over_50k"]).mean() > 0.85


def weighted_schema_table(schema: Schema) -> dict[str, Table]:
    return {"one": Table(schema.synthetic(2, np.random.default_rng(0)), schema)}


def test_models_are_values(federate, table):
    model = additive(federate(table), rounds=2)
    assert isinstance(model, AdditiveModel)
    assert Bins.of(table.schema, n_bins=16) == model.bins
    assert l2(model.bins.bound.radius, "record") == model.bins.bound
