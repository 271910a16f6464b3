"""Every algorithm runs from a study file, plain and protected, and a wrong key is refused before anybody is asked."""

import re

import pytest

from hedgerow.errors import StudyInvalid
from hedgerow.study import PROGRAMS, run_study
from hedgerow.study.study import parse

NEURAL = [name for name, listing in PROGRAMS.items() if re.fullmatch(r"hedgerow\.learn\.\w+:\w+", listing.path)]
BASE = {
    "data": {"name": "digits"},
    "partition": {"by": "dirichlet_labels", "parties": 4, "alpha": 1.0},
    "evaluation": {"on": "parties"},
    "baselines": False,
}
OWN = {"incremental": {"rounds": None}, "subfedavg": {"share": 0.3}, "fedopt": {"rule": "yogi", "server_rate": 0.1}}


def study(program, **changes):
    settings = {"name": program, "rounds": 2} | OWN.get(program, {})
    return parse(BASE | {"program": {key: value for key, value in settings.items() if value is not None}} | changes)


@pytest.mark.parametrize("program", NEURAL)
def test_a_study_runs_the_algorithm(program, tmp_path):
    result = run_study(study(program), tmp_path / "run")
    metrics = dict(result.report.metrics)
    assert result.run.stopped == "finished"
    assert 0 < metrics["accuracy"] <= 1
    assert "party mean" in metrics


KEYS = {"scaffold": ("dy", "dc"), "fednag": ("update", "v")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [name for name in NEURAL if name not in ("fednova", "local_only", "incremental", "subfedavg")]
)
def test_a_study_protects_the_algorithm(program, tmp_path):
    clip = {"radius": 1.0} if program not in KEYS else {key: {"radius": 1.0} for key in KEYS[program]}
    protection = {"clip": clip, "mechanism": {"noise_multiplier": 1.0}}
    result = run_study(study(program, protection=protection, evaluation={"on": "none"}), tmp_path / "run")
    assert result.report.privacy_ok
    assert result.run.stopped == "finished"


def test_a_setting_of_another_algorithm_is_refused(tmp_path):
    with pytest.raises(StudyInvalid, match="unknown key 'mu'"):
        run_study(parse(BASE | {"program": {"name": "fedavg", "rounds": 1, "mu": 0.1}}), tmp_path / "run")
