"""One record more moves an exact sum by a vector that is a function of that record alone, bit for bit, and at most the clip."""

import hashlib

import numpy as np
import pytest
import torch
from exact_records import NETWORKS, in_steps, limit, records, squared, weights

from hedgerow.learn.records import Clipping
from hedgerow.learn.records.clipped import exact_of
from hedgerow.learn.records.exact import sums
from hedgerow.learn.rowwise import kernels

SIZES = (1, 2, 3, 4, 5, 16, 17)
LARGE = (128, 768, 769, 1024, 1025, 1026, 1027, 1028, 1029)
PATHS = kernels.paths
CONTENTS = {
    "random": lambda x: x,
    "zero": torch.zeros_like,
    "huge": lambda x: torch.full_like(x, 1e30),
    "not a number": lambda x: torch.full_like(x, float("nan")),
    "infinite": lambda x: torch.full_like(x, float("-inf")),
    "subnormal": lambda x: x.sign() * 1e-40,
}


def own(name):
    """What the record moves, from a sum of it alone, and the record."""
    model, _ = NETWORKS[name]
    x, target, w = records(name, 1, seed=99)
    return in_steps(model, weights(model), x, target, w), (x, target, w)


def neighbours(name, n, at, others=lambda x: x):
    """Sums over n records with another one at position `at`, and without it, in steps."""
    model, _ = NETWORKS[name]
    _, one = own(name)
    x, target, w = records(name, n)
    x = others(x)
    both = [torch.cat([rest[:at], new, rest[at:]]) for rest, new in zip((x, target, w), one, strict=True)]
    return in_steps(model, weights(model), *both), in_steps(model, weights(model), x, target, w)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_at_every_position_of_small_sums(name, path):
    with kernels.using(path):
        moved, _ = own(name)
        assert 0 < squared(moved) <= limit() ** 2
        for n in SIZES[:5]:
            for at in range(n + 1):
                more, less = neighbours(name, n, at)
                np.testing.assert_array_equal(more - less, moved)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("others", CONTENTS)
def test_whatever_the_others_are(name, others, path):
    with kernels.using(path):
        moved, _ = own(name)
        for n in (3, 17):
            more, less = neighbours(name, n, n // 2, CONTENTS[others])
            np.testing.assert_array_equal(more - less, moved)


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", LARGE)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "alone"])
def test_in_sums_of_many(name, n, path):
    with kernels.using(path):
        moved, _ = own(name)
        for at in (0, n // 2, n):
            more, less = neighbours(name, n, at)
            np.testing.assert_array_equal(more - less, moved)


@pytest.mark.slow
def test_in_sums_of_many_that_are_computed_one_by_one():
    moved, _ = own("alone")
    more, less = neighbours("alone", 130, 129)
    np.testing.assert_array_equal(more - less, moved)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_with_two_threads_and_with_subnormal_numbers_flushed(name, path):
    with kernels.using(path):
        moved, _ = own(name)
        before = torch.get_num_threads()
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                more, less = neighbours(name, 17, 5)
                np.testing.assert_array_equal(more - less, moved)
        finally:
            torch.set_num_threads(before)
        torch.set_flush_denormal(True)
        try:
            for others in ("random", "subnormal"):
                more, less = neighbours(name, 5, 5, CONTENTS[others])
                np.testing.assert_array_equal(more - less, moved)
            assert kernels.path() == path
        finally:
            torch.set_flush_denormal(False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_at_sixteen_addresses(name, path):
    model, _ = NETWORKS[name]
    with kernels.using(path):
        moved, (x, target, w) = own(name)
        flat = weights(model)
        room, wide = torch.zeros(x.numel() + 16), torch.zeros(len(flat) + 16)
        for shift in range(16):
            there, broadcast = room[shift : shift + x.numel()].view(x.shape), wide[shift : shift + len(flat)]
            there.copy_(x)
            broadcast.copy_(flat)
            np.testing.assert_array_equal(in_steps(model, broadcast, there, target, w), moved)


@pytest.mark.parametrize("name", NETWORKS)
def test_how_many_are_computed_at_once_changes_nothing(name, monkeypatch):
    model, _ = NETWORKS[name]
    given = (model, weights(model), *records(name, 23))
    whole = in_steps(*given)
    for memory in (1, 40_000, 400_000):
        monkeypatch.setattr(sums, "MEMORY", memory)
        np.testing.assert_array_equal(in_steps(*given), whole)


@pytest.mark.parametrize("clip", [0.3, 1.0, 1.9999999, 7.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_record_is_longer_than_the_clip_in_whole_numbers(name, clip):
    model, _ = NETWORKS[name]
    x, target, w = records(name, 20)
    longest = 0
    for size, weight in [(1.0, 1.0), (100.0, 1.0), (1.0, 1e6)]:
        given = x if name == "words" else size * x
        for i in range(len(x)):
            moved = in_steps(model, weights(model), given[i : i + 1], target[i : i + 1], weight * w[i : i + 1], clip)
            longest = max(longest, squared(moved))
    assert (0.999 * limit(clip)) ** 2 < longest <= limit(clip) ** 2


def test_layers_that_are_clipped_apart_keep_within_each_radius():
    model, _ = NETWORKS["mlp"]
    clipping = Clipping.of((0.5, 2.0, 1.0))
    way = exact_of(model, (20,))
    x, target, w = records("mlp", 20)
    ends = np.cumsum([0, 20 * 16 + 16, 16 * 7 + 7, 7 * 3 + 3])
    assert way.trained.size == ends[-1]
    for i in range(20):
        moved = in_steps(model, weights(model), 50 * x[i : i + 1], target[i : i + 1], w[i : i + 1], clipping)
        assert squared(moved) * clipping.step**2 <= clipping.radius**2
        for layer, radius in enumerate(clipping.radii):
            assert squared(moved[ends[layer] : ends[layer + 1]]) <= int(radius / clipping.step) ** 2


GOLDEN = {
    ("mlp", "chain"): "9233c02aebd2b2b4",
    ("cnn", "chain"): "ff19c0dd9fc44e72",
    ("words", "chain"): "e6a6499157462cbb",
    ("norms", "chain"): "d7630346c93c1cb6",
    ("smooth", "chain"): "befc27c632d358a0",
    ("mlp", "numpy"): "9233c02aebd2b2b4",
    ("cnn", "numpy"): "b07e18fe26d57201",
    ("words", "numpy"): "b38203c6c10b50ad",
    ("norms", "numpy"): "7f9842069a7e462b",
    ("smooth", "numpy"): "1c3cb7ce586e5741",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "alone"])
def test_contributions_have_the_bits_that_they_always_had(name, path):
    """On every machine: no bit of a contribution is left to a library, so a difference is a change of what is computed."""
    model, _ = NETWORKS[name]
    with kernels.using(path):
        x, target, w = records(name, 5)
        found = [in_steps(model, weights(model), x[i : i + 1], target[i : i + 1], w[i : i + 1]) for i in range(5)]
    digest = hashlib.sha256(np.stack(found).astype("<i8").tobytes()).hexdigest()[:16]
    assert digest == GOLDEN[name, "numpy" if path == "numpy" else "chain"]
