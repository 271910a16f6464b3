"""Models of private calls say what was spent for them, as their federation's ledger does."""

import warnings

import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowWarning
from hedgerow.trees.additive import AdditiveModel

CALLS = {
    "additive": {"rounds": 3},
    "random_trees": {"trees": 4, "batch": 2, "depth": 2},
    "private_forest": {"trees": 4, "depth": 2},
    "hybrid_forest": {"trees": 2, "depth": 2},
    "boosted_trees": {"trees": 2, "depth": 2},
}


def federation(**settings):
    table = hr.data.load("breast_cancer").take(range(120))
    return hr.simulate(table, hr.data.iid(parties=3), **{"seed": 0, **settings})


def fitted(name, asked, **budget):
    features = ["mean_radius", "mean_texture"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        return getattr(hr.trees, name)(asked, n_bins=4, features=features, target="malignant", **CALLS[name], **budget)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_model_says_what_its_ledger_says(name):
    asked = federation()
    first = fitted(name, asked, epsilon=1.0, delta=1e-5)
    assert first.spent == (asked.ledger.epsilon(delta=1e-5, unit="record"), 1e-5)
    assert first.cost.own is None
    said = first.summary()
    assert said.startswith(str(first))
    assert f"questions   {len(asked.ledger)}\n" in said
    assert "this is no release" in said
    second = fitted(name, asked, epsilon=1.0, delta=1e-5)
    assert second.spent[0] > first.spent[0] == pytest.approx(second.cost.own[0])
    assert "by everything in the ledger; epsilon " in second.summary()


def test_exact_sums_have_no_epsilon_and_noise_of_the_system_is_not_called_seeded():
    exact = fitted("additive", federation())
    assert exact.spent is None
    assert "no finite epsilon" in exact.summary()
    assert "seed" not in exact.summary()
    assert "seed" not in fitted("additive", federation(seed=None), epsilon=1.0, delta=1e-5).summary()


def test_a_model_of_a_state_alone_has_no_ledger():
    made = fitted("additive", federation())
    alone = AdditiveModel(made.bins, made.theta, made.counts)
    assert alone.spent is None
    assert alone.summary() == str(alone)
