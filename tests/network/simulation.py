"""A coordinator and stations in one thread: real stores, journals, guards and envelopes; clock, rail and faults from one seed.

    clinic_house  who they are, what they hold, what is asked
    perils        when processes die and disks are full
    World         the folders of coordinator and stations, what happens to them, and what was seen on the rail

A process that dies loses its memory and its connections; its folder stays. Nothing here judges: see `invariants`.
"""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from unittest import mock

from clinic_house import HUB, LIMITS, NAMES, STUDIES, Keys, held_by, key_material, read_once, rehearsed_once, station_config
from perils import Killed, Peril, PerilousRail, PerilousStation
from virtual import Faults, VirtualRail

from hedgerow.crypto.keys import Roster
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.errors import CannotWrite, HedgerowError
from hedgerow.network.coordinator.config import parse_config as coordinator_config
from hedgerow.network.coordinator.coordinator import Coordinator
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.base import Base
from hedgerow.network.station.review import Review
from hedgerow.store import Database
from hedgerow.study import parse

EPOCH = 1_770_000_000.0
"""When the virtual clock is zero, in seconds since 1970."""


@dataclass
class Twins:
    """What is put in the place of the real parts, so that a schedule can show that it would notice."""

    station: type = PerilousStation
    store: type = Store
    queue: type = MessageQueue


class World:
    """One schedule: drawn from a seed, run to its end.

    `tapped` has for each body that a station handed to the rail the length of its journal at that moment.
    """

    def __init__(self, folder, seed, kind=None, twins=None, calm=False, guards=None):
        self.seed, self.folder, self.rng, self.twins = seed, folder, random.Random(seed), twins or Twins()
        rng = self.rng
        self.kind = kind or rng.choice(["plain", "plain", "secret", "private", "private"])
        self.key_materials = {name: key_material(name) for name in (HUB, *NAMES)}
        self.public_identities = {name: self.key_materials[name].public_identity for name in NAMES}
        roster = Roster({name: public_identity.identity for name, public_identity in self.public_identities.items()})
        hub_card = {HUB: self.key_materials[HUB].public_identity}
        self.keys = {name: Keys(self.key_materials[name], hub_card, roster) for name in NAMES}
        self.perils = {name: Peril() if calm else Peril.drawn(rng, 120) for name in NAMES}
        self.perils["person"] = Peril()
        self.perils[HUB] = Peril() if calm else Peril.drawn(rng, 500)
        self.skew = {name: 0.0 if calm else rng.choice([0, 0, rng.uniform(-600, 600)]) for name in (HUB, *NAMES)}
        self.gone, self.undecided, self.stations, self.tapped, self.trace, self.marks = set(), set(), {}, [], [], {}
        self.running, self.hub_up, self.broken, self.deaths = [], False, [], 0
        few = not calm and self.kind != "secret" and rng.random() < 0.5  # a hidden sum needs all three
        limits = LIMITS | ({"least_stations": 2} if few else {})
        found = {"name": HUB, "rail": {"kind": "socket", "path": "rail.sock"}, "limits": limits}
        self.config = coordinator_config(found, folder / HUB)
        self.guards = guards or {name: self._guard(calm) for name in NAMES}
        odds = [0.0, 0.0, rng.uniform(0, 0.15)]
        faults = Faults(
            lost=rng.choice(odds),
            repeated=rng.choice([0.0, 0.3]),
            altered=rng.choice(odds) / 2,
            slow=rng.choice(odds),
            crossed=rng.choice(odds) / 3,
            delay=(0.01, 0.4),
            long=(1.0, 40.0),
        )
        machines = {name: partial(self._station, name) for name in NAMES}
        self.late = set() if calm else {name for name in NAMES if rng.random() < 0.15}
        self.rail = VirtualRail({}, seed, Faults() if calm else faults)
        self.rail.machines, self.rail._life = machines, dict.fromkeys(machines, 0)
        self.rail.tap = self._tap
        if not calm:
            self._script()

    def _guard(self, calm):
        rng, guard = self.rng, {"approval": "automatic"}
        if self.kind == "private":
            guard["budget"] = {"epsilon": 6.0 if calm else rng.choice([2.0, 3.0, 6.0]), "delta": 1e-6}
        if calm:
            return guard
        if rng.random() < 0.15:
            guard["approval"] = "ask"
        if rng.random() < 0.04:
            guard["columns"] = ["cotinine"]
        if rng.random() < 0.1:
            guard["limits"] = {"questions_per_minute": 6}
        return guard

    def _script(self):
        """What happens at times of the virtual clock."""
        rng, rail = self.rng, self.rail
        for name in NAMES:
            if name in self.late:
                rail.at(rng.uniform(1, 60), partial(self._start, name))
            for _ in range(rng.choice([0, 0, 1, 2])):
                rail.at(rng.uniform(0, 30), partial(rail.cut, name))
            if rng.random() < 0.1:
                rail.at(rng.uniform(0, 15), partial(self._die, name))
            if rng.random() < 0.06:
                rail.at(rng.uniform(0, 20), partial(self._leave, name))
            if self.guards[name]["approval"] == "ask":
                decision = rng.choice(["approve", "approve", "approve", "refuse", "never"])
                if decision == "never":
                    self.undecided.add(name)
                else:
                    rail.at(rng.uniform(1, 60), partial(self._decide, name, decision))
            elif rng.random() < 0.03:
                rail.at(rng.uniform(1, 10), partial(self._decide, name, "refuse"))
        for name in (HUB, *NAMES):
            if rng.random() < 0.15:
                rail.at(rng.uniform(0, 20), partial(self._jump, name, rng.choice([-3600, -60, 60, 3600])))
        rail.at(120.0, self._calm)

    # ---- machines --------------------------------------------------------------------------------------------------
    @contextmanager
    def _as(self, owner):
        """Who is running: whose disk is written."""
        self.running.append(owner)
        try:
            yield self.perils[owner]
        finally:
            self.running.pop()

    def _write(self):
        if self.running:
            self.perils[self.running[-1]].write()

    def _fsync(self, descriptor):
        self._write()

    def _transaction(self):
        """A transaction of a database that may fail, and within and after which a process may die."""
        transaction, write = Database.transaction, self._write

        @contextmanager
        def perilous(database, lightly=False):
            with transaction(database, lightly) as connection:
                write()
                yield connection
                write()
            if self.running:
                self.perils[self.running[-1]].moment()

        return perilous

    def _station(self, name):
        """A station's process: opens its folder, and answers until it dies."""
        config, folder, peril = station_config(name, repr(self.guards[name])), self.folder / name, self.perils[name]
        base = Base(folder / "station.sqlite")
        held = held_by(name)
        try:
            base.keep("roll", held.roll.pack())
            now = partial(self._now, name)
            station = self.twins.station(config, held, self.keys[name], base, answered=folder / "answered", now=now)
            station.journal.verify()
            station.moment = peril.moment
        except BaseException:
            base.close()
            raise
        self.stations[name] = station
        return partial(self._receive, name)

    def _receive(self, name, raw):
        if name not in self.stations:
            return None
        try:
            with self._as(name) as peril:
                reply = self.stations[name].receive(raw)
                peril.moment()
                return reply
        except Killed:
            self._die(name)
            return None

    def _now(self, name):
        return datetime.fromtimestamp(EPOCH + self.rail.clock + self.skew[name], UTC)

    def _start(self, name):
        if name in self.gone or name in self.rail.up:
            return
        try:
            with self._as(name):
                self.rail.start(name)
        except (Killed, CannotWrite):
            self.rail.at(self.rail.clock + 5.0, partial(self._start, name))

    def _die(self, name):
        """Memory and connections are gone, the folder stays; the process starts again a while later."""
        if name in self.stations:
            self.deaths += 1
            self.rail.kill(name)
            station = self.stations.pop(name)
            station.close()
            station.base.close()
            self.rail.at(self.rail.clock + self.rng.choice([0.1, 3.0, 30.0]), partial(self._start, name))

    def _leave(self, name):
        self.gone.add(name)
        self._die(name)

    def _decide(self, name, decision):
        """A person decides, in a process of its own."""
        with self._as("person"):
            self._decided(name, decision)

    def _decided(self, name, decision):
        base = Base(self.folder / name / "station.sqlite")
        try:
            inbox = Review(station_config(name, repr(self.guards[name])), self.keys[name], base, partial(self._now, name))
            if not inbox.submissions.all("waiting", "approved"):
                if self.rail.clock < 400:
                    self.rail.at(self.rail.clock + 20.0, partial(self._decide, name, decision))
                return
            title = inbox.submissions.all("waiting", "approved")[0].study
            with suppress(HedgerowError):
                inbox.approve(title, "Ada") if decision == "approve" else inbox.refuse(title, "Ada", "enough of it")
        finally:
            base.close()

    def _jump(self, name, seconds):
        self.skew[name] += seconds

    def _calm(self):
        """The storm is over: nothing fails any more, and whoever has not left for good is there."""
        self.rail.faults = Faults(delay=(0.01, 0.4))
        for peril in self.perils.values():
            peril.over = True
        for name in NAMES:
            self._start(name)

    def _tap(self, way, name, body):
        mark = 0
        if way == "from" and name in self.stations:
            [[mark]] = self.stations[name].base.rows("SELECT coalesce(max(number), 0) FROM journal")
        self.tapped.append((way, name, body, mark))

    # ---- the coordinator --------------------------------------------------------------------------------------------
    def hub_now(self):
        return EPOCH + self.rail.clock + self.skew[HUB]

    def _start_hub(self):
        peril = self.perils[HUB]
        self.store = self.twins.store(self.config.state_folder, self.hub_now)
        try:
            self.store.wake()
            self.queue = self.twins.queue(
                lambda: self.key_materials[HUB],
                lambda: self.public_identities,
                PerilousRail(self.rail, peril),
                pause=4.0,
                watch=self._watch,
            )
            self._listen(self.queue)
            rng = random.Random(self.seed)
            self.coordinator = Coordinator(self.store, self.queue, self.config, lambda: self.public_identities, rng.random)
        except BaseException:
            self.store.close()
            raise
        self.rail.lay()
        self.hub_up = True

    def _listen(self, queue):
        """Note whatever the coordinator takes for an answer and is none to the letter that it sent."""
        ask = queue.ask

        def asking(kind, parts, *, study=bytes(16), number=0, seconds):
            letters = ask(kind, parts, study=study, number=number, seconds=seconds)
            for name, letter in letters.items():
                if (letter.sender, letter.study, letter.number) != (name, study, number):
                    self.broken.append(f"number {letter.number:x} of {letter.sender} was taken for {number:x} of {name}")
            return letters

        queue.ask = asking

    def _watch(self, happened, station, kind, study, number, size):
        self.trace.append((happened, station, kind, number >> 32, number & 0xFFFFFFFF))

    def _hub_dies(self):
        self.deaths += 1
        if self.hub_up:
            self.store.close()
        self.hub_up = False
        self.rail.hang_up()
        self.rail.pass_time(self.rng.choice([0.5, 5.0, 40.0]))

    def _go_on(self, id):
        """What the service does, in one thread: whatever is due, a step further."""
        if not self.hub_up:
            self._start_hub()
        due = self.coordinator.due()
        for one in due:
            self.coordinator.advance(one)
        self.queue.wait(0.5 if due else 2.0)

    def run(self, seconds=600.0):
        """Submit the study and run until it has ended and stations know, or so much time has passed."""
        self.rail.hang_up()
        with (
            mock.patch("os.fsync", self._fsync),
            mock.patch.object(Database, "transaction", self._transaction()),
            mock.patch("hedgerow.engines.message_queue.SLICE", 30.0),
            mock.patch("hedgerow.stats.design.read_formula", read_once),
            mock.patch("hedgerow.network.station.admitted.rehearsed", rehearsed_once),
        ):
            outside = Store(self.config.state_folder, self.hub_now)  # the command is another process
            self.id = submit(outside, parse(STUDIES[self.kind]))
            outside.close()
            for name in NAMES:
                if name not in self.late:
                    self._start(name)
            steps = 0
            while self.rail.clock < seconds and not self._ended():
                steps += 1
                assert steps < 20_000, "virtual time stands still"
                try:
                    with self._as(HUB):
                        self._go_on(self.id)
                except Killed:
                    self._hub_dies()
                except CannotWrite:
                    self.rail.pass_time(5.0) if not self.hub_up else self._pause()
        return self

    def _pause(self):
        with self._as(HUB), suppress(CannotWrite):
            try:
                self.queue.wait(5.0)
            except Killed:
                self._hub_dies()

    def _ended(self):
        if not self.hub_up:
            return False
        kept = self.store.study(self.id)
        return kept.ended and (not kept.untold or self.rail.clock > 130)

    def close(self):
        if self.hub_up:
            self.store.close()
        for station in self.stations.values():
            station.close()
            station.base.close()

    @property
    def kept(self):
        store = Store(self.config.state_folder, self.hub_now)
        try:
            return store.study(self.id)
        finally:
            store.close()
