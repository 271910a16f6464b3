"""The study of Geyer's table: repeated shards, shared records, pooled features, cells that plan their noise and keep to it."""

import numpy as np
import pytest
from comparing import study

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.core.party import Parties
from hedgerow.data import Column, Schema, Table, shards
from hedgerow.engines.shared import SharedParties
from hedgerow.errors import PartitionInvalid, SettingsInvalid
from hedgerow.learn.private import slopes, step_of
from hedgerow.study import load, run_study

SHARDS = {"by": "shards", "parties": 20, "shards_per_party": 2, "copies": 4}


def images(n=12):
    """Records of pictures with a bright bar."""
    image = np.zeros((n, 28, 28), np.int16)
    for i in range(n):
        image[i, 4 + i : 8 + i, 5:20] = 200
    schema = Schema((Column("image", "integer", low=0, high=255, shape=(28, 28)), Column("odd", "binary", role="target")))
    return Table(schema.admit({"image": image, "odd": np.arange(n) % 2}), schema)


# ---- records that several parties hold -------------------------------------------------------------------------------
def test_each_shard_is_given_out_as_often_as_asked():
    table = hr.data.load("digits")
    found = shards(20, 2, copies=4)(table, 0)
    held = np.bincount(np.concatenate(found.indices), minlength=len(table))
    assert set(held) == {4}
    assert len(found) == 20
    assert found.heat.counts.sum() == 4 * len(table)
    assert "cut into 10 shards, each given out 4 times" in found.sentence


def test_without_copies_shards_are_what_they_were():
    table = hr.data.load("digits")
    one, other = shards(20, 2)(table, 3), shards(20, 2, copies=1)(table, 3)
    assert all(np.array_equal(a, b) for a, b in zip(one.indices, other.indices, strict=True))
    assert len(np.unique(np.concatenate(one.indices))) == len(table)


def test_copies_that_do_not_divide_the_shards_are_refused():
    with pytest.raises(PartitionInvalid, match="copies=3"):
        shards(10, 2, copies=3)


@pytest.fixture
def shared():
    """Three parties over five records, and the same with copies."""
    columns = {"x": np.arange(10.0).reshape(5, 2), "y": np.arange(5)}
    rows, sizes, w = np.array([0, 1, 1, 2, 4, 4]), [2, 1, 3], np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    ids = ("a", "b", "c")
    copied = Parties(ids, {name: column[rows] for name, column in columns.items()}, sizes, w[rows])
    return SharedParties(ids, columns, sizes, rows, w), copied


def same(one, other):
    assert set(one.columns) == set(other.columns)
    for name in one.columns:
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(one.w, other.w)


def test_parties_that_share_records_look_like_parties_with_copies(shared):
    ours, copied = shared
    for i in range(3):
        same(ours[i], copied[i])
    for which in (np.array([0, 1, 2]), np.array([0, 2]), np.array([1])):
        same(ours.stack(which), copied.stack(which))
        same(ours.pool(which), copied.pool(which))


def doubled(columns, *, seen):
    seen.append(len(columns["x"]))
    return {"z": 2 * columns["x"]}


def test_a_preparation_sees_each_shared_record_once(shared):
    ours, copied = shared
    seen = []

    def prepare(party):
        return doubled(party.columns, seen=seen)

    same(ours.prepared((prepare,), together=True)[2], copied.prepared((prepare,), together=True)[2])
    assert seen == [5, 6]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess(threads=1)], ids=["loop", "in-process"])
def test_training_on_shared_records_is_training_on_copies(engine):
    table, partition = hr.data.load("digits"), shards(20, 2, copies=4)
    split = partition(table, 0)
    apart = {name: table.take(rows) for name, rows in zip(split.names, split.indices, strict=True)}
    settings = {"rounds": 2, "epochs": 1, "batch_size": None, "learning_rate": 0.5}
    one = hr.last(hr.learn.fedavg(hr.simulate(table, split, seed=0, engine=engine), hr.learn.linear(64, 10), **settings))
    other = hr.last(hr.learn.fedavg(hr.simulate(apart, seed=0), hr.learn.linear(64, 10), **settings))
    for name, value in one.weights.items():
        np.testing.assert_allclose(value, other.weights[name], atol=1e-5)


# ---- features --------------------------------------------------------------------------------------------------------
def test_pooled_features_are_short_of_length_one_and_a_matter_of_one_record():
    table = images()
    step = step_of(table.schema, "pooled scattering")
    whole = step.of(table)[step.made.name]
    assert whole.shape == (12, 1296)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(step.of(table.take(slice(3, 4)))[step.made.name], whole[3:4], atol=1e-5)


def test_a_blank_image_has_finite_features():
    table = images(1)
    blank = Table({**table.columns, "image": np.zeros_like(table["image"])}, table.schema)
    step = step_of(table.schema, "pooled scattering")
    assert np.isfinite(step.of(blank)[step.made.name]).all()


def test_columns_need_no_step_and_other_inputs_are_refused():
    assert step_of(images(1).schema, "columns") is None
    with pytest.raises(SettingsInvalid, match="inputs is 'pixels'"):
        step_of(images(1).schema, "pixels")


def test_the_small_model_has_as_many_numbers_as_the_study_says():
    assert sum(p.numel() for p in slopes(1296, 10).parameters()) == 12_960


# ---- the study -------------------------------------------------------------------------------------------------------
def test_the_table_names_what_differs_and_asks_for_his_budget():
    table = load("geyer-table-1")
    found = {(cell.row, cell.column): cell.study for cell in cells(table)}
    assert len(found) == 9
    for (row, column), one in found.items():
        K, delta = {"100": (100, 1e-3), "1000": (1000, 1e-5), "10000": (10_000, 1e-6)}[row.split()[0]]
        assert one.partition.model_extra["parties"] == K
        assert K * 2 // one.partition.model_extra.get("copies", 1) == 200  # shards of 300 images, two to a party
        assert (one.budget.delta, one.budget.unit) == (delta, "party")
        assert (one.protection.mechanism is None) == column.startswith("not private") == (one.budget.epsilon > 8)
    assert "another one" in table.comparison.differs


@pytest.mark.slow
def test_a_private_run_finds_its_noise_keeps_to_its_budget_and_draws_delta_by_round(tmp_path):
    budget = {"epsilon": 1.0, "delta": 1e-2, "unit": "party"}
    made = study(
        partition=SHARDS,
        program={"name": "dp_fedavg", "rounds": 3, "rate": 0.5, "delta_at": 1.0, "learning_rate": 0.5},
        protection={"mechanism": {"law": "gaussian"}},
        budget=budget,
    )
    result = run_study(made, tmp_path / "run")
    assert result.run.state.round == 3
    assert "of a budget of 1 at" in result.report.privacy
    drawn = {curve.title for curve in result.report.curves}
    assert {"Test accuracy", "Delta at epsilon 1", "Clip"} <= drawn
    last = dict(result.report.metrics)
    assert 0.9e-2 < last["delta at epsilon 1"] <= 1e-2


@pytest.mark.slow
def test_as_printed_the_report_claims_no_epsilon(tmp_path):
    program = {"name": "geyer", "rounds": 2, "parties": 10, "printed": True, "learning_rate": 0.5}
    result = run_study(study(partition=SHARDS, program=program, baselines=False), tmp_path / "run")
    assert not result.report.privacy_ok
    assert result.report.privacy.startswith("No epsilon is claimed")
