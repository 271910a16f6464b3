"""What is made of noisy votes: labels by a graph, students, and what they read."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.teachers import VotedLabels, pate
from hedgerow.learn.teachers.reads import Reads
from hedgerow.learn.teachers.spread import neighbour_graph, spread_votes

PLAIN = Schema((Column("a", "number"), Column("b", "number"), Column("y", "category", levels=("x", "z", "w"), role="target")))


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    rows = rng.normal(size=(n, 2)) * 0.5 + 3 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return Table(schema=PLAIN, columns={"a": rows[:, 0], "b": rows[:, 1], "y": y.astype(np.int16)})


def labels(n=240, asked=80, noise=1.0, teachers=50, seed=0):
    """Votes of teachers who are right, behind noise of so many times their number."""
    table, rng = blobs(n), np.random.default_rng(seed)
    which = np.sort(rng.permutation(n)[:asked])
    votes = teachers * np.eye(3)[table["y"][which]] + noise * teachers * rng.normal(size=(asked, 3))
    pool = np.stack([table["a"], table["b"]], 1).astype(np.float32)
    return table, VotedLabels(votes, which, pool, noise * teachers, teachers, Reads(), PLAIN)


def test_the_graph_is_symmetric_and_its_spreading_never_grows():
    S = neighbour_graph(np.random.default_rng(0).normal(size=(60, 3)), 4)
    assert abs(S - S.T).max() < 1e-6
    assert np.linalg.eigvalsh(S.toarray()).max() == pytest.approx(1.0, abs=1e-6)
    assert (S.toarray().diagonal() == 0).all()
    assert ((S > 0).sum(1) >= 4).all()


def test_spreading_is_the_solution_of_its_equation():
    S = neighbour_graph(np.random.default_rng(1).normal(size=(30, 2)), 4)
    votes, asked = np.random.default_rng(2).normal(size=(10, 3)), np.arange(0, 30, 3)
    start = np.zeros((30, 3))
    start[asked] = votes - 7 / 3
    exact = np.linalg.solve(np.eye(30) - 0.9 * S.toarray(), 0.1 * start)
    np.testing.assert_allclose(spread_votes(S, votes, asked, 7, keep=0.9, steps=300), exact, atol=1e-9)
    assert scipy.sparse.issparse(S)


def test_whole_votes_teach_what_their_argmax_has_lost():
    table, voted = labels()
    argmax = (voted.labels == table["y"][voted.asked]).mean()
    spread = (voted.spread(8).argmax(1) == table["y"]).mean()
    assert argmax < 0.75
    assert spread > 0.9
    assert voted.student(8).accuracy(blobs(90, seed=4)) > 0.9


def test_without_noise_students_are_right_with_a_graph_and_without():
    table, voted = labels(noise=0.0)
    for settings in ({"graph": 8}, {"graph": 0}, {"graph": 0, "rounds": 1, "model": "ridge"}):
        student = voted.student(**settings)
        assert (student.pool == table["y"]).mean() > 0.97
        assert student.predict(table).shape == (240,)
        assert student.scores(voted.pool).shape == (240, 3)
    assert voted.sure == 1.0


def test_how_sure_a_largest_number_is():
    _, voted = labels(noise=0.5, asked=40)
    rng = np.random.default_rng(0)
    drawn = 50 * np.array([1, 0, 0]) + voted.sigma * rng.normal(size=(200_000, 3))
    assert voted.sure == pytest.approx((drawn.argmax(1) == 0).mean(), abs=0.006)  # five standard deviations
    assert "whatever the votes are" not in repr(voted)


def test_data_frames_are_read_by_the_schema_of_the_federation():
    table, voted = labels()
    student, frame = voted.student(graph=0, model="ridge"), table.to_pandas()
    np.testing.assert_array_equal(student.predict(frame), student.predict(table))
    np.testing.assert_array_equal(student.predict(frame.drop(columns="y")[["b", "a"]]), student.predict(table))
    assert student.accuracy(frame) == student.accuracy(table)
    feds = [hr.simulate(table, hr.data.iid(parties=2), seed=0) for _ in range(2)]
    pools = table, frame.drop(columns="y")
    one, other = (pate(fed, inputs=pool, teacher="ridge", shards=2).votes for fed, pool in zip(feds, pools, strict=True))
    np.testing.assert_array_equal(one, other)


def test_what_is_shown_of_labels_and_students_is_one_short_line():
    _, voted = labels()
    for one in (voted, voted.student(graph=0, model="ridge")):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 250
    assert repr(voted.student(graph=0, model="ridge")) == "Student(of 'y', taught by 240 public inputs)"


def test_what_is_done_to_features_of_the_pool_is_done_to_a_copy():
    _, voted = labels()
    before = voted.features["inputs"].copy()
    voted.features["inputs"][:] = 7.0
    np.testing.assert_array_equal(voted.features["inputs"], before)


def test_nothing_is_sure_of_votes_that_are_neither_noisy_nor_whole():
    _, voted = labels(noise=0.0)
    assert np.isnan(replace(voted, votes=voted.votes + 0.25).sure)


def test_students_settings_are_refused():
    _, voted = labels()
    for settings in ({"graph": -1}, {"keep": 1.0}, {"model": "nothing"}):
        with pytest.raises(SettingsInvalid):
            voted.student(**settings)


def test_a_table_without_its_target_is_enough():
    table = blobs(60)
    fed = hr.simulate(blobs(120, seed=3), hr.data.iid(parties=3), seed=0)
    bare = Table(schema=Schema(tuple(c for c in PLAIN if c.name != "y")), columns={n: table[n] for n in ("a", "b")})
    found = pate(fed, teacher="ridge", shards=3, inputs=bare)
    assert (found.labels == table["y"]).mean() > 0.9
    assert (found.student(5).predict(bare) == table["y"]).mean() > 0.9


# ---- what they read -----------------------------------------------------------------------------------------------------
IMAGES = Schema((Column("image", "number", shape=(8, 8), low=0, high=16), Column("y", "binary", role="target")))


def test_images_are_read_alike_by_party_and_server():
    rng = np.random.default_rng(0)
    pool, others = rng.uniform(0, 16, size=(20, 8, 8)), rng.uniform(0, 16, size=(5, 8, 8))
    reads = Reads.of(IMAGES, straighten=True, scatter=True, components=6)
    public = reads.public(pool)
    assert public["inputs"].shape == (20, 6)
    np.testing.assert_allclose(public["basis"].T @ public["basis"], np.eye(6), atol=1e-4)
    np.testing.assert_allclose(reads.features(pool, public), public["inputs"], rtol=1e-4, atol=1e-3)
    assert reads.features(others, public).shape == (5, 6)
    assert reads.features(others[:0], public).shape == (0, 6)
    low = Reads.of(IMAGES).plain(pool)
    np.testing.assert_allclose(low, pool.reshape(20, -1) / 16, rtol=1e-6)


def test_components_are_those_of_the_public_inputs():
    rows = np.random.default_rng(0).normal(size=(50, 4)) * [9, 3, 1, 0.1]
    public = Reads(components=2).public(rows)
    _, _, vectors = np.linalg.svd(rows - rows.mean(0))
    np.testing.assert_allclose(np.abs(public["basis"]), np.abs(vectors[:2].T), atol=1e-4)


@pytest.mark.parametrize(
    "wrong", [{"components": 3}, {"components": -1}, {"straighten": True}, {"scatter": True}], ids=lambda one: next(iter(one))
)
def test_what_cannot_be_read_is_refused(wrong):
    with pytest.raises(SettingsInvalid):
        Reads.of(PLAIN, **wrong)


# ---- handwriting --------------------------------------------------------------------------------------------------------
DATA = Path(os.environ.get("HEDGEROW_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "mnist").is_dir(), reason="needs the data folder")
def test_teachers_of_straightened_digits_teach_a_student_behind_noise(monkeypatch):
    monkeypatch.setenv("HEDGEROW_DATA", str(DATA))
    digits = hr.data.load("mnist")
    fed = hr.simulate(digits.take(range(2000)), hr.data.iid(parties=5), seed=0)
    pool, held_out = digits.test.take(range(800)), digits.test.take(range(9000, 9400))
    seen = {"straighten": True, "components": 60}
    voted = pate(fed, inputs=pool, shards=6, asked=200, epsilon=8.0, delta=1e-5, teacher="kernel", **seen)
    truth = pool[str(digits.schema.target)].astype(int)
    argmax = (voted.labels == truth[voted.asked]).mean()
    student = voted.student(6, model="ridge")
    assert argmax < 0.7 < 0.8 < (student.pool == truth).mean()
    assert student.accuracy(held_out) > 0.8
