"""FSVRG against a numpy loop of Algorithm 4, in its limits, on every engine, resumed, protected."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics, flat, gradient
from proofs import FLOAT32, assert_same_weights, batches, records, run, whole_and_resumed
from scipy.optimize import root

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import ModelState, fedavg, fedsgd, fsvrg, linear, mlp
from helpers import ENGINE_NAMES, ENGINES, run_of


@pytest.fixture(scope="module")
def parties():
    return clinics()


def by_fsvrg(fed, rounds, h, batch_size, epochs=1):
    """Algorithm 4; the second question of round t has number 2 t + 2."""
    x, sizes = np.zeros(5), {name: len(records(fed, name)[0]) for name in fed.members}
    for t in range(rounds):
        central = sum(n * gradient(x, *records(fed, name)) for name, n in sizes.items()) / sum(sizes.values())
        moved = np.zeros(5)
        for name, n in sizes.items():
            y, rate = x, h / -(-n // batch_size)
            for batch in batches(
                fed, name, run_of(fed).streams.stream(2 * t + 2, name, "local"), epochs=epochs, batch_size=batch_size
            ):
                y = y - rate * (gradient(y, *batch) - gradient(x, *batch) + central)
            moved = moved + n * (y - x)
        x = x + moved / sum(sizes.values())
    return x


@pytest.mark.parametrize(("batch_size", "epochs"), [(1, 1), (5, 1), (4, 2)])
def test_the_algorithm_is_its_papers_box(parties, batch_size, epochs):
    found = run(parties, fsvrg, rounds=4, learning_rate=1.5, batch_size=batch_size, epochs=epochs)
    np.testing.assert_allclose(
        flat(found), by_fsvrg(hr.engines.on(parties, hr.Loop()), 4, 1.5, batch_size, epochs), atol=FLOAT32
    )


def test_one_batch_in_one_pass_is_fedsgd(parties):
    """A party then steps from x along the federation's gradient, whatever its own is."""
    found = run(parties, fsvrg, rounds=5, learning_rate=0.7, batch_size=None)
    gradient_step = hr.last(fedsgd(hr.engines.on(parties, hr.InProcess()), linear(4, 1), rounds=5, learning_rate=0.7))
    np.testing.assert_allclose(flat(found), flat(gradient_step), atol=1e-6)


def test_the_pooled_optimum_stays_where_it_is_while_fedavg_drifts_away(parties):
    """Where the federation's gradient is zero, no party takes a step, however much its own data differ."""
    x, label = hr.engines.records(parties).columns["x"], hr.engines.records(parties).columns["label"]
    optimum = root(lambda w: gradient(w, x, label), np.zeros(5)).x
    start = ModelState(0, {"1.weight": optimum[None, :4], "1.bias": optimum[4:]})
    moved = {a: np.abs(flat(run(parties, a, rounds=1, batch_size=5, start=start)) - optimum).max() for a in (fsvrg, fedavg)}
    assert moved[fsvrg] < 1e-5
    assert moved[fedavg] > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_trains_the_same(parties, engine):
    settings = {"module": mlp(4, [3], 1), "rounds": 3, "rate": 0.7, "batch_size": 4}
    one, other = (run(parties, fsvrg, engine=on, **settings) for on in (hr.Loop(), engine))
    assert_same_weights(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [hr.Loop(), hr.InProcess()], ids=["alone", "stacked"])
def test_the_fast_paths_take_the_same_steps(parties, engine):
    settings = {"engine": engine, "rounds": 3, "learning_rate": 1.0, "batch_size": 4}
    one, other = (run(parties, fsvrg, path=path, **settings) for path in ("eager", "auto"))
    np.testing.assert_allclose(flat(other), flat(one), atol=FLOAT32)


def test_a_run_resumes_bit_identically(parties, tmp_path):
    (_, whole), (_, resumed) = whole_and_resumed(parties, partial(fsvrg, rate=0.6), tmp_path / "c")
    np.testing.assert_array_equal(flat(resumed), flat(whole))


@pytest.mark.parametrize("clip", [hr.l2(0.5), {"update": hr.l2(20.0), "n": hr.linf(40)}], ids=["equal parties", "by records"])
def test_one_cohort_answers_two_protected_questions(parties, clip):
    channel = {"clip": clip, "mechanism": hr.Gaussian(0.5)}
    fed = hr.engines.on(parties, hr.InProcess()).protect(**channel)
    found = hr.last(fsvrg(fed, linear(4, 1), rounds=2, rate=0.7, path="eager"))
    loop = hr.last(fsvrg(hr.engines.on(parties, hr.Loop()).protect(**channel), linear(4, 1), rounds=2, rate=0.7, path="eager"))
    assert_same_weights(loop, found, atol=3e-4)
    assert [(entry.event.kind, entry.cohort) for entry in fed.ledger.entries] == [("gaussian", 1)] * 2 + [("gaussian", 2)] * 2


@pytest.mark.parametrize("wrong", [{"solver": "adam"}, {"learning_rate": 0.0}, {"batch_size": -1}], ids=str)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=next(iter(wrong))):
        hr.last(fsvrg(fed, linear(4, 1), rounds=1, **wrong))
    assert len(fed.ledger) == 0
