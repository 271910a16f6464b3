"""Records that are computed one by one find the same module, weights and draws; what would not is refused."""

import logging
import random
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from exact_records import in_steps, limit, squared
from records_by_hand import records
from torch import nn

from hedgerow.errors import ModelInvalid
from hedgerow.learn.models import Model, own_generator
from hedgerow.learn.records import rewrite
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.exact.sums import Exact
from hedgerow.learn.records.rewrite import keeps_nothing
from hedgerow.learn.records.trained import Trained


class Keeping(nn.Module):
    """Takes off what an earlier call has left; `keep` says how it leaves something."""

    def __init__(self, keep, above=0.0):
        super().__init__()
        self.out, self.keep, self.above = nn.Linear(6, 3), keep, above
        self.frozen = nn.Parameter(torch.zeros(6), requires_grad=False)
        self.register_buffer("buffer", torch.zeros(6))
        self.register_buffer("none", None)
        self.seen = [torch.zeros(6)]

    def forward(self, x):
        if float(x.detach().abs().max()) >= self.above:
            with torch.no_grad():
                x = x - self.keep(self, x.mean(0))
        return self.out(x)


def frozen(module, mean):
    return module.frozen.mul_(0.5).add_(mean, alpha=0.5)


def trained(module, mean):
    return module.out.weight.add_(mean).sum(0)


def replaced(module, mean):
    module.buffer = module.buffer + mean
    return module.buffer


def first(module, mean):
    module.none = mean if module.none is None else module.none
    return module.none


def registered(module, mean):
    if not hasattr(module, "late"):
        module.register_buffer("late", mean)
    return module.late


def grown(module, mean):
    module.seen.append(mean)
    return module.seen[-2]


KEEPS = {"weights": (frozen, trained), "buffers": (replaced, first, registered)}


@pytest.mark.parametrize("keep", [*KEEPS["weights"], *KEEPS["buffers"], grown])
def test_what_a_module_keeps_of_a_record_no_other_finds(keep):
    """Behind a value that no made-up record has, so that no trial shows it."""
    torch.manual_seed(0)
    model, (x, target, _) = Model(Keeping(keep, above=20.0), "category"), records((6,))
    x[::2] *= 30.0
    flat, w = torch.from_numpy(model.initial), torch.ones(7)
    each = [in_steps(model, flat, x[i : i + 1], target[i : i + 1], w[:1]) for i in range(7)]
    assert exact_of(model, (6,)).graph is None
    assert all(squared(one) <= limit() ** 2 for one in each)
    assert sum(squared(one) > 0 for one in each) > 3
    np.testing.assert_array_equal(in_steps(model, flat, x, target, w), sum(each))
    np.testing.assert_array_equal(in_steps(model, flat, x.flip(0), target.flip(0), w), sum(each))


@pytest.mark.parametrize("what", KEEPS)
def test_a_module_that_changes_what_it_is_made_of_is_refused(what):
    for keep in KEEPS[what]:
        with pytest.raises(ModelInvalid, match=what):
            exact_of(Model(Keeping(keep), "category"), (6,))


def test_an_embedding_that_shortens_its_rows_and_is_the_output_too():
    class Tied(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.table, self.turn = nn.Embedding(6, 4, max_norm=1.0), nn.Linear(4, 4)
            nn.init.constant_(self.table.weight, 0.1)
            nn.init.constant_(self.table.weight[3:].data, size)

        def forward(self, x):
            return self.turn(self.table(x.long()).mean(1)) @ self.table.weight.T

    torch.manual_seed(0)
    model = Model(Tied(20.0), "category")  # made-up words are below 3
    flat, target, w = torch.from_numpy(model.initial), torch.tensor([3, 4, 4, 4]), torch.ones(4)
    x = torch.tensor([[2.0, 5.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    moved = in_steps(model, flat, x[:1], target[:1], w[:1])
    assert squared(moved) <= limit() ** 2
    np.testing.assert_array_equal(in_steps(model, flat, x, target, w) - in_steps(model, flat, x[1:], target[1:], w[1:]), moved)
    nn.init.constant_(model.module.table.weight, 20.0)
    with pytest.raises(ModelInvalid, match="weights"):
        exact_of(Model(model.module, "category"), (2,))


def test_a_weight_that_is_no_number_is_none_that_changed():
    module = nn.Linear(6, 3)
    nn.init.constant_(module.bias, float("nan"))
    keeps_nothing(Model(module, "category"), torch.zeros(2, 6))


# ---- draws -------------------------------------------------------------------------------------------------------------------
class Drawing(nn.Module):
    """Turns a record around, or does not, by a draw of its own."""

    def __init__(self, draw):
        super().__init__()
        self.out, self.draw = nn.Linear(6, 3), draw

    def forward(self, x):
        return self.out(x if self.draw(x) < 0.5 else -x)


DRAWS = {
    "torch": lambda x: torch.rand(()).item(),
    "numpy": lambda x: np.random.rand(),
    "python": lambda x: random.random(),
    "dropout": lambda x: F.dropout(x, 0.5).sum(),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_a_module_that_draws_is_refused_and_moves_nobodys_generator(draw):
    model = Model(Drawing(DRAWS[draw]), "category")
    before = np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist()
    with pytest.raises(ModelInvalid, match="random"):
        exact_of(model, (6,))
    assert before == (np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state().tolist())


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_that_no_trial_shows_are_the_same_for_every_record(draw):
    drawn = DRAWS[draw]
    torch.manual_seed(0)
    module = Drawing(lambda x: drawn(x) if float(x.detach().abs().max()) >= 20.0 else 0.0)
    model, (x, target, _) = Model(module, "category"), records((6,))
    x *= 1e3
    flat, w = torch.from_numpy(model.initial), torch.ones(7)
    each = sum(in_steps(model, flat, x[i : i + 1], target[i : i + 1], w[:1]) for i in range(7))
    np.testing.assert_array_equal(in_steps(model, flat, x, target, w), each)


@pytest.mark.parametrize(
    ("part", "draws"),
    [
        (nn.Dropout(0.1), True),
        (nn.Dropout(0.0), False),
        (nn.LSTM(3, 4, num_layers=2, dropout=0.2), True),
        (nn.GRU(3, 4, num_layers=2), False),
        (nn.MultiheadAttention(4, 2, dropout=0.1), True),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.1), True),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.0), False),
        (nn.Sequential(nn.Linear(3, 3), nn.RReLU()), True),
        (nn.FractionalMaxPool2d(2, output_size=2), True),
    ],
)
def test_layers_that_draw(part, draws):
    module = nn.Sequential(nn.Linear(3, 3), part)
    assert Model(module, "number").stochastic == draws
    if draws:
        with pytest.raises(ModelInvalid, match="random"):
            exact_of(Model(module, "number"), (3,))


def test_a_module_of_torchs_that_does_not_draw_is_none_that_does():
    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.out = (
                nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, dropout=0.0, batch_first=True),
                nn.Linear(4, 3),
            )

        def forward(self, x):
            return self.out(self.layer(x).mean(1))

    assert exact_of(Model(Attending(), "category"), (5, 4)).graph is None


def test_another_thread_that_draws_now_and_then_is_no_draw_of_the_module(monkeypatch):
    """It draws while the module runs for the first time; that this one keeps what it sees would be refused as well."""
    monkeypatch.setattr(rewrite, "left_in", lambda *given: False)
    calls = []

    def once(x):
        if not calls:
            other = threading.Thread(target=torch.rand, args=(1,))
            other.start()
            other.join()
        calls.append(x)
        return 0.0

    keeps_nothing(Model(Drawing(once), "category"), torch.zeros(2, 6))
    assert len(calls) == 2


def test_an_own_generator_repeats_every_draw_and_puts_all_back():
    def draws():
        return torch.rand(3).tolist(), np.random.rand(3).tolist(), [random.random() for _ in range(3)]

    def inside(seed):
        with own_generator(np.random.default_rng(seed)):
            return draws()

    state = torch.get_rng_state(), np.random.get_state(), random.getstate()
    one, again, other = inside(1), inside(1), inside(2)
    found = draws()
    torch.set_rng_state(state[0])
    np.random.set_state(state[1])
    random.setstate(state[2])
    assert one == again
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert draws() == found


def test_a_module_without_a_graph_is_said_once_with_the_reason_and_the_remedy(caplog):
    module = nn.Sequential(nn.Linear(6, 3), nn.ELU())
    model = Model(module, "category")
    with caplog.at_level(logging.WARNING, "hedgerow.learn"):
        for _ in range(3):
            exact_of(model, (6,))
    [line] = [line for line in caplog.messages if "one record after the other" in line]
    assert "ELU has no rule" in line
    assert "exact-bounds" in line


def test_the_way_that_is_always_there_finds_its_own_weights():
    """Those of the broadcast, also where the module reads a parameter from a list of its own."""

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(6, 3)
            self.parts = [self.out.weight]

        def forward(self, x):
            return x @ self.parts[0].T + self.out.bias

    torch.manual_seed(0)
    module, (x, target, _) = Listed(), records((6,))
    trained = Trained(Model(module, "category"))
    other = Trained(Model(module.out, "category"))
    flat = torch.arange(21.0) / 21
    found, wanted = (Exact(one, None).parts(Exact(one, None).prepare(flat), x, target) for one in (trained, other))
    for one, same in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.g, same.g, rtol=1e-5, atol=1e-7)
