"""Table 1 equals a groupby of the pooled records, and shows no count that is small, nor what would give it away."""

from dataclasses import replace

import numpy as np
import pandas
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.errors import MissingColumn, SchemaInvalid, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.stats import table_one
from hedgerow.stats.columns import heaviest
from hedgerow.stats.differences import difference_of_levels, difference_of_means
from hedgerow.stats.table_one import TablePlan, group_levels, group_moments
from hedgerow.stats.table_rounding import ShownCounts, ends_of, multiple_for, narrowed

HEART = hr.data.load("heart_failure")


def hospitals(table=HEART, n=4, **channel):
    return hr.simulate(table, iid(n), seed=0).protect(**channel)


def hidden():
    return hospitals(aggregation=hr.SecAgg(records=300))


# ---- golden ---------------------------------------------------------------------------------------------------------
def test_the_table_is_the_groupby_of_pandas():
    federation = hospitals()
    found, frame = table_one(federation, group="death_event"), HEART.to_pandas()
    by = frame.groupby(frame["death_event"].astype(int))
    np.testing.assert_allclose(found.mean, by[list(found.numbers)].mean(), rtol=1e-12)
    np.testing.assert_allclose(found.sd, by[list(found.numbers)].std(), rtol=1e-12)
    np.testing.assert_array_equal(found.counts, by.size())
    np.testing.assert_array_equal(found.levels["sex"][:, 1], by["sex"].sum())
    assert len(federation.ledger) == 2
    assert [entry.exact_numbers for entry in federation.ledger.since(0)] == [2 + 5 * 4, 2 * 6 * 3]


def test_standardised_differences_are_those_of_r():
    # smd <- function(x, g) abs(diff(tapply(x, g, mean))) / sqrt(mean(tapply(x, g, var))), of shares p(1 - p) for var
    found = table_one(hospitals(), group="death_event").differences()
    expected = {
        "age": 0.537978168347052,
        "platelets": 0.104829910992654,
        "serum_creatinine": 0.572636374948877,
        "ejection_fraction": 0.579859948194471,
        "sex": 0.00924034535970699,
        "anaemia": 0.14184442189669,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-10)


def test_differences_of_levels_by_hand():
    # Yang & Dalton 2012 in R: S <- (diag(p) - p %o% p + diag(q) - q %o% q) / 2; sqrt(d[-1] %*% solve(S[-1, -1]) %*% d[-1])
    counts = np.array([[20.0, 30, 50], [35, 25, 40]])
    assert difference_of_levels(counts) == pytest.approx(0.341209783599645, rel=1e-12)
    assert difference_of_levels(counts[:, [2, 0, 1]]) == pytest.approx(0.341209783599645, rel=1e-12)  # whichever is first
    third = np.vstack([counts, counts[0]])
    assert difference_of_levels(third) == pytest.approx(0.341209783599645, rel=1e-12)  # the largest of pairs
    assert difference_of_levels(np.array([[5.0, 0], [0, 5]])) == np.inf
    assert np.isnan(difference_of_levels(np.array([[5.0, 5], [0, 0]])))
    assert difference_of_means(np.array([[1.0], [1.0]]), np.zeros((2, 1)))[0] == 0


def test_hidden_rows_give_the_same_table():
    found, plain = table_one(hidden(), group="death_event"), table_one(hospitals(), group="death_event")
    np.testing.assert_allclose(found.mean, plain.mean, rtol=1e-8)
    np.testing.assert_allclose(found.sd, plain.sd, rtol=1e-7)
    assert found.to_frame().equals(plain.to_frame())


def test_medians_are_those_of_each_group():
    found = table_one(hospitals(), ["age"], "death_event", medians=["age"])
    frame = HEART.to_pandas()
    for code, low_middle_high in enumerate(found.quartiles["age"]):
        age = frame["age"][frame["death_event"] == code]
        np.testing.assert_allclose(low_middle_high, np.quantile(age, [0.25, 0.5, 0.75], method="inverted_cdf"), atol=1e-3)
    assert "median [quartiles]" in found.to_frame().index[2]


# ---- missing values -------------------------------------------------------------------------------------------------
def with_gaps():
    columns = {name: values.copy() for name, values in HEART.columns.items()}
    rng = np.random.default_rng(0)
    for name in ("age", "sex", "death_event"):
        columns[name][rng.random(len(HEART)) < 0.1] = np.nan
    return replace(HEART, columns=columns, schema=HEART.schema.allowing(missing=True), test=None)


def test_what_is_missing_is_counted_by_column_and_group():
    federation = hospitals(with_gaps())
    found = table_one(federation, ["age", "sex"], "death_event", medians=["age"])
    frame = with_gaps().to_pandas()
    by = frame.groupby("death_event")
    np.testing.assert_allclose(found.mean[:, 0], by["age"].mean(), rtol=1e-12)
    np.testing.assert_array_equal(found.missing("age"), by["age"].apply(lambda x: x.isna().sum()))
    np.testing.assert_array_equal(found.missing("sex"), by["sex"].apply(lambda x: x.isna().sum()))
    middle = by["age"].quantile(0.5, interpolation="lower")
    np.testing.assert_allclose(found.quartiles["age"][:, 1], middle, atol=1e-3)
    assert hr.stats.moments(federation, ["age"]).n == frame["age"].notna().sum()  # what a group lacks is noted for nobody else


def test_records_without_a_group_are_told_and_none_by_a_small_count():
    for gaps, told in ((40, "in no column: 40."), (3, "in no column: below 5.")):
        frame = HEART.to_pandas()[["age", "death_event"]].astype(float)
        frame.loc[frame.index[:gaps], "death_event"] = np.nan
        schema = HEART.schema.select(["age", "death_event"]).allowing(missing=True)
        table = Table({name: frame[name].to_numpy() for name in frame}, schema)
        found = table_one(hospitals(table), ["age"], "death_event")
        assert told in found.notes[-1]
        assert found.rounded == (gaps < 5)


# ---- what people see ------------------------------------------------------------------------------------------------
def numbers_in(frame):
    """Every count that a table shows."""
    cells = frame.drop(columns=["difference"]).map(lambda text: text.split(" (")[0])
    return np.array([float(cell) for cell in cells.to_numpy().ravel() if cell.isdigit()])


def test_a_small_cell_is_not_shown_and_nothing_follows_by_subtraction():
    table = HEART.take(range(40))  # five who live, two of them men
    found = table_one(hospitals(table), ["sex", "smoking"], "death_event")
    assert found.levels["sex"][0].tolist() == [3.0, 2.0]
    frame = found.to_frame()
    assert frame.loc["sex", "0"] == "below 5"
    assert (numbers_in(frame) % 5 == 0).all()
    assert frame.loc["sex", "difference"] == "not shown"
    men = {(all_, died, n) for all_ in range(23, 28) for died in range(23, 28) for n in range(1, 5) if all_ - died == n}
    assert len({n for *_, n in men}) == 4  # each of 1 to 4 is possible beside 25 and 25
    assert table_one(hospitals(table), ["sex"], "death_event", least=0).to_frame().loc["sex", "0"].startswith("2 ")


def test_a_small_group_hides_its_mean_and_that_of_all():
    table = HEART.take([*np.flatnonzero(HEART["death_event"] == 1)[:30], *np.flatnonzero(HEART["death_event"] == 0)[:3]])
    found = table_one(hospitals(table), ["age"], "death_event")
    assert 0 < found.counts.min() < 5
    frame = found.to_frame()
    small = str(int(found.counts.argmin()))
    assert frame.loc["age (years)", small] == frame.loc["age (years)", "all"] == "not shown"
    assert frame.loc["age (years)", "difference"] == "not shown"


def test_shares_of_exact_and_of_rounded_counts_are_those_of_what_is_shown():
    frame = table_one(hospitals(), ["sex"], "death_event").to_frame()
    assert frame.loc["sex", "0"] == "132 (65.0 %)"
    assert frame.loc["records"].tolist()[:3] == ["299", "203", "96"]


# ---- by site --------------------------------------------------------------------------------------------------------
def test_by_site_each_site_is_a_column_and_hidden_rows_refuse():
    found = table_one(hospitals(), ["age", "sex"], by_site=True)
    whole = table_one(hospitals(), ["age", "sex"])
    assert len(found.groups) == 4
    assert found.counts.sum() == 299
    np.testing.assert_allclose((found.n * found.mean).sum(0) / 299, whole.mean[0], rtol=1e-12)
    assert found.to_frame().loc["age (years)", "all"] == whole.to_frame().loc["age (years)", "all"]
    both = table_one(hospitals(n=2), ["age"], "death_event", by_site=True)
    assert len(both.groups) == 4
    assert both.groups[1].endswith(", 1")
    with pytest.raises(UnlawfulChannel):
        table_one(hidden(), ["age"], by_site=True)
    with pytest.raises(SettingsInvalid, match="medians by site"):
        table_one(hospitals(), ["age"], by_site=True, medians=["age"])


# ---- noise and bounds -----------------------------------------------------------------------------------------------
def test_noise_keeps_the_table_near_and_an_open_range_refuses():
    noisy = hospitals().protect(mechanism=hr.Gaussian(0.5))
    found, plain = table_one(noisy, ["age", "sex"], "death_event"), table_one(hospitals(), ["age", "sex"], "death_event")
    np.testing.assert_allclose(found.mean, plain.mean, atol=3)
    np.testing.assert_allclose(found.counts, plain.counts, atol=5)
    assert "Counts have noise." in found.notes
    schema = Schema((Column("open", "number"), Column("arm", "binary")))
    table = Table({"open": np.arange(20.0), "arm": np.arange(20.0) % 2}, schema)
    with pytest.raises(UnboundedSum):
        table_one(hospitals(table).protect(mechanism=hr.Gaussian(1.0)), ["open"], "arm")


def test_one_record_moves_each_total_by_its_bound_at_most_and_reaches_it():
    schema = HEART.schema
    plan = TablePlan.of(schema, ["age", "platelets", "sex"], "death_event", ())
    bounds = plan.moment_bounds(heaviest(schema))
    columns = {"age": np.array([110.0]), "platelets": np.array([0.0]), "sex": np.ones(1), "death_event": np.ones(1)}
    party, settings = hr.Party("p", columns, np.ones(1)), {"group": "death_event", "n_groups": 2}
    found = group_moments(plan.frame, party, None, columns=("age", "platelets"), **settings)
    for key in ("n", "sum", "squares"):
        size = np.linalg.norm(found[key])
        assert size <= bounds[key].radius
        assert size == pytest.approx(bounds[key].radius, rel=1e-6)
    counts = group_levels(None, party, None, sizes=(("sex", 2),), **settings)
    assert all(np.abs(part).sum() == 1 for part in counts.values())
    assert plan.level_bounds(1.0).keys() == counts.keys()


def test_weights_are_repeated_records():
    columns = HEART.columns | {"copies": np.arange(299.0) % 3}
    schema = Schema((*HEART.schema, Column("copies", "integer", role="ignore", low=0, high=3)))
    weighed = Table(columns, schema).with_roles(weight="copies")
    repeated = HEART.take(np.repeat(np.arange(299), np.arange(299) % 3))
    found, expected = (table_one(hospitals(t), ["age", "sex"], "death_event") for t in (weighed, repeated))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    assert found.to_frame().equals(expected.to_frame())


# ---- edges ----------------------------------------------------------------------------------------------------------
def test_one_party_an_empty_group_and_a_constant_column():
    table = HEART.take(np.flatnonzero(HEART["death_event"] == 1)[:30])
    columns = table.columns | {"age": np.full(30, 60.3)}
    found = table_one(hospitals(replace(table, columns=columns), 1), ["age", "sex"], "death_event")
    assert np.isnan(found.mean[0, 0])
    assert found.sd[1, 0] == 0
    assert found.to_frame().loc["age (years)", "1"].startswith("60.3 (0")
    assert found.to_frame().loc["age (years)", "0"] == "–"
    assert np.isnan(found.differences()["age"])


def test_refusals_come_before_any_party_is_asked():
    federation = hospitals()
    for error, settings in (
        (MissingColumn, {"columns": ["agee"]}),
        (SchemaInvalid, {"group": "age"}),
        (SchemaInvalid, {"columns": ["sex"], "group": "sex"}),
        (SettingsInvalid, {"medians": ["sex"]}),
        (SettingsInvalid, {"least": -1}),
    ):
        with pytest.raises(error):
            table_one(federation, **settings)
    assert len(federation.ledger) == 0


def test_the_dots_are_the_differences():
    found = table_one(hospitals(), ["age", "sex"], "death_event")
    assert found.dots().marks[0][1] == pytest.approx(tuple(found.differences().values()))
    assert "<svg" in found.plot()._repr_svg_()


def test_all_cells_of_a_row_have_as_many_decimals():
    frame = table_one(hospitals(), ["age", "platelets", "serum_creatinine"], "death_event", medians=["age"]).to_frame()
    for cells in frame[["all", "0", "1"]].iloc[1:].to_numpy():
        decimals = {len(part.rstrip(")],").partition(".")[2]) for cell in cells for part in cell.split() if "." in part}
        assert len(decimals) <= 1, list(cells)


# ---- what a reader can compute --------------------------------------------------------------------------------------
def test_small_counts_do_not_follow_from_a_sum_of_many():
    # Of multiples of 5: below 5, below 5, 5 and their sum 5, which is 7 at most, so that only 1, 1 and 5 fit.
    stage = ["I", "II"] + ["III"] * 5
    table = hr.data.Table.from_frame(pandas.DataFrame({"stage": stage, "x": np.arange(7.0)}))
    found = table_one(hr.simulate(table, hr.data.iid(parties=2), seed=0), ["stage"])
    assert found.multiple == 10
    assert found.to_frame()["all"].tolist() == ["below 10", "", *["below 10"] * 3]
    sums = ShownCounts(np.array([1.0, 1.0, 5.0, 7.0]), np.ones(4, bool), [(3, np.arange(3))])
    low, high = narrowed(sums, *ends_of(sums, 5))
    assert (low == high).all()
    assert multiple_for(sums, 5) == 10


def test_plotted_differences_are_those_of_the_counts_that_are_shown():
    rows = {"arm": ["a"] * 40 + ["b"] * 43, "sex": (["m"] * 17 + ["f"] * 23) + (["m"] * 22 + ["f"] * 21)}
    rows["stage"] = ["r"] * 2 + ["q"] * 38 + ["r"] * 23 + ["q"] * 20
    federation = hr.simulate(hr.data.Table.from_frame(pandas.DataFrame(rows)), hr.data.iid(parties=2), seed=0)
    found = table_one(federation, ["sex", "stage"], "arm")
    (_, values), *_ = found.dots().marks
    assert found.dots().names == ("sex",)
    assert f"{values[0]:.3f}" == found.to_frame().loc["sex", "difference"]
    assert found.multiple == 5
