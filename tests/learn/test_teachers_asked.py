"""What PATE refuses, warns of or leaves out before anybody is asked: names, inputs, missing values, noise."""

import logging

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.teachers import learner, pate
from hedgerow.learn.teachers.pate import pate_votes, watch
from hedgerow.learn.teachers.pool import held_out

CANCER = hr.data.load("breast_cancer").select(["malignant", "mean_radius", "mean_texture"])
STUDENT = {
    "student": "ridge",
    "graph": 0,
    "keep": 0.98,
    "rounds_alone": 0,
    "straighten": False,
    "scatter": False,
    "components": 0,
}


def with_missing(n=40, k=1):
    """A table of which the first records lack a value."""
    schema = Schema((Column("x", "number", low=0, high=1, optional=True), Column("y", "binary", role="target")))
    y = np.arange(n) % 2
    x = np.where(np.arange(n) < k, np.nan, 0.2 + 0.6 * y + 0.001 * np.arange(n))
    return Table(schema=schema, columns={"x": x, "y": y.astype(float)})


def test_an_input_without_a_value_is_refused_before_it_is_paid_for():
    fed = hr.simulate(with_missing(), hr.data.iid(parties=2), seed=0)
    budget = {"teacher": "ridge", "shards": 3, "epsilon": 3.0, "delta": 1e-5}
    with pytest.raises(SettingsInvalid, match="1 of 40 inputs lack a value"):
        pate(fed, inputs=with_missing(), **budget)
    with pytest.raises(SettingsInvalid, match="2 of 4 inputs"):
        pate(fed, inputs=np.array([[0.0], [np.inf], [np.nan], [1.0]]), **budget)
    assert len(fed.ledger) == 0


def test_records_that_lack_a_value_teach_nobody(caplog):
    """Whatever else they hold, votes are the same, and every teacher has a model that cannot read a missing value."""
    inputs, found = np.linspace(0, 1, 8)[:, None], []
    for label in (0.0, 1.0):
        table = with_missing(60, 9)
        columns = dict(table.columns)
        columns["y"] = np.where(np.arange(60) < 9, label, columns["y"])
        fed = hr.simulate(Table(schema=table.schema, columns=columns), hr.data.iid(parties=2), seed=0)
        found.append(pate(fed, inputs=inputs, teacher="logistic", shards=2).votes)
    np.testing.assert_array_equal(*found)
    assert not [one for one in caplog.records if "has no model" in one.getMessage()]


def test_incomplete_records_of_the_servers_table_are_in_neither_part(caplog):
    fed = hr.simulate(with_missing(), hr.data.iid(parties=2), seed=0)
    given = {"teacher": "ridge", "shards": 3, "asked": 10, "public": 0.5}
    test = with_missing(50, 10)
    with caplog.at_level(logging.WARNING, "hedgerow"):
        (state,) = pate_votes(fed, test=test, **given)
    assert "10 of the server's 50 records" in caplog.text
    np.testing.assert_array_equal(state.pool[:, 0], test["x"][10:30].astype(np.float32))
    assert held_out(test, given, test.schema)["x"][0] == test["x"][30]
    seen = watch(given | STUDENT, state, test.schema, test)
    assert seen["argmax labels right"] == seen["test accuracy"] == 1.0


def test_made_up_inputs_lack_no_value():
    fed = hr.simulate(with_missing(), hr.data.iid(parties=2), seed=0)
    (state,) = pate_votes(fed, teacher="ridge", shards=2, asked=60)
    assert np.isfinite(state.pool).all()


class Model:
    """As those of other libraries."""


@pytest.mark.parametrize("given", [with_missing, Model(), Model])
def test_a_function_or_a_model_in_the_place_of_a_name_is_refused(given):
    with pytest.raises(SettingsInvalid, match="a learner is named") as found:
        learner(given)
    assert "package.module:function" in str(found.value)
    assert "hedgerow.travels" in str(found.value)
    with pytest.raises(SettingsInvalid, match="a learner is named"):
        pate(hr.simulate(CANCER.take(range(20)), hr.data.iid(parties=2), seed=0), inputs=CANCER, teacher=given)


@pytest.mark.filterwarnings("ignore:noise of")
def test_all_parties_may_be_named_without_others():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=2), seed=0)
    one, other = fed.names
    for settings in (
        {"shards": {one: 3, other: 2}},
        {"shards": {one: 3, other: 2}, "teacher": {one: "ridge", other: "tree"}, "epsilon": 3.0, "delta": 1e-5},
    ):
        assert pate(fed, inputs=CANCER.take(range(60, 70)), **({"teacher": "ridge"} | settings)).teachers == 5


def test_a_party_that_is_not_named_is_told_before_anybody_is_asked():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=3), seed=0)
    one, other, third = fed.names
    inputs = CANCER.take(range(60, 70))
    with pytest.raises(SettingsInvalid, match=f"shards does not name '{other}', '{third}'"):
        pate(fed, inputs=inputs, shards={one: 3})
    with pytest.raises(SettingsInvalid, match="teacher names 'nord', who is not") as found:
        pate(fed, inputs=inputs, teacher={"nord": "tree", "others": "ridge"})
    assert "''" not in str(found.value)
    assert len(fed.ledger) == 0


def test_noise_that_hides_a_vote_on_which_all_agree_is_told_before_it_is_paid_for():
    fed = hr.simulate(CANCER.take(range(60)), hr.data.iid(parties=2), seed=0)
    asks = {"teacher": "ridge", "inputs": CANCER.take(range(60, 70)), "epsilon": 3.0, "delta": 1e-5}
    with pytest.raises(hr.errors.HedgerowWarning, match=r"votes of 4 teachers.* probability 0\.6.* right with 0\.50"):
        pate(fed, shards=2, **asks)
    assert len(fed.ledger) == 0
    assert pate(fed, shards=10, **asks).sure > 0.95
