"""Local-only and centralised training: the local solver alone, on one party's records or on a table."""

from functools import partial

import numpy as np
import pytest
from clinics import SCHEMA, clinics, descent, flat
from proofs import FLOAT32, kept, whole_and_resumed

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import centralised, evaluate_personal, fedavg, gathered, linear, local_only
from helpers import ENGINE_NAMES, ENGINES

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}


@pytest.fixture(scope="module")
def parties():
    return clinics()


@pytest.fixture(scope="module")
def table(parties):
    return hr.data.Table(dict(hr.engines.records(parties).columns), SCHEMA)


def on_its_own(fed, name, rounds):
    """A party's descent from zero, round after round, as a numpy loop."""
    v = np.zeros(5)
    for t in range(rounds):
        v, _, _, _ = descent(fed, name, t + 1, v, **LOCAL)
    return v


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_each_party_descends_alone_on_every_engine(parties, engine):
    fed = hr.engines.on(parties, engine)
    state = hr.last(local_only(fed, linear(4, 1), rounds=3, path="eager", **LOCAL))
    assert not flat(state).any()
    for name, own in kept(fed).items():
        np.testing.assert_allclose(own["v"], on_its_own(fed, name, 3), atol=FLOAT32)


def test_nothing_leaves_a_party_that_trains_alone_behind_any_channel(parties):
    fed = hr.engines.watch(hr.engines.on(parties, hr.InProcess()).protect(clip=hr.l2(1.5), mechanism=hr.Gaussian(0.5)))
    state = hr.last(local_only(fed, linear(4, 1), rounds=2, path="eager"))
    assert [(entry.event.kind, entry.numbers) for entry in fed.ledger.entries] == [("none", 0)] * 2
    evaluate_personal(fed, linear(4, 1), state.weights)
    assert fed.ledger.entries[-1].event.kind == "gaussian"


@pytest.mark.slow
def test_the_fast_paths_take_the_same_steps(parties):
    one, other = hr.engines.on(parties, hr.InProcess()), hr.engines.on(parties, hr.InProcess())
    for fed, path in ((one, "eager"), (other, "auto")):
        hr.last(local_only(fed, linear(4, 1), rounds=3, path=path, **LOCAL))
    for name, own in kept(one).items():
        np.testing.assert_allclose(kept(other)[name]["v"], own["v"], atol=FLOAT32)


def test_a_run_of_parties_alone_resumes_bit_identically(parties, tmp_path):
    (fed, _), (again, _) = whole_and_resumed(parties, local_only, tmp_path / "c")
    assert len(kept(fed)) == 6
    for name, own in kept(fed).items():
        np.testing.assert_array_equal(kept(again)[name]["v"], own["v"])


def test_centralised_training_is_a_descent_on_the_table(table):
    found = hr.last(centralised(table, linear(4, 1), engine=hr.InProcess(), rounds=3, path="eager", **LOCAL))
    np.testing.assert_allclose(flat(found), on_its_own(gathered(table, hr.Loop()), "everybody", 3), atol=FLOAT32)


def test_one_party_alone_is_centralised_training_and_fedavg_of_one(table):
    whole = partial(gathered, table, hr.InProcess())
    alone, one = whole(), whole()
    hr.last(local_only(alone, linear(4, 1), rounds=3, path="eager", **LOCAL))
    average = hr.last(fedavg(one, linear(4, 1), rounds=3, path="eager", **LOCAL))
    central = hr.last(centralised(table, linear(4, 1), engine=hr.InProcess(), rounds=3, path="eager", **LOCAL))
    np.testing.assert_array_equal(flat(average), flat(central))
    np.testing.assert_allclose(kept(alone)["everybody"]["v"], flat(central), atol=1e-6)


def test_centralised_training_goes_on_bit_identically(table):
    program = partial(centralised, table, linear(4, 1), engine=hr.InProcess(), path="eager", **LOCAL)
    half = hr.last(program(rounds=2))
    np.testing.assert_array_equal(flat(hr.last(program(rounds=5, start=half))), flat(hr.last(program(rounds=5))))


def test_record_weights_of_the_table_count(table):
    schema = hr.data.Schema((*SCHEMA, hr.data.Column("weight", "number", role="weight", low=0.0)))
    weight = np.where(np.arange(len(table)) < 30, 1.0, 0.0)
    weighted = hr.data.Table({**table.columns, "weight": weight}, schema)
    settings = {"engine": hr.InProcess(), "rounds": 2, "batch_size": None, "path": "eager"}
    one, other = (hr.last(centralised(t, linear(4, 1), features=["x"], **settings)) for t in (weighted, table.take(slice(30))))
    np.testing.assert_allclose(flat(one), flat(other), atol=1e-6)


@pytest.mark.parametrize("wrong", [{"rate": 0.5}, {"size": 1}, {"learning_rate": -1.0}], ids=str)
def test_centralised_training_refuses_participation_and_bad_settings(table, wrong):
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(centralised(table, linear(4, 1), engine=hr.InProcess(), rounds=1, **wrong))


def test_parties_alone_refuse_bad_settings_before_anybody_is_asked(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match="batch_size"):
        hr.last(local_only(fed, linear(4, 1), rounds=1, batch_size=-1))
    assert len(fed.ledger) == 0
