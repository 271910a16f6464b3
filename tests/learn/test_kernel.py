"""The compiled kernel takes the steps that autograd takes, refuses what it cannot read, and may be missing."""

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hedgerow.learn import linear, mlp
from hedgerow.learn.descent import kernel
from hedgerow.learn.descent.kernel import Stack, descend, fits
from hedgerow.learn.models import Model, per_record_loss
from hedgerow.learn.training import can_be_stacked

compiled = pytest.mark.skipif(not kernel.available, reason="the kernel was not compiled at installation")


def task(stack, kind="category", seed=0, n=23, batch=7, steps=4):
    """Weights, records, a plan and learning rates at random."""
    rng = np.random.default_rng(seed)
    weights = np.concatenate([rng.uniform(-1, 1, (i + 1) * o) / np.sqrt(i) for i, o in pairwise(stack.widths)])
    levels = rng.integers(0, stack.widths[-1], n)
    return {
        "weights": weights.astype(np.float32),
        "inputs": rng.normal(size=(n, stack.widths[0])).astype(np.float32),
        "target": {"category": levels, "binary": (levels + rng.random(n)).round() % 2, "number": rng.normal(size=n)}[
            kind
        ].astype(np.int64 if kind == "category" else np.float32),
        "record_weights": np.ones(n, np.float32),
        "plan": rng.integers(0, n, (steps, batch)),
        "learning_rates": rng.uniform(0.1, 0.2, steps).astype(np.float32),
    }


def by_autograd(stack, kind, weights, inputs, target, record_weights, plan, learning_rates, **more):
    """The same descent as a loop over autograd, in float64."""
    double = [torch.from_numpy(np.array(a)).double() for a in (weights, inputs, target, record_weights)]
    y, x, target, w = double
    start, shift, v = (torch.from_numpy(np.array(more.get(k, 0 * weights))).double() for k in ("start", "shift", "velocity"))
    x, target = (x.flatten(1) - more.get("low", 0)) * more.get("scale", 1), target.long() if kind == "category" else target
    act, sizes = getattr(torch, stack.activation), [size for i, o in pairwise(stack.widths) for size in (i * o, o)]
    for records, rate in zip(plan, learning_rates, strict=True):
        at = records[records >= 0]
        if len(at) == 0:
            continue
        flat = y.clone().requires_grad_()
        parts, h = flat.split(sizes), x[at]
        for i in range(0, len(parts), 2):
            h = F.linear(act(h) if i else h, parts[i].reshape(len(parts[i + 1]), -1), parts[i + 1])
        loss = (w[at] * per_record_loss(kind)(h, target[at])).sum() / w[at].sum().clamp_min(1e-12)
        slope = torch.autograd.grad(loss, flat)[0] + more.get("pull", 0) * (y - start) + shift
        v = more.get("momentum", 0) * v + slope
        y = y - float(rate) * v
    return y.numpy(), v.numpy()


def agrees(stack, kind, given, **more):
    """Compare the kernel with autograd on every instruction set that this machine has, relative to the change."""
    wanted, velocity = by_autograd(stack, kind, **given, **more)
    for path in kernel.paths:
        y, own = given["weights"].copy(), {k: v.copy() if k == "velocity" else v for k, v in more.items()}
        descend(stack, kind, **{**given, "weights": y}, **own, path=path)
        error = np.abs(y - wanted).max() / np.abs(wanted - given["weights"]).max()
        assert error < 1e-5, f"{path}: {error}"
        if "velocity" in more:
            np.testing.assert_allclose(own["velocity"], velocity, atol=1e-5 * np.abs(velocity).max())


@compiled
@pytest.mark.parametrize("hidden", [(), (5,), (16, 33), (40, 1, 17)], ids=len)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("kind", ["category", "binary", "number"])
def test_steps_are_those_of_autograd(kind, activation, hidden):
    stack = Stack((13, *hidden, 11 if kind == "category" else 1), activation)
    agrees(stack, kind, task(stack, kind, seed=len(hidden)))


@compiled
@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 25, 64, 300])
def test_any_batch_size_gives_the_steps_of_autograd(batch):
    stack = Stack((37, 19, 4))
    agrees(stack, "category", task(stack, batch=batch, n=400, steps=3))


@compiled
@pytest.mark.parametrize("widths", [(784, 200, 200, 10), (512, 64, 3), (1, 1, 2), (2000, 7)])
def test_any_width_gives_the_steps_of_autograd(widths):
    stack = Stack(widths)
    agrees(stack, "category", task(stack, batch=10, steps=3))


@compiled
def test_bytes_are_shifted_and_scaled_as_they_are_read():
    stack = Stack((36, 9, 3))
    given = task(stack)
    given["inputs"] = np.random.default_rng(0).integers(0, 256, (23, 6, 6)).astype(np.uint8)
    agrees(stack, "category", given, low=20.0, scale=1 / 255)
    agrees(stack, "category", {**given, "inputs": given["inputs"].astype(np.float32)}, low=20.0, scale=1 / 255)


@compiled
def test_padding_and_records_of_weight_zero_do_not_count():
    stack = Stack((6, 9, 1))
    given = task(stack, "number")
    given["record_weights"] = np.random.default_rng(1).choice([0, 0.5, 3], 23).astype(np.float32)
    given["plan"][1] = -1
    given["plan"][3, 2:] = given["plan"][2, 4] = -1
    agrees(stack, "number", given)


@compiled
def test_steps_of_padding_change_nothing_at_all():
    stack = Stack((6, 9, 1))
    given = task(stack, "number")
    before, given["plan"] = given["weights"].copy(), np.full((4, 7), -1)
    descend(stack, "number", **given, start=before + 1, pull=1.0, shift=before, momentum=0.5)
    np.testing.assert_array_equal(given["weights"], before)


@compiled
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("terms", [("pull",), ("shift",), ("pull", "shift")], ids="+".join)
def test_pull_shift_and_momentum_move_as_written(terms, momentum):
    stack = Stack((10, 12, 3), "tanh")
    given, rng = task(stack), np.random.default_rng(1)
    start, shift, velocity = (rng.normal(size=stack.size).astype(np.float32) for _ in range(3))
    more = {"pull": {"pull": 0.3, "start": start}, "shift": {"shift": shift}}
    more = {key: value for term in terms for key, value in more[term].items()}
    agrees(stack, "category", given, **more, **({"momentum": momentum, "velocity": velocity} if momentum else {}))


@compiled
def test_many_tiny_terms_are_not_lost_in_a_large_weight():
    stack = Stack((1, 1))
    given = task(stack, "number", n=4096, batch=4096, steps=1)
    given |= {"weights": np.array([1.0, 0.0], np.float32), "inputs": np.ones((4096, 1), np.float32)}
    given |= {"target": np.zeros(4096, np.float32), "learning_rates": np.array([1e-5], np.float32)}
    descend(stack, "number", **given)
    assert given["weights"][0] == pytest.approx(1 - 2e-5, abs=1.2e-7)


@compiled
def test_values_that_are_not_finite_reach_the_weights():
    stack = Stack((6, 9, 3))
    for value in (np.nan, np.inf):
        given = task(stack)
        given["inputs"][:, 0] = value
        descend(stack, "category", **given)
        assert np.isnan(given["weights"]).any()


@compiled
def test_large_logits_have_finite_slopes():
    for kind, widths in (("category", (2, 3)), ("binary", (2, 1))):
        given = task(Stack(widths), kind)
        given["inputs"] *= 1e4
        descend(Stack(widths), kind, **given)
        assert np.isfinite(given["weights"]).all()


@compiled
def test_threads_do_not_disturb_each_other():
    stack = Stack((50, 40, 10))
    tasks = [task(stack, seed=seed, n=60, batch=10, steps=30) for seed in range(8)]
    alone = [{**given, "weights": given["weights"].copy()} for given in tasks]
    for given in alone:
        descend(stack, "category", **given)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda given: descend(stack, "category", **given), tasks))
    for one, other in zip(tasks, alone, strict=True):
        np.testing.assert_array_equal(one["weights"], other["weights"])


@compiled
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"weights": np.zeros(5, np.float32)}, "weights: float32 of shape .5,."),
        ({"weights": np.zeros(93)}, "weights: float64"),
        ({"weights": np.zeros(186, np.float32)[::2]}, "with gaps"),
        ({"weights": np.broadcast_to(np.float32(0), 93)}, "weights"),
        ({"inputs": np.zeros((23, 7), np.float32)}, "a record has 6 inputs"),
        ({"inputs": np.zeros((23, 6))}, "inputs: float64"),
        ({"target": np.zeros(23, np.float32)}, "target: float32"),
        ({"target": np.full(23, 3)}, "label 3; the last layer has 3 outputs"),
        ({"target": np.full(23, -1)}, "label -1"),
        ({"record_weights": np.ones(22, np.float32)}, "record_weights"),
        ({"plan": np.full((4, 7), 23)}, "step 0 of the plan names record 23; there are 23"),
        ({"plan": np.full((4, 7), -2)}, "names record -2"),
        ({"plan": np.zeros((3, 7), int)}, "plan"),
        ({"plan": np.zeros(4, int)}, "a plan of shape .4,."),
        ({"plan": np.zeros((4, 7), np.int32)}, "plan: int32"),
        ({"start": np.zeros(4, np.float32)}, "start"),
        ({"shift": np.zeros(4, np.float32)}, "shift"),
        ({"velocity": np.zeros(4, np.float32)}, "velocity"),
        ({"pull": 0.1}, "no start"),
        ({"path": "abacus"}, "abacus"),
    ],
)
def test_what_cannot_be_read_is_refused_and_leaves_the_weights(wrong, words):
    given = {**task(Stack((6, 9, 3))), **wrong}
    before = given["weights"].copy()
    with pytest.raises(ValueError, match=words):
        descend(Stack((6, 9, 3)), "category", **given)
    np.testing.assert_array_equal(given["weights"], before)


@compiled
def test_the_compiled_function_itself_refuses_what_would_leave_its_arrays():
    one, two, plan = np.zeros(1, np.float32), np.zeros(2, np.float32), np.zeros((1, 1), int)
    settings = ((1, 1), kernel.ACTIVATIONS["relu"], kernel.LOSSES["number"], 0.0, 0.0, None, 0)
    with pytest.raises(ValueError, match="do not fit"):
        kernel._kernel.descend(one, None, None, None, two, False, 0.0, 1.0, two, two, plan, one, *settings)


@compiled
def test_a_target_of_one_number_needs_one_output():
    given = task(Stack((6, 9, 3))) | {"target": np.zeros(23, np.float32)}
    with pytest.raises(ValueError, match="it has 3"):
        descend(Stack((6, 9, 3)), "number", **given)


class Chain(nn.Module):
    """Three layers, called in a forward of the caller's making."""

    def __init__(self, forward, **more):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(12, 5), nn.Linear(5, 4), nn.Linear(4, 1)
        self.act, self.made = nn.ReLU(), forward
        for name, part in more.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.made(self, x)


CHAINS = {
    "functions": lambda m, x: m.c(F.relu(m.b(F.relu(m.a(x))))),
    "methods": lambda m, x: m.c(m.b(m.a(x.flatten(1)).relu()).relu()),
    "one module twice": lambda m, x: m.c(m.act(m.b(m.act(m.a(x))))),
    "tanh": lambda m, x: m.c(torch.tanh(m.b(m.a(x).tanh()))),
    "in place": lambda m, x: m.c(F.relu_(m.b(F.relu(m.a(x), inplace=True)))),
    "torch.flatten": lambda m, x: m.c(torch.relu(m.b(torch.relu(m.a(torch.flatten(x, start_dim=1)))))),
    "view of size": lambda m, x: m.c(m.act(m.b(m.act(m.a(x.view(x.size(0), -1)))))),
    "view of shape": lambda m, x: m.c(m.act(m.b(m.act(m.a(x.view((x.shape[0], 12))))))),
    "reshape": lambda m, x: m.c(m.act(m.b(m.act(m.a(torch.reshape(x, (-1, 12))))))),
    "squeezed": lambda m, x: m.c(m.act(m.b(m.act(m.a(x))))).squeeze(-1),
    "own parameters": lambda m, x: F.linear(m.act(m.b(m.act(m.a(x)))), m.c.weight, m.c.bias),
}

OTHERS = {
    "another order": lambda m, x: m.c(m.act(m.a(m.act(m.b(x))))),
    "a layer left out": lambda m, x: m.b(m.act(m.a(x))),
    "nothing between": lambda m, x: m.c(m.act(m.b(m.a(x)))),
    "two activations": lambda m, x: m.c(m.act(m.b(torch.tanh(m.a(x))))),
    "activation at the end": lambda m, x: m.act(m.c(m.act(m.b(m.act(m.a(x)))))),
    "in place at the end": lambda m, x: (y := m.c(m.act(m.b(m.act(m.a(x))))), F.relu_(y))[0],
    "residual": lambda m, x: m.c(m.act(m.b(m.act(m.a(x)))) + 1),
    "scaled": lambda m, x: 2 * m.c(m.act(m.b(m.act(m.a(x))))),
    "leaky": lambda m, x: m.c(F.leaky_relu(m.b(m.act(m.a(x))))),
    "dropout": lambda m, x: m.c(F.dropout(m.act(m.b(m.act(m.a(x)))), 0.5)),
    "depends on values": lambda m, x: m.c(m.act(m.b(m.act(m.a(x))))) if x.sum() > 0 else x,
    "joins records": lambda m, x: m.c(m.act(m.b(m.act(m.a(x.flatten()))))),
    "another view": lambda m, x: m.c(m.act(m.b(m.act(m.a(x.view(-1, 6)))))),
    "constant": lambda m, x: torch.zeros(3),
}


@compiled
@pytest.mark.parametrize("name", CHAINS)
def test_a_forward_that_is_a_chain_is_recognised(name):
    assert fits(Chain(CHAINS[name]), "binary") == Stack((12, 5, 4, 1), "tanh" if name == "tanh" else "relu")


@compiled
@pytest.mark.parametrize("name", OTHERS)
def test_a_forward_that_is_more_than_a_chain_is_not(name):
    assert fits(Chain(OTHERS[name]), "number") is None


@compiled
def test_sequential_modules_are_recognised():
    assert fits(linear(4, 3), "category") == Stack((4, 3))
    assert fits(mlp(7, (6, 5), 1), "number") == Stack((7, 6, 5, 1))
    inner = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    assert fits(nn.Sequential(nn.Identity(), inner, nn.Linear(3, 2)), "category") == Stack((4, 3, 2), "tanh")


@pytest.mark.parametrize(
    "module", [linear(4, 3), mlp(4, (6, 5), 3), nn.Sequential(nn.Linear(4, 9), nn.Tanh(), nn.Linear(9, 3))]
)
def test_of_a_stack_is_known_what_a_trial_finds(module):
    """Its operations are those that torch counts, and `vmap` of its gradient works; see `learn.training.can_be_stacked`."""
    model = Model(module, "category")
    assert model.stack is not None
    with FlopCounterMode(display=False) as counter:
        module(torch.randn(7, 4))
    assert 7 * model.stack.flops == counter.get_total_flops()
    made_up = {"model_input": np.ones((2, 4), np.float32), "model_target": np.arange(2)}
    assert can_be_stacked(model, made_up)
    model.__dict__["stack"] = None  # a trial is needed then
    assert can_be_stacked(model, made_up)


@compiled
def test_what_recognition_sees_is_what_the_module_computes():
    module = Chain(CHAINS["view of size"])
    flat, x = torch.cat([p.detach().flatten() for p in module.parameters()]), torch.randn(5, 3, 4)
    given = task(fits(module, "number"), "number", n=5, batch=5, steps=1)
    given |= {"weights": flat.numpy().copy(), "inputs": x.numpy()}
    loss = ((module(x)[given["plan"][0], 0] - torch.from_numpy(given["target"])[given["plan"][0]]) ** 2).mean()
    slope = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(module.parameters()))])
    descend(fits(module, "number"), "number", **given)
    np.testing.assert_allclose(given["weights"], flat - float(given["learning_rates"][0]) * slope, atol=1e-6)


@compiled
@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (nn.Sequential(nn.Linear(4, 3, bias=False)), "category"),
        (nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.Linear(3, 1)), "number"),
        (nn.Sequential(nn.Flatten(0), nn.Linear(4, 1)), "number"),
        (nn.Linear(4, 3), "binary"),
        (nn.Linear(4, 3).double(), "category"),
        (nn.Linear(4, 3).requires_grad_(False), "category"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), "category"),
        (nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)), "category"),
        (nn.Sequential(*[nn.Linear(4, 4), nn.ReLU()] * 2, nn.Linear(4, 4)), "category"),
        (nn.Identity(), "number"),
        (nn.Linear(4, 3), "ranking"),
    ],
    ids=str,
)
def test_other_modules_are_left_to_autograd(module, kind):
    assert fits(module, kind) is None


@compiled
def test_a_module_with_hooks_is_left_to_autograd():
    module = mlp(4, (3,), 1)
    module[1].register_forward_hook(lambda *_: None)
    assert fits(module, "number") is None


@compiled
def test_recognition_leaves_the_module_as_it_was():
    module = Chain(lambda m, x: m.c(m.act(m.b(setattr(m, "seen", m.a(x)) or m.act(m.seen)))))
    assert fits(module, "number") is not None
    assert not hasattr(module, "seen")


def test_without_the_kernel_nothing_fits(monkeypatch):
    package = sys.modules["hedgerow.learn.descent"]
    monkeypatch.delattr(package, "_kernel", raising=False)
    monkeypatch.setitem(sys.modules, "hedgerow.learn.descent._kernel", None)
    spec = importlib.util.spec_from_file_location("hedgerow.learn.descent.kernel_again", Path(kernel.__file__))
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    assert not again.available
    assert again.paths == ()
    assert again.fits(mlp(4, (3,), 1), "number") is None
    with pytest.raises(RuntimeError, match="not compiled"):
        again.descend(Stack((6, 9, 3)), "category", **task(Stack((6, 9, 3))))


@compiled
def test_from_an_origin_the_weights_end_as_the_change():
    given = task(Stack((6, 9, 3)))
    origin, made = given["weights"].copy(), {**given, "weights": np.full_like(given["weights"], np.nan)}
    descend(Stack((6, 9, 3)), "category", **given)
    descend(Stack((6, 9, 3)), "category", **made, origin=origin)
    np.testing.assert_array_equal(made["weights"], given["weights"] - origin)
