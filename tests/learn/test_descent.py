"""Local solvers: every path takes the same steps, and every rule and correction is its formula."""

import logging

import numpy as np
import pytest
import torch
from clinics import clinics, flat
from torch import nn

import hedgerow as hr
from hedgerow.core.party import Parties, Party
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import Solver, fedavg, fedprox, lenet, linear, mlp
from hedgerow.learn.descent import Correction, descend, kernel
from hedgerow.learn.models import Model
from hedgerow.learn.schedule import Schedule
from helpers import run_of

LINEAR = (nn.Flatten, nn.Linear, nn.ReLU)
RULES = ("sgd", "momentum", "nesterov", "adagrad", "adadelta", "adam")
RNG = np.random.default_rng(0)


def party(n=23, shape=(4,), kind="binary", seed=1, dtype=np.float32):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, *shape)) * (40 if dtype == np.uint8 else 1) + (100 if dtype == np.uint8 else 0)).astype(dtype)
    target = {"binary": rng.integers(0, 2, n).astype(np.float32), "category": rng.integers(0, 3, n)}
    target["number"] = rng.normal(size=n).astype(np.float32)
    return Party("p", {"model_input": x, "model_target": target[kind]}, rng.integers(1, 3, n).astype(float))


def ends(model, one, solver, correction=None, x=None):
    """The change under each path that takes this model, from the same batches."""
    start = model.initial if x is None else x
    found = {}
    for path in ("eager", "traced", "native"):
        own = Solver(**{**vars(solver), "path": path})
        found[path] = descend(
            start, one, np.random.default_rng(5), model=model, solver=own, correction=correction or Correction()
        )
    return found


def by_numpy(one, rule, lr=0.2, m=0.8, b=0.9, e=1e-3, steps=6, pull=0.0, shift=0.0, mask=1.0):
    """A linear model's descent on whole batches, as in the rules' table."""
    x, y, w = one["model_input"].astype(float), one["model_target"].astype(float), one.w
    theta = np.zeros(x.shape[1] + 1)
    v, s = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, steps + 1):
        error = w / w.sum() * (1 / (1 + np.exp(-(x @ theta[:-1] + theta[-1]))) - y)
        g = mask * (np.append(x.T @ error, error.sum()) + pull * theta + shift)
        if rule == "sgd":
            step = g
        elif rule in ("momentum", "nesterov"):
            v = m * v + g
            step = v if rule == "momentum" else g + m * v
        elif rule == "adagrad":
            s = s + g**2
            step = g / (np.sqrt(s) + e)
        elif rule == "adadelta":
            s = m * s + (1 - m) * g**2
            step = np.sqrt(v + e) / np.sqrt(s + e) * g
            v = m * v + (1 - m) * step**2
        else:
            v, s = m * v + (1 - m) * g, b * s + (1 - b) * g**2
            step = (v / (1 - m**t)) / (np.sqrt(s / (1 - b**t)) + e)
        theta = theta - lr * step
    return theta


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_its_formula(rule):
    one, model = party(), Model(linear(4, 1), "binary")
    solver = Solver(0.2, epochs=6, batch_size=None, rule=rule, momentum=0.8, second_decay=0.9, epsilon=1e-3)
    for path, found in ends(model, one, solver).items():
        np.testing.assert_allclose(found.change, by_numpy(one, rule), atol=2e-6, err_msg=path)


@pytest.mark.parametrize("rule", ["sgd", "momentum"])
def test_corrections_are_their_formula(rule):
    one, model = party(), Model(linear(4, 1), "binary")
    shift, mask = RNG.normal(size=5).astype(np.float32), np.array([1, 0, 1, 1, 0], np.float32)
    solver = Solver(0.2, epochs=6, batch_size=None, rule=rule, momentum=0.8)
    for terms, given in [
        ({"pull": 0.7}, {"pull": 0.7}),
        ({"shift": shift}, {"shift": shift}),
        ({"pull": 0.7, "shift": shift}, {"pull": 0.7, "shift": shift}),
        ({"mask": mask, "shift": shift}, {"mask": mask, "shift": shift}),
    ]:
        for path, found in ends(model, one, solver, Correction(**terms)).items():
            np.testing.assert_allclose(found.change, by_numpy(one, rule, **given), atol=2e-6, err_msg=f"{path} {terms}")


def test_an_anchored_gradient_vanishes_at_the_anchor():
    one, model = party(), Model(mlp(4, [3], 1), "binary")
    for path, found in ends(model, one, Solver(0.2, batch_size=4), Correction(anchored=True)).items():
        np.testing.assert_allclose(found.change, 0.0, atol=1e-7, err_msg=path)


@pytest.mark.parametrize(
    ("module", "shape", "kind", "dtype"),
    [
        (mlp(4, [6, 5], 1), (4,), "binary", np.float32),
        (mlp(4, [6], 3), (4,), "category", np.float32),
        (mlp(4, [6], 1), (4,), "number", np.float32),
        (mlp(64, [8], 3), (8, 8), "category", np.uint8),
        (nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 3)), (4,), "category", np.float32),
        (
            nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(12, 3)),
            (2, 8),
            "category",
            np.float32,
        ),
        (lenet((28, 28), 3), (28, 28), "category", np.uint8),
    ],
    ids=["binary", "category", "number", "bytes", "gelu", "conv", "lenet"],
)
def test_every_path_takes_the_same_steps(module, shape, kind, dtype):
    scale = {"scale": 1 / 255} if dtype == np.uint8 else {}
    one, model = party(shape=shape, kind=kind, dtype=dtype), Model(module, kind, **scale)
    found = ends(model, one, Solver(0.05, epochs=2, batch_size=5))
    size = np.abs(found["eager"].change).max()
    for other in ("traced", "native"):
        np.testing.assert_allclose(found[other].change, found["eager"].change, atol=1e-5 * max(size, 1))
        assert found[other].steps == found["eager"].steps == 10
    native = model.programs.pop("native", None)
    assert None not in model.programs.values(), "it was not traced"
    assert (native is not None) == (
        kernel.available and isinstance(module[-1], nn.Linear) and all(isinstance(m, LINEAR) for m in module)
    )


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("path", ["eager", "auto"])
def test_stacked_parties_end_where_each_ends_alone(rule, path):
    """Of different sizes, so that some rest while others still step, and more than a power of two."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 14, 11)
    n = int(sizes.sum())
    columns = {
        "model_input": rng.normal(size=(n, 4)).astype(np.float32),
        "model_target": rng.integers(0, 2, n).astype(np.float32),
    }
    held = Parties([str(k) for k in range(11)], columns, sizes)
    model, solver = Model(mlp(4, [3], 1), "binary"), Solver(0.1, epochs=2, batch_size=3, rule=rule, path=path)
    shift = rng.normal(size=(11, len(model.initial))).astype(np.float32) * 0.1
    streams = lambda: [np.random.default_rng(k) for k in range(11)]  # noqa: E731
    together = descend(
        model.initial, held.stack(np.arange(11)), streams(), model=model, solver=solver, correction=Correction(0.3, shift)
    )
    for k, stream in enumerate(streams()):
        alone = descend(model.initial, held[k], stream, model=model, solver=solver, correction=Correction(0.3, shift[k]))
        np.testing.assert_allclose(together.change[k], alone.change, atol=3e-6)
        assert together.steps[k] == alone.steps


class Tied(nn.Module):
    """Weights used twice, one factor of a product the other's gradient: fused updates must not see each other."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(4, 5) * 0.3), nn.Parameter(torch.randn(5, 4) * 0.3)

    def forward(self, x):
        return x @ (self.a @ self.b) @ self.a[:, :1] @ self.b[:1, :1]


def test_updates_in_place_do_not_disturb_each_other():
    one, model = party(kind="number"), Model(Tied(), "number")
    found = ends(model, one, Solver(0.05, epochs=3, batch_size=4))
    np.testing.assert_allclose(found["traced"].change, found["eager"].change, atol=1e-6)


class Moody(nn.Module):
    """Branches on its data."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x) if bool(x.sum() > 0) else 2 * self.layer(x)


def test_what_cannot_be_traced_trains_eagerly_and_says_so(caplog):
    one, model = party(), Model(Moody(), "binary", stackable=False)
    with caplog.at_level(logging.INFO, logger="hedgerow.learn"):
        found = ends(model, one, Solver(0.05, batch_size=4))
    np.testing.assert_array_equal(found["traced"].change, found["eager"].change)
    assert "Moody trains eagerly" in caplog.text


def test_a_batch_split_over_threads_gives_the_same_gradient():
    one, model = (
        party(n=30, shape=(1, 8, 8), kind="category"),
        Model(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3)), "category"),
    )
    solver, found = Solver(0.1, batch_size=7, path="eager"), []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(descend(model.initial, one, np.random.default_rng(0), model=model, solver=solver).change)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)


def test_half_precision_is_near_and_not_equal():
    one, model = party(n=40), Model(mlp(4, [8], 1), "binary")
    exact, half = (
        descend(model.initial, one, np.random.default_rng(0), model=model, solver=Solver(0.1, precision=p)).change
        for p in ("float32", "bfloat16")
    )
    assert 0 < np.abs(half - exact).max() < 0.1 * np.abs(exact).max()


# ---- the order of work ------------------------------------------------------------------------------------------------
def test_steps_end_a_pass_early_or_go_on():
    for steps in (1, 5, 12):
        plan = Solver(batch_size=4, steps=steps).plan("p", np.arange(10), np.random.default_rng(0))
        assert len(plan) == steps


def test_stragglers_take_fewer_passes():
    plans = [
        Solver(epochs=5, batch_size=None, stragglers=0.5).plan("p", np.arange(3), np.random.default_rng(k)) for k in range(200)
    ]
    lengths = np.bincount([len(plan) for plan in plans], minlength=6)
    assert lengths[1:5].min() > 0
    assert 90 < lengths[5] < 150  # 120 expected; 1e-4 of binomials lie outside


def test_parties_may_take_epochs_of_their_own():
    fed = clinics(parties=3, records=40)
    own = fedavg(fed, linear(4, 1), rounds=1, epochs=[5, 1, 2], batch_size=None)
    state = next(own)
    w = np.zeros(5)
    from clinics import descent

    found = [
        descent(fed, name, 1, w, learning_rate=0.1, epochs=e, batch_size=None)
        for name, e in zip(fed.members, [5, 1, 2], strict=True)
    ]
    expected = sum(n * v for v, _, n, _ in found) / sum(n for _, _, n, _ in found)
    np.testing.assert_allclose(flat(state), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "third"), [("constant", 1.0), ("step", 0.5), ("exponential", 0.25), ("inverse", 0.5), ("cosine", 0.5)]
)
def test_schedules(name, third):
    assert Schedule(name, 0.5, 2, 4).factor(2) == pytest.approx(third)
    assert Schedule(name, 0.5, 2, 4).factor(0) == 1.0


@pytest.mark.slow
def test_a_schedule_reaches_the_parties():
    fed = clinics()
    falling = next(fedavg(hr.engines.on(fed, run_of(fed).engine), linear(4, 1), rounds=1, schedule="exponential", decay=0.5))
    *_, two = fedavg(hr.engines.on(fed, run_of(fed).engine), linear(4, 1), rounds=2, schedule="exponential", decay=0.5)
    *_, plain = fedavg(hr.engines.on(fed, run_of(fed).engine), linear(4, 1), rounds=2)
    first, second = np.linalg.norm(flat(falling)), np.linalg.norm(flat(two) - flat(falling))
    assert second < 0.7 * first
    assert np.linalg.norm(flat(plain)) > np.linalg.norm(flat(two))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epoch": 3}, "epochs"),
        ({"epochs": [1, 2]}, "2 numbers for 6 parties"),
        ({"epochs": "many"}, "epochs"),
        ({"solver": "sdg"}, "solver"),
        ({"momentum": 1.0}, "momentum"),
        ({"schedule": "linear"}, "schedule"),
        ({"schedule": "exponential", "decay": 0.0}, "decay"),
        ({"steps": 0}, "steps"),
        ({"spare": 2}, "spare"),
        ({"stragglers": 2.0}, "stragglers"),
        ({"learning_rate": None}, "learning_rate"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_before_anybody_is_asked(wrong, said):
    fed = clinics()
    with pytest.raises(SettingsInvalid, match=said):
        next(fedprox(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0


def test_the_first_answers_count_and_the_spare_parties_do_not():
    fed = clinics()
    state = next(fedavg(fed, linear(4, 1), rounds=1, size=2, spare=3))
    assert state.round == 1
    assert fed.ledger.entries[0].parties == 2
    assert fed.missing == 0


def test_a_recorded_gradient_is_that_of_make_fx():
    from torch.func import grad
    from torch.fx.experimental.proxy_tensor import make_fx

    from hedgerow.learn.descent.recorder import recorded

    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.LayerNorm(32), nn.Linear(32, 3))
    x, w = torch.randn(5, 1, 6, 6), torch.cat([p.detach().reshape(-1) for p in net.parameters()])
    model = Model(net, "category")

    def loss(flat):
        return model.losses(flat, x, torch.arange(5) % 3).mean()

    def slope(flat):
        return (torch.autograd.grad(loss(flat), flat)[0],)

    made, theirs = recorded(slope, w.clone().requires_grad_()), make_fx(slope)(w.clone().requires_grad_())
    again = torch.fx.GraphModule(made.constants, made.graph)
    for at in (w, w + 0.1):
        torch.testing.assert_close(again(at)[0], theirs(at)[0], rtol=0, atol=0)
        torch.testing.assert_close(again(at)[0], grad(loss)(at))


@pytest.mark.parametrize(
    "decides", [lambda x: x * float(x.sum()), lambda x: x[x > 0].sum(), lambda x: x if x.sum() > 0 else -x]
)
def test_what_follows_from_values_is_not_recorded(decides):
    from hedgerow.learn.descent.recorder import recorded

    with pytest.raises(NotImplementedError, match="depends on values"):
        recorded(lambda x: (decides(x),), torch.ones(3))


def test_flops_are_those_that_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    from hedgerow.learn.descent.flops import flops_of

    net, x = lenet((28, 28), 10), torch.zeros(2, 28, 28)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        net(x)
    with torch.no_grad():
        assert flops_of(lambda: net(x)) == counter.get_total_flops() > 0
