"""One record moves the sum by at most the clip, and sums that break this are caught."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from records_by_hand import MODULES_BY_WAY, records
from torch import nn

from hedgerow.core.bound import l2, whole_step
from hedgerow.core.party import Party
from hedgerow.errors import ModelInvalid, SettingsInvalid
from hedgerow.learn.models import Model
from hedgerow.learn.records import Clipping, clipped_sum, without_batch_norm
from hedgerow.learn.records.clipped import clipped_gradients
from hedgerow.learn.records.recipe import Recipe
from hedgerow.learn.records.rewrite import separate

NETS = {way: (Model(module, "category"), shape) for way, (module, shape) in MODULES_BY_WAY.items()}


def moves(total_of, x, target, w, i):
    """How far the sum moves when record i leaves."""
    rest = torch.arange(len(x)) != i
    whole, without = total_of(x, target, w), total_of(x[rest], target[rest], w[rest])
    return float((whole - without).norm())


def largest_move(total_of, seeds=range(6)):
    """The largest of some moves, over data of several sizes."""
    found = []
    for seed in seeds:
        x, target, w = records((6,), n=5, seed=seed)
        found += [moves(total_of, 10.0 ** (seed - 3) * x, target, w, i) for i in range(5)]
    return max(found)


def summing(model, clip):
    return lambda x, target, w: clipped_sum(model, torch.from_numpy(model.initial), x, target, w, clip)[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", NETS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_record_moves_the_sum_by_at_most_the_clip(way, data):
    model, shape = NETS[way]
    clip, size = data.draw(st.sampled_from([1e-3, 1.0, 30.0])), data.draw(st.sampled_from([1e-4, 1.0, 1e4]))
    x, target, w = records(shape, n=data.draw(st.integers(1, 6)), seed=data.draw(st.integers(0, 99)))
    i = data.draw(st.integers(0, len(x) - 1))
    w[i] = data.draw(st.sampled_from([0.0, 0.3, 1.0, 1e6]))
    assert moves(summing(model, clip), size * x, target, w, i) <= Clipping.of(clip).bound.radius


def test_a_long_gradient_moves_the_sum_by_nearly_the_clip():
    model, _ = NETS["ghost"]
    assert 0.99 < largest_move(summing(model, 1.0)) <= 1.0


@pytest.mark.slow
def test_an_inverted_clip_is_caught():
    """The twin lengthens short gradients and leaves long ones, as the code of a published experiment did."""
    model, _ = NETS["ghost"]

    def inverted(x, target, w):
        found = Recipe(model, "vmap").find(torch.from_numpy(model.initial), x, target)
        return found.total((1.0 / found.squares.sum(1, keepdim=True).sqrt()).clamp(min=1.0))

    assert largest_move(inverted) > 1.0


def test_layers_that_are_clipped_apart_and_charged_once_are_caught():
    """Each of three layers may move by its own clip: the bound of a single layer does not hold for all of them."""
    model, _ = NETS["ghost"]
    clip = Clipping.of((1.0, 1.0, 1.0))
    moved = largest_move(summing(model, clip))
    assert moved > 1.0
    assert moved <= clip.radius == math.sqrt(3)
    assert (clip.bound.radius, clip.bound.unit, clip.bound.step) == (math.sqrt(3), "record", 2.0**-24)


@pytest.mark.parametrize("way", NETS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_a_record_that_is_not_finite_counts_as_none(way, bad):
    model, shape = NETS[way]
    x, target, w = records(shape)
    rest = torch.arange(len(x)) != 3
    x[3] = bad
    total = summing(model, 1.0)
    found, lengths = clipped_sum(model, torch.from_numpy(model.initial), x, target, w, 1.0)
    assert torch.isfinite(found).all()
    assert torch.isfinite(lengths).all()
    if bad != 1e30:
        torch.testing.assert_close(found, total(x[rest], target[rest], w[rest]), rtol=1e-5, atol=1e-6)


def test_records_of_which_none_is_finite_add_up_to_zeros():
    model, shape = NETS["ghost"]
    x, target, w = records(shape)
    assert not summing(model, 1.0)(x * np.nan, target, w).any()


@pytest.mark.parametrize("way", NETS)
def test_no_records_add_up_to_zeros(way):
    model, shape = NETS[way]
    found, lengths = clipped_sum(
        model, torch.from_numpy(model.initial), torch.zeros(0, *shape), torch.zeros(0, dtype=torch.long), torch.zeros(0), 1.0
    )
    assert found.shape == (len(model.initial),)
    assert not found.any()
    assert len(lengths) == 0


def test_a_weight_below_zero_or_not_finite_counts_as_zero():
    model, shape = NETS["ghost"]
    x, target, w = records(shape)
    w[1], w[2], w[3] = -5.0, np.nan, np.inf
    kept = torch.tensor([0, 4, 5, 6])
    total = summing(model, 1.0)
    torch.testing.assert_close(total(x, target, w), total(x[kept], target[kept], w[kept]), rtol=1e-5, atol=1e-6)


def test_short_gradients_are_left_as_they_are():
    model, shape = NETS["ghost"]
    x, target, w = records(shape)
    found = Recipe(model, "each").find(torch.from_numpy(model.initial), x, target)
    length = float((found.squares.sum(1).sqrt() * w).max())
    off = summing(model, 3 * length)(x, target, w) - found.total(w[:, None])
    assert off.norm() <= 2e-3 * 3 * length  # whole numbers of 12 bits on either side of an outer product


@pytest.mark.parametrize("clip", [(1.0, 2.0), (), 0.0, -1.0, np.inf, np.nan])
def test_a_clip_that_bounds_nothing_is_refused(clip):
    model, shape = NETS["ghost"]
    with pytest.raises(SettingsInvalid, match="HR-511"):
        summing(model, clip)(*records(shape))


# ---- modules in which records meet ----------------------------------------------------------------------------------------
def with_batch_norm():
    return nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 3), nn.BatchNorm1d(3))


def test_batch_norm_is_refused_and_the_rewrite_offered():
    with pytest.raises(ModelInvalid, match="without_batch_norm"):
        separate(with_batch_norm())


def test_the_rewrite_is_accepted_and_keeps_scales_and_offsets():
    module = with_batch_norm()
    nn.init.normal_(module[1].weight)
    found = without_batch_norm(module)
    separate(found)
    assert [type(found[i]).__name__ for i in (1, 5)] == ["GroupNorm", "GroupNorm"]
    assert found[1].num_groups == 2
    torch.testing.assert_close(found[1].weight, module[1].weight)
    assert isinstance(module[1], nn.BatchNorm2d)
    x, target, w = records((1, 6, 6))
    assert summing(Model(found, "category"), 1.0)(x, target, w).norm() > 0


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Sequential(nn.Linear(6, 3), nn.Dropout(0.5)), "dropout"),
        (nn.Sequential(nn.Conv1d(6, 6, 1), nn.InstanceNorm1d(6, track_running_stats=True)), "running statistics"),
    ],
)
def test_modules_that_share_draws_or_keep_statistics_are_refused(module, said):
    with pytest.raises(ModelInvalid, match=said):
        separate(module)


def test_a_module_that_keeps_something_of_its_records_is_refused():
    class Counting(nn.Module):
        """Keeps a running mean in a buffer."""

        def __init__(self):
            super().__init__()
            self.out = nn.Linear(6, 3)
            self.register_buffer("mean", torch.zeros(6))

        def forward(self, x):
            self.mean += 0.1 * x.detach().mean(0)
            return self.out(x - self.mean)

    with pytest.raises(ModelInvalid, match="buffers"):
        summing(Model(Counting(), "category"), 1.0)(*records((6,)))


def test_a_module_without_trained_parameters_is_refused():
    with pytest.raises(ModelInvalid, match="no parameter"):
        summing(Model(nn.Linear(6, 3).requires_grad_(False), "category"), 1.0)(*records((6,)))


def test_behind_noise_the_bound_is_kept_whatever_the_settings_say():
    """A server may declare one bound, by which noise is scaled, and ask for another clip."""
    model = Model(nn.Linear(3, 2), "category")
    rng = np.random.default_rng(0)
    columns = {"model_input": 3 * rng.normal(size=(40, 3)).astype(np.float32), "model_target": rng.integers(0, 2, 40)}
    for radius, clip, exact in ((0.5, 100.0, True), (0.5, 100.0, False), (0.5, 0.5, False), (3.0, 0.7, True)):
        bound = l2(radius, "record", whole_step(radius))
        for i in range(40):
            one = Party("p", {name: values[i : i + 1] for name, values in columns.items()}, np.ones(1))
            made = clipped_gradients(
                model.initial, one, None, model=model, clipping=Clipping.of(clip), exact=exact, bounds=bound
            )
            steps = [int(k) for k in made["gradient"] / bound.step]
            np.testing.assert_array_equal(np.array(steps) * bound.step, made["gradient"])
            assert 0 < sum(k * k for k in steps) <= (min(radius, clip) / bound.step) ** 2
