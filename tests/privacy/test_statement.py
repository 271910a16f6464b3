"""The privacy sentence leaves nothing out."""

import math
from dataclasses import replace

import pytest

from hedgerow import Budget, Gaussian, l2
from hedgerow.core import Ledger
from hedgerow.privacy.owners import disjoint
from hedgerow.privacy.statement import statement
from hedgerow.store import LedgerBase
from helpers import federation, totals

UNITS = {"party": 6, "record": 69}
PER_RECORD = l2(1.0, unit="record")


def asked(at="server", n=2, seed=0, record=None, budget=None):
    fed = federation(seed=seed).protect(mechanism=Gaussian(3.0, at=at))
    if record is not None:
        fed.recorded(record)
    if budget is not None:
        fed.within(budget)
    for _ in range(n):
        fed.sum(totals, bound=PER_RECORD)
    return fed.ledger


def test_nothing_released_is_said():
    assert statement(Ledger(), UNITS).sentence == "Nothing was released."


def test_an_open_release_claims_nothing():
    fed = federation()
    fed.sum(totals)
    said = statement(fed.ledger, UNITS)
    assert math.isinf(said.epsilon)
    assert said.sentence == "No epsilon is claimed: 1 of 1 release went out without noise."


def test_where_nobody_knows_how_many_records_there_are_epsilon_is_at_a_small_delta():
    said = statement(asked(), {"party": 6, "record": 0})
    assert said.delta == 1e-6
    assert said.epsilon > statement(asked(), UNITS).epsilon > 0


@pytest.mark.parametrize(
    ("at", "seed", "words"),
    [
        ("server", 0, ["but not the server", "simulation seed"]),
        ("party", 0, ["also against the server", "simulation seed"]),
        ("server", None, ["operating system's entropy"]),
    ],
)
def test_it_says_against_whom_and_from_what(at, seed, words):
    sentence = statement(asked(at, seed=seed), UNITS).sentence
    assert all(word in sentence for word in words)
    assert "2 releases" in sentence
    assert sentence.endswith("tuning not counted.")


@pytest.mark.parametrize("unit", ["record", "party"])
def test_one_release_that_the_server_saw_exactly_is_said_beside_others_with_noise_at_the_party(unit):
    fed, bound = federation(), l2(1.0, unit)
    for at in ("party", "server"):
        fed.protect(mechanism=Gaussian(4.0, at)).sum(totals, bound=bound)
    sentence = statement(fed.ledger, UNITS).sentence
    assert "but not the server" in sentence
    assert ("between any two contributions" if unit == "party" else "add-remove adjacency") in sentence


def test_other_runs_of_a_shared_ledger_are_counted(tmp_path):
    budget = Budget(5.0, 1e-6, unit="record")
    asked(record=LedgerBase(tmp_path / "shared.sqlite"), n=1, budget=budget)
    ledger = asked(record=LedgerBase(tmp_path / "shared.sqlite"), n=2, budget=budget)
    said = statement(ledger, UNITS)
    assert "3 releases, 1 of them by other runs that share the ledger" in said.sentence
    assert said.epsilon == statement(asked(n=3, budget=budget), UNITS).epsilon


def test_what_was_assumed_of_individuals_is_said():
    budget = Budget(5.0, 1e-6, unit="record")
    ledger = asked("party", budget=budget)
    said = statement(ledger, UNITS, disjoint({"a": ledger, "b": Ledger()}, budget))
    assert "for an individual (a), where owners' records are assumed disjoint" in said.sentence


def test_under_a_filter_its_limit_is_claimed_whatever_was_used():
    budget = Budget(5.0, 1e-6, unit="record", filter="gdp")
    said = statement(asked(budget=budget), UNITS)
    used = statement(asked(budget=Budget(5.0, 1e-6, unit="record")), UNITS).epsilon
    assert said.epsilon == 5.0
    assert "held by a Gaussian filter (Smith & Thakurta 2022), also where noise and sampling followed" in said.sentence
    assert f"and used to {used:.4g}" in said.sentence
    assert "accountant" not in said.sentence


def test_without_a_filter_it_says_what_has_to_be_fixed_beforehand(tmp_path):
    budget = Budget(5.0, 1e-6, unit="record")
    alone = asked(record=LedgerBase(tmp_path / "shared.sqlite"), n=1, budget=budget)
    assert "accountant: tightest, for noise and sampling fixed beforehand;" in statement(alone, UNITS).sentence
    assert "only a budget with a filter holds" not in statement(alone, UNITS).sentence
    second = asked(record=LedgerBase(tmp_path / "shared.sqlite"), n=1, budget=budget)
    assert "only a budget with a filter holds" in statement(second, UNITS).sentence


def test_what_was_published_beside_is_a_part_of_the_text():
    said = statement(asked(), UNITS)
    assert said.text == said.sentence
    beside = replace(said, exposed="20 % of the records were used as a test table without protection.")
    assert beside.text == f"{said.sentence} 20 % of the records were used as a test table without protection."
