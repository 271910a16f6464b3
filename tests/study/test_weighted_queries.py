"""Studies of weighted and asynchronous gradient queries: their keys, what owners' budgets hold, what is forecast."""

import numpy as np
import pytest

from hedgerow.errors import BudgetExhausted, SettingsInvalid, StudyInvalid
from hedgerow.study import accuracy, parse, rehearse, run_study
from hedgerow.study.accuracy import accuracy_cost

OWNERS = {"party 1": 4.0, "party 2": 2.0, "party 3": 0.5}
WEIGHTS = {"party 1": 1.0, "party 2": 0.24, "party 3": 0.17}
RECORDS = {"party 1": 140, "party 2": 130, "party 3": 130}


def study(name="gradient_queries", least=1.0, holdout=None, **settings):
    program = {"name": name, "rounds": 4, "neighbours": "add-remove", "epsilons": OWNERS, "box": 2.0, "step": 0.3}
    program |= {"weights": WEIGHTS, "n_records": RECORDS} | ({"every": 2} if name == "async_queries" else {})
    budgets = {name: {"epsilon": least * most, "delta": 1e-6, "accountant": "basic"} for name, most in OWNERS.items()}
    return parse(
        {
            "name": "owners",
            "data": {"name": "hie", "target": "mdvis", "features": ["lncoins", "physlm", "disea"], "records": 400},
            "partition": {"by": "iid", "parties": 3},
            "program": program | settings,
            "party_budgets": budgets,
            "baselines": False,
        }
        | ({} if holdout is None else {"evaluation": {"on": "none", "holdout": holdout}})
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gradient_queries", "async_queries"])
def test_owners_budgets_are_just_what_their_own_noise_costs(name, tmp_path):
    result = run_study(study(name), tmp_path / "run")
    owners = result.outcome.tables["Epsilon by owner"]
    assert owners["weight of both"].tolist() == [1.0, 0.24, 0.17]
    np.testing.assert_allclose(owners["spent, add-remove"], list(OWNERS.values()))
    assert result.outcome.metrics["relative fitness"] > 0
    with pytest.raises(BudgetExhausted, match="HR-213"):
        run_study(study(name, least=0.999), tmp_path / "less")


def test_weights_without_the_records_of_each_are_refused():
    with pytest.raises(SettingsInvalid, match=r"HR-511.*owners have weights"):
        rehearse(study(n_records=400))


def test_a_wrong_weight_is_refused():
    with pytest.raises(SettingsInvalid, match=r"HR-511.*a weight of 2.0 for party 2"):
        rehearse(study(weights=WEIGHTS | {"party 2": 2.0}))
    with pytest.raises(StudyInvalid, match="HR-101"):
        rehearse(study(weights=[1.0, 0.5]))


@pytest.mark.slow
def test_the_price_of_an_epsilon_counts_weights_and_each_owners_records(monkeypatch):
    monkeypatch.setattr(accuracy, "POINTS", 3)
    asked = []
    kept = accuracy.forecast
    monkeypatch.setattr(accuracy, "forecast", lambda *given: asked.append(given) or kept(*given))
    accuracy_cost(study(holdout=0.3), [2.0], 0.0, "add-remove")
    assert {tuple(records) for *_, records in asked} == {(140, 130, 130)}
    assert {answers.weights for *_, answers, _ in asked} == {tuple(WEIGHTS.items())}
