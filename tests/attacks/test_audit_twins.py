"""Audits find out four broken trainings at level 1e-3, and leave right code alone; `benchmarks/audit_twins.py` runs more."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from broken_training import BROKEN, audited_law, records, right, training
from scipy.stats import binom

import hedgerow as hr
from hedgerow.attacks import law_test
from hedgerow.attacks.audits.sampled import sampling_parts
from hedgerow.attacks.audits.sums import Draws
from hedgerow.core.bound import l2
from hedgerow.core.events import Sampling
from hedgerow.core.question import local
from hedgerow.data import iid
from hedgerow.engines import InProcess
from hedgerow.errors import SettingsInvalid, ViewNotRecorded
from hedgerow.privacy.mechanisms import Noise
from hedgerow.study.audits.running import Scores, witnessed


@pytest.fixture(autouse=True)
def silent():
    """Broken functions make the engine warn of each of their sums."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def red(law):
    return {part.name for part in law.parts if part.light == "red"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BROKEN if name != "right"])
def test_each_twin_is_found_out(name):
    for seed in (1, 2):
        law, _, _ = audited_law(name, seed)
        assert law.power.against(0.5) > 0.999
        assert law.light == "red", f"{name} was green with seed {seed}"


@pytest.mark.slow
def test_right_code_is_green_and_its_estimates_are_those_of_the_ledger():
    """Estimates of three runs lie within five deviations: a false alarm in a million."""
    for seed in (1, 2, 3):
        law, scores, _ = audited_law("right", seed)
        assert law.light == "green"
        assert abs(law.length - 1) < 5 / law.power.weight
        assert abs(law.noise - 1) < 5 / np.sqrt(2 * law.power.numbers)
        z = (scores.share - scores.inside) / scores.error
        assert abs(z.mean()) < 5 * 1.5 / np.sqrt(len(z)), "shares are decorrelated, and no one's leaks into another's"
        assert 0.6 < z.std() < 1.5


@pytest.mark.slow
def test_statistics_alone_find_a_clip_that_is_missing():
    """Without the check that follows no chance, what canaries add is twice what was charged, many deviations from it."""
    law, _, _ = audited_law("no clip", 1, z=1.0)
    assert law.length - 1 > 5 / law.power.weight
    assert law.by_chance


@dataclass(frozen=True)
class Unclipped(Noise):
    """Noise whose parties round their contributions and do not clip them."""

    def at_party(self, rows, bounds, layout, entropies):
        planned = self._plan(bounds, layout)
        return np.rint(rows / planned[0].step)


@local
def updates(w, party, rng):
    return np.full(100, 0.01) + 0.001 * party.n


def averaging(federation, start=None):
    for t in range(5):
        federation.sum(updates, np.zeros(1), bound=l2(1.0))
        yield t


def of_parties(kind, seed=0, at="server"):
    noise = kind("gaussian", 2.0, at)
    federation = hr.simulate(records(), iid(parties=10), seed=seed, engine=InProcess(threads=1)).protect(mechanism=noise)
    witness, _ = witnessed(averaging, federation, unit="party", canaries=40, seed=seed)
    evidence = witness.evidence
    return law_test(evidence.law, accounted=1.0), Scores.of((evidence,)), evidence


def test_parties_are_canaries_of_sums_that_are_bounded_per_party():
    law, scores, _ = of_parties(Noise)
    assert law.light == "green"
    assert len(scores.inside) == 40
    assert abs(law.length - 1) < 5 / law.power.weight


def test_a_clip_that_parties_leave_out_is_found_out():
    law, _, _ = of_parties(Unclipped)
    assert 2.5 < law.length < 3.5
    assert "canary" in red(law)


@dataclass(frozen=True)
class Repeated(Noise):
    """Noise that is the same in every release."""

    def at_server(self, total, bounds, layout, entropy):
        return super().at_server(total, bounds, layout, np.random.default_rng(1).bytes)


def test_noise_that_is_used_twice_is_found_out():
    law, _, _ = of_parties(Repeated)
    assert "fresh" in red(law)


def test_noise_at_parties_is_audited_in_totals():
    law, _, _ = of_parties(Noise, at="party")
    assert law.light == "green"
    assert abs(law.noise - 1) < 5 / np.sqrt(2 * law.power.numbers)


@dataclass(frozen=True)
class InTurns(Noise):
    """Noise of which each second release has the same."""

    def at_server(self, total, bounds, layout, entropy):
        TURN.append(0)
        return super().at_server(total, bounds, layout, np.random.default_rng(len(TURN) % 2).bytes)


TURN: list[int] = []


@dataclass(frozen=True)
class Patched(Noise):
    """Noise that one key does not get, or that two halves share."""

    shared: bool = False

    def _draw(self, scale, size, entropy):
        noise = super()._draw(scale, size, entropy).copy()
        if self.shared:
            noise[..., size // 2 : size // 2 * 2] = noise[..., : size // 2]
        else:
            noise[..., -10:] = 0
        return noise


@pytest.mark.parametrize(
    ("kind", "part"),
    [(InTurns, "repeated"), (Patched, "numbers"), (partial(Patched, shared=True), "within")],
)
def test_noise_that_is_missing_or_the_same_somewhere_is_found_out(kind, part):
    law, _, _ = of_parties(kind)
    assert part in red(law)


def test_a_ledger_that_forgets_a_release_or_charges_another_rate_is_found_out():
    _, _, evidence = of_parties(Noise)
    charged = [(sampling, (event,)) for sampling, event in evidence.made]
    for charges, light in (
        (charged, "green"),
        (charged[1:], "red"),
        ([(Sampling("records", 0.1), one[1]) for one in charged], "red"),
    ):
        evidence.held_against(charges)
        assert law_test(evidence.law, accounted=1.0).light == light


def test_a_small_rate_of_few_canaries_is_held_against_the_binomial():
    """2 of 6 draws at a rate of 0.01 come once in 700 runs: no red light at a level of 1e-3 over eight parts."""
    draws = Draws(0.01, np.zeros(2, np.int64))
    for joined in ([True, False], [True, False], [False, False]):
        draws.add(np.array(joined), np.ones(2, bool), alone=True)
    rate = sampling_parts([draws], 1e-3 / 8)[0]
    assert rate.leaks == pytest.approx(binom.sf(1, 6, 0.01))
    assert rate.light == "green"


def no_noise(federation, start=None):
    federation.sum(right, np.zeros((30, 10)))
    yield 1


def test_a_run_without_noise_is_refused():
    federation = hr.simulate(records(), iid(parties=2), seed=0)
    with pytest.raises(SettingsInvalid, match="no noisy sum was released"):
        witnessed(no_noise, federation, unit="record", canaries=10)


def half_open(federation, start=None):
    federation.sum(right, np.zeros((30, 10)))
    yield from training(federation.protect(mechanism=hr.Gaussian(1.0)), right)


def test_a_run_that_also_releases_exact_numbers_is_refused():
    federation = hr.simulate(records(), iid(parties=2), seed=0, engine=InProcess(threads=1))
    with pytest.raises(SettingsInvalid, match="released without noise"):
        witnessed(half_open, federation, unit="record", canaries=10)


def test_an_audit_keeps_no_views():
    federation = hr.simulate(records(), iid(parties=2), seed=0, engine=InProcess(threads=1))
    federation = federation.protect(mechanism=hr.Gaussian(1.0))
    witnessed(partial(training, ask=right), federation, unit="record", canaries=10)
    with pytest.raises(ViewNotRecorded):
        hr.engines.view(federation, "server")


def test_who_joined_a_sample_is_no_part_of_what_an_observer_guesses():
    """All canaries are guessed about, also those that no sample drew: else guesses would have what sampling hides."""
    _, scores, evidence = audited_law("right", 1)
    assert len(scores.members) == evidence.inside.sum()
    assert len(scores.others) == (~evidence.inside).sum()
