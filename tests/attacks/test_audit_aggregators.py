"""Audits of noise at aggregators: green on right code, red on less of it, and on noise that those in league can foretell."""

import logging
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from broken_training import records, right, training

import hedgerow as hr
from hedgerow.attacks import law_test
from hedgerow.attacks.audits.noise_laws import NoiseLaw
from hedgerow.core.bound import l2
from hedgerow.core.question import local
from hedgerow.crypto import aggregation as hidden
from hedgerow.crypto.shares import Aggregator
from hedgerow.crypto.shares.aggregator_noise import add_noise
from hedgerow.crypto.simulated_totals import bytes_of
from hedgerow.data import iid
from hedgerow.engines import InProcess
from hedgerow.privacy import Gaussian, Noise
from hedgerow.study.audits.claims import claim_of
from hedgerow.study.audits.running import witnessed


@pytest.fixture(autouse=True)
def silent():
    """An audit asks about each canary by itself, which engines warn of."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def audited(unit, aggregation=None, mechanism=None, seed=1):
    """An audit of a training: per record through the protocol itself, per party through what a simulation adds in its place."""
    mechanism = mechanism or Gaussian(2.0, at="aggregators")
    mode = "real" if unit == "record" else "simulated"
    aggregation = aggregation or hr.AdditiveShares(aggregators=2, mode=mode, records=1000)
    fed = hr.simulate(records(), iid(parties=10), seed=seed, engine=InProcess(threads=1))
    fed = fed.protect(mechanism=mechanism, aggregation=aggregation)
    program = partial(training, ask=right) if unit == "record" else averaging
    witness, _ = witnessed(program, fed, unit=unit, canaries=40, seed=seed)
    return law_test(witness.evidence.law, accounted=1.0)


@local
def updates(w, party, rng):
    return np.full(100, 0.01) + 0.001 * party.n


def averaging(federation, start=None):
    for t in range(5):
        federation.sum(updates, np.zeros(1), bound=l2(1.0))
        yield t


def red(law):
    return {part.name for part in law.parts if part.light == "red"}


UNITS = pytest.mark.parametrize("unit", ["record", "party"])


@UNITS
def test_an_audit_is_green_on_right_code(unit):
    law = audited(unit)
    assert law.light == "green"
    assert abs(law.length - 1) < 5 / law.power.weight
    assert abs(law.noise - 1) < 5 / np.sqrt(2 * law.power.numbers)


def half(self, total, drawn, modulus):
    add_noise(total, drawn // 2, modulus)


def left_out(self, total, drawn, modulus):
    if self.place:
        add_noise(total, drawn, modulus)


@pytest.mark.parametrize("twin", [half, left_out])
def test_an_audit_is_red_on_half_the_noise_and_where_one_aggregator_leaves_it_out(twin, monkeypatch):
    monkeypatch.setattr(Aggregator, "_add_noise", twin)
    assert "noise" in red(audited("record"))


@dataclass(frozen=True)
class HalfTold(Noise):
    """Noise of which aggregators are told half of what is charged."""

    def each_adds(self, bounds, layout):
        noise = super().each_adds(bounds, layout)
        return replace(noise, runs=tuple((n, scale / 2) for n, scale in noise.runs))


@UNITS
def test_an_audit_is_red_where_aggregators_are_told_of_half(unit):
    assert "noise" in red(audited(unit, mechanism=HalfTold("gaussian", 2.0, "aggregators")))


@dataclass(frozen=True)
class InLeague(hidden.Hidden):
    """What the server makes of the total when the first aggregator tells its noise: it takes it off so many times."""

    times: float = 1.0

    def ask(self, engine, outbox, sessions):
        inbox, release = super().ask(engine, outbox, sessions), outbox.release
        noise = release.mechanism.each_adds(release.bounds, outbox.layout)
        own = noise.draw(release.mechanism.sampler, bytes_of(outbox, 0))
        return replace(inbox, total=inbox.total - np.rint(self.times * own).astype(np.int64))


def in_league(unit, monkeypatch, times=1.0):
    """An audit of what colluders know, against what was charged: one aggregator's noise."""

    def as_charged(outbox, layout, answered):
        claim = claim_of(outbox, layout, answered)
        return replace(claim, deviation=claim.deviation / np.sqrt(2), law=NoiseLaw.summed(outbox.release.event, 1.0))

    monkeypatch.setattr("hedgerow.study.audits.witness.claim_of", as_charged)
    mode = "real" if unit == "record" else "simulated"
    plain = hr.AdditiveShares(aggregators=2)
    return audited(unit, InLeague(plain.scheme, records=1000, mode=mode, times=times))


@UNITS
def test_an_audit_of_what_colluders_know_is_green_on_right_code(unit, monkeypatch):
    law = in_league(unit, monkeypatch)
    assert law.light == "green"
    assert abs(law.noise - 1) < 5 / np.sqrt(2 * law.power.numbers)


@UNITS
def test_it_is_red_where_aggregators_draw_from_one_seed(unit, monkeypatch):
    """Then the noise of the other aggregator is known as well; from right code the same colluders only take more noise away."""
    assert not red(in_league(unit, monkeypatch, times=1.9))
    for room in ("aggregation", "simulated_totals"):
        monkeypatch.setattr(f"hedgerow.crypto.{room}.bytes_of", lambda outbox, place: bytes_of(outbox, 0))
    assert "noise" in red(in_league(unit, monkeypatch, times=1.9))
