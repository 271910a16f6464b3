"""Trains at rest: kept with every word, decided once at a time, signed."""

import pytest

from hedgerow.errors import KeyInvalid, TrainRefused, TrainUnapproved, UnknownStudy
from hedgerow.stations.base import Base
from hedgerow.stations.inbox import Inbox
from hedgerow.stations.kinds import Announced, Kind
from hedgerow.stations.trains import Train, Trains
from hedgerow.wire.boarding import train_digest
from station_house import Keys, config_of, seat

KIND = Kind("sum", "hedgerow.stats.moments:deviations", "", "none", "none", "", "all 1 0", "", False, "00")


def train(study="aa" * 16, title="means"):
    kinds = Announced({KIND: {"sum": 1.5}}, {KIND: 7})
    rows = ({"questions": "question 1", "asks": "sum"},)
    made = Train(
        study, b"toml", b"told", train_digest(b"toml", b"told"), "2026-03-02", title, "hub", "moments", 3, "in short", rows
    )
    return made.__class__(**vars(made) | {"announced": kinds, "columns": ("age",)})


@pytest.fixture
def base(tmp_path):
    made = Base(tmp_path / "state" / "station.sqlite")
    yield made
    made.close()


def test_a_train_comes_back_as_it_was_put(base):
    Trains(base).put(train())
    assert Trains(base).get("aa" * 16) == train()
    assert (Trains(base).status("aa" * 16), Trains(base).status("bb" * 16)) == ("waiting", None)


def test_a_decision_is_signed_for_this_train_and_no_other(base):
    mine = seat("alpha")
    decided = train().decided(mine, "approved", by="Ada", at="now")
    Trains(base).put(train())
    Trains(base).put(decided)
    found = Trains(base).get("aa" * 16)
    assert found == decided
    found.check_signature(mine.card)
    for changed in ({"status": "refused"}, {"digest": bytes(32)}):
        with pytest.raises(KeyInvalid):
            Train(**vars(found) | changed).check_signature(mine.card)
    with pytest.raises(KeyInvalid):
        found.check_signature(seat("alpha").card)


def test_only_an_approved_train_may_ask():
    mine = seat("alpha")
    train().decided(mine, "approved", by="Ada", at="now").refuse_unapproved()
    with pytest.raises(TrainUnapproved, match="HR-607"):
        train().refuse_unapproved()
    with pytest.raises(TrainUnapproved):
        train().decided(mine, "ended", by="hub", at="now").refuse_unapproved()
    with pytest.raises(TrainRefused, match="HR-608"):
        train().decided(mine, "refused", by="Ada", at="now").refuse_unapproved()


def test_a_person_names_a_study_by_its_beginning_or_its_title(base):
    trains = Trains(base)
    for study, title in [("aa" * 16, "means"), ("ab" * 16, "risk"), ("cc" * 16, "risk")]:
        trains.put(train(study, title))
    assert trains.find("aa").title == trains.find("means").title == "means"
    assert trains.find("cc").study == "cc" * 16
    for name in ("", "a", "risk", "nothing"):
        with pytest.raises(UnknownStudy, match="HR-102"):
            trains.find(name)


def test_decisions_are_in_the_journal_and_the_guard_s_own_stand(base):
    keys = Keys(seat("alpha"))
    box = Inbox(config_of("alpha"), keys, base)
    box.trains.put(train())
    assert box.approve("means", "Ada").status == "approved"
    assert box.refuse("means", "Ben", "too much").because == "too much"
    assert [(e.kind, e.code, e.reason) for e in box.journal.entries()] == [
        ("decision", "approved", "by Ada"),
        ("decision", "refused", "by Ben: too much"),
    ]
    box.trains.put(train().decided(keys.seat, "refused", by="guard", at="now", code="HR-603"))
    with pytest.raises(TrainRefused, match="HR-603"):
        box.approve("means", "Ada")


def test_two_connections_write_one_at_a_time(base, tmp_path):
    other = Base(tmp_path / "state" / "station.sqlite")
    Trains(base).put(train())
    Trains(other).put(train().decided(seat("alpha"), "approved", by="Ada", at="now"))
    assert Trains(base).status("aa" * 16) == "approved"
    other.close()
