"""`hedgerow station`: what the owner of the data sees and decides."""

import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.station import app
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.socket_rail import SocketRail
from hedgerow.errors import HedgerowError
from hedgerow.network.identity.enrolment import accept, ask, enrol
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.config import read_config
from hedgerow.network.station_service import alone, open_folder, serve
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.values import pack, unpack
from patience import PATIENCE, until
from station_house import PRIVATE, STUDY, parse_text, records

TOML = """
name = "alpha"
[coordinator]
name = "hub"
rail = "socket"
path = "../hub/rail.sock"
[data]
name = "heart"
source = "csv"
path = "heart.csv"
[data.columns]
age = { range = [20, 90], unit = "years" }
dose = { range = [0, 1] }
sick = { kind = "binary" }
income = { range = [0, 100000] }
[guard]
columns = ["age", "dose", "sick"]
programs = [{ name = "moments" }]
[guard.budget]
epsilon = 3.0
delta = 1e-6
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal that breaks no line."""
    monkeypatch.setattr("hedgerow.cli.station.console", Console(width=200))


@pytest.fixture
def folder(tmp_path):
    """A station's folder beside its coordinator's keys."""
    made = tmp_path / "alpha"
    made.mkdir()
    (made / "station.toml").write_text(TOML)
    pd.DataFrame(records("alpha")).to_csv(made / "heart.csv", index=False)
    (tmp_path / "hub").mkdir(mode=0o700)
    hub = KeyFolder.make(tmp_path / "hub" / "keys", "hub", True, hosts=["localhost"])
    mine = KeyFolder.make(made / "keys", "alpha")
    accept(mine, Welcome.from_bytes(enrol(hub, Request.from_bytes(ask(mine)))))
    return made


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class Hub:
    """A coordinator of one station, on a socket rail."""

    def __init__(self, folder):
        self.keys = KeyFolder(folder.parent / "hub" / "keys")
        self.rail = SocketRail(folder.parent / "hub" / "rail.sock")
        self.queue = MessageQueue(lambda: self.keys.key_material, lambda: self.keys.public_identities, self.rail)
        self.number = 0

    def ask(self, kind, parts, study=STUDY):
        assert self.queue.wait(PATIENCE, lambda: "alpha" in self.queue.alive())
        self.number += 1
        return self.queue.ask(kind, {"alpha": parts}, study=study, number=self.number, seconds=PATIENCE)["alpha"]

    def board(self, text):
        self.schema = read_config(self.keys.path.parent.parent / "alpha")[0].declared.select(["age", "dose"])
        told = {"coordinator": "hub", "stations": {"alpha": 1}, "schema": self.schema.columns, "version": "0.1.0"}
        return unpack(self.ask("board", [text.encode(), pack(told)]).parts[0])["status"]

    def run(self, text, life):
        network = Network(self.queue, STUDY, {"alpha": ("alpha",)}, seconds=PATIENCE, life=life)
        built = build_remote(parse_text(text), self.schema, network)
        return last(built.listing.program(built.settings)(built.federation))


def test_check_shows_what_a_coordinator_sees_and_what_it_does_not(folder):
    shown = invoke("check", folder)
    assert shown.exit_code == 0, shown.output
    shows = (
        "20 to 90",
        "years",
        "forbidden",
        "not told",
        "records here",
        "sha256:",
        "trusts nobody",
        "a person",
        "0.33 of a study",
    )
    for words in shows:
        assert words in shown.output
    assert shown.output.index("not told") < shown.output.index("What only you see") < shown.output.index("60")


def test_check_refuses_a_folder_without_the_coordinator_s_card(folder):
    (folder / "station.toml").write_text(TOML.replace('"hub"', '"other"'))
    assert "HR-613" in str(invoke("check", folder).exception)


def test_nothing_has_come_and_nothing_was_charged_at_first(folder):
    assert "No study has come" in invoke("inbox", folder).output
    assert "Nothing was charged" in invoke("budget", folder).output
    assert "exact numbers: 0.33 of a study for each value held" in invoke("budget", folder).output
    assert "whole: 0 entries" in invoke("journal", folder, "--verify").output


@pytest.mark.slow
def test_a_person_reads_approves_and_watches_the_budget(folder):
    hub, stop = Hub(folder), threading.Event()
    thread = threading.Thread(target=serve, args=(folder, stop))
    thread.start()
    try:
        assert hub.board(PRIVATE) == "waiting"
        until(lambda: "is being rehearsed" not in invoke("inbox", folder).output, "the end of the rehearsal")
        shown = invoke("inbox", folder).output
        for words in (
            "waiting",
            "moments, for hub, at 1 stations",
            "sum of hedgerow.stats.moments:deviations",
            "numbers from each",
        ):
            assert words in shown
        assert "approved" in invoke("approve", folder, "means", "--by", "Ada").output
        assert hub.board(PRIVATE) == "approved"
        assert np.isfinite(hub.run(PRIVATE, 1).n)
        assert "everything" in invoke("budget", folder).output
        assert "0 of the party that told most: everything" in invoke("budget", folder).output  # noise covers them
        told = json.loads(invoke("journal", folder, "--json").output)
        assert [one["code"] for one in told] == ["waiting", "approved", "approved", "asked", "answered"]
        assert told[-1]["epsilon"] > 0
        assert "sum of hedgerow.stats.moments:deviations" in invoke("journal", folder, "--study", "means").output
        assert "refused" in invoke("refuse", folder, "means", "--because", "enough", "--by", "Ada").output
        with pytest.raises(HedgerowError, match="HR-608"):
            hub.run(PRIVATE, 2)
        with pytest.raises(HedgerowError, match="another process"):
            serve(folder, stop)
    finally:
        stop.set()
        thread.join(PATIENCE)
        hub.rail.close()
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_station_that_was_killed_knows_what_it_answered(folder):
    (folder / "station.toml").write_text(TOML.replace("[guard]", '[guard]\napproval = "automatic"'))
    command = [sys.executable, "-c", "from hedgerow.cli.station import app; app()", "start", str(folder)]
    hub = Hub(folder)
    station = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        until(lambda: hub.board(PRIVATE) == "approved", "the approval", ended=station.poll)
        hub.run(PRIVATE, 1)
        station.kill()
        station.wait()
        station.stderr.close()
        spent = invoke("budget", folder).output
        station = subprocess.Popen(command, stderr=subprocess.PIPE)
        assert hub.queue.wait(PATIENCE, lambda: "alpha" in hub.queue.alive())
        hub.run(PRIVATE, 2)
        assert invoke("budget", folder).output != spent
        station.send_signal(signal.SIGTERM)
        assert station.wait(PATIENCE) == 0
        log = station.stderr.read().decode()
        assert "answered sum of hedgerow.stats.moments:deviations" in log
    finally:
        station.kill()
        station.wait()
        station.stderr.close()
        hub.rail.close()
    assert "whole" in invoke("journal", folder, "--verify").output


def test_one_process_runs_a_station(folder):
    opened = open_folder(folder)
    opened.base.close()
    with alone(folder), pytest.raises(HedgerowError, match="HR-104"), alone(folder):
        pass
