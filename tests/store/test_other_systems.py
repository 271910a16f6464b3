"""Windows, imitated: no locks of descriptors, no sockets of files, no folder that opens. What can run does, the rest tells."""

import os
import socket
import threading

import pytest

import hedgerow as hr
from hedgerow.cli.pilot import free_port, lay_out
from hedgerow.engines.pipes import pair
from hedgerow.engines.rails import socket_rail
from hedgerow.errors import SystemUnsupported
from hedgerow.network.coordinator import service
from hedgerow.network.coordinator.config import load_config
from hedgerow.network.station_service import serve
from hedgerow.store.locks import lock_file
from hedgerow.study import load, run_study


@pytest.fixture
def windows(monkeypatch):
    opened = os.open

    def no_folder(path, *arguments, **more):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr("hedgerow.store.locks.fcntl", None)
    monkeypatch.setattr("hedgerow.store.snapshot.POSIX", False)
    monkeypatch.setattr(os, "open", no_folder)
    for holder, name in ((socket, "AF_UNIX"), (socket, "send_fds"), (os, "geteuid"), (os, "O_CLOEXEC")):
        monkeypatch.delattr(holder, name)


@pytest.mark.slow
def test_a_study_runs_and_can_be_resumed(windows, tmp_path):
    study = load("breast-cancer-glm")
    run_study(study, tmp_path / "run")
    again = run_study(study, tmp_path / "run", resume=True)
    assert dict(again.report.facts)["questions asked"] == 9


@pytest.mark.slow
def test_a_pilot_is_laid_out_and_its_services_say_what_they_need(windows, tmp_path):
    lay_out(tmp_path / "pilot", ("alpha", "beta"), port=free_port())
    with pytest.raises(SystemUnsupported, match="A station needs Linux or macOS"):
        serve(tmp_path / "pilot" / "alpha", threading.Event())
    with pytest.raises(SystemUnsupported, match="A coordinator needs Linux or macOS"):
        service.serve(load_config(tmp_path / "pilot" / "hub"), threading.Event())


def test_sockets_of_files_are_refused(windows, tmp_path):
    with pytest.raises(SystemUnsupported, match="HR-108"):
        socket_rail.dial(tmp_path / "hub", "alpha")
    with pytest.raises(SystemUnsupported, match="descriptors"):
        pair()


def test_a_lock_file_is_one_holders_at_a_time(tmp_path):
    first = lock_file(tmp_path / "lock")
    with pytest.raises(BlockingIOError):
        lock_file(tmp_path / "lock")
    first.release()
    lock_file(tmp_path / "lock").release()
    assert hr.errors.catalogue()["HR-108"] is SystemUnsupported
