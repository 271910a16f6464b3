"""A coordinator that asks one approved study about nearly the same parties twice, and subtracts: the difference is a row.

The strictest guard that releases exact sums: rows hidden, from a coordinator that lies, in totals of three stations or more.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from test_hostile_coordinator import first_question, plain

from hedgerow.core.bound import Bound
from hedgerow.core.layouts import Layouts
from hedgerow.core.release import Release
from hedgerow.crypto import PairwiseMasks, SecAgg
from hedgerow.crypto.aggregation import Side, carry
from hedgerow.crypto.context import context_of
from hedgerow.crypto.keys import Roster
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.errors import HedgerowError
from hedgerow.network.station.cohorts import cohort_notes
from hedgerow.privacy import Gaussian
from helpers import with_question as about
from station_house import MEANS, House, key_material, records

FOUR = ("alpha", "beta", "gamma", "delta")
FIVE = (*FOUR, "eta")
"""Of so many one may be lost in the middle of a round, and the others open the total."""
STRICT = {"require": {"hidden_rows": True, "adversary": "active"}, "least_cohort": 3}
ACTIVE = '[protection.aggregation]\nby = "secagg"\nadversary = "active"\n'
MASKS = '[protection.aggregation]\nby = "pairwise"\n'
COLUMNS = ("age", "dose")
AGGREGATION = SecAgg(adversary="active")


def boarded(tmp_path, protection=ACTIVE, guard=STRICT, names=FOUR):
    house = House(tmp_path, dict.fromkeys(names, guard), approval="automatic", programs=[{"name": "moments"}])
    assert {one["status"] for one in house.board(MEANS + protection, COLUMNS).values()} == {"approved"}
    return house


class Rogue:
    """A coordinator that keeps to no program: it puts the study's own question to whom it likes, as often as it likes."""

    def __init__(self, house, protection=ACTIVE, aggregation=AGGREGATION, text=MEANS, columns=COLUMNS):
        self.house, self.aggregation, self.life = house, aggregation, 1
        self.seen = plain(first_question(house, text + protection, columns))
        schema = house.built(text + protection, columns).schema
        self.layout = Layouts(schema).of(self.seen.question, self.seen.streams).layout

    def ask(self, ids, number=1, silent=(), **changes):
        """One total, after a new set-up, or None; the rows of stations that are `silent` are lost on the way."""
        self.life += 1
        house, rail = self.house, self.house.rail
        house.queue = MessageQueue(lambda: house.hub.key_material, lambda: house.hub.public_identities, rail, pause=1e6)
        engine = house.network(life=self.life)
        outbox = replace(about(self.seen, number=number, **changes), ids=tuple(ids), layout=self.layout, asked=len(ids))
        there = dict(rail.stations)

        class Lossy:
            def exchange(self, outbox):
                if outbox.step.contributes:
                    rail.stations |= dict.fromkeys(silent, lambda body: None)
                try:
                    return engine.exchange(outbox)
                finally:
                    rail.stations |= there

        release = outbox.release
        encoding = self.aggregation.encoding(release, release.code(self.layout), len(ids))
        server = self.aggregation.scheme.asking(engine.roster)(outbox.ids)
        conversation = server.question(outbox.ids, encoding, context_of(outbox, self.layout), release.least)
        with suppress(HedgerowError):
            carried = carry(conversation, Lossy(), outbox, Side(self.aggregation))
            return encoding.decode(carried.result.total)
        return None

    def refusals(self, name="alpha"):
        """Codes in a station's journal."""
        return [code for kind, code in self.house.codes(name) if kind == "ask" and code not in ("asked", "answered")]


def row_of(name):
    """What the attack is after: a station's own sums, as the study asks them, in halves of ranges from their middles."""
    age, dose = records(name)["age"], records(name)["dose"]
    return np.array([len(age), ((age - 55) / 35).sum(), ((dose - 0.5) / 0.5).sum()])


def shown(whole, part, name="delta"):
    """Whether the difference of two totals is a station's row."""
    return whole is not None and part is not None and np.allclose((whole - part)[:3], row_of(name), atol=1e-6)


def left_out_of_a_second_epoch(tmp_path, **how):
    rogue = Rogue(boarded(tmp_path, **how))
    return rogue, rogue.ask(FOUR), rogue.ask(FOUR[:3])


@pytest.mark.slow
def test_a_station_that_is_left_out_of_a_second_epoch_is_not_the_difference(tmp_path):
    rogue, whole, part = left_out_of_a_second_epoch(tmp_path)
    assert whole is not None
    assert not shown(whole, part)
    assert part is None
    assert "answered" in {code for _, code in rogue.house.codes("alpha")}


@pytest.mark.slow
def test_a_station_whose_row_is_lost_in_a_second_round_is_not_the_difference(tmp_path):
    rogue = Rogue(boarded(tmp_path, names=FIVE))
    whole, part = rogue.ask(FIVE), rogue.ask(FIVE, silent=("delta",))
    assert whole is not None
    assert not shown(whole, part)
    assert part is None
    assert np.allclose(rogue.ask(FIVE), whole)  # the study goes on when the station is back


@pytest.mark.slow
def test_a_station_that_was_missed_in_the_first_round_stays_out(tmp_path):
    rogue = Rogue(boarded(tmp_path, names=FIVE))
    part, whole = rogue.ask(FIVE, silent=("delta",)), rogue.ask(FIVE)
    assert part is not None
    assert not shown(whole, part)
    assert whole is None
    assert np.allclose(rogue.ask([name for name in FIVE if name != "delta"]), part)


@pytest.mark.slow
def test_stations_that_were_restarted_remember_of_whom_the_totals_were(tmp_path):
    rogue = Rogue(boarded(tmp_path))
    whole = rogue.ask(FOUR)
    for name in FOUR:
        rogue.house.start(name)
    assert not shown(whole, rogue.ask(FOUR[:3]))
    assert np.allclose(rogue.ask(FOUR), whole)


@pytest.mark.slow
def test_pairwise_masks_are_over_the_same_group_as_before(tmp_path):
    rogue = Rogue(boarded(tmp_path, MASKS, {"require": {"hidden_rows": True}}), MASKS, PairwiseMasks())
    whole = rogue.ask(FOUR)
    assert whole is not None
    assert not shown(whole, rogue.ask(FOUR[:3]))


@pytest.mark.slow
@pytest.mark.parametrize("masks", [False, True], ids=["secagg", "pairwise"])
def test_twins_that_let_any_set_follow_are_caught(tmp_path, monkeypatch, masks):
    monkeypatch.setattr("hedgerow.crypto.standing.may_follow", lambda *anything: True)
    if masks:
        rogue = Rogue(boarded(tmp_path, MASKS, {"require": {"hidden_rows": True}}), MASKS, PairwiseMasks())
    else:
        rogue = Rogue(boarded(tmp_path))
    assert shown(rogue.ask(FOUR), rogue.ask(FOUR[:3], number=2))


# ---- noise that hides no party ---------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("multiplier", [1e-6, 2.0])
def test_noise_that_is_next_to_none_or_that_of_one_record_frees_no_station(tmp_path, multiplier):
    noise = f'[protection.mechanism]\nlaw = "gaussian"\nnoise_multiplier = {multiplier}\nat = "shares"\nleast = 3\n'
    rogue = Rogue(boarded(tmp_path, noise + ACTIVE), noise + ACTIVE)
    assert rogue.ask(FOUR) is not None
    assert rogue.ask(FOUR[:3], number=2) is None
    told = cohort_notes(rogue.house.stations["alpha"].journal.entries())
    assert set(told.values()) == {"total over 4 parties"}


SLOPES = """
name = "risk"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "logistic_regression"
formula = "sick ~ age + dose"
rounds = ROUNDS
[protection]
clip = { norm = "l2", radius = 30.0 }
[protection.mechanism]
law = "gaussian"
noise_multiplier = NOISE
at = "shares"
least = 3
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a clip of")
@pytest.mark.parametrize(("rounds", "noise", "free"), [(40, 1.0, False), (2, 5.0, True)], ids=["worn out", "worth its name"])
def test_noise_frees_a_study_only_while_all_its_answers_are_covered(tmp_path, rounds, noise, free):
    """The mean over many pairs of noisy totals, with a station and without it, is that station's row."""
    text, columns = SLOPES.replace("ROUNDS", str(rounds)).replace("NOISE", str(noise)), ("age", "dose", "sick")
    guard = dict.fromkeys(FOUR, STRICT)
    house = House(tmp_path, guard, approval="automatic", programs=[{"name": "logistic_regression"}])
    assert {one["status"] for one in house.board(text + ACTIVE, columns).values()} == {"approved"}
    told = house.stations["alpha"].submissions.all()[0].rows[0].get("totals are of", "")
    assert ("the same parties" in told) == (not free)
    rogue = Rogue(house, text=text, columns=columns)
    assert rogue.ask(FOUR) is not None
    assert (rogue.ask(FOUR[:3], number=2) is not None) == free


def test_noise_hides_a_party_where_it_is_worth_its_name_and_of_a_bound_per_party():
    def release(multiplier, unit, at="shares"):
        return Release(bounds=Bound(2, 1.0, unit), mechanism=Gaussian(multiplier, at=at, least=3 if at == "shares" else 0))

    assert release(1.0, "party").hides_parties
    assert release(1.0, "party", at="party").hides_parties
    assert not release(1.0, "party", at="server").hides_parties
    assert not release(1e-3, "party").hides_parties
    assert not release(1e-3, "party").random
    assert not release(1.0, "record").hides_parties
    assert release(1.0, "record").random


# ---- what was answered is lost ---------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("how", ["deleted", "emptied", "restored from an older copy"])
def test_stations_that_lost_what_they_answered_answer_nothing_more(tmp_path, how):
    rogue = Rogue(boarded(tmp_path))
    whole = rogue.ask(FOUR)
    for name in FOUR[:3]:
        for path in (tmp_path / name / "answered").glob("*.journal"):
            if how == "deleted":
                path.unlink()
            else:
                lines = path.read_bytes().splitlines(keepends=True)
                path.write_bytes(b"" if how == "emptied" else b"".join(lines[:1]))
        rogue.house.start(name)
    assert not shown(whole, rogue.ask(FOUR[:3], number=2))
    assert rogue.refusals()[-1] == "HR-618"


@pytest.mark.slow
def test_a_study_that_was_approved_and_not_asked_begins_without_a_file(tmp_path):
    rogue = Rogue(boarded(tmp_path))
    for name in FOUR:
        rogue.house.start(name)
    assert rogue.ask(FOUR) is not None


@pytest.mark.slow
def test_a_study_goes_on_when_an_unrelated_station_is_enrolled(tmp_path):
    rogue = Rogue(boarded(tmp_path))
    whole = rogue.ask(FOUR)
    beth = {"beth": key_material("beth").identity.public}
    for keys in rogue.house.keys.values():
        keys.roster = Roster(dict(keys.roster) | beth)
    for name in FOUR:
        rogue.house.start(name)
    assert np.allclose(rogue.ask(FOUR), whole)
    assert not shown(whole, rogue.ask(FOUR[:3], number=2))
    told = cohort_notes(rogue.house.stations["alpha"].journal.entries())
    assert set(told.values()) == {"total over 4 parties"}
    for name in FOUR:
        rogue.house.start(name)
    assert np.allclose(rogue.ask(FOUR), whole)
