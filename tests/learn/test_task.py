"""What a task says of columns, losses and metrics reaches the module; what does not fit is refused before anybody is asked."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from clinics import clinics as ragged
from task_nets import clinics, hazard, net, risk
from torch import nn

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import ModelInvalid, OutOfRange, SettingsInvalid
from hedgerow.learn import Input, Metric, Task, evaluate, evaluate_on, fedavg, linear, made_by, with_weights
from hedgerow.learn.reading import Reading
from hedgerow.learn.tasks.declared import task_from
from hedgerow.learn.tensors import made_of
from hedgerow.store import last
from hedgerow.testing import Wired
from hedgerow.testing.subject import assert_same
from hedgerow.wire.names import Names
from hedgerow.wire.travellers import arrive

SCHEMA = Schema(
    (
        Column("ids", "integer", shape=(4,), low=0, high=20),
        Column("mask", "binary", shape=(4,)),
        Column("city", "category", levels=("a", "b", "c")),
        Column("age", "number", low=0, high=100),
        Column("bmi", "number", low=-5, high=5),
        Column("far", "integer", low=0, high=2**30),
        Column("open", "integer"),
        Column("huge", "integer", low=0, high=2**60),
        Column("label", "category", role="target", levels=("no", "yes")),
    )
)


def table(n=12):
    rng = np.random.default_rng(0)
    columns = {"ids": rng.integers(0, 21, (n, 4)), "mask": rng.integers(0, 2, (n, 4)).astype(float)}
    columns |= {"city": rng.integers(0, 3, n).astype(np.int16), "age": rng.uniform(0, 100, n), "bmi": rng.uniform(-5, 5, n)}
    columns |= {"far": 2**30 - rng.integers(0, 9, n), "open": 2**40 + np.arange(n), "huge": rng.integers(0, 9, n)}
    return Table(SCHEMA.admit(columns | {"label": rng.integers(0, 2, n).astype(np.int16)}), SCHEMA)


def received(task, schema=SCHEMA):
    """Arguments that a module receives of all records, what the loss compares with, and what a party keeps."""
    reading = Reading.of(schema, None, "ranges", task)
    kept = made_of(table().columns, schema, None, reading)
    x, target = (torch.from_numpy(np.asarray(kept[name])) for name in ("model_input", "model_target"))
    return reading.task.arguments(x), reading.task.wanted(target), kept


def test_types_and_shapes_follow_from_what_columns_are():
    task = Task(
        inputs={
            "ids": "ids",
            "mask": Input("mask", dtype="bool"),
            "city": "city",
            "numbers": ["age", "bmi"],
            "square": Input("ids", shape=(2, 2)),
            "mixed": ["age", "city"],
        }
    )
    (args, kwargs), target, kept = received(task)
    own = table()
    assert args == ()
    for name, kind, shape in (
        ("ids", torch.int64, (12, 4)),
        ("mask", torch.bool, (12, 4)),
        ("city", torch.int64, (12,)),
        ("numbers", torch.float32, (12, 2)),
        ("square", torch.int64, (12, 2, 2)),
        ("mixed", torch.float32, (12, 4)),
    ):
        assert (kwargs[name].dtype, tuple(kwargs[name].shape)) == (kind, shape), name
    np.testing.assert_array_equal(kwargs["ids"], own["ids"])
    np.testing.assert_array_equal(kwargs["mask"], own["mask"] == 1)
    np.testing.assert_allclose(kwargs["numbers"], np.column_stack([own["age"] / 100, own["bmi"] / 5]), rtol=1e-6)
    np.testing.assert_array_equal(kwargs["mixed"][:, 1:].argmax(1), own["city"])
    np.testing.assert_array_equal(target, own["label"])
    assert kept["model_input"].dtype == np.float32


@pytest.mark.parametrize(("column", "wide"), [("ids", False), ("far", True), ("open", True)])
def test_whole_numbers_are_exact(column, wide):
    (args, _), _, kept = received(Task(inputs={0: column, 1: "city"}))
    assert kept["model_input"].dtype == (np.float64 if wide else np.float32)
    np.testing.assert_array_equal(args[0], table()[column])


def test_whole_numbers_that_are_not_exact_are_refused():
    with pytest.raises(ModelInvalid, match="2\\^53"):
        received(Task(inputs=Input("huge", dtype="int64")))


@pytest.mark.parametrize("value", [2**53, -(2**53), 2**60 + 1])
def test_values_that_are_not_exact_are_refused_where_no_range_is_declared(value):
    schema = Schema((Column("k", "integer"), Column("y", "binary", role="target")))
    columns = schema.admit({"k": np.array([value, 1], float), "y": np.zeros(2)})
    reading = Reading.of(schema, None, "none", Task(inputs={"k": "k"}))
    with pytest.raises(OutOfRange, match="2\\^53"):
        made_of(columns, schema, None, reading)


def test_a_single_array_shaped_column_is_not_copied():
    reading = Reading.of(SCHEMA, None, "ranges", Task(inputs="ids"))
    columns = table().columns
    kept = made_of(columns, SCHEMA, None, reading)["model_input"]
    assert kept is columns["ids"]
    assert reading.task.arguments(torch.from_numpy(kept))[0][0].dtype == torch.int64


def test_several_targets_arrive_by_name_and_one_by_itself():
    _, target, _ = received(Task(inputs=["age"], target=["far", "bmi"], loss=hazard))
    assert {name: value.dtype for name, value in target.items()} == {"far": torch.int64, "bmi": torch.float32}
    np.testing.assert_array_equal(target["far"], table()["far"])
    np.testing.assert_allclose(target["bmi"], table()["bmi"], rtol=1e-6)


def test_a_dict_of_all_inputs_is_one_argument():
    (args, kwargs), _, _ = received(Task(inputs={"ids": "ids", "city": "city"}, as_dict=True))
    assert set(args[0]) == {"ids", "city"}
    assert not kwargs


# ---- what does not fit ------------------------------------------------------------------------------------------------------
class Words(nn.Module):
    """Counts words and reads a number."""

    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(21, 3), nn.Linear(4, 2)

    def forward(self, ids, age):
        return {"logits": self.out(torch.cat([self.words(ids).mean(1), age[:, None]], 1)), "words": ids}


def mean_loss(output, target):
    return F.cross_entropy(output, target)


def against_the_mean(output, target):
    return F.cross_entropy(output - output.mean(0), target, reduction="none")


def by_rank(output, target):
    return (output[:, 0].argsort().argsort() == target).float()


def deaf(output, target):
    return F.cross_entropy(output.detach(), target, reduction="none")


def every_place(output, target):
    return (output - 1.0) ** 2


def wordless(output, target):
    return output.nothing


def drawn(output, target):
    return F.cross_entropy(output, target, reduction="none") + torch.rand(len(target))


class Counting(nn.Module):
    """A loss that keeps something."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, output, target):
        self.seen += len(target)
        return F.cross_entropy(output, target, reduction="none")


READ = {"ids": "ids", "age": "age"}
WRONG = {
    "an argument of another name": (Task(inputs={"words": "ids", "age": "age"}, output="logits"), "unexpected|missing"),
    "too few": (Task(inputs={"ids": "ids"}, output="logits"), "missing a required argument"),
    "another type": (Task(inputs={"ids": Input("ids", "float32"), "age": "age"}, output="logits"), "fails on made-up records"),
    "no such part": (Task(inputs=READ, output="logit"), "logits"),
    "no part": (Task(inputs=READ), "fails on made-up records"),
    "one number for all": (Task(inputs=READ, output="logits", loss=mean_loss), 'reduction="none"'),
    "mixes records": (Task(inputs=READ, output="logits", loss=against_the_mean), "changes when the other records"),
    "a metric that mixes records": (
        Task(inputs=READ, output="logits", metrics=[by_rank]),
        "metric 'by_rank' of a record changes",
    ),
    "no gradient": (Task(inputs=READ, output="logits", loss=deaf), "no gradient"),
    "a number for each place": (Task(inputs=READ, output="logits", loss=every_place), "one number for each record"),
    "fails": (Task(inputs=READ, output="logits", loss=wordless), "AttributeError"),
    "draws": (Task(inputs=READ, output="logits", loss=drawn), "from call to call"),
    "keeps something": (Task(inputs=READ, output="logits", loss=Counting()), "keeps something of the records"),
    "a shape that does not hold": (Task(inputs={"ids": Input("ids", shape=(3,)), "age": "age"}), "do not fill the shape"),
    "a number as a whole one": (Task(inputs={"ids": "ids", "age": Input("age", "int64")}), "declared a number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_before_anybody_is_asked(case):
    task, said = WRONG[case]
    federation = hr.simulate(table(), iid(parties=2), seed=0)
    with pytest.raises(ModelInvalid, match=said) as refused:
        next(fedavg(federation, Words(), rounds=1, task=task))
    assert refused.value.remedy
    assert refused.value.code == "HR-510"
    assert federation.asked == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Task(loss="cross_entrpy"), "cross_entropy"),
        (lambda: Task(metrics=["acuracy"]), "accuracy"),
        (lambda: Task(loss={"one": "squared", "two": ("squared", 1.0, 2.0)}), "pair"),
        (lambda: Input("x", dtype="int32"), "int64"),
        (lambda: Metric("accuracy", bound=-1.0), "above zero"),
        (lambda: Metric(hazard, name="loss"), "Rename"),
        (lambda: Task(as_dict=True), "inputs="),
        (lambda: received(Task(target=["far", "bmi"])), "loss="),
        (lambda: received(Task(loss={"label": "cross_entropy", "bmi": "squared"})), "target="),
        (lambda: next(fedavg(clinics(net("survival")), linear(2, 1), rounds=1, task={"los": "squared"})), "loss"),
    ],
)
def test_settings_that_are_none_are_refused_with_the_nearest(make, said):
    with pytest.raises(SettingsInvalid) as refused:
        make()
    assert said in refused.value.remedy


def test_a_table_names_functions_by_import_paths_and_a_task_itself_imports_nothing():
    made = task_from({"loss": {"one": ["task_nets:hazard", 0.5]}, "metrics": [{"function": "task_nets:risk", "bound": 1.0}]})
    assert made == Task(loss={"one": (hazard, 0.5)}, metrics=[Metric(risk, bound=1.0)])
    with pytest.raises(ModelInvalid, match="cannot be imported"):
        task_from({"loss": "hedgerow.nowhere:loss"})
    sent = {"inputs": None, "target": None, "loss": "os:system", "metrics": None, "output": None, "as_dict": False}
    with pytest.raises(SettingsInvalid, match="os:system"):
        arrive(Task, sent)
    for make in (lambda: Task(loss="task_nets:hazard"), lambda: Metric("task_nets:risk")):
        with pytest.raises(SettingsInvalid, match="task_nets"):
            make()


# ---- training and evaluation ------------------------------------------------------------------------------------------------
def scaled_huber(output, target, *, by):
    return by * F.huber_loss(output[:, 0], target, reduction="none")


def test_a_named_loss_is_that_of_the_kind_and_partial_functions_are_losses():
    settings = {"rounds": 2, "path": "eager", "learning_rate": 0.3}

    def state(**more):
        return last(fedavg(ragged(), linear(4, 1), **settings, **more))

    assert_same(state(), state(task=Task(loss="log_loss")))
    one, two = (state(task=Task(loss=functools.partial(scaled_huber, by=by))).weights for by in (1.0, 2.0))
    assert not np.allclose(one["1.weight"], two["1.weight"])


def test_weights_keep_the_task_and_another_may_judge_them():
    own = net("two heads")
    state = last(fedavg(clinics(own), own.module, rounds=1, batch_size=None, path="eager", task=own.task))
    found = evaluate(clinics(own), own.module, state)
    assert set(found) == {"sick accuracy", "days mean_squared_error", "loss", "n"}
    module = with_weights(own.module, state)
    assert evaluate_on(own.table, own.module, state)["loss"] == pytest.approx(own.loss(module, own.table.columns).mean().item())
    judged = evaluate(
        clinics(own), own.module, state, task=Task(loss=own.task.loss, metrics=[Metric("accuracy", "hit", on="sick")])
    )
    assert judged == pytest.approx({"hit": found["sick accuracy"], "loss": found["loss"], "n": found["n"]})


@pytest.mark.slow
def test_a_task_travels_with_its_functions():
    states = []
    for engine in (None, Wired(Names(("hedgerow", "task_nets")))):
        own = net("survival")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = made_by("task_nets:Hazards")
        more = {} if engine is None else {"engine": engine}
        federation = hr.simulate(own.table, iid(parties=3), seed=0, **more)
        states.append(last(fedavg(federation, module, rounds=2, path="eager", task=own.task)))
    for name, value in states[0].weights.items():
        np.testing.assert_allclose(states[1].weights[name], value, atol=1e-6)


class Forgetful(nn.Module):
    """Forgets most of what it reads while it trains."""

    def __init__(self):
        super().__init__()
        self.drop, self.out = nn.Dropout(0.9), nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.drop(x))


def test_evaluations_are_without_dropout_and_leave_the_module_as_it_is():
    module = Forgetful()
    weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
    found = [evaluate(ragged(), module, weights) for _ in range(2)]
    calm = Forgetful().eval()
    calm.load_state_dict(module.state_dict())
    assert found[0] == found[1] == pytest.approx(evaluate(ragged(), calm, weights))
    assert module.training


def test_weights_go_on_where_inputs_are_read_as_before():
    plain = last(fedavg(ragged(), linear(4, 1), rounds=1, path="eager"))
    on = last(fedavg(ragged(), linear(4, 1), rounds=2, path="eager", task=Task(loss="huber"), start=plain))
    again = last(fedavg(ragged(), linear(4, 1), rounds=3, path="eager", task=Task(loss="log_loss"), start=on))
    assert again.round == 3
    assert evaluate(ragged(), linear(4, 1), plain, task=Task(loss="huber"))["n"] == 90
    own = net("survival")
    state = last(fedavg(clinics(own), own.module, rounds=1, path="eager", task=own.task))
    swapped = Task(["marker", "age"], own.task.target, own.task.loss)
    with pytest.raises(SettingsInvalid, match="other inputs"):
        next(fedavg(clinics(own), own.module, rounds=2, task=swapped, start=state))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(30, 1)

    def forward(self, x, mask):
        return self.layer(x) * mask


class DictOut(TwoInputs):
    def forward(self, x):
        return {"logits": self.layer(x)}


@pytest.mark.parametrize(("net", "remedy"), [(TwoInputs(), "Task.inputs="), (DictOut(), "Task.output=")])
def test_a_module_that_needs_a_task_is_told_so(net, remedy):
    hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=3), seed=0)
    with pytest.raises(ModelInvalid, match=remedy) as refused:
        next(hr.learn.fedavg(hospitals, net, rounds=1))
    assert not refused.value.asked
