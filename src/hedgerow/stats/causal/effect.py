"""Effects of a treatment, and how alike the groups are before and after they were weighed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from hedgerow.core.arrays import Array
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.report import Dots, Figure, ForPapers
from hedgerow.report.numerals import show

from ..columns import upper_end
from ..factors import INTERCEPT
from .weights import ESTIMANDS, Weighting

if TYPE_CHECKING:
    import pandas

IMBALANCE = 0.1
WIDTH = 79


@displayed
@dataclass(frozen=True, eq=False)
class Balance:
    """Standardised differences of the columns of a propensity score, treated less others, before and after weighting.

    Both are in units of the groups' own spread before: `sqrt((s1² + s0²) / 2)`, so that they can be compared.

    Attributes
    ----------
    names : tuple of str
    before, after : arrays of shape (k,)
    means, weighted : arrays of shape (2, k)
        Means of the others and of the treated, as they are and as weighed.
    """

    names: tuple[str, ...]
    before: Array
    after: Array
    means: Array
    weighted: Array

    @classmethod
    def of(cls, names: tuple[str, ...], found: Mapping[str, Array]) -> Balance:
        """From means and variances by arm of the columns of a design, of which the constant is left out."""
        kept = [i for i, name in enumerate(names) if name != INTERCEPT]
        before, after = found["before"][:, kept], found["after"][:, kept]
        spread = np.sqrt(found["variance"][:, kept].mean(0))
        with np.errstate(invalid="ignore", divide="ignore"):
            gaps = [np.where(spread > 0, (means[1] - means[0]) / spread, 0.0) for means in (before, after)]
        return cls(tuple(names[i] for i in kept), gaps[0], gaps[1], before, after)

    @property
    def largest(self) -> float:
        """The largest difference that is left, whatever its sign."""
        return float(np.abs(self.after).max(initial=0.0))

    def to_frame(self) -> pandas.DataFrame:
        """One row for each column."""
        import pandas

        values = {
            "treated": self.means[1],
            "others": self.means[0],
            "difference before": self.before,
            "treated, weighed": self.weighted[1],
            "others, weighed": self.weighted[0],
            "difference after": self.after,
        }
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))

    def dots(self) -> Dots:
        """The love plot: sizes of differences, before and after."""
        marks = (("before", tuple(np.abs(self.before).tolist())), ("after", tuple(np.abs(self.after).tolist())))
        return Dots("Balance", "standardised difference", self.names or ("none",), marks, line=IMBALANCE)

    def plot(self) -> Figure:
        """Draw the love plot, as SVG."""
        return Figure(self.dots())


@displayed
@dataclass(frozen=True, eq=False)
class Effect(ForPapers):
    """The effect of a treatment, as a difference of means.

    Attributes
    ----------
    formula : str
        Of the propensity score.
    outcome : str
        What is compared; of a category the indicator of its second level.
    weighting : {"inverse", "treated", "overlap"}
    robust : bool
        Whether the outcome was modelled too.
    trim : float
        Scores were held within [trim, 1 - trim].
    treatment : str
        What makes a record a treated one.
    mean : array of shape (2,)
        Of the outcome: others, treated, as weighted.
    covariance : array of shape (2, 2)
        Of `mean`: the sandwich of all stages; NaN where there is noise.
    n : array of shape (2,)
        Records by arm.
    beyond : float
        Records whose score was held.
    balance : Balance or None
    rounds, n_parties, n_missing, left, protection, cases
        As in `hedgerow.stats.Fit`.
    """

    formula: str
    outcome: str
    weighting: Weighting
    robust: bool
    trim: float
    treatment: str
    mean: Array
    covariance: Array
    n: Array
    beyond: float
    balance: Balance | None
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None

    @property
    def effect(self) -> float:
        """Mean of the treated less mean of the others."""
        return float(self.mean[1] - self.mean[0])

    @property
    def se(self) -> float:
        """Standard error of the effect."""
        contrast = np.array([-1.0, 1.0])
        return float(np.sqrt(contrast @ self.covariance @ contrast))

    @property
    def p_value(self) -> float:
        """Two-sided, by the normal distribution."""
        return float(2 * ndtr(-abs(self.effect) / self.se)) if self.se > 0 else float("nan")

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the effect."""
        reach = float(ndtri(upper_end(level))) * self.se
        return self.effect - reach, self.effect + reach

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Rows for both means and their difference."""
        import pandas

        reach = float(ndtri(upper_end(level)))
        values = np.array([self.mean[1], self.mean[0], self.effect])
        errors = np.sqrt([self.covariance[1, 1], self.covariance[0, 0], self.se**2])
        names = ["mean if treated", "mean if not", "effect"]
        if self.weighting != "inverse":
            names = ["mean of the treated", "mean of the others, weighed", "effect"]
        if self.weighting == "overlap":
            names = ["mean of the treated, weighed", "mean of the others, weighed", "effect"]
        frame = {"estimate": values, "se": errors, "low": values - reach * errors, "high": values + reach * errors}
        return pandas.DataFrame(frame, index=pandas.Index(names, name="outcome"))

    def plot(self) -> Figure:
        """Draw the balance of columns before and after, as SVG; nothing where it was not asked."""
        return Figure() if self.balance is None else self.balance.plot()

    def summary(self, level: float = 0.95) -> str:
        """The effect as text, with what left each party and how it was protected."""
        low, high = self.conf_int(level)
        method = "augmented inverse probability weighting" if self.robust else f"{self.weighting} weighting"
        spread = (
            f"se {show(self.se)}, {100 * level:g} % interval {show(low)} to {show(high)}, p {show(self.p_value)}"
            if np.isfinite(self.se)
            else "no standard error: nothing here knows the noise"
        )
        said = [
            f"hedgerow {method}: {ESTIMANDS[self.weighting]}",
            f"{self.outcome}, score {self.formula}",
            f"treated {show(round(float(self.n[1])))}, others {show(round(float(self.n[0])))}",
            *([] if self.cases is None else [self.cases.sentence()]),
            "",
            f"effect {show(self.effect)}   {spread}",
            f"mean if treated {show(float(self.mean[1]))}, if not {show(float(self.mean[0]))}",
            "",
        ]
        if self.balance is not None:
            said.append(
                f"largest standardised difference {np.abs(self.balance.before).max(initial=0):.3f} before, "
                f"{self.balance.largest:.3f} after"
            )
        if self.trim:
            said.append(f"scores of {show(round(self.beyond))} records were held within {self.trim:g} and {1 - self.trim:g}")
        said.append(
            "errors know that scores" + (" and models" if self.robust else "") + " were estimated"
            if np.isfinite(self.se)
            else ""
        )
        for heading, words in (("protection", self.protection), ("left each party", self.left)):
            said += textwrap.wrap(words, WIDTH, initial_indent=heading.ljust(18), subsequent_indent=" " * 18)
        return "\n".join(line.rstrip() for line in said)

    def __str__(self) -> str:
        return self.summary()
