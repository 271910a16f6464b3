"""A private training in small, and four ways of breaking it that an audit is to find out.

right             each record's gradient is clipped to one, and noise is scaled to that
half noise        the mechanism draws half the noise that it charges for
no clip           the local function says that it holds records to the bound, and does not
two layers        each of two layers is clipped to one, and one is charged
realised batch    the sum is divided by how many records joined, and multiplied by how many were expected
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import hedgerow as hr
from hedgerow.attacks import law_test
from hedgerow.core.bound import l2
from hedgerow.core.question import local
from hedgerow.core.whole import whole
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess
from hedgerow.privacy.mechanisms import Noise
from hedgerow.study.audits.running import Scores, witnessed

FEATURES, CLASSES = 30, 10
RECORDS, ROUNDS, RATE = 200, 6, 0.5


@dataclass(frozen=True)
class HalfNoise(Noise):
    """Gaussian noise that charges for twice as much as it draws."""

    def _draw(self, scale, size, entropy):
        return super()._draw(scale / 2, size, entropy)


def gradients(w, party):
    """Softmax gradients of all records, (n, FEATURES, CLASSES)."""
    X = np.asarray(party["x"], float)
    y = np.eye(CLASSES)[np.asarray(party["y"], int)]
    logits = X @ w
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return X[:, :, None] * (p - y)[:, None, :] * (party.w > 0)[:, None, None]


def clipped_to(rows, radius):
    return rows * np.minimum(1.0, radius / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-30))


@local(additive=True, holds=True)
def right(w, party, rng, *, bounds=None):
    g = clipped_to(gradients(w, party).reshape(len(party.w), -1), 1.0)
    return whole(g, bounds).sum(0) if bounds is not None else g.sum(0)


@local(additive=True, holds=True)
def no_clip(w, party, rng, *, bounds=None):
    return gradients(w, party).reshape(len(party.w), -1).sum(0)


@local(additive=True, holds=True)
def two_layers(w, party, rng, *, bounds=None):
    g = gradients(w, party)
    half = FEATURES // 2
    layers = [clipped_to(part.reshape(len(g), -1), 1.0) for part in (g[:, :half], g[:, half:])]
    return np.concatenate(layers, axis=-1).sum(0)


@local(additive=True, holds=True)
def realised_batch(w, party, rng, *, bounds=None):
    g = clipped_to(gradients(w, party).reshape(len(party.w), -1), 1.0)
    n = float((party.w > 0).sum())
    return g.sum(0) * (RATE * RECORDS / 2) / max(n, 1.0)


BROKEN = {
    "right": (right, Noise),
    "half noise": (right, HalfNoise),
    "no clip": (no_clip, Noise),
    "two layers": (two_layers, Noise),
    "realised batch": (realised_batch, Noise),
}


@dataclass(frozen=True)
class Step:
    round: int
    weights: np.ndarray


def training(federation, ask, start=None) -> Iterator[Step]:
    w = np.zeros((FEATURES, CLASSES))
    for t in range(ROUNDS):
        total = federation.sample(records=RATE).sum(ask, w, bound=l2(1.0, unit="record"))
        w = w - 0.5 * total.reshape(w.shape) / (RATE * RECORDS)
        yield Step(t + 1, w)


def records(seed=0) -> Table:
    chance = np.random.default_rng(seed)
    y = chance.integers(0, 3, RECORDS)  # few classes, so that gradients have a mean
    x = np.clip(chance.normal(0.3, 0.3, (RECORDS, FEATURES)) + 0.1 * y[:, None], 0, 1)
    number = Column("x", "number", low=0, high=1, shape=(FEATURES,))
    target = Column("y", "category", "target", levels=tuple(map(str, range(CLASSES))))
    schema = Schema((number, target))
    return Table(schema.admit({"x": x, "y": y}), schema)


def audited_law(name: str, seed: int, *, z: float = 2.0, canaries: int = 100, level: float = 1e-3):
    """The law of one run, and the scores of its canaries."""
    ask, kind = BROKEN[name]
    federation = hr.simulate(records(), iid(parties=2), seed=seed, engine=InProcess(threads=1)).protect(
        mechanism=kind("gaussian", z)
    )
    witness, _ = witnessed(partial(training, ask=ask), federation, unit="record", canaries=canaries, seed=seed)
    evidence = witness.evidence
    return law_test(evidence.law, level=level, accounted=1.0), Scores.of((evidence,)), evidence
