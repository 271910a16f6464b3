"""Weights keep how their module read its features, and every evaluation reads records as the training did."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import HedgerowWarning, SettingsInvalid
from hedgerow.learn import evaluate, evaluate_on, evaluate_personal, evaluate_subnetworks, fedavg, linear

SCHEMA = Schema(
    (
        Column("age", "integer", low=18, high=110),
        Column("pressure", "number", low=50, high=250),
        Column("sex", "category", levels=("f", "m")),
        Column("ill", "binary", role="target"),
    )
)


def records(schema=SCHEMA, n=400):
    rng = np.random.default_rng(0)
    age, pressure, sex = rng.integers(20, 90, n), rng.uniform(80, 200, n), rng.choice(["f", "m"], n)
    ill = (rng.uniform(size=n) < 1 / (1 + np.exp(-0.1 * (age - 55) - 0.05 * (pressure - 140) - (sex == "m")))).astype(float)
    return Table(schema.admit({"age": age, "pressure": pressure, "sex": sex, "ill": ill}), schema)


def federation(schema=SCHEMA):
    return hr.simulate(records(schema), hr.data.iid(parties=3), seed=1)


def elsewhere(**declared):
    return Schema(tuple(replace(column, **declared.get(column.name, {})) for column in SCHEMA))


OTHERS = {
    "other ranges": elsewhere(age={"low": 0, "high": 120}, pressure={"low": 80, "high": 200}),
    "no ranges": elsewhere(age={"low": None, "high": None}, pressure={"low": None, "high": None}),
    "another order": Schema(tuple(SCHEMA[name] for name in ("sex", "pressure", "age", "ill"))),
}


@pytest.fixture(scope="module")
def trained():
    *_, state = fedavg(federation(), linear(4, 1), rounds=5, learning_rate=1.0, epochs=3)
    return state


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_others_declare_does_not_change_a_score(trained, other):
    net, wanted = linear(4, 1), evaluate_on(records(), linear(4, 1), trained)
    assert wanted["accuracy"] > 0.75
    assert evaluate_on(records(other), net, trained) == pytest.approx(wanted, rel=1e-5)
    assert evaluate_on(records(other), net, trained.weights) == pytest.approx(wanted, rel=1e-5)
    for judge in (evaluate, evaluate_personal, evaluate_subnetworks):
        found = judge(federation(other), net, trained)
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-5)


def test_a_single_array_column_is_scaled_as_in_the_training():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 17, (200, 4))
    ill = (x[:, 0] > 8).astype(float)
    ranges = [{"low": 0, "high": 16}, {"low": 0, "high": 255}, {}]
    schemas = [Schema((Column("x", "number", shape=(4,), **one), Column("ill", "binary", role="target"))) for one in ranges]
    tables = [Table(schema.admit({"x": x.astype(np.float32), "ill": ill}), schema) for schema in schemas]
    *_, state = fedavg(hr.simulate(tables[0], hr.data.iid(parties=2), seed=1), linear(4, 1), rounds=3, learning_rate=1.0)
    first, *others = (evaluate_on(table, linear(4, 1), state) for table in tables)
    assert all(one == pytest.approx(first, rel=1e-5) for one in others)


def test_training_that_goes_on_keeps_it(trained):
    *_, state = fedavg(federation(), linear(4, 1), rounds=6, start=trained)
    assert state.weights.reading == trained.weights.reading


def test_another_scale_and_other_levels_are_refused(trained):
    with pytest.raises(SettingsInvalid, match="scale is 'none', and the weights were trained with 'ranges'"):
        evaluate_on(records(), linear(4, 1), trained, scale="none")
    turned = elsewhere(sex={"levels": ("m", "f")})
    for judge, held in ((evaluate_on, records(turned)), (evaluate, federation(turned))):
        with pytest.raises(SettingsInvalid, match="'sex' has the levels"):
            judge(held, linear(4, 1), trained)


def test_weights_that_do_not_tell_are_read_with_a_warning_where_ranges_lack(trained):
    plain, bare = dict(trained.weights), OTHERS["no ranges"]
    assert evaluate_on(records(), linear(4, 1), plain) == evaluate_on(records(), linear(4, 1), trained)
    for judge, held in ((evaluate_on, records(bare)), (evaluate, federation(bare))):
        with pytest.warns(HedgerowWarning, match="age, pressure: no declared range"):
            judge(held, linear(4, 1), plain)


@pytest.mark.parametrize("other", ["other ranges", "another order"])
@pytest.mark.parametrize("program", [fedavg, hr.learn.scaffold, hr.learn.dpsgd])
def test_no_training_goes_on_with_weights_that_read_otherwise(trained, program, other):
    settings = {"sampling_rate": 0.5, "batch_size": 200, "clip": 1.0} if program is hr.learn.dpsgd else {}
    *_, state = program(federation(), linear(4, 1), rounds=1, learning_rate=0.1, **settings)
    elsewhere = federation(OTHERS[other])
    with pytest.raises(SettingsInvalid, match=r"were trained with other (ranges|features)") as refused:
        next(program(elsewhere, linear(4, 1), rounds=2, learning_rate=0.1, start=state, **settings))
    assert not refused.value.asked
    plain = replace(state, weights=dict(state.weights))
    assert next(program(elsewhere, linear(4, 1), rounds=2, learning_rate=0.1, start=plain, **settings)).round == 2


def test_weights_of_other_columns_are_refused(trained):
    names = {"age": "years"}
    schema = Schema(tuple(replace(column, name=names.get(column.name, column.name)) for column in SCHEMA))
    old = records()
    table = Table({names.get(name, name): values for name, values in old.columns.items()}, schema)
    with pytest.raises(SettingsInvalid, match=r"were trained on .*'age'.*'years'"):
        evaluate_on(table, linear(4, 1), trained)
    assert evaluate_on(table, linear(4, 1), dict(trained.weights))["accuracy"] > 0.75
