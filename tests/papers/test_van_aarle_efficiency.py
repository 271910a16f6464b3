"""What hiding costs a store: his lines are those that he prints, ours come from real rounds whose totals are right."""

import csv

import numpy as np
import pytest

import hedgerow as hr
import hedgerow.crypto.secagg.epoch as epoch
from hedgerow.compare import compare
from hedgerow.core.aggregation import Plain
from hedgerow.core.bound import linf
from hedgerow.crypto import AdditiveShares, PairwiseMasks, SecAgg
from hedgerow.data import load as load_data
from hedgerow.data import stores
from hedgerow.engines import simulate
from hedgerow.errors import RoundRefused, SettingsInvalid
from hedgerow.papers.van_aarle.efficiency import WAYS, efficiency
from hedgerow.papers.van_aarle.efficiency_results import published_server, published_store, seconds
from hedgerow.papers.van_aarle.timed import ALONE, Timed
from hedgerow.report import Curve
from hedgerow.stats.hidden.terms import count
from hedgerow.study import load

NAME, FORMULA = "van-aarle-efficiency", "I(mdvis > 0) ~ lncoins + disea"


def federation(n=8):
    table = load_data("hie")
    return simulate(table, stores(rows=n)(table, 0), seed=0)


def counted_by(aggregation, n=8):
    """How many stores there are, twice, by an aggregation."""
    asked = federation(n).protect(aggregation=aggregation)
    return [asked.sum(count, bound=linf(1.0, "record")) for _ in range(2)]


# ---- the clock ------------------------------------------------------------------------------------------------------
def test_a_clock_changes_no_total_and_sees_every_step():
    timed = Timed(SecAgg(records=1))
    assert counted_by(timed) == counted_by(SecAgg(records=1)) == [8, 8]
    first, later = timed.questions
    assert list(first.parties) == ["keys", "shares", "contribution", "unmask"]
    assert list(later.parties) == ["contribution", "unmask"]
    assert all(len(of) == 8 and min(of.values()) > 0 for of in [*first.parties.values(), *later.parties.values()])
    assert first.serving() > later.serving() > 0
    assert first.party(first.counted) > first.party(first.counted, lambda step: step == "shares") > 0


def test_who_is_lost_is_not_counted_and_not_timed_any_further():
    timed = Timed(SecAgg(records=1), lost=lambda question, ids: ids[question : question + 1])
    assert counted_by(timed) == [7, 7]
    first, later = timed.questions
    assert len(first.parties["shares"]) == 8
    assert len(first.parties["contribution"]) == len(first.parties["unmask"]) == 7
    assert set(first.counted) ^ set(later.counted) == set(federation().members[:2])


def test_each_store_makes_its_own_agreements(monkeypatch):
    made, agree = [], epoch.agree
    monkeypatch.setattr(epoch, "agree", lambda *given: made.append(given) or agree(*given))
    counted_by(Timed(SecAgg(records=1)), 5)
    assert len(made) == 5 * 4  # a gateway makes one for each pair


def test_the_server_does_its_work_with_the_letters_of_a_few_and_then_refuses():
    members = federation().members
    timed = Timed(PairwiseMasks(records=1), few=members[2:4])
    with pytest.raises(RoundRefused, match="masks do not cancel"):
        counted_by(timed)
    (only,) = timed.questions
    assert set(only.parties["contribution"]) == set(members[2:4])
    assert len(only.parties["keys"]) == 8
    assert only.counted == ()
    assert only.server["contribution"] > 0


def test_in_the_open_each_store_is_asked_by_itself():
    asked = federation()
    timed = Timed(Plain(), lost=lambda question, ids: ids[:1])
    assert asked.protect(aggregation=timed).sum(count) == 7
    assert len(timed.questions[0].parties[ALONE]) == 7


def test_secrets_of_a_measurement_are_let_go():
    asked, timed = federation(), Timed(AdditiveShares(records=1))
    asked.protect(aggregation=timed).sum(count, bound=linf(1.0, "record"))
    kept = hr.engines.records(asked).correspondents
    assert [len(sides) for sides in kept.values()] == [8]
    timed.forget()
    assert [len(sides) for sides in kept.values()] == [0]
    assert [timed.protocol for timed in kept] == [None]


# ---- the program ----------------------------------------------------------------------------------------------------
def test_measurements_go_on_where_they_stopped():
    settings = {"formula": FORMULA, "stores": [6, 4], "ways": ["grouped"], "group": 3}
    *_, whole = efficiency(federation(), **settings)
    states = efficiency(federation(), **settings)
    second = [next(states) for _ in range(2)][-1]
    *_, rest = efficiency(federation(), **settings, start=second)
    assert whole.round == rest.round == 4
    assert [row["stores"] for row in whole.of("grouped")] == [row["stores"] for row in rest.of("grouped")] == [4, 6]
    np.testing.assert_array_equal(rest.rows[:2], second.rows)
    assert whole.size == 3


def test_beyond_some_stores_a_few_are_timed_and_no_total_is_claimed():
    asked = federation()
    *_, state = efficiency(asked, formula=FORMULA, stores=[4, 8], ways=["pairwise"], whole=4, few=2)
    whole, sampled = state.of("pairwise")
    assert (whole["timed"], whole["counted"]) == (4, 4)
    assert whole["off by"] < 1e-12
    assert (sampled["timed"], sampled["counted"]) == (2, 0)
    assert np.isnan(sampled["off by"])
    assert sampled["store later"] > 0
    assert len(asked.ledger) == 9  # two questions each, and one in the open beside the total that was formed


def test_stores_that_are_not_there_are_refused_before_anybody_is_asked():
    for given in ({"stores": [9]}, {"stores": []}, {"stores": [2]}, {"stores": [8], "lost": 0.5}):
        asked = federation()
        with pytest.raises(SettingsInvalid, match="there are 8 stores"):
            efficiency(asked, formula=FORMULA, **given)
        assert len(asked.ledger) == 0


# ---- the results ----------------------------------------------------------------------------------------------------
def test_his_two_lines_together_are_the_hours_and_minutes_that_he_prints():
    one_group, groups = (800 * (published_store(size) + published_server(2048)) for size in (2048, 16))
    assert round(one_group / 3600) == 13
    assert round(groups / 60) == 15


def test_a_set_up_is_shared_by_the_iterations_that_it_serves():
    row = {"store first": 33.0, "store later": 1.0, "store once": 160.0}
    assert WAYS["secagg"].every == 16
    assert seconds("secagg", row, "store", 800) == (33 + 15) / 16 + 160 / 800
    assert seconds("secagg", row, "store", 2) == (33 + 1) / 2 + 160 / 2
    assert seconds("pairwise", row, "store", 800) == 1 + 160 / 800


@pytest.mark.slow
def test_a_quick_run_draws_both_figures_and_every_total_is_right(tmp_path):
    found = compare(load(NAME), tmp_path / "out", quick=True, jobs=1)
    assert not found.problems
    (run,) = found.standings.runs
    figures: dict[str, Curve] = {curve.title[:10]: curve for curve in run.report.curves}
    assert list(figures) == ["Figure 6.3", "Figure 6.4"]
    assert found.report.curves == run.report.curves
    for curve in figures.values():
        lines = {line.name: line for line in curve.series}
        assert set(lines) == {"published, one group", *(way.title for way in WAYS.values())}
        assert {line.x for name, line in lines.items() if name != WAYS["privfl"].title} == {(16.0, 36.0)}
        assert all(y > 0 for line in lines.values() for y in line.y)
    store = {line.name: line.y for line in figures["Figure 6.3"].series}
    bare = store["in the open"]
    assert all(y > low for name, line in store.items() if line is not bare for y, low in zip(line, bare, strict=False))
    assert store["published, one group"] == pytest.approx((0.02 + 16 / 36, 1.02))
    with (found.folder / "measurements.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 11
    for row in rows:
        way, n = row["way"], int(row["stores"])
        recovers = next(one.recovers for one in WAYS.values() if one.title == way)
        sampled = way == "pairwise, one group" and n == 36
        assert int(row["counted"]) == (0 if sampled else n - round(0.1 * n) if recovers else n)
        assert sampled or float(row["off by"]) < (1e-6 if way == "PrivFL" else 1e-12)
    n_plain, n_checked = 2, 8
    asked = (found.folder / run.cell.folder / "ledger.jsonl").read_text().splitlines()
    assert len(asked) == 2 * (n_plain + n_checked + 1) + n_checked
    assert {path.name for path in found.folder.glob("*.csv")} > {"figure-6.3-in-numbers.csv", "iterations.csv"}
    assert 0 < run.value < 13
