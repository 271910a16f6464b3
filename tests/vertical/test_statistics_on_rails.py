"""Statistics of aligned parties are those of the oracle, on the rails: masks, pads, noise, ledger and budget are real."""

from __future__ import annotations

import numpy as np
import pytest
from apart_double import AsHeld
from oracle_apart import InMemory
from test_groups_apart import TABLES as PEOPLE
from test_regressions_apart import FORMULA, TABLES

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import ArgumentInvalid, BudgetExhausted, PartyDeclined, UnlawfulChannel
from hedgerow.vertical.associations import correlation, pca, vif
from hedgerow.vertical.glm import logistic_regression, poisson_regression
from hedgerow.vertical.groups import contingency, means
from hedgerow.vertical.linear import lasso, linear_regression


def with_ids(tables: dict[str, Table]) -> dict[str, Table]:
    """The tables with a column by which people are known."""
    found = {}
    for name, table in tables.items():
        n = len(table)
        schema = Schema((Column("nin", "integer", "id", low=0, high=10**6), *table.schema.columns))
        found[name] = Table({"nin": np.arange(n), **table.columns}, schema, name)
    return found


def aligned(tables: dict[str, Table], seed: int = 0, least: int = 10) -> hr.vertical.Aligned:
    return hr.simulate(with_ids(tables), on="nin", seed=seed).align(on="nin", by=AsHeld(least=least))


def in_three(tables: dict[str, Table]) -> dict[str, Table]:
    """The bureau's columns at two parties."""
    bureau = tables["bureau"]
    return {
        "bank": tables["bank"],
        "bureau": bureau.select(["default", "visits", "spent"]),
        "clinic": bureau.select(["age", "open", "years"]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("split", [dict, in_three], ids=["two parties", "three parties"])
def test_regressions_on_the_rails_are_those_of_the_oracle(split) -> None:
    both, oracle = aligned(split(TABLES)), InMemory(split(TABLES))
    linear, golden = (linear_regression(one, f"spent ~ {FORMULA}") for one in (both, oracle))
    np.testing.assert_allclose(linear.coef_, golden.coef_, rtol=1e-5)
    np.testing.assert_allclose(linear.se_, golden.se_, rtol=1e-6)
    assert linear.left.startswith("pads and shares of 8 columns")
    assert all(f"{role} 0." in linear.left for role in (*both.names, "hub"))
    logistic, golden = (logistic_regression(one, f"default ~ {FORMULA}") for one in (both, oracle))
    assert np.abs((logistic.coef_ - golden.coef_) / golden.se_).max() < 1e-5
    np.testing.assert_allclose(logistic.se_, golden.se_, rtol=1e-4)
    assert logistic.rounds == golden.rounds
    poisson, golden = (poisson_regression(one, "visits ~ grade + age + open", offset="log(years)") for one in (both, oracle))
    assert np.abs((poisson.coef_ - golden.coef_) / golden.se_).max() < 1e-5
    assert poisson.log_likelihood == pytest.approx(golden.log_likelihood, abs=1e-3)
    chosen, golden = (lasso(one, "spent ~ rate + grade + age + open", penalty=0.5) for one in (both, oracle))
    np.testing.assert_allclose(chosen.coef_, golden.coef_, rtol=1e-4, atol=1e-6)


def test_groups_and_correlations_on_the_rails_are_those_of_the_oracle() -> None:
    both, oracle = aligned(PEOPLE), InMemory(PEOPLE)
    for ask in (
        lambda one: means(one, ["salary", "age"], by="street"),
        lambda one: contingency(one, "rich", "street").counts,
        lambda one: correlation(one, ["salary", "age", "rooms"]),
        lambda one: vif(one, ["salary", "age", "rooms"]),
        lambda one: pca(one, ["salary", "age", "rooms"]).axes,
    ):
        np.testing.assert_allclose(ask(both), ask(oracle), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_who_saw_what_of_a_logistic_regression() -> None:
    both = aligned(TABLES)
    fit = logistic_regression(both, "default ~ rate + age")
    assert any("linear predictors" in one and "secret order" in one for one in both.saw["hub"])
    assert not any("linear predictors" in one for one in (*both.saw["bank"], *both.saw["bureau"], *both.saw["world"]))
    assert all("products" in one.purpose or "rows" in one.purpose or "alignment" in one.purpose for one in both.traffic)
    assert len(both.ledger) == 2 + 3 * fit.rounds


def test_v11_a_party_declines_a_column_of_few_people_and_tells_its_code_alone() -> None:
    rare = np.zeros(len(TABLES["bank"]))
    rare[:4] = 1
    bank = TABLES["bank"]
    bank = Table({**bank.columns, "rare": rare}, Schema((*bank.schema.columns, Column("rare", "binary"))), "bank")
    with pytest.raises(PartyDeclined, match="HR-604") as caught:
        linear_regression(aligned(TABLES | {"bank": bank}), "spent ~ rare + age")
    assert "4" not in str(caught.value).replace("HR-604", "")


def test_noise_in_shares_goes_with_products_and_is_charged() -> None:
    noisy = aligned(PEOPLE).protect(mechanism=hr.Gaussian(0.1, at="shares", least=2))
    found = means(noisy, "age", by="gender")
    exact = means(InMemory(PEOPLE), "age", by="gender")
    assert np.abs(found - exact).to_numpy().max() < 2
    assert (found != exact).to_numpy().all()
    fit = linear_regression(noisy, "rooms ~ salary + age")
    assert np.isnan(fit.se_).all()
    with pytest.raises(UnlawfulChannel, match="linear predictors"):
        logistic_regression(noisy, "rich ~ age")


def test_v1_a_budget_refuses_rows_for_the_hub() -> None:
    both = aligned(PEOPLE).within(hr.Budget(epsilon=2, delta=1e-6, unit="record"))
    with pytest.raises(BudgetExhausted):
        logistic_regression(both, "rich ~ age")


def test_the_statistics_of_the_other_handle_are_named() -> None:
    both = aligned(PEOPLE)
    with pytest.raises(ArgumentInvalid, match="Aligned") as caught:
        hr.stats.linear_regression(both, "rooms ~ age")
    assert "hr.vertical.linear_regression" in str(caught.value)
    together = hr.simulate(PEOPLE["town"], hr.data.iid(parties=2), seed=0)
    with pytest.raises(ArgumentInvalid, match="Federation") as caught:
        hr.vertical.linear_regression(together, "rooms ~ age")
    assert "federation.align(on=" in str(caught.value)
