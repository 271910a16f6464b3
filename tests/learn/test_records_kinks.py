"""A record on the kink of a ReLU moves an exact sum by at most the clip; sums by torch and of stacked records break this.

Where the last bit of a product decides, a batch of another size decides otherwise, and a whole clipped gradient turns. So
copies of one record are added up, k and k + 1 of them, and the distance is compared with the declared bound, in whole numbers.
"""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from exact_records import in_steps, limit, squared
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import hedgerow as hr
from hedgerow.learn.models import Model
from hedgerow.learn.records import Clipping, RecordPlan, clipped_gradients, clipped_sum, dpsgd, local_dpsgd
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.dpsgd import GradientStep
from hedgerow.learn.records.exact.parts import Outer
from hedgerow.learn.records.exact.sums import Totals, hold
from hedgerow.learn.rowwise import kernels
from hedgerow.learn.tensors import prepared
from helpers import ENGINES

COPIES = (1, 3, 7)
MANY = (1025, 1027)


def perceptron():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))


def convolution():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 2, 5), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))


SHAPES = {perceptron: (64,), convolution: (1, 8, 8)}


def on_kinks(net, shape, n, seed=0):
    """Records at which every number before the first ReLU is zero, up to rounding, (n, *shape)."""
    with torch.no_grad():
        start = net[0](torch.zeros(1, *shape)).double().flatten()
        units = (
            net[0].double()(torch.eye(64, dtype=torch.float64).view(64, *shape)).flatten(1).T.numpy() - start.numpy()[:, None]
        )
    net[0].float()
    rng, inverse, null = np.random.default_rng(seed), np.linalg.pinv(units), np.linalg.svd(units)[2][32:]
    sizes = rng.choice([3, 10, 30], (n, 1))
    x = -inverse @ start.numpy() + (rng.normal(size=(n, len(null))) * sizes) @ null
    return torch.from_numpy(x.astype(np.float32)).view(n, *shape)


def distance(model, x, k, summed=clipped_sum):
    """How far k + 1 copies of a record and k copies lie apart, in clips."""
    flat, totals = torch.from_numpy(model.initial), []
    for n in (k, k + 1):
        given = x.expand(n, *x.shape[1:]).contiguous(), torch.zeros(n, dtype=torch.long), torch.ones(n)
        totals.append(summed(model, flat, *given, Clipping.of(1.0))[0])
    return float((totals[1] - totals[0]).norm())


@pytest.mark.parametrize("path", kernels.paths)
@pytest.mark.parametrize("make", SHAPES)
def test_a_record_on_a_kink_moves_an_exact_sum_by_its_own_vector(make, path):
    net = make()
    model, found = Model(net, "category"), on_kinks(net, SHAPES[make], 12)
    flat = torch.from_numpy(model.initial)
    assert exact_of(model, SHAPES[make]).graph is not None
    with kernels.using(path):
        for i in range(len(found)):
            x, totals = found[i : i + 1], {}
            for n in sorted({0, 1, *COPIES, *(k + 1 for k in COPIES), *(() if i else (n for k in MANY for n in (k, k + 1)))}):
                given = x.expand(n, *x.shape[1:]).contiguous(), torch.zeros(n, dtype=torch.long), torch.ones(n)
                totals[n] = in_steps(model, flat, *given)
            assert squared(totals[1]) <= limit() ** 2
            for n, total in totals.items():
                np.testing.assert_array_equal(total, n * totals[1])


# ---- twins -------------------------------------------------------------------------------------------------------------------
def ghost_sum(model, flat, x, target, w, clipping):
    """The twin: lengths and sums by torch, of all records together."""
    return clipped_sum(model, flat, x, target, w, clipping, exact=False)


def stacked_sum(model, flat, x, target, w, clipping):
    """The twin: whole numbers and exact sums, of gradients that torch found for all records together."""
    one, out = model.module[0], model.module[2]
    h = one(x).relu()
    g = F.softmax(out(h), 1) - F.one_hot(target, 2)
    back = (g @ out.weight) * (h > 0)
    parts = [Outer(f"{i}.weight", f"{i}.bias", a.detach().numpy(), s.detach().numpy()) for i, a, s in ((0, x, back), (2, h, g))]
    trained, totals = exact_of(model, tuple(x.shape[1:])).trained, Totals()
    hold(parts, w.numpy().astype(float), trained, clipping)
    totals.add(parts)
    return torch.from_numpy(totals.flat(trained, clipping.step)), None


@pytest.mark.slow
@pytest.mark.parametrize("twin", [ghost_sum, stacked_sum])
def test_records_that_are_computed_together_are_caught(twin):
    net = perceptron()
    model = Model(net, "category")
    on_these = [x[None] for x in on_kinks(net, (64,), 1500)]
    with torch.no_grad():
        moved = [x for x in on_these if not torch.equal(net[0](x.repeat(3, 1))[0] > 0, net[0](x.repeat(4, 1))[0] > 0)]
    if not moved:
        pytest.skip("products of this machine have the same bits in batches of three and of four")
    moved = moved[:60]
    farthest = max(distance(model, x, 3, twin) for x in moved)
    assert farthest > 1.5
    assert max(distance(model, x, 3) for x in moved) <= 1.0


# ---- through the programs ----------------------------------------------------------------------------------------------------
SCHEMA = hr.data.Schema(
    (hr.data.Column("x", "number", shape=(64,)), hr.data.Column("y", "category", role="target", levels=("no", "yes")))
)


def copies(x, n, engine=None):
    """A federation of one party with n copies of a record."""
    columns = {"x": np.repeat(x.numpy(), n, 0), "y": np.full(n, "no")}
    fed = hr.simulate(hr.data.Table(SCHEMA.admit(columns), SCHEMA), hr.data.iid(parties=1), seed=0)
    return fed if engine is None else hr.engines.on(fed, engine)


@pytest.fixture
def released(monkeypatch):
    """What steps are taken along, times their divisor of one: the releases themselves."""
    seen, step = [], GradientStep.__call__

    def watched(self, y, gradient, *rest):
        seen.append(np.array(gradient))
        return step(self, y, gradient, *rest)

    monkeypatch.setattr(GradientStep, "__call__", watched)
    return seen


@pytest.mark.parametrize("engine", [None, ENGINES[0]], ids=["InProcess", "first"])
@pytest.mark.parametrize("at", ["server", "party"])
@pytest.mark.parametrize("k", [3, 1025, 1027])
def test_what_dpsgd_releases_moves_by_the_records_own_vector(k, at, engine, released):
    """Neighbours with equal randomness: the noise is the same, and what is left is what the record moves."""
    net = perceptron()
    x, ask = on_kinks(net, (64,), 2)[1:], {"rounds": 1, "sampling_rate": 1.0, "batch_size": 1.0}
    for n in (k, k + 1):
        hr.last(dpsgd(copies(x, n, engine).protect(mechanism=hr.Gaussian(1.0, at=at)), net, **ask))
    model = Model(net, "category")
    moved = in_steps(model, torch.from_numpy(model.initial), x, torch.zeros(1, dtype=torch.long), torch.ones(1))
    steps = (released[1] - released[0]) / Clipping.of(1.0).step
    np.testing.assert_array_equal(steps, moved)
    assert squared(steps) <= limit() ** 2


@pytest.mark.parametrize("k", [3, 1025])
def test_what_a_party_of_local_dpsgd_adds_noise_to_moves_by_the_records_own_vector(k, monkeypatch):
    seen, totals, noisy = [], [], RecordPlan.noisy
    monkeypatch.setattr(RecordPlan, "noisy", lambda self, total, entropy: seen.append(total) or noisy(self, total, entropy))
    net = perceptron()
    x = on_kinks(net, (64,), 2)[1:]
    for n in (k, k + 1):
        hr.last(local_dpsgd(copies(x, n), net, rounds=1, steps=1, noise_multiplier=1.0, sampling_rate=1.0, batch_size=1.0))
        totals.append(seen[-1])
    model = Model(net, "category")
    moved = in_steps(model, torch.from_numpy(model.initial), x, torch.zeros(1, dtype=torch.long), torch.ones(1))
    np.testing.assert_array_equal((totals[1] - totals[0]) / Clipping.of(1.0).step, moved)


# ---- what torch may not compute ----------------------------------------------------------------------------------------------
class OneByOne(TorchDispatchMode):
    """Refuses torch's products and convolutions on more than one record: on what has an axis of the records' number."""

    PRODUCTS = (
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "mv",
        "addmv",
        "dot",
        "convolution",
        "convolution_backward",
        "einsum",
        "linear",
    )

    def __init__(self, n):
        super().__init__()
        self.n, self.seen = n, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in self.PRODUCTS or "addmm" in name or "mkldnn" in name:
            given = [value for value in args if isinstance(value, torch.Tensor)]
            self.seen += 1
            assert not any(self.n in value.shape for value in given), f"{name} on {self.n} records"
        return function(*args, **(kwargs or {}))


PROGRAMS = {
    "dpsgd": lambda fed, net: dpsgd(fed.protect(mechanism=hr.Gaussian(1.0)), net, rounds=2, sampling_rate=1.0, batch_size=9.0),
    "noise at parties": lambda fed, net: dpsgd(
        fed.protect(mechanism=hr.Gaussian(1.0, at="party")), net, rounds=2, sampling_rate=1.0, batch_size=9.0
    ),
    "local_dpsgd": lambda fed, net: local_dpsgd(
        fed, net, rounds=2, steps=2, noise_multiplier=1.0, sampling_rate=1.0, batch_size=9.0
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("alone", [False, True], ids=["graph", "alone"])
def test_behind_a_mechanism_torch_computes_no_product_of_several_records(program, alone):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 5), nn.ELU() if alone else nn.ReLU(), nn.Linear(5, 2))
    x = torch.randn(1, 64)
    with OneByOne(37) as guard:
        hr.last(PROGRAMS[program](copies(x, 37, hr.Loop()), net))
    assert guard.seen > 0  # the module was tried on made-up records, and computed alone


def test_the_guard_refuses_records_that_are_computed_together():
    net = perceptron()
    with pytest.raises(AssertionError, match="37 records"), OneByOne(37):
        distance(Model(net, "category"), torch.zeros(1, 64), 36, ghost_sum)


@pytest.mark.parametrize("at", ["server", "party"])
def test_who_asks_for_sums_by_torch_behind_a_mechanism_gets_exact_ones(at):
    net, clipping = perceptron(), Clipping.of(1.0)
    model = Model(net, "category")
    found = []
    for exact in (True, False):
        fed = prepared(copies(torch.ones(1, 64), 9).protect(mechanism=hr.Gaussian(1.0, at=at)))
        ask = partial(clipped_gradients, model=model, clipping=clipping, exact=exact)
        found.append(fed.sum(ask, model.initial, bound=clipping.bound)["gradient"])
    np.testing.assert_array_equal(*found)  # the same seed, the same noise
