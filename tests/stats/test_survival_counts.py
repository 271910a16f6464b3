"""Survival counts and the Kaplan-Meier estimate equal those of pooled records; every record moves one count."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hiding import Hiding
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.duration.survfunc import SurvfuncRight

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import MissingColumn, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.stats import independence, means, survival_counts
from hedgerow.stats.columns import heaviest
from hedgerow.stats.counts import count_bound
from hedgerow.stats.moments import mean_bounds, scaled_deviations
from hedgerow.stats.survival import kaplan_meier, survival_interval, survival_tally

SCHEMA = Schema(
    (
        Column("months", "integer", low=0, high=60),
        Column("died", "binary", role="target"),
        Column("arm", "category", levels=("placebo", "drug", "neither")),
        Column("copies", "integer", role="ignore", low=0, high=3),
    )
)
EVERY = list(range(61))
ENGINES = {"loop": hr.Loop(), "collapse": hr.InProcess(threads=1), "stack": hr.InProcess(threads=2, collapse=False)}


def trial(n=240, seed=0):
    """A trial whose drug halves the hazard; many are censored."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=n)
    until = np.ceil(rng.exponential(np.where(arm == 1, 40, 20)))
    censored = rng.integers(1, 61, size=n)
    columns = {"months": np.minimum(until, censored), "died": until <= censored, "arm": arm.astype(np.int16)}
    return Table(SCHEMA.admit(columns | {"copies": rng.integers(0, 4, n)}), SCHEMA)


def federation(table=None, engine=None):
    return hr.simulate(table or trial(), iid(6), seed=1, engine=engine)


def pooled(table, **more):
    return SurvfuncRight(table["months"], table["died"], **more)


# ---- pooled ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_every_day_gives_the_kaplan_meier_estimate_of_statsmodels(engine):
    found = survival_counts(federation(engine=engine), "months", "died", EVERY).set_index("time")
    expected = pooled(trial())
    at = found.loc[expected.surv_times]
    np.testing.assert_array_equal(at["at risk"], expected.n_risk)
    np.testing.assert_array_equal(at["events"], expected.n_events)
    np.testing.assert_allclose(at["survival"], expected.surv_prob, rtol=1e-12)
    np.testing.assert_allclose(at["standard error"], expected.surv_prob_se, rtol=1e-10)
    assert found["censored"].sum() + found["events"].sum() == 240
    assert found["events"].drop(expected.surv_times).sum() == 0


def test_groups_are_estimated_apart():
    found, table = survival_counts(federation(), "months", "died", EVERY, "arm"), trial()
    for code, arm in enumerate(("placebo", "drug")):
        expected, part = pooled(table.take(table["arm"] == code)), found[found["arm"] == arm].set_index("time")
        np.testing.assert_allclose(part.loc[expected.surv_times, "survival"], expected.surv_prob, rtol=1e-12)
    empty = found[found["arm"] == "neither"]
    assert (empty["at risk"] == 0).all()
    assert empty["survival"].isna().all()


@pytest.mark.parametrize("step", [2, 7, 24])
def test_with_wider_intervals_the_estimate_of_kaplan_and_meier_lies_between(step):
    ends = list(range(step, 61, step))
    found, expected = survival_counts(federation(), "months", "died", ends), pooled(trial())
    exact = [expected.surv_prob[expected.surv_times <= end].min(initial=1.0) for end in ends]
    assert (found["if censored first"] <= np.array(exact) + 1e-12).all()
    assert (np.array(exact) <= found["survival"] + 1e-12).all()


def test_without_censoring_any_intervals_are_exact():
    table = trial()
    whole = Table(table.columns | {"died": np.ones(len(table))}, SCHEMA)
    found = survival_counts(federation(whole), "months", "died", [5, 20, 60])
    np.testing.assert_allclose(found["survival"], [(table["months"] > end).mean() for end in (5, 20, 60)], rtol=1e-12)
    np.testing.assert_array_equal(found["survival"], found["if censored first"])


def test_weights_are_repeated_records():
    weighted = trial().with_roles(weight="copies")
    repeated = trial().take(np.repeat(np.arange(240), trial()["copies"].astype(int)))
    found, expected = (survival_counts(federation(t), "months", "died", [6, 12, 40], "arm") for t in (weighted, repeated))
    pd.testing.assert_frame_equal(found, expected)


def test_hidden_rows_give_the_same_table():
    hidden = federation().protect(aggregation=Hiding())
    found, plain = (survival_counts(fed, "months", "died", [6, 12, 40], "arm") for fed in (hidden, federation()))
    pd.testing.assert_frame_equal(found, plain, atol=1e-6)


# ---- by hand --------------------------------------------------------------------------------------------------------
def test_an_interval_holds_its_upper_end_and_the_first_one_all_before():
    party = Party("p", {"t": np.array([0, 1, 1.5, 2, 9.0]), "e": np.array([1, 1, 0, 1, 1.0])}, np.ones(5))
    found = survival_tally(np.array([1.0, 2.0]), party, None, time="t", event="e", group=None, n_groups=1)
    assert found.reshape(3, 2).tolist() == [[0, 2], [1, 1], [0, 1]]


def test_survival_ends_where_all_are_gone_and_is_unknown_where_nobody_was():
    survival, variance = kaplan_meier(np.array([4.0, 2, 0]), np.array([2.0, 2, 0]))
    assert survival.tolist() == [0.5, 0, 0]
    np.testing.assert_allclose(variance, [0.5**2 * 2 / (4 * 2), np.nan, np.nan])
    np.testing.assert_array_equal(kaplan_meier(np.array([3.0, 0]), np.array([0.0, 0]))[0], [1, np.nan])


def test_intervals_on_either_scale():
    survival, variance = np.array([0.8, 1.0, 0.0]), np.array([0.01, 0.0, np.nan])
    low, high = survival_interval(survival, variance, interval="plain", level=0.95)
    np.testing.assert_allclose((low[0], high[0]), (0.8 - 0.1959964, 0.8 + 0.1959964), rtol=1e-6)
    low, high = survival_interval(survival, variance, interval="log-log", level=0.95)
    theta, reach = np.log(-np.log(0.8)), 1.959964 * 0.1 / abs(0.8 * np.log(0.8))
    np.testing.assert_allclose((low[0], high[0]), np.exp(-np.exp([theta + reach, theta - reach])), rtol=1e-6)
    assert (low[1], high[1]) == (1, 1)
    assert np.isnan([low[2], high[2]]).all()


@pytest.mark.parametrize("seed", range(3))
def test_chi_square_is_that_of_scipy(seed):
    from scipy.stats import chi2_contingency

    table = np.random.default_rng(seed).integers(1, 30, size=(3, 4))
    found, expected = independence(table), chi2_contingency(table, correction=False)
    assert (found.statistic, found.p_value, found.df) == pytest.approx((expected.statistic, expected.pvalue, expected.dof))
    assert independence(np.vstack([table, np.zeros(4)])) == found
    assert independence(table[:1]) is None


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_means_are_those_of_pooled_records(engine):
    table = trial()
    found = means(federation(engine=engine), ["months", "died"])
    np.testing.assert_allclose(found, [table["months"].mean(), table["died"].mean()], rtol=1e-13)
    hidden = means(federation().protect(aggregation=Hiding()), ["months", "died"])
    np.testing.assert_allclose(hidden, found, rtol=1e-6)


# ---- neighbours and noise -------------------------------------------------------------------------------------------
WEIGHTED = SCHEMA.with_roles(weight="copies")
RECORD = st.tuples(st.integers(0, 60), st.integers(0, 1), st.integers(0, 2), st.sampled_from([0, 1, 3]))


def party(records):
    months, died, arm, copies = np.array(records, dtype=float).reshape(-1, 4).T
    return Party("p", {"months": months, "died": died, "arm": arm}, copies)


@settings(deadline=None, max_examples=60)
@given(
    records=st.lists(RECORD, min_size=1, max_size=6),
    ends=st.lists(st.integers(0, 70), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_one_record_moves_the_counts_by_at_most_its_declared_bound(records, ends, data):
    out = data.draw(st.integers(0, len(records) - 1))
    ask = partial(survival_tally, time="months", event="died", group="arm", n_groups=3)
    broadcast = np.sort(np.array(ends, dtype=float))
    moved = ask(broadcast, party(records), None) - ask(broadcast, party(records[:out] + records[out + 1 :]), None)
    assert np.abs(moved).sum() <= count_bound(heaviest(WEIGHTED)).radius


@settings(deadline=None, max_examples=60)
@given(record=RECORD)
def test_one_record_moves_means_by_at_most_their_declared_bound(record):
    columns = [WEIGHTED["months"], WEIGHTED["died"]]
    frame = np.array([[30, 0.5], [30, 0.5]])
    found = scaled_deviations(frame, party([record]), None, columns=("months", "died"))
    for key, bound in mean_bounds(columns, heaviest(WEIGHTED)).items():
        assert np.abs(found[key]).max() <= bound.radius


def test_through_noise_there_are_no_intervals_and_survival_stays_between_0_and_1():
    noisy = federation().protect(mechanism=hr.Laplace(4.0))
    found = survival_counts(noisy, "months", "died", list(range(2, 61, 2)), "arm")
    assert not {"standard error", "low", "high"} & set(found)
    survival = found["survival"].dropna()
    assert ((survival >= 0) & (survival <= 1)).all()


def test_noise_needs_declared_weights():
    undeclared = Schema(tuple(c if c.name != "copies" else Column("copies", "integer", role="weight") for c in SCHEMA))
    table = Table(undeclared.admit(trial().columns), undeclared)
    with pytest.raises(UnboundedSum, match="HR-210"):
        survival_counts(federation(table).protect(mechanism=hr.Laplace(4.0)), "months", "died", [6])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("months", "died", [2, 1]), SettingsInvalid),
        (("months", "died", []), SettingsInvalid),
        (("months", "months", [1]), SchemaInvalid),
        (("arm", "died", [1]), SchemaInvalid),
        (("months", "died", [1], "months"), SchemaInvalid),
        (("month", "died", [1]), MissingColumn),
    ],
)
def test_wrong_settings_are_refused_before_anybody_is_asked(arguments, error):
    fed = federation()
    with pytest.raises(error):
        survival_counts(fed, *arguments)
    assert not fed.ledger.entries
