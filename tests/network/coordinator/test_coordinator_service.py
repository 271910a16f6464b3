"""The coordinator as a process runs it: threads, several studies at once, an end in good order."""

import threading
import time
from queue import Empty, Queue
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_up_stations import STUDY, World, pooled_fit

from hedgerow.engines.rails.rail import Arrived
from hedgerow.errors import CannotWrite
from hedgerow.network.coordinator.service import Service
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.study import parse
from patience import PATIENCE, until


class LiveRail:
    """Each station answers in a thread of its own, a little later."""

    def __init__(self, stations, delay=0.0):
        self.stations, self.delay = stations, delay
        self.arrived, self.letters = Queue(), {name: Queue() for name in stations}
        for name in stations:
            threading.Thread(target=self.answer, args=(name,), daemon=True).start()

    def answer(self, name):
        while True:
            body = self.letters[name].get()
            time.sleep(self.delay)
            self.arrived.put(Arrived(name, self.stations[name].receive(body)))

    def connected(self):
        return frozenset(self.stations)

    def now(self):
        return time.monotonic()

    def send(self, station, body):
        self.letters[station].put(body)

    def receive(self, seconds):
        try:
            return self.arrived.get(timeout=seconds) if seconds else self.arrived.get_nowait()
        except Empty:
            return None


class Running:
    """A service in a thread, on a store of its own."""

    def __init__(self, world, delay=0.0):
        self.store = Store(world.config.state_folder)
        public_identities = {name: station.key_material.public_identity for name, station in world.stations.items()}
        keys = SimpleNamespace(key_material=world.hub, public_identities=public_identities)
        self.service = Service(world.config, keys, self.store, LiveRail(world.stations, delay))
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.service.run, args=(self.stop,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        self.store.close()

    def until(self, holds):
        def moved():
            return [(kept.id, kept.state, kept.reason, kept.round) for kept in self.store.studies()]

        until(holds, moved=moved, ended=lambda: not self.thread.is_alive() and moved(), pause=0.02)


@pytest.mark.slow
def test_several_studies_at_once_give_each_its_own_result(tmp_path):
    world = World(tmp_path, {"studies_at_once": 3})
    formulas = ["ill ~ age + dose", "ill ~ age", "ill ~ dose", "ill ~ age + dose"]
    ids = [submit(world.store, parse(STUDY | {"program": STUDY["program"] | {"formula": one}})) for one in formulas]
    with Running(world) as running:
        running.until(lambda: not running.store.open())
        assert [running.store.study(id).state for id in ids] == ["finished"] * 4
    for id in (ids[0], ids[3]):
        found = pd.read_csv(tmp_path / "runs" / id / "coefficients.csv")["coef"]
        np.testing.assert_allclose(found, pooled_fit(world.tables.values()), atol=1e-8)


@pytest.mark.slow
def test_a_service_that_is_stopped_ends_the_question_and_goes_on_later(tmp_path):
    world = World(tmp_path)
    id = submit(world.store, parse(STUDY))
    with Running(world, delay=0.05) as running:
        running.until(lambda: world.store.study(id).round >= 2)
    stopped = world.store.study(id)
    assert stopped.state == "waiting"
    assert "stopped" in stopped.reason
    with Running(world) as running:
        running.until(lambda: running.store.study(id).ended)
        assert running.store.study(id).state == "finished"


@pytest.mark.slow
def test_a_step_that_cannot_be_kept_is_tried_again(tmp_path, monkeypatch):
    world = World(tmp_path)
    id = submit(world.store, parse(STUDY))
    monkeypatch.setattr("hedgerow.network.coordinator.service.AGAIN", 0.1)
    with Running(world) as running:
        fails, before = [3], running.store.move

        def move(*given, **more):
            fails[0] -= 1
            if fails[0] >= 0:
                raise CannotWrite("the disk is full.", asked=False)
            return before(*given, **more)

        running.store.move = move
        running.until(lambda: running.store.study(id).ended)
        assert running.store.study(id).state == "finished"
