"""A hub and stations that know different things about the same people, in one process, with real keys and envelopes."""

from datetime import UTC, datetime

import numpy as np

from hedgerow.crypto.keys import Roster
from hedgerow.data import Table
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.network.coordinator.config import parse_config as parse_hub
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.station import Station
from station_house import Direct, House, Keys, key_material, parse_text

NUMBERS = {"tax": ("salary", "savings", "debts", "rents"), "town": ("age", "floor", "distance", "bins")}
COLUMNS = {name: {one: {"kind": "number", "range": [0, 100]} for one in numbers} for name, numbers in NUMBERS.items()}
COLUMNS["town"] |= {
    "district": {"kind": "category", "levels": ["north", "south", "island", "harbour"]},
    "moved": {"kind": "binary"},
}
PROGRAMS = ("splitnn", "vertical_means", "vertical_logistic_regression", "vertical_linear_regression")
ALLOWED = {
    "approval": "automatic",
    "disclosure": float("inf"),
    "vertical": {"alignment": True, "seats": True},
}
N, COMMON, ISLAND, HARBOUR = 240, 200, 4, 8
"""People at each, people at both, and how few of those live on the island and at the harbour."""


def people(name):
    """What a station knows: ids and columns, of people in an order of its own."""
    rng = np.random.default_rng(7)
    n = 2 * N - COMMON
    ids = np.array([f"{one:014x}" for one in rng.choice(2**55, n, replace=False)])
    every = {one: rng.uniform(1, 99, n) for numbers in NUMBERS.values() for one in numbers}
    odds = (every["age"] - 50) / 30 + (every["salary"] - 50) / 40
    every["moved"] = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
    every["district"] = rng.integers(0, 2, n).astype(np.int16)
    every["district"][n - N : n - N + ISLAND + HARBOUR] = np.repeat([2, 3], [ISLAND, HARBOUR])  # they are at both
    here = np.arange(N) if name == "tax" else np.arange(n - N, n)
    here = np.random.default_rng(len(name)).permutation(here)
    return ids[here], {column: every[column][here] for column in COLUMNS[name]}


def pooled():
    """What both know of the people whom both know, in one table, which no station has."""
    (a, one), (b, other) = people("tax"), people("town")
    _, i, j = np.intersect1d(a, b, return_indices=True)
    return {name: values[i] for name, values in one.items()} | {name: values[j] for name, values in other.items()}


def config_of(name, **guard):
    about = {"name": name, "coordinator": {"name": "hub", "rail": "socket", "path": "rail.sock"}}
    data = {"name": "people", "source": "csv", "path": "x.csv", "ids": "nin", "columns": COLUMNS[name]}
    listed = {"programs": [{"name": one} for one in PROGRAMS]}
    return parse_config(about | {"data": data, "guard": listed | ALLOWED | guard})


class VerticalHouse(House):
    """The stations `tax` and `town`, a coordinator, and everything that crossed."""

    def __init__(self, tmp_path, runner=lambda config, held: None, **guards):
        self.hub, self.rail, self.path, self.runner = Keys(key_material("hub")), Direct(), tmp_path, runner
        self.time = datetime(2026, 3, 2, 12, tzinfo=UTC)
        self.key_materials = {name: key_material(name) for name in COLUMNS}
        self.hub.public_identities = {name: one.public_identity for name, one in self.key_materials.items()}
        roster = Roster({name: one.identity.public for name, one in self.key_materials.items()})
        hub = {"hub": self.hub.key_material.public_identity}
        self.keys = {name: Keys(one, hub, roster) for name, one in self.key_materials.items()}
        self.configs = {name: config_of(name, **guards.get(name, {})) for name in COLUMNS}
        self.stations, self.number = {}, 0
        for name in COLUMNS:
            self.start(name)
        self.queue = MessageQueue(lambda: self.hub.key_material, lambda: self.hub.public_identities, self.rail, pause=1e6)
        found = {"name": "hub", "rail": {"kind": "socket", "path": "rail.sock"}, "limits": {"waiting_hours": 2}}
        self.config = parse_hub(found, tmp_path / "hub")
        self.open()

    def open(self):
        """Start the coordinator, or start it again on what it has kept."""
        self.store = Store(self.config.state_folder, self.rail.now)
        self.store.wake()
        identities = self.hub.public_identities
        self.coordinator = Coordinator(self.store, self.queue, self.config, lambda: identities, lambda: 1.0)

    def start(self, name, held=None):
        """Start a station, or start it again on what it has kept on its disk."""
        if name in self.stations:
            self.stations[name].close()
            self.stations[name].base.close()
        config, folder = self.configs[name], self.path / name
        ids, columns = people(name)
        table = Table(config.declared.admit(columns), config.declared)
        held = held or local_data(config, table, bytes(32), None, ids)
        how = {"answered": folder / "answered", "now": lambda: self.time, "runner": self.runner(config, held)}
        self.stations[name] = Station(config, held, self.keys[name], Base(folder / "station.sqlite"), **how)
        self.rail.stations[name] = self.stations[name].receive
        return self.stations[name]

    def submit(self, text):
        return submit(self.store, parse_text(text))

    def go(self, id, seconds=600.0):
        """Let the coordinator work until the study has ended; returns what is known of it."""
        end = self.rail.now() + seconds
        while not self.store.study(id).ended and self.rail.now() < end:
            due = self.coordinator.due()
            for one in due:
                self.coordinator.advance(one)
            if not due:
                self.queue.wait(1.0)
        return self.store.study(id)

    def run(self, text):
        id = self.submit(text)
        return self.go(id), self.path / "hub" / "runs" / id


def study(name, program, label="", **alignment):
    """A study over both stations' columns."""
    least = {"least": 10} | alignment
    lines = [f'name = "{name}"', "[data]", 'name = "people"', "[roles]"]
    lines += [f"{name} = {list(columns)}" for name, columns in COLUMNS.items()]
    lines += [f'label = "{label}"' if label else ""]
    lines += ["[alignment]", 'on = "nin"', *(f"{key} = {value!r}" for key, value in least.items())]
    return "\n".join([*lines, "[program]", *(f"{key} = {value!r}" for key, value in program.items())]) + "\n"
