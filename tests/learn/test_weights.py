"""Record weights: what has weight zero does not count, and what weighs much is bounded by what the schema declares."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import UnboundedSum
from hedgerow.learn import Solver, evaluate, fedavg, linear
from helpers import run_of

SCHEMA = hr.data.Schema(
    (
        hr.data.Column("x", "number", shape=(2,)),
        hr.data.Column("label", "binary", role="target"),
        hr.data.Column("copies", "number", role="weight", low=0, high=100),
    )
)
RNG = np.random.default_rng(0)


def federation(copies, schema=SCHEMA):
    n = len(copies)
    columns = {"x": np.linspace(-1, 1, 2 * n).reshape(n, 2), "label": np.arange(n) % 2, "copies": np.asarray(copies, float)}
    return hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=2), seed=0)


WEIGHTS = {"1.weight": np.ones((1, 2)), "1.bias": np.zeros(1)}


def test_evaluation_is_bounded_by_the_heaviest_record():
    fed = federation([100, 1, 1, 1, 1, 1]).protect(mechanism=hr.Gaussian(1.0))
    evaluate(fed, linear(2, 1), WEIGHTS)
    assert fed.ledger.entries[-1].bound == "hits: linf(100) per record; n: linf(100) per record"


def test_evaluation_without_a_declared_weight_has_no_bound():
    schema = SCHEMA.replace(hr.data.Column("copies", "number", role="weight"))
    with pytest.raises(UnboundedSum):
        evaluate(federation([1, 2, 3, 4], schema).protect(mechanism=hr.Gaussian(1.0)), linear(2, 1), WEIGHTS)


def test_batches_take_the_records_that_count():
    plan = Solver(epochs=2, batch_size=2).plan("p", np.flatnonzero([0.0, 1.0, 1.0, 1.0]), np.random.default_rng(0))
    assert plan.shape == (4, 2)
    assert sorted(plan[plan >= 0]) == [1, 1, 2, 2, 3, 3]


def test_records_of_weight_zero_do_not_move_a_model():
    light = hr.last(fedavg(federation([1, 1, 0, 1, 0, 1, 1, 1]), linear(2, 1), rounds=2, batch_size=None))
    fed = federation([1] * 8)
    held = hr.engines.records(fed)
    keep = hr.engines.records(federation([1, 1, 0, 1, 0, 1, 1, 1])).w > 0
    sizes = [int(keep[a:b].sum()) for a, b in zip(held.offsets[:-1], held.offsets[1:], strict=True)]
    fewer = type(held)(held.ids, {name: column[keep] for name, column in held.columns.items()}, sizes)
    whole = hr.last(
        fedavg(
            type(fed)(run_of(fed).engine.hosting(fewer), fed.schema, run_of(fed).streams),
            linear(2, 1),
            rounds=2,
            batch_size=None,
        )
    )
    for name, value in whole.weights.items():
        np.testing.assert_allclose(light.weights[name], value, atol=1e-6)


def test_a_tree_keeps_the_bound_of_a_weight_that_is_used_as_a_feature():
    """Found in review: a column that changes its role still weighs the records."""
    schema = hr.data.Schema((hr.data.Column("z", "number", low=-1, high=1), *SCHEMA.columns[1:]))
    columns = {"z": np.linspace(-1, 1, 6), "label": np.arange(6) % 2, "copies": np.arange(1.0, 7.0)}
    fed = hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=2), seed=0)
    hr.last(hr.trees.grow(fed, depth=1, features=["z", "copies"]))
    assert fed.ledger.entries[0].bound == "l2(141.421) per record"


def test_a_weight_is_not_standardised():
    with pytest.raises(hr.errors.SchemaInvalid, match="copies"):
        hr.stats.Scaling(("copies",), (50.0,), (30.0,)).apply(federation([1, 2, 3, 4]))


def test_a_column_named_w_is_not_the_weights():
    """Found in review: standardising it would have replaced the records' weights."""
    schema = hr.data.Schema((hr.data.Column("w", "number"), hr.data.Column("z", "number")))
    table = hr.data.Table(schema.admit({"w": np.arange(8.0), "z": np.arange(8.0) ** 2}), schema)
    fed = hr.stats.standardise(hr.simulate(table, hr.data.iid(parties=2), seed=0))
    found = hr.stats.moments(fed, ["w", "z"])
    assert found.n == 8
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)
    np.testing.assert_allclose(found.sd, 1)
