"""Studies whose rows aggregators of their own organisations add up: numbers, journals, and what nobody can read."""

import sqlite3
import threading
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from aggregator_house import ADDING, SHARES, Federation
from hedgerow.core.conversation import Sessions
from hedgerow.core.federation import inside
from hedgerow.core.layouts import Layouts
from hedgerow.core.party import Parties
from hedgerow.crypto import AdditiveShares
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.data import Schema
from hedgerow.engines import InProcess
from hedgerow.engines.aggregators import AggregatorsAway
from hedgerow.engines.rails.rail import Joined
from hedgerow.errors import MessageRefused, RoundRefused
from hedgerow.network.aggregator.journal import AggregatorBase, Served
from hedgerow.network.coordinator.boarding import Agreed
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.boarding import known_as, submission_digest
from hedgerow.wire.envelope import disclose
from helpers import altered
from helpers import with_question as about
from station_house import LOGISTIC, MEANS, parse_text, records

NAMES = ("alpha", "beta", "gamma", "delta", "eta")
ALLOWED = {"approval": "automatic", "programs": [{"name": "logistic_regression"}, {"name": "moments"}]}
HIDDEN = {"require": {"hidden_rows": True}}


def federation(tmp_path, names=NAMES, guard=HIDDEN, **how):
    return Federation(tmp_path, dict.fromkeys(names, guard), **ALLOWED, **how)


def coefficients(fed, id):
    return pd.read_csv(fed.folder / "runs" / id / "coefficients.csv")["coef"].to_numpy()


def in_one_process(fed, text, names=("age", "dose", "sick")):
    """The same program on the same records, whose parties and aggregators are all in this process."""
    held = [one.held for _, one in sorted(fed.house.stations.items())]
    columns = {name: np.concatenate([one.columns[name] for one in held]) for name in names}
    parties = Parties(tuple(id for one in held for id in one.ids), columns, [n for one in held for n in one.sizes])
    built = build_remote(parse_text(text), Schema(fed.house.schema.select(names).columns), InProcess().hosting(parties))
    return last(built.listing.program(built.settings)(built.federation))


def given(fed, name):
    """Study, epoch and round of every total that an aggregator gave."""
    found, epochs = [], {}
    for entry in fed.gates[name].journal.entries():
        if entry.code == "epoch":
            epochs[entry.study] = entry.words
        elif entry.code == "total":
            found.append((entry.study, epochs[entry.study], entry.words.partition("in round ")[2].split()[0]))
    return found


def nothing_twice(fed):
    """Whether no aggregator gave a round of an epoch twice; their journals are whole."""
    for gate in fed.gates.values():
        gate.journal.verify()
    return all(len(set(given(fed, name))) == len(given(fed, name)) for name in fed.gates)


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_regression_through_three_aggregators_and_five_stations_is_that_of_one_process(tmp_path):
    fed = federation(tmp_path)
    id = fed.submit(LOGISTIC + SHARES)
    kept = fed.go(id)
    assert kept.state == "finished", kept.reason
    assert (coefficients(fed, id) == in_one_process(fed, LOGISTIC + SHARES).beta).all()
    assert {one.station: one.status for one in kept.boarded} == dict.fromkeys((*NAMES, *ADDING), "approved")
    assert not kept.untold
    for name in ADDING:
        entries = fed.totals(name)
        assert {entry.parties for entry in entries} == {5}
        assert all("an exact total of 5 parties" in entry.words for entry in entries)
        assert fed.codes(name)[-1] == ("end", "ended")
    summary = fed.house.stations["beta"].submissions.all()[0].summary
    assert "Rows are added up by ministry, university, ombudsman" in summary
    assert nothing_twice(fed)


@pytest.mark.slow
def test_two_aggregators_are_the_first_of_those_that_the_coordinator_names(tmp_path):
    two = {"ombudsman": {}, "ministry": {}}
    fed = federation(tmp_path, NAMES[:3], adding=two, named=("ombudsman", "ministry", "university"))
    kept = fed.go(fed.submit(MEANS + SHARES + "aggregators = 2\n"))
    assert kept.state == "finished", kept.reason
    assert [len(fed.totals(name)) for name in two] == [len(fed.totals("ministry"))] * 2


@pytest.mark.slow
def test_studies_go_side_by_side_through_the_same_aggregators(tmp_path):
    fed = federation(tmp_path, NAMES[:3])
    ids = [fed.submit(text + SHARES) for text in (LOGISTIC, MEANS, LOGISTIC)]
    while not all(fed.store.study(id).ended for id in ids):
        threads = [threading.Thread(target=fed.coordinator.advance, args=(id,)) for id in fed.coordinator.due()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fed.house.queue.wait(1.0)
    assert [fed.store.study(id).state for id in ids] == ["finished"] * 3
    assert (coefficients(fed, ids[0]) == coefficients(fed, ids[2])).all()
    assert nothing_twice(fed)
    assert {len({one.study for one in fed.totals(name)}) for name in ADDING} == {3}


# ---- who is away -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_study_waits_for_an_aggregator_as_it_does_for_a_station(tmp_path):
    fed = federation(tmp_path, NAMES[:3])
    fed.stop("university")
    id = fed.submit(MEANS + SHARES)
    kept = fed.go(id, 30)
    assert (kept.state, kept.reason) == ("boarding", "waiting for university, who adds up, to connect")
    assert not any(station.submissions.all() for station in fed.house.stations.values())  # nobody was bothered
    fed.start("university")
    fed.go(id, until=lambda: fed.store.study(id).state == "running")
    fed.stop("ombudsman")
    asked = len(fed.house.rail.sent)
    kept = fed.go(id, 30)
    assert (kept.state, kept.reason) == ("waiting", "ombudsman away")
    assert len(fed.house.rail.sent) == asked
    fed.start("ombudsman")
    assert fed.go(id).state == "finished"


def killed_again_and_again(fed, id, every):
    """Kill one aggregator after the other at every so-manieth letter, before or after it answers, until the study ends."""
    counts, deaths = [0], []

    def mortal(name):
        def receive(raw):
            counts[0] += 1
            dies = counts[0] % every == 0
            answer = None if dies and len(deaths) % 2 else fed.gates[name].receive(raw)
            if dies:  # before it answers, or after it has and before the answer is out
                deaths.append(name)
                fed.start(name)
                fed.house.rail.stations[name] = mortal(name)
                return None
            return answer

        return receive

    for name in ADDING:
        fed.house.rail.stations[name] = mortal(name)
    return fed.go(id, 3000.0), deaths


@pytest.mark.slow
@pytest.mark.parametrize("every", [17, 22])
def test_aggregators_that_are_killed_at_any_letter_give_nothing_twice_and_the_study_ends(tmp_path, every):
    fed = federation(tmp_path)
    id = fed.submit(LOGISTIC + SHARES)
    kept, deaths = killed_again_and_again(fed, id, every)
    assert kept.state == "finished", kept.reason
    assert len(deaths) >= 2
    assert_allclose(coefficients(fed, id), in_one_process(fed, LOGISTIC + SHARES).beta, rtol=1e-9)
    assert nothing_twice(fed)
    said = [entry.sentence for entry in fed.store.history(id)]
    assert any("the aggregator" in one and "waiting" in one for one in said)


class Killed(BaseException):
    """The coordinator's process ended here."""


def until_killed(fed, id, events):
    """Let the coordinator work until so many events have come to it, and kill it then."""
    take, left = fed.house.rail.receive, [events]

    def receive(seconds):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return take(seconds)

    fed.house.rail.receive = receive
    with suppress(Killed):
        fed.go(id)
    fed.house.rail.receive = take
    fed.house.rail.events.clear()


@pytest.mark.slow
def test_a_coordinator_that_is_restarted_goes_on_with_the_same_parties(tmp_path):
    fed = federation(tmp_path)
    id = fed.submit(LOGISTIC + SHARES)
    until_killed(fed, id, 100)
    assert not fed.store.study(id).ended
    assert 0 < len(fed.totals("ministry")) < 6
    fed.begin()
    assert fed.go(id).state == "finished"
    assert_allclose(coefficients(fed, id), in_one_process(fed, LOGISTIC + SHARES).beta, rtol=1e-9)


def replayed(fed):
    """Restart all aggregators in the middle of a study, and bring them all letters of before once more."""
    id = fed.submit(LOGISTIC + SHARES)
    until_killed(fed, id, 70)
    assert not fed.store.study(id).ended
    letters = [(name, body) for name, body in fed.house.rail.sent if name in ADDING]
    before = {name: len(given(fed, name)) for name in ADDING}
    assert min(before.values()) > 0
    kinds = {kind_of(fed, fed.gates[name].receive(body)) for name, body in letters}
    assert kinds <= {None, "hello", "board", "aggregated"}  # what was said, where it is remembered
    assert {name: len(given(fed, name)) for name in ADDING} == before
    for name in ADDING:
        fed.start(name)
    kinds = {kind_of(fed, fed.gates[name].receive(body)) for name, body in letters}
    return {name: len(given(fed, name)) for name in ADDING} == before, kinds


def kind_of(fed, body):
    """What an aggregator said."""
    return None if body is None else disclose(fed.house.hub.key_material, fed.house.hub.public_identities, body).kind


@pytest.mark.slow
def test_letters_of_before_a_restart_give_no_total_again(tmp_path):
    fed = federation(tmp_path, NAMES[:3])
    same, kinds = replayed(fed)
    assert same
    assert "refused" in kinds
    assert nothing_twice(fed)


@pytest.mark.slow
def test_they_would_where_an_aggregator_forgot_which_epochs_it_served(tmp_path, monkeypatch):
    monkeypatch.setattr(Served, "seen", lambda self, key: None)
    monkeypatch.setattr(Served, "write", lambda self, key, digest: None)
    fed = federation(tmp_path, NAMES[:3])
    same, _ = replayed(fed)
    assert not same
    assert not nothing_twice(fed)


def test_an_epoch_is_served_once_whichever_study_asks_and_whoever_is_first(tmp_path):
    base = AggregatorBase(tmp_path / "aggregator.sqlite")
    ends, gate = [], threading.Barrier(8)

    def one(study):
        gate.wait()
        try:
            Served(base).write("epoch 00", b"the same letter")
            ends.append("served")
        except MessageRefused:
            ends.append("refused")

    threads = [threading.Thread(target=one, args=(str(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["refused"] * 7 + ["served"]
    base.close()


# ---- what nobody reads ------------------------------------------------------------------------------------------------
def found_in(haystacks, row):
    """Whether a part of a row is anywhere: two numbers beside each other, as whole numbers or as real ones, or as text."""
    pieces = {row[at : at + 2].tobytes() for at in range(len(row) - 1)}
    return any(piece in haystack for haystack in haystacks for piece in pieces)


def watched_rows(monkeypatch):
    """Every row that a party encodes, as real numbers and as whole ones."""
    rows, encode = [], RingEncoding.encode

    def watching(self, row):
        whole = encode(self, row)
        rows.append((np.array(row, float), whole.copy()))
        return whole

    monkeypatch.setattr(RingEncoding, "encode", watching)
    return rows


def everything_that_the_coordinator_has(fed):
    """Letters as it opens them, what it sent, and every file below its folder; its databases row by row."""
    mine, others = fed.house.hub.key_material, fed.house.hub.public_identities
    parts = [part for name, body in fed.house.rail.came for part in disclose(mine, others, body).parts]
    files = [
        path.read_bytes()
        for path in fed.folder.rglob("*")
        if path.is_file() and not path.is_relative_to(fed.folder / "stations")
    ]
    rows = sqlite3.connect(fed.store.path).execute("SELECT * FROM studies").fetchall()
    return [*parts, *fed.bodies(), *files, repr(rows).encode()]


def rows_and_what_is_seen(tmp_path, monkeypatch, ends):
    rows = watched_rows(monkeypatch)
    fed = federation(tmp_path, NAMES[:3])
    id = fed.submit(MEANS + SHARES)
    assert fed.go(id, 5.0).state == ends
    assert len(rows) >= 3
    return rows, everything_that_the_coordinator_has(fed)


@pytest.mark.slow
def test_no_row_is_in_anything_that_the_coordinator_or_the_wire_has(tmp_path, monkeypatch):
    rows, seen = rows_and_what_is_seen(tmp_path, monkeypatch, "finished")
    assert not any(found_in(seen, one) for pair in rows for one in pair)


@pytest.mark.slow
def test_it_would_be_found_if_a_party_sent_it_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.crypto.shares.party.seal", lambda key, row, about: row + bytes(16))
    monkeypatch.setattr("hedgerow.crypto.shares.party.add_streams", lambda *anything: None)
    rows, seen = rows_and_what_is_seen(tmp_path, monkeypatch, "waiting")
    assert all(found_in(seen, whole) for _, whole in rows)


# ---- over which parties ------------------------------------------------------------------------------------------------
class Stopped(Exception):
    """The question was seen."""


def first_question(fed, text, columns, reached, **how):
    """The first question about records that a program asks, without the step that carried it."""
    built, seen = fed.house.built(text, columns, aggregators=reached, **how), []
    network = inside(built.federation).run.engine

    class Engine:
        parties, elsewhere, roster, aggregators = network.parties, True, network.roster, reached

        def exchange(self, outbox):
            if outbox.step.contributes:
                seen.append(replace(outbox, step=None, protocol=None))
                raise Stopped
            return network.exchange(outbox)

    with pytest.raises(Stopped):
        next(iter(built.listing.program(built.settings)(altered(built.federation, engine=Engine()))))
    return seen[0]


class Rogue:
    """A coordinator that keeps to no program: it puts the study's own question to whom it likes, as often as it likes."""

    def __init__(self, fed, monkeypatch):
        monkeypatch.setattr("hedgerow.crypto.shares.server.AdditiveServer._succeeding", lambda self, boxes, least: boxes)
        monkeypatch.setattr("hedgerow.crypto.shares.server.may_succeed", lambda *anything: True)
        self.fed, house = fed, fed.house
        id = fed.submit(MEANS + SHARES)
        while fed.store.study(id).state != "running":
            fed.coordinator.advance(id)
        kept = fed.store.study(id)
        agreed = Agreed.unpack(kept.agreed)
        self.key, self.known = kept.key, agreed.aggregators
        self.digest = known_as(kept.key.hex(), submission_digest(*agreed.parts()))
        self.aggregation, self.life = AdditiveShares(), 50
        how = {"study": self.key, "life": self.life}
        self.seen = first_question(fed, MEANS + SHARES, ("age", "dose"), self.reached(), **how)
        schema = house.built(MEANS + SHARES, ("age", "dose")).schema
        self.layout = Layouts(schema).of(self.seen.question, self.seen.streams).layout

    def reached(self):
        return AggregatorsAway(self.fed.house.queue, self.key, self.digest, self.known, self.fed.house.seconds, self.life)

    def ask(self, ids):
        """One total over these stations, in a new epoch; None where it was refused."""
        self.life += 1
        engine = self.fed.house.network(self.key, self.life, aggregators=self.reached())
        outbox = replace(about(self.seen, number=1), ids=tuple(ids), layout=self.layout, asked=len(ids))
        try:
            return self.aggregation.ask(engine, outbox, Sessions()).total
        except RoundRefused as refused:
            self.why = refused.reason
            return None


def row_of(name):
    """What the attack is after: a station's own sums, as the study asks them, in halves of ranges from their middles."""
    age, dose = records(name)["age"], records(name)["dose"]
    return np.array([len(age), ((age - 55) / 35).sum(), ((dose - 0.5) / 0.5).sum()])


def shown(whole, part, name):
    return whole is not None and part is not None and np.allclose((whole - part)[:3], row_of(name), atol=1e-6)


@pytest.mark.slow
def test_a_coordinator_that_leaves_a_station_out_of_a_second_total_gets_none(tmp_path, monkeypatch):
    rogue = Rogue(federation(tmp_path, NAMES[:4]), monkeypatch)
    whole = rogue.ask(NAMES[:4])
    assert whole is not None
    assert rogue.ask(NAMES[:3]) is None
    assert "HR-245 CohortChanged" in rogue.why
    for name in ADDING:
        rogue.fed.start(name)
    assert rogue.ask(NAMES[:3]) is None  # it is on their disks
    assert np.allclose(rogue.ask(NAMES[:4]), whole)


@pytest.mark.slow
def test_one_aggregator_that_keeps_to_it_is_enough_and_without_any_the_row_is_shown(tmp_path, monkeypatch):
    rogue = Rogue(federation(tmp_path, NAMES[:4]), monkeypatch)
    whole = rogue.ask(NAMES[:4])
    careless = {name: rogue.fed.gates[name]._sessions[rogue.key.hex()].aggregator._given for name in ADDING}
    for name in ADDING[:2]:
        monkeypatch.setattr(careless[name], "refuse_other", lambda *anything: None)
    assert rogue.ask(NAMES[:3]) is None
    monkeypatch.setattr(careless["ombudsman"], "refuse_other", lambda *anything: None)
    assert shown(whole, rogue.ask(NAMES[:3]), "delta")


@pytest.mark.slow
def test_stations_that_are_missing_are_waited_for_and_counted_in_no_other_way(tmp_path):
    fed = federation(tmp_path)
    id = fed.submit(LOGISTIC + SHARES)
    until_killed(fed, id, 110)
    assert {entry.parties for entry in fed.totals("ministry")} == {5}
    fed.begin()
    away = fed.house.rail.stations.pop("delta")
    kept = fed.go(id, 120.0)
    assert kept.state == "waiting"
    assert "1 of the 5 parties of this study's exact totals are missing" in kept.reason
    fed.house.rail.stations["delta"] = away
    fed.house.rail.events.append(Joined("delta"))
    assert fed.go(id, 3000.0).state == "finished"
    assert {entry.parties for entry in fed.totals("ministry")} == {5}
    assert_allclose(coefficients(fed, id), in_one_process(fed, LOGISTIC + SHARES).beta, rtol=1e-9)
