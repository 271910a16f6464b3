"""A multi-task net, a U-Net on masks and a survival net: under FedAvg, client-level noise and DP-SGD, as by hand."""

import numpy as np
import pytest
from task_nets import BUILT, by_hand, clinics, flat_of, net, record_steps

import hedgerow as hr
from hedgerow.learn import dp_fedavg, dpsgd, evaluate, evaluate_on, fedavg, fedsgd
from hedgerow.store import last

ATOL = 2e-5
ON_THE_GRID = 1e-4
"""A clipped update is rounded to the integer grid."""

NETS = list(BUILT)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["auto", "eager"])
@pytest.mark.parametrize("name", NETS)
def test_fedavg_is_a_loop_by_hand(name, path):
    own = net(name)
    federation = clinics(own)
    found = last(fedavg(federation, own.module, rounds=2, batch_size=None, learning_rate=0.5, task=own.task, path=path))
    np.testing.assert_allclose(flat_of(own, found), by_hand(own, federation, 2, 0.5), atol=ATOL)


@pytest.mark.parametrize("name", NETS)
def test_fedsgd_is_a_loop_by_hand(name):
    own = net(name)
    federation = clinics(own)
    found = last(fedsgd(federation, own.module, rounds=2, learning_rate=0.5, task=own.task))
    np.testing.assert_allclose(flat_of(own, found), by_hand(own, federation, 2, 0.5), atol=ATOL)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_updates_are_clipped_as_by_hand_and_noise_is_charged(name):
    own = net(name)
    federation = clinics(own)
    settings = {"rounds": 2, "batch_size": None, "learning_rate": 0.5, "task": own.task, "path": "eager"}
    found = last(fedavg(federation.protect(clip=hr.l2(0.05)), own.module, **settings))
    np.testing.assert_allclose(flat_of(own, found), by_hand(own, federation, 2, 0.5, clip=0.05), atol=ON_THE_GRID)
    noisy = clinics(own).protect(clip=hr.l2(0.05), mechanism=hr.Gaussian(1.0))
    assert not np.allclose(flat_of(own, last(fedavg(noisy, own.module, **settings))), flat_of(own, found), atol=1e-3)
    assert len(noisy.ledger.entries) == 2
    followed = last(dp_fedavg(clinics(own).protect(mechanism=hr.Gaussian(0.5)), own.module, **settings))
    assert followed.round == 2
    assert np.isfinite(flat_of(own, followed)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_dpsgd_is_a_loop_by_hand(name):
    own = net(name)
    federation = clinics(own)
    n, settings = len(own.table), {"rounds": 2, "sampling_rate": 1.0, "clip": 0.3, "learning_rate": 0.5, "task": own.task}
    wanted = record_steps(own, federation, 2, 0.5, 0.3, n)
    summed = last(dpsgd(federation, own.module, batch_size=n, **settings))
    np.testing.assert_allclose(flat_of(own, summed), wanted, atol=ATOL)
    hidden = clinics(own).protect(aggregation=hr.PairwiseMasks(largest=100.0))
    exact = last(dpsgd(hidden, own.module, batch_size=n, **settings))
    within = record_steps(own, federation, 2, 0.5, 0.3 * (1 - 2.5e-4), n)  # exact sums stay that far below the clip
    np.testing.assert_allclose(flat_of(own, exact), within, atol=ATOL)
    nearly = clinics(own).protect(mechanism=hr.Gaussian(1e-4))
    noisy = last(dpsgd(nearly, own.module, batch_size=n, **settings))
    np.testing.assert_allclose(flat_of(own, noisy), wanted, atol=1e-3)


@pytest.mark.parametrize("name", NETS)
def test_evaluation_is_the_mean_by_hand(name):
    own = net(name)
    found = evaluate(clinics(own), own.module, dict_of(own.module), task=own.task)
    wanted = own.loss(own.module, own.table.columns).mean().item()
    assert found["loss"] == pytest.approx(wanted, rel=1e-5)
    assert found == pytest.approx(evaluate_on(own.table, own.module, dict_of(own.module), task=own.task))


def dict_of(module):
    return {name: value.detach().numpy() for name, value in module.named_parameters()}
