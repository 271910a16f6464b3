"""A station whose journal was lost has no fresh budget: it does not start, or answers nothing, until its owner decides."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress

import pandas as pd
import pytest
from typer.testing import CliRunner

from hedgerow.cli.station import app
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.rail import Joined
from hedgerow.errors import HedgerowError, JournalLost, KeyInvalid, LedgerDamaged, PartyDeclined
from hedgerow.network.coordinator.store import Store
from hedgerow.network.identity.enrolment import accept, ask, enrol
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.heads import trouble
from hedgerow.network.station.review import Review
from hedgerow.network.station_service import open_folder
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.heads import Head, seen
from hedgerow.wire.values import pack, unpack
from station_house import PRIVATE, Direct, parse_text, records

TOML = """
name = "{name}"
[coordinator]
name = "hub"
rail = "socket"
path = "../hub/rail.sock"
[data]
name = "heart"
source = "csv"
path = "heart.csv"
[data.columns]
age = {{ range = [20, 90] }}
dose = {{ range = [0, 1] }}
sick = {{ kind = "binary" }}
income = {{ range = [0, 100000] }}
[guard]
approval = "automatic"
programs = [{{ name = "moments" }}]
[guard.budget]
epsilon = 3.0
delta = 1e-6
"""
DATABASE = "station.sqlite"


class World:
    """A coordinator with its database, and stations in folders of their own."""

    def __init__(self, folder, *names):
        self.folder = folder
        (folder / "hub").mkdir(mode=0o700)
        self.hub = KeyFolder.make(folder / "hub" / "keys", "hub", True, hosts=["localhost"])
        for name in names:
            (folder / name).mkdir()
            (folder / name / "station.toml").write_text(TOML.format(name=name))
            pd.DataFrame(records(name)).to_csv(folder / name / "heart.csv", index=False)
            mine = KeyFolder.make(folder / name / "keys", name)
            accept(mine, Welcome.from_bytes(enrol(self.hub, Request.from_bytes(ask(mine)))))
        self.opened, self.rail, self.number = {}, Direct(), 0
        self.start_hub()

    def start_hub(self):
        """Start the coordinator, or another one on what it has kept."""
        with suppress(AttributeError):
            self.store.close()
        self.store = Store(self.folder / "hub" / "state", self.rail.now)
        heads = self.store.heads(lambda: self.hub.key_material)
        self.queue = MessageQueue(
            lambda: self.hub.key_material, lambda: self.hub.public_identities, self.rail, pause=1e6, heads=heads
        )

    def start(self, name="alpha"):
        self.stop(name)
        opened = open_folder(self.folder / name)
        try:
            station = opened.station()
        except BaseException:
            opened.base.close()
            raise
        self.opened[name] = opened, station
        self.rail.stations[name] = station.receive
        self.rail.events.append(Joined(name))
        self.queue.wait(0.5)
        return station

    def stop(self, name="alpha"):
        if name in self.opened:
            opened, station = self.opened.pop(name)
            station.close()
            opened.base.close()
            del self.rail.stations[name]

    def state(self, name="alpha"):
        return self.folder / name / "state"

    def ask(self, kind, parts, study, name="alpha"):
        self.number += 1
        [letter] = self.queue.ask(kind, {name: parts}, study=study, number=self.number << 32, seconds=1.0).values()
        return letter

    def study(self, name="alpha"):
        """Run a study whose answer costs something, and return what was spent after it."""
        key = b"study %010d" % self.number
        station = self.opened[name][1]
        schema = station.held.schema.select(["age", "dose"])
        told = {"coordinator": "hub", "stations": {name: 1}, "schema": schema.columns, "version": "0.1.0"}
        letter = self.ask("board", [PRIVATE.encode(), pack(told)], key, name)
        said = {"code": letter.parts[0].decode()} if letter.kind == "refused" else unpack(letter.parts[0])
        if said["code"]:
            raise PartyDeclined("it refuses to board.", codes={name: said["code"]})
        self.number += 1
        network = Network(self.queue, key, {name: (name,)}, seconds=1.0, life=self.number)
        built = build_remote(parse_text(PRIVATE), schema, network)
        last(built.listing.program(built.settings)(built.federation))
        return self.spent(name)

    def spent(self, name="alpha"):
        [(_, epsilon, _)] = self.opened[name][1].account.spent()
        return epsilon

    def backup(self, name="alpha", what="state"):
        """A copy of a folder of a station, which runs."""
        copy = self.folder / f"{name}-{what}-{self.number}"
        shutil.copytree(self.folder / name / what, copy)
        return copy

    def restore(self, copy, name="alpha", what="state"):
        self.stop(name)
        shutil.rmtree(self.folder / name / what, ignore_errors=True)
        shutil.copytree(copy, self.folder / name / what)

    def entries(self, name="alpha"):
        return self.opened[name][1].journal.entries()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, "alpha", "beta")
    yield made
    for name in list(made.opened):
        made.stop(name)
    made.store.close()


def deleted(world):
    (world.state() / DATABASE).unlink()


def emptied(world):
    (world.state() / DATABASE).write_bytes(b"")


def all_deleted(world):
    shutil.rmtree(world.state())


def made_anew(world):
    deleted(world)
    from hedgerow.network.station.base import Base

    Base(world.state() / DATABASE).close()


def replaced(world):
    world.start("beta")
    world.study("beta")
    world.stop("beta")
    shutil.copy(world.state("beta") / DATABASE, world.state() / DATABASE)


def truncated(world):
    """The last entry is gone, and the chain of the others is whole."""
    with closing(sqlite3.connect(world.state() / DATABASE)) as connection:
        connection.execute("DROP TRIGGER journal_never_deleted")
        connection.execute("DELETE FROM journal WHERE number = (SELECT max(number) FROM journal)")
        connection.commit()


def tables_emptied(world):
    with closing(sqlite3.connect(world.state() / DATABASE)) as connection:
        connection.execute("DROP TRIGGER journal_never_deleted")
        connection.execute("DELETE FROM journal")
        connection.execute("DELETE FROM submissions")
        connection.commit()


LOSSES = [deleted, emptied, all_deleted, made_anew, replaced, truncated, tables_emptied]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_a_station_that_lost_its_journal_does_not_start(world, loss):
    world.start()
    assert world.study() > 0
    world.start()  # from here on the key folder knows how far the journal went
    whole = world.backup()
    world.stop()
    loss(world)
    kept = world.state() / "states" / "aa.sqlite"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(b"of a study that is open in the backup")
    with pytest.raises((JournalLost, LedgerDamaged)) as caught:
        world.start()
    assert caught.value.code == ("HR-231" if loss is tables_emptied else "HR-618")
    assert "estore" in caught.value.remedy
    assert kept.exists()
    world.restore(whole)
    world.start()
    assert world.study() > 0


@pytest.mark.slow
def test_it_begins_anew_when_its_owner_says_so_with_the_budget_spent_and_its_studies_refused(world):
    world.start()
    world.study()
    world.start()
    world.stop()
    deleted(world)
    said = CliRunner().invoke(app, ["begin-anew", str(world.folder / "alpha"), "--because", "the disk burnt", "--by", "Ada"])
    assert said.exit_code == 0, said.output
    assert "epsilon 3 counts as spent" in said.output
    station = world.start()
    assert world.spent() == pytest.approx(3.0, rel=1e-4)
    [entry] = world.entries()
    assert (entry.kind, entry.code, entry.generation) == ("decision", "anew", 1)
    assert "Ada: the disk burnt" in entry.reason
    with pytest.raises(PartyDeclined) as caught:
        world.study()
    assert set(caught.value.codes.values()) == {"HR-213"}
    assert station.journal.verify()[0] > 1
    world.start()  # and it is a journal like any other
    again = CliRunner().invoke(app, ["begin-anew", str(world.folder / "alpha"), "--because", "why not"])
    assert "whole" in str(again.exception)


@pytest.mark.slow
def test_an_owner_who_knows_better_counts_less_and_the_rest_can_be_spent(world):
    world.start()
    one = world.study()
    world.start()
    world.stop()
    emptied(world)
    CliRunner().invoke(app, ["begin-anew", str(world.folder / "alpha"), "--because", "fire", "--spent", "1.0"])
    world.start()
    assert world.spent() == pytest.approx(1.0, rel=1e-4)
    assert world.study() > max(1.0, one)


# ---- a backup -------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("keys_too", [False, True], ids=["the state", "the state and the keys"])
def test_a_restored_backup_is_noticed_before_anything_is_answered(world, keys_too):
    world.start()
    one = world.study()
    copies = [(world.backup(what=what), what) for what in ["state"] + ["keys"] * keys_too]
    two = world.study()
    assert two > one
    if not keys_too:
        world.start()  # from here on the key folder knows as well
    for copy, what in copies:
        world.restore(copy, what=what)
    if not keys_too:
        with pytest.raises(JournalLost):
            world.start()
        return
    station = world.start()
    assert world.spent() == pytest.approx(one)  # so it is: two questions cost as much as one now
    with pytest.raises(PartyDeclined) as caught:
        world.study()
    assert set(caught.value.codes.values()) == {"HR-618"}
    assert world.spent() == pytest.approx(one)
    assert world.entries()[-1].code == "HR-618"
    assert "hub saw" not in world.entries()[-1].reason
    assert "entries" in world.entries()[-1].reason
    review = Review.at(world.folder / "alpha")
    assert "begin-anew" in trouble(review.keys, review.journal)
    review.close()
    shown = CliRunner().invoke(app, ["inbox", str(world.folder / "alpha")])
    assert "Nothing is answered" in shown.output + shown.stderr
    with pytest.raises(JournalLost):  # nor after a restart
        world.start()
    said = CliRunner().invoke(app, ["begin-anew", str(world.folder / "alpha"), "--because", "no other copy"])
    assert said.exit_code == 0, said.output
    station = world.start()
    assert world.spent() >= 3.0
    assert trouble(station.keys, station.journal) == ""
    assert station.heads.journal.generation() == 1
    assert [one.status for one in station.submissions.all("approved", "waiting")] == []


@pytest.mark.slow
def test_a_journal_that_was_deleted_with_all_that_the_station_knew_of_it_is_known_to_the_coordinator(world):
    world.start()
    world.study()
    world.stop()
    all_deleted(world)
    (world.folder / "alpha" / "keys" / "journal.json").unlink()
    world.start_hub()  # which knows it from its disk
    world.start()
    with pytest.raises(PartyDeclined) as caught:
        world.study()
    assert set(caught.value.codes.values()) == {"HR-618"}


# ---- coordinators that lie ------------------------------------------------------------------------------------------
def given(world, raw):
    """Let the coordinator give back this, whatever it knows."""
    world.queue.heads = type(
        "Liar", (), {"given": lambda self, to: raw(to), "came": lambda self, of, raw: None, "knows": lambda self, of: True}
    )()


@pytest.mark.slow
def test_a_coordinator_cannot_make_up_a_head_and_one_that_it_repeats_or_lacks_changes_nothing(world):
    world.start()
    world.study()
    old = world.store.heads(lambda: world.hub.key_material).given(world.hub.public_identities["alpha"])
    world.study()
    station = world.opened["alpha"][1]
    ahead = Head(0, station.journal.head().journal, 10**6, bytes(16))
    beta, hub = KeyFolder(world.folder / "beta" / "keys").key_material, world.hub.key_material
    alpha = world.hub.public_identities["alpha"]
    lies = {
        "signed by itself": seen(ahead.signed(hub), "now", hub, alpha),
        "signed by another station": seen(ahead.signed(beta), "now", hub, alpha),
        "not signed by the coordinator": seen(station.journal.head().signed(station.keys.key_material), "now", beta, alpha),
        "nothing": seen(b"", "now", hub, alpha),
        "no head": b"\x00" * 40,
        "an old one": old,
    }
    before = station.journal.head().number
    for name, lie in lies.items():
        given(world, lambda to, lie=lie: lie)
        assert world.study() > 0, name
    assert station.journal.head().number > before
    world.start()
    assert json.loads((world.folder / "alpha" / "keys" / "journal.json").read_text())["number"] > before


def test_a_station_s_key_folder_holds_what_the_coordinator_signed(world):
    world.start()
    world.ask("hello", [], bytes(16))
    world.ask("end", [b""], b"a study that is.")
    world.ask("hello", [], bytes(16))
    world.ask("hello", [], bytes(16))
    found = json.loads((world.folder / "alpha" / "keys" / "journal.json").read_text())
    assert (found["by"], found["number"]) == ("hub", 1)
    alpha, hub = world.hub.public_identities["alpha"], world.hub.key_material.public_identity
    from hedgerow.wire.heads import read_seen

    head, _ = read_seen(bytes.fromhex(found["signed"]), hub, alpha)
    assert head == world.opened["alpha"][1].journal.head()


def test_a_fresh_station_starts_with_one_command_and_looks_without_being_started(world):
    Review.at(world.folder / "alpha").close()
    world.start()
    world.start()
    assert world.spent() == 0


def test_a_station_of_an_earlier_version_goes_on(world):
    world.start()
    world.study()
    (world.folder / "alpha" / "keys" / "journal.json").unlink()
    world.start()
    assert world.study() > 0


def test_a_damaged_file_is_no_missing_file(world):
    world.start()
    (world.folder / "alpha" / "keys" / "journal.json").write_text("{}")
    with pytest.raises(KeyInvalid):
        world.start()


def test_letters_without_a_head_are_answered_without_one(world):
    world.start()
    world.queue.heads = None
    assert world.ask("hello", [], bytes(16)).kind == "hello"
    with pytest.raises(HedgerowError):
        Head.read(b"", world.hub.public_identities["alpha"])
