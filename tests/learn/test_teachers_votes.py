"""One record decides over one teacher: brute force over all records, every learner, and what else leaves a party."""

import logging
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow import Gaussian
from hedgerow.core.party import Party
from hedgerow.core.question import Question, travels
from hedgerow.core.randomness import Stream
from hedgerow.crypto import SecAgg
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import ModelInvalid, SchemaInvalid, SettingsInvalid, UnlawfulChannel
from hedgerow.learn.teachers import LEARNERS, Learner, VotedLabels, learner, pate
from hedgerow.learn.teachers import votes as room
from hedgerow.learn.teachers.pate import pate_votes
from hedgerow.learn.teachers.reads import Reads
from hedgerow.learn.teachers.votes import Teaching, bound_of, dealt, teacher_votes

CLASSES, SHARDS = 3, 4
INPUTS = np.random.default_rng(5).normal(size=(6, 2))
PLAIN = {
    "forest": {"trees": 3},
    "boosting": {"rounds": 2},
    "network": {"steps": 3},
}
CANCER = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"])


def teaching(name="ridge", shards=SHARDS, **settings):
    return Teaching(Reads(), (("", learner(name, **(PLAIN.get(name, {}) | settings))),), (("", shards),), CLASSES)


def records(n=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    return rng.normal(size=(n, 2)) + y[:, None], y


def votes(X, y, w=None, how=None, name="one"):
    party = Party(name, {"model_input": X, "model_target": y}, np.ones(len(y)) if w is None else w)
    return teacher_votes({"inputs": INPUTS}, party, Stream("a name"), teaching=how or teaching())


def neighbours(X, y):
    """Every world with one record less, one record other, or one more."""
    rng = np.random.default_rng(1)
    for i in range(len(y)):
        yield X, y, np.where(np.arange(len(y)) == i, 0.0, 1.0)
        other, label = X.copy(), y.copy()
        other[i], label[i] = rng.normal(size=2) * 9, (y[i] + 1) % CLASSES
        yield other, label, np.ones(len(y))
    for label in range(CLASSES):
        yield np.vstack([X, [[5.0, -5.0]]]), np.append(y, label), np.ones(len(y) + 1)


def longest(how, every=1):
    X, y = records()
    before = votes(X, y, how=how)
    moved = [np.linalg.norm(votes(*world, how=how) - before) for world in list(neighbours(X, y))[::every]]
    return max(moved) / bound_of(len(INPUTS), SHARDS, "record", "gaussian").radius


QUICK = ("ridge", "kernel", "neighbours", "svm", "tree")


@pytest.mark.parametrize("name", QUICK)
def test_no_record_moves_the_votes_by_more_than_one_teacher(name):
    assert longest(teaching(name), every=4 if name in ("svm", "tree") else 1) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in QUICK])
def test_nor_with_learners_that_draw(name):
    assert longest(teaching(name), every=6) <= 1


def test_the_bound_is_reached_by_the_only_record_of_a_shard_and_a_bound_of_one_is_caught():
    how = teaching("neighbours", k=1, shards=60)
    X, y = records()
    before, after = votes(X, y, how=how), votes(X, (y + 1) * (np.arange(12) == 3) % CLASSES + y * (np.arange(12) != 3), how=how)
    assert np.linalg.norm(after - before) == pytest.approx(bound_of(6, 60, "record", None).radius, rel=1e-12)
    too_small = bound_of(6, 60, "record", None).radius / math.sqrt(2)  # a twin: 1 a query, as if a record removed a teacher
    assert np.linalg.norm(after - before) > too_small


def test_records_dealt_in_equal_parts_move_two_teachers(monkeypatch):
    """A twin: shards of equal size. One record less moves another record from one shard to the next."""

    def in_equal_parts(rng, n, shards):
        return rng.permutation(n) % shards

    X, y = records()
    how = teaching("neighbours", k=1)

    def furthest():
        worlds = [np.delete(np.arange(12), i) for i in range(11, 12)]
        return max(np.linalg.norm(votes(X[some], y[some], how=how) - votes(X, y, how=how)) for some in worlds)

    assert furthest() <= bound_of(6, SHARDS, "record", None).radius
    monkeypatch.setattr(room, "dealt", in_equal_parts)
    assert furthest() > bound_of(6, SHARDS, "record", None).radius


@pytest.mark.parametrize(
    ("unit", "law", "radius"), [("record", "laplace", 12), ("party", "laplace", 24), ("party", None, 4 * 6**0.5)]
)
def test_bounds_of_other_norms_and_units(unit, law, radius):
    bound = bound_of(6, SHARDS, unit, law)
    assert bound.radius == pytest.approx(radius)
    found = votes(*records()).ravel()
    if unit == "party":  # all that it brings
        assert np.linalg.norm(found, ord=bound.norm) <= radius * (1 + 1e-12)


def test_an_l2_bound_is_rounded_up():
    for q in range(1, 200):
        assert int(bound_of(q, 1, "record", None).radius ** 2 * 2**40) >= 2 * q * 2**40 - 2**-12


def test_every_teacher_votes_once_for_each_input_whatever_its_records_are():
    for n in (0, 1, 2, 30):
        X, y = records(n)
        found = votes(X, y)
        assert (found.sum(1) == SHARDS).all()
        assert (found >= 0).all()


def test_shards_do_not_depend_on_later_records():
    assert (dealt(np.random.default_rng(2), 50, 7)[:20] == dealt(np.random.default_rng(2), 20, 7)).all()
    assert set(dealt(np.random.default_rng(2), 500, 7)) == set(range(7))


@travels
def fragile(X, y, rng, *, classes):
    """A learner that fails where a record is far away."""
    if np.abs(X).max() > 50:
        raise ValueError("a record that one would not like to see in a message")
    return lambda new: np.tile(np.arange(classes) == y[0], (len(new), 1)).astype(float)


def test_a_learner_that_fails_loses_its_own_vote_alone(caplog):
    how = Teaching(Reads(), (("", Learner(fragile)),), (("", SHARDS),), CLASSES)
    X, y = records(40)
    far = X.copy()
    far[7] = 1e6
    before = votes(X, y, how=how)
    with caplog.at_level(logging.WARNING, "hedgerow"):
        after = votes(far, y, how=how)
    assert "ValueError" in caplog.text
    assert (after.sum(1) == SHARDS).all()
    assert 0 < np.linalg.norm(after - before) <= bound_of(6, SHARDS, "record", None).radius


@travels
def patchy(X, y, rng, *, classes):
    """One that has no score for inputs outside of what it has seen."""
    middle = X.mean(0)

    def predict(new):
        far = (np.abs(new - middle) > 2).any(1)
        return np.where(far[:, None], np.nan, np.tile(np.arange(classes) == y[0], (len(new), 1)))

    return predict


def test_a_score_that_is_no_number_loses_the_votes_on_its_input_alone():
    assert longest(teaching(Learner(patchy), 6), every=2) <= 1
    X, y = np.zeros((3, 2)), np.array([2, 2, 1])
    how, far = teaching(Learner(patchy), 1), np.where(np.arange(6)[:, None] == 4, 99.0, 0.0) * np.ones(2)
    party = Party("one", {"model_input": X, "model_target": y}, np.ones(3))
    found = teacher_votes({"inputs": far}, party, Stream("a name"), teaching=how)
    np.testing.assert_array_equal(found.argmax(1), [2, 2, 2, 2, 4 % CLASSES, 2])


@pytest.mark.parametrize(
    "channel", [{"clip": hr.l2(5.0, "party")}, {"compression": hr.compression.Quantised(4)}], ids=lambda one: next(iter(one))
)
def test_a_channel_that_changes_votes_is_refused_before_it_is_asked(channel):
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0).protect(**channel)
    with pytest.raises(UnlawfulChannel, match="clip or compress a party's votes"):
        pate(fed, teacher="ridge", shards=2, inputs=CANCER.take(range(60, 64)))
    assert len(fed.ledger) == 0


@travels
def scaling(X, y, rng, *, classes):
    """A learner that changes what it is given, where it fits and where it predicts."""
    top = np.abs(X).max(0)
    X /= top
    means = np.stack([X[y == k].mean(0) if (y == k).any() else np.full(X.shape[1], 9.0) for k in range(classes)])
    y[:] = 0

    def predict(new):
        new /= top
        return -((new[:, None] - means) ** 2).sum(-1)

    return predict


@travels
def clipping(X, y, rng, *, classes):
    """One that does not extrapolate, and clips the inputs in place."""
    low, high = X.min(0), X.max(0)
    weights = np.linalg.lstsq(np.c_[X, np.ones(len(X))], np.eye(classes)[y], rcond=None)[0]
    return lambda new: np.c_[np.clip(new, low, high, out=new), np.ones(len(new))] @ weights


@pytest.mark.parametrize("fit", [fragile, scaling, clipping])
def test_learners_that_behave_badly_pass_nothing_on_to_the_next_teacher(fit):
    assert longest(teaching(Learner(fit), 6), every=2) <= 1


def test_what_learners_work_on_in_place_is_their_own():
    X, y = records()
    given = X.copy(), y.copy(), INPUTS.copy()
    learner(Learner(scaling)).votes(*given, None, CLASSES)
    for was, now in zip((X, y, INPUTS), given, strict=True):
        np.testing.assert_array_equal(was, now)


@travels
def lost(X, y, rng, *, classes):
    return lambda new: np.full((len(new), classes), np.nan)


def unmarked(X, y, rng, *, classes):
    return lambda new: np.zeros((len(new), classes))


def test_learners_are_tried_before_anybody_is_asked():
    with pytest.raises(SettingsInvalid, match="no learner is called 'rigde'"):
        learner("rigde")
    with pytest.raises(SettingsInvalid, match="unexpected keyword"):
        learner("ridge", lambda_=1)
    with pytest.raises(SettingsInvalid, match="penalty=-1"):
        learner({"name": "ridge", "penalty": -1})
    with pytest.raises(ModelInvalid, match="not marked"):
        Learner(unmarked)
    with pytest.raises(ModelInvalid, match="not marked"):
        Learner(teacher_votes)
    with pytest.raises(ModelInvalid, match="predicts"):
        learner(Learner(lost))
    with pytest.raises(ModelInvalid, match="cannot be imported"):
        learner("no_such_module:model")


def test_a_learner_of_ones_own_is_named_by_its_module():
    assert learner(f"{__name__}:fragile").fit is fragile
    assert str(learner("ridge", penalty=0.5)) == "ridge(penalty=0.5)"


def test_hospitals_differ():
    """Each party's teachers are of its own kind, and their number is its own."""
    fed = hr.simulate(CANCER.take(range(150)), hr.data.iid(parties=3), seed=0)
    names = fed.names
    teacher = {names[0]: "tree", names[1]: {"name": "neighbours", "k": 3}, "others": "logistic"}
    labels = pate(fed, teacher=teacher, shards={names[0]: 3, "others": 2}, inputs=CANCER.take(range(150, 190)))
    assert isinstance(labels, VotedLabels)
    assert labels.teachers == 7
    assert (labels.votes.sum(1) == 7).all()
    truth = CANCER["malignant"][150:190].astype(int)
    assert (labels.labels == truth).mean() > 0.8
    with pytest.raises(SettingsInvalid, match="names"):
        pate(fed, teacher={"nobody": "tree"}, inputs=CANCER.take(range(5)))
    with pytest.raises(SettingsInvalid, match="shards of a party"):
        pate(fed, shards=0, inputs=CANCER.take(range(5)))


@pytest.mark.filterwarnings("ignore:noise of")
def test_a_budget_is_spent_exactly_and_sigma_is_that_of_one_release():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0)
    labels = pate(
        fed, teacher="ridge", shards=2, inputs=np.random.default_rng(0).uniform(size=(1000, 2)), epsilon=1.0, delta=1e-5
    )
    assert fed.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(1.0, abs=1e-6)
    assert fed.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    assert labels.sigma == pytest.approx(math.sqrt(2000) / 0.268051, rel=1e-5)
    assert len(fed.ledger) == 1


def test_votes_behind_secure_aggregation_with_noise_in_shares():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0).protect(aggregation=SecAgg(threshold=2))
    given = {"teacher": "ridge", "shards": 2, "inputs": CANCER.take(range(60, 70))}
    hidden = pate(fed, **given, epsilon=1e6, delta=1e-5, noise_at="shares", least=3)
    again = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0)
    assert np.abs(hidden.votes - pate(again, **given).votes).max() < 0.1
    assert hidden.sigma > 0


@pytest.mark.filterwarnings("ignore:noise of")
def test_geometric_noise_on_whole_votes():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0).protect(mechanism=hr.privacy.Geometric(1.0))
    labels = pate(fed, teacher="ridge", shards=2, inputs=CANCER.take(range(60, 64)))
    assert (labels.votes == np.rint(labels.votes)).all()
    assert fed.ledger.epsilon(delta=0.0, unit="record") == pytest.approx(1.0)


def test_nobody_takes_the_bound_on_trust(caplog):
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0).protect(mechanism=Gaussian(1.0))
    pate(fed, teacher="ridge", shards=2, inputs=CANCER.take(range(60, 64)))
    assert "on trust" not in caplog.text
    assert Question("sum", teacher_votes).by_shard


@pytest.mark.filterwarnings("ignore:noise of")
def test_parties_as_a_unit_pay_for_all_their_teachers():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0)
    labels = pate(fed, teacher="ridge", shards=2, inputs=CANCER.take(range(60, 64)), epsilon=1.0, delta=1e-5, unit="party")
    assert labels.sigma == pytest.approx(2 * math.sqrt(4) / 0.268051, rel=1e-2)
    assert fed.ledger.epsilon(delta=1e-5, unit="party") == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(SettingsInvalid, match="unit='party'"):
        pate(fed, inputs=CANCER.take(range(4)), epsilon=1.0, delta=1e-5, unit="party", noise_at="party")


def test_teachers_of_a_cohort_are_those_that_are_expected_of_it():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=4), seed=0)
    given = {"teacher": "ridge", "shards": 3, "inputs": CANCER.take(range(60, 70))}
    assert pate(fed, **given).teachers == 12
    half = pate(fed.sample(size=2), **given)
    assert (half.votes.sum(1) == half.teachers).all()
    assert pate(fed.sample(rate=0.5), **given).teachers == half.teachers == 6
    assert pate(fed.sample(records=0.5), **given).teachers == 12


def test_what_cannot_be_voted_on_is_refused():
    table = Table(
        schema=Schema((Column("x", "number"), Column("y", "number", role="target"))),
        columns={"x": np.arange(4.0), "y": np.arange(4.0)},
    )
    with pytest.raises(SchemaInvalid, match="target with classes"):
        pate(hr.simulate(table, hr.data.iid(parties=2), seed=0), inputs=table)
    schema = Schema((Column("x", "number"), Column("y", "category", levels=("only",), role="target")))
    one = Table(schema=schema, columns={"x": np.arange(4.0), "y": np.zeros(4, np.int16)})
    with pytest.raises(SchemaInvalid, match="'y' has 1 level"):
        pate(hr.simulate(one, hr.data.iid(parties=2), seed=0), inputs=one)
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0)
    with pytest.raises(SettingsInvalid, match="a pool of one public input"):
        pate(fed, inputs=CANCER.take(range(1)))
    with pytest.raises(SettingsInvalid, match="none to measure a student on"):
        list(pate_votes(fed, test=CANCER.take(range(20)), asked=5, public=0.99))
    with pytest.raises(SettingsInvalid, match="inputs of shape"):
        pate(fed, inputs=np.zeros((3, 5)))
    with pytest.raises(SettingsInvalid, match="asked=9 of 5"):
        pate(fed, inputs=CANCER.take(range(5)), asked=9)
    with pytest.raises(SettingsInvalid, match="scatter=True"):
        pate(fed, inputs=CANCER.take(range(5)), scatter=True)
    assert len(fed.ledger) == 0
