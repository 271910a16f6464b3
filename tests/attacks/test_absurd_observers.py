"""What observers refuse: numbers and shapes that mean nothing, each with its value and a remedy."""

import numpy as np
import pytest
from torch import nn

import hedgerow as hr
from hedgerow.attacks import CosineSearch, PropertyAttack, class_image, evade, infer_attribute, invert_class, psnr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import linear

DIGITS = hr.data.load("digits").take(range(40))
NET = linear(64, 10)
WEIGHTS = {"weight": np.zeros((10, 64), np.float32), "bias": np.arange(10, dtype=np.float32)}
WEIGHTS = dict(zip(NET.state_dict(), WEIGHTS.values(), strict=True))
ROWS = np.random.default_rng(0).normal(size=(10, 3))
HAS = np.arange(10) < 5


@pytest.mark.parametrize(
    "asked",
    [
        *({"level": one} for one in (10, -1, 1.5, "3")),
        *({"shape": one} for one in ((63,), (), (64.0,), (-1,))),
        *({"rate": one} for one in (0, -1.0, np.nan, np.inf)),
        {"steps": 0},
        {"steps": 1.5},
        {"smooth": -1.0},
        {"low": 1.0, "high": 0.0},
        {"low": np.nan},
    ],
)
def test_records_of_a_class(asked):
    with pytest.raises(SettingsInvalid):
        invert_class(WEIGHTS, NET, **{"level": 3, "shape": (64,), "steps": 1} | asked)


def test_numbers_of_numpy_are_numbers():
    assert invert_class(WEIGHTS, NET, np.int64(3), (np.int64(64),), steps=np.int64(1)).shape == (64,)
    found = evade(DIGITS, NET, WEIGHTS, [np.float32(0.5)], steps=np.int64(1), seed=np.int64(0))
    assert found.radii == evade(DIGITS, NET, WEIGHTS, 0.5, steps=1).radii == (0.5,)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda: class_image(np.zeros(64), np.zeros((4, 64)), np.arange(4), 12), "are of 12"),
        (lambda: class_image(np.zeros(63), np.zeros((4, 64)), np.arange(4), 2), "63 numbers"),
        (lambda: PropertyAttack.fit(ROWS, HAS, components=0), "components=0"),
        (lambda: PropertyAttack.fit(ROWS, HAS, components=-1), "components=-1"),
        (lambda: PropertyAttack.fit(ROWS, HAS, penalty=-1.0), "penalty=-1.0"),
        (lambda: PropertyAttack.fit(ROWS, HAS).probability(np.zeros(4)), "had 3 numbers"),
        (lambda: psnr(np.zeros(3), np.ones(3), largest=0.0), "largest is 0.0"),
        (lambda: CosineSearch(steps="x"), "steps='x'"),
        (lambda: CosineSearch(learning_rate=np.inf), "learning_rate=inf"),
        (lambda: evade(DIGITS.take(range(0)), NET, WEIGHTS, [0.1]), "no records"),
        (lambda: evade(DIGITS, NET, WEIGHTS, np.nan), "radii are"),
    ],
)
def test_other_observers(broken, words):
    with pytest.raises(SettingsInvalid, match=words):
        broken()


def test_attributes_of_nobody():
    schema = Schema((Column("sick", "binary"), Column("y", "binary", role="target")))
    some = Table({"sick": np.array([0.0, 1.0]), "y": np.array([0.0, 1.0])}, schema)
    weights = {"weight": np.ones((1, 1), np.float32), "bias": np.zeros(1, np.float32)}
    assert infer_attribute(weights, nn.Linear(1, 1), some, "sick", some).of == "sick"
    for known, public in ((some.take([]), some), (some, some.take([]))):
        with pytest.raises(SettingsInvalid, match="records to guess of"):
            infer_attribute(weights, nn.Linear(1, 1), known, "sick", public)
