"""The NVIDIA FLARE rail: its supervisor and files everywhere; the relay itself where nvflare is installed."""

import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hedgerow.engines.rails import nvflare as package
from hedgerow.engines.rails.nvflare import settings
from hedgerow.engines.rails.nvflare.connection import MOST_WAITING, FlareConnection
from hedgerow.engines.rails.nvflare.kit import JOB, template, write_job
from hedgerow.engines.rails.nvflare.supervisor import AT_REST, FIRST_PAUSE, SOUND, STALE, Supervisor
from hedgerow.engines.rails.socket_rail import SocketDoor
from hedgerow.errors import ConfigInvalid, MissingExtra
from hedgerow.wire import frames
from patience import PATIENCE, until

HERE = "hedgerow.engines.rails.nvflare."
needs_flare = pytest.mark.skipif(importlib.util.find_spec("nvflare") is None, reason="needs nvflare")
as_flare_is = pytest.mark.filterwarnings(
    "ignore"
)  # its own use of its dependencies warns, and an error there cuts its connection


# ---- without FLARE --------------------------------------------------------------------------------------------------
def test_without_nvflare_the_rail_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nvflare", None)
    with pytest.raises(MissingExtra, match=r"HR-105[\s\S]*hedgerow\[nvflare\]"):
        package.NvflareRail(tmp_path / "c.sock", tmp_path)
    assert not (tmp_path / "c.sock").exists()


def test_a_job_names_our_two_classes_and_carries_no_code(tmp_path):
    job = write_job(tmp_path, "alpha")
    files = sorted(str(path.relative_to(job)) for path in job.rglob("*") if path.is_file())
    assert files == ["app/config/config_fed_client.json", "app/config/config_fed_server.json", "meta.json"]
    named = re.findall(r'"path": "([^"]+)"', "".join((job / file).read_text() for file in files))
    assert sorted(named) == json.loads(template("policy.json"))["class_allow_list"]
    assert json.loads((job / "meta.json").read_text())["deploy_map"] == {"app": ["server", "alpha"]}


@pytest.mark.parametrize("path", ["relative.sock", "/" + "x" * 101])
def test_a_path_that_cannot_be_a_socket_is_refused(path, tmp_path):
    with pytest.raises(ConfigInvalid, match="HR-601"):
        settings.write(tmp_path, Path(path))


def test_a_kit_without_a_socket_is_refused(tmp_path):
    (tmp_path / settings.FILE).write_text('{"socket": 7}')
    with pytest.raises(ConfigInvalid, match="does not name a socket"):
        settings.read(tmp_path)


class Flare:
    """A server of FLARE as the supervisor sees it."""

    def __init__(self, *sites):
        self.there, self.jobs, self.calls, self.life, self.away = set(sites), {}, 0, 1, False

    def begun(self):
        self.calls += 1
        if self.away:
            raise ConnectionError("away")
        return self.life

    def sites(self):
        return frozenset(self.there)

    def running(self):
        return {job: site for job, (site, over) in self.jobs.items() if not over}

    def submit(self, site):
        job = f"{site}-{sum(name.startswith(site) for name in self.jobs)}"
        self.jobs[job] = (site, False)
        return job

    def is_over(self, job):
        return self.jobs[job][1]

    def abort(self, job):
        self.jobs[job] = (self.jobs[job][0], True)

    def forget(self, job):
        pass

    def close(self):
        pass


def test_every_site_gets_a_job_of_its_own_and_only_one():
    flare = Flare("alpha", "beta")
    keeper = Supervisor(lambda: flare, frozenset)
    for now in range(20):
        keeper.step(float(now))
    assert flare.running() == {"alpha-0": "alpha", "beta-0": "beta"}


def test_only_named_sites_are_served():
    flare = Flare("alpha", "stranger")
    Supervisor(lambda: flare, frozenset, frozenset({"alpha"})).step(0.0)
    assert set(flare.running().values()) == {"alpha"}


def test_a_job_that_ended_is_submitted_again_after_growing_pauses():
    flare = Flare("alpha")
    keeper = Supervisor(lambda: flare, frozenset)
    ends = []
    for tick in range(2000):
        keeper.step(tick * 0.1)
        for job in flare.running():  # whatever is submitted fails at once
            flare.abort(job)
            ends.append(tick * 0.1)
    gaps = [later - sooner for sooner, later in itertools.pairwise(ends)]
    assert gaps[0] >= 2 * FIRST_PAUSE
    assert gaps == sorted(gaps)
    assert len(ends) < 10


def test_after_a_sound_life_the_first_pause_is_short():
    flare, connected = Flare("alpha"), set()
    keeper = Supervisor(lambda: flare, lambda: frozenset(connected))
    keeper.step(0.0)
    connected.add("alpha")
    keeper.step(1.0)
    connected.clear()
    flare.abort("alpha-0")
    keeper.step(2.0 + SOUND)
    keeper.step(2.1 + SOUND + FIRST_PAUSE)
    assert flare.running() == {"alpha-1": "alpha"}


def test_a_site_that_comes_back_waits_for_nothing():
    flare = Flare("alpha")
    keeper = Supervisor(lambda: flare, frozenset)
    keeper.step(0.0)
    flare.abort("alpha-0")
    for now in (1.0, 1.1):
        keeper.step(now)
    assert flare.running() == {}
    flare.there.clear()
    keeper.step(1.2)
    flare.there.add("alpha")
    keeper.step(1.3)
    assert flare.running() == {"alpha-1": "alpha"}


def test_a_job_that_carries_nothing_is_thrown_away():
    flare = Flare("alpha")
    keeper = Supervisor(lambda: flare, frozenset)
    keeper.step(0.0)
    keeper.step(STALE - 1)
    assert flare.running() == {"alpha-0": "alpha"}
    keeper.step(STALE + 1)
    assert flare.running() == {}


def test_a_new_supervisor_adopts_one_running_job_for_each_site():
    flare = Flare("alpha", "beta")
    flare.submit("alpha"), flare.submit("alpha"), flare.submit("beta")
    Supervisor(lambda: flare, frozenset).step(0.0)
    assert flare.running() == {"alpha-0": "alpha", "beta-0": "beta"}


def test_a_restarted_server_gets_new_jobs():
    flare = Flare("alpha")
    keeper = Supervisor(lambda: flare, frozenset)
    keeper.step(0.0)
    flare.life, flare.jobs["alpha-0"] = 2, ("alpha", True)
    keeper.step(0.5)
    assert flare.running() == {"alpha-1": "alpha"}


def test_a_server_that_is_away_is_asked_less_and_less_often():
    flare = Flare("alpha")
    flare.away = True
    keeper = Supervisor(lambda: flare, frozenset)
    for tick in range(600):
        keeper.step(tick * 0.1)
    assert flare.calls < 12
    flare.away = False
    keeper.step(71.0)
    assert flare.running() == {"alpha-0": "alpha"}


def test_when_all_is_well_the_server_is_left_alone():
    flare, connected = Flare("alpha"), {"alpha"}
    keeper = Supervisor(lambda: flare, lambda: frozenset(connected))
    keeper.step(0.0)
    calls = flare.calls
    for tick in range(1, 50):
        keeper.step(tick * AT_REST / 60)
    assert flare.calls == calls
    connected.clear()
    keeper.step(AT_REST * 0.9)
    assert flare.calls == calls + 1


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        door.listen()
        door.settimeout(PATIENCE)
        yield tmp_path / "s", door


def test_a_strand_names_itself_and_carries_bodies_whole(listener):
    path, door = listener
    connection = FlareConnection(path, "alpha")
    peer, _ = door.accept()
    with peer:
        assert frames.read(peer, 100) == b"alpha"
        for body in (b"", b"x" * 1000, os.urandom(3_000_000)):
            assert connection.put(body)
            assert frames.read(peer) == body
            threading.Thread(target=frames.write, args=(peer, body)).start()
            assert connection.get(PATIENCE) == body
    assert connection.get(PATIENCE) is None
    assert not connection.alive
    connection.close()


def test_a_peer_that_does_not_read_holds_nobody_up(listener):
    path, door = listener
    connection = FlareConnection(path, "alpha")
    peer, _ = door.accept()
    kept = []
    sender = threading.Thread(target=lambda: kept.extend(connection.put(bytes(1_000_000)) for _ in range(50)), daemon=True)
    sender.start()
    sender.join(PATIENCE)  # though nobody ever reads
    assert len(kept) == 50
    assert sum(kept) <= MOST_WAITING + 2
    connection.close()
    peer.close()


def test_a_frame_above_the_cap_ends_the_strand(listener):
    path, door = listener
    connection = FlareConnection(path, "alpha", most=1000)
    peer, _ = door.accept()
    with peer:
        peer.sendall((1 << 62).to_bytes(8, "big") + b"x" * 100)
        assert connection.get(PATIENCE) is None
        assert not connection.alive
    connection.close()


# ---- with FLARE: real kits, real processes ---------------------------------------------------------------------------
SITES = ("alpha", "beta", "gamma")


class Station:
    """A station's own end: it answers each body with its name and the body."""

    def __init__(self, name, path):
        self.name, self.stop = name, threading.Event()
        self.thread = threading.Thread(target=SocketDoor(path, name).serve, args=(self.answer, self.stop), daemon=True)
        self.thread.start()

    def answer(self, body):
        return None if body == b"say nothing" else self.name.encode() + b"|" + body

    def close(self):
        self.stop.set()
        self.thread.join(PATIENCE)


def family(pid):
    """The process and all below it, parents first."""
    found, parents = [pid], {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class Federation:
    """Kits started as processes on loopback, an echo station for each site, and the coordinator's rail."""

    def __init__(self, folder):
        from hedgerow.engines.rails.nvflare.provision import provision

        self.folder = folder
        self.door = {name: folder / f"{name}.s" for name in (*SITES, "c")}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.kits = provision(
            folder / "kits", {site: self.door[site] for site in SITES}, coordinator=self.door["c"], port=port, scheme="http"
        )
        self.processes = {}
        self.stations = {site: Station(site, self.door[site]) for site in SITES}
        self.begin("server")
        for site in SITES:
            self.begin(site)
        self.rail = package.NvflareRail(self.door["c"], self.kits["submitter"])

    def begin(self, kit):
        (self.folder / "home").mkdir(exist_ok=True)
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, **one, "HOME": str(self.folder / "home"), "PATH": path}
        with (self.folder / f"{kit}.log").open("ab") as log:
            self.processes[kit] = subprocess.Popen(
                ["bash", "startup/sub_start.sh", "--once"],
                cwd=self.kits[kit],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def jobs(self, site):
        """The processes at a site that relay."""
        below = family(self.processes[site].pid)
        return [pid for pid in below if b"worker_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def kill(self, kit):
        kill(family(self.processes[kit].pid))
        self.processes[kit].wait()

    def wait(self, names):
        """Take events until exactly these stations are connected."""

        def there():
            self.rail.receive(0.1)
            return self.rail.connected() == set(names)

        until(there, f"stations {sorted(names)}", moved=lambda: sorted(self.rail.connected()))

    def round(self, bodies):
        """Send to each station and return what came from it, or fail."""
        for station, body in bodies.items():
            self.rail.send(station, body)
        came = {}
        while len(came) < len(bodies):
            event = self.rail.receive(PATIENCE)
            assert event is not None, sorted(came)
            if hasattr(event, "body"):
                assert event.station not in came
                came[event.station] = event.body
        return came

    def close(self):
        self.rail.close()
        for kit in self.processes:
            self.kill(kit)
        for station in self.stations.values():
            station.close()


@pytest.fixture(scope="module")
def flared():
    folder = Path("/tmp") / f"hr{os.getpid()}"  # a Unix socket's path is short
    folder.mkdir(mode=0o700)
    federation = Federation(folder)
    try:
        federation.wait(SITES)
        yield federation
    finally:
        federation.close()
        shutil.rmtree(folder)


def own(size):
    return {site: os.urandom(16) + site.encode() + bytes(size) for site in SITES}


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_each_body_reaches_its_station_only_and_comes_back_whole(flared):
    for bodies in (*(own(1000) for _ in range(20)), own(10_000_000)):
        assert flared.round(bodies) == {site: site.encode() + b"|" + body for site, body in bodies.items()}


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_a_body_without_an_answer_does_not_hold_up_the_next(flared):
    flared.rail.send("alpha", b"say nothing")
    assert flared.round({"alpha": b"x"}) == {"alpha": b"alpha|x"}


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_a_killed_relay_process_at_a_site_is_replaced_and_others_go_on(flared):
    jobs = flared.jobs("beta")
    assert jobs
    kill(jobs)
    flared.wait({"alpha", "gamma"})
    assert set(flared.round({"alpha": b"1", "gamma": b"2"})) == {"alpha", "gamma"}
    flared.wait(SITES)
    assert set(flared.round(own(1000))) == set(SITES)


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_a_killed_site_is_back_after_its_restart(flared):
    flared.kill("gamma")
    flared.wait({"alpha", "beta"})
    flared.begin("gamma")
    flared.wait(SITES)
    assert set(flared.round(own(1000))) == set(SITES)


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_a_new_coordinator_takes_over_running_jobs(flared):
    jobs = [flared.jobs(site) for site in SITES]
    flared.rail.close()
    flared.rail = package.NvflareRail(flared.door["c"], flared.kits["submitter"])
    flared.wait(SITES)
    assert [flared.jobs(site) for site in SITES] == jobs  # none was started again
    assert set(flared.round(own(1000))) == set(SITES)


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_code_and_foreign_classes_are_refused_by_the_policy(flared, tmp_path):
    from hedgerow.engines.rails.nvflare.supervisor import FlareSession

    session = FlareSession(flared.kits["submitter"])._session
    code, foreign = write_job(tmp_path / "1", "alpha"), write_job(tmp_path / "2", "alpha")
    (code / "app" / "custom").mkdir()
    (code / "app" / "custom" / "more.py").write_text("print(1)")
    client = foreign / "app" / "config" / "config_fed_client.json"
    asked = {
        **json.loads(client.read_text()),
        "components": [{"id": "x", "path": "subprocess.Popen", "args": {"args": "true"}}],
    }
    client.write_text(json.dumps(asked))
    try:
        for job, word in ((code, "BYOC not permitted"), (foreign, "allow_list")):
            ended = session.wait_for_job(session.submit_job(str(job)), timeout=PATIENCE, poll_interval=0.5)
            assert ended["status"] in ("FINISHED:FAILED_TO_RUN", "FINISHED:EXECUTION_EXCEPTION", "FINISHED:ABNORMAL")
            logs = (log.read_text() for log in (*flared.folder.glob("*.log"), *flared.folder.glob("kits/*/*-*/log.txt")))
            assert word in str(ended.get("job_deploy_detail")) + "".join(logs)
    finally:
        session.close()
    flared.wait(SITES)


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_a_killed_server_is_back_after_its_restart(flared):
    flared.kill("server")
    flared.wait(())
    flared.begin("server")
    flared.wait(SITES)
    assert set(flared.round(own(1000))) == set(SITES)


@needs_flare
@as_flare_is
@pytest.mark.slow
def test_kits_keep_logs_and_storage_at_home(flared):
    for kit in (*SITES, "server"):
        rules = json.loads((flared.kits[kit] / "local" / "resources.json").read_text())
        assert rules["class_allow_list"] == [HERE + "controller.RelayController", HERE + "executor.RelayExecutor"]
        assert (rules["class_list_enforcement_mode"], rules["allow_log_streaming"]) == ("enforce", False)
        assert "site_log_streamer" not in [part["id"] for part in rules["components"]]
        assert "/tmp/nvflare" not in json.dumps(rules)
        assert (
            json.loads((flared.kits[kit] / "local" / "authorization.json").read_text())["permissions"]["lead"]["byoc"] == "none"
        )
        assert JOB not in "".join(path.name for path in (flared.kits[kit] / "transfer").iterdir())
