"""A graph of a module takes any number of records, whatever its target."""

import numpy as np
import pandas
import pytest

from hedgerow.data import Column, Schema
from hedgerow.export import export, read_run
from hedgerow.study import parse, run_study

RNG = np.random.default_rng(0)
FRAME = pandas.DataFrame({"age": RNG.uniform(20, 90, 600), "change": RNG.uniform(-2, 2, 600)})


@pytest.mark.slow
def test_a_graph_of_a_binary_target_takes_any_number_of_records(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    frame = FRAME.assign(well=(FRAME["change"] > 0) * 1)
    frame.to_csv(tmp_path / "patients.csv", index=False)
    columns = {"age": {"range": [0, 100]}, "change": {"range": [-2, 2]}, "well": {"kind": "binary", "role": "target"}}
    program = {"name": "fedavg", "rounds": 1, "model": "logistic", "learning_rate": 0.1}
    about = {"name": "well", "partition": {"by": "iid", "parties": 2}, "baselines": False, "program": program}
    data = {"path": str(tmp_path / "patients.csv"), "columns": columns}
    run = read_run(run_study(parse(about | {"data": data}), tmp_path / "run").folder)
    graph = runtime.InferenceSession(str(export(run.path, "onnx")), providers=["CPUExecutionProvider"])
    X = frame[["age", "change"]].to_numpy(float)
    bias, weight = (one.ravel() for one in sorted(run.arrays.values(), key=np.ndim))
    expected = 1 / (1 + np.exp(-(X / [100, 2]) @ weight - bias))
    for n in (1, 3, 400):
        (found,) = graph.run(None, {"X": X[:n]})
        np.testing.assert_allclose(found, np.stack([1 - expected[:n], expected[:n]], 1), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["binary", "number", "category"])
def test_a_predictor_that_was_traced_on_two_records_takes_any_number(kind):
    import torch

    from hedgerow.export.module import Predictor
    from hedgerow.learn.reading import Reading

    module = torch.nn.Linear(2, 3 if kind == "category" else 1)
    reading = Reading.of(
        Schema((Column("age", "number", low=0, high=100), Column("change", "number", low=-2, high=2))),
        ("age", "change"),
        "ranges",
    )
    predictor = Predictor(module, reading, kind, single=False).eval()
    X = torch.rand(400, 2, dtype=torch.float64)
    traced = torch.jit.trace(predictor, (X[:2],))
    for n in (1, 3, 400):
        torch.testing.assert_close(traced(X[:n]), predictor(X[:n]))
        assert len(traced(X[:n])) == n
