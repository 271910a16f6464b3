"""What noise on sums adds to the errors of a regression: the delta method at Newton's last step.

    beta  <-  beta + (I + N)^-1 (s + e)          e: noise of the score;  N: of the information, made symmetric
    error  ~  I^-1 (e - N b)                     b: the step that is left: 0 near the maximum, beta where one step does it all

    Cov(error)  =  I^-1 (v_s 1  +  v_i (|b|^2 1 + b b') / 2) I^-1                  and of sampling: phi I^-1

Both are in units of the columns as they are asked, in which the noise has one size in all coordinates. Their ratio has no unit.

Assumptions: noise is small beside the information, along every direction; Newton's method has converged but for noise. Where
the information's least eigenvalue is below the floor of `hedgerow.stats.noisy`, the fit is shortened instead (`saturated`).

Source: derived; for `hedgerow.stats.noisy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array


@dataclass(frozen=True)
class NoisyFit:
    """Errors of coefficients, from sampling and from noise.

    Attributes
    ----------
    sampling, noise : array of shape (d,)
        Standard deviations, in units of the columns as asked.
    saturated : bool
        Whether noise hides the information along some direction, so that the forecast does not hold.
    """

    sampling: Array
    noise: Array
    saturated: bool

    @property
    def growth(self) -> Array:
        """By how much the noise makes standard errors larger: factors of shape (d,), at least 1."""
        factors: Array = np.sqrt(1 + np.square(self.noise / self.sampling))
        return factors

    @classmethod
    def of(
        cls,
        information: Array,
        score_noise: float,
        information_noise: float,
        left: Array | None = None,
        dispersion: float = 1.0,
    ) -> NoisyFit:
        """From what the sums would be.

        Parameters
        ----------
        information : array of shape (d, d)
            Sum over all records, without the dispersion.
        score_noise, information_noise : float
            Standard deviations of the noise in each number.
        left : array of shape (d,), optional
            The step that is left: none near the maximum; of a linear regression the coefficients themselves.
        dispersion : float
            Residual variance of a linear regression; 1 of a logistic one.
        """
        inverse = np.linalg.inv(information)
        step = np.zeros(len(information)) if left is None else left
        noise = score_noise**2 * np.eye(len(step))
        noise += information_noise**2 / 2 * (step @ step * np.eye(len(step)) + np.outer(step, step))
        floor = information_noise * math.sqrt(2 * len(step))
        return cls(
            np.sqrt(dispersion * np.diag(inverse)),
            np.sqrt(np.diag(inverse @ noise @ inverse)),
            bool(np.linalg.eigvalsh(information)[0] < floor),
        )
