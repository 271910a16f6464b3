"""Private components: they are those of numpy without noise, a record moves the sum by one, and the ledger knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.core.party import Party
from hedgerow.errors import BudgetExhausted, SettingsInvalid
from hedgerow.learn.features import principal, projection
from hedgerow.learn.features.principal import NAME, leading, second_moments
from hedgerow.learn.features.rows import of_length_one, reading
from hedgerow.learn.features.steps import Matrix
from hedgerow.privacy import Budget, Gaussian

SCHEMA = hr.data.Schema((hr.data.Column("x", "number", shape=(7,)), hr.data.Column("y", "binary", role="target")))
READS = {"reads": reading(SCHEMA)}


def records(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 7)) * np.array([9, 5, 3, 1, 1, 0.5, 0.2]) + 1.0


def federation(x, parties=4, seed=0):
    table = hr.data.Table(SCHEMA.admit({"x": x, "y": np.arange(len(x)) % 2.0}), SCHEMA)
    return hr.simulate(table, hr.data.iid(parties=parties), seed=seed)


def moments(x, w=None):
    party = Party("one", {"x": x, "y": np.zeros(len(x))}, np.ones(len(x)) if w is None else w)
    return second_moments(None, party, None, **READS)


def test_without_noise_the_components_are_those_of_numpy():
    x = records()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    found = principal(federation(x), 3)
    np.testing.assert_allclose(found.values, values[::-1][:3], rtol=1e-5)
    np.testing.assert_allclose(np.abs(found.vectors.T @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-4)


def test_the_projected_column_is_the_record_in_the_basis_at_length_one():
    x = records()
    fed = federation(x)
    basis = principal(fed, 3)
    ready = projection(fed.schema, basis, length=2.0).at_parties(fed)
    assert ready.schema.features == (NAME,)
    held = hr.engines.records(ready).prepared(inside(ready).view, together=True).columns
    expected = held["x"] @ basis.vectors
    expected *= 2 / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(held[NAME], expected, rtol=1e-4, atol=1e-6)


@given(st.integers(0, 19), st.lists(st.floats(-1e30, 1e30), min_size=7, max_size=7), st.floats(0, 1))
def test_a_record_moves_the_sum_by_at_most_its_weight(i, values, weight):
    x, w = records(20), np.ones(20)
    x[i], w[i] = values, weight
    moved = moments(x, w) - moments(np.delete(x, i, 0), np.delete(w, i))
    assert np.linalg.norm(moved) <= weight * (1 + 1e-9) + 1e-12  # l2(heaviest, unit="record")


def test_a_record_of_length_one_moves_the_sum_by_exactly_one():
    """Not by less: noise is not larger than it has to be. Without sqrt(2) off the diagonal it would be."""
    assert np.linalg.norm(moments(records(1))) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 0.0])
def test_records_without_a_direction_count_as_zeros(bad):
    x = records(3)
    x[1] = bad
    found = of_length_one(x)
    np.testing.assert_array_equal(found[1], 0.0)
    np.testing.assert_allclose(np.linalg.norm(found[[0, 2]], axis=1), 1.0, rtol=1e-6)


def test_a_party_without_sampled_records_adds_nothing():
    np.testing.assert_array_equal(moments(records(0)), np.zeros(28))


def test_the_triangle_holds_the_matrix():
    x = records()
    unit = of_length_one(x)
    everything = leading(moments(x), 7, 7)
    np.testing.assert_allclose((everything.vectors * everything.values) @ everything.vectors.T, unit.T @ unit, atol=1e-6)


def test_each_release_is_charged_with_noise_bound_and_sampling():
    fed = federation(records()).protect(mechanism=Gaussian(3.0))
    principal(fed, 2)
    principal(fed, 2, rounds=2, sampling_rate=0.25)
    first, *others = fed.ledger.entries
    assert (first.event.kind, first.event.noise_multiplier, first.bound) == ("gaussian", 3.0, "l2(1) per record")
    assert first.sampling.kind == "all"
    assert [(e.sampling.kind, e.sampling.rate) for e in others] == [("records", 0.25)] * 2
    assert len({e.cohort for e in others}) == 2


def test_a_budget_that_does_not_allow_the_components_refuses_them():
    fed = federation(records()).protect(mechanism=Gaussian(1.0)).within(Budget(0.5, 1e-5, unit="record"))
    with pytest.raises(BudgetExhausted, match="HR-213"):
        principal(fed, 2)
    assert len(fed.ledger) == 0


def test_noise_is_symmetric_and_of_the_declared_size():
    """Of a release of nothing: variance (3 / sqrt(2))^2 off the diagonal; one false alarm in a million."""
    from scipy.stats import chi2

    schema = hr.data.Schema((hr.data.Column("x", "number", shape=(40,)), hr.data.Column("y", "binary", role="target")))
    table = hr.data.Table(schema.admit({"x": np.zeros((8, 40)), "y": np.arange(8.0) % 2}), schema)
    fed = hr.simulate(table, hr.data.iid(parties=2), seed=1).protect(mechanism=Gaussian(3.0))
    found = principal(fed, 40)
    whole = (found.vectors * found.values) @ found.vectors.T
    upper = whole[np.triu_indices(40, 1)]
    low, high = chi2.interval(1 - 1e-6, len(upper))
    assert low <= np.sum(upper**2) / 4.5 <= high * 1.2  # a tenth of a deviation more for what rounding moves


@pytest.mark.parametrize("wrong", [{"components": 0}, {"components": 8}, {"components": 2, "rounds": 0}])
def test_components_that_cannot_be_had_are_refused_before_anybody_is_asked(wrong):
    fed = federation(records())
    with pytest.raises(SettingsInvalid, match="HR-511"):
        principal(fed, **wrong)
    assert len(fed.ledger) == 0


def test_a_matrix_is_a_setting_that_is_compared_by_its_numbers():
    one, same, other = (Matrix.of(np.full((2, 3), value)) for value in (1.0, 1.0, 2.0))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one.values.shape == (2, 3)
