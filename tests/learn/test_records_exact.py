"""Exact sums are those of one backward pass for each record, up to a thousandth of the clip each; what has a graph."""

import logging
import math
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from exact_records import in_steps, limit, squared
from records_by_hand import clipped, gradients, modules, records
from torch import nn

from hedgerow.errors import SettingsInvalid
from hedgerow.learn.models import Model
from hedgerow.learn.records import Clipping, clipped_sum
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.exact.operations import NoGraph
from hedgerow.learn.records.exact.parts import Outer
from hedgerow.learn.records.exact.trace import traced
from hedgerow.learn.records.trained import Trained
from hedgerow.learn.rowwise import kernels
from hedgerow.learn.zoo import Residual, lenet, mcmahan_cnn, two_nn

MODULES = modules()
WITHOUT_GRAPH = ("circular", "tied", "bare", "twice", "upsampling", "recurrent")


def close(found, wanted, clip, n, each=1e-3):
    """Off by at most a thousandth of the clip for each record."""
    return float((found - wanted).norm()) <= each * clip * n


@pytest.mark.parametrize("path", kernels.paths)
@pytest.mark.parametrize("name", MODULES)
def test_a_sum_is_that_of_one_backward_pass_for_each_record(name, path):
    module, shape, _ = MODULES[name]
    x, target, w = records(shape, words=name == "words")
    model = Model(module, "category")
    with kernels.using(path):
        for clip in (0.05, 0.8):
            total, lengths = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, clip)
            assert close(total, clipped(module, x, target, w, (clip,)), clip, 7)
    wanted = [[float(part.norm()) for part in row.values()] for row in gradients(module, x, target)]
    np.testing.assert_allclose(lengths.numpy(), wanted, rtol=5e-3, atol=1e-6)


@pytest.mark.parametrize("name", MODULES)
def test_layers_are_clipped_apart(name):
    module, shape, _ = MODULES[name]
    x, target, w = records(shape, words=name == "words")
    n_layers = len(gradients(module, x[:1], target[:1])[0])
    radii = tuple(0.1 * (i + 1) for i in range(n_layers))
    model = Model(module, "category")
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, Clipping(radii))
    assert close(total, clipped(module, x, target, w, radii), math.hypot(*radii), 7, each=2e-3)


@pytest.mark.parametrize("name", MODULES)
def test_which_modules_have_a_graph(name, caplog):
    module, shape, _ = MODULES[name]
    with caplog.at_level(logging.INFO, "hedgerow.learn"):
        way = exact_of(Model(module, "category"), shape)
    assert (way.graph is None) == (name in WITHOUT_GRAPH)
    assert any("one record after the other" in line for line in caplog.messages) == (name in WITHOUT_GRAPH)


@pytest.mark.parametrize("kind", ["number", "binary"])
def test_other_losses(kind):
    torch.manual_seed(3)
    module, (x, target, w) = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1)), records((6,))
    model, y = Model(module, kind), (target > 0).float()
    assert exact_of(model, (6,)).graph is not None
    flat = torch.from_numpy(model.initial)
    total, _ = clipped_sum(model, flat, x, y, w, 0.7)
    assert close(total, clipped_sum(model, flat, x, y, w, 0.7, exact=False)[0], 0.7, 7)


def test_inputs_are_scaled_as_the_model_scales_them():
    torch.manual_seed(0)
    module, model_of = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)), {}
    x, target = torch.randint(0, 256, (9, 3, 4), dtype=torch.uint8), torch.arange(9) % 3
    for low, scale in [(0.0, 1.0), (7.0, 1 / 255)]:
        model = model_of[low] = Model(module, "category", low=low, scale=scale)
        total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, torch.ones(9), 0.5)
        assert close(total, clipped(module, model.scaled(x), target, torch.ones(9), (0.5,)), 0.5, 9)


def residual(shape, n_outputs):
    """Two blocks of `resnet18`."""
    torch.manual_seed(0)
    blocks = Residual(3, 8, 2), Residual(8, 8, 1)
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, n_outputs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "shape"), [(two_nn, (12, 12)), (lenet, (28, 28)), (mcmahan_cnn, (12, 12)), (residual, (3, 8, 8))]
)
def test_models_of_the_zoo_have_graphs(build, shape):
    x, target, w = records(shape, 3)
    model = Model(build(shape, 3), "category")
    assert exact_of(model, shape).graph is not None
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, 1.0)
    assert close(total, clipped(model.module, x, target, w, (1.0,)), 1.0, 3, each=2e-3)


# ---- what forward passes may do ---------------------------------------------------------------------------------------------
class Calling(nn.Module):
    """Two layers, with something between them."""

    def __init__(self, between, width=8):
        super().__init__()
        self.one, self.out, self.between = nn.Linear(6, 8), nn.Linear(width, 3), between

    def forward(self, x):
        return self.out(self.between(self.one(x)))


FOLLOWED = {
    "functions": (lambda h: F.relu(h) + torch.tanh(h) - 0.5, 8),
    "methods": (lambda h: h.sigmoid().contiguous() * 2.0, 8),
    "a shape": (lambda h: h.view(h.shape[0], 2, 4).transpose(1, 2).reshape(h.size(0), -1), 8),
    "an unknown shape": (lambda h: h.reshape(-1, 2, 4).mean(2), 2),
    "a pool": (lambda h: F.max_pool1d(h.unsqueeze(1), 3, stride=2, padding=1).squeeze(1), 4),
    "means": (lambda h: torch.flatten(h.view(-1, 2, 4).permute(0, 2, 1).mean((1, 2), keepdim=True), 1) + 1, 1),
    "axes": (lambda h: h.unflatten(1, (2, -1)).flatten(1, 2), 8),
    "softplus": (lambda h: F.softplus(h) / 3, 8),
    "smooth functions": (lambda h: F.gelu(h) + F.silu(h), 8),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_followed(name):
    torch.manual_seed(1)
    between, width = FOLLOWED[name]
    module, (x, target, w) = Calling(between, width), records((6,))
    model = Model(module, "category")
    assert traced(Trained(model), (6,)).steps
    assert exact_of(model, (6,)).graph is not None
    total, _ = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, 0.5)
    assert close(total, clipped(module, x, target, w, (0.5,)), 0.5, 7)


class Meeting(nn.Module):
    """Records meet, in a way that the number of them decides, or their values, or neither."""

    def __init__(self, how):
        super().__init__()
        self.out, self.how = nn.Linear(6, 3), how

    def forward(self, x):
        return self.out(self.how(x))


MEETING = {
    "built in": lambda x: x.reshape(2, 6),
    "the mean": lambda x: x - x.mean(0),
    "the largest": lambda x: torch.where(x.abs().max() > 1, x - x.mean(0), x),
    "looking": lambda x: x - x.mean(0) if x.max() > 1 else x,
    "counting": lambda x: x if x.shape[0] < 3 else x * 2,
    "together": lambda x: x.flatten().view(-1, 6),
    "exchanged": lambda x: x.transpose(0, 1).transpose(0, 1),
}


@pytest.mark.parametrize("how", MEETING)
def test_records_that_could_meet_are_computed_one_by_one_and_do_not(how):
    torch.manual_seed(0)
    model = Model(Meeting(MEETING[how]), "category")
    with pytest.raises(NoGraph):
        traced(Trained(model), (6,))
    flat, (x, target, w) = torch.from_numpy(model.initial), records((6,), 6)
    w = torch.ones(6)
    moved = in_steps(model, flat, x[5:], target[5:], w[5:])
    assert squared(moved) <= limit() ** 2
    np.testing.assert_array_equal(in_steps(model, flat, x, target, w) - in_steps(model, flat, x[:5], target[:5], w[:5]), moved)


def test_an_approximation_of_gelu_is_not_taken_for_it():
    for module in (nn.GELU(approximate="tanh"), Calling(lambda h: F.gelu(h, approximate="tanh"))):
        with pytest.raises(NoGraph, match="approximation"):
            traced(Trained(Model(nn.Sequential(nn.Linear(6, 6), module, nn.Linear(3, 3)), "category")), (6,))


def test_subclasses_hooks_and_shared_parameters_are_not_taken_for_layers():
    class Own(nn.Linear):
        """Does something else."""

        def forward(self, x):
            return 2 * super().forward(x)

    hooked = nn.Sequential(nn.Linear(6, 3))
    hooked[0].register_forward_hook(lambda layer, inputs, output: 2 * output)
    for module in (nn.Sequential(Own(6, 3)), hooked, MODULES["tied"][0], MODULES["twice"][0]):
        with pytest.raises(NoGraph):
            traced(Trained(Model(module, "category")), (6,))


def test_a_value_that_is_changed_in_place_and_read_again_is_not_followed():
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            y = self.one(x)
            z = y.relu_()
            return self.out(z + y)

    with pytest.raises(NoGraph, match="in place"):
        traced(Trained(Model(Late(), "category")), (6,))


@pytest.mark.parametrize("bad", [7.0, -1.0, 1e30, float("nan")])
def test_a_record_with_a_word_that_is_not_in_the_table_counts_as_none(bad):
    module, shape, _ = MODULES["words"]
    model, (x, target, w) = Model(module, "category"), records(shape, words=True)
    flat, rest = torch.from_numpy(model.initial), torch.arange(7) != 3
    x[3, 2] = bad
    whole, without = (
        clipped_sum(model, flat, x, target, w, 1.0)[0],
        clipped_sum(model, flat, x[rest], target[rest], w[rest], 1.0)[0],
    )
    assert torch.equal(whole, without)


@pytest.mark.parametrize("name", ["linear", "recurrent"])
def test_a_class_that_does_not_exist_counts_as_none(name):
    module, shape, _ = MODULES[name]
    model, (x, target, w) = Model(module, "category"), records(shape)
    flat, rest = torch.from_numpy(model.initial), torch.arange(7) != 3
    target[3] = 17
    whole, without = (
        clipped_sum(model, flat, x, target, w, 1.0)[0],
        clipped_sum(model, flat, x[rest], target[rest], w[rest], 1.0)[0],
    )
    assert torch.equal(whole, without)


@pytest.mark.slow
@pytest.mark.parametrize("path", kernels.paths)
def test_rows_that_sixteen_bits_do_not_describe_are_formed(path):
    """Of two million equal numbers that a half less becomes a third shorter."""
    n, step = 1_900_000, 2.0**-24
    read, slopes = np.full((2, n), 1.49, np.float32), np.array([[0.7], [-0.2]], np.float32)
    read[1] = 0.0
    with kernels.using(path):
        part = Outer("weight", "bias", read, slopes)
        length = math.sqrt(part.squares()[0])
        assert length == pytest.approx(0.7 * math.sqrt(1.49**2 * n + 1), rel=1e-6)
        total, used = np.zeros(part.shape, np.int64), part.shorten(np.array([0.9 / length, 1.0]), step, None)
        part.add(total)
    assert math.sqrt(used[0]) * step == pytest.approx(0.9, rel=1e-3)
    assert used.tolist() == [
        n * int(total[0, 0]) ** 2 + int(0.7 * 0.9 / length / step) ** 2,
        int(0.2 / step / 2**12) ** 2 * 2**24,
    ]


def test_a_clip_of_which_no_step_fits_in_a_layer_is_refused():
    with pytest.raises(SettingsInvalid, match="HR-511"):
        Clipping.of((1.0, 1e-9))
    with pytest.raises(SettingsInvalid, match="HR-511"):
        Clipping.of(1e40)


def test_other_threads_call_their_modules_while_one_is_followed():
    torch.manual_seed(0)
    own, x, done, failed = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)), torch.ones(2, 6), threading.Event(), []
    wanted, model = own(x), Model(MODULES["residual"][0], "category")

    def call():
        while not done.is_set():
            try:
                failed.extend([] if torch.equal(own(x), wanted) else ["another result"])
            except Exception as error:
                failed.append(error)

    other = threading.Thread(target=call)
    other.start()
    for _ in range(30):
        traced(Trained(model), (6,))
    done.set()
    other.join()
    assert not failed
