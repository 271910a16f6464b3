"""Xie's generator: gradients by autograd, a bound that weights do not give, and one that clipping records does."""

from itertools import product

import numpy as np
import pytest
import torch

import hedgerow as hr
from hedgerow.core.bound import l2
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import load
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.papers.haug import generator as gan
from hedgerow.papers.haug.generator import critic_gradient, gradient_length, gradients, printed_length, private_gan, score
from hedgerow.privacy import Gaussian

STEPS = {"rounds": 3, "batch_size": 150.0, "units": 4}


def digits(seed=0):
    return hr.simulate(load("digits").take(range(150)), hr.data.iid(3), seed=seed)


def critic_of(rng, d=4, n=3, K=2, size=1.0):
    return {name: rng.uniform(-size, size, shape) for name, shape in {"W": (n, d), "b": n, "U": (K, n), "c": K}.items()}


def value(parts, x, label):
    found = torch.tanh(x @ parts["W"].T + parts["b"]) @ parts["U"].T + parts["c"]
    return found.gather(1, label[:, None])[:, 0]


def test_the_critics_gradients_are_those_of_autograd():
    rng = np.random.default_rng(0)
    critic, x, label = critic_of(rng), rng.uniform(size=(6, 4)), rng.integers(0, 2, 6)
    found = gradients(critic, x, label, np.ones(6), gan.LONG)
    for i in range(6):
        parts = {name: torch.tensor(one, requires_grad=True) for name, one in critic.items()}
        value(parts, torch.tensor(x[i : i + 1]), torch.tensor(label[i : i + 1])).sum().backward()
        np.testing.assert_allclose(found[i], gan.flat({name: one.grad.numpy() for name, one in parts.items()}), atol=1e-6)


def test_the_generators_gradient_is_that_of_autograd():
    rng = np.random.default_rng(1)
    state = gan.begun(5, 3, 4, 0.5, 0)
    z, label = rng.normal(size=(7, gan.NOISE)), rng.integers(0, 3, 7)
    found = gan.uphill(state.generator, state.critic, z, label)
    parts = {name: torch.tensor(one, requires_grad=True) for name, one in state.generator.items()}
    given = torch.cat([torch.tensor(z), torch.eye(3, dtype=torch.float64)[label]], 1)
    x = torch.sigmoid(torch.relu(given @ parts["A"].T + parts["a"]) @ parts["B"].T + parts["e"])
    value({name: torch.tensor(one) for name, one in state.critic.items()}, x, torch.tensor(label)).mean().backward()
    for name, one in parts.items():
        np.testing.assert_allclose(found[name], one.grad.numpy(), atol=1e-6)


@pytest.mark.parametrize("size", [0.001, 0.1, 0.5])
def test_weights_within_a_clip_do_not_keep_gradients_as_short_as_is_printed(size):
    """The twin: the printed length, which goes to zero with the clip, while the longest gradient does not."""
    rng, longest = np.random.default_rng(2), 0.0
    for corner in product((0.0, 1.0), repeat=3):
        for signs in product((-1.0, 1.0), repeat=4):
            critic = {"W": size * np.outer([1, signs[3]], signs[:3]), "b": size * np.array([1.0, signs[3]])}
            critic |= {"U": size * rng.choice([-1.0, 1.0], (2, 2)), "c": np.zeros(2)}
            found = gradients(critic, np.array([corner]), np.array([0]), np.ones(1), gan.LONG)
            longest = max(longest, float(np.linalg.norm(found)))
    assert longest <= gradient_length(2, 3, size)
    assert longest >= 1 > printed_length(size, 0.9)


def test_inputs_beyond_the_cube_have_longer_gradients_than_any_length_that_weights_give():
    critic = critic_of(np.random.default_rng(3), size=0.1)
    far = gradients(critic, np.full((1, 4), 5.0) * np.sign(critic["W"][0]), np.array([0]), np.ones(1), gan.LONG)
    critic["W"][:] = 0.0
    farther = gradients(critic, np.full((1, 4), 1e4), np.array([0]), np.ones(1), gan.LONG)
    assert np.linalg.norm(farther) > 100 * np.linalg.norm(far) > gradient_length(3, 4, 0.1)


def test_one_record_moves_the_clipped_sum_by_its_clip_at_most_and_reaches_it():
    rng = np.random.default_rng(4)
    critic, n = critic_of(rng), 15
    columns = {"cube": rng.uniform(size=(n, 4)).astype(np.float32), "label": rng.integers(0, 2, n)}
    bounds, long = in_steps(l2(0.5, "record")), []

    def asked(w):
        return critic_gradient(critic, Party("a", columns, w), None, clip=0.5, bounds=bounds)

    whole = asked(np.ones(n))
    for i in range(n):
        long.append(np.linalg.norm(whole - asked(1.0 - np.eye(n)[i])))
    assert 0.49999 < max(long) <= 0.5
    plain = critic_gradient(critic, Party("a", columns, np.ones(n)), None, clip=0.5)
    np.testing.assert_allclose(whole, plain, atol=1e-5)


@pytest.mark.slow
def test_the_corrected_form_keeps_its_budget_and_the_printed_one_has_none():
    corrected, printed = digits(), digits()
    hr.last(private_gan(corrected, **STEPS, epsilon=1.0, delta=1e-5))
    assert 0.999 < corrected.ledger.epsilon(delta=1e-5, unit="record") <= 1.0
    hr.last(private_gan(printed, **STEPS, epsilon=1.0, delta=1e-5, form="printed"))
    assert {entry.event.kind for entry in printed.ledger.entries} == {"nonprivate"}
    assert "which they do not" in gan.claim({"form": "printed", "epsilon": 1.0})


@pytest.mark.slow
def test_a_seed_repeats_both_forms_and_a_started_run_ends_where_it_would_have():
    for form in ("corrected", "printed"):
        runs = [list(private_gan(digits(), **STEPS, epsilon=4.0, delta=1e-5, form=form)) for _ in range(2)]
        for name in runs[0][-1].generator:
            np.testing.assert_array_equal(runs[0][-1].generator[name], runs[1][-1].generator[name])
        gone_on = list(private_gan(digits(), **STEPS, epsilon=4.0, delta=1e-5, form=form, start=runs[0][1]))
        assert [state.round for state in gone_on] == [3]


@pytest.mark.slow
def test_without_noise_a_classifier_of_made_up_records_reads_real_ones():
    table = load("digits")
    state = hr.last(private_gan(hr.simulate(table, hr.data.iid(2), seed=0), rounds=80, batch_size=len(table), units=8))
    assert score({}, state, table.schema, table) > 0.25


def test_refused_before_anybody_is_asked():
    fed = digits()
    for more in ({"rounds": 0}, {"clip": 0.0}, {"form": "printed"}, {"form": "printed", "epsilon": 1.0}):
        with pytest.raises(SettingsInvalid):
            next(private_gan(fed, **STEPS | more))
    with pytest.raises(UnlawfulChannel):
        next(private_gan(fed.protect(mechanism=Gaussian(1.0)), **STEPS, form="printed", epsilon=1.0, delta=1e-5))
    assert not fed.ledger.entries
