"""The study of gradient inversion: its program keeps the contract, and its table tells what each sum hides."""

import numpy as np
import pytest

from hedgerow.attacks.observers.inversion_cases import InversionCase, cases_of, places_of
from hedgerow.attacks.observers.inversion_page import inversion_outcome, is_picture, truth_of
from hedgerow.attacks.observers.inversion_study import asked, inversion
from hedgerow.core.federation import Federation, inside
from hedgerow.data import Column, Schema, Table, load
from hedgerow.engines import simulate
from hedgerow.errors import SettingsInvalid
from hedgerow.study import load as study
from hedgerow.study.runner import run
from hedgerow.testing import contract

test_inversion = contract(inversion)

CHANGES = {
    "data.name": "digits",
    "data.records": 60,
    "partition.parties": 60,
    "program.targets": 4,
    "program.searches": 1,
    "program.batches": [1, 2, 8],
    "program.noise": [0.01, 1.0],
    "program.searched": [1],
    "program.search_noise": [1.0],
    "program.group": 5,
    "program.hidden": [24],
    "program.steps": 200,
    "program.picture": [8, 8],
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return run(study("inversion", CHANGES), tmp_path_factory.mktemp("inversion") / "run").report


@pytest.mark.slow
def test_decibels_are_within_the_ranges_that_are_known_and_stand_beside_the_number_of_records(report):
    (grid,) = [one for one in report.tables if one.title == "Pictures made of gradients"]
    assert grid.columns[1] == "records in the sum"
    found = {(row[0], row[1], row[2]): row[5] for row in grid.rows if row[3] != "inferred"}
    guess = found["nothing: the mean of all records", 1, "none"]
    assert 8 < guess < 16
    assert found["gradient, softmax regression", 1, "first layer"] >= 100
    assert guess < found["sum, softmax regression", 2, "first layer, one unit"] < 60
    assert found["sum, softmax regression", 8, "first layer, one unit"] < 25
    assert found["sum, softmax regression", 8, "first layer, by class"] >= 100
    assert found["secure sum, softmax regression", 5, "first layer, by class"] >= 100
    assert found["gradient, softmax regression, clip and noise 0.01", 1, "first layer"] > guess + 4
    assert found["gradient, softmax regression, clip and noise 1", 1, "first layer"] < guess
    assert found["gradient, sigmoid network", 1, "search"] > 30
    assert found["secure sum, sigmoid network", 5, "search for one record"] < 20
    without = {(row[0], row[1], row[2]): row[6] for row in grid.rows if row[3] != "inferred"}
    assert without["gradient, softmax regression", 1, "first layer"] == pytest.approx(guess, abs=3)
    assert without["sum, softmax regression", 8, "first layer, one unit"] > guess + 0.5  # of eight the best
    of_eight = [without["sum, softmax regression", 8, f"first layer, {how}"] for how in ("one unit", "by class")]
    assert of_eight[0] == of_eight[1]
    told, alone = (without["secure sum, sigmoid network", 5, what] for what in ("search", "search for one record"))
    assert alone <= told
    assert found["gradient, sigmoid network, clip and noise 1", 1, "search"] < guess


@pytest.mark.slow
def test_pictures_are_of_the_records_in_each_sum_and_truth_is_told_as_exposed(report):
    (pictures,) = report.pictures
    assert [row.said.split(" record")[0] for row in pictures.rows] == ["one", *"2828", *"5", *["one"] * 3, *"555", "one"]
    first = pictures.rows[0]
    assert first.said.startswith("one record; ")
    assert [len(row.groups) for row in pictures.rows[:4]] == [4, 4, 4, 2]
    assert all((truth.width, truth.height) == (8, 8) for row in pictures.rows for truth, _ in row.groups)
    assert all(truth.pixels == found.pixels for truth, found in first.groups)  # exact to a grey level
    assert "exact results" in report.exposed
    assert not report.privacy_ok


def test_parties_with_several_records_are_refused(tmp_path):
    with pytest.raises(SettingsInvalid, match="30 of 30 parties"):
        run(study("inversion", CHANGES | {"partition.parties": 30}), tmp_path / "run")
    federation = simulate(load("digits").take(range(6)), _single(6))
    small = {"targets": 1, "searches": 1, "batches": [1], "noise": [], "searched": [], "search_noise": [], "group": 3}
    (state, *_) = inversion(federation, **small, steps=1, hidden=[4])
    two = simulate(load("digits").take(range(6)), _pairs())
    with pytest.raises(SettingsInvalid, match="3 of 3 parties"):
        inversion_outcome(two, small | {"picture": []}, state, inside(two).run.engine.held)


def test_records_that_are_no_pictures_are_measured_and_not_drawn():
    assert [is_picture(one) for one in ((8, 8), (3, 8, 8), (30,), (2, 8, 8), (300, 300), (8, 0))] == [True, True, *[False] * 4]
    schema = Schema(
        (
            Column("stack", "number", low=0.0, high=1.0, shape=(2, 4, 8)),
            Column("y", "category", levels=("a", "b"), role="target"),
        )
    )
    values = np.random.default_rng(0).random((6, 2, 4, 8))
    federation = simulate(Table({"stack": values, "y": np.arange(6) % 2}, schema), _single(6))
    small = {"targets": 1, "searches": 1, "batches": [1], "noise": [], "searched": [], "search_noise": [], "group": 3}
    (state, *_) = inversion(federation, **small, steps=1, hidden=[4])
    shown = inversion_outcome(federation, small | {"picture": []}, state, inside(federation).run.engine.held)
    assert shown.pictures == ()
    assert shown.metrics["dB of one record"] >= 100
    assert "(2, 4, 8) are not drawn" in shown.notes[1]


def _pairs():
    from hedgerow.data import of_sizes

    return of_sizes([2, 2, 2], shuffled=False)


def test_a_search_for_one_record_is_compared_with_those_of_its_label_and_others_with_the_whole_sum():
    inputs, labels = np.arange(8.0)[:, None], np.array([3, 1, 1, 2, 5, 5, 6, 5])
    whole = InversionCase("network", "cosine", 4, hidden=True, told=True)
    alone = InversionCase("network", "cosine", 4, hidden=True, told=True, alone=True)
    assert [truth_of(whole, inputs, labels, t)[:, 0].tolist() for t in (0, 1)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [truth_of(alone, inputs, labels, t)[:, 0].tolist() for t in (0, 1)] == [[1, 2], [4, 5, 7]]


def test_cases_and_the_places_of_their_pictures():
    cases = cases_of([1, 8], [0.1], [4], [], 3)
    assert [(one.by, one.records, one.hidden) for one in cases] == [
        ("one", 1, False),
        ("rows", 8, False),
        ("classes", 8, False),
        ("classes", 3, True),
        ("one", 1, False),
        ("cosine", 4, False),
        ("cosine", 3, True),
        ("cosine", 3, True),
        ("cosine", 3, True),
    ]
    flat = [place for own in places_of(cases, 2, 1) for place in own]
    assert [place.start for place in flat[1:]] == [place.stop for place in flat[:-1]]
    assert flat[-1].stop == 2 * (1 + 1 + 8 + 3 + 1) + 4 + 3 + 3 + 1
    assert InversionCase("network", "cosine", 10, hidden=True, alone=True).seen == "secure sum, sigmoid network"
    assert asked(2, 3, 7) == [6, 0, 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"targets": 0}, "targets=0"),
        ({"batches": [9]}, "sums of up to 9 of 6 parties"),
        ({"noise": [0.0]}, "noise=\\[0.0\\]"),
        ({"group": 0}, "group=0"),
        ({"group": 2}, "group=2"),
        ({"picture": [8, 9]}, "a record has 64 numbers"),
        ({"picture": [-8, -8]}, "a record has 64 numbers"),
        ({"picture": [1, 8, 8]}, "a record has 64 numbers"),
        ({"picture": [2, 4, 8]}, "a record has 64 numbers"),
        ({"picture": [64]}, "a record has 64 numbers"),
        ({"hidden": [-1]}, "hidden=\\[-1\\]"),
        ({"hidden": [4, 0]}, "hidden=\\[4, 0\\]"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"clip": float("nan")}, "clip=nan"),
        ({"noise": [float("inf")]}, "noise=\\[inf\\]"),
        ({"search_noise": [float("nan")]}, "search_noise=\\[nan\\]"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(settings, words):
    federation = simulate(load("digits").take(range(6)), _single(6))
    small = {"batches": [1], "noise": [0.1], "searched": [1], "search_noise": [], "group": 3}
    with pytest.raises(SettingsInvalid, match=words):
        next(inversion(federation, **small | settings))
    assert isinstance(federation, Federation)
    assert federation.asked == 0


def _single(n):
    from hedgerow.data import of_sizes

    return of_sizes([1] * n, shuffled=False)


def test_counts_of_labels_and_pictures_are_kept_from_state_to_state():
    federation = simulate(load("digits").take(range(6)), _single(6))
    small = {"batches": [1], "noise": [], "searched": [1], "search_noise": [], "group": 3, "steps": 2, "hidden": [4]}
    states = list(inversion(federation, targets=2, searches=1, **small))
    assert [state.round for state in states] == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(states[0].images[:2]).all()
    assert np.isnan(states[0].images[2:]).all()
    again = list(inversion(simulate(load("digits").take(range(6)), _single(6)), targets=2, searches=1, **small))
    np.testing.assert_array_equal(states[-1].images, again[-1].images)
