"""Evasion and adversarial training: moves by hand, within ball and ranges; every local training takes it, and it helps."""

import math

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.attacks import evade
from hedgerow.data import Column, Schema, Table
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import Task, dpsgd, fedavg, feddyn, fednova, fedopt, fedprox, fsvrg, linear, mlp, scaffold
from hedgerow.learn.descent.adversary import Adversary, room_of
from hedgerow.learn.descent.solver import Solver
from hedgerow.learn.reading import Reading
from hedgerow.wire.values import pack, unpack

pytestmark = pytest.mark.filterwarnings("ignore:free. no declared range")

KINDS = Schema(
    (
        Column("age", "integer", low=20, high=60),
        Column("change", "number", low=-2.0, high=1.0),
        Column("town", "category", levels=("a", "b", "c")),
        Column("smokes", "binary"),
        Column("free", "number"),
        Column("ill", "binary", role="target"),
    )
)


def people(n: int = 60, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    columns = {
        "age": rng.integers(20, 61, n),
        "change": rng.uniform(-2, 1, n),
        "town": rng.integers(0, 3, n),
        "smokes": rng.integers(0, 2, n).astype(float),
        "free": rng.normal(size=n),
    }
    columns["ill"] = (columns["age"] / 20 + columns["change"] + rng.normal(size=n) > 1.5).astype(float)
    return Table(columns, KINDS)


def plane(n: int = 200) -> Table:
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.4, 0.4, (n, 2))
    schema = Schema(
        (Column("a", "number", low=-1, high=1), Column("b", "number", low=-1, high=1), Column("y", "binary", role="target"))
    )
    return Table({"a": x[:, 0], "b": x[:, 1], "y": (x @ [2.0, -1.0] + 0.1 * rng.normal(size=n) > 0).astype(float)}, schema)


WEIGHTS = {"1.weight": np.array([[2.0, -1.0]], np.float32), "1.bias": np.array([0.05], np.float32)}


@pytest.mark.parametrize(
    "how", [{"method": "fgsm"}, {"method": "pgd", "steps": 10}, {"method": "pgd", "step": 0.3, "starts": 2}]
)
def test_a_linear_model_withstands_a_radius_where_its_margin_is_longer_than_the_radius_times_its_weights(how):
    """Inside the ranges the worst move of a linear score is r sum |w|; the table keeps 0.4 from them."""
    table = plane()
    margin = (2 * table["y"] - 1) * (table["a"] * 2.0 - table["b"] + 0.05)
    found = evade(table, linear(2, 1), WEIGHTS, [0.05, 0.2, 0.4], **how)
    for radius in (0.05, 0.2, 0.4):
        assert found.accuracy(radius).value == (margin > radius * 3.0).mean()
    assert found.accuracy().value == (margin > 0).mean()
    assert found.moves == 1.0
    values = [row[1] for row in found.rows()]
    assert values == sorted(values, reverse=True)
    assert all(low <= value <= high for _, value, low, high in found.rows())


def test_at_the_end_of_a_range_nothing_moves_further():
    table = plane(1)
    edge = Table({"a": np.array([1.0, -1.0]), "b": np.array([-1.0, 1.0]), "y": np.array([0.0, 1.0])}, table.schema)
    weights = {"1.weight": np.array([[2.0, -1.0]], np.float32), "1.bias": np.array([-3.3], np.float32)}
    # the first record's score is -0.3 and could rise only by going beyond both ranges; the second errs anyway
    assert list(evade(edge, linear(2, 1), weights, [0.5]).withstood[0]) == [True, False]


def test_moved_inputs_stay_in_the_ball_and_in_the_ranges_and_other_columns_stay():
    reading = Reading.of(KINDS, None, "ranges")
    adversary = Adversary(0.2, steps=4, room=room_of(reading, KINDS))
    assert adversary.room == ((1, 0.0, 1.0), (1, -1.0, 0.5), (3, None, None), (1, None, None), (1, None, None))
    x = torch.rand(500, 7) * 1.5 - 0.5
    x[:, 0].clamp_(0, 1), x[:, 1].clamp_(-1, 0.5)
    w = torch.randn(7)
    moved = adversary.moved(lambda z: (z @ w) ** 2, x, np.random.default_rng(0).random)
    assert torch.equal(moved[:, 2:], x[:, 2:])
    assert (moved[:, :2] - x[:, :2]).abs().max() <= 0.2 + 1e-6
    assert moved[:, 0].min() >= 0
    assert moved[:, 0].max() <= 1
    assert moved[:, 1].min() >= -1
    assert moved[:, 1].max() <= 0.5
    assert ((moved @ w) ** 2 >= (x @ w) ** 2 - 1e-5).float().mean() > 0.95


def test_a_record_is_moved_by_its_own_values_alone():
    """What protects records may then clip one record's gradient at its moved values."""
    adversary = Adversary(0.1, steps=3, room=((5, 0.0, 1.0),), random_start=False)
    net = mlp(5, [4], 1)
    x = torch.rand(6, 5)
    others = torch.cat([x[:1], torch.rand(5, 5)])
    one, two = (adversary.moved(lambda z: net(z).squeeze(1) ** 2, rows) for rows in (x, others))
    torch.testing.assert_close(one[0], two[0], rtol=0, atol=0)


def test_tables_move_numbers_alone_and_say_what_share():
    found = evade(people(), linear(7, 1), {"1.weight": np.ones((1, 7), np.float32), "1.bias": np.zeros(1, np.float32)}, [0.1])
    assert found.moves == pytest.approx(2 / 7)
    assert str(found).startswith("PGD on 60 records, 29% of the inputs move")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"steps": 3}, "radius"),
        ({"radius": 0.0}, "above zero"),
        ({"radius": math.inf}, "above zero"),
        ({"radius": 0.1, "steps": 0}, "at least one"),
        ({"radius": 0.1, "stpes": 3}, "steps"),
        ({"radius": "wide"}, "adversarial"),
    ],
)
def test_what_is_no_radius_is_refused_before_anybody_is_asked(given, word):
    federation = hr.simulate(people(), hr.data.iid(3), seed=0)
    with pytest.raises(SettingsInvalid, match=word):
        next(iter(fedavg(federation, linear(7, 1), rounds=1, adversarial=given)))
    assert not federation.ledger.entries


def test_programs_that_take_gradients_of_records_as_they_are_refuse_it():
    federation, adversarial = hr.simulate(people(), hr.data.iid(3), seed=0), {"radius": 0.1}
    with pytest.raises(SettingsInvalid, match="Adversarial training"):
        next(iter(dpsgd(federation, linear(7, 1), rounds=1, sampling_rate=0.1, batch_size=6, adversarial=adversarial)))
    with pytest.raises(SettingsInvalid, match="adversarial"):
        next(iter(fsvrg(federation, linear(7, 1), rounds=1, adversarial=adversarial)))
    with pytest.raises(SettingsInvalid, match="adversarial"):
        next(iter(scaffold(federation, linear(7, 1), rounds=1, option="I", adversarial=adversarial)))
    with pytest.raises(SettingsInvalid, match="task"):
        next(iter(fedavg(federation, linear(2, 1), rounds=1, task=Task(inputs=["age", "change"]), adversarial=adversarial)))
    assert not federation.ledger.entries


def test_tables_without_a_range_are_refused():
    with pytest.raises(SettingsInvalid, match="range"):
        room_of(Reading.of(KINDS, ["town", "smokes", "free"], "ranges"), KINDS)
    with pytest.raises(SettingsInvalid, match="radii"):
        evade(people(), linear(7, 1), {}, [])


def weights_after(program, engine=None, **settings):
    federation = hr.simulate(people(), hr.data.iid(3), seed=1, **({} if engine is None else {"engine": engine}))
    *_, last = program(federation, linear(7, 1), rounds=2, batch_size=8, learning_rate=0.3, **settings)
    return np.concatenate([value.ravel() for value in last.weights.values()])


@pytest.mark.parametrize("program", [fedavg, fedprox, fednova, feddyn, fedopt, scaffold])
def test_every_local_training_moves_records_and_a_tiny_radius_is_no_move(program):
    plain = weights_after(program)
    near = weights_after(program, adversarial={"radius": 1e-7, "steps": 1})
    far = weights_after(program, adversarial={"radius": 0.3, "steps": 2})
    np.testing.assert_allclose(near, plain, rtol=1e-3, atol=1e-5)
    assert np.abs(far - plain).max() > 1e-3


def test_engines_agree_on_what_is_trained():
    adversarial = {"radius": 0.2, "steps": 2}
    np.testing.assert_array_equal(*(weights_after(fedavg, engine, adversarial=adversarial) for engine in (Loop(), InProcess())))


def test_it_crosses_a_wire():
    solver = Solver(0.1, adversary=Adversary(0.1, room=((3, 0.0, 1.0), (2, None, None))))
    assert unpack(pack(solver)) == solver


@pytest.mark.slow
def test_a_model_that_was_trained_on_moved_records_withstands_more_and_loses_little_where_they_are():
    digits = hr.data.load("digits")
    order = np.random.default_rng(0).permutation(len(digits))
    test, train = digits.take(order[:600]), digits.take(order[600:])
    found = []
    for adversarial in (None, {"radius": 0.15, "steps": 3}):
        federation, module = hr.simulate(train, hr.data.iid(2), seed=0), mlp(64, [48], 10)
        settings = {"batch_size": 64, "steps": 12, "learning_rate": 0.5, "adversarial": adversarial}
        *_, last = fedavg(federation, module, rounds=25, **settings)
        found.append(evade(test, module, last, [0.15], steps=8))
    plain, hard = found
    assert hard.accuracy(0.15).low > plain.accuracy(0.15).high + 0.05
    assert plain.accuracy().value - 0.08 < hard.accuracy().value
