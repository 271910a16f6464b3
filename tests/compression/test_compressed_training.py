"""FedAvg through a compression: error feedback is what makes the largest few coordinates enough."""

from functools import partial

import numpy as np
import pytest
from clinics import clinics

from hedgerow import InProcess, Loop
from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.learn import evaluate, fedavg, mlp
from hedgerow.store import drive, last, load_checkpoint

NET = mlp(4, [64], 1)  # 385 parameters: one percent of them are four
TRAIN = partial(fedavg, module=NET, batch_size=10)


def loss_after(rounds, compression=None):
    state = last(TRAIN(clinics().protect(compression=compression), rounds=rounds))
    return evaluate(clinics(), NET, state.weights)["loss"]


@pytest.mark.slow
def test_one_percent_with_error_feedback_converges_nearly_as_everything_and_without_does_not():
    everything, fed_back, dropped = (loss_after(100, one) for one in (None, TopK(0.01), TopK(0.01, error_feedback=False)))
    assert everything < 0.2
    assert fed_back < everything + 0.01
    assert dropped > everything + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("compression", [Quantised(4), Rotated(2), RandomK(0.25), Sketched(3, 60)], ids=str)
def test_unbiased_codes_converge_nearly_as_everything(compression):
    assert loss_after(40, compression) == pytest.approx(loss_after(40), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("compression", [TopK(0.05), RandomK(0.05, error_feedback=True), Quantised(4)], ids=str)
def test_a_run_resumes_bit_identically_with_what_waits(compression, tmp_path):
    path = tmp_path / "checkpoint"
    expected = drive(partial(TRAIN, rounds=6, rate=0.6), clinics().protect(compression=compression)).state
    half = clinics().protect(compression=compression)
    drive(partial(TRAIN, rounds=3, rate=0.6), half, checkpoint=path)
    start = load_checkpoint(path, type(expected), "")
    again = clinics().protect(compression=compression)
    again.ledger.entries.extend(half.ledger.entries)
    found = drive(partial(TRAIN, rounds=6, rate=0.6), again, start=start).state
    for name, value in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], value)


@pytest.mark.slow
def test_forgetting_what_waits_changes_a_run():
    """So the checkpoint must hold it."""
    whole = last(TRAIN(clinics().protect(compression=TopK(0.05)), rounds=4))
    half = last(TRAIN(clinics().protect(compression=TopK(0.05)), rounds=2))
    forgetful = clinics().protect(compression=TopK(0.05))
    forgetful.clock.queries = 2
    other = last(TRAIN(forgetful, rounds=4, start=half))
    assert any((whole.weights[name] != other.weights[name]).any() for name in whole.weights)


@pytest.mark.slow
@pytest.mark.parametrize("compression", [TopK(0.05), RandomK(0.1), Quantised(8), Rotated(8)], ids=str)
def test_every_engine_trains_alike(compression):
    """Stacked parties train in single precision; a rounding flips one level or one choice now and then, not the run."""
    one, other = (
        last(TRAIN(clinics().on(engine).protect(compression=compression), rounds=3))
        for engine in (Loop(), InProcess(threads=2))
    )
    for name, value in one.weights.items():
        np.testing.assert_allclose(other.weights[name], value, atol=2e-3)
