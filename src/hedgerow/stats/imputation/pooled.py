"""Rubin's rules: one fit from those of m completed copies, whose errors know that values were imputed.

    estimate   = mean of the copies' estimates
    within W   = mean of their covariances
    between B  = covariance of their estimates, with m - 1 in the denominator
    total T    = W + (1 + 1/m) B
    lambda     = (1 + 1/m) B / T, the share that is due to missing values
    df         = 1 / (1 / old + 1 / observed),  old = (m - 1) / lambda²,  observed = (df + 1) / (df + 3) df (1 - lambda)

Source : Rubin 1987; Barnard & Rubin 1999 (degrees of freedom).
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure, ForPapers
from hedgerow.report.numerals import show

from ..columns import upper_end
from ..design import Design
from ..linear.loss import Loss
from ..linear.losses import FamilyName, loss_of

if TYPE_CHECKING:
    import pandas

ASSUMED = (
    "that values are missing at random given the columns of the chain, and that its models hold at every site; "
    "a column that a site lacks wholly is filled by what other sites know"
)


class RubinPool(NamedTuple):
    """What Rubin's rules make of copies.

    Attributes
    ----------
    estimate : array of shape (d,)
    covariance : array of shape (d, d)
    df : array of shape (d,)
    share : array of shape (d,)
        Of the variance that is due to missing values: lambda.
    """

    estimate: Array
    covariance: Array
    df: Array
    share: Array


def rubin(estimates: Array, covariances: Array, df: float) -> RubinPool:
    """Pool m estimates (m, d) and their covariances (m, d, d), whose complete data would leave `df` degrees of freedom."""
    m = len(estimates)
    if m < 2 or covariances.shape != (m, estimates.shape[1], estimates.shape[1]):
        raise SettingsInvalid(
            f"estimates {estimates.shape} and covariances {covariances.shape}.", remedy="Give (m, d), (m, d, d)."
        )
    mean = estimates.mean(0)
    away = estimates - mean
    between = away.T @ away / (m - 1)
    total = covariances.mean(0) + (1 + 1 / m) * between
    share = (1 + 1 / m) * np.diag(between) / np.diag(total)
    with np.errstate(divide="ignore"):
        old = (m - 1) / share**2
    found = (df + 1) / (df + 3) * df * (1 - share)
    return RubinPool(mean, total, 1 / (1 / old + 1 / found), share)


@displayed
@dataclass(frozen=True, eq=False)
class PooledFit(ForPapers):
    """Estimates of a regression over completed copies, pooled by Rubin's rules, with d coefficients.

    Attributes
    ----------
    spec : Design
        Formula and columns.
    family : {"gaussian", "binomial", "poisson"}
    coefs : array of shape (m, d)
        Of the copies.
    covariances : array of shape (m, d, d)
    n_records : float
        Records, all of which count.
    imputed : dict of str to float
        For each incomplete column the share of records that lack it.
    sweeps, rounds : int
        Times that each column was drawn; questions asked.
    n_parties, n_missing : int
        Parties asked, and answers of theirs that never came.
    left, protection : str
        In words, as in `hedgerow.stats.Fit`.
    """

    spec: Design
    family: FamilyName
    coefs: Array
    covariances: Array
    n_records: float
    imputed: dict[str, float]
    sweeps: int
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str

    @property
    def law(self) -> Loss:
        """The family."""
        return loss_of(self.family)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.spec.names

    @property
    def copies(self) -> int:
        """How many."""
        return len(self.coefs)

    @property
    def pooled(self) -> RubinPool:
        """By Rubin's rules, with records less coefficients as degrees of freedom of complete data."""
        return rubin(self.coefs, self.covariances, self.n_records - self.coefs.shape[1])

    @property
    def coef_(self) -> Array:
        """Pooled coefficients, shape (d,)."""
        return self.pooled.estimate

    @property
    def covariance(self) -> Array:
        """Of `coef_`, shape (d, d)."""
        return self.pooled.covariance

    @property
    def se_(self) -> Array:
        """Standard errors, shape (d,)."""
        return np.asarray(np.sqrt(np.diag(self.pooled.covariance)))

    @property
    def df_(self) -> Array:
        """Degrees of freedom by Barnard and Rubin, shape (d,)."""
        return self.pooled.df

    @property
    def missing_share(self) -> Array:
        """Share of each coefficient's variance that is due to missing values, shape (d,)."""
        return self.pooled.share

    @property
    def statistic_(self) -> Array:
        """Coefficients over their standard errors, shape (d,)."""
        return np.asarray(self.coef_ / self.se_)

    @property
    def p_values(self) -> Array:
        """Two-sided, by Student's distribution, shape (d,)."""
        return np.asarray(2 * special.stdtr(self.df_, -np.abs(self.statistic_)))

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the coefficients, shape (d, 2)."""
        reach = special.stdtrit(self.df_, upper_end(level)) * self.se_
        return np.column_stack([self.coef_ - reach, self.coef_ + reach])

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """One row for each coefficient."""
        import pandas

        low, high = self.conf_int(level).T
        values = {
            "coef": self.coef_,
            "se": self.se_,
            "t": self.statistic_,
            "df": self.df_,
            "p": self.p_values,
            "low": low,
            "high": high,
            "missing share": self.missing_share,
        }
        if self.law.ratio:
            with np.errstate(over="ignore"):
                values[self.law.ratio] = np.exp(self.coef_)
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))

    def plot(self, level: float = 0.95, *, intercept: bool = False) -> Figure:
        """Draw the coefficients with their intervals, as SVG; the intercept is left out where it is not asked for."""
        from ..plots import coefficients_figure

        return coefficients_figure(self, level, intercept=intercept)

    def summary(self, level: float = 0.95) -> str:
        """The estimates as text, with what was imputed, what left each party and how it was protected."""
        frame = self.to_frame(level)
        shown = {str(name): [show(float(value)) for value in frame[name]] for name in frame}
        width = max(map(len, self.names))
        widths = {name: max(len(name), *map(len, cells)) for name, cells in shown.items()}
        lines = [
            f"hedgerow {self.law.title} over {self.copies} imputed copies",
            self.spec.formula,
            f"{self.n_parties} parties, {show(round(self.n_records))} records; lacking: "
            + ", ".join(f"{name} {100 * share:.1f} %" for name, share in self.imputed.items()),
            "",
            " " * width + "".join(f"  {name.rjust(widths[name])}" for name in shown),
            *(
                name.ljust(width) + "".join(f"  {cells[i].rjust(widths[key])}" for key, cells in shown.items())
                for i, name in enumerate(self.names)
            ),
            "",
        ]
        said = {
            "method": f"chained equations, {self.sweeps} sweeps; Rubin's rules; {100 * level:g} % intervals, Barnard and Rubin",
            "assumed": ASSUMED,
            "protection": self.protection,
            "left each party": self.left,
        }
        for heading, words in said.items():
            lines += textwrap.wrap(words, 79, initial_indent=heading.ljust(18), subsequent_indent=" " * 18)
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.summary()
