"""The clip that follows a private quantile: what a party sends, what the server reads, and twins that must be caught."""

import math
from functools import partial

import numpy as np
import pytest
from clinics import clinics, flat
from scipy.stats import chi2

import hedgerow as hr
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import fedavg, linear
from hedgerow.learn.private import PrivateState, Split, dp_fedavg, followed
from hedgerow.learn.private.clipping import MOST_FOR_COUNT, UNIT, joined, noise_now, read
from hedgerow.privacy.accounting import epsilon
from hedgerow.store import drive, load_checkpoint
from helpers import zeros

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}


def lengths(sent):
    """Length of each party's whole contribution."""
    return np.sqrt(sum((part.astype(float) ** 2).sum(-1) for part in sent.values()))


def updates(rng, n=40, d=17):
    return (rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, (n, 1))).astype(np.float32)


# ---- the split of one release ----------------------------------------------------------------------------------------
def test_the_update_has_the_noise_of_andrews_theorem():
    split = Split.of(1.1, 100.0)
    assert split.multiplier(1.1) == pytest.approx(1.1067160, abs=1e-7)  # (1.1^-2 - (2 * 5)^-2)^-1/2
    assert split.update**2 + split.below**2 == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("z", [0.5, 3.0])
@pytest.mark.parametrize("cohort", [10.0, 1e4])
def test_two_releases_with_the_two_noises_cost_what_one_release_is_charged(z, cohort):
    split = Split.of(z, cohort)
    apart = [hr.core.events.Event("gaussian", noise) for noise in (z / split.update, z / split.below)]
    whole = [(hr.core.events.Sampling("poisson", 0.3), tuple(apart))]
    once = [(hr.core.events.Sampling("poisson", 0.3), (hr.core.events.Event("gaussian", z),))]
    one, other = (epsilon(c, delta=1e-5, adjacency="add-remove", accountant="rdp") for c in (whole, once))
    assert one == pytest.approx(other, rel=1e-9)


def test_in_a_small_cohort_the_count_takes_at_most_a_tenth_of_the_release():
    assert Split.of(2.0, 5.0).below ** 2 == pytest.approx(MOST_FOR_COUNT)


def test_a_count_that_would_take_the_whole_release_is_refused():
    with pytest.raises(SettingsInvalid, match=r"count_noise is 0\.4"):
        Split.of(1.0, 100.0, count_noise=0.4)


# ---- what a party sends ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("clip", [1e-3, 1.0, 50.0])
def test_no_contribution_is_longer_than_its_bound(clip):
    sent = joined(updates(np.random.default_rng(0)), clip, Split.of(1.0, 100.0))
    assert lengths(sent).max() <= UNIT.radius * (1 + 1e-6)


def test_short_updates_pass_whole_and_long_ones_are_shortened_to_the_clip():
    u, clip, split = updates(np.random.default_rng(1)), 2.0, Split.of(1.0, 100.0)
    long = np.linalg.norm(u, axis=1) > clip
    sent = joined(u, clip, split)["update"] * clip / split.update
    np.testing.assert_allclose(sent[~long], u[~long], rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(sent[long], axis=1), clip, rtol=1e-5)
    assert 0 < long.sum() < len(long)


def test_an_update_that_is_not_finite_is_not_counted_as_short():
    u = np.array([[1.0, np.inf], [np.nan, 0.0], [0.1, 0.1]], np.float32)
    assert np.isfinite(joined(u, 1.0, Split.of(1.0, 100.0))["below"][:, 0]).tolist() == [False, False, True]


# ---- twins -----------------------------------------------------------------------------------------------------------
def bounded(clipped, clip):
    """Whether a rule that turns updates into what is summed keeps every party within the clip."""
    return bool(np.linalg.norm(clipped(updates(np.random.default_rng(2))), axis=1).max() <= clip * (1 + 1e-5))


def inverted(u, clip=1.0):
    """The clip of Geyer's published code: update / min(length / clip, 1), which lengthens the short and spares the long."""
    return u / np.minimum(np.linalg.norm(u, axis=1, keepdims=True) / clip, 1.0)


def test_the_twin_with_an_inverted_clip_is_caught():
    split = Split.of(1.0, 100.0)
    assert bounded(lambda u: joined(u, 1.0, split)["update"] / split.update, 1.0)
    assert not bounded(inverted, 1.0)


def test_the_twin_with_a_clip_per_tensor_charged_once_is_caught():
    """Three tensors, each clipped to S and noised for S, move by sqrt(3) S together: more than one event of z says."""
    u, parts = updates(np.random.default_rng(3), d=18), [slice(0, 6), slice(6, 12), slice(12, 18)]
    apart = np.concatenate([hr.l2(1.0).clip(u[:, part]) for part in parts], axis=1)
    assert not bounded(lambda _: apart, 1.0)
    assert np.linalg.norm(apart, axis=1).max() == pytest.approx(math.sqrt(3), rel=1e-3)
    once, truth = ([(hr.core.events.Sampling(), (hr.core.events.Event("gaussian", 1.0),) * n)] for n in (1, 3))
    claim, spent = (epsilon(c, delta=1e-5, adjacency="add-remove") for c in (once, truth))
    assert spent > 1.7 * claim
    charged = clinics(parties=6).protect(mechanism=hr.Gaussian(1.0))
    hr.last(dp_fedavg(charged, linear(4, 1), rounds=1, **LOCAL))
    assert [str(entry.bound) for entry in charged.ledger.entries] == ["l2(1) per party"]  # one bound for all tensors


# ---- the clip follows ------------------------------------------------------------------------------------------------
def test_the_clip_grows_where_too_few_updates_pass_and_shrinks_where_too_many_do():
    assert followed(1.0, 0.5, 0.5, 0.2) == 1.0
    assert followed(1.0, 0.0, 0.5, 0.2) == pytest.approx(math.exp(0.1))
    assert followed(1.0, 1.0, 0.5, 0.2) == pytest.approx(math.exp(-0.1))


@pytest.mark.slow
@pytest.mark.parametrize("first", [0.01, 100.0])
def test_the_clip_finds_the_median_length_from_below_and_from_above(first):
    """Andrew et al. 2021, section 2: the iteration converges to the quantile; here without noise."""
    state = hr.last(dp_fedavg(clinics(30, 300), linear(4, 1), rounds=60, clip=first, clip_step=0.5, **LOCAL))
    assert 0.3 < state.below < 0.7
    assert 0.01 < state.clip < 100.0


# ---- the program -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("clip", [0.05, 1e6])
def test_without_noise_and_with_a_fixed_clip_it_is_fedavg_through_a_clip(clip):
    one = hr.last(dp_fedavg(clinics(), linear(4, 1), rounds=3, quantile=None, clip=clip, **LOCAL))
    other = hr.last(fedavg(clinics().protect(clip=hr.l2(clip)), linear(4, 1), rounds=3, **LOCAL))
    np.testing.assert_allclose(flat(one), flat(other), rtol=1e-3)  # by so much lengths are overstated


def test_every_engine_trains_the_same():
    one, other = (
        hr.last(dp_fedavg(clinics().on(on).protect(mechanism=hr.Gaussian(0.5)), linear(4, 1), rounds=3, rate=0.7, **LOCAL))
        for on in (hr.Loop(), hr.InProcess())
    )
    np.testing.assert_allclose(flat(other), flat(one), atol=3e-4)
    assert other.clip == pytest.approx(one.clip, rel=1e-4)


def test_the_noise_of_a_round_is_what_the_clip_and_the_multiplier_say():
    """20 000 coordinates of noise alone: their variance, at a false alarm in a million."""
    fed, d, z, clip = clinics().protect(mechanism=hr.Gaussian(1.5)), 20_000, 1.5, 3.0
    split = Split.of(noise_now(fed, d), fed.expected_size)
    found = read({"update": fed.sum(partial(zeros, size=d), bound=UNIT)}, clip, split, fed, noise_now(fed, d))
    expected = clip * split.multiplier(z) / fed.size
    low, high = chi2.interval(1 - 1e-6, d)
    assert low < ((found.mean / expected) ** 2).sum() < high
    assert found.noise == pytest.approx(expected, rel=1e-3)


def test_a_clip_in_the_channel_is_refused_before_anybody_is_asked():
    fed = clinics().protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0))
    with pytest.raises(SettingsInvalid, match="dp_fedavg clips by itself"):
        hr.last(dp_fedavg(fed, linear(4, 1), rounds=1))
    assert len(fed.ledger) == 0


@pytest.mark.parametrize(
    "wrong", [{"quantile": 1.0}, {"clip": 0.0}, {"server_momentum": 1.0}, {"last_rate": 0.5}, {"rates": [0.1]}, {"inputs": "x"}]
)
def test_a_setting_out_of_range_is_refused(wrong):
    fed = clinics().protect(mechanism=hr.Gaussian(1.0))
    with pytest.raises(SettingsInvalid):
        hr.last(dp_fedavg(fed, linear(4, 1), rounds=2, **wrong))
    assert len(fed.ledger) == 0


class Killed(BaseException):
    """What a test raises in the place of `kill -9`."""


def test_a_killed_run_resumes_where_it_was(tmp_path):
    def program(fed, *, start=None):
        return dp_fedavg(fed, linear(4, 1), rounds=4, rate=0.7, last_rate=1.0, server_momentum=0.5, start=start, **LOCAL)

    def kill(state):
        if state.round == 2:
            raise Killed

    def fed():
        return clinics().protect(mechanism=hr.Gaussian(0.5))

    path, whole = tmp_path / "checkpoint.safetensors", hr.last(program(fed()))
    cut = fed()
    with pytest.raises(Killed):
        drive(program, cut, watch=kill, checkpoint=path, study="s", seconds=0.0)
    again = fed()
    again.ledger.entries += cut.ledger.entries
    ended = drive(program, again, checkpoint=path, study="s", start=load_checkpoint(path, PrivateState, "s")).state
    np.testing.assert_array_equal(flat(ended), flat(whole))
    assert ended.clip == whole.clip
