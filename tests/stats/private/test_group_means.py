"""Private means: against pooled records without noise, coverage with it, and a record within its ball."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.core.whole import in_steps
from hedgerow.crypto import SecAgg
from hedgerow.data import Column, Schema, Table, iid, load
from hedgerow.engines import simulate
from hedgerow.errors import SettingsInvalid, UnboundedSum
from hedgerow.stats.private import means, private_means
from hedgerow.stats.private.group_means import MeansPlan, grouped_sums

SCHEMA = Schema(
    (
        Column("age", "number", low=20, high=80),
        Column("score", "number", low=-10, high=30),
        Column("ill", "binary", role="target"),
        Column("arm", "category", levels=("a", "b", "c")),
    )
)
SETTINGS = {"columns": ["age", "score", "ill"], "group": "arm", "delta": 1e-6, "noise_at": "server", "least": 0}


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    arm = rng.choice(3, n, p=[0.6, 0.39, 0.01])
    age, score = rng.uniform(30, 60, n), np.clip(2 + 4 * (arm == 1) + 3 * rng.normal(size=n), -10, 30)
    return Table({"age": age, "score": score, "ill": (rng.random(n) < 0.1 + 0.1 * arm).astype(float), "arm": arm}, SCHEMA)


TRUTH = np.array([[45.0, 2.0, 0.1], [45.0, 6.0, 0.2]])


@pytest.mark.parametrize("hidden", [False, True])
def test_without_noise_means_and_errors_are_those_of_the_records(hidden):
    table = drawn(900, 0)
    asked = simulate(table, iid(parties=3), seed=0)
    found = means(asked.protect(aggregation=SecAgg()) if hidden else asked, ["age", "score", "ill"], group="arm")
    frame = table.to_pandas().groupby("arm", observed=True)[["age", "score", "ill"]]
    np.testing.assert_allclose(found.mean, frame.mean(), atol=1e-7)
    np.testing.assert_allclose(found.se_, frame.sem(), atol=1e-7)
    np.testing.assert_allclose(found.n, frame.size(), atol=1e-7)
    one = found.difference("b", "a").loc["score"]
    assert one["difference"] == pytest.approx(found.mean[1, 1] - found.mean[0, 1])
    assert one["se"] == pytest.approx(np.hypot(found.se_[0, 1], found.se_[1, 1]))
    assert asked.ledger.entries[-1].numbers == 3 * (1 + 3 + 2)  # n, three sums, squares of two


@pytest.mark.parametrize(("n", "epsilon"), [(2000, 0.5), (2000, 3.0), (20_000, 0.1)])
def test_intervals_cover(n, epsilon):
    """150 draws of records and noise, six means each and a difference; naive ones beside."""
    inside, naive, apart = [], [], []
    for seed in range(150):
        found = means(
            simulate(drawn(n, seed), iid(parties=2), seed=seed),
            ["age", "score", "ill"],
            group="arm",
            epsilon=epsilon,
            delta=1e-6,
        )
        low, high = np.moveaxis(found.conf_int()[:2], -1, 0)
        inside.append(np.where(np.isfinite(low), (low <= TRUTH) & (high >= TRUTH), np.nan))
        sampling = np.array([[75.0, 9.0, 0.09], [75.0, 9.0, 0.16]]) / found.n[:2, None]
        naive.append(np.abs(found.mean[:2] - TRUTH) <= 1.96 * np.sqrt(sampling))
        told = found.difference("b", "a")
        held = (told["low"] <= TRUTH[1] - TRUTH[0]) & (told["high"] >= TRUTH[1] - TRUTH[0])
        apart.append(np.where(np.isfinite(told["low"]), held, np.nan))
    assert 0.93 <= np.nanmean(inside) <= 0.97
    assert 0.92 <= np.nanmean(apart) <= 0.98
    assert np.mean(naive) < np.nanmean(inside) - 0.02


def test_a_group_that_the_noise_covers_has_no_interval():
    found = means(simulate(drawn(2000, 1), iid(parties=2), seed=0), ["score"], group="arm", epsilon=0.5, delta=1e-6)
    assert np.isfinite(found.se_[:2]).all()
    assert np.isnan(found.se_[2]).all()  # some twenty records
    assert np.isnan(found.difference("c", "a")["low"]).all()
    assert len(found.to_frame()) == 3


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31))
def test_a_record_adds_no_more_than_its_ball(seed):
    """Whatever its values are; a twin that forgets to cut them off is caught by the same test."""
    rng = np.random.default_rng(seed)
    n, far = int(rng.integers(1, 6)), 10.0 ** rng.integers(0, 6)
    plan = MeansPlan.of(SCHEMA, SETTINGS | {"epsilon": 1.0})
    columns = {"age": rng.normal(size=n) * far, "score": rng.normal(size=n) * far, "ill": rng.integers(0, 2, n).astype(float)}
    columns["arm"] = rng.integers(0, 3, n)

    def total(rows):
        party = hr.core.Party("one", {name: values[:rows] for name, values in columns.items()}, np.ones(rows))
        ask = {"columns": plan.columns, "parts": plan.parts, "group": "arm", "levels": 3}
        return grouped_sums(None, party, None, **ask, bounds=in_steps(plan.bound))

    assert np.linalg.norm(total(n) - total(n - 1)) <= plan.bound.radius


def test_the_largest_record_reaches_the_ball():
    plan = MeansPlan.of(SCHEMA, SETTINGS | {"epsilon": 1.0})
    party = hr.core.Party(
        "one", {"age": np.array([80.0]), "score": np.array([-10.0]), "ill": np.ones(1), "arm": np.ones(1)}, np.ones(1)
    )
    found = grouped_sums(None, party, None, columns=plan.columns, parts=plan.parts, group="arm", levels=3)
    assert np.linalg.norm(found) == pytest.approx(1.0)


def test_one_budget_is_spent():
    asked = simulate(drawn(500, 0), iid(parties=2), seed=0)
    *_, state = private_means(asked, columns=["ill"], epsilon=1.0, delta=1e-5)
    assert asked.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, rel=1e-3)
    assert state.totals.shape == (1, 2)


def test_what_has_no_interval_is_refused_beforehand():
    asked = simulate(drawn(100, 0), iid(parties=2), seed=0)
    with pytest.raises(SettingsInvalid, match="Laplace"):
        means(asked, ["ill"], epsilon=1.0)
    with pytest.raises(SettingsInvalid, match="Gaussian"):
        means(asked.protect(mechanism=hr.Laplace(1.0)), ["ill"])
    with pytest.raises(SettingsInvalid, match="no group"):
        means(simulate(drawn(100, 0), iid(parties=2), seed=0), ["ill"], group="arm").difference("a", "z")
    open_ended = Table({"x": np.ones(5)}, Schema((Column("x", "number"),)))
    with pytest.raises(UnboundedSum):
        means(simulate(open_ended, iid(parties=2), seed=0), ["x"])
    assert len(asked.ledger) == 0


def test_levels_of_a_binary_column_are_groups():
    table = load("heart_failure")
    found = means(simulate(table, iid(parties=2), seed=0), ["age"], group="sex")
    assert found.levels == ("0", "1")
    assert found.n.sum() == pytest.approx(299)
