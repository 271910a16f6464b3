"""What is told of rows that were refused: their number, nothing that noise has to hide, and no answer that never came."""

import json

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.core.federation import inside
from hedgerow.core.judged_rows import in_all
from hedgerow.core.question import local
from hedgerow.engines import Acting, InProcess
from hedgerow.store.checkpoint import Mark
from hedgerow.store.drive import drive
from hedgerow.study import parse, run_study

FORGE = (ScaledRows(1000.0, kind="forge"),)


@local
def update(broadcast, party, rng):
    return np.full(3, 0.1)


def through(n=100, liars=(), mode="simulated", **channel):
    acts = Acting(Liars(liars, FORGE)) if liars else None
    table = pd.DataFrame({"x": np.linspace(0, 1, 2 * n)})
    federation = hr.simulate(table, hr.data.iid(n), seed=0, engine=InProcess(threads=1, acts=acts))
    shares = hr.AdditiveShares(aggregators=2, verified=True, mode=mode)
    return federation.protect(clip=hr.l2(1.0), aggregation=shares, **channel)


def came(federation):
    return [one.came for one in federation.judged]


@pytest.mark.parametrize("mode", ["real", "simulated"])
def test_how_many_came_to_a_secret_cohort_is_not_told(mode):
    """Who is drawn by a rate amplifies the noise of the server, unless somebody tells how many were."""
    federation = through(liars=("party 1", "party 2", "party 3"), mode=mode, mechanism=hr.Gaussian(1.0))
    for _ in range(6):
        federation.sample(rate=0.6).sum(update)
    assert set(came(federation)) == {60}
    assert 0 < in_all(federation.judged)[0] <= 18
    assert set(federation.ledger.to_frame()["rows"].str.replace("refused: [0-3] of 60", "", regex=True)) == {""}


def test_the_expected_number_is_not_below_that_of_rows_refused():
    names = tuple(f"party {i}" for i in range(1, 100))
    federation = through(liars=names[:50], mechanism=hr.Gaussian(1.0))
    federation.sample(rate=0.6).sum(update)
    [one] = federation.judged
    assert one.came >= one.refused > 0


def test_how_many_came_is_told_where_the_cohort_is_no_secret():
    everybody = through(mode="real", n=20, mechanism=hr.Gaussian(1.0))
    everybody.sum(update)
    seen = through(mode="real", n=20, mechanism=hr.Gaussian(1.0, at="aggregators"))
    seen.sample(rate=0.9).sum(update)
    assert came(everybody) == [20]
    [entry] = inside(seen).run.ledger.entries
    assert str(entry.sampling) == "all parties"  # nothing is claimed of being drawn
    assert came(seen)[0] <= 20


def test_a_row_that_was_refused_is_no_answer_that_never_came():
    federation = through(n=12, liars=("party 1", "party 4"))
    federation.sum(update)
    assert in_all(federation.judged) == (2, 12)
    assert federation.missing == 0


def study(rounds, on="test"):
    shares = {"by": "additive", "aggregators": 2, "verified": True}
    return parse(
        {
            "name": "aside",
            "data": {"name": "breast_cancer", "target": "malignant"},
            "partition": {"by": "iid", "parties": 10},
            "program": {"name": "fedavg", "model": "linear", "rounds": rounds},
            "protection": {"clip": {"norm": "l2", "radius": 1.0}, "aggregation": shares},
            "attack": {"act": "scale", "parties": 0.2, "strength": 1000, "kind": "forge"},
            "evaluation": {"on": on},
            "baselines": False,
        }
    )


def test_a_row_that_was_refused_in_a_measurement_is_none_either(tmp_path):
    """Measurements aside count rows that were refused, and no answers that are missing."""
    notes = run_study(study(2, "parties"), tmp_path / "run", threads=1).report.notes
    assert any("rows were refused" in note for note in notes)
    assert not [note for note in notes if "never came" in note]


@pytest.mark.parametrize("after", [2, 4])
def test_a_run_that_goes_on_has_counted_what_was_refused_before(tmp_path, after, monkeypatch):
    monkeypatch.setitem(drive.__kwdefaults__, "seconds", 0.0)  # a checkpoint after every round

    def stop(progress):
        if progress.round == after:
            raise RuntimeError("the process is killed")

    with pytest.raises(RuntimeError, match="killed"):
        run_study(study(4), tmp_path / "run", threads=1, on_progress=stop)
    found = run_study(study(4), tmp_path / "run", threads=1, resume=True).report
    assert ("rows refused", "2 of 10 in each round") in found.facts
    assert [note for note in found.notes if "rows were refused" in note] == [
        "8 of 40 rows were refused, since they were not proved: they are in no sum."
    ]
    assert not [note for note in found.notes if "never came" in note]


def test_a_checkpoint_has_what_was_refused(tmp_path):
    federation = through(n=12, liars=("party 1", "party 4"), mode="real")
    federation.sum(update)
    mark = Mark.of(inside(federation).run)
    again = through(n=12, mode="real")
    Mark(**json.loads(json.dumps(vars(mark)))).restore(inside(again).run)
    assert again.judged == federation.judged
    assert inside(again).run.ledger.judged == inside(federation).run.ledger.judged
