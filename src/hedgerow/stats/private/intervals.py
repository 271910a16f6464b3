"""Intervals of private fits: the noise of every release is known, so its part of an estimate's covariance is as well.

Linear regression, of noisy moments G = X'X + E, v = X'y + e and q = y'y + f, E symmetric of deviation s on its diagonal and
s / sqrt(2) off it:

    B           = G^-1 - G^-1 (s^2/2) (G^-1 + tr(G^-1) I) G^-1             (X'X)^-1, the bias of E off to second order
    theta       = B v
    N           = var(e) I + (s^2/2) (|theta|^2 I + theta theta')          noise of v - G theta
    variance    = (q - v'G^-1 v + tr(G^-1 N)) / (n - d)                    of a residual
    covariance  = B (variance G + N) B'                                    B (M + N) B' where residuals may have any variance

M is the sum of r^2 x x', released besides, with r^2 cut off as far out as the noise allows, at nine times their mean at least;
what is lost is made up for in proportion. Its own noise is taken for none, so it is used where that makes the variance of no
coefficient unsure by more than `MOST_UNSURE_MEAT` of itself.

Logistic regression, by one Newton step from wherever noisy scores have led, which is to first order as good as the maximum of
the likelihood: an error of the starting point leaves only its square. J = information + E at the starting point:

    theta       = start + J^-1 (score + e)
    N           = var(e) I + (s^2/2) (|step|^2 I + step step')
    covariance  = J^-1 (J + N) J^-1

Both hold to first order in E, and the Newton step to first order in its length. Public numbers tell where that is no longer so,
and then there are no intervals: the noise of the matrix beside its smallest eigenvalue (`MOST_NOISE`), the length of the last
step in units of linear predictors (`LONGEST_STEP`), what its square leaves out beside a standard error (`MOST_LEFT`), and the
noise of the residual variance beside the whole variance of an estimate (`MOST_OF_NOISE`, `MOST_UNSURE`). No ridge is added, as
its bias would not be small beside a standard error. `benchmarks/coverage.py` repeats what was simulated.

Residual squares share their noise with theta, so that a refusal that goes by them alone would keep the estimates whose errors
made squares large. It goes by their deviation: where that is little beside the noise's own part of a variance, the squares
themselves are not asked; else they have to be twenty times their noise.

What a Newton step of length D (in predictors, weighed by p (1 - p)) leaves out is to second order J^-1 sum of
p (1 - p) (1/2 - p) (x'step)^2 x. With (x'step)^2 taken for its mean, it is by Cauchy & Schwarz at most
(D / 2) sqrt(step' J step) (sqrt(mean of (1 - 2p)^2) + D / 3) standard errors of the maximum of the likelihood. A limit for D
alone would not do, since standard errors shrink with n.

Source : Ferrando, Wang & Sheldon 2022 (inference from known noise, there by a bootstrap); Wang 2018 (moments); Le Cam's one
         step estimator, van der Vaart 1998, section 5.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array

from ..factors import Levels
from .rows import UnitRows
from .units import own_units

MOST_NOISE = {"moments": 0.4, "last step": 0.5}
"""Of sqrt(d) deviations of a matrix's noise over its smallest eigenvalue."""
LONGEST_STEP = 0.3
"""Root mean square of what a last Newton step changes in log-odds, rows being of length one."""
MOST_LEFT = 0.2
"""Standard errors that the last step may leave out, in any direction."""
MOST_UNSURE_MEAT = 0.25
"""Deviation of a coefficient's variance by the noise of products with residuals, in shares of itself."""
CUT, MOST_LOST = 9.0, 1.5
"""Squared residuals are cut off no nearer than at so many times their mean; what is lost is made up for, up to a factor."""
MOST_UNSURE, MOST_OF_NOISE = 0.05, 0.5
"""Deviation of the variance that residual squares give, in any direction: in shares of the whole, and of the noise's part."""


@dataclass(frozen=True)
class Estimated:
    """An estimate, and its covariance where public numbers say that it holds.

    Attributes
    ----------
    coef : array of shape (d,)
    covariance : array of shape (d, d) or None
    words : str
        Where intervals come from, or why there are none.
    """

    coef: Array
    covariance: Array | None
    words: str


def kept_columns_of(rows: UnitRows) -> Array:
    """Which columns of unit rows the formula's own design has, shape (size,): all but the reference levels of categories."""
    found = []
    for block, term in zip(rows.blocks, rows.spec.terms, strict=True):
        kept = np.ones(1, bool)
        for whole, own in zip(block.term.factors, term.factors, strict=True):
            same = (
                np.isin(whole.codes, own.codes) if isinstance(whole, Levels) and isinstance(own, Levels) else np.ones(1, bool)
            )
            kept = np.logical_and.outer(kept, same).ravel()
        found.append(kept)
    return np.concatenate(found)


def noise_along(theta: Array, noise: float) -> Array:
    """Covariance of E theta, (d, d), for symmetric noise of this deviation on its diagonal."""
    found: Array = noise**2 / 2 * (theta @ theta * np.eye(len(theta)) + np.outer(theta, theta))
    return found


def from_moments(
    gram: Array,
    score: Array,
    square: float,
    *,
    n: float,
    noise: tuple[float, float, float],
    meat: tuple[Array, float] | None = None,
) -> Estimated:
    """Least squares of noisy moments.

    Parameters
    ----------
    gram, score, square : arrays of shape (d, d), (d,) and a number
        X'X, X'y and y'y as released.
    n : float
        Records, as released.
    noise : (float, float, float)
        Standard deviations: on the diagonal of `gram`, of a number of `score`, of `square`.
    meat : (array of shape (d, d), float), optional
        Products of rows with squared residuals, and the standard deviation of their noise.
    """
    d = len(score)
    if refused := too_noisy(gram, noise[0], MOST_NOISE["moments"]):
        return Estimated(_least_norm(gram, score), None, refused)
    inverse = np.linalg.inv(gram)
    theta = inverse @ score
    extra = noise[1] ** 2 * np.eye(d) + noise_along(theta, noise[0])
    squares = square - float(score @ theta) + float(np.trace(inverse @ extra))
    doubt = math.sqrt(noise[2] ** 2 + 4 * noise[1] ** 2 * float(theta @ theta) + (noise[0] * float(theta @ theta)) ** 2)
    bias = inverse @ (noise[0] ** 2 / 2 * (inverse + np.trace(inverse) * np.eye(d)))
    theta = theta - bias @ theta
    if n <= d:
        return Estimated(theta, None, f"no intervals: {n:.3g} records of {d} columns, as released")
    if meat is not None:
        held = n * float(meat[0][0, 0]) / float(gram[0, 0])  # squares of residuals as they were cut off
        lost = min(max(squares / held, 1.0), MOST_LOST) if held > 0 else 1.0
        return _robust(theta, inverse, extra, lost * meat[0] * n / (n - d), lost * meat[1])
    covariance = inverse @ (max(squares, 0.0) / (n - d) * gram + extra) @ inverse
    of_noise = doubt / (n - d) * least_precise(inverse, inverse @ extra @ inverse) if noise[1] > 0 else math.inf
    unsure = doubt / (n - d) * least_precise(inverse, covariance)
    if of_noise > MOST_OF_NOISE and unsure > MOST_UNSURE:
        why = (
            f"no intervals: the noise of residual squares, {doubt:.3g} beside {squares:.3g}, leaves variances unsure by "
            f"{unsure:.2g} of themselves, over {MOST_UNSURE:g}; more records or a larger epsilon would help"
        )
        return Estimated(theta, None, why)
    return Estimated(
        theta, (covariance + covariance.T) / 2, "of sampling and of the moments' noise, which is known (delta method)"
    )


def _robust(theta: Array, inverse: Array, extra: Array, meat: Array, noise: float) -> Estimated:
    """With a covariance that supposes no common variance of residuals, where the noise of their products allows it."""
    values, vectors = np.linalg.eigh(meat)
    covariance = inverse @ ((vectors * np.maximum(values, 0.0)) @ vectors.T + extra) @ inverse
    covariance = (covariance + covariance.T) / 2
    unsure = float(np.max(noise * (inverse**2).sum(1) / np.maximum(np.diag(covariance), 1e-300)))
    if unsure > MOST_UNSURE_MEAT:
        why = (
            f"no intervals: the noise of squared residuals leaves the variance of a coefficient unsure by {unsure:.2g} of "
            f"itself, over {MOST_UNSURE_MEAT:g}; more records or a larger epsilon would help, or robust=False"
        )
        return Estimated(theta, None, why)
    words = "of sampling, residuals of any variance (sandwich), and of the moments' noise, which is known"
    return Estimated(theta, covariance, words)


def residual_cut(found: Estimated, gram: Array, square: float, n: float, noise: float) -> float:
    """Where squared residuals are cut off, by what was released before: as far out as the noise allows.

    Parameters
    ----------
    found : Estimated
        Of the moments.
    noise : float
        Standard deviation in a number of the products, of squared residuals cut off at one.
    """
    theta = found.coef
    farthest = (1.0 + float(np.linalg.norm(theta))) ** 2  # rows and targets are no longer than one
    if noise == 0 or found.covariance is None:
        return farthest
    least = CUT * max(square - float(theta @ gram @ theta), 0.0) / max(n, 1.0)
    inverse = np.linalg.inv(gram)
    unsure = float(np.max(noise * (inverse**2).sum(1) / np.diag(found.covariance)))
    return min(max(MOST_UNSURE_MEAT / 2 / unsure, least, 1e-4), farthest)


def from_last_step(
    start: Array, score: Array, information: Array, *, n: float, weight: float, noise: tuple[float, float]
) -> Estimated:
    """One Newton step of a noisy score and a noisy information.

    Parameters
    ----------
    start : array of shape (d,)
        Where both were asked.
    n, weight : float
        Records, and the sum of p (1 - p) over them, as released.
    noise : (float, float)
        Standard deviations: of a number of the score, and on the diagonal of the information.
    """
    if refused := too_noisy(information, noise[1], MOST_NOISE["last step"]):
        return Estimated(start, None, refused)
    inverse = np.linalg.inv(information)
    step = inverse @ score
    extra = noise[0] ** 2 * np.eye(len(start)) + noise_along(step, noise[1])
    covariance = inverse @ (information + extra) @ inverse
    length = float(step @ information @ step)
    moved = math.sqrt(length / weight)
    skew = math.sqrt(max(1 - 4 * weight / n, 0.0)) + moved / 3
    left = moved * math.sqrt(length) / 2 * skew * math.sqrt(least_precise(inverse, covariance))
    if moved > LONGEST_STEP or left > MOST_LEFT:
        why = (
            f"no intervals: the last step still moves log-odds by {moved:.2g} on average (at most {LONGEST_STEP:g}), and may "
            f"leave out {left:.2g} standard errors (at most {MOST_LEFT:g}); a larger epsilon would help"
        )
        return Estimated(start + step, None, why)
    words = "of sampling and of the noise of a last Newton step, which is known (sandwich)"
    return Estimated(start + step, (covariance + covariance.T) / 2, words)


def least_precise(part: Array, whole: Array) -> float:
    """The largest share that one covariance has in another, over all directions."""
    return float(np.linalg.eigvals(np.linalg.solve(whole, part)).real.max())


def too_noisy(matrix: Array, noise: float, share: float) -> str:
    """Why a matrix gives no intervals, where its noise is more than this share of its smallest eigenvalue; else nothing."""
    least, most = float(np.linalg.eigvalsh(matrix)[0]), math.sqrt(len(matrix)) * noise
    if least > 0 and most <= share * least and np.linalg.cond(matrix) < 1e12:
        return ""
    return (
        f"no intervals: the smallest eigenvalue of the released matrix is {least:.3g}, less than {1 / share:g} times its "
        f"noise of {most:.3g}; more records, a larger epsilon or fewer columns would help"
    )


def _least_norm(gram: Array, score: Array) -> Array:
    """Least squares where the matrix is hardly definite: its eigenvalues not above zero are left out."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    found: Array = vectors[:, kept] @ ((score @ vectors[:, kept]) / values[kept])
    return found


def scattered(estimated: Estimated, kept: Array) -> tuple[Array, Array | None]:
    """Coefficients (size,) and covariance (size, size) of all columns; those that were left out are zero."""
    coef = np.zeros(len(kept))
    coef[kept] = estimated.coef
    if estimated.covariance is None:
        return coef, None
    covariance = np.zeros((len(kept), len(kept)))
    covariance[np.ix_(kept, kept)] = estimated.covariance
    return coef, covariance


def in_own_units(rows: UnitRows, coef: Array, covariance: Array) -> tuple[Array, Array]:
    """Coefficients (d,) and covariance (d, d) of columns in their own units (`units.own_units`), a map of straight lines."""
    constant = own_units(rows, np.zeros(len(coef)))
    slopes = np.stack([own_units(rows, one) - constant for one in np.eye(len(coef))], axis=1)
    return own_units(rows, coef), slopes @ covariance @ slopes.T
