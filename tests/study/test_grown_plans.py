"""Noise that a budget decides for trees, of which noisy answers decide how many questions there are."""

from dataclasses import replace

import pytest

from hedgerow.core.ledger import grouped
from hedgerow.errors import StudyInvalid
from hedgerow.privacy.accounting import epsilon
from hedgerow.store import read_chain
from hedgerow.study import parse, rehearse, run_study
from hedgerow.study.build import build
from hedgerow.study.catalogue import listing
from hedgerow.study.planned import with_noise

FEATURES = ["mean_radius", "mean_texture", "worst_area", "mean_area"]
GROWN = {
    "decision_tree": ({"depth": 3, "features": FEATURES}, 3),
    "random_forest": ({"trees": 1, "depth": 3, "bootstrap": False}, 3),
    "id3": ({"depth": 6, "features": FEATURES}, 4),
    "boosted_trees": ({"trees": 2, "depth": 2, "features": FEATURES}, 5),
}
"""Settings, and the most questions: of ID3, whose paths use a feature once, no more than there are features."""


def study_of(name, epsilon, *, early=False, mechanism=None, **more):
    settings, _ = GROWN[name]
    held = {} if not early else {"min_curvature": 60} if name == "boosted_trees" else {"min_records": 120}
    return parse(
        {
            "name": name,
            "data": {"name": "breast_cancer"},
            "partition": {"by": "iid", "parties": 3},
            "program": {"name": name, "n_bins": 4, **settings, **held, **more},
            "budget": {"epsilon": epsilon, "delta": 1e-5, "unit": "record"},
            "protection": {"mechanism": {"law": "gaussian", **(mechanism or {})}},
            "baselines": False,
        }
    )


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
@pytest.mark.parametrize("name", GROWN)
def test_noise_is_planned_for_the_most_questions(name, epsilon, early):
    found, most = rehearse(study_of(name, epsilon, early=early)), GROWN[name][1]
    assert len(found.entries) == most
    assert len({entry.event for entry in found.entries}) == 1
    assert 0.99 * epsilon < found.statement.epsilon <= epsilon
    assert "budget" not in found.ended


@pytest.mark.parametrize("name", GROWN)
def test_a_run_takes_the_planned_noise_and_ends_within_its_budget(name, tmp_path):
    study, most = study_of(name, 20.0), GROWN[name][1]
    planned = with_noise(study).protection.mechanism.noise_multiplier
    assert run_study(study, tmp_path).run.stopped == "finished"
    entries = read_chain(tmp_path / "ledger.jsonl").entries
    assert [entry.event.noise_multiplier for entry in entries] == [planned] * most
    assert epsilon(grouped(entries, "record"), delta=1e-5, adjacency="add-remove") <= 20.0


def test_a_rehearsal_says_where_a_budget_ends_what_made_up_records_did_not_lead_to():
    found = rehearse(study_of("id3", 2.0, early=True, mechanism={"noise_multiplier": 3.0}))
    assert 0 < len(found.entries) < 4
    assert "after which the budget ends it" in found.ended


def test_exact_questions_are_not_taken_further():
    free = study_of("id3", 2.0, early=True).model_dump(exclude_unset=True) | {"budget": None, "protection": {}}
    assert len(rehearse(parse(free)).entries) == 1


def test_answers_that_decide_undeclared_are_refused_with_words():
    """Whoever writes a program of this kind reads what to declare."""

    def make(study):
        built = build(study)
        return replace(built, listing=replace(listing("boosted_trees"), most=None))

    with pytest.raises(StudyInvalid, match="declare `most`"):
        with_noise(study_of("boosted_trees", 1.0, features=None, n_bins=32), make, "undeclared")
