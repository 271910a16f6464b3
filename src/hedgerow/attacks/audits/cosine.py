"""An estimate of epsilon from the cosines of canaries and one release (Andrew et al., ICLR 2024, Algorithm 1).

A random direction that is not in a release has a cosine with it of law N(0, 1/d); those that are in have a mean and a standard
deviation of their own. Epsilon is where the hockey-stick divergence of the two normal laws, the larger one of both directions,
is delta.

It is an estimate and no bound: on right code it exceeds the truth. Nothing here is a light.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

_POINTS = 20001
_MOST = 300.0


@displayed
@dataclass(frozen=True)
class CosineEstimate:
    """What the cosines of canaries suggest.

    Attributes
    ----------
    mean, deviation : float
        Of cosines of canaries that are in.
    deviation_out : float
        Of directions that are not: 1 over the root of their dimension.
    epsilon, delta : float
        The estimate, and where it is.
    """

    mean: float
    deviation: float
    deviation_out: float
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon about {self.epsilon:.2f} at delta {self.delta:g} by cosines: an estimate, which right code may exceed"


def cosine_estimate(cosines_in: Array, dimension: int, delta: float) -> CosineEstimate:
    """Return the estimate.

    Parameters
    ----------
    cosines_in : array of shape (n,)
        Of canaries that are in, with the release or the sum of all releases.
    dimension : int
        Numbers of the release.
    delta : float
        At which epsilon is estimated, above 0.

    Raises
    ------
    SettingsInvalid (HR-511)
        Fewer than 2 cosines, values that are no cosines, all of them equal, or a dimension or delta out of range.
    """
    cosines = np.ravel(cosines_in).astype(float)
    if len(cosines) < 2 or not (np.abs(cosines) <= 1 + 1e-9).all() or cosines.std() == 0 or dimension < 1 or not 0 < delta < 1:
        raise SettingsInvalid(
            f"{len(cosines)} cosines in dimension {dimension} at delta {delta!r}.",
            remedy="Give cosines of at least two canaries that differ, and a delta between 0 and 1.",
        )
    mean, inside, outside = float(cosines.mean()), float(cosines.std(ddof=1)), dimension**-0.5
    far = 12 * max(inside, outside)
    x = np.linspace(min(0.0, mean) - far, max(0.0, mean) + far, _POINTS)
    p, q = _log_normal(x, 0.0, outside), _log_normal(x, mean, inside)

    def excess(epsilon: float) -> float:
        return max(_hockey_stick(p, q, epsilon), _hockey_stick(q, p, epsilon)) * float(x[1] - x[0]) - delta

    found = 0.0 if excess(0.0) <= 0 else _MOST if excess(_MOST) > 0 else float(scipy.optimize.brentq(excess, 0.0, _MOST))
    return CosineEstimate(mean, inside, outside, found, delta)


def _log_normal(x: Array, mean: float, deviation: float) -> Array:
    return np.asarray(-(((x - mean) / deviation) ** 2) / 2 - math.log(deviation * math.sqrt(2 * math.pi)))


def _hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(np.exp(p) - np.exp(np.minimum(epsilon + q, 700.0)), 0.0).sum())
