"""Both programs from a study file: rehearsed, run, and with a sentence that says what the accountant says."""

import re

import dp_accounting
import pytest
from dp_accounting import rdp

import hedgerow as hr
from hedgerow.study import rehearse, run_study
from hedgerow.study.study import parse

BASE = {"data": {"name": "digits"}, "partition": {"by": "iid", "parties": 3}, "baselines": False, "evaluation": {"on": "none"}}
STEPS = {"sampling_rate": 0.05, "batch_size": 90, "learning_rate": 1.0}


def epsilon(noise_multiplier, rate, rounds, delta):
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    return rdp.RdpAccountant().compose(step, rounds).get_epsilon(delta)


def accuracy(state):
    return hr.learn.evaluate_on(hr.data.load("digits"), hr.learn.linear(64, 10), state.weights)["accuracy"]


def said(sentence):
    return float(re.match(r"Epsilon ([\d.]+)", sentence)[1])


@pytest.mark.slow
def test_dpsgd_from_a_study(tmp_path):
    study = parse(
        BASE
        | {
            "program": {"name": "dpsgd", "rounds": 8, "clip": 0.5, **STEPS},
            "protection": {"mechanism": {"noise_multiplier": 1.2}},
        }
        | {"budget": {"epsilon": 5.0, "delta": 1e-5, "unit": "record", "accountant": "rdp"}}
    )
    expected = rehearse(study)
    result = run_study(study, tmp_path / "run")
    assert said(result.report.privacy) == pytest.approx(epsilon(1.2, 0.05, 8, 1e-5), rel=1e-3)
    assert said(expected.statement.sentence) == said(result.report.privacy)
    assert "per record" in result.report.privacy
    assert accuracy(result.run.state) > 0.5


@pytest.mark.slow
def test_own_budgets_from_a_study(tmp_path):
    program = {
        "name": "local_dpsgd",
        "rounds": 50,
        "noise_multiplier": 2.0,
        "steps": 2,
        "stop_at": [0.8, 0.9, 1.0],
        "delta": 1e-5,
    }
    study = parse(BASE | {"program": program | STEPS | {"batch_size": [30, 30, 30]}, "baselines": True})
    result = run_study(study, tmp_path / "run")
    assert result.run.stopped == "finished"
    assert 1 < result.run.state.round < 50
    assert 0.9 < max(float(value) for value in result.run.state.epsilons.values()) <= 1.0
    assert result.report.privacy_ok
    assert accuracy(result.run.state) > 0.5
