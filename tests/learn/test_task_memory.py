"""What a loss, metric or module keeps of a record reaches no other: it is refused, and left behind where a trial misses it."""

import collections
import functools
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from hedgerow.core import Party, linf
from hedgerow.core.whole import in_steps
from hedgerow.data import Column, Schema
from hedgerow.errors import ModelInvalid
from hedgerow.learn import Metric, Task, local
from hedgerow.learn.models import Model, model_for_task
from hedgerow.learn.reading import Reading
from hedgerow.learn.records.clipped import clipped_sum, exact_of
from hedgerow.learn.records.rewrite import keeps_nothing
from hedgerow.learn.tasks.fitted import FittedTask
from hedgerow.learn.tasks.memory import Copies, kept_by, plain

SCHEMA = Schema((Column("a", "number", low=-1, high=1), Column("y", "binary", role="target")))
FROM = 0.5
"""Records beyond this are kept by the objects below that a trial on tamer records does not find out."""


def squared(output, target):
    return (output[:, 0] - target) ** 2


class Memory:
    """Adds up outputs of earlier records, where they are large."""

    def __init__(self, least=-np.inf):
        self.kept, self.least = [], least

    def __call__(self, output, target):
        found = squared(output, target) + 1e3 * output[:, 0] * float(np.sign(sum(self.kept)))
        self.kept += [value for value in output[:, 0].tolist() if value > self.least]
        return found


def closed(least=-np.inf):
    """The same in what a function closes over."""
    memory = Memory(least)

    def loss(output, target):
        return memory(output, target)

    return loss


def counting():
    n = 0

    def loss(output, target):
        nonlocal n
        n += len(output)
        return squared(output, target) * (1 if n < 1000 else 2)

    return loss


def defaulted(output, target, kept=[]):  # noqa: B006
    kept.append(float(output.sum()))
    return squared(output, target)


SEEN = []


def in_the_module(output, target):
    SEEN.append(output.detach())
    return squared(output, target)


class OfClass:
    kept = []

    def __call__(self, output, target):
        self.kept.append(1)
        return squared(output, target)


class First(nn.Module):
    """Keeps the first output alone, so that a second call changes nothing."""

    first = None

    def forward(self, output, target):
        if self.first is None:
            self.first = output.detach()[0]
        return squared(output, target)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = collections.defaultdict(lambda: collections.deque(maxlen=3))

    def forward(self, output, target):
        self.inner["x"].extend(output.tolist())
        return squared(output, target)


class Counter:
    def __init__(self):
        self.count = itertools.count()

    def __call__(self, output, target):
        next(self.count)
        return squared(output, target)


class Net(nn.Module):
    def __init__(self, least=-np.inf):
        super().__init__()
        self.layer, self.memory = nn.Linear(1, 1, bias=False), Memory(least)

    def forward(self, x):
        out = self.layer(x)
        out = out + 1e3 * out * float(np.sign(sum(self.memory.kept)))
        self.memory.kept += [value for value in x[:, 0].tolist() if value > self.memory.least]
        return out


def one_layer():
    module = nn.Linear(1, 1, bias=False)
    nn.init.ones_(module.weight)
    return module


REMEMBER = {
    "an object": Memory,
    "a closure": closed,
    "a counter": counting,
    "a default": lambda: defaulted,
    "a global": lambda: in_the_module,
    "a class": OfClass,
    "the first": First,
    "deep": Deep,
    "made in C": Counter,
    "a partial": lambda: functools.partial(lambda kept, output, target: kept.append(1) or squared(output, target), []),
    "a method": lambda: Memory().__call__,
}


@pytest.mark.parametrize("name", REMEMBER)
def test_losses_and_metrics_that_keep_something_are_refused_and_left_as_they_were(name):
    for given in ({"loss": REMEMBER[name]()}, {"loss": squared, "metrics": [Metric(REMEMBER[name](), name="m")]}):
        task = Task(inputs=["a"], **given)
        before = kept_by(task) if name not in ("a default", "a global", "a class") else None
        with pytest.raises(ModelInvalid, match="keeps something of the records"):
            model_for_task(one_layer(), Reading.of(SCHEMA, None, "none", task))
        assert before is None or kept_by(task) == before


def test_a_module_that_keeps_something_is_refused_with_a_task_and_by_dpsgd_without():
    with pytest.raises(ModelInvalid, match="keeps something of the records"):
        model_for_task(Net(), Reading.of(SCHEMA, None, "none", Task(inputs=["a"], loss=squared)))
    with pytest.raises(ModelInvalid, match="in its attributes"):
        keeps_nothing(Model(Net(), "binary"), torch.tensor([[0.3], [0.4]]))


class Weighted:
    """Class weights, and a table that is made at the first call: nothing of records."""

    def __init__(self):
        self.weights, self.table = torch.tensor([1.0, 3.0]), None

    def __call__(self, output, target):
        if self.table is None:
            self.table = self.weights.cumsum(0)
        return squared(output, target) * self.table[target.long()]


def weighing(weights):
    def loss(output, target):
        return squared(output, target) * weights[target.long()]

    return loss


@pytest.mark.parametrize("loss", [squared, Weighted(), weighing(torch.tensor([1.0, 3.0])), functools.partial(squared)])
def test_losses_that_keep_nothing_of_records_are_lawful(loss):
    model_for_task(one_layer(), Reading.of(SCHEMA, None, "none", Task(inputs=["a"], loss=loss)))


def test_plain_functions_are_not_copied_and_others_are_with_what_they_close_over():
    assert [plain(one) for one in (squared, "squared", closed(), Memory())] == [True, True, False, False]
    assert Copies(squared)() is squared
    task = Reading.of(SCHEMA, None, "none", Task(inputs=["a"], loss=squared)).task
    assert task.anew() is task
    loss = closed()
    other = Copies({"deep": [loss]})()["deep"][0]
    other(torch.ones(2, 1), torch.zeros(2))
    assert len(other.__closure__[0].cell_contents.kept) == 2
    assert not loss.__closure__[0].cell_contents.kept


# ---- what the trial does not find out -------------------------------------------------------------------------------
X = np.array([0.9] + 19 * [0.01], np.float32)[:, None]


def unfound(module=None, **task):
    """A model that a trial has not seen."""
    fitted = Reading.of(SCHEMA, None, "none", Task(inputs=["a"], **task)).task
    return Model(module or one_layer(), "task", task=fitted)


def moved(model):
    """By how far the sum of clipped gradients moves where the first record is gone."""
    flat, x, target, w = torch.ones(1), torch.from_numpy(X), torch.zeros(len(X)), torch.ones(len(X), dtype=torch.float64)
    both = [clipped_sum(model, flat, x[rows], target[rows], w[rows], 1.0)[0] for rows in (slice(1, None), slice(None))]
    return float((both[0] - both[1]).abs())


@pytest.mark.parametrize("make", [Memory, closed])
def test_a_memory_moves_a_sum_of_gradients_by_one_record_alone_and_a_twin_without_copies_is_caught(make, monkeypatch):
    assert moved(unfound(loss=make(FROM))) <= 1.0
    model = unfound(loss=make(FROM))
    exact_of(model, (1,))  # with made-up records, of which a twin would remember some
    monkeypatch.setattr(FittedTask, "anew", lambda task: task)
    assert moved(model) > 5.0


def test_a_memory_of_a_module_moves_it_by_one_record_alone():
    assert moved(unfound(Net(FROM), loss=squared)) <= 1.0


def metric_moved(which):
    """By how far the sum of a metric bounded by one moves, and the sum."""
    module = Net(FROM) if which == "module" else one_layer()
    if which == "hook":
        kept = Memory(FROM)
        module.register_forward_hook(lambda module, args, out: kept(out, torch.zeros(len(out)))[:, None])
    seen = Memory(FROM) if which == "metric" else lambda output, target: output[:, 0].clamp(-1, 1)
    model = unfound(module, loss=squared, metrics=[Metric(seen, name="m", bound=1.0)])
    bounds = in_steps({"m": linf(1.0, "record"), "n": linf(1.0, "record")})
    both = []
    for x in (X[1:], X):
        columns = {"model_input": x, "model_target": np.zeros(len(x), np.float32)}
        ask = {"model": model, "with_loss": False, "bounds": bounds}
        both.append(local.score(np.ones(1, np.float32), Party("one", columns, np.ones(len(x))), None, **ask)["m"])
    return abs(both[1] - both[0]), both[1]


@pytest.mark.parametrize("which", ["metric", "module", "hook"])
def test_a_memory_moves_a_metric_behind_noise_by_its_bound_alone_and_a_twin_is_caught(which, monkeypatch):
    far, total = metric_moved(which)
    assert total != 0
    assert far <= 1.0
    monkeypatch.setattr(local, "anew", lambda model: model)
    monkeypatch.setattr(local, "outputs_alone", lambda model, flat, x: model.outputs(flat, x))
    assert metric_moved(which)[0] > 2.0
