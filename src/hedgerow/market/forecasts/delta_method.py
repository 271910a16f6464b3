"""Forecasts of standard errors of noisy sums, means and generalised linear models, by the delta method.

    g of noisy totals t + e         Var g  ~  (dg/dt)' Cov(e) (dg/dt)

    mean          g = S / n         (e_S - mean e_n) / n                     e_n = 0 where n is public
    moments       beta = M^-1 s     M^-1 (e_s - E beta)                      E = (N + N') / 2, N of deviation sigma_M
                                    Cov(E beta) = sigma_M^2 (|beta|^2 I + beta beta') / 2
    last step     beta + J^-1 s     J^-1 e_s                                 J exact; noise of earlier steps is forgotten

    sample        mean: Var(x) / n          coefficients: phi J^-1           phi dispersion, J information, of all records

Noise and sample are independent, so their variances add up. The size of the noise is that of the channel
(`hedgerow.privacy.level.noise_level`), known before the question; means, moments and dispersions are a pilot's, public or paid
for. Good to the first order: where noise is not small beside the totals (a coefficient whose direction has few records), the
true error is larger, and `first_order` says how small it is.

Source: delta method; for private regressions Alabi and Vadhan 2022, Barrientos et al. 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid


@dataclass(frozen=True)
class ExpectedErrors:
    """Standard errors before the question.

    Attributes
    ----------
    sample, noise : arrays of shape (d,)
        Due to the number of records, and to noise.
    first_order : float
        Deviation of the noise in what divides, beside it: the method wants it well below 1; 0 where nothing noisy divides.
    """

    sample: Array
    noise: Array
    first_order: float = 0.0

    @property
    def total(self) -> Array:
        """Standard errors of both together: shape (d,)."""
        found: Array = np.hypot(self.sample, self.noise)
        return found


def errors_of_means(means: Array, variances: Array, n: float, noise: float, count_noise: float = 0.0) -> ExpectedErrors:
    """Expected standard errors of means S / n.

    Parameters
    ----------
    means, variances : arrays of shape (d,)
        Of one record, as a pilot knows them, in the units of the sums.
    n : float
        Records.
    noise : float
        Standard deviation of the noise in each sum.
    count_noise : float
        That in n; 0 where n is public.
    """
    if not n > 0:
        raise SettingsInvalid(f"{n!r} records.", remedy="Give a number above zero.")
    m = np.asarray(means, float)
    return ExpectedErrors(np.sqrt(np.asarray(variances, float) / n), np.hypot(noise, m * count_noise) / n, count_noise / n)


def errors_from_moments(gram: Array, coef: Array, dispersion: float, gram_noise: float, score_noise: float) -> ExpectedErrors:
    """Expected standard errors of least squares of noisy moments: M^-1 s.

    Parameters
    ----------
    gram : array of shape (d, d)
        Sum of x x' over all records, as a pilot knows it.
    coef : array of shape (d,)
    dispersion : float
        Variance of the residuals.
    gram_noise : float
        sigma_M: of one number of the matrix, before it is averaged with its transpose; it is that of the diagonal.
    score_noise : float
        Of one number of s.
    """
    inverse = _inverse(gram)
    c = np.asarray(coef, float)
    added = score_noise**2 * np.eye(len(c)) + gram_noise**2 * (c @ c * np.eye(len(c)) + np.outer(c, c)) / 2
    noise = np.sqrt(np.diag(inverse @ added @ inverse))
    least = float(np.linalg.eigvalsh(gram)[0])
    first = gram_noise * math.sqrt(2 * len(c)) / least  # about the largest eigenvalue of E
    return ExpectedErrors(np.sqrt(dispersion * np.diag(inverse)), noise, first)


def errors_of_last_step(information: Array, dispersion: float, score_noise: float) -> ExpectedErrors:
    """Expected standard errors of a generalised linear model after a last Newton step with a noisy score.

    Parameters
    ----------
    information : array of shape (d, d)
        J of all records at the coefficients, as a pilot knows it: n times that of one public record on average.
    dispersion : float
        1 for binomial and Poisson.
    score_noise : float
        Standard deviation of the noise in each number of the score.
    """
    inverse = _inverse(information)
    noise = score_noise * np.sqrt(np.diag(inverse @ inverse))
    return ExpectedErrors(np.sqrt(dispersion * np.diag(inverse)), noise)


def _inverse(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh(matrix)
    if values[0] <= 0:
        raise SettingsInvalid(
            f"a matrix with the least eigenvalue {values[0]:g}: some coefficient is not determined.",
            remedy="Leave a column out, or floor the eigenvalues by a public number.",
        )
    found: Array = (vectors / values) @ vectors.T
    return found
