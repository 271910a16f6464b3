"""Studies with noise at aggregators: from the file to report, ledger and audit, and what is refused as it is read or built."""

import json

import numpy as np
import pytest

from hedgerow.errors import HedgerowError, StudyInvalid, UnlawfulChannel
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.build import build

DIGITS = {
    "name": "digits",
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": 12},
    "program": {"name": "dp_fedavg", "model": "linear", "rounds": 2, "learning_rate": 0.5, "epochs": 1, "batch_size": 20},
    "evaluation": {"on": "test", "holdout": 0.2},
    "budget": {"epsilon": 20.0, "delta": 1e-3, "unit": "party"},
    "baselines": False,
}
SHARED = {"by": "additive", "aggregators": 2}


def study(at="aggregators", aggregation=SHARED, **mechanism):
    return parse(DIGITS | {"protection": {"mechanism": {"at": at, **mechanism}, "aggregation": aggregation}})


@pytest.mark.slow
@pytest.mark.parametrize("verified", [False, True])
def test_a_study_file_runs_from_end_to_end(tmp_path, verified):
    found = run_study(study(aggregation=SHARED | {"verified": verified}), tmp_path / "run", threads=1)
    assert all(np.isfinite(value).all() for value in found.run.state.weights.values())
    entries = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()]
    said = [entry["mechanism"] for entry in entries if "mechanism" in entry]
    assert said
    assert all(one.endswith("at each of 2 aggregators") for one in said)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "also against the server while one of the 2 aggregators keeps its noise secret" in page


def test_the_multiplier_that_a_budget_allows_is_that_of_noise_at_the_server():
    found = [rehearse(study(at)) for at in ("aggregators", "server")]
    assert found[0].statement.epsilon == pytest.approx(found[1].statement.epsilon)
    z = [one.entries[0].event.noise_multiplier for one in found]
    assert z[0] == z[1] > 0


@pytest.mark.parametrize("aggregation", ["secagg", "pairwise", None])
def test_other_aggregations_are_refused_when_a_study_is_built(aggregation):
    with pytest.raises(UnlawfulChannel, match=r"HR-211.*has none"):
        build(study(aggregation=aggregation))


@pytest.mark.parametrize("mechanism", [{"law": "tree", "rounds": 2}, {"law": "simulated gaussian"}, {"least": 3}])
def test_noise_that_aggregators_cannot_add_is_refused(mechanism):
    with pytest.raises((StudyInvalid, HedgerowError)):
        build(study(noise_multiplier=1.0, **mechanism))
