"""Acts on a real set: what each achieves on plain FedAvg, behind a clip, behind secure aggregation, and with its clean twin."""

import json

import numpy as np
import pytest

from hedgerow.errors import SettingsInvalid
from hedgerow.study import parse, run_study
from hedgerow.study.attacked import BACKDOOR, aimed_at
from hedgerow.study.build import build

STUDY = {
    "name": "digits",
    "baselines": False,
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": 20},
    "program": {"name": "fedavg", "model": "linear", "rounds": 10, "learning_rate": 0.5, "epochs": 2},
    "evaluation": {"on": "test", "holdout": 0.3},
}
AIM = {"target": 0, "trigger": {"at": [0, 0], "size": 2}}
SECAGG = {"aggregation": {"by": "secagg"}}


def trained(attack, protection=None, **changes):
    """The study made ready, its last state, and metrics of that."""
    changes = {key: STUDY.get(key, {}) | value for key, value in changes.items()}
    sections = STUDY | changes | {"protection": protection or {}} | ({"attack": AIM | attack} if attack else {})
    built = build(parse(sections), threads=1)
    for state in built.listing.program(built.settings, built.test)(built.federation):
        last = state
    return built, last, built.metrics(last)


def accuracy(attack, *more, **changes):
    return trained(attack, *more, **changes)[2]["test accuracy"]


@pytest.fixture(scope="module")
def honest():
    return trained({"act": "none"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "most"),
    [
        ({"act": "sign-flip"}, 0.5),
        ({"act": "ipm", "strength": 10.0, "knows": "all"}, 0.5),
        ({"act": "scale"}, 0.8),
        ({"act": "scale", "kind": "forge"}, 0.8),
        ({"act": "gaussian"}, 0.8),
        ({"act": "label-flip", "parties": 0.45}, 0.75),
        ({"act": "noise", "parties": 0.45, "boost": 5.0}, 0.8),
        ({"act": "alie", "parties": 0.45, "strength": 6.0, "knows": "all"}, 0.9),
        ({"act": "ipm", "parties": 0.45, "strength": 1.0}, 0.9),
        ({"act": "min-max", "parties": 0.45, "knows": "all"}, 0.92),
    ],
)
def test_acts_that_spoil_a_model_spoil_plain_fedavg(attack, most, honest):
    assert honest[2]["test accuracy"] > 0.92
    assert accuracy(attack) < most


@pytest.mark.slow
def test_a_backdoor_opens_and_leaves_the_accuracy_as_it_was(honest):
    plain, boosted = (trained({"act": "backdoor"} | more)[2] for more in ({}, {"boost": 5.0}))
    assert honest[2][BACKDOOR] < 0.03
    assert plain[BACKDOOR] > 0.5
    assert boosted[BACKDOOR] > 0.95
    assert boosted["test accuracy"] > honest[2]["test accuracy"] - 0.03


@pytest.mark.slow
def test_one_class_is_taken_for_another(honest):
    attack = {"act": "single-target", "source": 8, "target": 0, "trigger": None, "parties": 0.45, "boost": 2.0}
    found = trained(attack)[2]
    assert found["targeted success"] > 0.5
    assert trained(attack | {"act": "none"})[2]["targeted success"] < 0.1


@pytest.mark.slow
def test_free_riders_and_sybils_leave_a_model_that_is_finite_and_nearly_as_good(honest):
    for act in ("free-rider", "sybil", "replace"):
        assert accuracy({"act": act}) > honest[2]["test accuracy"] - 0.05


def test_stamped_records_are_those_of_other_classes_and_all_bear_the_trigger():
    built = build(parse(STUDY | {"attack": {"act": "backdoor"} | AIM}), threads=1)
    stamped = aimed_at(built.study.attack, built.test)
    y = built.test["digit"]
    assert len(stamped) == (y != 0).sum()
    assert (stamped["digit"] == 0).all()
    seen, before = (images.reshape(-1, 8, 8) for images in (stamped["image"], built.test["image"][y != 0]))
    assert (seen[:, :2, :2] == built.schema["image"].high).all()
    rest = np.ones((8, 8), bool)
    rest[:2, :2] = False
    assert np.array_equal(seen[:, rest], before[:, rest])


@pytest.mark.slow
def test_a_lie_is_held_by_its_own_clip_and_a_forged_row_by_the_server_that_sees_it():
    clip = {"clip": {"radius": 50.0}}
    lied, held = trained({"act": "scale"}, clip), trained({"act": "scale", "kind": "forge"}, clip)
    assert not lied[0].run.overlong
    assert dict(held[0].run.overlong) == dict.fromkeys(held[0].run.engine.acts.liars.parties, 10)
    assert held[2]["test accuracy"] > 0.8
    hidden = trained({"act": "scale", "kind": "forge"}, clip | SECAGG)
    assert not hidden[0].run.overlong
    assert hidden[2]["test accuracy"] < held[2]["test accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("act", [{"act": "backdoor", "boost": 5.0}, {"act": "sign-flip", "knows": "all"}])
def test_liars_behind_secure_aggregation_train_the_model_that_they_train_before_it(act):
    clip = {"clip": {"radius": 1e3}}
    shown, hidden = (trained(act, clip | more, program={"rounds": 2})[1].weights for more in ({}, SECAGG))
    for name, values in shown.items():
        np.testing.assert_allclose(hidden[name], values, atol=2e-4 * np.abs(values).max())


@pytest.mark.slow
def test_the_loop_and_the_fast_engine_train_the_same_model_with_liars():
    fast, loop = (
        trained(
            {"act": "backdoor", "boost": 2.0, "parties": ["party 3"]}, program={"name": "scaffold", "rounds": 2}, engine=engine
        )
        for engine in ({"name": "in-process"}, {"name": "loop"})
    )
    for name, values in fast[1].weights.items():
        np.testing.assert_allclose(loop[1].weights[name], values, atol=2e-4)
    assert fast[2][BACKDOOR] == pytest.approx(loop[2][BACKDOOR], abs=0.02)


@pytest.mark.slow
def test_under_poisson_sampling_those_lie_who_are_drawn():
    built, _, _ = trained({"act": "scale", "kind": "forge"}, {"clip": {"radius": 1.0}}, program={"rate": 0.3})
    liars, times = built.run.engine.acts.liars.parties, built.run.overlong
    assert set(times) <= set(liars)
    assert 0 < sum(times.values()) < 10 * len(liars)


@pytest.mark.slow
def test_with_a_bound_per_record_lies_are_told_in_records():
    program = {"name": "dpsgd", "rounds": 3, "sampling_rate": 0.3, "batch_size": 377, "clip": 1.0}
    noise = {"mechanism": {"noise_multiplier": 1.0}}
    study = STUDY | {"program": program, "protection": noise, "attack": {"act": "label-flip"}}
    built = build(parse(study), threads=1)
    for _ in built.listing.program(built.settings, built.test)(built.federation):
        pass
    built = build(parse(study | {"attack": {"act": "sign-flip"}}), threads=1)
    with pytest.raises(SettingsInvalid, match="passes no clip of a record's"):
        next(iter(built.listing.program(built.settings, built.test)(built.federation)))


@pytest.mark.slow
def test_a_report_tells_who_lied_what_it_achieved_and_whose_rows_were_too_long(tmp_path):
    attack = AIM | {"act": "backdoor", "boost": 1000.0, "kind": "forge", "parties": ["party 2", "party 5"]}
    changes = {"baselines": True, "protection": {"clip": {"radius": 5.0}}, "attack": attack}
    made = parse(STUDY | changes | {"program": STUDY["program"] | {"rounds": 2}, "partition": {"by": "iid", "parties": 6}})
    run_study(made, tmp_path / "run")
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    tables = {grid["title"]: grid for grid in written["tables"]}
    said = dict(tables["Parties that lie"]["rows"])
    assert said["who"] == "2 of 6 parties: party 2, party 5"
    assert said["kind"].startswith("forge")
    assert said["knows"] == "their own records and rows"
    beside = {name: (here, twin) for name, here, twin in tables["With and without the attack"]["rows"]}
    assert set(beside) == {"test accuracy", "test loss", BACKDOOR}
    assert tables["Rows longer than their bound"]["rows"] == [["party 2", 2], ["party 5", 2]]
    assert "2 of 6 simulated parties forge their rows" in written["notes"][0]
    assert "the clean twin of the attack" in written["exposed"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Parties that lie" in page
    assert "A simulation: programs, channel and ledger know of no act" in page
    ledger = [json.loads(line) for line in (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()]
    assert all("local_sgd" in json.dumps(entry) for entry in ledger if "query" in entry)


@pytest.mark.slow
def test_the_clean_twin_is_the_run_of_the_study_without_the_section(tmp_path):
    small = STUDY | {"program": STUDY["program"] | {"rounds": 2}, "partition": {"by": "iid", "parties": 6}, "baselines": True}
    lied = run_study(parse(small | {"attack": {"act": "sign-flip"}}), tmp_path / "lied").report
    clean = run_study(parse(small), tmp_path / "clean").report
    twin = next(grid for grid in lied.tables if grid.title == "With and without the attack")
    assert {name: value for name, _, value in twin.rows} == {
        name: value for name, value in clean.metrics if name.startswith("test")
    }
