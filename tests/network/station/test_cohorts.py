"""An owner sees of whom totals are, and when these become fewer; and guards refuse what no set of parties would cover."""

from dataclasses import replace

import numpy as np
import pytest
from test_difference_attack import ACTIVE, FOUR, STRICT, Rogue, boarded
from test_hostile_coordinator import boarded as open_house
from test_hostile_coordinator import first_question

from hedgerow.core.bound import Bound
from hedgerow.core.release import Release
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.schemes import Credentials
from hedgerow.crypto.standing import PartySet, StandingSets, names_digest
from hedgerow.errors import ConfigInvalid, ProtectionRequired
from hedgerow.network.station.cohorts import cohort_notes, told_cohort
from hedgerow.network.station.config import RequireSection
from hedgerow.network.station.journal import StationEntry
from hedgerow.network.station.policy import admit_protection
from hedgerow.privacy import Gaussian
from helpers import with_question as about
from station_house import MEANS, PRIVATE, House, config_of

NAMES = tuple(f"p{i:02}" for i in range(16))
ROSTER = Roster({name: Identity.fresh().public for name in NAMES})


def settled(own, n):
    own.standing.of("p00").keep(PartySet.of(names_digest(NAMES), np.arange(16) < n), 3)
    return told_cohort(own)


def test_a_total_is_told_with_its_parties_and_when_these_become_fewer():
    own = Credentials(ROSTER, standing=StandingSets())
    told = [told_cohort(own), settled(own, 16), told_cohort(own), settled(own, 16), settled(own, 13)]
    entries = [StationEntry("now", "ask", "s", i, "answered", cohort=text, number=i) for i, text in enumerate(told)]
    assert cohort_notes(entries) == {
        1: "total over 16 parties",
        3: "total over 16 parties",
        4: "total over 13 parties, fewer than before (16): without p13, p14, p15",
    }
    assert told[1].split(" ")[2:] == list(NAMES)
    assert [StationEntry.from_json(entry.to_json(), i, "") for i, entry in enumerate(entries)] == entries


def test_parties_without_a_roster_tell_how_many_there_are_and_not_who():
    own = Credentials(None, standing=StandingSets())
    assert len(settled(own, 16).split(" ")) == 2


@pytest.mark.slow
def test_the_journal_of_a_station_has_the_parties_of_each_total(tmp_path):
    rogue = Rogue(boarded(tmp_path))
    rogue.ask(FOUR)
    entries = rogue.house.stations["alpha"].journal.entries()
    [cohort] = {entry.cohort for entry in entries if entry.cohort}
    assert cohort.split(" ")[0] == "4"
    assert set(cohort.split(" ")[2:]) == set(FOUR)
    [kept] = {entry.signature for entry in entries if entry.signature}
    assert len(kept) == 32


@pytest.mark.parametrize("kind", ["all", "records", "part", "dealt", "poisson", "fixed", "given"])
def test_exact_totals_over_parties_that_are_drawn_anew_hide_no_rows(tmp_path, kind):
    require = RequireSection(hidden_rows=True)
    for text in (MEANS, PRIVATE):
        seen = first_question(open_house(tmp_path / str(len(text)), text), text, ("age", "dose"))
        cohort = seen.question.cohort
        drawn = about(seen, cohort=replace(cohort, sampling=replace(cohort.sampling, kind=kind, rate=0.5)))
        if kind in ("poisson", "fixed", "given"):  # the noise of one record does not make up for a station
            with pytest.raises(ProtectionRequired, match="drawn anew"):
                admit_protection(require, drawn, hidden=True)
            admit_protection(RequireSection(), drawn, hidden=True)
        else:
            admit_protection(require, drawn, hidden=True)
    shares = Release(bounds=Bound(2, 1.0), mechanism=Gaussian(1.0, at="shares", least=3))
    admit_protection(require, replace(drawn, release=shares), hidden=True)


@pytest.mark.slow
def test_a_guard_can_want_the_same_question_answered_once(tmp_path):
    once = {**STRICT, "require": {**STRICT["require"], "once_per_context": True}}
    house = House(tmp_path, dict.fromkeys(FOUR, once), approval="automatic", programs=[{"name": "moments"}])
    [code] = {one["code"] for one in house.board(MEANS + ACTIVE, ("age", "dose")).values()}
    assert code == "HR-606"
    said = house.board(MEANS + ACTIVE + "once_per_context = true\n", ("age", "dose"), study=b"another study...")
    assert {one["status"] for one in said.values()} == {"approved"}
    with pytest.raises(ConfigInvalid, match="once_per_context"):
        config_of("alpha", require={"once_per_context": True})
