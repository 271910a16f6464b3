"""Predictions by regressions over columns that lie apart equal those of the pooled columns, for whoever may know them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import (
    ColumnsDiffer,
    DisclosureExceeded,
    MissingColumn,
    PartyDeclined,
    SchemaInvalid,
    SettingsInvalid,
    UnlawfulChannel,
)
from hedgerow.vertical import X25519, lasso, linear_regression, logistic_regression, poisson_regression, predict, ridge
from hedgerow.vertical.predict import parts_of

ID = Column("nin", "integer", role="ignore", low=0, high=400)
COLUMNS = {
    "bank": (Column("rate", "number", low=5, high=25), Column("grade", "category", levels=("A", "B", "C"))),
    "town": (Column("age", "integer", low=18, high=90), Column("years", "number", low=0.5, high=4)),
    "clinic": (Column("pulse", "integer", low=40, high=120), Column("dose", "number", low=0, high=2)),
}
TARGETS = (
    Column("ill", "binary"),
    Column("visits", "integer", low=0, high=40),
    Column("spent", "number", low=-200, high=400),
)
RIGHT = "rate + grade + age + I(age ** 2) + pulse + dose"
MATRIX = ["Intercept", "rate", "B", "C", "age", "squared", "pulse", "dose"]


def people(seed: int, n: int = 220, *, targets: bool = True) -> tuple[dict[str, Table], dict[str, np.ndarray]]:
    """Tables of three parties in orders of their own, and the pooled columns."""
    rng = np.random.default_rng(seed)
    c: dict[str, np.ndarray] = {
        "nin": rng.permutation(400)[:n] * 1.0,
        "rate": rng.uniform(5, 25, n).round(4),
        "grade": rng.integers(0, 3, n),
        "age": rng.integers(18, 91, n) * 1.0,
        "years": rng.uniform(0.5, 4, n).round(3),
        "pulse": rng.integers(40, 121, n) * 1.0,
        "dose": rng.uniform(0, 2, n).round(2),
    }
    eta = -2 + 0.1 * c["rate"] + 0.6 * (c["grade"] == 2) - 0.01 * c["age"] + 0.4 * c["dose"]
    c["ill"] = (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0
    c["visits"] = np.minimum(rng.poisson(c["years"] * np.exp(0.3 * eta)), 40) * 1.0
    c["spent"] = np.clip(20 * eta + rng.normal(0, 20, n), -200, 400)
    tables = {}
    for party, columns in COLUMNS.items():
        own = (ID, *columns, *(TARGETS if targets and party == "town" else ()))
        order = rng.permutation(n)
        tables[party] = Table({one.name: c[one.name][order] for one in own}, Schema(own), party)
    return tables, c


def aligned(tables: dict[str, Table], seed: int = 0) -> Any:
    return hr.simulate(tables, on="nin", seed=seed).align(on="nin", by=X25519(least=10, small_domain="accepted"))


def pooled(c: dict[str, np.ndarray]) -> np.ndarray:
    made = {"Intercept": np.ones(len(c["age"])), "B": c["grade"] == 1, "C": c["grade"] == 2, "squared": c["age"] ** 2}
    return np.column_stack([({**c, **made}[name]) * 1.0 for name in MATRIX])


TRAIN = people(1)
FITS = {
    "linear": lambda both: linear_regression(both, f"spent ~ {RIGHT}"),
    "ridge": lambda both: ridge(both, f"spent ~ {RIGHT}", penalty=0.1),
    "lasso": lambda both: lasso(both, f"spent ~ {RIGHT}", penalty=0.1),
    "logistic": lambda both: logistic_regression(both, f"ill ~ {RIGHT}"),
    "poisson": lambda both: poisson_regression(both, f"visits ~ {RIGHT}", offset="log(years)"),
    "two": lambda both: linear_regression(both, "spent ~ rate + age + years"),
}


@cache
def fitted(kind: str) -> Any:
    return FITS[kind](aligned(TRAIN[0]))


NEW = people(2, n=60, targets=False)


def golden(kind: str) -> np.ndarray:
    """What statsmodels, fitted to the pooled people, says of the new ones; of penalised fits the fit's own coefficients."""
    c = TRAIN[1]
    x, new, exposure = pooled(c), pooled(NEW[1]), {}
    if kind in ("ridge", "lasso"):
        return new @ fitted(kind).coef_
    families = {"linear": ("spent", sm.families.Gaussian()), "logistic": ("ill", sm.families.Binomial())}
    name, family = families.get(kind, ("visits", sm.families.Poisson()))
    if kind == "poisson":
        exposure = {"offset": np.log(c["years"])}
    model = sm.GLM(c[name], x, family, **exposure).fit(tol=1e-14)
    return np.asarray(model.predict(new, **({"offset": np.log(NEW[1]["years"])} if exposure else {})))


@hr.local
def beside_columns(broadcast: Any, party: Any, rng: Any, *, at: str, name: str) -> Any:
    """What a party keeps of people, beside a column by which the test knows them."""
    kept = party.state[f"{name}/predicted"] if party.id == at else np.zeros(len(party.w))
    rate = party["rate"] if party.id == "bank" else np.zeros(len(party.w))
    return np.column_stack([rate, kept])


def kept_by_rate(both: Any, at: str, name: str = "regression") -> tuple[np.ndarray, np.ndarray]:
    found = both.sum(partial(beside_columns, at=at, name=name))
    found = found[np.argsort(found[:, 0])]
    return found[:, 0], found[:, 1]


@pytest.mark.parametrize("kind", ["linear", "ridge", "lasso", "logistic", "poisson"])
def test_new_people_are_predicted_as_by_the_pooled_fit(kind: str) -> None:
    """At the hub in secret order; at a party person by person."""
    assert len(np.unique(NEW[1]["rate"])) == 60
    both, expected = aligned(NEW[0], seed=3), golden(kind)
    at_hub = predict(both, fitted(kind), "hub")
    assert at_hub is not None
    assert at_hub.shape == (60,)
    np.testing.assert_allclose(np.sort(at_hub), np.sort(expected), rtol=2e-5)
    assert predict(both, fitted(kind), "town") is None
    by_rate = np.argsort(NEW[1]["rate"])
    rates, kept = kept_by_rate(both, "town")
    np.testing.assert_allclose(rates, NEW[1]["rate"][by_rate], atol=1e-8)
    np.testing.assert_allclose(kept, expected[by_rate], rtol=2e-5)


def test_a_target_and_the_order_of_the_fit_are_not_needed() -> None:
    assert all("spent" not in table.schema for table in NEW[0].values())
    parts = parts_of(aligned(NEW[0]), fitted("linear"))
    assert parts.senders == list(aligned(NEW[0]).names)
    assert parts.level == fitted("linear").coef_[0]
    assert len(parts.beta) == len(MATRIX) - 1


def test_the_hub_counts_an_opening_and_sees_another_order() -> None:
    both = aligned(NEW[0])
    first, second = (predict(both, fitted("linear"), "hub") for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first != second).any()
    np.testing.assert_allclose(np.sort(first), np.sort(second), atol=1e-8)
    assert "totals of parts of linear predictors, record by record, in secret order" in both.saw["hub"][-1]


@pytest.mark.slow
def test_openings_of_predictions_have_an_end() -> None:
    both = aligned(NEW[0])
    for _ in range(64):
        predict(both, fitted("linear"), "hub")
    with pytest.raises(PartyDeclined, match="HR-248"):
        predict(both, fitted("linear"), "hub")


def test_saw_names_the_part_of_a_single_sender_and_the_total_of_two() -> None:
    both = aligned(NEW[0])
    predict(both, fitted("linear"), "town")
    assert "the total of rows of bank, clinic (parts of linear predictors)" in both.saw["town"]
    assert not any("the part of a linear predictor" in said for said in both.saw["town"])
    both = aligned(NEW[0])
    predict(both, fitted("linear"), "town", hidden=False)
    assert "the part of a linear predictor of bank and of clinic" in both.saw["town"][-1]
    both = aligned(NEW[0])
    predict(both, fitted("two"), "town", name="cost")
    assert "the part of a linear predictor of bank, person by person" in both.saw["town"][-1]
    assert not any("predictor" in said for who in ("bank", "clinic", "hub", "world") for said in both.saw[who])


def test_v2_a_single_sender_of_one_column_tells_it() -> None:
    """The receiver subtracts what it knows: the docstring and `saw` say so."""
    both, fit = aligned(NEW[0]), fitted("two")
    predict(both, fit, "town")
    rates, kept = kept_by_rate(both, "town")
    by_rate = np.argsort(NEW[1]["rate"])
    level, rate, age, years = fit.coef_
    found = (kept - level - age * NEW[1]["age"][by_rate] - years * NEW[1]["years"][by_rate]) / rate
    np.testing.assert_allclose(found, rates, atol=1e-6)


def test_v2_as_many_predictions_to_a_party_as_columns_are_refused_by_the_senders() -> None:
    both, fit = aligned(NEW[0]), fitted("linear")
    assert parts_of(both, fit).most("town") == 1  # the clinic has two columns
    predict(both, fit, "town")
    with pytest.raises(PartyDeclined, match="HR-216") as refused:
        predict(both, replace(fit, coef_=fit.coef_ * 2), "town")
    assert isinstance(refused.value.__cause__, DisclosureExceeded)
    predict(both, fit, "bank")  # another receiver, of the same two columns and of those of the town
    assert predict(both, fit, "hub") is not None


def test_v2_the_receivers_own_columns_do_not_count() -> None:
    both = aligned(NEW[0])
    assert parts_of(both, fitted("linear")).most("clinic") == 1  # town: age and its square
    narrow = linear_regression(aligned(TRAIN[0]), "spent ~ age + I(age ** 2) + years")
    for _ in range(3):
        predict(both, narrow, "town")  # all columns are its own
    assert not any("predictor" in said for said in both.saw["town"])


def with_column(party: str, name: str, **change: Any) -> dict[str, Table]:
    tables = dict(NEW[0])
    table = tables[party]
    schema = Schema(tuple(replace(one, **change) if one.name == name else one for one in table.schema))
    tables[party] = Table({one.name: np.asarray(table[one.name]) for one in table.schema}, schema, party)
    return tables


def test_what_cannot_be_predicted_is_refused_before_anybody_is_asked() -> None:
    fit = fitted("linear")
    both = aligned(NEW[0])
    asked = len(both.ledger)
    with pytest.raises(MissingColumn, match="no party is called 'twon'"):
        predict(both, fit, "twon")
    with pytest.raises(UnlawfulChannel, match="rows of records"):
        predict(both.protect(mechanism=hr.Gaussian(1.0, at="shares", least=2)), fit, "town")
    with pytest.raises(SettingsInvalid, match="gamma"):
        predict(both, replace(fit, family="gamma"), "hub")
    assert len(both.ledger) == asked
    without = {name: table for name, table in NEW[0].items() if name != "clinic"}
    for tables, error, words in (
        (without, MissingColumn, "pulse"),
        (with_column("town", "age", high=95), ColumnsDiffer, "is declared"),
        (with_column("bank", "grade", levels=("A", "C", "B")), ColumnsDiffer, "grade"),
        (with_column("clinic", "dose", optional=True), SchemaInvalid, "dose"),
    ):
        other = aligned(tables)
        asked = len(other.ledger)
        with pytest.raises(error, match=words):
            predict(other, fit, "hub")
        assert len(other.ledger) == asked


def test_roles_and_descriptions_may_differ() -> None:
    tables = with_column("town", "age", description="in years")
    assert predict(aligned(tables), fitted("linear"), "hub") is not None
