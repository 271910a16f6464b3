"""A mixture of products fitted to all pairs: its derivatives, its fit, its conditions."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.synth import MixtureSynthesizer, mst, rap
from hedgerow.synth.mixture import _softmax, fitted, misfit

SCHEMA = Schema(
    [
        Column("age", "integer", low=0, high=3),
        Column("gain", "number", low=0, high=4, optional=True),
        Column("kind", "category", levels=("a", "b", "c")),
        Column("ill", "binary", role="target"),
    ]
)
SMALL = {"bins": 4, "components": 20, "steps": 300}


@pytest.fixture(scope="module")
def real():
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 2000) * 1.0
    age = np.clip(np.rint(rng.normal(1.0 + ill, 0.7)), 0, 3)
    kind = np.where(rng.random(2000) < 0.7, (age > 1) + (ill > 0), rng.integers(0, 3, 2000))
    gain = np.where(rng.random(2000) < 0.1, np.nan, np.clip(rng.normal(kind + 1, 0.8), 0, 4))
    return Table({"age": age, "gain": gain, "kind": kind, "ill": ill}, SCHEMA)


@pytest.fixture(scope="module")
def made(real):
    return rap(hr.simulate(real, hr.data.iid(parties=3), seed=0), **SMALL)


def table_of(codes, sizes, i, j):
    return np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j]) / len(codes)


def test_derivatives_are_those_of_differences():
    rng = np.random.default_rng(0)
    starts, asked = np.array([0, 2, 5]), np.zeros((5, 5))
    asked[:2, 2:] = asked[2:, :2] = 1
    P, pi = _softmax(rng.normal(size=(2, 3, 5)), starts), rng.random((2, 3))
    wanted, ones = rng.random((2, 5, 5)), rng.random((2, 5))
    wanted = wanted + wanted.swapaxes(1, 2)
    _, by_pi, by_P = misfit(pi, P, wanted, asked, ones)
    for k in np.ndindex(*pi.shape):
        step = np.zeros_like(pi)
        step[k] = 1e-6
        two = [misfit(pi + side * step, P, wanted, asked, ones)[0] for side in (1, -1)]
        assert by_pi[k] == pytest.approx((two[0] - two[1]) / 2e-6, abs=1e-6)
    for k in np.ndindex(*P.shape):
        step = np.zeros_like(P)
        step[k] = 1e-6
        two = [misfit(pi, P + side * step, wanted, asked, ones)[0] for side in (1, -1)]
        assert by_P[k] == pytest.approx((two[0] - two[1]) / 2e-6, abs=1e-6)


def test_a_mixture_is_fitted_to_tables_that_no_tree_has():
    """Three columns of which each pair is tied: two edges of a tree would leave the third pair weaker than it is."""
    p = np.full((2, 2, 2), 0.02)
    p[0, 0, 0] = p[1, 1, 1] = 0.44
    tables = {(0, 1): p.sum(2)[None], (0, 2): p.sum(1)[None], (1, 2): p.sum(0)[None]}
    weights, shares = fitted([np.full((1, 2), 0.5)] * 3, tables, components=4, steps=400, rng=np.random.default_rng(0))
    assert weights.sum() == pytest.approx(1)
    Q = np.einsum("ck,cka,ckb->ab", weights, shares, shares)
    for (i, j), table in tables.items():
        np.testing.assert_allclose(Q[2 * i : 2 * i + 2, 2 * j : 2 * j + 2], table[0], atol=1e-6)


def test_without_noise_records_have_all_pairs_in_each_class(real, made):
    drawn = made.sample(20_000, seed=0)
    SCHEMA.admit(drawn.columns)
    codes = [made.codes.number(one.columns).astype(int) for one in (real, drawn)]
    sizes = made.codes.sizes
    for ill in (0, 1):
        mine = [one[one[:, 3] == ill] for one in codes]
        for i, j in ((0, 1), (0, 2), (1, 2)):
            p, q = (table_of(one, sizes, i, j) for one in mine)
            assert 0.5 * np.abs(p - q).sum() < 0.03, (ill, i, j)
    np.testing.assert_allclose(drawn["ill"].mean(), real["ill"].mean(), atol=1e-3)
    tree = mst(hr.simulate({"one": real}), bins=4).sample(20_000, seed=0)
    codes.append(made.codes.number(tree.columns).astype(int))
    far = [
        sum(np.abs(table_of(codes[0], sizes, i, j) - table_of(one, sizes, i, j)).sum() for i in range(4) for j in range(i))
        for one in codes
    ]
    assert far[1] < far[2]


@pytest.mark.slow
def test_conditional_records_equal_filtered_ones(made):
    where = {"ill": 1, "gain": (1, 2.5), "kind": ["a", "b"]}
    every, some = made.sample(100_000, seed=0), made.sample(10_000, where=where, seed=1)
    keep = (every["ill"] == 1) & (every["gain"] >= 1) & (every["gain"] <= 2.5) & (every["kind"] <= 1)
    assert keep.sum() > 5000
    assert (some["ill"] == 1).all()
    assert ((some["gain"] >= 1) & (some["gain"] <= 2.5) & (some["kind"] <= 1)).all()
    for name in ("age", "kind"):
        p, q = (np.bincount(one.astype(int), minlength=4) / len(one) for one in (every[name][keep], some[name]))
        assert 0.5 * np.abs(p - q).sum() < 0.02, name


def test_conditions_without_probability_are_refused(made):
    impossible = MixtureSynthesizer(made.codes, made.provenance, made.target, made.weights * [[1.0], [0.0]], made.shares)
    with pytest.raises(SettingsInvalid, match="no probability"):
        impossible.sample(5, where={"ill": 1})


def test_the_same_totals_give_the_same_table(real, made):
    other = rap(hr.simulate({"b": real.take(range(700, 2000)), "a": real.take(range(700))}), **SMALL)
    np.testing.assert_allclose(other.shares, made.shares, atol=1e-9)


def test_a_budget_is_spent_and_hidden_rows_are_asked_alike(real):
    federation = hr.simulate(real, hr.data.iid(parties=3), seed=0).protect(aggregation=hr.SecAgg(threshold=2))
    noisy = rap(federation, **SMALL | {"steps": 50}, epsilon=1.0, delta=1e-5, noise_at="shares", least=2)
    assert len(federation.ledger) == 2
    assert 0.99 < federation.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    assert noisy.provenance.epsilon == pytest.approx(1.0, rel=1e-4)
    drawn = noisy.sample(4000, seed=0)
    assert np.abs(np.bincount(drawn["kind"].astype(int)) / 4000 - np.bincount(real["kind"].astype(int)) / 2000).max() < 0.05


def test_without_classes_the_target_is_a_column_as_others_are(real):
    made = rap(hr.simulate({"one": real}), target="age", columns=["age", "kind"], **SMALL)
    assert made.target == -1
    drawn = made.sample(5000, seed=0)
    p, q = (np.histogram2d(one["age"], one["kind"], bins=(4, 3))[0] / len(one) for one in (real, drawn))
    assert 0.5 * np.abs(p - q).sum() < 0.03


@pytest.mark.parametrize("settings", [{"components": 0}, {"steps": 0}, {"columns": ["ill"]}, {"bins": 1}])
def test_what_cannot_be_asked_is_refused_before_anybody_is(real, settings):
    federation = hr.simulate({"one": real})
    with pytest.raises(SettingsInvalid):
        rap(federation, **settings)
    assert len(federation.ledger) == 0
