"""Releases of simulated mechanisms in numpy, right ones and twins with a fault, as an auditor of a simulation sees them.

full        everybody in each of 20 releases; half of 100 canaries in all of them
sampled     a Poisson sample of a tenth in each of 60 releases; canaries too
"""

import numpy as np

from hedgerow.attacks import CanaryDirections, NoiseLaw
from hedgerow.core.events import Event

LAYERS = (40, 60, 60, 40)
CANARIES, OTHERS, RADIUS = 100, 300, 0.5
RATE = 0.1

FAULTS = {
    "-": {},
    "half the noise": {"noise": 0.5},
    "noise over root 2": {"noise": 0.5**0.5},
    "twice the noise": {"noise": 2.0},
    "no clip": {"length": 3.0},
    "each layer clipped, one charged": {"length": len(LAYERS) ** 0.5},
    "divided by who came": {"divided": True},
    "noise used twice": {"again": True},
    "shuffled and dealt": {"dealt": True},
}


def clipped(rows, layers, each):
    """Rows within the radius: as a whole, or each layer by itself."""
    ends = np.cumsum(layers)[:-1] if each else []
    parts = np.split(rows, ends, axis=1)
    return np.concatenate(
        [part * np.minimum(1, RADIUS / np.linalg.norm(part, axis=1, keepdims=True)) for part in parts], axis=1
    )


def draws(law, rng, shape):
    """Noise of a law, in units of the radius."""
    if law.name == "Laplace":
        return rng.laplace(0, law.deviation / 2**0.5, shape)
    return law.deviation * rng.standard_normal(shape)


def sightings(fault, seed, *, sampled=False, law=None):
    """What an auditor sees of a mechanism. Canaries are sent 10 times as long as the bound, 3 times where there is no clip."""
    rng = np.random.default_rng(seed)
    setting, d = FAULTS[fault], sum(LAYERS)
    releases = 60 if sampled else 20
    law = law or NoiseLaw.of(Event("gaussian", 1.0 if sampled else 3.0))
    canaries = CanaryDirections.drawn(CANARIES, LAYERS, rng)
    others = clipped(rng.standard_normal((OTHERS, d)) + 1.0, LAYERS, each=False)
    sent = clipped(10 * RADIUS * canaries.rows, LAYERS, each=setting.get("length") == 2.0)
    if setting.get("length") == 3.0:
        sent = 3 * RADIUS * canaries.rows
    coins = rng.random(CANARIES) < 0.5
    dealt = np.arange(CANARIES) % 10
    found, last = [], None
    for t in range(releases):
        here, present = np.ones(OTHERS, bool), coins
        if sampled:
            here, present = rng.random(OTHERS) < RATE, rng.random(CANARIES) < RATE
        if setting.get("dealt"):
            dealt = rng.permutation(dealt) if t % 10 == 0 else dealt
            present = dealt == t % 10
        noise = draws(law, rng, d) * RADIUS * setting.get("noise", 1.0)
        noise, last = (last, None) if setting.get("again") and last is not None else (noise, noise)
        known = here @ others
        release, n = known + present @ sent + noise, int(here.sum() + present.sum())
        if setting.get("divided"):
            release = release / n * RATE * (OTHERS + CANARIES)
        found.append(canaries.seen(release, known, present, radius=RADIUS, law=law, took_part=n))
    return found
