"""What a newcomer calls wrongly is refused before any party is asked, in words that say what to call."""

from types import SimpleNamespace

import numpy as np
import pytest
from apart_double import AsHeld
from tables_apart import tables

import hedgerow as hr
from hedgerow.errors import ArgumentInvalid, BudgetInvalid, NotBinary, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.vertical.boost import boosted_trees
from hedgerow.vertical.channel import begun, provenance
from hedgerow.vertical.glm import _separated


@pytest.fixture
def federation():
    return hr.simulate(tables()[0], on="nin", seed=0)


@pytest.mark.parametrize("protocol", [hr.vertical.X25519, hr.vertical.KKRT])
def test_an_alignment_of_which_one_party_learns_is_refused_before_anybody_is_asked(federation, protocol):
    with pytest.raises(SettingsInvalid, match="tax alone would learn"):
        federation.align(on="nin", by=protocol(learns="tax"))
    with pytest.raises(SettingsInvalid, match="Did you mean 'town'"):
        federation.align(on="nin", by=protocol(learns="towm"))
    assert len(federation.ledger) == 0


@pytest.mark.parametrize("by", ["x25519", hr.vertical.X25519])
def test_what_is_no_protocol_is_refused_before_anybody_is_asked(federation, by):
    with pytest.raises(ArgumentInvalid, match=r"hr\.vertical\.X25519\(\)"):
        federation.align(on="nin", by=by)
    assert len(federation.ledger) == 0


CALLS = [
    lambda handle: hr.vertical.means(handle, "salary", by="gender"),
    lambda handle: hr.vertical.contingency(handle, "gender", "gender"),
    lambda handle: hr.vertical.correlation(handle),
    lambda handle: hr.vertical.pca(handle),
    lambda handle: hr.vertical.vif(handle),
    lambda handle: hr.vertical.linear_regression(handle, "salary ~ age"),
    lambda handle: hr.vertical.logistic_regression(handle, "gender ~ age"),
    lambda handle: hr.vertical.poisson_regression(handle, "salary ~ age"),
    lambda handle: hr.vertical.ridge(handle, "salary ~ age", penalty=1.0),
    lambda handle: hr.vertical.lasso(handle, "salary ~ age", penalty=1.0),
    lambda handle: boosted_trees(handle, "gender"),
]


@pytest.mark.parametrize("call", CALLS)
def test_functions_of_the_room_name_align_where_it_was_forgotten(federation, call):
    for handle in (federation, tables()[0]["town"]):
        with pytest.raises(ArgumentInvalid, match=r"an Aligned(.|\n)*align\(on="):
            call(handle)


def test_a_budget_per_party_is_refused_at_once(federation):
    with pytest.raises(BudgetInvalid, match='unit="record"'):
        federation.within(hr.Budget(epsilon=1.0, delta=1e-6))
    both = federation.align(on="nin", by=AsHeld())
    asked = len(both.ledger)
    with pytest.raises(BudgetInvalid, match='unit="record"'):
        both.within(hr.Budget(epsilon=1.0, delta=1e-6))
    assert len(both.ledger) == asked


def test_the_remedy_for_a_missing_range_can_be_followed(federation):
    town = tables()[0]["town"]
    both = hr.simulate(tables()[0], on="nin", seed=0).align(on="nin", by=AsHeld())
    with pytest.raises(UnboundedSum, match=r'declared=\{"patient": \{"role": "ignore"\}\}\)\.declare\(age=\(0, 120\)\)'):
        hr.vertical.means(both, "dose", by="gender")
    declared = hr.data.Table.from_frame(town, declared={"nin": {"role": "ignore"}}).declare(dose=(-8, 8))
    both = hr.simulate({"tax": tables()[0]["tax"], "town": declared}, on="nin", seed=0).align(on="nin", by=AsHeld())
    assert hr.vertical.means(both, "dose", by="gender")["count"].sum() == both.n


def test_functions_of_parties_that_hold_the_same_columns_name_align(federation):
    with pytest.raises(SchemaInvalid, match=r"align(.|\n)*hr\.vertical"):
        hr.stats.means(federation, ["age"])


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (hr.Gaussian(1.0), "Gaussian(1) at the server: central privacy"),
        (hr.Gaussian(1.0, at="shares", least=2), "Gaussian(1) in shares of 2 parties: distributed privacy"),
    ],
)
def test_a_fit_says_who_adds_noise(federation, mechanism, words):
    both = federation.align(on="nin", by=AsHeld()).protect(mechanism=mechanism)
    assert provenance(both, begun(both), 2)["protection"].startswith(words)


def test_what_was_seen_names_the_pivot_of_a_star_coefficients_and_the_hub():
    frames = tables()[0]
    third = frames["tax"][["nin"]].assign(rich=(frames["tax"]["salary"] > frames["tax"]["salary"].median()).astype(int))
    both = hr.simulate(frames | {"shop": third}, on="nin", seed=0).align(on="nin", by=hr.vertical.X25519())
    assert all(any("shortest list" in one for one in both.saw[party]) for party in both.names)
    hr.vertical.logistic_regression(both, "rich ~ gender", tol=1e-3)
    assert all("the coefficients of all columns" in both.saw[party] for party in both.names)
    assert any("sums over" in one for one in both.saw["hub"])
    assert set(both.saw["world"]) <= set(both.saw["hub"])
    assert not any("_" in one for said in both.saw.values() for one in said)


def test_remedies_of_regressions_name_nothing_that_is_not_built_apart():
    frames = tables()[0]
    tax = frames["tax"].assign(
        ward=np.resize(["a", "b", "c"], len(frames["tax"])), rich=(frames["tax"]["salary"] > 50).astype(int)
    )
    both = hr.simulate(frames | {"tax": tax}, on="nin", seed=0).align(on="nin", by=AsHeld())
    with pytest.raises(NotBinary) as caught:
        hr.vertical.logistic_regression(both, "ward ~ gender")
    assert "multinomial" not in str(caught.value)
    assert "1 for one level" in str(caught.value)
    for family in ("binomial", "poisson"):
        error = _separated(np.ones(2), np.ones(2), SimpleNamespace(spec=SimpleNamespace(names=["a", "b"])), family)
        assert "firth" not in str(error)
        assert "penalised" not in str(error)
        assert "Drop the column" in str(error)
