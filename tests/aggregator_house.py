"""A coordinator, stations and aggregators in one process, each with real keys; letters cross a rail that keeps every body."""

from __future__ import annotations

from contextlib import suppress

from hedgerow.crypto.keys import AgreementKey, Roster
from hedgerow.engines.rails.rail import Joined, Left
from hedgerow.network.aggregator.config import parse_config as aggregator_config
from hedgerow.network.aggregator.gate import AggregatorGate
from hedgerow.network.aggregator.journal import AggregatorBase
from hedgerow.network.coordinator.config import parse_config
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.config import StationConfig
from station_house import House, Keys, config_of, key_material, parse_text

ADDING = ("ministry", "university", "ombudsman")
RAIL = {"name": "hub", "rail": "socket", "path": "rail.sock"}
SHARES = '[protection.aggregation]\nby = "additive"\n'


class Federation:
    """Stations and aggregators of one hub, whose `Coordinator` runs on the rail's clock.

    `guards` has what differs of each station's guard, `adding` of each aggregator's configuration.
    """

    def __init__(self, folder, stations, adding=None, *, pins=None, named=ADDING, limits=None, **common):
        self.folder, self.named = folder, tuple(named)
        adding = {name: {} for name in ADDING} if adding is None else adding
        self.shares = {name: AgreementKey.fresh() for name in adding}
        self.pins = {name: key.public.hex() for name, key in self.shares.items()} if pins is None else pins
        guards = {name: dict(guard) for name, guard in stations.items()}
        self.house = House(folder / "stations", guards, **common)
        house = self.house
        house.configs = {
            name: StationConfig.model_validate(config.model_dump(exclude_unset=True) | {"aggregators": self.pins})
            for name, config in house.configs.items()
        }
        self.materials = {name: key_material(name) for name in adding}
        house.hub.public_identities |= {name: one.public_identity for name, one in self.materials.items()}
        everybody = {name: one.identity for name, one in house.hub.public_identities.items()}
        for keys in house.keys.values():
            keys.roster = Roster(everybody)
        hub = {"hub": house.hub.key_material.public_identity}
        self.keys = {name: Keys(one, hub, Roster(everybody)) for name, one in self.materials.items()}
        self.adding, self.gates = adding, {}
        for name in stations:
            house.start(name)
        for name in adding:
            self.start(name)
        about = {"name": "hub", "rail": {"kind": "socket", "path": "rail.sock"}, "aggregators": list(self.named)}
        self.config = parse_config(about | {"limits": {"waiting_hours": 2} | (limits or {})}, folder)
        self.clock = house.rail.now
        self.begin()

    def start(self, name):
        """Start an aggregator, or start it again on what it has kept on its disk."""
        if name in self.gates:
            self.stop(name)
        config = aggregator_config({"name": name, "coordinator": RAIL} | self.adding[name])
        base = AggregatorBase(self.folder / "adding" / name / "aggregator.sqlite")
        self.gates[name] = AggregatorGate(config, self.shares[name], self.keys[name], base, now=lambda: self.house.time)
        self.house.rail.stations[name] = self.gates[name].receive
        self.house.rail.events.append(Joined(name))
        return self.gates[name]

    def stop(self, name):
        """End an aggregator as kill -9 does: its memory is gone, its disk stays."""
        self.house.rail.stations.pop(name, None)
        self.house.rail.events.append(Left(name))
        gate = self.gates.pop(name)
        gate.close()
        gate.base.close()

    def begin(self):
        """Start the coordinator, or start it again on what it has kept."""
        with suppress(AttributeError):
            self.store.close()
        self.store = Store(self.config.state_folder, self.clock)
        self.store.wake()
        known = self.house.hub.public_identities
        self.coordinator = Coordinator(self.store, self.house.queue, self.config, lambda: known, lambda: 1.0)

    def submit(self, text):
        return submit(self.store, parse_text(text))

    def go(self, id, seconds=600.0, until=lambda: False):
        """Let the coordinator work until the study has ended, something holds, or so much of the rail's time has passed."""
        end = self.clock() + seconds
        while not self.store.study(id).ended and not until() and self.clock() < end:
            due = self.coordinator.due()
            for one in due:
                self.coordinator.advance(one)
            if not due:
                self.house.queue.wait(1.0)
        return self.store.study(id)

    def bodies(self):
        """Everything that crossed the rail."""
        return [body for _, body in (*self.house.rail.sent, *self.house.rail.came)]

    def codes(self, name):
        """What an aggregator's journal says of each letter that it keeps."""
        return [(entry.kind, entry.code) for entry in self.gates[name].journal.entries()]

    def totals(self, name):
        """The totals that an aggregator gave."""
        return [entry for entry in self.gates[name].journal.entries() if entry.code == "total"]


__all__ = ["ADDING", "SHARES", "Federation", "config_of"]
