"""Regressions over columns that lie apart equal those of the pooled records, in fixed point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_apart import InMemory
from sklearn.linear_model import ElasticNet, Lasso, Ridge

from hedgerow.core import Party
from hedgerow.crypto.cross.bits import Bits, ColumnReach, Products, choose, record_bound
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import (
    ColumnsDiffer,
    DisclosureExceeded,
    FormulaInvalid,
    MissingColumn,
    NotBinary,
    NotConverged,
    NotIdentified,
    RangeExceeded,
    SchemaInvalid,
    Separated,
    SettingsInvalid,
    TooFewRecords,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.stats.factors import Levels, Number, Term
from hedgerow.vertical.design import HeldColumns, apart
from hedgerow.vertical.glm import logistic_regression, poisson_regression
from hedgerow.vertical.gram import gram
from hedgerow.vertical.linear import lasso, linear_regression, ridge
from hedgerow.vertical.predictors import Openings
from hedgerow.vertical.terms import CONSTANT, OwnTerm, own_units

N = 600
BANK = Schema(
    (
        Column("loan", "integer", low=500, high=35_000),
        Column("rate", "number", low=5, high=25),
        Column("grade", "category", levels=("A", "B", "C")),
    )
)
BUREAU = Schema(
    (
        Column("age", "integer", low=18, high=90),
        Column("open", "integer", low=0, high=40),
        Column("years", "number", low=0.5, high=4),
        Column("default", "binary"),
        Column("visits", "integer", low=0, high=60),
        Column("spent", "number", low=-200, high=400),
    )
)


def tables(n: int = N, seed: int = 0) -> dict[str, Table]:
    """A bank and a bureau with columns of the same people."""
    rng = np.random.default_rng(seed)
    loan, rate, grade = rng.integers(500, 35_001, n), np.round(rng.uniform(5, 25, n), 2), rng.integers(0, 3, n)
    age, opened, years = rng.integers(18, 91, n), rng.integers(0, 41, n), np.round(rng.uniform(0.5, 4, n), 3)
    eta = -3 + 0.08 * rate + 0.5 * (grade == 2) + 0.01 * age - 0.02 * opened + loan / 35_000
    default = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    visits = np.minimum(rng.poisson(years * np.exp(0.2 + 0.01 * age - 0.3 * (grade == 1))), 60)
    spent = np.clip(3 * rate - 0.5 * age + 10 * (grade == 1) + rng.normal(0, 20, n), -200, 400)
    return {
        "bank": Table({"loan": loan * 1.0, "rate": rate, "grade": grade}, BANK, "bank"),
        "bureau": Table(
            {
                "age": age * 1.0,
                "open": opened * 1.0,
                "years": years,
                "default": default,
                "visits": visits * 1.0,
                "spent": spent,
            },
            BUREAU,
            "bureau",
        ),
    }


TABLES = tables()
FORMULA = "rate + loan + grade + age + open"


def in_memory(**settings: object) -> InMemory:
    return InMemory(TABLES, **settings)  # type: ignore[arg-type]


def pooled(names: tuple[str, ...]) -> np.ndarray:
    """The design of the pooled records, by names of coefficients."""
    both = {name: np.asarray(table[name], float) for table in TABLES.values() for name in table.schema.names}
    columns = {"Intercept": np.ones(N)} | both | {f"grade[T.{w}]": (both["grade"] == i) * 1.0 for i, w in enumerate("ABC")}
    columns |= {f"grade[{w}]": (both["grade"] == i) * 1.0 for i, w in enumerate("ABC")}
    columns |= {"I(age ** 2)": both["age"] ** 2, "log(loan)": np.log(both["loan"])}
    columns |= {f"rate:grade[T.{w}]": both["rate"] * (both["grade"] == i) for i, w in enumerate("ABC")}
    return np.column_stack([columns[name] for name in names])


def deviation(names: tuple[str, ...]) -> np.ndarray:
    """Standard deviations of columns: differences of coefficients are told in these units."""
    found = pooled(names).std(0)
    return np.where(found > 0, found, 1.0)


@pytest.mark.parametrize(
    "right",
    [FORMULA, "rate * grade + I(age ** 2) + age + log(loan)", "0 + rate + age", "0 + grade + age"],
    ids=["plain", "products", "no constant", "levels for a constant"],
)
def test_a_linear_regression_is_the_pooled_one(right: str) -> None:
    fit = linear_regression(in_memory(), f"spent ~ {right}")
    X, y = pooled(fit.names), np.asarray(TABLES["bureau"]["spent"])
    golden = sm.OLS(y, X).fit(method="qr")
    assert np.abs((fit.coef_ - golden.params) / golden.bse).max() < 1e-6
    np.testing.assert_allclose(fit.se_, golden.bse, rtol=1e-6)
    np.testing.assert_allclose(fit.conf_int(), golden.conf_int(), rtol=1e-5, atol=1e-5)
    assert fit.r_squared == pytest.approx(golden.rsquared, abs=1e-8)
    assert fit.f_test is None or fit.f_test[0] == pytest.approx(golden.fvalue, rel=1e-4)
    assert fit.n_records == N
    assert "standard" not in fit.protection
    assert len(fit.summary().splitlines()) > 10


def test_a_linear_regression_of_whole_numbers_is_the_pooled_one_to_rounding() -> None:
    """Whole centres and powers of two keep whole numbers exact."""
    fit = linear_regression(in_memory(), "visits ~ loan + grade + age + open")
    golden = sm.OLS(np.asarray(TABLES["bureau"]["visits"]), pooled(fit.names)).fit()
    np.testing.assert_allclose(fit.coef_, golden.params, rtol=1e-9)
    np.testing.assert_allclose(fit.se_, golden.bse, rtol=1e-9)


def test_a_logistic_regression_is_the_pooled_one() -> None:
    both = in_memory()
    fit = logistic_regression(both, f"default ~ {FORMULA}")
    golden = sm.Logit(np.asarray(TABLES["bureau"]["default"]), pooled(fit.names)).fit(disp=0, tol=1e-10)
    assert np.abs((fit.coef_ - golden.params) * deviation(fit.names)).max() < 1e-6
    np.testing.assert_allclose(fit.se_, golden.bse, rtol=3e-5)
    assert fit.log_likelihood == pytest.approx(golden.llf, abs=1e-3)
    assert fit.r_squared == pytest.approx(golden.prsquared, abs=1e-5)
    assert len(both.opened) == fit.rounds <= 5


def test_a_logistic_regression_of_whole_numbers_is_the_pooled_one_to_the_grid() -> None:
    fit = logistic_regression(in_memory(), "default ~ loan + grade + age + open")
    golden = sm.Logit(np.asarray(TABLES["bureau"]["default"]), pooled(fit.names)).fit(disp=0, tol=1e-10, maxiter=100)
    assert np.abs((fit.coef_ - golden.params) * deviation(fit.names)).max() < 1e-7
    np.testing.assert_allclose(fit.se_, golden.bse, rtol=5e-6)


def test_a_poisson_regression_is_the_pooled_one() -> None:
    both = in_memory()
    fit = poisson_regression(both, "visits ~ grade + age + open", offset="log(years)")
    y, exposure = np.asarray(TABLES["bureau"]["visits"]), np.log(np.asarray(TABLES["bureau"]["years"]))
    golden = sm.GLM(y, pooled(fit.names), sm.families.Poisson(), offset=exposure).fit(tol=1e-14)
    assert np.abs((fit.coef_ - golden.params) * deviation(fit.names)).max() < 1e-6
    np.testing.assert_allclose(fit.se_, golden.bse, rtol=1e-5)
    assert fit.log_likelihood == pytest.approx(golden.llf, abs=1e-3)
    assert fit.deviance == pytest.approx(golden.deviance, abs=1e-3)
    assert fit.null_deviance is None
    without = poisson_regression(both, "visits ~ grade + age + open")
    golden = sm.GLM(y, pooled(fit.names), sm.families.Poisson()).fit(tol=1e-14)
    assert without.null_deviance == pytest.approx(golden.null_deviance, abs=1e-3)


@pytest.mark.parametrize("standardised", [False, True])
def test_ridge_and_lasso_are_those_of_scikit_learn(standardised: bool) -> None:
    X, y = pooled(("rate", "grade[T.B]", "grade[T.C]", "age", "open")), np.asarray(TABLES["bureau"]["spent"])
    scale = X.std(0) if standardised else np.ones(5)
    for l1_ratio, model in (
        (0.0, Ridge(alpha=0.7 * N)),
        (1.0, Lasso(alpha=0.7, tol=1e-12)),
        (0.4, ElasticNet(alpha=0.7, l1_ratio=0.4, tol=1e-12)),
    ):
        golden = model.fit(X / scale, y)
        ask = {"penalty": 0.7, "standardised": standardised}
        formula = "spent ~ rate + grade + age + open"
        fit = ridge(in_memory(), formula, **ask) if l1_ratio == 0 else lasso(in_memory(), formula, l1_ratio=l1_ratio, **ask)
        order = [fit.names.index(name) for name in ("rate", "grade[T.B]", "grade[T.C]", "age", "open")]
        np.testing.assert_allclose(fit.coef_[order], golden.coef_ / scale, atol=1e-6)
        assert fit.coef_[0] == pytest.approx(golden.intercept_, abs=1e-5)
        assert fit.n_records == N
        assert f"records {N}" in fit.summary()


# ---- fixed point ----------------------------------------------------------------------------------------------------
def test_v4_units_have_a_whole_centre_and_a_power_of_two_for_a_scale() -> None:
    for low, high in ((18, 90), (0, 1), (9000, 30_000), (0.001, 0.002), (-1, 0.5), (1e6, 1e6 + 0.5), (7, 7)):
        schema = Schema((Column("x", "number", low=low, high=high),))
        one = own_units(Term((Number("x"),)), schema)
        assert np.frexp(one.scale)[0] == 0.5
        assert (low >= 1 and high - low < 1) or one.centre == round(one.centre) or high - low < 1
        reach = max(abs(low - one.centre), abs(high - one.centre)) / one.scale
        assert reach <= 1.0
        assert reach > 0.5 or high == low
        assert one.reach == pytest.approx(reach if reach else 1.0)


def test_v4_a_tolerance_below_the_grid_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match="fixed-point"):
        logistic_regression(in_memory(), "default ~ rate + age", tol=1e-10)


@given(st.data())
@settings(max_examples=30)
def test_whatever_a_record_holds_within_its_ranges_its_row_is_within_what_is_declared(data: st.DataObject) -> None:
    """Noise is scaled by reaches, which follow from declared ranges alone."""
    low = data.draw(st.floats(-1e4, 1e4))
    high = low + data.draw(st.floats(0, 1e4))
    schema = Schema((Column("x", "number", low=low, high=high), Column("g", "category", levels=("a", "b", "c"))))
    text = data.draw(st.sampled_from(["x", "I(x ** 2)", "I(3 - 2 * x)", "abs(x)", "I(x > 7)"]))
    factors = (Number(text), Levels("g", "g", (1, 2), ("b", "c"), full=False))[: data.draw(st.integers(1, 2))]
    one = own_units(Term(factors), schema, centred=data.draw(st.booleans()))
    x = np.array(data.draw(st.lists(st.floats(low, high), min_size=1, max_size=5)))
    g = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(x), max_size=len(x))))
    rows = one.columns(Party("bank", {"x": x, "g": g}, np.ones(len(x))))
    assert (np.abs(rows) <= one.reach * (1 + 1e-9)).all()
    held = HeldColumns.of(("bank", "bureau"), [("bureau", CONSTANT), ("bank", one)])
    row = np.concatenate([np.ones((len(x), 1)), rows], axis=1)
    bound = record_bound(Products(100, (rows.shape[1], 1), 0, tuple(held.reaches().values())), Bits(20))
    products = row[:, :, None] * row[:, None, :]
    added = np.sqrt((np.triu(products) ** 2).sum((1, 2)))
    assert (added <= bound.radius * (1 + 1e-4) + 1e-4).all()


def test_v5_what_leaves_no_room_in_the_ring_is_refused_before_anybody_is_asked() -> None:
    """Bits follow from n and declared reaches; weights are scaled to a quarter, whatever means are."""
    held = HeldColumns.of(("bank", "bureau"), [("bureau", CONSTANT), ("bank", OwnTerm(Term((Number("rate"),))))])
    asked = Products(10**6, (1, 1), 0, tuple(held.reaches().values()), (), ColumnReach((0.25,)), True)
    found = choose(asked)
    assert found.left >= 12
    assert 2 * found.left + found.weight + np.log2(10**6 * 0.25) < 63
    with pytest.raises(RangeExceeded):
        choose(replace(asked, hub_reach=ColumnReach((2.0**30,))))


# ---- refusals, before anybody is asked ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("formula", "error", "says"),
    [
        ("default ~ rate + wealth", MissingColumn, "wealth"),
        ("default ~ rate:age", FormulaInvalid, "several parties"),
        ("default ~ I(rate * age)", FormulaInvalid, "several parties"),
        ("I(rate > age) ~ rate + age", FormulaInvalid, "several parties"),
        ("spent ~ rate", NotBinary, "spent"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(formula: str, error: type[Exception], says: str) -> None:
    both = in_memory()
    with pytest.raises(error, match=says) as caught:
        logistic_regression(both, formula)
    assert not both.asked
    assert "No party was asked" in str(caught.value)


def test_a_column_of_two_owners_is_refused_where_a_formula_names_it() -> None:
    twice = {"bank": TABLES["bank"], "bureau": TABLES["bureau"]}
    schema = Schema((*BANK.columns, Column("age", "integer", low=0, high=99)))
    twice["bank"] = Table({**TABLES["bank"].columns, "age": TABLES["bureau"]["age"]}, schema, "bank")
    both = InMemory(twice)
    with pytest.raises(ColumnsDiffer, match="bank and bureau"):
        linear_regression(both, "spent ~ rate + age")
    assert not both.asked
    assert linear_regression(both, "spent ~ rate + open").n_records == N


def test_a_range_that_is_not_declared_is_refused_with_the_remedy() -> None:
    loose = Schema((Column("loan", "integer"), *BANK.columns[1:]))
    both = InMemory(TABLES | {"bank": Table(dict(TABLES["bank"].columns), loose, "bank")})
    with pytest.raises(UnboundedSum, match="loan") as caught:
        linear_regression(both, "spent ~ loan + age")
    assert "Declare its ends" in str(caught.value)
    assert not both.asked


def test_values_that_may_be_missing_and_record_weights_are_refused() -> None:
    lacking = Schema((Column("loan", "integer", low=0, high=35_000, optional=True), *BANK.columns[1:]))
    with pytest.raises(SchemaInvalid, match="missing"):
        apart({"bank": lacking, "bureau": BUREAU}, N, "spent ~ loan", "gaussian")
    weighed = Schema((Column("loan", "integer", "weight", low=0, high=35_000), *BANK.columns[1:]))
    with pytest.raises(SettingsInvalid, match="weights"):
        apart({"bank": weighed, "bureau": BUREAU}, N, "spent ~ rate", "gaussian")


def test_as_many_columns_as_people_are_refused() -> None:
    few = {name: table.take(range(6)) for name, table in TABLES.items()}
    both = InMemory(few, least=2)
    with pytest.raises(DisclosureExceeded, match="6 common"):
        linear_regression(both, "spent ~ rate + loan + grade + age")
    assert not both.asked


def test_columns_that_depend_on_another_partys_are_named() -> None:
    copied = Schema((*BANK.columns, Column("months", "integer", low=216, high=1080)))
    bank = Table({**TABLES["bank"].columns, "months": 12 * np.asarray(TABLES["bureau"]["age"])}, copied, "bank")
    with pytest.raises(NotIdentified, match="'months'"):
        linear_regression(InMemory(TABLES | {"bank": bank}), "spent ~ rate + months + age")


def test_v2_a_party_may_not_have_the_seat_of_linear_predictors() -> None:
    both = in_memory()
    with pytest.raises(UnlawfulChannel, match="every value of those columns"):
        logistic_regression(both, "default ~ rate + age", seat="bureau")
    assert not both.asked


def test_v11_a_column_that_singles_out_few_people_is_refused_at_home() -> None:
    rare = np.zeros(N)
    rare[:4] = 1
    bank = Table({**TABLES["bank"].columns, "rare": rare}, Schema((*BANK.columns, Column("rare", "binary"))), "bank")
    both = InMemory(TABLES | {"bank": bank})
    with pytest.raises(TooFewRecords, match="singles out 4 of 600"):
        linear_regression(both, "spent ~ rare + age")
    nearly = (np.asarray(TABLES["bureau"]["age"]) > 50) * 1.0
    nearly[:4] = 1 - nearly[:4]
    pair = Table({**TABLES["bureau"].columns, "default": nearly}, BUREAU, "bureau")
    with pytest.raises(TooFewRecords, match=r"column 2 of .* singles out 4 of 600"):
        linear_regression(InMemory(TABLES | {"bureau": pair}), "spent ~ default + I(age > 50) + rate")
    grade = np.where(np.arange(N) < 4, 0, 1 + np.arange(N) % 2)
    third = Table({**TABLES["bank"].columns, "grade": grade}, BANK, "bank")
    with pytest.raises(TooFewRecords):
        linear_regression(InMemory(TABLES | {"bank": third}), "spent ~ grade + age")
    bank = Table({**bank.columns, "rare": 1 - rare}, bank.schema, "bank")
    with pytest.raises(TooFewRecords):
        linear_regression(InMemory(TABLES | {"bank": bank}), "spent ~ rare + age")


# ---- openings -------------------------------------------------------------------------------------------------------
def test_openings_whose_rows_can_be_linked_are_capped_by_the_fewest_columns() -> None:
    cap = Openings(most=10, most_linked=2)
    cap.admit(float("inf"), 0.0)
    for moved in (5.0, 0.4, 0.2):
        cap.admit(moved, 0.1)
    assert (cap.times, cap.linked) == (4, 2)
    with pytest.raises(DisclosureExceeded, match="3 openings"):
        cap.admit(0.01, 0.1)


def test_every_opening_is_counted_and_the_cap_holds() -> None:
    both = in_memory()
    with pytest.raises(NotConverged, match="after 2 openings"):
        logistic_regression(both, f"default ~ {FORMULA}", openings=2)
    assert len(both.opened) == 2


def test_separated_classes_are_refused_by_name() -> None:
    bank = Table(
        {**TABLES["bank"].columns, "known": np.asarray(TABLES["bureau"]["default"])},
        Schema((*BANK.columns, Column("known", "binary"))),
        "bank",
    )
    with pytest.raises(Separated, match="known"):
        logistic_regression(InMemory(TABLES | {"bank": bank}), "default ~ known + age")


def test_the_hub_gets_rows_in_an_order_of_its_own_each_time() -> None:
    both = in_memory()
    logistic_regression(both, f"default ~ {FORMULA}")
    first, last = both.opened[-2][:, 0], both.opened[-1][:, 0]
    assert not np.allclose(first, last, atol=1e-2)
    assert np.allclose(np.sort(first), np.sort(last), atol=1e-2)


def test_the_hub_reads_rows_of_few_values_from_one_linear_predictor_and_knows_nobodys_name() -> None:
    """What is assumed of the hub is needed: coefficients are public, and 9 000 possible rows have as many predictors."""
    both = in_memory()
    fit = logistic_regression(both, "default ~ grade + age + open")
    grades, ages, opened = np.meshgrid(np.arange(3), np.arange(18, 91), np.arange(41), indexing="ij")
    possible = np.column_stack([np.ones(grades.size), grades.ravel() == 1, grades.ravel() == 2, ages.ravel(), opened.ravel()])
    predictors = possible @ fit.coef_  # the step after the last opening is below what sets these apart
    order = np.argsort(predictors)
    place = np.clip(np.searchsorted(predictors[order], both.opened[-1][:, 0]), 1, len(order) - 1)
    seen = both.opened[-1][:, 0]
    nearer = np.where(seen - predictors[order][place - 1] < predictors[order][place] - seen, place - 1, place)
    read = np.sort(order[nearer])
    codes = (
        np.asarray(TABLES["bank"]["grade"], int),
        np.asarray(TABLES["bureau"]["age"], int),
        np.asarray(TABLES["bureau"]["open"], int),
    )
    true = np.sort(np.ravel_multi_index((codes[0], codes[1] - 18, codes[2]), (3, 73, 41)))
    assert (read == true).mean() > 0.9
    coarse = in_memory()
    rough = logistic_regression(coarse, "default ~ grade + age + open", places=8)
    assert np.abs((rough.coef_ - fit.coef_) / fit.se_).max() < 0.01
    assert len(np.unique(coarse.opened[-1])) < 0.8 * len(np.unique(both.opened[-1]))


# ---- noise ----------------------------------------------------------------------------------------------------------
def test_noise_in_products_leaves_coefficients_and_no_standard_errors() -> None:
    exact, noisy = (linear_regression(in_memory(noise=z), "spent ~ rate + age") for z in (0.0, 0.05))
    assert np.abs(noisy.coef_ - exact.coef_).max() < 1
    assert not np.array_equal(noisy.coef_, exact.coef_)
    assert np.isnan(noisy.se_).all()
    assert noisy.r_squared is None
    assert "no standard errors" in noisy.protection
    with pytest.raises(UnlawfulChannel):
        logistic_regression(in_memory(noise=0.05), "default ~ rate + age")
    with pytest.raises(UnlawfulChannel):
        lasso(in_memory(noise=0.05), "spent ~ rate + age", penalty=0.1)
    assert ridge(in_memory(noise=0.05), "spent ~ rate + age", penalty=0.1).coef_.shape == (3,)


def test_a_gram_matrix_is_bounded_by_declared_ranges_alone() -> None:
    """Whatever the records: the most that one moves the products is the bound, and some record reaches it."""
    corner = {
        "bank": Table({"loan": np.full(40, 35_000.0), "rate": np.full(40, 25.0), "grade": np.zeros(40, int)}, BANK, "bank"),
        "bureau": TABLES["bureau"].take(range(40)),
    }
    both = InMemory(corner, least=0)
    schemas = both.schemas
    one = own_units(Term((Number("rate"),)), schemas["bank"])
    gram(both, [("bank", one)])
    (_, bound) = both.asked[-1]
    assert bound.left["bank"].largest == (1.0, one.reach)
    assert bound.left["bureau"].largest == ()
    assert one.columns(Party("bank", {"rate": np.array([25.0])}, np.ones(1))) == one.reach
