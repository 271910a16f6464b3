"""Exact numbers against values held: what counts, against what, and when a simulation refuses."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.disclosure import MOST, MOST_SQUARES, Disclosure, ExactNumbers, Told, covers, words_read, worn, worn_out
from hedgerow.core.events import Event, Sampling
from hedgerow.core.federation import handle, inside
from hedgerow.core.question import local
from hedgerow.crypto import AdditiveShares, PairwiseMasks
from hedgerow.data import Column, Schema, Table
from hedgerow.engines import told
from hedgerow.errors import DisclosureExceeded, SettingsInvalid
from hedgerow.privacy.accounting import gaussian_epsilon
from hedgerow.privacy.mechanisms import Gaussian

SCHEMA = Schema(
    (Column("x", "number", low=-9, high=9), Column("z", "number", low=-9, high=9), Column("y", "number", role="target"))
)


@local(additive=True)
def powers(broadcast, party, rng, *, column, n):
    """Sums of the first n powers of a column."""
    return (party.w * party[column] ** np.arange(1, n + 1)[:, None]).sum(-1)


@local
def keep(broadcast, party, rng, *, column):
    party.state["kept"] = party[column].sum()


@local
def of_records(broadcast, party, rng):
    return np.zeros(len(party.w))


def table(n):
    rng = np.random.default_rng(0)
    return Table({name: rng.normal(size=n) for name in SCHEMA.names}, SCHEMA)


def parties(*sizes, **how):
    whole, ends = table(sum(sizes)), np.cumsum(sizes)
    parts = {f"p{k}": whole.take(range(end - n, end)) for k, (n, end) in enumerate(zip(sizes, ends, strict=True))}
    return hr.simulate(parts, **how)


def ask(federation, n, column="x"):
    return federation.sum(partial(powers, column=column, n=n), bound=hr.l1(1e9, unit="record"))


# ---- what counts ----------------------------------------------------------------------------------------------------
def test_numbers_are_counted_over_all_questions_against_the_smallest_party():
    federation = parties(30, 90, 60, disclosure=MOST)
    ask(federation, 4)
    ask(federation, 6)
    assert told(federation) == Told(ExactNumbers(10.0), 30.0, 180.0)
    with pytest.raises(DisclosureExceeded, match="11 exact numbers from a party that holds 30 values") as refused:
        ask(federation, 1)
    assert refused.value.asked
    assert len(federation.ledger) == 2


def test_columns_that_are_read_later_add_their_values():
    federation = parties(30, 30, disclosure=MOST)
    ask(federation, 10)
    ask(federation, 10, column="z")
    assert told(federation) == Told(ExactNumbers(20.0), 60.0, 120.0)


def test_what_stays_at_parties_and_what_noise_covers_is_not_counted():
    federation = parties(6, 6, disclosure=MOST)
    federation.each(partial(keep, column="x"))
    ask(federation.protect(mechanism=Gaussian(1.0)), 50)
    assert told(federation).ratio == 0


def test_weak_noise_covers_nothing():
    with pytest.raises(DisclosureExceeded):
        ask(parties(6, 6, disclosure=MOST).protect(mechanism=Gaussian(0.01)), 50)


@pytest.mark.parametrize(
    ("event", "enough"),
    [
        (Event("none"), True),
        (Event("nonprivate"), False),
        (Event("rows"), False),
        (Event("gaussian", noise_multiplier=0.5), True),
        (Event("gaussian", noise_multiplier=0.49), False),
        (Event("skellam", noise_multiplier=0.49), False),
        (Event("laplace", noise_multiplier=0.1), True),
        (Event("laplace", noise_multiplier=0.09), False),
        (Event("pure", epsilon=10), True),
        (Event("pure", epsilon=10.1), False),
        (Event("approximate", epsilon=11, delta=1e-6), False),
    ],
    ids=str,
)
def test_noise_that_is_worth_its_name(event, enough):
    assert covers(event) is enough


@pytest.mark.parametrize(("z", "covered"), [(0.5, 1), (1.0, 6), (2.0, 24)])
def test_noise_of_many_questions_covers_the_first_of_them(z, covered):
    federation = parties(30, 30).protect(mechanism=Gaussian(z))
    for _ in range(covered):
        ask(federation, 3)
    assert told(federation).ratio == 0
    assert told(federation).sentence() == "No exact number leaves a party."
    ask(federation, 3)
    ask(federation, 3)
    assert told(federation).exact.plain == 6.0


def test_the_sum_of_squares_that_is_covered_has_an_epsilon_of_ten():
    assert gaussian_epsilon(MOST_SQUARES**-0.5, 1e-3) == pytest.approx(10.0, abs=0.2)


@pytest.mark.parametrize(
    ("event", "sampling", "n"),
    [
        (Event("gaussian", noise_multiplier=1.0, rate=0.01, count=100), Sampling(), 300),
        (Event("gaussian", noise_multiplier=1.0), Sampling("records", 0.01), 30_000),
        (Event("gaussian", noise_multiplier=0.6), Sampling("records", 0.9), 2),
        (Event("laplace", noise_multiplier=1.0), Sampling(), 10),
        (Event("pure", epsilon=0.5), Sampling(), 20),
        (Event("pure", epsilon=1.0), Sampling("part", 0.1, 3), 100),
    ],
    ids=str,
)
def test_so_many_releases_are_covered(event, sampling, n):
    assert covers(event)
    assert not worn_out(n * worn(event, sampling))
    assert worn_out(3 * n * worn(event, sampling))


def test_what_one_payment_covers_wears_no_noise():
    entry = SimpleNamespace(verb="sum", event=Event("gaussian", noise_multiplier=1.0), cites=3)
    assert ExactNumbers.of(entry) == ExactNumbers()


def test_the_values_of_all_count_in_totals_that_hide_rows():
    federation = parties(10, 10, 10, disclosure=MOST).protect(aggregation=AdditiveShares(records=10))
    ask(federation, 10)
    assert told(federation) == Told(ExactNumbers(0.0, 10.0), 10.0, 30.0)
    with pytest.raises(DisclosureExceeded, match="11 in totals of parties that together hold 30 values"):
        ask(federation, 1)


def test_both_kinds_add_up():
    assert Told(ExactNumbers(10, 60), 100, 400).ratio == pytest.approx(0.25)
    assert Told(ExactNumbers(1), 0, 400).ratio == math.inf
    assert Told(ExactNumbers(), 0, 0).ratio == 0


def test_a_drawn_party_counts_by_its_chance():
    federation = parties(30, 30, 30, disclosure=MOST)
    for _ in range(3):
        ask(federation.sample(size=1), 10)
    assert told(federation).exact.plain == pytest.approx(10)


def test_in_groups_of_masks_the_values_of_the_smallest_group_count():
    sizes = (8, 8, 8, 20, 20, 20)
    for group, held in ((None, 84), (3, 24)):
        federation = parties(*sizes, disclosure=np.inf).protect(aggregation=PairwiseMasks(group=group, largest=1e9))
        ask(federation, 5)
        assert told(federation).in_all == held * told(federation).values / 8


def test_unknown_numbers_count_when_they_come():
    federation = parties(8, 8, disclosure=MOST)
    for k in (1, 2):  # the first is a third of 24 values
        federation.sum(of_records)
        assert told(federation).exact == ExactNumbers(8.0 * k)
    with pytest.raises(DisclosureExceeded):
        federation.sum(of_records)


def test_entries_of_a_replayed_run_are_counted_once():
    federation = parties(30, 30, disclosure=MOST)
    ask(federation, 5)
    ledger = inside(federation).run.ledger
    assert ledger.exact == ExactNumbers(5.0)
    ledger.rewind(0, replay=True)
    assert ledger.exact == ExactNumbers()


def test_the_rule_goes_along_to_another_engine():
    federation = hr.engines.on(parties(6, 6, disclosure=MOST), hr.engines.Loop())
    with pytest.raises(DisclosureExceeded):
        ask(federation, 3)


# ---- columns --------------------------------------------------------------------------------------------------------
def test_the_names_in_settings_are_what_is_read():
    known = frozenset({"age", "mean radius", "x", "y"})
    assert words_read({"formula": "y ~ age + log(x)"}, known) == {"y", "age", "x"}
    assert words_read([("columns", ("age",))], known) == {"age"}
    assert words_read(["mean radius"], known) == {"mean radius"}
    assert words_read(["ages", 3, None, np.zeros(3), b"x"], known) == set()
    assert words_read(["x " * 300], known) == {"x"}


# ---- without a rule -------------------------------------------------------------------------------------------------
def by_level(n):
    """A regression on a category of n levels, at parties of 100 records."""
    rng = np.random.default_rng(0)
    words = tuple(f"{k / 7:.2f}" for k in range(n))
    schema = Schema((Column("bmi", "category", levels=words), Column("age", "number", low=0, high=99), SCHEMA["y"]))
    columns = {"bmi": np.array(words)[rng.integers(0, n, 400)], "age": rng.uniform(0, 99, 400), "y": rng.normal(size=400)}
    return Table(schema.admit(columns), schema)


def test_a_number_that_became_a_category_is_refused_with_its_name():
    federation = hr.simulate(by_level(300), hr.data.iid(parties=4))
    with pytest.raises(DisclosureExceeded, match="the records hold 300 values") as refused:
        hr.stats.linear_regression(federation, "y ~ bmi + age")
    assert "the category 'bmi' has 300 levels" in refused.value.remedy
    assert not refused.value.asked
    assert len(federation.ledger) == 0


def test_it_may_be_allowed():
    federation = hr.simulate(by_level(40), hr.data.iid(parties=4), disclosure=math.inf)
    hr.stats.linear_regression(federation, "y ~ bmi + age")
    assert told(federation).ratio > 1
    with pytest.raises(SettingsInvalid):
        Disclosure(0.0)


def test_small_examples_are_asked_as_ever():
    federation = parties(4, 4)
    assert hr.stats.linear_regression(federation, "y ~ x + z").n_records == 8
    assert told(federation).ratio > MOST  # which a study would be refused for


def test_a_federation_that_knows_no_holdings_refuses_nothing():
    federation = parties(6, 6, disclosure=MOST)
    values = inside(federation)
    ask(handle(values._replace(run=values.run.afresh(holdings=None))), 50)
    assert replace(values.run.holdings, disclosure=None).smallest == 6


def test_a_refusal_says_how_many_times_as_many_records_would_do():
    with pytest.raises(DisclosureExceeded) as caught:
        Disclosure(0.25).refuse(Told(ExactNumbers(plain=100.0), 100.0, 300.0), "asked")
    assert "Parties of 4 times as many records" in caught.value.remedy
    assert "columns of numbers then declare their ranges" in caught.value.remedy
