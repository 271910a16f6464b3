"""FedNAG against its paper's loop, without momentum, on every engine, resumed, protected."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, flat, gradient
from proofs import FLOAT32, assert_same_weights, batches, run, whole_and_resumed

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import fedavg, fednag, linear, mlp
from helpers import ENGINE_NAMES, ENGINES, party_of, run_of

LOCAL = {"learning_rate": 0.2, "epochs": 2, "batch_size": 5}


@pytest.fixture(scope="module")
def parties():
    return clinics()


def by_fednag(fed, rounds, momentum, falls):
    """The paper's equations, in which v holds the learning rate of the round that its gradients were taken in."""
    w, v = np.zeros(5), np.zeros(5)
    for t in range(rounds):
        rate, ends = 0.2 * falls**t, []
        for name in fed.members:
            wi, vi, size = w, v, len(party_of(fed, name)["x"])
            rng = run_of(fed).streams.stream(t + 1, name, "local")
            for x, label in batches(fed, name, rng, epochs=2, batch_size=5):
                g = gradient(wi, x, label)
                vi = momentum * vi - rate * g
                wi = wi + momentum * vi - rate * g
            ends.append((size, wi, vi))
        n = sum(size for size, _, _ in ends)
        w, v = (sum(end[0] * end[k] for end in ends) / n for k in (1, 2))
    return w, v


@pytest.mark.parametrize("falls", [1.0, 0.5])
def test_weights_and_velocity_are_those_of_the_papers_equations(parties, falls):
    schedule = {"schedule": "exponential", "decay": falls}
    found = run(parties, fednag, rounds=4, momentum=0.8, **LOCAL, **schedule)
    w, v = by_fednag(hr.engines.on(parties, hr.Loop()), 4, 0.8, falls)
    np.testing.assert_allclose(flat(found), w, atol=FLOAT32)
    np.testing.assert_allclose(found.velocity, v, atol=FLOAT32)


def test_a_velocity_that_the_server_keeps_is_not_that_of_parties_alone(parties):
    found, forgetful = (run(parties, a, rounds=3, solver="nesterov", **LOCAL) for a in (fednag, fedavg))
    assert np.abs(flat(found) - flat(forgetful)).max() > 0.1


def test_without_momentum_it_is_fedavg(parties):
    found, average = (run(parties, a, rounds=4, momentum=0.0, rate=0.7, **LOCAL) for a in (fednag, fedavg))
    np.testing.assert_allclose(flat(found), flat(average), atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_trains_the_same(parties, engine):
    one, other = (run(parties, fednag, engine=on, module=mlp(4, [3], 1), rounds=3, rate=0.7) for on in (hr.Loop(), engine))
    assert_same_weights(one, other)
    np.testing.assert_allclose(other.velocity, one.velocity, atol=FLOAT32)


@pytest.mark.slow
def test_the_fast_paths_take_the_same_steps(parties):
    one, other = (run(parties, fednag, rounds=3, path=path, **LOCAL) for path in ("eager", "auto"))
    np.testing.assert_allclose(flat(other), flat(one), atol=FLOAT32)


def test_a_run_resumes_bit_identically(parties, tmp_path):
    (_, whole), (_, resumed) = whole_and_resumed(parties, partial(fednag, rate=0.6), tmp_path / "c")
    np.testing.assert_array_equal(flat(resumed), flat(whole))
    np.testing.assert_array_equal(resumed.velocity, whole.velocity)


@pytest.mark.parametrize("clip", [hr.l2(0.5), {"update": hr.l2(0.5), "v": hr.l2(0.2)}], ids=["together", "by key"])
def test_both_changes_are_clipped_and_noised(parties, clip):
    channel = {"clip": clip, "mechanism": hr.Gaussian(0.5)}
    fed = hr.engines.on(parties, hr.InProcess()).protect(**channel)
    found = hr.last(fednag(fed, linear(4, 1), rounds=2, rate=0.7, path="eager"))
    loop = hr.last(fednag(hr.engines.on(parties, hr.Loop()).protect(**channel), linear(4, 1), rounds=2, rate=0.7, path="eager"))
    assert_same_weights(loop, found, atol=3e-4)
    assert [(entry.event.kind, entry.contribution) for entry in fed.ledger.entries] == [("gaussian", "update (5,), v (5,)")] * 2


def test_a_clip_bounds_how_far_the_velocity_moves(parties):
    fed = hr.engines.on(parties, hr.InProcess()).protect(clip={"update": hr.l2(9.0), "v": hr.l2(1e-3)})
    found = hr.last(fednag(fed, linear(4, 1), rounds=1, path="eager"))
    assert 0 < np.linalg.norm(found.velocity) <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("wrong", [{"solver": "adam"}, {"momentum": 1.0}, {"rounds": 0}], ids=str)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(fednag(fed, linear(4, 1), **{"rounds": 1, **wrong}))
    assert len(fed.ledger) == 0
