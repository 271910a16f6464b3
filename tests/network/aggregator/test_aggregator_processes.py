"""Three aggregators and five stations, each a process, over gRPC: proved rows, noise, and one aggregator killed with -9."""

import tomllib

import pytest

from hedgerow.cli.pilot import ADDING, HUB, free_port, lay_out
from hedgerow.core.toml import to_toml
from hedgerow.network.aggregator.journal import AggregatorBase, AggregatorJournal
from hedgerow.network.coordinator.submission import submit
from running import Running
from station_house import parse_text

NAMES = ("alpha", "beta", "gamma", "delta", "eta")
LIMITS = {"question_seconds": 60.0, "retry_seconds": 0.2, "retry_most_seconds": 1.0}
PROGRAM = {"name": "fedavg", "model": "linear", "rounds": 40, "steps": 2, "learning_rate": 0.1}
REQUIRED = {"require": {"hidden_rows": True, "verified": True, "noise": "aggregators"}}
PROTECTION = {
    "clip": {"norm": "l2", "radius": 1.0},
    "mechanism": {"law": "gaussian", "noise_multiplier": 0.05, "at": "aggregators"},
    "aggregation": {"by": "additive", "aggregators": 3, "verified": True},
}


class Processes(Running):
    """A coordinator, stations and aggregators, each a process."""

    def __init__(self, folder):
        how = {"port": free_port(), "limits": LIMITS, "guard": REQUIRED, "program": PROGRAM}
        lay_out(folder, NAMES, aggregators=ADDING[:3], **how)
        super().__init__(folder, ADDING[:3])
        for name in (HUB, *self.adding, *NAMES):
            self.start(name)

    def entries(self, name):
        """The journal of an aggregator, which is whole."""
        base = AggregatorBase(self.folder / name / "state" / "aggregator.sqlite")
        try:
            journal = AggregatorJournal(base)
            journal.verify()
            return journal.entries()
        finally:
            base.close()

    def totals(self, name):
        """Epoch and round of every total that an aggregator gave."""
        found, epoch = [], ""
        for entry in self.entries(name):
            epoch = entry.words if entry.code == "epoch" else epoch
            if entry.code == "total":
                found.append((epoch, entry.words.partition("in round ")[2].split()[0], entry.parties))
        return found


def text(folder):
    """The study of the pilot, with proved rows and noise of the aggregators."""
    study = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    return to_toml(study | {"protection": PROTECTION})


@pytest.mark.slow
def test_an_aggregator_is_killed_in_a_study_of_proved_rows_and_nothing_is_given_twice(tmp_path):
    processes = Processes(tmp_path / "pilot")
    try:
        id = submit(processes.store, parse_text(text(processes.folder)))
        for name in processes.adding[:2]:
            before = len(processes.totals(name))
            processes.until(
                lambda name=name, before=before: len(processes.totals(name)) >= before + 2 or processes.store.study(id).ended,
                "two totals",
            )
            assert not processes.store.study(id).ended, processes.store.study(id).reason
            processes.kill(name)
            processes.start(name)
        processes.until(lambda: processes.store.study(id).ended, "the study's end")
        kept = processes.store.study(id)
        assert kept.state == "finished", kept.reason
    finally:
        processes.stop()
    given = {name: processes.totals(name) for name in processes.adding}
    for totals in given.values():
        assert len({(epoch, round) for epoch, round, _ in totals}) == len(totals)
        assert {parties for *_, parties in totals} == {5}
    assert len({epoch for epoch, *_ in given[processes.adding[0]]}) >= 2  # a killed aggregator has forgotten its epoch
    assert all("noise of this aggregator's own" in one.words for one in processes.entries("ministry") if one.code == "total")
    rounds = (processes.config.runs_folder / id / "rounds.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(rounds) == PROGRAM["rounds"]
