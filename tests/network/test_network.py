"""Programs whose parties are at stations, over a rail in one process."""

from functools import partial

import numpy as np
import pytest
from ministation import CLINIC, DESIGN, HOMES, at_stations, federation, remote
from virtual import Faults

import hedgerow as hr
from hedgerow.errors import NobodyAnswered, PartyDeclined, RoundRefused
from helpers import altered

NEWTON = partial(hr.stats.newton, spec=DESIGN)


def fitted(federation):
    return hr.last(NEWTON(federation)).beta


@pytest.mark.parametrize(
    "slots",
    [{}, {"aggregation": hr.SecAgg()}, {"aggregation": hr.PairwiseMasks()}, {"mechanism": hr.Gaussian(0.01)}],
    ids=["plain", "secagg", "pairwise", "noise"],
)
def test_a_fit_over_stations_is_that_of_one_process(slots):
    here = federation().protect(**slots)
    there, _ = at_stations(federation(), HOMES)
    np.testing.assert_allclose(fitted(remote(here, there)), fitted(here), rtol=1e-9)


@pytest.mark.slow
def test_training_over_stations_is_that_of_one_process():
    program = partial(hr.learn.scaffold, module=hr.learn.linear(2, 1), rounds=4, learning_rate=1e-3)
    there, _ = at_stations(federation(), HOMES)
    one, other = (hr.last(program(f)).weights for f in (federation(), remote(federation(), there)))
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-7)


def test_lost_and_repeated_letters_change_no_total():
    there, _ = at_stations(federation(), HOMES, seed=3, faults=Faults(lost=0.2, repeated=0.3, altered=0.1), seconds=5000.0)
    np.testing.assert_allclose(
        fitted(remote(federation().protect(aggregation=hr.SecAgg()), there)), fitted(federation()), rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore:round . of this fit")
def test_a_station_that_dies_in_the_middle_is_a_dropout_and_takes_part_again():
    engine, rail = at_stations(federation(), HOMES)
    told = remote(federation(), engine)
    states = NEWTON(told)
    next(states)
    rail.kill("beta")
    next(states)
    assert told.missing == 1
    rail.start("beta")
    *_, last = states
    np.testing.assert_allclose(last.beta, fitted(federation()), rtol=1e-6)


def test_a_secure_round_without_enough_parties_is_void_and_a_later_one_is_whole():
    homes = {"alpha": ("party 1",), "beta": ("party 2",), "gamma": ("party 3",)}
    engine, rail = at_stations(federation(3), homes)
    states = NEWTON(remote(federation(3).protect(aggregation=hr.SecAgg()), engine))
    next(states)
    rail.kill("beta")
    with pytest.raises((RoundRefused, NobodyAnswered)):
        next(states)
    rail.start("beta")
    np.testing.assert_allclose(
        fitted(remote(federation(3).protect(aggregation=hr.SecAgg()), engine)), fitted(federation(3)), rtol=1e-9
    )


def test_too_few_stations_are_waited_for():
    engine, rail = at_stations(federation(), HOMES, least=3, patience=100.0)
    rail.kill("gamma")
    rail.at(50.0, lambda: rail.start("gamma"))
    assert np.isfinite(fitted(remote(federation(), engine))).all()
    assert rail.clock >= 50
    rail.kill("gamma")
    with pytest.raises(NobodyAnswered, match="gamma"):
        fitted(remote(federation(), engine))


def test_what_every_station_refuses_comes_back_in_codes():
    engine, _ = at_stations(federation(), HOMES)
    told, wider = {}, hr.data.Schema((*CLINIC.schema.columns, hr.data.Column("absent", "number")))
    engine.told = told.update
    with pytest.raises(PartyDeclined, match="HR-403"):
        hr.last(hr.stats.centred_sums(altered(remote(federation(), engine), schema=wider), columns=["absent"]))
    assert set(told.values()) == {"HR-403"}
