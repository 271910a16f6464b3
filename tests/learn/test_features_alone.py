"""Features of one record have the bits that they have among others, wherever that is said of them."""

import numpy as np
import pytest

from hedgerow.core.question import Preparation
from hedgerow.data import Column, Schema
from hedgerow.learn.features import Basis, centring, projection, scattering, straightening
from hedgerow.learn.features.rows import reading, rows_of
from hedgerow.stats.design import Design, design

RNG = np.random.default_rng(0)
SHAPES = {"one number": (1,), "a row": (40,), "an image": (12, 12)}


def schema_of(shape):
    return Schema((Column("x", "number", shape=shape, low=-1.0, high=1.0), Column("y", "binary", role="target")))


def basis(d, k):
    return Basis(np.linalg.qr(RNG.normal(size=(d, k)))[0].astype(np.float32), np.ones(k))


def alone(function, columns, n):
    parts = [function({name: values[i : i + 1] for name, values in columns.items()}) for i in range(n)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("step", ["projection", "centring"])
def test_marked_features_are_those_of_a_record_alone(step, shape, order):
    schema, d = schema_of(shape), int(np.prod(shape))
    made = (
        projection(schema, basis(d, min(d, 5)))
        if step == "projection"
        else centring(schema, RNG.normal(size=d).astype(np.float32) / 10)
    )
    assert Preparation(made.function, made.settings).elementwise
    columns = {"x": np.asarray(RNG.uniform(-1, 1, (70, *shape)), order=order), "y": np.zeros(70)}
    together, apart = (f(lambda some: made.function(some, **dict(made.settings))) for f in (
        lambda function: function(columns), lambda function: alone(function, columns, 70)
    ))  # fmt: skip
    for name, values in together.items():
        np.testing.assert_array_equal(values, apart[name])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_rows_of_length_one_do_not_depend_on_how_records_lie(shape, order):
    reads = reading(schema_of(shape))
    columns = {"x": np.asarray(RNG.uniform(-1, 1, (300, *shape)), order=order), "y": np.zeros(300)}
    apart = alone(lambda some: {"row": rows_of(some, reads)}, columns, 300)["row"]
    np.testing.assert_array_equal(rows_of(columns, reads), apart)


def test_features_by_torch_are_made_of_one_record_at_a_time_behind_noise():
    schema = schema_of((16, 16))
    for made in (scattering(schema), straightening(schema)):
        assert not Preparation(made.function, made.settings).elementwise


@pytest.mark.parametrize(
    ("formula", "marked"),
    [
        ("y ~ a + b", True),
        ("y ~ a:b + sqrt(a) + I(a > b) + abs(b)", True),
        ("y ~ log(a) + b", False),
        ("y ~ I(a ** 2)", False),
        ("y ~ exp(b)", False),
    ],
)
def test_a_formula_is_made_in_one_call_where_it_is_arithmetic(formula, marked):
    numbers = (Column(name, "number", low=0.5, high=2.0) for name in "ab")
    spec = Design.of(formula, Schema((*numbers, Column("y", "binary", role="target"))))
    assert Preparation(design, (("spec", spec),)).elementwise is marked
    if marked:
        columns = {"a": RNG.uniform(0.5, 2, 50), "b": RNG.uniform(0.5, 2, 50), "y": np.zeros(50)}
        apart = alone(lambda some: design(some, spec=spec), columns, 50)
        for name, values in design(columns, spec=spec).items():
            np.testing.assert_array_equal(values, apart[name])
