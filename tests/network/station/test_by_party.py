"""Settings by party do not single one station out of a total that hides rows."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from test_difference_attack import ACTIVE, FOUR, STRICT

from hedgerow.core.bound import Bound
from hedgerow.core.release import Release
from hedgerow.errors import ProtectionRequired
from hedgerow.network.station.by_party import admit_by_party, numbers_by_party, told_by_party
from hedgerow.privacy import Budget, Gaussian
from station_house import House

OWN = """
name = "s"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "local_dpsgd"
model = "logistic"
rounds = 2
noise_multiplier = {noise}
sampling_rate = 1.0
batch_size = {batch}
steps = 1
clip = 10.0
learning_rate = 1.0
"""
SECAGG = ACTIVE + "largest = 1000.0\n"
COLUMNS = ("age", "dose", "sick")


def boarded(path, guard=STRICT, **settings):
    guard = dict.fromkeys(FOUR, guard | {"disclosure": 1 / 3})
    house = House(path, guard, approval="automatic", programs=[{"name": "local_dpsgd"}])
    found = house.board(OWN.format(**settings) + SECAGG, COLUMNS)["alpha"]
    return found["status"], house.stations["alpha"].submissions.all()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": 1.0, "batch": "[60.0, 1e15, 1e15, 1e15]"}, "little else than one station's row"),
        ({"noise": 1e-4, "batch": "[60.0, 50.0, 60.0, 60.0]"}, "makes its noise itself"),
        ({"noise": 1e-4, "batch": "60.0"}, "makes its noise itself"),
        ({"noise": 0.5, "batch": "60.0\nstop_at = [100.0, 5.0, 5.0, 5.0]"}, "may be one station's row"),
    ],
)
def test_a_station_that_hides_rows_is_not_singled_out_by_settings(tmp_path, settings, words):
    status, found = boarded(tmp_path, **settings)
    assert status != "approved"
    assert words in found.because


@pytest.mark.slow
def test_settings_by_party_are_told_to_the_person_who_approves(tmp_path):
    status, found = boarded(tmp_path, noise=1.0, batch="[60.0, 50.0, 60.0, 70.0]")
    assert status == "approved"
    assert any("batch_sizes: alpha 60, beta 50, gamma 60, delta 70" in row.get("by party", "") for row in found.rows)


@dataclass(frozen=True)
class Solver:
    epochs: dict


def outbox_of(release=None, **settings):
    release = Release(clip=Bound(2, 1.0, "party")) if release is None else release
    return SimpleNamespace(question=SimpleNamespace(verb="sum", name="f", settings=settings), release=release)


@pytest.mark.parametrize(
    ("numbers", "lawful"),
    [
        ((1, 2, 100), True),
        ((5, 5, 5), True),
        ((0, 0, 0), True),
        ((1, 1, 101), False),
        ((0, 1, 1), False),
        ((-1, 1, 1), False),
        ((1, float("inf"), 1), False),
        ((1, float("nan"), 1), False),
        ((float("nan"),) * 3, False),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_numbers_of_parties_are_at_most_a_hundred_times_apart(numbers, lawful, nested):
    mapping = dict(zip(FOUR, numbers, strict=False))
    outbox = outbox_of(solver=Solver(mapping)) if nested else outbox_of(epochs=mapping)
    admit_by_party(SimpleNamespace(hidden_rows=False), outbox, FOUR)
    if lawful:
        admit_by_party(SimpleNamespace(hidden_rows=True), outbox, FOUR)
        return
    with pytest.raises(ProtectionRequired, match="epochs"):
        admit_by_party(SimpleNamespace(hidden_rows=True), outbox, FOUR)


@pytest.mark.parametrize(
    ("release", "lawful"),
    [
        (Release(), False),
        (Release(bounds=Bound(2, 1.0, "record"), mechanism=Gaussian(1.0, at="shares", least=3)), False),
        (Release(bounds=Bound(2, 1.0, "party"), mechanism=Gaussian(1e-3, at="shares", least=3)), False),
        (Release(bounds=Bound(2, 1.0, "party"), mechanism=Gaussian(1.0, at="shares", least=3)), True),
        (Release(clip=Bound(2, 1.0, "party")), True),
    ],
    ids=["bare", "per record", "faint", "noise", "clip"],
)
def test_numbers_of_parties_differ_only_where_something_limits_what_each_adds(release, lawful):
    """Seven passes to one, with a learning rate that is too large, are a row a million times as long."""
    guard = SimpleNamespace(hidden_rows=True)
    admit_by_party(guard, outbox_of(release, solver=Solver({"alpha": 5, "beta": 5})), FOUR[:2])
    outbox = outbox_of(release, solver=Solver({"alpha": 7, "beta": 1}))
    if lawful:
        admit_by_party(guard, outbox, FOUR[:2])
        return
    with pytest.raises(ProtectionRequired, match="nothing limits"):
        admit_by_party(guard, outbox, FOUR[:2])


def test_budgets_of_parties_end_together():
    guard = SimpleNamespace(hidden_rows=True)
    one, more = Budget(5.0, 1e-5, "record"), Budget(100.0, 1e-5, "record")
    admit_by_party(guard, outbox_of(budgets=dict.fromkeys(FOUR, one)), FOUR)
    for budgets in ({**dict.fromkeys(FOUR, one), "alpha": more}, dict.fromkeys(FOUR[1:], one)):
        with pytest.raises(ProtectionRequired, match="one station's row"):
            admit_by_party(guard, outbox_of(budgets=budgets), FOUR)


def test_a_budget_by_party_counts_by_its_epsilon_and_many_parties_by_the_ends():
    budgets = {"alpha": Budget(1.0, 1e-5, "record"), "beta": Budget(500.0, 1e-5, "record")}
    assert dict(numbers_by_party({"budgets": budgets}, FOUR)) == {"budgets": {"alpha": 1.0, "beta": 500.0}}
    with pytest.raises(ProtectionRequired, match="budgets"):
        admit_by_party(SimpleNamespace(hidden_rows=True), outbox_of(budgets=budgets), ("alpha",))
    names = [f"p{i}" for i in range(20)]
    assert told_by_party(outbox_of(epochs={name: i + 1 for i, name in enumerate(names)}), names) == "epochs: 1 to 20"
    assert told_by_party(outbox_of(epochs=dict.fromkeys(names, 3), ranges={"age": 3}), names) == ""
