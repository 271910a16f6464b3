"""Programs that divide a budget of their own: the same noisy result on every engine, and never more than the budget.

Every such program of the catalogue runs its own case (`tests/own_budgets.py`).
"""

import math
from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import partitioner
from own_budgets import BUDGET, NAMES, case_of, federation, result

pytestmark = pytest.mark.filterwarnings("ignore:noise of")  # a case has few teachers, whose votes noise hides
CHOOSING = {"hybrid_forest"}
"""Programs that also choose at the server, by a law of its own; epsilons of choices and sums are added up."""

BY_CHOICE = {"vote": "choice", "delta": None}
"""Settings of private_forest with which it chooses, too."""

SUMMING = [name for name in NAMES if name not in CHOOSING]


def same(one, two):
    assert one.keys() == two.keys()
    for key, value in one.items():
        np.testing.assert_equal(two[key], value, err_msg=key)


def cost(federated):
    """What the ledger says, of which nothing is open and nothing is by party."""
    entries = federated.ledger.entries
    assert entries
    assert not any(entry.event.open for entry in entries)
    assert {entry.unit for entry in entries} == {"record"}
    return federated.ledger.epsilon(delta=BUDGET["delta"], unit="record")


def test_the_programs_are_found():
    assert {"private_logistic"} <= set(NAMES)


@pytest.fixture(scope="module")
def plain():
    """Each program in one process: the result and the cost."""
    kept = {}

    def run(name):
        if name not in kept:
            federated = federation(name)
            kept[name] = result(name, federated), cost(federated)
        return kept[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_a_program_spends_its_budget_and_no_more(name, plain):
    _, spent = plain(name)
    assert (0.5 if name in CHOOSING else 0.9) * BUDGET["epsilon"] < spent <= BUDGET["epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_one_party_at_a_time_gives_the_same_bits(name, plain):
    same(result(name, hr.engines.on(federation(name), hr.Loop())), plain(name)[0])


@pytest.fixture(scope="module")
def processes():
    with hr.Processes(2) as engine:
        yield engine


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_processes_give_the_same_bits(name, plain, processes):
    same(result(name, hr.engines.on(federation(name), processes)), plain(name)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_hidden_rows_give_the_same_bits_where_the_server_adds_the_noise(name, plain):
    hidden = federation(name).protect(aggregation=hr.SecAgg())
    same(result(name, hidden), plain(name)[0])
    assert cost(hidden) == plain(name)[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMMING)
def test_noise_in_shares_costs_the_same_and_is_named_in_the_ledger(name, plain):
    hidden = federation(name).protect(aggregation=hr.SecAgg())
    one = result(name, hidden, noise_at="shares", least=4)
    assert all("in shares of 4" in entry.mechanism for entry in hidden.ledger.entries)
    assert cost(hidden) == pytest.approx(plain(name)[1], rel=1e-9)
    two = result(name, federation(name).protect(aggregation=hr.SecAgg()), noise_at="shares", least=4)
    same(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMMING)
def test_noise_at_each_party_costs_the_same(name, plain):
    local = federation(name)
    result(name, local, noise_at="party")
    assert all(entry.mechanism.endswith("at the party") for entry in local.ledger.entries)
    assert cost(local) == pytest.approx(plain(name)[1], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("every", [7, 1])
@pytest.mark.parametrize(("name", "more"), [*((name, {}) for name in NAMES), ("private_forest", BY_CHOICE)])
def test_records_that_lack_a_value_are_not_counted_beside_the_budget(name, more, every):
    """Nor is it said that all of them do, which would follow from exact counts."""
    table = case_of(name).table
    named = str(case_of(name).settings)
    numbers = [column for column in table.schema if column.role == "feature" and column.kind == "number"]
    optional = next((column for column in numbers if column.name in named), numbers[0])
    columns = dict(table.columns)
    columns[optional.name] = np.where(np.arange(len(table)) % every == 0, np.nan, columns[optional.name])
    gaps = hr.data.Table(columns, table.schema.replace(replace(optional, optional=True)))
    federated = hr.simulate(gaps, partitioner("iid", parties=3)(gaps, 0), seed=0)
    result(name, federated, **more)
    assert cost(federated) <= BUDGET["epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "more"), [*((name, {}) for name in NAMES), ("private_forest", BY_CHOICE)])
def test_a_smaller_budget_refuses_before_the_first_question(name, more):
    federated = federation(name).within(hr.Budget(0.5, BUDGET["delta"], unit="record"))
    with pytest.raises(hr.errors.BudgetExhausted, match="questions that cost epsilon=1"):
        result(name, federated, **more)
    assert len(federated.ledger) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_second_fit_that_exceeds_what_is_left_is_refused_before_its_first_question(name):
    federated = federation(name).within(hr.Budget(1.2, BUDGET["delta"], unit="record"))
    result(name, federated)
    asked = len(federated.ledger)
    with pytest.raises(hr.errors.BudgetExhausted, match=f"what {asked} earlier questions left"):
        result(name, federated)
    assert len(federated.ledger) == asked


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMMING)
def test_more_noise_follows_from_less_budget(name):
    small, large = federation(name), federation(name)
    result(name, small, epsilon=0.1)
    result(name, large, epsilon=10.0)
    spent = [one.ledger.epsilon(delta=BUDGET["delta"], unit="record") for one in (small, large)]
    assert spent == pytest.approx([0.1, 10.0], rel=0.1)
    assert all(math.isfinite(one) for one in spent)
