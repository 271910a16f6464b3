"""Growing: equal to scikit-learn, the same on every engine, resumable."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from hedgerow.core import l2
from hedgerow.data import iid, load
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.errors import SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.privacy import Gaussian
from hedgerow.store import drive, last, load_checkpoint, save_checkpoint
from hedgerow.store.checkpoint import join, split
from hedgerow.trees import TreeState, decision_tree, grow

TARGETS = ["ill", "arm", "days"]
CHANNELS = {
    "plain": {},
    "Gaussian per record": {"mechanism": Gaussian(0.5)},
    "clip and Gaussian per party": {"clip": l2(60.0), "mechanism": Gaussian(0.05)},
    "Gaussian at the party": {"mechanism": Gaussian(0.5, at="party")},
}


def assert_same(found: TreeState, expected: TreeState, rtol: float = 0.0) -> None:
    for name in vars(expected):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=rtol, err_msg=name)


# ---- equal to the pooled fit ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TARGETS)
def test_tree_equals_scikit_learn_on_the_pooled_bins(table, federate, target):
    tree = decision_tree(federate(table), depth=4, min_records=15, target=target)
    X, y = tree.bins.number(table.columns), table[target]
    kind = DecisionTreeClassifier if tree.bins.classes else DecisionTreeRegressor
    expected = kind(max_depth=4, min_samples_leaf=15, min_impurity_decrease=1e-9, random_state=0).fit(X, y)
    values = expected.predict_proba(X) if tree.bins.classes else expected.predict(X)[:, None]
    assert_allclose(tree.probabilities(table), values, rtol=1e-9)
    assert_allclose(list(tree.importance.values()), expected.feature_importances_, atol=1e-9)
    splits = tree.state.feature >= 0
    reference = expected.tree_.feature >= 0
    assert_array_equal(
        np.sort(tree.state.records[splits] * 100 + tree.state.feature[splits]),  # which feature splits how many records
        np.sort(expected.tree_.n_node_samples[reference] * 100 + expected.tree_.feature[reference]),
    )


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes"])
def test_real_data_equal_scikit_learn(name):
    table = load(name)
    tree = decision_tree(simulate(table, iid(parties=5)), depth=3, min_records=20)
    X, y = tree.bins.number(table.columns), table[table.schema.target]
    kind = DecisionTreeClassifier if tree.bins.classes else DecisionTreeRegressor
    expected = kind(max_depth=3, min_samples_leaf=20, min_impurity_decrease=1e-9, random_state=0).fit(X, y)
    values = expected.predict_proba(X) if tree.bins.classes else expected.predict(X)[:, None]
    assert_allclose(tree.probabilities(table), values, rtol=1e-9)


@pytest.mark.parametrize("target", TARGETS)
def test_weights_count_as_repeated_records(table, federate, target):
    weighted = replace(table, schema=table.schema.replace(replace(table.schema["visits"], role="weight")))
    repeated = table.take(np.repeat(np.arange(len(table)), table["visits"].astype(int)))
    features = ["age", "dose", "smoker", "stage"]
    of_weights = last(grow(federate(weighted), depth=3, target=target, features=features))
    of_records = last(grow(simulate(repeated, iid(parties=3)), depth=3, target=target, features=features))
    assert_same(of_weights, of_records, rtol=1e-10)


def test_min_gain_prunes(table, federate):
    full, pruned = (decision_tree(federate(table), depth=4, min_gain=gain).state for gain in (0.0, 0.02))
    assert len(pruned.feature) < len(full.feature)
    assert pruned.gain[pruned.feature >= 0].min() > 0.02


# ---- equal on every engine ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", [InProcess(), InProcess(collapse=False, threads=2)], ids=["collapse", "stack"])
@pytest.mark.parametrize("channel", CHANNELS.values(), ids=list(CHANNELS))
@pytest.mark.parametrize("target", TARGETS)
def test_every_engine_grows_the_same_tree(table, federate, engine, channel, target):
    growing = partial(grow, depth=3, n_bins=8, target=target)
    found = last(growing(federate(table, engine).protect(**channel)))
    expected = last(growing(federate(table, Loop()).protect(**channel)))
    assert (expected.feature >= 0).any()
    assert_same(found, expected, rtol=1e-12)


def test_dropped_parties_leave_the_tree_of_the_others(table, federate):
    dropping = federate(table, InProcess(dropped=("party 2", "party 5")))
    held = dropping.engine.held
    kept = np.repeat([name not in ("party 2", "party 5") for name in held.ids], held.sizes)
    others = replace(table, columns={name: column[kept] for name, column in held.columns.items()})
    assert_same(last(grow(dropping, depth=3)), last(grow(simulate(others, iid(parties=6)), depth=3)))


# ---- resumable ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", TARGETS)
def test_every_state_resumes(table, federate, target):
    states = list(grow(federate(table), depth=4, target=target))
    assert [state.round for state in states] == [1, 2, 3, 4]
    for state in states:
        again = last(grow(federate(table), depth=4, target=target, start=join(TreeState, *split(state))))
        assert_same(again or state, states[-1])


def test_a_noisy_run_resumes_from_its_checkpoint(table, federate, tmp_path):
    whole, stopped, resumed = (federate(table).protect(mechanism=Gaussian(1.0)) for _ in range(3))
    program, path = partial(grow, depth=4), tmp_path / "state.safetensors"
    state = next(state for state in program(stopped) if state.round == 2)
    save_checkpoint(path, state, stopped, "demo")
    resumed.ledger.entries += stopped.ledger.entries
    run = drive(program, resumed, start=load_checkpoint(path, TreeState, "demo"))
    assert_same(run.state, last(program(whole)))
    assert len(resumed.ledger) == 4


def test_growth_stops_when_no_node_can_be_split(table, federate):
    states = list(grow(federate(table), depth=50, min_records=60))
    assert len(states) < 8
    assert len(states[-1].open) == 0


# ---- refused --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{"depth": 0}, {"depth": 2, "min_records": 0}])
def test_impossible_settings_are_refused(table, federate, settings):
    with pytest.raises(SettingsInvalid, match="cannot be grown"):
        next(grow(federate(table), **settings))


def test_noise_needs_the_range_of_a_regression_target(table, federate):
    schema = table.schema.replace(replace(table.schema["days"], low=None, high=None))
    federation = federate(replace(table, schema=schema)).protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnboundedSum, match="HR-210"):
        decision_tree(federation, target="days")
    assert len(federation.ledger) == 0


def test_an_undeclared_regression_target_is_grown_without_noise(table, federate):
    schema = table.schema.replace(replace(table.schema["days"], low=None, high=None))
    found = decision_tree(federate(replace(table, schema=schema)), target="days")
    expected = decision_tree(federate(table), target="days")
    assert_allclose(found.predict(table), expected.predict(table), rtol=1e-10)


def test_a_feature_without_a_range_is_refused_before_anybody_is_asked(table, federate):
    schema = table.schema.replace(replace(table.schema["dose"], high=None))
    federation = federate(replace(table, schema=schema))
    with pytest.raises(SchemaInvalid, match="No party was asked"):
        decision_tree(federation)
    assert len(federation.ledger) == 0
