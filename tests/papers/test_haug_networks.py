"""The networks as studies: what their statements say before anybody is asked, of both forms, and that both have a score."""

import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.papers.haug import adaptive
from hedgerow.papers.haug.auto_encoder import private_auto_encoder
from hedgerow.papers.haug.belief_net import private_belief_net
from hedgerow.papers.haug.generator import private_gan
from hedgerow.study import rehearse, run_study
from hedgerow.study.publication_kinds import KINDS
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


def draws(name, seed, federation):
    settings = {"form": "printed", "epsilon": 1.0, "seed": seed}
    if name == "private_auto_encoder":
        return list(private_auto_encoder(federation, hidden=[6], **settings))[-1].output
    return list(private_gan(federation, rounds=1, batch_size=90.0, delta=1e-5, units=4, **settings))[-1].critic["W"]


@pytest.mark.parametrize("name", ["private_auto_encoder", "private_gan"])
def test_printed_noise_is_drawn_apart_for_each_seed_and_again_for_the_same(name):
    federation = hr.simulate(hr.data.load("digits").take(range(90)), hr.data.iid(parties=2), seed=0)
    first, second, again = (draws(name, seed, federation) for seed in (0, 1, 0))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)


def test_equal_noise_is_charged_and_nothing_is_claimed_of_it():
    settings = {"form": "printed", "epsilon": 1.0}
    assert adaptive.claim(settings | {"relevance": False}) == ""
    assert adaptive.claim(settings | {"relevance": True}).startswith("at epsilon 1")


def test_a_claim_is_said_in_words_that_are_of_no_delta():
    said = KINDS["claims"].what
    assert "claimed, not proved" in said
    assert "delta" not in said


def test_a_delta_without_an_epsilon_is_refused_by_every_network():
    federation = hr.simulate(hr.data.load("digits").take(range(30)), hr.data.iid(parties=2), seed=0)
    for form in ("printed", "corrected"):
        with pytest.raises(hr.errors.BudgetInvalid, match="without an epsilon"):
            next(private_belief_net(federation, form=form, delta=1e-5))
    assert len(federation.ledger) == 0
