"""Means by group, tables and correlations of columns that lie apart; and groups of few people, which are not told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_apart import InMemory
from scipy.stats import chi2_contingency
from sklearn.decomposition import PCA
from statsmodels.stats.outliers_influence import variance_inflation_factor

from hedgerow.data import Column, Schema, Table
from hedgerow.errors import DisclosureExceeded, NotIdentified, SchemaInvalid, SettingsInvalid, TooFewRecords
from hedgerow.vertical.associations import correlation, pca, vif
from hedgerow.vertical.groups import contingency, hidden_cells, hidden_levels, hidden_shares, means

N = 300
TAX = Schema((Column("salary", "integer", low=0, high=200_000), Column("rich", "binary")))
TOWN = Schema(
    (
        Column("gender", "category", levels=("woman", "man")),
        Column("street", "category", levels=("Elm", "Oak", "Ash", "Fir")),
        Column("age", "integer", low=0, high=120),
        Column("rooms", "number", low=1, high=12),
    )
)
_rng = np.random.default_rng(4)
GENDER, STREET = _rng.integers(0, 2, N), _rng.choice(4, N, p=[0.4, 0.35, 0.22, 0.03])
AGE, SALARY = _rng.integers(18, 90, N) * 1.0, _rng.integers(10_000, 90_000, N) * 1.0
ROOMS = np.clip(np.round(SALARY / 15_000 + _rng.normal(2, 1, N), 1), 1, 12)
TABLES = {
    "tax": Table({"salary": SALARY, "rich": (SALARY > 60_000) * 1.0}, TAX, "tax"),
    "town": Table({"gender": GENDER, "street": STREET, "age": AGE, "rooms": ROOMS}, TOWN, "town"),
}


def in_memory(**settings: object) -> InMemory:
    return InMemory(TABLES, **settings)  # type: ignore[arg-type]


def few(codes: np.ndarray) -> dict[str, Table]:
    """The tables with other streets."""
    return TABLES | {"town": Table({**TABLES["town"].columns, "street": codes}, TOWN, "town")}


# ---- means ----------------------------------------------------------------------------------------------------------
def test_means_by_a_column_elsewhere_are_the_pooled_ones() -> None:
    both = in_memory()
    found = means(both, ["salary", "age"], by="gender")
    frame = pd.DataFrame({"salary": SALARY, "age": AGE, "gender": GENDER})
    golden = frame.groupby("gender").mean()
    np.testing.assert_allclose(found[["salary", "age"]], golden, rtol=1e-12)
    assert found["count"].tolist() == np.bincount(GENDER).tolist()
    assert len(both.asked) == 1
    by_tax = means(both, "age", by="rich")
    np.testing.assert_allclose(by_tax["age"], frame.groupby(SALARY > 60_000)["age"].mean(), rtol=1e-12)


def test_v11_a_group_of_few_people_never_leaves_its_party() -> None:
    """Fir has eight people: its indicators are zeros at home, so that no total that is opened is about them."""
    assert np.bincount(STREET)[3] == 8
    both = in_memory()
    found = means(both, "salary", by="street")
    assert found.loc["Fir"].isna().all()
    told = found["count"].dropna()
    assert N - told.sum() >= 10, "the people who are left out are not few, so the smallest other group is left out too"
    assert found["salary"].notna().sum() == len(told) == 2
    golden = pd.Series(SALARY).groupby(STREET).mean()
    np.testing.assert_allclose(found["salary"].dropna(), golden[[0, 1]], rtol=1e-12)


def test_v11_the_last_person_is_not_found_by_adding_and_taking_away() -> None:
    """All but three people are of one group: neither it nor they are told, and a mean of everybody stays safe."""
    codes = np.zeros(N, int)
    codes[:3] = 1
    both = InMemory(few(codes))
    with pytest.raises(DisclosureExceeded, match="street"):
        means(both, "salary", by="street")


def test_v11_a_mean_of_zeros_and_ones_that_counts_few_people_of_a_group_is_not_told() -> None:
    rich = (GENDER == 1) * 1.0
    rich[np.flatnonzero(GENDER == 0)[:4]] = 1
    tax = Table({"salary": SALARY, "rich": rich}, TAX, "tax")
    found = means(InMemory(TABLES | {"tax": tax}), ["rich", "age"], by="gender")
    assert found["rich"].isna().all(), "the rich of both groups less the rich men are the four"
    assert found["age"].notna().all()


def test_v11_few_ones_of_a_group_are_not_found_from_the_columns_total() -> None:
    """Four rich people of Elm are left out with those of another street, so the total less the rest is not four."""
    rich = (np.arange(N) % 3 == 0) * 1.0
    rich[(STREET == 0) | (STREET == 3)] = 0
    rich[np.flatnonzero(STREET == 0)[:4]] = 1
    tax = Table({"salary": SALARY, "rich": rich}, TAX, "tax")
    both, streets = TABLES | {"tax": tax}, np.where(STREET == 3, 2, STREET)
    found = means(InMemory(both | {"town": few(streets)["town"]}), "rich", by="street")
    assert np.isnan(found.loc["Elm", "rich"])
    told = found["rich"].notna()
    assert told.any()
    assert rich.sum() - (found["count"] * found["rich"])[told].sum() >= 10
    assert means(InMemory(both), "rich", by="street").loc[["Elm", "Ash", "Fir"], "rich"].isna().all()


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=8, max_size=8), st.integers(1, 12), st.integers(0, 1))
def test_v11_means_that_are_left_out_have_no_few_ones_or_zeros_together(cells: list[int], least: int, others: int) -> None:
    counts = np.array(cells, dtype=float).reshape(4, 2)
    hidden = hidden_shares(counts, counts.sum() + others, least)
    assert not ((counts[~hidden] > 0) & (counts[~hidden] < least)).any()
    for cell in counts.T:
        together = cell[hidden].sum()
        assert together >= least or (together == 0 and not others) or not (cell[~hidden] > 0).any()


def test_a_table_says_that_cells_beside_small_ones_are_not_told_either() -> None:
    found = contingency(in_memory(), "rich", "street", least=30)
    large = pd.crosstab(SALARY > 60_000, STREET).to_numpy()[found.counts.isna().to_numpy()]
    assert (large >= 30).any()
    assert f"{found.withheld} cells are not told" in str(found)
    assert "or a total of their row" in str(found)


def test_v11_a_caller_may_ask_for_more_people_and_not_for_fewer() -> None:
    assert means(in_memory(), "salary", by="street", least=80)["count"].notna().sum() == 2
    assert means(in_memory(least=5), "salary", by="street", least=1).loc["Fir", "count"] == 8
    assert means(in_memory(), "salary", by="street", least=1).loc["Fir"].isna().all()


def test_through_noise_no_group_is_left_out() -> None:
    """What is left out would depend on single people; noise is what protects them."""
    found = means(in_memory(noise=0.5), "salary", by="street")
    assert found["count"].notna().all()
    assert (found["count"] != np.rint(found["count"])).all()


@settings(max_examples=40)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 12))
def test_v11_levels_that_are_not_told_are_nobody_or_enough_people(counts: list[int], least: int) -> None:
    found = np.array(counts)
    hidden = hidden_levels(found, least)
    told = found[~hidden]
    assert not ((told > 0) & (told < least)).any()
    assert found[hidden].sum() == 0 or found[hidden].sum() >= least or not told.any()


def test_means_refuse_what_they_cannot_read() -> None:
    both = in_memory()
    for names, by in ((["street"], "gender"), (["salary"], "age")):
        with pytest.raises(SchemaInvalid):
            means(both, names, by=by)
    assert not both.asked


# ---- tables ---------------------------------------------------------------------------------------------------------
def test_a_table_and_its_test_are_the_pooled_ones() -> None:
    found = contingency(in_memory(), "rich", "gender")
    golden = pd.crosstab(SALARY > 60_000, GENDER)
    np.testing.assert_array_equal(found.counts, golden)
    reference = chi2_contingency(golden, correction=False)
    assert found.test is not None
    assert found.test.statistic == pytest.approx(reference.statistic)
    assert found.test.p_value == pytest.approx(reference.pvalue)
    assert found.withheld == 0
    assert "chi-square" in str(found)


def test_v11_cells_of_few_people_are_not_told_nor_found_from_their_row() -> None:
    found = contingency(in_memory(), "rich", "street", least=30)
    golden = pd.crosstab(SALARY > 60_000, STREET).to_numpy().astype(float)
    shown = found.counts.to_numpy()
    there = ~np.isnan(shown)
    assert (shown[there] == golden[there]).sum() >= 2
    assert found.test is None
    assert found.withheld == (~there).sum() > 0
    assert not ((shown[there] > 0) & (shown[there] < 30)).any()


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=6, max_size=6), st.integers(2, 12))
def test_v11_what_is_left_out_of_a_row_or_column_is_enough_people(cells: list[int], least: int) -> None:
    counts = np.array(cells, dtype=float).reshape(2, 3)
    hidden = hidden_cells(counts, counts.sum(), least)
    shown = np.where(hidden, np.nan, counts)
    assert not ((shown > 0) & (shown < least)).any()
    for line, mark in [*zip(counts, hidden, strict=True), *zip(counts.T, hidden.T, strict=True)]:
        together = line[mark].sum()
        assert together == 0 or mark.all() or (together >= least and mark.sum() > 1)


def test_v11_totals_of_rows_and_columns_do_not_restore_a_cell() -> None:
    counts = np.array([[3.0, 12, 50], [40, 60, 70], [15, 80, 90]])
    hidden = hidden_cells(counts, counts.sum(), 10)
    assert hidden[0, 0]
    assert hidden.sum() < hidden.size
    rows, columns = counts.sum(1), counts.sum(0)
    found = np.where(hidden, np.nan, counts)
    for _ in range(6):
        for lines, totals in ((found, rows), (found.T, columns)):
            for line, total in zip(lines, totals, strict=True):
                if np.isnan(line).sum() == 1:
                    line[np.isnan(line)] = total - np.nansum(line)
    assert np.isnan(found[hidden]).all()


# ---- correlations ---------------------------------------------------------------------------------------------------
def test_correlations_inflation_and_components_are_the_pooled_ones() -> None:
    names = ["salary", "age", "rooms"]
    X = np.column_stack([SALARY, AGE, ROOMS])
    both = in_memory()
    np.testing.assert_allclose(correlation(both, names), np.corrcoef(X.T), atol=1e-7)
    with_constant = np.column_stack([np.ones(N), X])
    np.testing.assert_allclose(vif(both, names), [variance_inflation_factor(with_constant, i) for i in (1, 2, 3)], rtol=1e-6)
    assert len(both.asked) == 2
    scaled = (X - X.mean(0)) / X.std(0, ddof=1)
    for standardised, values in ((True, scaled), (False, X)):
        golden = PCA(2).fit(values)
        found = pca(both, names, components=2, standardised=standardised)
        np.testing.assert_allclose(found.variance, golden.explained_variance_, rtol=1e-6)
        np.testing.assert_allclose(found.share, golden.explained_variance_ratio_, rtol=1e-6)
        np.testing.assert_allclose(np.abs(found.axes), np.abs(golden.components_), atol=1e-5)
    assert found.to_frame().shape == (3, 2)


def test_correlations_of_constants_and_copies_are_refused() -> None:
    flat = TABLES | {"tax": Table({"salary": np.full(N, 7.0), "rich": TABLES["tax"]["rich"]}, TAX, "tax")}
    with pytest.raises(NotIdentified, match="salary"):
        correlation(InMemory(flat), ["salary", "age"])
    twice = Schema((Column("age2", "integer", low=0, high=240),))
    with pytest.raises(NotIdentified):
        vif(InMemory(TABLES | {"tax": Table({"age2": 2 * AGE}, twice, "tax")}), ["age", "age2"])
    with pytest.raises(SettingsInvalid):
        pca(in_memory(), ["age", "rooms"], components=0)


def test_v11_a_column_of_few_ones_has_no_correlation() -> None:
    rich = np.zeros(N)
    rich[:6] = 1
    with pytest.raises(TooFewRecords):
        correlation(InMemory(TABLES | {"tax": Table({"salary": SALARY, "rich": rich}, TAX, "tax")}), ["rich", "age"])
