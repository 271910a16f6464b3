"""What consortia of hospitals ask, over three stations with real letters: approved by rehearsal, and equal to one process."""

import numpy as np
import pytest

import hedgerow as hr
import station_house
from hedgerow.data import Table
from hedgerow.store.checkpoint import split
from station_house import House

NAMES = ("alpha", "beta", "gamma")
COLUMNS = {
    "age": {"kind": "number", "range": [20, 90]},
    "dose": {"kind": "number", "range": [0, 1]},
    "sick": {"kind": "binary"},
    "treated": {"kind": "binary"},
    "days": {"kind": "integer", "range": [0, 400]},
    "ward": {"kind": "category", "levels": ["north", "south", "east", "west"]},
}
USED = tuple(COLUMNS)
METHODS = {
    "cox": 'formula = "days + sick ~ age + dose"\nstrata = "treated"',
    "piecewise_exponential": 'formula = "days + sick ~ age + dose"\ncuts = [50, 150]',
    "log_rank": 'time = "days"\nevent = "sick"\ngroup = "treated"',
    "survival_counts": 'time = "days"\nevent = "sick"\ntimes = [50.0, 150.0]\ngroup = "treated"',
    "mixed_linear": 'formula = "dose ~ age + treated + (1 | ward)"\nnested = true',
    "mixed_logistic": 'formula = "sick ~ age + (1 | ward)"\nnested = true\nnodes = 9',
    "within_sites": 'formula = "sick ~ age + dose"\nfamily = "binomial"',
    "meta_analysis": 'formula = "sick ~ age + dose"\nfamily = "binomial"',
    "table_one": 'columns = ["age", "ward", "dose"]\ngroup = "treated"',
    "ipw": 'outcome = "dose"\npropensity = "treated ~ age + dose"',
    "aipw": 'outcome_formula = "sick ~ age + dose"\npropensity = "treated ~ age"',
    "overlap_weights": 'outcome = "dose"\npropensity = "treated ~ age"',
    "analyses": (
        'about = "age"\n[program.parts.model]\nname = "logistic_regression"\nformula = "sick ~ age + dose"\n'
        '[program.parts.test]\nname = "log_rank"\ntime = "days"\nevent = "sick"\ngroup = "treated"'
    ),
    "screen": 'formula = "sick ~ age"\ncolumns = ["dose", "days"]',
    "logistic_regression": 'formula = "sick ~ age + dose"\nerrors = "HC3"',
    "linear_regression": 'formula = "dose ~ age + sick"\nerrors = "cluster"\ncluster = "ward"',
}


def records(name, n=120):
    rng = np.random.default_rng(sum(name.encode()))
    age, dose = rng.uniform(20, 90, n), rng.uniform(0, 1, n)
    treated = (rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 40))).astype(float)
    sick = (rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 20 + dose))).astype(float)
    days, ward = rng.integers(1, 400, n).astype(float), rng.integers(0, 4, n).astype(np.int16)
    return {"age": age, "dose": dose, "sick": sick, "treated": treated, "days": days, "ward": ward}


def study(name):
    return f'name = "ours"\n[data]\nname = "heart"\n[program]\nname = "{name}"\n{METHODS[name]}\n'


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setattr(station_house, "COLUMNS", COLUMNS)
    monkeypatch.setattr(station_house, "records", records)
    rules = {"approval": "automatic", "programs": [{"name": name} for name in METHODS]}
    return House(tmp_path, {name: {} for name in NAMES}, **rules)


def in_one_process(schema):
    """The same records as three parties of a simulation."""
    held = [records(one) for one in NAMES]
    columns = {key: np.concatenate([one[key] for one in held]) for key in USED}
    site = np.repeat(np.arange(len(NAMES)), [len(one["age"]) for one in held])
    table = Table(schema.admit(columns), schema).to_pandas().assign(site=site)
    return hr.simulate(Table.from_frame(table, declared={one.name: one for one in schema}), hr.data.by_column("site"), seed=0)


def numbers(state):
    return {key: np.asarray(value, float) for key, value in split(state)[0].items() if np.asarray(value).dtype.kind in "fiu"}


@pytest.mark.parametrize("name", METHODS)
def test_stations_answer_as_one_process_does(house, name):
    said = house.board(study(name), USED)
    assert {one["status"] for one in said.values()} == {"approved"}
    built = house.built(study(name), USED)
    program = built.listing.program(built.settings)
    state, expected = hr.last(program(built.federation)), numbers(hr.last(program(in_one_process(house.schema))))
    for key, value in numbers(state).items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-8, atol=1e-8, err_msg=key)
    assert built.shown(state).tables or built.shown(state).grids
