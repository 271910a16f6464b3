"""Where a party's torch work is done: its own choice, the same numbers, and all else on the CPU.

No GPU was at hand. `fake_device.py` is a device written in Python, which refuses to compute with tensors of the CPU; real ones
differ in last bits, in what they run out of, and in the random numbers of dropout.
"""

import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.cli.pilot import lay_out
from hedgerow.errors import ConfigInvalid, SettingsInvalid
from hedgerow.learn import devices, fedavg, mlp, use_device
from hedgerow.learn.descent import Solver
from hedgerow.learn.models import TOLD, Model
from hedgerow.learn.settings import Settings, fields
from hedgerow.network import station_service

LOCAL = {"rounds": 1, "learning_rate": 0.1, "batch_size": 20}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "cpu")


def digits():
    return hr.simulate(hr.data.load("digits").take(range(60)), hr.data.iid(parties=3), seed=0)


@pytest.mark.slow
def test_a_device_computes_what_the_cpu_does_and_gets_all_that_it_computes_with():
    script = Path(__file__).parent / "fake_device.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 13
    for name, seen in found.items():
        assert seen["apart"] <= 1e-6, name
        assert seen["scores apart"] <= 1e-6, name
        assert (seen["operations"] > 100) == (name != "records"), name  # bounds of single records are proved for the CPU
    assert found["noise"]["apart"] == 0.0  # the grid is coarser than what rounding changed


@pytest.mark.parametrize("name", ["cpu", "auto"])
def test_auto_is_the_cpu_where_there_is_nothing_else(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    devices.device_named.cache_clear()
    *_, wanted = fedavg(digits(), mlp(64, [6], 10), **LOCAL)
    assert use_device(name) == torch.device("cpu") == devices.device()
    *_, found = fedavg(digits(), mlp(64, [6], 10), **LOCAL)
    for key, value in wanted.weights.items():
        np.testing.assert_array_equal(found.weights[key], value)


@pytest.mark.parametrize("name", ["cuda:77", "mps:9", "meta", "gpu", "cuda:x", ""])
def test_a_device_that_is_not_there_is_refused_and_the_choice_stays(name):
    with pytest.raises(SettingsInvalid, match="HR-511") as caught:
        use_device(name)
    assert repr(name) in str(caught.value)
    assert '"auto" or "cpu"' in str(caught.value)
    assert os.environ[devices.VARIABLE] == "cpu"


def test_a_choice_in_the_environment_is_refused_where_it_is_needed(monkeypatch):
    monkeypatch.setenv(devices.VARIABLE, "cuda:77")
    fed = digits()
    with pytest.raises(SettingsInvalid, match="HR-511"):
        next(fedavg(fed, mlp(64, [6], 10), **LOCAL))
    assert not fed.ledger.entries


def test_no_question_chooses_a_device():
    """It is no setting of a program, and a model that travels does not name one."""
    assert "device" not in fields(Settings)
    assert "where" not in TOLD
    assert not {"where", "device"} & set(inspect.signature(Solver).parameters)
    model = Model(mlp(4, [3], 2), "category", where=torch.device("meta"))
    assert "where" not in model.__travel__()
    assert not any(part.is_meta for part in model.fixed.values())
    assert model.on(torch.device("cpu")).where == torch.device("cpu")


def test_a_station_names_its_own(tmp_path, monkeypatch):
    lay_out(tmp_path / "pilot", ("alpha", "beta"), port=1)
    file = tmp_path / "pilot" / "alpha" / "station.toml"
    written = file.read_text()
    monkeypatch.setattr(station_service.Records, "read", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    for line, wanted in (('device = "auto"\n', "auto"), ("", "cpu")):
        monkeypatch.setenv(devices.VARIABLE, "cpu")
        file.write_text(line + written)
        with pytest.raises(KeyboardInterrupt):  # before it reads records: what it starts from here on inherits the choice
            station_service.open_gate(file.parent, threading.Event())
        assert os.environ[devices.VARIABLE] == wanted
    file.write_text('device = "the fast one"\n' + written)
    with pytest.raises(ConfigInvalid, match="HR-601"):
        station_service.open_gate(file.parent, threading.Event())
