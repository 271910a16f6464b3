"""Split training at two stations over gRPC, each killed with -9 in an epoch, has the bits of the whole network."""

import json

import numpy as np
import pytest
import test_vertical_processes
import torch
import vertical_house
from test_vertical_processes import Processes
from torch import nn
from vertical_house import NUMBERS, VerticalHouse, people, study

from hedgerow.cli.pilot import HUB
from hedgerow.engines.desk_files import DeskFile
from hedgerow.learn import mlp

SETTINGS = {"bottom_hidden": [6], "width": 4, "epochs": 2, "batch_size": 40, "learning_rate": 0.05, "momentum": 0.9}
SPLIT = study("split", {"name": "splitnn", "labels": "shared"} | SETTINGS, "town.moved")


class Killed(Processes):
    """Processes of which one is killed now and then; what a killed station keeps of the alignment is looked at."""

    def __init__(self, folder):
        super().__init__(folder)
        self.rows = {}

    def look(self, name):
        self.rows[name] = common_rows(self.folder / name, name)


def whole(x, y):
    """Mean loss of the last epoch of the whole network, on data in one place."""
    net = nn.Sequential(mlp(4, [6], 4, seed=0), nn.ReLU(), mlp(4, [], 1, seed=2))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        losses = np.zeros(len(y), np.float32)
        for rows in torch.from_numpy(np.random.default_rng([0, epoch]).permutation(len(y))).split(40):
            each = nn.functional.binary_cross_entropy_with_logits(net(x[rows])[:, 0], y[rows], reduction="none")
            optimiser.zero_grad()
            each.mean().backward()
            optimiser.step()
            losses[rows] = each.detach().numpy()
    return float(losses.astype(float).sum() / len(y))


def common_rows(folder, name):
    """Where the common people stand in a station's list, as it keeps it during a study."""
    [path] = folder.rglob("*.desk")
    desk = DeskFile(path).desks()[name]
    return next(entry["rows"] for k in range(9) if (entry := desk.get(f"alignment {k}")) is not None)


def of_whole(rows):
    """What the whole network has, of the people in the order of an alignment."""
    (ids, tax), (others, town) = people("tax"), people("town")
    assert (ids[rows["tax"]] == others[rows["town"]]).all()
    columns = [(tax[name][rows["tax"]] / 100.0).astype(np.float32) for name in NUMBERS["tax"]]
    return whole(torch.from_numpy(np.stack(columns, 1)), torch.from_numpy(town["moved"][rows["town"]].astype(np.float32)))


@pytest.mark.slow
@pytest.mark.parametrize("after", [31, 44])
def test_v19_stations_that_are_started_again_within_a_question_go_on_to_the_same_bits(tmp_path, monkeypatch, after):
    monkeypatch.setattr(vertical_house, "PROGRAMS", ("splitnn",))
    house, rows, heard = VerticalHouse(tmp_path), {}, []

    def breaking(name):
        receive = house.rail.stations[name]

        def answer(*letter):
            heard.append(name)
            reply = receive(*letter)
            if heard.count(name) == after:  # its answer is on its way, and what it knew in its memory is lost
                rows[name] = common_rows(tmp_path / name, name)
                house.start(name)
            return reply

        return answer

    house.rail.stations |= {name: breaking(name) for name in ("tax", "town")}
    kept, folder = house.run(SPLIT)
    assert kept.state == "finished", kept.reason
    assert dict(json.loads((folder / "result.json").read_text())["metrics"])["loss"] == of_whole(rows)


@pytest.mark.slow
def test_v19_stations_that_are_killed_in_an_epoch_go_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(test_vertical_processes, "PROGRAMS", ("splitnn",))
    processes = Killed(tmp_path)
    try:
        for name in (HUB, "tax", "town"):
            processes.start(name)
        folder = processes.run(SPLIT, kills=[("tax", 16), ("town", 14)])
    finally:
        processes.stop()
    found = dict(json.loads((folder / "result.json").read_text())["metrics"])
    assert found["loss"] == of_whole(processes.rows)
