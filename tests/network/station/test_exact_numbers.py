"""Exact numbers asked of a station over a whole study, against the values that it holds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from test_hostile_coordinator import first_question, plain

from hedgerow.core.disclosure import rounded
from hedgerow.data import Table
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.errors import HedgerowError
from hedgerow.network.console.rules import rules_of
from hedgerow.network.station.children.study_host import complete_in
from hedgerow.network.station.config import GuardSection
from hedgerow.network.station.disclosed import trust_of
from hedgerow.network.station.local_data import Roll, local_data
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.values import unpack
from helpers import with_question as about
from station_house import COLUMNS, LOGISTIC, PRIVATE, STUDY, House, config_of, parse_text, records

AUTOMATIC = {
    "approval": "automatic",
    "programs": [{"name": "logistic_regression"}, {"name": "linear_regression"}, {"name": "moments"}],
    "disclosure": 1 / 3,
}
SECRET = '[protection.aggregation]\nby = "secagg"\n'
ONCE = """
name = "dose"
[data]
name = "heart"
target = "dose"
features = ["age", "sick"]
[program]
name = "linear_regression"
formula = "dose ~ age + sick"
"""
OTHER = b"another study..."


def house(tmp_path, sizes, **guard):
    """Stations that hold so many records each."""
    names = dict(zip(("alpha", "beta", "gamma", "delta"), sizes, strict=False))
    found = House(tmp_path, {name: {} for name in names}, **AUTOMATIC | guard)
    for name, n in names.items():
        restarted(found, name, n)
    return found


def restarted(house, name, n):
    config = house.configs[name]
    held = local_data(config, Table(config.declared.admit(records(name, n)), config.declared), bytes(32))
    return house.start(name, held)


def asked(house, text, columns=("age", "dose", "sick"), **how):
    """Board a study, and run it; the last state."""
    house.board(text, columns)
    return again(house, text, columns, **how)


def again(house, text, columns=("age", "dose", "sick"), **how):
    built = house.built(text, columns, **how)
    return last(built.listing.program(built.settings)(built.federation))


def refusal(house, text, name="alpha", columns=("age", "dose", "sick")):
    """Why a station refused a study when it asked to board."""
    assert house.board(text, columns)[name]["status"] == "refused"
    submission = house.stations[name].submissions.get(STUDY.hex())
    return submission.code, submission.because


def varied(of, name, text, *, restarts, n):
    """Ask the first question of a study again and again, each time at other coefficients, until a station refuses."""
    seen, rng = plain(first_question(of, text, ("age", "dose", "sick"))), np.random.default_rng(0)
    for k in range(1, 100):
        sent = {key: rng.normal(size=np.shape(value)) * 0.5 for key, value in seen.question.broadcast.items()}
        of.queue = MessageQueue(lambda: of.hub.key_material, lambda: of.hub.public_identities, of.rail, pause=1e6)
        of.network(life=k + 1).exchange(about(seen, number=k, broadcast=sent))
        if restarts:
            restarted(of, name, n)


def put_again(of, seen, n):
    """Put one question again and again to a station that was started again."""
    for k in range(1, 9):
        of.queue = MessageQueue(lambda: of.hub.key_material, lambda: of.hub.public_identities, of.rail, pause=1e6)
        restarted(of, "alpha", n)
        of.network(life=k + 1).exchange(about(seen, number=k))


def of_study(station, code="asked"):
    return [entry for entry in station.journal.entries() if entry.code == code]


@pytest.mark.parametrize(("n", "counted"), [(3, 0), (5, 5), (8, 5), (12, 10)])
def test_a_regression_of_a_few_records_is_refused_before_any_party_is_asked(tmp_path, n, counted):
    of = house(tmp_path, [n])
    code, why = refusal(of, LOGISTIC)
    assert code == "HR-216"
    assert f"holds {3 * counted} values" in why
    with pytest.raises(HedgerowError):
        again(of, LOGISTIC)
    assert of_study(of.stations["alpha"]) == []


def test_an_ordinary_regression_is_answered_and_the_person_who_approves_reads_its_ratio(tmp_path):
    of = house(tmp_path, [60, 60])
    asked(of, ONCE)
    submission = of.stations["alpha"].submissions.get(STUDY.hex())
    said = submission.rows[0]["exact numbers"]
    assert "26 exact numbers" in said  # twice a score of 3, a triangle of 6, and four sums
    assert "180 values of the columns read: a ratio of 0.14, within" in said
    assert said in submission.summary
    assert "0.33 of a study" in dict(rules_of(of.configs["alpha"].guard))["Exact numbers"]


def test_the_values_of_all_parties_count_where_rows_are_hidden(tmp_path):
    sizes = [50] * 3
    code, why = refusal(house(tmp_path / "seen", sizes), LOGISTIC)
    assert code == "HR-216", why
    of = house(tmp_path / "hidden", sizes)
    asked(of, LOGISTIC + SECRET)
    submission = of.stations["alpha"].submissions.get(STUDY.hex())
    assert "in totals of parties that together hold 450 values" in submission.rows[0]["exact numbers"]
    kept = [entry for entry in of_study(of.stations["alpha"]) if entry.question]
    assert kept[0].hidden > 0
    assert not any(entry.exact for entry in kept)


def test_columns_that_a_study_does_not_read_lend_it_no_values(tmp_path):
    of = house(tmp_path, [40])
    wide = LOGISTIC.replace('features = ["age", "dose"]', 'features = ["age", "dose", "income"]')
    code, why = refusal(of, wide, columns=("age", "dose", "sick", "income"))
    assert code == "HR-216"
    assert "holds 120 values" in why


def test_who_approves_reads_the_ratio_of_all_that_may_be_asked(tmp_path):
    """Fewer rounds are rehearsed than a regression may take: a score of 3, a triangle of 6 and four sums in each."""
    of = house(tmp_path, [60])
    of.board(LOGISTIC + "max_rounds = 11\n")
    submission = of.stations["alpha"].submissions.get(STUDY.hex())
    said = submission.rows[0]["exact numbers"]
    assert "Asked as often as it may be: 143 exact numbers, a ratio of 0.79. Beyond 0.33 nothing is answered." in said
    assert submission.summary.endswith(f"Here: {said}")
    assert "{" not in submission.summary


# ---- each question, by the journal ----------------------------------------------------------------------------------
@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "restarts"])
def test_questions_are_refused_when_the_sum_of_all_is_beyond_the_limit_whatever_was_rehearsed(tmp_path, restarts):
    """One approved kind of question at ever other coefficients: seventy numbers are allowed of 210 values."""
    of = house(tmp_path, [70])
    of.board(LOGISTIC)
    with pytest.raises(HedgerowError, match="HR-216"):
        varied(of, "alpha", LOGISTIC, restarts=restarts, n=70)
    each = [entry.exact for entry in of_study(of.stations["alpha"])]
    assert len(each) > 3
    assert 70 - each[0] < sum(each) <= 70


@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "restarts"])
def test_the_same_question_again_counts_once(tmp_path, restarts):
    """As after an answer that was lost, or from a checkpoint."""
    of = house(tmp_path, [60])
    asked(of, ONCE)
    once = sum(entry.exact for entry in of_study(of.stations["alpha"]))
    assert 0 < once < 60 < 10 * once
    for k in range(2, 12):
        if restarts:
            restarted(of, "alpha", 60)
        again(of, ONCE, life=k)
    assert sum(entry.exact for entry in of_study(of.stations["alpha"])) == once


def test_a_guard_may_count_over_all_studies(tmp_path):
    """Two studies, each far within its own limit."""
    of = house(tmp_path, [60], disclosure_overall=0.15)  # of 240 values of all columns: 36
    asked(of, ONCE)
    told = sum(entry.exact for entry in of_study(of.stations["alpha"]))
    assert told <= 36 < 2 * told
    restarted(of, "alpha", 60)
    of.board(ONCE, study=OTHER)
    built = build_remote(parse_text(ONCE), of.schema.select(("age", "dose", "sick")), of.network(study=OTHER))
    with pytest.raises(HedgerowError, match="HR-216"):
        last(built.listing.program(built.settings)(built.federation))


# ---- who may say what -----------------------------------------------------------------------------------------------
def test_a_study_may_lower_the_limit_and_not_raise_it(tmp_path):
    own = "[protection]\ndisclosure = {}\n"
    assert refusal(house(tmp_path / "lower", [60]), ONCE + own.format(0.01))[0] == "HR-216"
    assert refusal(house(tmp_path / "raise", [12]), LOGISTIC + own.format(50.0))[0] == "HR-216"
    asked(house(tmp_path / "guard", [12], disclosure=50.0), LOGISTIC)


def test_noise_covers_numbers_as_far_as_the_guard_counts_it(tmp_path):
    private = PRIVATE.replace('columns = ["age", "dose"]', 'columns = ["age"]')
    few, server = [5], private.replace('at = "party"', 'at = "server"')
    asked(house(tmp_path / "own", few), private)
    assert refusal(house(tmp_path / "server", few, disclosure=0.1), server)[0] == "HR-216"
    trusted = {"require": {"noise": "server"}}
    asked(house(tmp_path / "trusted", few, disclosure=0.1, **trusted), server)
    weak = private.replace("5.0", "0.001")
    assert refusal(house(tmp_path / "weak", few, disclosure=0.1), weak)[0] == "HR-216"


def test_the_least_trusting_budget_says_whose_noise_covers():
    server, parties = ({"epsilon": 1.0, "delta": 1e-6, "trust": trust} for trust in ("server", "parties"))
    assert trust_of(GuardSection()) == "nobody"
    assert trust_of(GuardSection(budget=server)) == "server"
    assert trust_of(GuardSection(budget=server, study_budget=parties)) == "parties"
    assert trust_of(GuardSection(require={"noise": "shares"})) == "parties"


def test_a_limit_is_above_zero():
    with pytest.raises(ValueError):
        GuardSection(disclosure=0.0)
    assert GuardSection(disclosure=math.inf).disclosure == math.inf


def test_a_coordinator_is_told_a_multiple_of_five_records(tmp_path):
    of = house(tmp_path, [58], tell_records=True)
    assert unpack(of.ask("hello", [])["alpha"].parts[0])["records"] == 60
    assert [rounded(n) for n in (0, 2, 3, 7, 8, 62, 63)] == [0, 0, 5, 5, 10, 60, 65]


def test_noise_of_many_questions_covers_only_the_first_of_them(tmp_path):
    """At 0.5 of the bound one question is covered; the same one again, of which there is another answer, counts as exact."""
    private = PRIVATE.replace('columns = ["age", "dose"]', 'columns = ["age"]').replace("5.0", "0.5")
    of = house(tmp_path, [12], require={"noise": "party"})
    of.board(private)
    text = of.stations["alpha"].submissions.get(STUDY.hex()).rows[0]["exact numbers"]
    assert text == "No exact number leaves a party."
    seen = plain(first_question(of, private, ("age", "dose", "sick")))
    with pytest.raises(HedgerowError, match="HR-216"):
        put_again(of, seen, 12)
    answered = of_study(of.stations["alpha"])
    assert 1 < len(answered) < 4
    assert answered[0].noise == pytest.approx(4 / 6)


def test_many_rounds_of_noise_are_refused_when_they_are_rehearsed(tmp_path):
    often = LOGISTIC + "rounds = 400\n" + '[protection.mechanism]\nlaw = "gaussian"\nnoise_multiplier = {}\nat = "party"\n'
    assert refusal(house(tmp_path / "weak", [60], require={"noise": "party"}), often.format(0.5))[0] == "HR-216"
    of = house(tmp_path / "strong", [60], require={"noise": "party"})
    assert of.board(often.format(20.0))["alpha"]["status"] == "approved"


def test_records_without_values_make_room_for_no_question(tmp_path, monkeypatch):
    """Boarding knows no records; questions are refused where five complete ones are beside two hundred empty ones."""
    monkeypatch.setitem(COLUMNS, "age", COLUMNS["age"] | {"missing": "drop"})
    of = house(tmp_path, [60])
    config, columns = of.configs["alpha"], records("alpha", 205)
    columns["age"][5:] = math.nan
    of.start("alpha", local_data(config, Table(config.declared.admit(columns), config.declared), bytes(32)))
    with pytest.raises(HedgerowError, match="HR-216"):
        asked(of, ONCE)
    assert sum(entry.exact for entry in of_study(of.stations["alpha"])) <= 15 / 3


def test_a_station_counts_the_complete_records_of_each_party(monkeypatch):
    monkeypatch.setitem(COLUMNS, "age", COLUMNS["age"] | {"missing": "drop"})
    config, columns = config_of("alpha"), records("alpha", 20)
    columns["age"][:12] = math.nan
    whole = local_data(config, Table(config.declared.admit(columns), config.declared), bytes(32))
    held = replace(whole, roll=Roll(("a", "b")), sizes=np.array([10, 10]))
    schema = config.declared.select(("age", "dose", "sick"))
    assert complete_in(held, schema, frozenset({"age", "sick"})) == [0, 8]
    assert complete_in(held, schema, frozenset({"dose"})) == [10, 10]
    assert complete_in(held, config.declared.select(("dose", "sick")), frozenset({"dose"})) == []
