"""A hub and two stations with different columns, each a process, over gRPC; killed with -9 in the middle, they go on."""

import time

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from vertical_house import ALLOWED, COLUMNS, NUMBERS, PROGRAMS, people, pooled, study

from hedgerow.cli.pilot import HUB, _enrol, _rails, _write, free_port
from hedgerow.errors import StateLost
from hedgerow.network.coordinator.submission import submit
from hedgerow.network.station.review import Review
from running import Running
from station_house import parse_text

LIMITS = {"question_seconds": 60.0, "retry_seconds": 0.2, "retry_most_seconds": 1.0, "studies_at_once": 1}
TERMS = (*NUMBERS["town"], *NUMBERS["tax"])
RISK = study("risk", {"name": "vertical_logistic_regression", "formula": f"moved ~ {' + '.join(TERMS)}"}, "town.moved")
MEANS = study("means", {"name": "vertical_means", "of": ["salary", "age"], "by": "district"})

AWAY = 5.0
"""Seconds after which a killed station is started again, where the coordinator has not noted yet that it is gone."""

TRIES = 4
"""Studies that are submitted, at most, so that processes are killed in the middle of one."""


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


class Processes(Running):
    """A coordinator and its stations, each a process."""

    def __init__(self, folder):
        lay_out_apart(folder)
        super().__init__(folder)
        self.submitted = 0

    def over(self, id):
        return self.store.study(id).ended

    def gone(self, id, name):
        """How often the coordinator noted that a station did not answer, or that the study has to wait."""
        about = [one.about for one in self.store.history(id)]
        return sum(name in one.get("silent", ()) or one.get("state") == "waiting" for one in about)

    def killed(self, id, name, after):
        """Kill a process when so many further questions have gone out, and start it again; False where the study ended before.

        A station stays away until the coordinator has noted that it left. One that was killed between a charge and its answer
        is silent about that question, and whoever comes back before is waited for until `question_seconds` are over. One that
        had no letter is missed when the next one is due, and waited for: it is back after some seconds, unless it was noted.
        """
        most = self.questions() + after
        self.until(lambda: self.questions() >= most or self.over(id), "a question")
        if self.over(id):
            return False
        before = self.gone(id, name)
        self.kill(name)
        if name != HUB:
            back = time.monotonic() + AWAY
            self.until(lambda: self.gone(id, name) > before or self.over(id) or time.monotonic() > back, "a station to be back")
        over = self.over(id)
        if not over:
            self.look(name)
        self.start(name)
        return not over

    def look(self, name):
        """Look at what a killed process has kept."""

    def run(self, text, kills=()):
        """Run a study in which one process after the other is killed, each so many questions after the one before.

        A study that is over before all of them were is submitted anew: on a busy machine whoever kills may come too late. So is
        one that had to go back by more than parties keep, since a station came back after it was waited for (HR-615).
        """
        for _ in range(TRIES):
            id = submit(self.store, parse_text(text))
            self.submitted += 1
            whole = all(self.killed(id, name, after) for name, after in kills)
            self.until(lambda id=id: self.over(id), "the study's end")
            kept = self.store.study(id)
            lost = kept.state == "failed" and StateLost.code in kept.reason
            assert kept.state == "finished" or lost, kept.reason
            if whole and not lost:
                return self.config.runs_folder / id
        raise AssertionError(f"{TRIES} studies were over before processes could be killed, or lost what parties kept")


def coefficients(folder):
    return pd.read_csv(folder / "coefficients.csv", index_col=0)


@pytest.mark.slow
def test_v19_killed_processes_go_on_with_the_alignment_that_they_keep(tmp_path):
    processes = Processes(tmp_path)
    try:
        for name in (HUB, *COLUMNS):
            processes.start(name)
        means = coefficients(processes.run(MEANS))
        assert means.loc["north"].notna().all()
        assert means.loc["island"].isna().all()
        found, known = coefficients(processes.run(RISK, kills=[("town", 20), (HUB, 15)])), pooled()
    finally:
        processes.stop()
    for name in COLUMNS:
        review = Review.at(tmp_path / name)
        try:
            review.journal.verify()
            aligned = [entry.study for entry in review.journal.entries() if entry.kind == "align"]
        finally:
            review.close()
        assert len(aligned) == len(set(aligned)) == processes.submitted
    fit = sm.Logit(known["moved"], sm.add_constant(np.stack([known[name] for name in TERMS], 1))).fit(disp=0, tol=1e-10)
    np.testing.assert_allclose(found["coef"], fit.params, atol=1e-7)
    np.testing.assert_allclose(found["se"], fit.bse, rtol=1e-5)  # `tol`: information is that of a point so close to the end
