"""Configuration, enrolment, cards and pins of aggregators: what fits, and what is refused with which remedy."""

import json
import sqlite3

import pytest
from typer.testing import CliRunner

from aggregator_house import ADDING, SHARES, Federation
from hedgerow.cli.main import app
from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.errors import ConfigInvalid, JournalLost, KeyInvalid, MessageRefused, StationUnknown, StudyInvalid
from hedgerow.network.aggregator.config import DATABASE, parse_config
from hedgerow.network.aggregator.share_key import AggregatorCard, card_of, make_share_key, read_share_key
from hedgerow.network.aggregator_service import lay_out, open_folder, open_gate, rekey
from hedgerow.network.coordinator.config import parse_config as hub_config
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.identity import enrolment
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.admitted import read_description
from hedgerow.network.station.config import parse_config as station_config
from hedgerow.network.station.heads import FILE as MARK
from hedgerow.wire.envelope import enclose
from hedgerow.wire.values import pack
from station_house import MEANS, config_of, key_material, parse_text

NAMES = ("alpha", "beta", "gamma")
ALLOWED = {"approval": "automatic", "programs": [{"name": "moments"}]}
HUB = {"name": "hub", "rail": "socket", "path": "rail.sock"}
KEYS = {name: AgreementKey.fresh().public.hex() for name in ADDING}


# ---- files -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"guard": {"leest": 5}}, "least"),
        ({"guard": {"least": 2}}, "greater than or equal to 3"),
        ({"name": "hub"}, "a coordinator that adds up sees every row"),
        ({"name": "no name"}, "pattern"),
        ({"aggregators": {"university": KEYS["university"], "ombudsman": KEYS["ombudsman"]}}, "lacks 'ministry' itself"),
        ({"aggregators": {"ministry": KEYS["ministry"]}}, "one aggregator alone would see every row"),
        ({"aggregators": KEYS | {"ombudsman": KEYS["ministry"]}}, "two aggregators have one key"),
        ({"aggregators": KEYS | {"ombudsman": "5EE5"}}, "is not 64 digits"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_words(changes, words):
    with pytest.raises(ConfigInvalid, match="HR-601") as refused:
        parse_config({"name": "ministry", "coordinator": HUB} | changes)
    assert words in str(refused.value)


def test_stations_and_coordinators_refuse_what_cannot_be_pinned_or_named():
    config = config_of("alpha", **ALLOWED).model_dump(exclude_unset=True)
    assert station_config(config | {"aggregators": KEYS}).aggregators == KEYS
    with pytest.raises(ConfigInvalid, match="one aggregator alone"):
        station_config(config | {"aggregators": {"ministry": KEYS["ministry"]}})
    for named in (["ministry", "ministry"], ["ministry", "hub"]):
        with pytest.raises(ConfigInvalid, match="each is an organisation of its own"):
            hub_config({"name": "hub", "rail": {"kind": "socket", "path": "rail.sock"}, "aggregators": named})


# ---- cards -----------------------------------------------------------------------------------------------------------
def test_a_card_is_signed_and_an_altered_one_is_refused(tmp_path):
    keys = KeyFolder.make(tmp_path / "keys", "ministry")
    shares = make_share_key(keys.path)
    assert (keys.path / "shares.json").stat().st_mode & 0o077 == 0
    assert read_share_key(keys.path).public == shares.public
    card = card_of(keys, shares.public)
    read = AggregatorCard.from_bytes(card.to_bytes())
    assert (read.name, read.shares, read.fingerprint) == ("ministry", shares.public, keys.trust_store.me.fingerprint)
    told = json.loads(card.to_bytes())
    for changes in ({"shares": KEYS["ministry"]}, {"station": "university"}, {"identity": Identity.fresh().public.hex()}):
        with pytest.raises(KeyInvalid, match="does not hold"):
            AggregatorCard.from_bytes(json.dumps(told | changes).encode())
    assert shares.private.hex() not in json.dumps(told)
    for damage in (b"{}", b'{"hedgerow": 1, "shares": "00"}'):
        (keys.path / "shares.json").write_bytes(damage)
        with pytest.raises(KeyInvalid, match="rekey"):
            read_share_key(keys.path)


# ---- folders ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def enrolled(tmp_path):
    """An aggregator's folder, enrolled with a hub and a station."""
    opened = lay_out(tmp_path / "ministry", "ministry", HUB)
    hub = KeyFolder.make(tmp_path / "hub", "hub", authority=True)
    station = KeyFolder.make(tmp_path / "alpha", "alpha")
    for keys in (opened.keys, station):
        enrolment.enrol(hub, Request.from_bytes(enrolment.ask(keys)))
    enrolment.accept(opened.keys, Welcome.from_bytes(enrolment.welcome(hub, "ministry")))
    return tmp_path / "ministry"


def closed(gate):
    gate.close()
    gate.base.close()


def test_an_aggregator_does_not_start_before_it_is_welcome(tmp_path):
    opened = lay_out(tmp_path / "ministry", "ministry", HUB)
    with pytest.raises(StationUnknown, match=r"hedgerow keys enrol .*ministry.welcome"):
        open_gate(opened)


def test_an_aggregator_that_lost_its_journal_does_not_start_before_it_has_another_key(enrolled):
    gate = open_gate(open_folder(enrolled))
    gate.served.write("epoch 00", b"")
    gate._begun("00", 1, "epoch 00")
    closed(gate)
    database = enrolled / DATABASE
    copy = database.read_bytes()
    database.unlink()
    with pytest.raises(JournalLost, match=r"HR-618.*is not there"):
        open_folder(enrolled)
    with sqlite3.connect(database):
        pass  # an empty one in its place
    with pytest.raises(JournalLost, match="rekey"):
        open_gate(open_folder(enrolled))
    database.write_bytes(copy)
    closed(open_gate(open_folder(enrolled)))
    before = open_folder(enrolled).shares.public
    database.unlink()
    assert rekey(enrolled).shares.public != before
    assert not (enrolled / "keys" / MARK).exists()
    closed(open_gate(open_folder(enrolled)))


def test_an_older_copy_of_the_journal_is_found_out(enrolled):
    closed(open_gate(open_folder(enrolled)))
    copy = (enrolled / DATABASE).read_bytes()
    gate = open_gate(open_folder(enrolled))
    gate._begun("00", 1, "epoch 00")
    closed(gate)
    (enrolled / DATABASE).write_bytes(copy)
    with pytest.raises(JournalLost, match="which epochs it served is not known"):
        open_gate(open_folder(enrolled))


@pytest.mark.slow
def test_the_commands_of_an_aggregator(enrolled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    made = run(
        app, ["aggregator", "init", "university", "--name", "university", "--coordinator", "hub", "--address", "hub:8443"]
    )
    assert made.exit_code == 0, made.output
    assert {"university.request", "university.card"} <= {path.name for path in tmp_path.iterdir()}
    again = run(
        app, ["aggregator", "init", "university", "--name", "university", "--coordinator", "hub", "--address", "hub:8443"]
    )
    assert "university/aggregator.toml exists" in str(again.exception)
    assert run(app, ["aggregator", "card", str(enrolled)]).exit_code == 0
    shown = run(app, ["aggregator", "pin", "ministry.card", "university.card"]).output
    for name in ("ministry", "university"):
        opened = open_folder(tmp_path / name)
        assert f'{name} = "{opened.shares.public.hex()}"' in shown
        assert opened.keys.trust_store.me.fingerprint in shown
    told = json.loads(run(app, ["aggregator", "check", str(enrolled), "--json"]).output)
    assert (told["aggregator"], told["least"], told["roster"]) == ("ministry", 3, ["alpha", "ministry"])
    assert "roster" in run(app, ["aggregator", "check", str(enrolled)]).output
    assert run(app, ["aggregator", "journal", str(enrolled)]).output.splitlines()[0] == "journal of ministry"
    before = open_folder(enrolled).shares.public
    assert run(app, ["aggregator", "rekey", str(enrolled)]).exit_code == 0
    assert AggregatorCard.from_bytes((tmp_path / "ministry.card").read_bytes()).shares == open_folder(enrolled).shares.public
    assert open_folder(enrolled).shares.public != before


# ---- studies ---------------------------------------------------------------------------------------------------------
def federation(tmp_path, **how):
    return Federation(tmp_path, {name: {"require": {"hidden_rows": True}} for name in NAMES}, **ALLOWED, **how)


def ended(fed, text=MEANS + SHARES, seconds=30.0):
    kept = fed.go(fed.submit(text), seconds)
    return kept.state, kept.reason


def asked_nothing(fed):
    return not any(kind == "ask" for name in NAMES for kind, _ in fed.house.codes(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pins", "words"),
    [
        ({}, "pinned here are none"),
        ({name: "11" * 32 if name == "ombudsman" else None for name in ADDING}, "brings another key of ombudsman"),
        ({"ministry": None, "university": None}, "pinned here are ministry, university"),
        ({**dict.fromkeys(ADDING), "registry": "22" * 32}, "pinned here are ministry, university, ombudsman, registry"),
    ],
    ids=["nobody pinned", "another key", "fewer pinned", "more pinned"],
)
def test_a_station_takes_exactly_those_that_it_pinned(tmp_path, pins, words):
    """`None` stands for the aggregator's own key."""
    fed = federation(tmp_path)
    own = {name: key.public.hex() for name, key in fed.shares.items()}
    station = fed.house.stations["beta"]
    station.config = station.config.model_copy(update={"aggregators": {n: key or own[n] for n, key in pins.items()}})
    state, reason = ended(fed)
    assert (state, "beta refused: HR-244 KeyInvalid" in reason) == ("refused", True)
    assert words in station.submissions.all()[0].because
    assert asked_nothing(fed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adding", "code", "words"),
    [
        ({"guard": {"studies": ["readmission*"]}}, "HR-608 SubmissionRefused", "none of guard.studies"),
        ({"aggregators": KEYS}, "HR-244 KeyInvalid", "or other keys"),
    ],
)
def test_a_study_that_one_aggregator_does_not_add_up_is_refused(tmp_path, adding, code, words):
    fed = federation(tmp_path, adding={"ministry": {}, "university": adding, "ombudsman": {}})
    state, reason = ended(fed)
    assert (state, f"university refused: {code}" in reason) == ("refused", True)
    assert any(words in entry.words for entry in fed.gates["university"].journal.entries())
    assert asked_nothing(fed)


@pytest.mark.slow
def test_a_study_of_fewer_parties_than_an_aggregator_adds_up_ends_before_stations_are_bothered(tmp_path):
    fed = federation(tmp_path, adding={"ministry": {}, "university": {"guard": {"least": 4}}, "ombudsman": {}})
    state, reason = ended(fed)
    assert state == "failed"
    assert "HR-240 CohortTooSmall: a hidden total of 3 parties, where 4 are needed" in reason
    assert not any(station.submissions.all() for station in fed.house.stations.values())


@pytest.mark.slow
def test_stations_that_are_not_on_an_aggregators_roster_are_refused_unless_it_says_so(tmp_path):
    fed = federation(tmp_path)
    few = Roster({name: fed.keys["ministry"].roster[name] for name in ("alpha", "beta")})
    fed.keys["ministry"].roster = few
    state, reason = ended(fed)
    assert (state, "ministry refused: HR-244" in reason) == ("refused", True)
    assert any("gamma: not on the roster here" in entry.words for entry in fed.gates["ministry"].journal.entries())
    fed.adding["ministry"] = {"guard": {"signed": False}}
    fed.start("ministry")
    assert ended(fed, seconds=600.0)[0] == "finished"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "words"),
    [
        (ADDING[:2], "the study splits rows among 3 aggregators, and 2 are named here: ministry, university"),
        ((), "and none is named here"),
        ((*ADDING[:2], "registry"), "registry, named to add up, not on the roster"),
        ((*ADDING[:2], "alpha"), "alpha, named to add up, is no aggregator"),
    ],
)
def test_a_coordinator_without_its_aggregators_says_so_before_anybody_is_bothered(tmp_path, named, words):
    fed = federation(tmp_path, named=named)
    state, reason = ended(fed)
    assert (state, words in reason) == ("failed", True), reason
    assert not any(station.submissions.all() for station in fed.house.stations.values())
    if len(named) < 3:
        with pytest.raises(StudyInvalid, match=r"coordinator\.toml"):
            submit(fed.store, parse_text(MEANS + SHARES), aggregators=named)


def test_a_coordinator_cannot_name_a_station_as_aggregator_of_its_own_row(tmp_path):
    about = {"coordinator": "hub", "stations": {"alpha": 1}, "schema": (), "version": "1"}
    for adding in ((("alpha", b"k" * 32),), (("ministry", b"k"),), "ministry", (("ministry", b"k" * 32),) * 2):
        with pytest.raises(MessageRefused, match="aggregators that are none, or that are its stations"):
            read_description(pack(about | {"aggregators": adding}))


def test_who_is_not_the_coordinator_gets_no_answer(tmp_path):
    fed = federation(tmp_path)
    gate, mine = fed.gates["ministry"], fed.materials["ministry"].public_identity
    assert gate.receive(b"no letter") is None
    assert gate.receive(enclose(key_material("hub"), mine, "hello", [])) is None  # another hub
    gate.keys.public_identities |= {"alpha": fed.house.key_materials["alpha"].public_identity}
    assert gate.receive(enclose(fed.house.key_materials["alpha"], mine, "hello", [])) is None
    assert gate.receive(enclose(fed.house.hub.key_material, mine, "hello", [])) is not None
