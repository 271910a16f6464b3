"""A coordinator and stations in one process, with real keys and envelopes, and every body that crossed kept for looking at."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.data import Schema, Table
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.rail import Arrived
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.station import Station
from hedgerow.study import build_remote, parse
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, disclose
from hedgerow.wire.values import pack, unpack

SMALL = {"disclosure": float("inf")}
"""Of stations of a few records, whose regressions a guard would refuse by default (test_exact_numbers.py)."""
STUDY = b"a study's name.."
COLUMNS = {
    "age": {"kind": "number", "range": [20, 90]},
    "dose": {"kind": "number", "range": [0, 1]},
    "sick": {"kind": "binary"},
    "income": {"kind": "number", "range": [0, 1e5]},
}
LOGISTIC = """
name = "risk"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "logistic_regression"
formula = "sick ~ age + dose"
"""
MEANS = """
name = "means"
[data]
name = "heart"
features = ["age", "dose"]
[program]
name = "moments"
columns = ["age", "dose"]
"""
PRIVATE = (
    MEANS
    + """
[protection.mechanism]
law = "gaussian"
noise_multiplier = 5.0
at = "party"
"""
)


def key_material(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


@dataclass
class Keys:
    """What a key folder gives."""

    key_material: KeyMaterial
    public_identities: dict = field(default_factory=dict)
    roster: Roster | None = None


class Direct:
    """A rail on which every body arrives at once, and is kept."""

    def __init__(self):
        self.stations, self.sent, self.came, self.events, self.time = {}, [], [], deque(), 0.0

    def connected(self):
        return frozenset(self.stations)

    def send(self, station, body):
        self.sent.append((station, body))
        back = self.stations[station](body)
        if back is not None:
            self.came.append((station, back))
            self.events.append(Arrived(station, back))

    def receive(self, seconds):
        if self.events:
            return self.events.popleft()
        self.time += max(seconds, 0.05)
        return None

    def now(self):
        return self.time

    def close(self):
        pass


def records(name, n=60):
    """Made-up records, the same for the same name."""
    rng = np.random.default_rng(sum(name.encode()))
    age, dose = rng.uniform(20, 90, n), rng.uniform(0, 1, n)
    sick = (rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 20 + dose))).astype(float)
    return {"age": age, "dose": dose, "sick": sick, "income": rng.uniform(0, 1e5, n)}


def config_of(name, **guard):
    about = {"name": name, "coordinator": {"name": "hub", "rail": "socket", "path": "rail.sock"}}
    return parse_config(
        about | {"data": {"name": "heart", "source": "csv", "path": "x.csv", "columns": COLUMNS}, "guard": SMALL | guard}
    )


class House:
    """A hub and its stations; `guards` has what differs of each station's guard; `runner` makes its runner."""

    seconds = 1.0  # of the rail's own clock

    def __init__(self, tmp_path, guards, runner=lambda config, held: None, **common):
        self.hub, self.rail, self.path, self.runner = Keys(key_material("hub")), Direct(), tmp_path, runner
        self.time = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
        self.key_materials = {name: key_material(name) for name in guards}
        self.hub.public_identities = {name: one.public_identity for name, one in self.key_materials.items()}
        roster = Roster({name: one.identity.public for name, one in self.key_materials.items()})
        self.keys = {
            name: Keys(one, {"hub": self.hub.key_material.public_identity}, roster) for name, one in self.key_materials.items()
        }
        self.configs = {name: config_of(name, **common | guard) for name, guard in guards.items()}
        self.stations = {}
        for name in guards:
            self.start(name)
        self.queue = MessageQueue(lambda: self.hub.key_material, lambda: self.hub.public_identities, self.rail, pause=1e6)
        self.number = 0

    def start(self, name, held=None):
        """Start a station, or start it again on what it has kept on its disk."""
        if name in self.stations:
            self.stations[name].base.close()
            for admitted in self.stations[name]._admitted.values():
                admitted.close()
        config, folder = self.configs[name], self.path / name
        table = Table(config.declared.admit(records(name)), config.declared)
        held = held or local_data(config, table, bytes(32))
        base = Base(folder / "station.sqlite")
        how = {"answered": folder / "answered", "now": lambda: self.time, "runner": self.runner(config, held)}
        self.stations[name] = Station(config, held, self.keys[name], base, **how)
        self.rail.stations[name] = self.stations[name].receive
        return self.stations[name]

    def ask(self, kind, parts, names=None, study=STUDY):
        self.number += 1
        names = list(self.stations) if names is None else names
        return self.queue.ask(kind, dict.fromkeys(names, parts), study=study, number=self.number, seconds=self.seconds)

    @property
    def schema(self):
        return next(iter(self.configs.values())).declared

    def board(self, text, columns=("age", "dose", "sick"), study=STUDY, version="0.1.0", **about):
        """Ask all stations to approve; returns what each said."""
        told = {
            "coordinator": "hub",
            "stations": {name: len(station.held) for name, station in self.stations.items()},
            "schema": self.schema.select(columns).columns,
            "version": version,
        }
        letters = self.ask("board", [text.encode(), pack(told | about)], study=study)
        return {
            name: letter.parts[0].decode() if letter.kind == "refused" else unpack(letter.parts[0])
            for name, letter in letters.items()
        }

    def network(self, study=STUDY, life=1, **how):
        parties = {name: station.held.ids for name, station in self.stations.items()}
        roster = next(iter(self.keys.values())).roster
        return Network(self.queue, study, parties, seconds=self.seconds, life=life, roster=roster, **how)

    def built(self, text, columns=("age", "dose", "sick"), **how):
        """A study made ready to be asked through the network."""
        return build_remote(parse_text(text), Schema(self.schema.select(columns).columns), self.network(**how))

    def opened(self, name, last=1):
        """The last letters that left a station, opened."""
        came = [body for station, body in self.rail.came if station == name][-last:]
        return [disclose(self.hub.key_material, self.hub.public_identities, body) for body in came]

    def later(self, **how):
        self.time += timedelta(**how)

    def codes(self, name):
        """What a station's journal says of each letter."""
        return [(entry.kind, entry.code) for entry in self.stations[name].journal.entries()]


def parse_text(text):
    import tomllib

    return parse(tomllib.loads(text))
