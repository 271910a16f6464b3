"""The networks as studies: what their statements say before anybody is asked, of both forms, and that both have a score."""

import math

import pytest

from hedgerow.study import rehearse, run_study
from hedgerow.study.study import parse

NETWORKS = {
    "selective_sgd": {"rounds": 2, "batch_size": 60.0},
    "private_auto_encoder": {"hidden": [6]},
    "private_gan": {"rounds": 2, "batch_size": 300.0},
    "adaptive_network": {"rounds": 3, "batch_size": 300.0},
}


def study(name, form):
    program = {"name": name, "form": form, "epsilon": 1.0, "delta": 1e-5, **NETWORKS.get(name, {"filters": 2})}
    evaluation = {"on": "test", "holdout": 0.2}
    data, partition = {"name": "digits"}, {"by": "iid", "parties": 3}
    return parse({"data": data, "partition": partition, "program": program, "evaluation": evaluation, "baselines": False})


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_as_printed_a_network_is_not_private_and_what_is_claimed_is_called_so(name):
    said = rehearse(study(name, "printed")).statement
    assert said.epsilon == math.inf
    assert "claimed, not proved: at epsilon 1" in said.exposed
    assert said.text.startswith("No epsilon is claimed")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, "private_belief_net"])
def test_corrected_a_network_keeps_its_budget_and_claims_nothing(name):
    said = rehearse(study(name, "corrected")).statement
    assert 0.99 < said.epsilon <= 1.0
    assert "claimed" not in said.exposed


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, "private_belief_net"])
def test_both_forms_run_from_a_study_and_have_a_score(name, tmp_path):
    for form in ("printed", "corrected"):
        result = run_study(study(name, form), tmp_path / form)
        assert any("accuracy" in metric for metric, *_ in result.report.metrics)
