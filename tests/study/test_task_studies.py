"""A study names inputs, loss and metrics in a table of its program, and its report shows them."""

import pytest
import torch

from hedgerow.core.question import travels
from hedgerow.errors import HedgerowError
from hedgerow.study import parse, run_study

BASE = {
    "data": {"name": "digits"},
    "partition": {"by": "dirichlet_labels", "parties": 3, "alpha": 1.0},
    "evaluation": {"on": "parties"},
    "baselines": False,
}


@travels
def confidence(output, target):
    return torch.softmax(output, 1).amax(1)


def study(task, **program):
    return parse(BASE | {"program": {"name": "fedavg", "rounds": 1, "path": "eager", "task": task} | program})


@pytest.mark.slow
def test_a_study_trains_by_its_task(tmp_path):
    task = {
        "inputs": {"columns": "image", "dtype": "float32"},
        "loss": "cross_entropy",
        "metrics": ["accuracy", {"function": "test_task_studies:confidence", "bound": 1.0}],
    }
    result = run_study(study(task), tmp_path / "run")
    metrics = dict(result.report.metrics)
    assert result.run.stopped == "finished"
    assert 0 < metrics["accuracy"] <= 1
    assert 0 < metrics["confidence"] <= 1
    assert "image as float32" in (tmp_path / "run" / "report.html").read_text()


def test_a_loss_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(HedgerowError, match="cross_entropie"):
        run_study(study({"loss": "cross_entropie"}), tmp_path / "run")
