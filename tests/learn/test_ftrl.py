"""DP-FTRL: federated averaging through a tree of noise, where parties take turns and nothing is amplified."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics

from hedgerow import Gaussian, l2
from hedgerow.errors import BudgetInvalid, SettingsInvalid
from hedgerow.learn import ModelState, fedavg, fedbuff, linear
from hedgerow.privacy import Tree, epsilon
from hedgerow.store import LedgerFile, drive, last, load_checkpoint

ROUNDS, EVERY = 40, 20


def trained(mechanism, rounds=ROUNDS, **settings):
    fed = clinics(parties=EVERY, records=200).protect(clip=l2(0.5), mechanism=mechanism)
    settings = {"every": EVERY, "learning_rate": 0.1} | settings
    return fed, fedavg(fed, linear(4, 1), rounds=rounds, **settings)


def weights(states):
    return np.array([np.concatenate([value.ravel() for value in state.weights.values()]) for state in states])


def test_with_hardly_any_noise_it_is_federated_averaging():
    _, noisy = trained(Tree(1e-4, ROUNDS, EVERY))
    _, plain = trained(None)
    np.testing.assert_allclose(weights(noisy), weights(plain), atol=0.01)


@pytest.mark.slow
def test_a_long_run_carries_less_noise_than_with_fresh_noise_at_the_same_epsilon():
    """Each party answers once in 300 rounds: fresh noise adds up along the path, that of the tree hardly does."""
    noise, costs = [], []
    for mechanism in (Tree(4.0, 300, 300), Gaussian(4.0)):
        fed = clinics(parties=300, records=12000).protect(clip=l2(0.5), mechanism=mechanism)
        states = fedavg(fed, linear(4, 1), rounds=300, every=300, learning_rate=1e-9, weighting="expected")
        noise.append(np.sqrt((weights(states) ** 2).mean()))
        costs.append(epsilon(fed.ledger.charges("party")[:1], delta=1e-5, adjacency="add-remove"))  # of a party's one turn
    assert costs[0] == costs[1]
    assert noise[0] < 0.6 * noise[1]


def test_a_resumed_run_has_the_same_noise(tmp_path):
    def ready():
        fed = clinics(parties=EVERY, records=200).protect(clip=l2(0.5), mechanism=Tree(1.0, 8, EVERY))
        fed.ledger.attach(LedgerFile(tmp_path / "ledger.jsonl"))
        return fed

    whole = weights(trained(Tree(1.0, 8, EVERY), 8)[1])
    program = partial(fedavg, module=linear(4, 1), every=EVERY, learning_rate=0.1)
    drive(partial(program, rounds=3), ready(), checkpoint=tmp_path / "state")
    start = load_checkpoint(tmp_path / "state", ModelState, "")
    found = drive(partial(program, rounds=8), ready(), start=start).state
    np.testing.assert_array_equal(weights([found])[0], whole[-1])


def test_groups_and_rates_are_not_mixed():
    with pytest.raises(BudgetInvalid, match="no known cost"):
        last(trained(None, rate=0.5)[1])


def test_algorithms_that_name_their_parties_take_no_turns():
    fed = clinics()
    with pytest.raises(SettingsInvalid, match="every"):
        last(fedbuff(fed, linear(4, 1), rounds=1, every=2))
