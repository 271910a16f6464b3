"""A station as a process of its own, on a socket rail, and a coordinator here."""

import subprocess
import sys
import threading
from pathlib import Path

from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.socket_rail import SocketRail
from hedgerow.network.identity.enrolment import accept, ask, enrol
from hedgerow.network.identity.enrolment_files import Request, Welcome
from hedgerow.network.identity.key_folder import KeyFolder
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import read_config
from hedgerow.network.station.review import DATABASE
from hedgerow.network.station.submissions import Submissions
from hedgerow.store import last
from hedgerow.study import build_remote
from hedgerow.wire.values import pack, unpack
from patience import PATIENCE, until
from station_house import parse_text, records

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
age = { range = [20, 90] }
dose = { range = [0, 1] }
sick = { kind = "binary" }
income = { range = [0, 100000] }
[guard]
approval = "automatic"
programs = [{ name = "moments" }, { name = "fedavg" }]
"""
ENDLESS = """
name = "endless"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "fedavg"
model = "mlp"
hidden = [1000, 1000]
epochs = 100
rounds = 1000
"""
"""A million parameters, a hundred times over the made-up records, a thousand rounds: no machine does that in an hour."""
LARGE = b"an endless study"


def made(folder):
    """A station's folder beside its coordinator's."""
    mine = folder / "alpha"
    mine.mkdir()
    (mine / "station.toml").write_text(TOML)
    columns = records("alpha")
    rows = "\n".join(",".join(map(repr, map(float, row))) for row in zip(*columns.values(), strict=True))
    (mine / "heart.csv").write_text(",".join(columns) + "\n" + rows + "\n")
    (folder / "hub").mkdir(mode=0o700)
    hub = KeyFolder.make(folder / "hub" / "keys", "hub", True, hosts=["localhost"])
    keys = KeyFolder.make(mine / "keys", "alpha")
    accept(keys, Welcome.from_bytes(enrol(hub, Request.from_bytes(ask(keys)))))
    return mine


class Gate:
    """A station's process."""

    def __init__(self, folder):
        self.folder = folder
        command = [sys.executable, "-c", "from hedgerow.cli.station import app; app()", "start", str(folder)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)

    def children(self):
        """Processes that it has started and that run."""
        found = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            found += (task / "children").read_text().split()
        return [int(pid) for pid in found if runs(int(pid))]

    def until_it_says(self, words):
        until(lambda: any(words in line for line in self.log), words, ended=self.process.poll, moved=lambda: len(self.log))

    def end(self):
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        self.process.stderr.close()


def runs(pid):
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Hub:
    """A coordinator of one station."""

    def __init__(self, folder):
        self.folder = folder
        self.keys = KeyFolder(folder.parent / "hub" / "keys")
        self.rail = SocketRail(folder.parent / "hub" / "rail.sock")
        self.queue = MessageQueue(lambda: self.keys.key_material, lambda: self.keys.public_identities, self.rail)
        self.number, self.life, self._declared = 0, 0, read_config(folder)[0].declared

    def ask(self, kind, parts=(), study=bytes(16)):
        assert self.queue.wait(PATIENCE, lambda: "alpha" in self.queue.alive())
        self.number += kind != "hello"
        about = {"study": study, "number": self.number} if kind != "hello" else {}
        return self.queue.ask(kind, {"alpha": list(parts)}, seconds=PATIENCE, **about)["alpha"]

    def schema(self, *columns):
        return self._declared.select(list(columns))

    def board(self, text, study, columns=("age", "dose")):
        told = {"coordinator": "hub", "stations": {"alpha": 1}, "schema": self.schema(*columns).columns, "version": "0.1.0"}
        letter = self.ask("board", [text.encode(), pack(told)], study)
        return unpack(letter.parts[0])["status"] if letter.kind == "board" else letter.parts[0].decode()

    def boarded(self, text, study, columns=("age", "dose")):
        """Ask until the rehearsal is over."""
        until(lambda: self.board(text, study, columns) != "waiting", "a decision", moved=lambda: self.number)
        return self.board(text, study, columns)

    def run(self, text, study, columns=("age", "dose")):
        """Run a study; the last state."""
        self.life += 1
        network = Network(self.queue, study, {"alpha": ("alpha",)}, seconds=PATIENCE, life=self.life << 10)
        built = build_remote(parse_text(text), self.schema(*columns), network)
        return last(built.listing.program(built.settings)(built.federation))

    def submission(self, study):
        """What the station's database says of a study."""
        base = Base(self.folder / DATABASE)
        try:
            return Submissions(base).get(study.hex())
        finally:
            base.close()
