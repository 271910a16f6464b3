"""A hub and two stations with different columns, each a process, over gRPC; killed with -9 in the middle, they go on."""

import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from vertical_house import ALLOWED, COLUMNS, NUMBERS, PROGRAMS, people, pooled, study

from hedgerow.cli.pilot import HUB, _enrol, _rails, _write, free_port
from hedgerow.network.coordinator.config import load_config
from hedgerow.network.coordinator.store import Store
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.review import Review
from patience import until
from station_house import parse_text

LIMITS = {"question_seconds": 60.0, "retry_seconds": 0.2, "retry_most_seconds": 1.0, "studies_at_once": 1}
TERMS = (*NUMBERS["town"], *NUMBERS["tax"])
RISK = study("risk", {"name": "vertical_logistic_regression", "formula": f"moved ~ {' + '.join(TERMS)}"}, "town.moved")
MEANS = study("means", {"name": "vertical_means", "of": ["salary", "age"], "by": "district"})


def lay_out_apart(folder):
    """Keys, configurations and records of a hub and both stations."""
    names = tuple(COLUMNS)
    _enrol(folder, names)
    own, theirs = _rails(folder.absolute(), names, "grpc", free_port())
    _write(folder / HUB / "coordinator.toml", {"name": HUB, "rail": own, "limits": LIMITS})
    for name in names:
        guard = {key: value for key, value in ALLOWED.items() if key != "disclosure"} | {"disclosure": 1e9}
        data = {"name": "people", "source": "csv", "path": "records.csv", "ids": "nin", "columns": COLUMNS[name]}
        config = {"name": name, "coordinator": {"name": HUB, **theirs[name]}, "data": data}
        _write(folder / name / "station.toml", config | {"guard": guard | {"programs": [{"name": one} for one in PROGRAMS]}})
        ids, columns = people(name)
        frame = pd.DataFrame({"nin": ids} | columns)
        if "district" in frame:
            frame["district"] = pd.Categorical.from_codes(frame["district"], COLUMNS[name]["district"]["levels"])
        frame.to_csv(folder / name / "records.csv", index=False)


class Processes:
    """A coordinator and its stations, each a process."""

    def __init__(self, folder):
        lay_out_apart(folder)
        self.folder, self.running = folder, {}
        self.config = load_config(folder / HUB)
        self.store = Store(self.config.state_folder)

    def start(self, name):
        kind = "coordinator" if name == HUB else "station"
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", "hedgerow", kind, "start", str(self.folder / name)]
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, name):
        """Kill -9, whatever it is doing."""
        process = self.running.pop(name)
        assert process.poll() is None, f"{name} ended by itself"
        process.kill()
        process.wait()

    def stop(self):
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.store.close()

    def questions(self):
        """How many letters with questions went out."""
        return sum(one.event == "asked" and one.about["kind"] == "ask" for one in self.store.history())

    def moved(self):
        return len(self.store.history()), sum(log.stat().st_size for log in self.folder.glob("*.log"))

    def ended(self):
        return [name for name, process in self.running.items() if process.poll() is not None]

    def until(self, holds, what):
        until(holds, what, moved=self.moved, ended=self.ended, pause=0.05)

    def run(self, text, kills=()):
        """Run a study; after so many questions from its start a process is killed, and started again."""
        id, before = submit(self.store, parse_text(text)), self.questions()
        for name, after in kills:
            self.until(lambda most=before + after: self.questions() >= most or self.store.study(id).ended, "a question")
            assert not self.store.study(id).ended, f"the study ended before: {self.store.study(id).reason}"
            self.kill(name)
            self.start(name)
        self.until(lambda: self.store.study(id).ended, "the study's end")
        kept = self.store.study(id)
        assert kept.state == "finished", kept.reason
        return pd.read_csv(self.config.runs_folder / id / "coefficients.csv", index_col=0)


@pytest.mark.slow
def test_v19_killed_processes_go_on_with_the_alignment_that_they_keep(tmp_path):
    processes = Processes(tmp_path)
    try:
        for name in (HUB, *COLUMNS):
            processes.start(name)
        means = processes.run(MEANS)
        assert means.loc["north"].notna().all()
        assert means.loc["island"].isna().all()
        found, known = processes.run(RISK, kills=[("town", 20), (HUB, 60)]), pooled()
    finally:
        processes.stop()
    for name in COLUMNS:
        review = Review.at(tmp_path / name)
        try:
            review.journal.verify()
            aligned = [entry.study for entry in review.journal.entries() if entry.kind == "align"]
        finally:
            review.close()
        assert len(aligned) == len(set(aligned)) == 2
    fit = sm.Logit(known["moved"], sm.add_constant(np.stack([known[name] for name in TERMS], 1))).fit(disp=0, tol=1e-10)
    np.testing.assert_allclose(found["coef"], fit.params, atol=1e-7)
    np.testing.assert_allclose(found["se"], fit.bse, rtol=1e-5)  # `tol`: information is that of a point so close to the end
