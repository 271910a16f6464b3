"""Three stations over gRPC: what owners read before they approve, what they are asked then, and what it costs them."""

import asyncio
import html
import re
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from hedgerow.engines.message_queue import MessageQueue
from hedgerow.network.console.app import application
from hedgerow.network.console.contact import Contact
from hedgerow.network.console.door import Door
from hedgerow.network.station.review import ROLL, Review
from hedgerow.store import last
from hedgerow.synth import Provenance
from patience import PATIENCE
from station_house import STUDY, House

pytest.importorskip("grpc")
from railing import Authority, make_link, make_rail, save, serving, where_of

STATIONS = ("alpha", "beta", "gamma")
GUARD = {
    "budget": {"epsilon": 2.0, "delta": 1e-5, "trust": "parties"},
    "require": {"hidden_rows": True, "noise": "shares"},
}
HIDDEN = """
[budget]
epsilon = 1.0
delta = 1e-5
unit = "record"
[protection.aggregation]
by = "secagg"
"""
TABLE = """
name = "people"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "tan"
bins = 4
epsilon = 1.0
delta = 1e-5
noise_at = "shares"
least = 3
"""
VOTES = """
name = "votes"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "pate"
teacher = "ridge"
shards = 5
asked = 20
epsilon = 1.0
delta = 1e-5
noise_at = "shares"
least = 3
"""


@contextmanager
def over_grpc(folder, guard):
    """A hub and three stations: letters go through gRPC with mutual TLS, and each station answers in a thread of its own."""
    house, authority = House(folder, dict.fromkeys(STATIONS, guard)), Authority()
    house.seconds = PATIENCE
    save(authority.hub(), folder, "hub")
    for name in STATIONS:
        save(authority.tls(name), folder, name)
        house.stations[name].base.keep(ROLL, house.stations[name].held.roll.pack())
    house.rail = make_rail("grpc", "127.0.0.1:0", folder)
    house.queue = MessageQueue(lambda: house.hub.key_material, lambda: house.hub.public_identities, house.rail)
    with ExitStack() as stack:
        stack.callback(house.rail.close)
        for name, station in house.stations.items():
            stack.enter_context(serving(make_link("grpc", where_of(house.rail), name, folder), station.receive))
        assert house.queue.wait(PATIENCE, lambda: house.queue.alive() == set(STATIONS))
        yield house


class Owner:
    """Who reads a station's console page, and decides there."""

    def __init__(self, house, name):
        station = house.stations[name]
        inbox = Review(station.config, station.keys, station.base, now=lambda: house.time)
        transport = httpx.ASGITransport(application(inbox, Door("a token", lambda: 0.0), Contact(now=lambda: house.time), 60))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8440", follow_redirects=True)
        self.ask("GET", "/?token=a+token")

    def ask(self, method, path, **how):
        return asyncio.run(self.client.request(method, path, **how)).text

    def reads(self):
        """The words of the study's page, up to the form."""
        article = re.search(r"<article.*?<form", self.ask("GET", f"/studies/{STUDY.hex()}"), re.DOTALL)[0]
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", article)).split())

    def approves(self):
        key = re.search(r'name="key" value="([^"]+)"', self.ask("GET", f"/studies/{STUDY.hex()}"))[1]
        form = {"key": key, "by": "Ada", "because": ""}
        return self.ask("POST", f"/studies/{STUDY.hex()}/approve", data=form, headers={"origin": "http://127.0.0.1:8440"})


COLUMNS = ("age", "dose", "sick")


def boarded(house, text, columns):
    """What the three owners read, who all approve."""
    assert {one["status"] for one in house.board(text, columns).values()} == {"waiting"}
    owners = [Owner(house, name) for name in STATIONS]
    read = {owner.reads() for owner in owners}
    assert len(read) == 1
    for owner in owners:
        owner.approves()
    assert {one["status"] for one in house.board(text, columns).values()} == {"approved"}
    return read.pop()


def asked(house, text):
    """The last state of a study, with every station's charges."""
    built = house.built(text)
    state = last(built.listing.program(built.settings)(built.federation))
    spent = [house.stations[name].journal.charges() for name in STATIONS]
    return built, state, [[charge.entry() for _, charge in charges if charge.account == "all"] for charges in spent]


@pytest.mark.slow
def test_a_synthetic_table_of_three_stations_is_approved_in_plain_words_and_charged_at_each(tmp_path):
    with over_grpc(tmp_path, GUARD) as house:
        read = boarded(house, TABLE + HIDDEN, COLUMNS)
        for words in (
            "tan: Made-up records: a tree of columns inside each class of the target, from noisy tables of pairs.",
            "Noise on every answer, within a budget",
            "Count how many records have each value, or each pair of values together",
            "each party adds its share before anything leaves",
            "nobody by itself: the coordinator sees the total of all parties alone (SecAgg)",
        ):
            assert words in read
        built, state, charges = asked(house, TABLE + HIDDEN)
        assert state.round == 2
        ledger = built.federation.ledger
        assert 0.99 < ledger.epsilon(delta=1e-5, unit="record") <= 1.0
        for entries in charges:
            assert [(entry.query, entry.event) for entry in entries] == [(entry.query, entry.event) for entry in ledger.entries]
        outcome = built.listing.outcome(built.federation, built.settings, state)
        made = built.listing.synthesizer(built.settings, outcome.arrays, built.schema, Provenance())
        people = made.sample(40, where={"sick": 1, "age": (50, 60)}, seed=0)
        assert set(people["sick"]) == {1.0}
        assert ((people["age"] >= 50) & (people["age"] <= 60)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:noise of:hedgerow.errors.HedgerowWarning")  # stations in threads change filters
def test_votes_of_three_stations_are_approved_in_plain_words_and_charged_at_each(tmp_path):
    with over_grpc(tmp_path, GUARD) as house:
        read = boarded(house, VOTES + HIDDEN, COLUMNS)
        for words in (
            "pate: Labels for public inputs, voted by teachers of the parties' shards",
            "Noise on every answer, within a budget",
            "count how many of them vote for each class of each public example",
            "each party adds its share before anything leaves",
            "l2(6.3",
        ):
            assert words in read
        built, state, charges = asked(house, VOTES + HIDDEN)
        assert (state.teachers, state.votes.shape) == (15, (20, 2))
        ledger = built.federation.ledger
        assert 0.99 < ledger.epsilon(delta=1e-5, unit="record") <= 1.0
        for entries in charges:
            assert [(entry.query, entry.event) for entry in entries] == [(entry.query, entry.event) for entry in ledger.entries]
