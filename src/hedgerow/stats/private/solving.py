"""Linear models from noisy second moments; all of it is post-processing of one release.

    ssp          G <- eigenvalues of G clipped at 0;   theta <- (G + c sqrt(d) sigma I)^-1 s          c = 1/2, public
    adassp       r <- sigma (sqrt(2 d) + sqrt(2 log(2 / rho)))             the noise's largest eigenvalue, but for rho = 5 %
                 l <- max(0, least eigenvalue of G - r)                    below that of the records, but for rho
                 theta <- (G + max(0, r - l) I)^-1 s
    functional   G <- G + 4 sigma I;   eigenvalues at or below 0 are dropped;   theta <- G^+ s
    dpme         Z = [[G, s], [s', q]] <- the nearest matrix of moments: negative eigenvalues clipped at 0;   theta <- G^+ s

sigma is the standard deviation of the noise in a number on the diagonal of G. Without noise all of them are least squares, of
least length where columns are dependent.

Source : ssp, adassp: Vu & Slavkovic 2009; Wang 2018 (UAI), Algorithm 2. Differs: his least eigenvalue is a release of its
         own, with a third of the budget. It is no sum over parties (Weyl's bound holds for the pooled matrix alone), so here it
         is read off the noisy matrix, which costs nothing and leaves halves instead of thirds; and r bounds the eigenvalues of
         isometric Gaussian noise (Davidson & Szarek 2001) where he has sqrt(d log(2 d^2 / rho)) sigma, about twice as much:
         his argument needs a bound that holds but for rho, and either is one. ssp's ridge of sqrt(d) sigma / 2 was looked at on
         Adult and cardio.
         functional: Zhang et al. 2012, sections 6.1 and 6.2. dpme: Lei 2011, whose noisy counts are clipped at 0 as moments
         are here: the fit is that of some weighted data set.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Array

from .second_moments import MomentParts, SecondMoments

MomentMethod = Literal["ssp", "adassp", "functional", "dpme"]
HALF = math.sqrt(0.5)
TAYLOR = {False: MomentParts(1.0, 2.0, by_coefficient=True), True: MomentParts(1 / 8, 1 / 2, by_coefficient=True)}
"""Coefficients of the functional mechanism: of squared errors, and for labels of the logistic loss's polynomial at zero."""
MATRIX = MomentParts(2 / 3, 2 / 3, 1 / 3)
"""Of one matrix of products of (x, t / sqrt(2)), all of whose parts have the same noise."""
NEGLIGIBLE = 1e-12
"""Eigenvalues below this, relative to the largest, count as zero."""
MISSED = 0.05
DEVIATIONS = 4.0
WORDS: dict[MomentMethod, str] = {
    "ssp": "least squares on noisy second moments, ridge of the size of the noise (SSP)",
    "adassp": "least squares on noisy second moments, ridge by the least eigenvalue (AdaSSP, Wang 2018)",
    "functional": "functional mechanism (Zhang et al. 2012): noisy polynomial coefficients, ridge and spectral trimming",
    "dpme": "M-estimator on the nearest matrix of moments (after Lei 2011)",
}


def parts_of(method: MomentMethod, *, labels: bool, pure: bool) -> MomentParts:
    """What a method asks of each record; behind Laplace noise by coefficient, whose l1 length is the smaller one."""
    if method == "functional":
        return TAYLOR[labels]
    asked = MATRIX if method == "dpme" else MomentParts(HALF, HALF)
    return MomentParts(asked.gram, 2 * asked.score, asked.square, by_coefficient=True) if pure else asked


def solve_moments(method: MomentMethod, moments: SecondMoments, noise: float, ridge: float = 0.5) -> Array:
    """Coefficients (d,) of least squares from moments.

    Parameters
    ----------
    noise : float
        Standard deviation of the noise on the diagonal of the products.
    ridge : float
        Of ssp: times sqrt(d) and the noise.
    """
    gram, score = moments.gram, moments.score
    d = len(score)
    if method == "dpme":
        gram, score = _nearest(moments)
        return spectral(gram, score)
    if method == "ssp":
        return spectral(gram, score, clip=True, add=ridge * math.sqrt(d) * noise)
    if method == "functional":
        return spectral(gram, score, add=DEVIATIONS * noise)
    reach = noise * (math.sqrt(2 * d) + math.sqrt(2 * math.log(2 / MISSED)))
    least = max(0.0, float(np.linalg.eigvalsh(gram)[0]) - reach)
    return spectral(gram, score, add=max(0.0, reach - least))


def spectral(gram: Array, score: Array, *, clip: bool = False, add: float = 0.0) -> Array:
    """Solve by eigenvalues, raised by `add` (`clip`: those below zero from zero on); what is not above zero is dropped."""
    values, vectors = np.linalg.eigh(gram)
    least = NEGLIGIBLE * float(np.abs(values).max(initial=0.0))
    values = (np.maximum(values, 0.0) if clip else values) + add
    kept = values > least
    found: Array = vectors[:, kept] @ ((vectors[:, kept].T @ score) / values[kept])
    return found


def _nearest(moments: SecondMoments) -> tuple[Array, Array]:
    """Products and scores of the nearest positive semidefinite matrix of all moments, its last row in units of the noise."""
    unit = math.sqrt(0.5)  # at which all numbers of the matrix have the same noise
    d = len(moments.score)
    matrix = np.empty((d + 1, d + 1))
    matrix[:d, :d], matrix[d, d] = moments.gram, moments.square * unit**2
    matrix[:d, d] = matrix[d, :d] = moments.score * unit
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return matrix[:d, :d], matrix[:d, d] / unit
