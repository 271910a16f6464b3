"""Shadow models: coins of records, trainings on them, and rates over several targets."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import hedgerow as hr
from hedgerow.attacks import TargetRates, confidences, membership_trials
from hedgerow.attacks.observers.membership_page import membership_outcome
from hedgerow.attacks.observers.shadow_coins import KEY, coins, keyed
from hedgerow.attacks.observers.shadow_models import modules_of, weights_at
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.learn import dpsgd
from hedgerow.privacy import Gaussian
from hedgerow.privacy.accounting import calibrate

TABLE = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture", "mean_area"]).take(range(120))
MODEL = {"model": "mlp", "hidden": [4], "model_seed": 0, "components": 0}


def trained(table=TABLE, **settings):
    federation = hr.simulate(table, hr.data.iid(3), seed=0)
    modules = modules_of(table.schema, MODEL)
    given = {"n_records": len(table), "models": 3, "rounds": 2, **settings}
    return federation, modules, hr.last(membership_trials(federation, modules, **given))


def test_coins_are_fair_and_independent_of_each_other():
    """20 models: one of 20 shares beyond 4.5 deviations has chance 1.4e-4, one of 190 correlations 1.3e-3."""
    rng = np.random.default_rng(0)
    keys = keyed({"x": rng.standard_normal((5000, 3)), "y": rng.integers(0, 2, 5000)}, of=("x", "y"))[KEY]
    found = np.array([coins(keys, model, 0.3) for model in range(20)])
    assert np.abs(found.mean(1) - 0.3).max() < 4.5 * math.sqrt(0.21 / 5000)
    assert np.abs(np.corrcoef(found) - np.eye(20)).max() < 4.5 / math.sqrt(5000)


def test_a_coin_follows_from_the_record_alone():
    x = np.random.default_rng(1).standard_normal((50, 2))
    alone = np.concatenate([keyed({"x": x[i : i + 1]}, of=("x",))[KEY] for i in range(50)])
    assert (keyed({"x": x}, of=("x",))[KEY] == alone).all()


@pytest.mark.slow
def test_each_model_is_that_of_its_own_records():
    _, modules, state = trained()
    keys = keyed(TABLE.columns, of=(*TABLE.schema.features, "malignant"))[KEY]
    for model in range(3):
        own = hr.simulate(TABLE.take(coins(keys, model, 0.5)), hr.data.iid(1), seed=5)
        how = {"rounds": 2, "sampling_rate": 1.0, "batch_size": 60.0, "clip": 1e9, "solver": "adam", "learning_rate": 0.02}
        alone = hr.last(dpsgd(own, modules(model), **how)).weights
        ours = weights_at(modules(model), state.weights[model])
        assert all(ours[name] == pytest.approx(alone[name], abs=2e-4) for name in alone)


def test_noise_is_that_of_the_epsilon_of_one_training():
    federation, _, _ = trained(without_noise=False, epsilons=[2.0])
    (z,) = {entry.event.noise_multiplier for entry in federation.ledger.entries}
    assert z == calibrate(2.0, 1e-5, rounds=2, sampling="records")
    assert len(federation.ledger.entries) == 3 * 2
    assert 2.0 < federation.ledger.epsilon(delta=1e-5) < 3 * 2.0  # the price of three trainings, composed


@pytest.mark.slow
def test_training_goes_on_from_a_state():
    federation = hr.simulate(TABLE, hr.data.iid(2), seed=0)
    modules = modules_of(TABLE.schema, MODEL)
    given = {"n_records": 120, "models": 3, "rounds": 2, "epsilons": []}
    states = list(membership_trials(federation, modules, **given))
    again = hr.last(membership_trials(federation, modules, start=states[0], **given))
    assert again.round == states[-1].round == 3
    assert again.weights == pytest.approx(states[-1].weights)


@pytest.mark.parametrize("wrong", [{"share": 1.0}, {"models": 2}, {"epsilons": [math.inf]}, {"epsilons": [-1.0]}])
def test_wrong_settings_are_refused_before_anybody_is_asked(wrong):
    with pytest.raises(SettingsInvalid):
        trained(**wrong)


def test_a_protected_channel_is_refused():
    federation = hr.simulate(TABLE, hr.data.iid(2), seed=0).protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel):
        hr.last(membership_trials(federation, modules_of(TABLE.schema, MODEL), n_records=120))


@pytest.mark.slow
def test_the_page_prints_no_rate_that_hangs_on_few_records():
    _, modules, state = trained(models=6)
    settings = {**MODEL, "models": 6, "targets": 2, "share": 0.5, "rounds": 2, "delta": 1e-5, "epsilons": [4.0]}
    records = hr.core.Parties(["all"], TABLE.columns, [120])
    shown = membership_outcome(TABLE.schema, {**settings, "without_noise": True}, state, records, modules)
    table = shown.grids[0]
    assert [row[1] for row in table.rows if row[0] == "none"] == [
        "loss threshold",
        "shadow models",
        "LiRA offline",
        "LiRA online",
    ]
    assert all(row[4] is None for row in table.rows if not row[1].startswith("ceiling"))
    assert "would hang on" in table.note
    assert [row[1] for row in table.rows[-2:]] == ["ceiling of (4, 1e-5)", "ceiling of its noise"]
    assert table.rows[-2][4] == f"{100 * (math.exp(4) * 0.001 + 1e-5):.2f} %"
    mu = math.sqrt(2) / calibrate(4.0, 1e-5, rounds=2, sampling="records")
    assert table.rows[-1][2] == f"{norm.cdf(mu / math.sqrt(2)):.3f}" < table.rows[-2][2]
    assert table.rows[-1][5] == f"{100 * norm.cdf(norm.ppf(0.01) + mu):.2f} %"
    assert not any("TPR" in name for name in shown.metrics)
    nobody = membership_outcome(TABLE.schema, {**settings, "without_noise": True}, state, None, modules)
    assert not nobody.grids


@pytest.mark.slow
def test_confidence_of_a_binary_target():
    _, modules, state = trained()
    weights = weights_at(modules(0), state.weights[0])
    found = confidences(weights, modules(0), TABLE)
    p = hr.learn.predict(TABLE, modules(0), weights).astype(float)
    y = np.asarray(TABLE["malignant"])
    assert found == pytest.approx(np.where(y == 1, 1, -1) * np.log(p / (1 - p)), abs=1e-4)


# ---- rates over targets -----------------------------------------------------------------------------------------------------
def gaussian_targets(gap, targets=8, n=12_000, seed=0):
    rng = np.random.default_rng(seed)
    members = rng.random((targets, n)) < 0.1
    return TargetRates.of(list(gap * members + rng.standard_normal((targets, n))), list(members))


def test_a_rate_over_targets_is_the_mean_of_theirs():
    found = gaussian_targets(1.0)
    assert found.area.value == pytest.approx(np.mean([one.area for one in found.each]))
    assert found.at(0.01).value == pytest.approx(np.mean([one.at(0.01).value for one in found.each]))
    assert found.area.low < found.area.value < found.area.high


@pytest.mark.slow
def test_intervals_over_targets_cover_what_they_should():
    """Of 60 intervals at 95 % at least 50 cover: fewer have chance 1.5e-3 where 95 % do."""
    exact = 0.7602499389  # Phi(1 / sqrt 2)
    covered = sum(found.low < exact < found.high for found in (gaussian_targets(1.0, 6, 2000, seed=s).area for s in range(60)))
    assert covered >= 50


def test_a_rate_over_targets_is_refused_below_ten_thousand_others():
    with pytest.raises(SettingsInvalid, match="would hang on"):
        gaussian_targets(1.0, n=10_500).at(0.001)
    assert gaussian_targets(1.0, n=12_000).at(0.001).value > 0


def test_a_single_target_is_refused():
    with pytest.raises(SettingsInvalid, match="two"):
        TargetRates.of([np.arange(4.0)], [np.array([True, False, True, False])])


def test_the_curve_begins_where_ten_others_are_accused():
    false, true = gaussian_targets(1.0).curve(20)
    assert false[0] == pytest.approx(10 / 10_800, rel=0.02)
    assert true[-1] == 1.0
    assert (np.diff(true) >= 0).all()


@pytest.mark.slow
def test_with_noise_attacks_stay_below_the_ceiling_and_see_a_twin_that_adds_none():
    """Labels by coin, so that all that a model knows of a record it has from its training.

    The mean of 10 targets is above the ceiling by the interval's half with chance below 0.025 where an attack reaches the
    ceiling, and what is reached is far below.
    """
    rng = np.random.default_rng(0)
    column = hr.data.Column
    schema = hr.data.Schema((column("x", "number", shape=(40,), low=-8, high=8), column("y", "binary", role="target")))
    x = rng.standard_normal((160, 40)).clip(-8, 8)
    table = hr.data.Table(schema.admit({"x": x, "y": rng.integers(0, 2, 160)}), schema)
    given = {"n_records": 160, "models": 10, "rounds": 12, "epsilons": [1.0], "learning_rate": 0.2}
    settings = {**MODEL, **given, "hidden": [16], "targets": 10, "share": 0.5, "delta": 1e-5, "without_noise": True}
    federation, modules = hr.simulate(table, hr.data.iid(1), seed=0), modules_of(schema, settings)
    state = hr.last(membership_trials(federation, modules, **given))
    shown = membership_outcome(schema, settings, state, hr.core.Parties(["all"], table.columns, [160]), modules)
    area = {(row[0], row[1]): float(row[2]) for row in shown.grids[0].rows}
    allowed = area["epsilon 1", "ceiling of its noise"]
    assert area["epsilon 1", "LiRA online"] < allowed < 0.65
    assert area["epsilon 1", "loss threshold"] < allowed
    assert area["none", "LiRA online"] > allowed + 0.1
    assert area["none", "loss threshold"] > allowed + 0.1
