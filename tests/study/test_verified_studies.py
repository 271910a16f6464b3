"""Studies through verified shares: the model is the plain one within rounding, and a report says what was refused."""

import numpy as np
import pytest

from hedgerow.core.federation import inside
from hedgerow.core.judged_rows import JudgedRows, in_all
from hedgerow.errors import RangeExceeded, StudyInvalid
from hedgerow.network.console.rules import rules_of
from hedgerow.network.coordinator.journal import CoordinatorEntry
from hedgerow.network.station.config import GuardSection
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.build import build

DIGITS = {
    "name": "digits",
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": 8},
    "program": {"name": "fedavg", "rounds": 2, "learning_rate": 0.5},
    "evaluation": {"on": "test", "holdout": 0.3},
    "baselines": False,
}
VERIFIED = {"by": "additive", "aggregators": 2, "verified": True}
CLIP = {"norm": "l2", "radius": 1.0}
FORGED = {"act": "scale", "kind": "forge", "strength": -1000.0, "parties": 0.25}


def study(aggregation=None, attack=None, **protection):
    protection = {"clip": CLIP} | ({"aggregation": aggregation} if aggregation else {}) | protection
    return parse(DIGITS | {"protection": protection} | ({} if attack is None else {"attack": attack}))


def ran(tmp_path, name, *given, **more):
    return run_study(study(*given, **more), tmp_path / name, threads=1)


def cells(grid):
    return [tuple(map(str, row)) for row in grid.rows]


def test_fedavg_through_verified_shares_is_the_plain_one_within_rounding(tmp_path):
    plain, proved = ran(tmp_path, "plain"), ran(tmp_path, "proved", VERIFIED)
    for one, other in zip(plain.run.state.weights.values(), proved.run.state.weights.values(), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    [grid] = [grid for grid in proved.report.tables if grid.title == "Rows that were proved"]
    assert cells(grid)[0][1:] == ("l2 of at most 1", "2", "0 of 16")
    assert ("rows refused", "0 of 8 in each round") in proved.report.facts
    assert "rows refused" not in dict(plain.report.facts)


def test_a_report_of_forged_rows_says_how_many_were_refused_and_that_they_changed_nothing(tmp_path):
    forged = ran(tmp_path, "forged", VERIFIED, FORGED)
    facts = dict(forged.report.facts)
    assert facts["rows refused"] == "2 of 8 in each round"
    assert any("4 of 16 rows were refused" in note for note in forged.report.notes)
    assert not any("never came" in note for note in forged.report.notes)
    [held] = [
        row[1] for grid in forged.report.tables if grid.title == "Parties that lie" for row in grid.rows if row[0] == "held"
    ]
    assert held.startswith("The aggregators, while all of them are honest")
    clean, behind = ran(tmp_path, "clean", VERIFIED), ran(tmp_path, "hidden", {"by": "secagg"}, FORGED)
    found = [dict(one.report.metrics)["test accuracy"] for one in (clean, forged, behind)]
    assert found[1] > found[0] - 0.1
    assert found[2] < found[1] - 0.3


def test_a_rehearsal_of_what_a_run_would_refuse_before_its_first_question_is_refused():
    noise = {"law": "gaussian", "noise_multiplier": 1e-5, "at": "aggregators"}
    with pytest.raises(RangeExceeded, match="an l2 bound of 1 has"):
        rehearse(study(VERIFIED, mechanism=noise))


def test_a_rehearsal_takes_verified_shares(tmp_path):
    found = rehearse(study(VERIFIED))
    assert found.entries[0].aggregation == "additive-share (2 aggregators, verified)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aggregation": {"by": "secagg", "verified": True}}, "verified: no key of 'secagg'"),
        ({"aggregation": VERIFIED | {"aggregators": 4}}, "2 or 3 aggregators"),
        ({"aggregation": VERIFIED | {"bits": 32}}, "Leave bits out"),
    ],
)
def test_a_study_that_proves_nothing_is_refused_as_it_is_read(changes, words):
    with pytest.raises(StudyInvalid, match=words):
        study(**changes)


def test_noise_of_parties_is_refused_when_a_study_is_built():
    noise = {"law": "gaussian", "noise_multiplier": 1.0, "at": "party"}
    with pytest.raises(Exception, match="and so nothing"):
        build(study(VERIFIED, mechanism=noise), threads=1)


def test_counts_of_refused_rows_add_up():
    judged = [JudgedRows(n, "", "step", "l2 of at most 1", 40, n) for n in range(3)]
    assert in_all(judged) == (3, 120)
    assert str(judged[2]) == "refused: 2 of 40"


def test_a_coordinator_s_journal_tells_it_by_number_alone():
    entry = CoordinatorEntry(1, 0.0, "study", "refused", {"query": "step", "rows": 2, "of": 40}, "")
    assert entry.sentence == "rows refused, since they were not proved: 2 of 40 of step"


def test_a_guard_that_wants_proofs_says_so():
    guard = GuardSection(require={"hidden_rows": True, "verified": True})
    said = dict(rules_of(guard))["Protection"]
    assert "each is proved to be within its bound, or is in no total" in said
    with pytest.raises(ValueError, match="verified is of hidden rows"):
        GuardSection(require={"verified": True})


def test_a_federation_says_what_was_proved():
    built = build(study(VERIFIED), threads=1)
    assert built.federation.judged == ()
    assert inside(built.federation).channel.aggregation.verified
