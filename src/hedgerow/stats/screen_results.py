"""Score tests of many columns: effects, statistics and p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc, stdtr

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.report import ForPapers

from .linear.losses import FamilyName

if TYPE_CHECKING:
    import pandas


@displayed
@dataclass(frozen=True, eq=False)
class Screen(ForPapers):
    """Score tests of columns beside a null model.

    Attributes
    ----------
    formula : str
        Of the null model.
    family : {"gaussian", "binomial", "poisson"}
    names : tuple of str
        The columns asked for.
    u, v : arrays of shape (m,)
        Scores and their variances in units of the dispersion; zero for a column that the null model spans.
    n, dispersion : float
    df_residual : float
        Of the null model with one column more.
    screened : int
        Columns in all, of which `names` may be the best.
    left, protection : str
        In words, as in `hedgerow.stats.Fit`.
    """

    formula: str
    family: FamilyName
    names: tuple[str, ...]
    u: Array
    v: Array
    n: float
    dispersion: float
    df_residual: float
    screened: int
    left: str
    protection: str

    @property
    def effect(self) -> Array:
        """Coefficients, shape (m,): of a linear model the estimates, of others the first Newton step from the null model."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Array = np.where(self.v > 0, self.u / self.v, np.nan)
        return found

    @property
    def chi_square(self) -> Array:
        """Score statistics, shape (m,), with one degree of freedom each."""
        return np.asarray(self.effect * self.u / self.dispersion)

    @property
    def z(self) -> Array:
        """Their signed roots."""
        return np.asarray(np.sign(self.u) * np.sqrt(self.chi_square))

    @property
    def p_values(self) -> Array:
        """Shape (m,): of a linear model by its t test, of others by the chi-square distribution."""
        if self.family != "gaussian":
            return np.asarray(chdtrc(1, self.chi_square))
        gain = self.effect * self.u
        left = self.dispersion * (self.df_residual + 1) - gain
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.sqrt(gain / (np.maximum(left, 0.0) / self.df_residual))
        return np.asarray(2 * stdtr(self.df_residual, -t))

    @property
    def adjusted(self) -> Array:
        """p-values by Holm, for as many tests as there were columns, shape (m,)."""
        p = self.p_values
        order = np.argsort(np.where(np.isnan(p), np.inf, p), kind="stable")
        steps = np.maximum.accumulate((self.screened - np.arange(len(p))) * p[order])
        found = np.empty(len(p))
        found[order] = np.minimum(steps, 1.0)
        return found

    def to_frame(self) -> pandas.DataFrame:
        """One row for each column."""
        import pandas

        values = {
            "effect": self.effect,
            "z": self.z,
            "chi-square": self.chi_square,
            "p": self.p_values,
            "p (Holm)": self.adjusted,
        }
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))
