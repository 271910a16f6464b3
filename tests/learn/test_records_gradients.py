"""Clipped sums by torch equal one backward pass for each record, for every kind of layer and every way of finding them."""

from functools import partial

import numpy as np
import pytest
import torch
from records_by_hand import clipped, gradients, modules, records
from torch import nn

from hedgerow.learn.models import Model
from hedgerow.learn.records import clipped_sum as exact_or_not
from hedgerow.learn.records.clipped import recipe_of
from hedgerow.learn.records.recipe import Recipe

MODULES = modules()
clipped_sum = partial(exact_or_not, exact=False)


def close(found, wanted):
    """Equal to a part in 100 000 of the sum's length."""
    return float((found.double() - wanted).norm()) <= 1e-5 * float(wanted.norm())


def summed(name, clip, n=7):
    module, shape, _ = MODULES[name]
    x, target, w = records(shape, n, words=name == "words")
    model = Model(module, "category")
    total, lengths = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, clip)
    return total, lengths, (module, x, target, w)


@pytest.mark.parametrize("clip", [0.05, 0.8, 1e6])
@pytest.mark.parametrize("name", MODULES)
def test_a_clipped_sum_is_that_of_one_backward_pass_for_each_record(name, clip):
    total, _, (module, x, target, w) = summed(name, clip)
    assert close(total, clipped(module, x, target, w, (clip,)))


@pytest.mark.parametrize("name", MODULES)
def test_layers_are_clipped_apart(name):
    module, shape, _ = MODULES[name]
    n_layers = len(gradients(module, *records(shape, 1, words=name == "words")[:2])[0])
    radii = tuple(0.1 * (i + 1) for i in range(n_layers))
    total, _, (module, x, target, w) = summed(name, radii if n_layers > 1 else radii[0])
    assert close(total, clipped(module, x, target, w, radii))


@pytest.mark.parametrize("name", MODULES)
def test_each_module_takes_its_fastest_way(name):
    module, shape, path = MODULES[name]
    x, target, _ = records(shape, words=name == "words")
    assert recipe_of(Model(module, "category"), x, target).path == path


@pytest.mark.parametrize("name", ["wide convolution", "words", "at few places", "frozen"])
def test_the_three_ways_agree(name):
    module, shape, _ = MODULES[name]
    x, target, w = records(shape, words=name == "words")
    model = Model(module, "category")
    flat = torch.from_numpy(model.initial)
    found = [Recipe(model, path).find(flat, x, target) for path in ("ghost", "vmap", "each")]
    for other in found[1:]:
        torch.testing.assert_close(found[0].squares, other.squares, rtol=1e-5, atol=1e-8)
        torch.testing.assert_close(found[0].total(w[:, None]), other.total(w[:, None]), rtol=1e-4, atol=1e-6)


def test_lengths_are_those_before_the_clip():
    _, lengths, (module, x, target, _) = summed("residual", 0.01)
    wanted = [[float(part.norm()) for part in row.values()] for row in gradients(module, x, target)]
    np.testing.assert_allclose(lengths.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["residual", "tied", "recurrent"])
def test_records_that_do_not_fit_at_once_are_added_up(name, monkeypatch):
    monkeypatch.setattr(Recipe, "at_once", lambda self, x: 2)
    total, lengths, (module, x, target, w) = summed(name, 0.5)
    assert len(lengths) == len(x)
    assert close(total, clipped(module, x, target, w, (0.5,)))


def test_memory_decides_how_many_records_fit():
    large = Model(nn.Sequential(nn.Flatten(), nn.Linear(1000, 1000), nn.Linear(1000, 3)), "category")
    x, target = torch.zeros(3, 1000), torch.zeros(3, dtype=torch.long)
    assert Recipe(large, "vmap").at_once(x) == 16
    ghost = recipe_of(large, x + 1, target)
    ghost.find(torch.from_numpy(large.initial), x, target)
    assert ghost.at_once(x) == 1024


@pytest.mark.parametrize("kind", ["number", "binary"])
def test_other_losses_are_clipped_as_well(kind):
    torch.manual_seed(3)
    module, (x, target, w) = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1)), records((6,))
    model, y = Model(module, kind), (target > 0).float()
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, y, w, 0.7)
    if kind == "number":
        assert close(total, clipped(module, x, y, w, (0.7,), kind="number"))
    else:
        two = [
            clipped_sum(model, torch.from_numpy(model.initial), x[i : i + 1], y[i : i + 1], w[i : i + 1], 0.7)[0]
            for i in range(7)
        ]
        torch.testing.assert_close(total, sum(two), rtol=1e-5, atol=1e-6)


def test_an_input_that_was_changed_after_it_was_read_is_found_out():
    class Late(nn.Module):
        """Changes what its first layer has read, which its backward pass does not need."""

        def __init__(self):
            super().__init__()
            self.one, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            x = x * 1.0
            y = self.one(x)
            x.zero_()
            return self.out(y.tanh() + x)

    module = Late()
    module.one.weight.requires_grad_(False)
    x, target, w = records((6,))
    model = Model(module, "category")
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, 0.5)
    assert recipe_of(model, x, target).path != "ghost"
    assert close(total, clipped(module, x, target, w, (0.5,)))


def test_a_layer_that_sees_places_instead_of_records_is_found_out():
    class Turned(nn.Module):
        """Swaps records and places before a layer, of which there are as many."""

        def __init__(self):
            super().__init__()
            self.one, self.out = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.out(self.one(x.transpose(0, 1)).transpose(0, 1).tanh().mean(1))

    x, target, w = records((3, 4), n=3)
    model = Model(Turned(), "category")
    assert recipe_of(model, x, target).path == "vmap"
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, 0.2)
    assert close(total, clipped(model.module, x, target, w, (0.2,)))
