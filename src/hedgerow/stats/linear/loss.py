"""A loss of a linear predictor: what one record adds to a sum, and how much that can be.

    value       the loss; of a likelihood half the deviance
    slope       its derivative by the linear predictor
    curvature   its second derivative, or what stands for it: the expected one of a likelihood, that of a rounded corner

One curvature serves for everything: steps are the slopes over it, and standard errors come from its inverse at the last point.
Where the link is canonical (gaussian, binomial, poisson) the observed one and the expected one are the same. Where it is not,
the expected one gives Fisher scoring and the standard errors of statsmodels' GLM, as of gamma and negative binomial; steps
then shrink by one factor in each round, so that a fit may take tens of rounds: allow more with `max_rounds`. Over hidden rows
such a fit ends a few thousandths of a standard error before the maximum. The observed one converges in a few rounds and gives
other standard errors; it must not be below zero.

A new loss is a file with a function of these parts and a `Loss` of it, of twenty to thirty lines, and a line in
`hedgerow.stats.linear.losses`. It needs, besides:

    parts that are finite at any predictor up to `FARTHEST`, and `most` of a part that is not largest at an end of a range
    a link, which gives the constant fit for the share of the deviance that is explained
    of a likelihood with a binary target: `value` is minus the log-likelihood

`regression(family=...)` and `fit_of` then fit it, and the tests of all losses are its own too. What it does not get by
itself: a program that studies name (a decorator in `hedgerow.stats.regression`), noise (a line in `hedgerow.stats.noisy`, if
its sums have a bound at every point), a penalty, and, of a binary target, metrics and curves, unless it is a log-odds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from hedgerow.core.arrays import Array

from ..expressions import Interval

Parts = Mapping[str, Callable[[], Array]]

FARTHEST = 300.0
"""Linear predictors of a log link beyond this are cut off: exponentials stay finite, and the step is halved."""


@dataclass(frozen=True)
class Loss:
    """What differs between regressions.

    Attributes
    ----------
    name : str
    parts : callable
        `(y, eta, width) -> parts` of records: target and linear predictor of shape (..., n), and the width of a corner or of
        a parabola. Every part is an array of that shape, computed when it is asked for. Besides `value`, `slope` and
        `curvature`: `smooth`, the value with its corner rounded; `saturated`, the log-likelihood of a perfect fit (of a gamma
        up to terms in the dispersion); `pearson`, the squared residual in units of its variance.
    most : callable
        `(eta, residual, width) -> largest absolute values` of some parts, given the largest absolute predictor and residual.
        Other parts are largest where target and predictor are at an end of their ranges.
    mean, link : callable
        From the linear predictor to the expected target, and back: the link gives the fit of a constant alone.
    title : str
        Of a regression by this likelihood.
    ratio : str
        What the exponential of a coefficient is, such as a ratio of means; empty where it means nothing.
    reads : str
        The family whose targets it reads, where it is no likelihood.
    binary, counts, positive : bool
        Whether the target is 0 or 1, zero or more, above zero; a number otherwise.
    quadratic : bool
        Whether it is half a squared error, which one step minimises.
    log_link : bool
        Whether the mean is the exponential of the linear predictor.
    log_odds : bool
        Whether the linear predictor is the log-odds of a binary target, as metrics of probabilities take it.
    power : float
        Of the mean, which the variance is in proportion to, where that is 1 or 2 and the link a logarithm: then sums at one
        constant follow from those at another.
    free_dispersion : bool
        Whether a variance is estimated besides the coefficients.
    counted : float
        How often a gradient descent counts it: twice of a gaussian, so that its mean is the mean squared error.
    """

    name: str
    parts: Callable[[Array, Array, float], Parts]
    most: Callable[[float, float, float], Mapping[str, float]] = lambda eta, residual, width: {}
    mean: Callable[[Array], Array] = lambda eta: eta
    link: Callable[[Array], Array] = lambda mean: mean
    title: str = ""
    ratio: str = ""
    reads: str = ""
    binary: bool = False
    counts: bool = False
    positive: bool = False
    quadratic: bool = False
    log_link: bool = False
    log_odds: bool = False
    power: float = 0.0
    free_dispersion: bool = False
    counted: float = 1.0

    def part(self, name: str, y: Array, eta: Array, width: float = 0.0) -> Array:
        """One part of records: targets and predictors of shape (..., n), as is the result."""
        return self.parts(y, eta, width)[name]()

    @property
    def ratios(self) -> str:
        """Title of a table of exponentials of coefficients."""
        return self.ratio.replace("ratio", "ratios", 1).capitalize()

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of its parts."""
        return frozenset(self.parts(np.ones(1), np.zeros(1), 1.0))

    def has(self, name: str) -> bool:
        """Whether there is such a part."""
        return name in self.names

    def deviance(self, y: Array, eta: Array) -> Array:
        """Twice the log-likelihood by which records fall short of a perfect fit; of a gaussian the squared error."""
        return 2.0 * self.part("value", y, eta)

    def limits(self, target: Interval, eta: Interval, width: float = 0.0) -> dict[str, float]:
        """Largest absolute value of each part of a record in these ranges; infinite or NaN where they do not hold it."""
        y, at = (np.array(values) for values in zip(*product(target, eta), strict=True))
        with np.errstate(all="ignore"):
            found = {name: float(np.abs(part()).max()) for name, part in self.parts(y, at, width).items()}
            farthest, residual = float(np.abs(at).max()), float(np.abs(y - at).max())
        return found | dict(self.most(farthest, residual, width))


def exponential(eta: Array) -> Array:
    """The mean behind a log link."""
    found: Array = np.exp(np.clip(eta, -FARTHEST, FARTHEST))
    return found
