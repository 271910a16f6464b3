"""Programs that divide a budget of their own, with their parties at stations: the bits of one process, and the same charge."""

import numpy as np
import pytest
from ministation import at_stations, over_sockets, remote

import hedgerow as hr
from own_budgets import BUDGET, NAMES, federation, result

pytestmark = pytest.mark.filterwarnings("ignore:noise of")  # a case has few teachers, whose votes noise hides
HOMES = {"alpha": ("party 1", "party 2"), "beta": ("party 3", "party 4", "party 5")}


def same(name, engine):
    here, there = federation(name), remote(federation(name), engine)
    expected, found = result(name, here), result(name, there)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_equal(found[key], value, err_msg=key)
    spent = [one.ledger.epsilon(delta=BUDGET["delta"], unit="record") for one in (here, there)]
    assert spent[0] == spent[1] <= BUDGET["epsilon"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_two_stations_give_the_bits_of_one_process(name):
    same(name, at_stations(federation(name), HOMES)[0])


@pytest.mark.slow
def test_two_stations_over_grpc_give_the_bits_of_one_process(tmp_path):
    with over_sockets(federation("private_logistic"), HOMES, "grpc", tmp_path) as engine:
        same("private_logistic", engine)


@pytest.mark.slow
def test_a_one_call_fit_says_the_same_of_stations(tmp_path):
    def fit(federated):
        return hr.stats.private.logistic(federated, "malignant ~ mean_texture + mean_smoothness", **BUDGET, rounds=3)

    expected = fit(federation("private_logistic"))
    engine, _ = at_stations(federation("private_logistic"), HOMES)
    assert str(fit(remote(federation("private_logistic"), engine))) == str(expected)
