"""With own losses, inputs and metrics a record moves a sum by its own share, to the last bit, and never beyond its bound."""

import logging

import numpy as np
import pytest
import torch
from exact_records import in_steps, limit, squared
from task_nets import BUILT, Net, clinics, net
from torch import nn

import hedgerow as hr
from hedgerow.core import Party, linf
from hedgerow.core.whole import in_steps as stepped
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import UnboundedSum
from hedgerow.learn import Metric, Task, evaluate, local
from hedgerow.learn.models import Model, model_for_task
from hedgerow.learn.reading import Reading
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.exact import graph
from hedgerow.learn.tasks import trial
from hedgerow.learn.tensors import made_of


def counted(output, target):
    """A Poisson loss of one's own, so that a module of linear layers goes by its graph."""
    return torch.exp(output[:, 0]) - target * output[:, 0]


def counts():
    rng = np.random.default_rng(5)
    schema = Schema((Column("x", "number", shape=(4,), low=-3, high=3), Column("seen", "number", role="target", low=0, high=9)))
    columns = {"x": rng.uniform(-3, 3, (20, 4)).astype(np.float32), "seen": rng.integers(0, 10, 20).astype(float)}
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    return Net(module, Table(schema.admit(columns), schema), Task(loss=counted), None)


NETS = {name: lambda name=name: net(name) for name in BUILT} | {"counts": counts}


def ready(own):
    """Its model, weights, and records as a party keeps them."""
    reading = Reading.of(own.table.schema, None, "ranges", own.task)
    model = model_for_task(own.module, reading)
    kept = made_of(own.table.columns, own.table.schema, None, reading)
    x, target = (torch.from_numpy(kept[name]) for name in ("model_input", "model_target"))
    return model, torch.from_numpy(model.initial), x, target


def rows_and_total(model, flat, x, target, which=slice(None)):
    rows = [in_steps(model, flat, x[i : i + 1], target[i : i + 1], torch.ones(1)) for i in range(len(x))[which]]
    return np.array(rows), in_steps(model, flat, x[which], target[which], torch.ones(len(x))[which])


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_a_sum_is_the_sum_of_its_records_to_the_last_bit(name):
    model, flat, x, target = ready(NETS[name]())
    rows, total = rows_and_total(model, flat, x, target)
    assert rows.any(1).all()
    np.testing.assert_array_equal(total, rows.sum(0))
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_array_equal(in_steps(model, flat, x[order], target[order], torch.ones(len(x))), total)
    assert all(squared(row) <= limit() ** 2 for row in rows)


def test_an_own_loss_of_linear_layers_goes_by_their_graph():
    model, *_ = ready(counts())
    assert exact_of(model, (4,)).graph is not None
    task = Task(loss="squared")
    assert (
        exact_of(model_for_task(counts().module, Reading.of(counts().table.schema, None, "ranges", task)), (4,)).graph.kind
        == "number"
    )


def mixing(output, target):
    """The loss of a record is what it is beyond the mean of its batch."""
    return (output[:, 0] - output[:, 0].mean() - target) ** 2


def together(losses, output, target):
    """A broken twin of `slopes_alone`: one backward pass for all records."""
    own = torch.from_numpy(output.copy()).requires_grad_()
    return torch.autograd.grad(losses(own, torch.from_numpy(target)).sum(), own)[0].numpy()


@pytest.mark.slow
def test_records_do_not_meet_in_a_loss_and_a_twin_in_which_they_do_is_caught(monkeypatch):
    own = counts()
    monkeypatch.setattr(trial, "alone", lambda *given: None)  # such a loss is refused otherwise
    own.task = Task(loss=mixing)
    model, flat, x, target = ready(own)
    model.programs["exact gradients of records", (4,)] = way = exact_of(ready(counts())[0], (4,))
    object.__setattr__(way.graph, "losses", model.losses_of)
    rows, total = rows_and_total(model, flat, x, target)
    np.testing.assert_array_equal(total, rows.sum(0))
    monkeypatch.setattr(graph, "slopes_alone", together)
    rows, total = rows_and_total(model, flat, x, target)
    assert (total != rows.sum(0)).any()


def failing(output, target):
    """A loss that refuses some records, and is not finite for others."""
    if (target == 7).any():
        raise ValueError("seven")
    return torch.log(8 - target) * output[:, 0]  # not finite for eight, no number for nine


def test_a_record_for_which_the_loss_fails_counts_as_zero_and_moves_no_other(monkeypatch):
    own = counts()
    model, flat, x, target = ready(own)
    model = Model(own.module, "task", task=ready_task(own, Task(loss=failing)))
    target = torch.tensor([1.0, 7.0, 2.0, 8.0, 3.0, 9.0])
    rows, total = rows_and_total(model, flat, x[:6], target)
    assert [bool(row.any()) for row in rows] == [True, False, True, False, True, False]
    np.testing.assert_array_equal(total, rows[[0, 2, 4]].sum(0))


def ready_task(own, task):
    return Reading.of(own.table.schema, None, "ranges", task).task


def far(output, target):
    """A metric beyond its bound for most records, and without a value for some."""
    if (target == 7).any():
        raise ValueError("seven")
    return torch.where(target > 5, torch.nan, 100.0 * target)


def scored(model, flat, columns, bounds):
    return local.score(
        flat, Party("one", columns, np.ones(len(columns["model_target"]))), None, model=model, with_loss=False, bounds=bounds
    )


def bounded_sums(bound=2.0):
    own = counts()
    own.task = Task(loss="poisson", metrics=[Metric(far, bound=bound)])
    model = Model(own.module, "task", task=ready_task(own, own.task))
    columns = {"model_input": own.table["x"][:8], "model_target": np.arange(8).astype(np.float32)}
    bounds = stepped({"far": linf(bound, "record"), "n": linf(1.0, "record")})
    kept = [{name: np.delete(values, i, 0) for name, values in columns.items()} for i in range(8)]
    every = [scored(model, model.initial, one, bounds)["far"] for one in (columns, *kept)]
    return float(every[0]), [float(every[0] - one) for one in every[1:]]


def test_a_metric_behind_noise_is_held_to_its_bound_and_a_twin_without_is_caught(monkeypatch):
    total, moved = bounded_sums()
    assert moved == [0.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0, 0.0]
    assert total == sum(moved)
    monkeypatch.setattr(local, "held", lambda numbers, *given: np.nan_to_num(numbers))
    assert max(bounded_sums()[1]) > 2.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_noise_gets_metrics_with_bounds_alone_and_the_others_are_named(caplog):
    own = net("survival")
    weights = {name: value.detach().numpy() for name, value in own.module.named_parameters()}
    noisy = clinics(own).protect(mechanism=hr.Gaussian(1e-6))
    task = Task(own.task.inputs, own.task.target, own.task.loss, [*own.task.metrics, Metric(lasting, "first hazard")])
    with caplog.at_level(logging.WARNING, "hedgerow.learn"):
        found = evaluate(noisy, own.module, weights, task=task)
    assert set(found) == {"risk", "n"}
    assert "first hazard" in caplog.text
    assert found["risk"] == pytest.approx(evaluate(clinics(own), own.module, weights, task=task)["risk"], abs=1e-3)
    assert len(noisy.ledger.entries) == 1
    with pytest.raises(UnboundedSum):
        evaluate(noisy, own.module, weights, task=Task(own.task.inputs, own.task.target, own.task.loss, []))


def lasting(output, target):
    return output[:, 0]
