"""A fitted regression: estimates and inference, with the conventions of statsmodels' OLS, Logit, Poisson and GLM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import MissingColumn, SettingsInvalid, suggestion
from hedgerow.report import Figure, ForPapers

from .columns import is_exact, upper_end
from .design import Design
from .linear.loss import Loss
from .linear.losses import FamilyName, loss_of
from .provenance import provenance
from .sandwich import Errors, sandwich_of
from .spline_curves import SplineCurves, wald_test
from .state import NewtonState, solve

if TYPE_CHECKING:
    import pandas


@displayed
@dataclass(frozen=True, eq=False)
class Fit(ForPapers, SplineCurves):
    """Estimates of a regression, with d coefficients.

    Attributes
    ----------
    spec : Design
        Formula and columns.
    family : {"gaussian", "binomial", "poisson", "gamma", "negative binomial"}
    coef_ : array of shape (d,)
        Binomial: log-odds for each unit of a column. Counts and gamma: logarithms of ratios of means.
    covariance : array of shape (d, d)
        Of `coef_`; without the noise of a private channel.
    dispersion : float
        Gaussian: residual variance. Gamma: squared coefficient of variation. Others: 1.
    n_records : float
        Records, or the sum of their weights, which count as repeated records.
    deviance, total_squares, target_mean : float or None
        Residual sum of squares, or minus twice the log-likelihood, for counts and gamma in excess of a perfect fit (but
        not where alpha was estimated);
        squares of the target (about its mean where the columns span a constant); mean of the target. `None` where the
        channel left them out.
    rounds : int
        Questions asked.
    n_parties, n_missing : int
        Parties asked, and answers of theirs that never came.
    left : str
        What left each party, in words.
    protection : str
        How it was protected, in words.
    saturated, null_deviance : float or None
        Log-likelihood of a perfect fit (gamma: without terms in the dispersion), and deviance of a constant alone.
    alpha, alpha_se : float or None
        Of a negative binomial, whose variance is m + alpha m^2; without an error where alpha was given.
    method : str
        How it was estimated, in words; empty for maximum likelihood.
    cases : LeftOut or None
        Records that lack a value of the formula; None where none may.
    errors : {"model", "HC0", "HC1", "HC2", "HC3", "cluster", "party"}
        What `covariance` is made of; see `hedgerow.stats.sandwich`.
    n_clusters : float or None
        Of clustered errors.
    """

    spec: Design
    family: FamilyName
    coef_: Array
    covariance: Array
    dispersion: float
    n_records: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    deviance: float | None = None
    total_squares: float | None = None
    target_mean: float | None = None
    saturated: float | None = None
    null_deviance: float | None = None
    alpha: float | None = None
    alpha_se: float | None = None
    method: str = ""
    cases: LeftOut | None = None
    errors: Errors = "model"
    n_clusters: float | None = None

    @property
    def law(self) -> Loss:
        """The family."""
        return loss_of(self.family)

    # ---- estimates --------------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.spec.names

    @property
    def df_residual(self) -> float:
        """Records beyond the coefficients."""
        return self.n_records - len(self.coef_)

    @property
    def se_(self) -> Array:
        """Standard errors, shape (d,)."""
        se: Array = np.sqrt(np.diag(self.covariance))
        return se

    @property
    def statistic_(self) -> Array:
        """Coefficients over their standard errors, shape (d,): t for a linear regression and for clusters, z otherwise."""
        return self.coef_ / self.se_

    @property
    def df_inference(self) -> float | None:
        """Degrees of freedom of t: clusters less one, or residual ones of a linear regression; None where z is meant."""
        if self.n_clusters is not None:
            return self.n_clusters - 1
        return self.df_residual if self.law.quadratic else None

    def wald(self, names: Sequence[str]) -> tuple[float, float, float]:
        """Test that several coefficients are all zero, such as those of a category: statistic, their number, p.

        The statistic is F where there are degrees of freedom for it, chi-squared over their number otherwise.

        Raises
        ------
        MissingColumn (HR-403)
            A coefficient has another name.
        """
        for name in names:
            if name not in self.names:
                raise MissingColumn(f"no coefficient is called {name!r}.", remedy=suggestion(name, self.names))
        contrasts = np.eye(len(self.coef_))[[self.names.index(name) for name in names]]
        return wald_test(self.coef_, self.covariance, contrasts, self.df_inference)

    @property
    def p_values(self) -> Array:
        """Two-sided p-values, shape (d,)."""
        below = -np.abs(self.statistic_)
        df = self.df_inference
        p: Array = 2 * (special.ndtr(below) if df is None else special.stdtr(df, below))
        return p

    def conf_int(self, level: float = 0.95) -> Array:
        """Confidence intervals of the coefficients, shape (d, 2)."""
        share = upper_end(level)
        df = self.df_inference
        reach = special.ndtri(share) if df is None else special.stdtrit(df, share)
        return np.column_stack([self.coef_ - reach * self.se_, self.coef_ + reach * self.se_])

    def odds_ratios(self, level: float = 0.95) -> pandas.DataFrame:
        """Exponentials of coefficients and of their confidence intervals.

        Raises
        ------
        SettingsInvalid (HR-511)
            The fit is of a linear regression, whose coefficients are no logarithms of ratios.
        """
        import pandas

        if self.law.quadratic:
            raise SettingsInvalid("a linear regression has no odds ratios.", remedy="Take conf_int() or to_frame().")

        with np.errstate(over="ignore"):
            values = np.exp(np.column_stack([self.coef_, self.conf_int(level)]))
        return pandas.DataFrame(values, index=list(self.names), columns=["odds ratio", "low", "high"])

    # ---- goodness of fit --------------------------------------------------------------------------------------------
    @property
    def n_events(self) -> float | None:
        """Records whose target is 1, of a binary target."""
        if not self.law.binary or self.target_mean is None:
            return None
        return self.n_records * self.target_mean

    @property
    def log_likelihood(self) -> float | None:
        """Of the fit; `None` through a channel that clips or adds noise, since a record moves it without bound."""
        return self._log_likelihood(self.deviance)

    @property
    def null_log_likelihood(self) -> float | None:
        """Of a constant alone; `None` where it would take another fit: a binary target with an offset, gamma, NB2."""
        if self.law.quadratic:
            return self._log_likelihood(self.total_squares)
        if not self.law.binary:
            return None if self.null_deviance is None or self.saturated is None else self.saturated - self.null_deviance / 2
        if self.target_mean is None or self.spec.offset:
            return None
        p = self.target_mean
        return self.n_records * (p * math.log(p) + (1 - p) * math.log1p(-p))

    @property
    def n_parameters(self) -> int:
        """Coefficients, and alpha where it was estimated."""
        return len(self.coef_) + (self.alpha_se is not None)

    @property
    def aic(self) -> float | None:
        """Akaike's criterion."""
        found = self.log_likelihood
        return None if found is None else 2 * self.n_parameters - 2 * found

    @property
    def bic(self) -> float | None:
        """Schwarz's criterion."""
        found = self.log_likelihood
        return None if found is None else math.log(self.n_records) * self.n_parameters - 2 * found

    @property
    def r_squared(self) -> float | None:
        """Linear: share of the target's squares that is explained. Others: McFadden's 1 - log-likelihood / null's."""
        if self.law.quadratic:
            return None if self.deviance is None or not self.total_squares else 1 - self.deviance / self.total_squares
        found, null = self.log_likelihood, self.null_log_likelihood
        return None if found is None or not null else 1 - found / null

    @property
    def adjusted_r_squared(self) -> float | None:
        """R squared of a linear regression, adjusted for the number of coefficients."""
        if not self.law.quadratic or self.r_squared is None:
            return None
        return 1 - (1 - self.r_squared) * (self.n_records - self.spec.has_constant) / self.df_residual

    @property
    def f_test(self) -> tuple[float, float] | None:
        """F statistic of all coefficients but the constant's, and its p-value; of a linear regression."""
        df = len(self.coef_) - self.spec.has_constant
        if not self.law.quadratic or self.deviance is None or self.total_squares is None or df == 0:
            return None
        if self.errors != "model":
            return self.wald([name for name in self.names if name != "Intercept"])[::2] if "Intercept" in self.names else None
        statistic = (self.total_squares - self.deviance) / df / self.dispersion
        return statistic, float(special.fdtrc(df, self.df_residual, statistic))

    def _log_likelihood(self, deviance: float | None) -> float | None:
        if deviance is None or self.spec.probability:  # weights of probability make no likelihood of the sample
            return None
        if self.law.binary:
            return -deviance / 2
        if not self.law.quadratic:
            return None if self.saturated is None else self._log_likelihood_of_means(deviance, self.saturated)
        with np.errstate(divide="ignore"):
            return float(-self.n_records / 2 * (np.log(2 * np.pi * deviance / self.n_records) + 1))

    def _log_likelihood_of_means(self, deviance: float, saturated: float) -> float:
        if not self.law.has("pearson"):
            return saturated - deviance / 2
        shape = 1 / self.dispersion
        kernel = shape * math.log(shape) - shape - float(special.gammaln(shape))
        return self.n_records * kernel - shape * deviance / 2 + saturated

    # ---- use --------------------------------------------------------------------------------------------------------
    def predict(self, frame: Any) -> Array:
        """Expected target of new records: a probability for a logistic regression, a mean for counts.

        Parameters
        ----------
        frame : table of any kind
            The columns of the formula's right-hand side, offset included, within their declared ranges and levels: a data frame
            of any library, as `hedgerow.data.Table.from_frame` takes them, or a `Table`.

        Returns
        -------
        array of shape (n,)

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        """
        return self.law.mean(self.spec.predictor(self.coef_, frame))

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each coefficient."""
        import pandas

        low, high = self.conf_int(level).T
        values = {
            "coef": self.coef_,
            "se": self.se_,
            "z" if self.df_inference is None else "t": self.statistic_,
            "p": self.p_values,
            "low": low,
            "high": high,
        }
        if self.law.ratio:
            with np.errstate(over="ignore"):
                values[self.law.ratio] = np.exp(self.coef_)
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))

    def plot(self, level: float = 0.95, *, intercept: bool = False) -> Figure:
        """Draw the coefficients with their intervals, as SVG; the intercept is left out where it is not asked for."""
        from .plots import coefficients_figure

        return coefficients_figure(self, level, intercept=intercept)

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        from .summary import summarise

        return summarise(self, level)

    def __str__(self) -> str:
        return self.summary()


def fit_of(
    federation: Federation,
    spec: Design,
    family: FamilyName,
    state: NewtonState,
    asked_before: int = 0,
    *,
    alpha: float | None = None,
    errors: Errors = "model",
) -> Fit:
    """Turn the last state of `newton` into a fit; `asked_before` is the length of the ledger before its first question."""
    exact = is_exact(federation)
    dispersion = _dispersion(state, family)
    if exact:
        inverse = solve(state.information, np.eye(spec.size))
    else:  # the information holds noise, and its inverse would pass for certainty
        inverse = np.full((spec.size, spec.size), np.nan)
    robust = errors != "model" and "meat" in state.kept
    covariance = sandwich_of(state, errors) if robust else dispersion * (inverse + inverse.T) / 2
    return Fit(
        spec=spec,
        family=family,
        coef_=state.beta,
        covariance=covariance,
        dispersion=dispersion,
        n_records=float(state.kept["rows"]) if spec.probability and robust else state.n,
        errors=errors,
        n_clusters=float(state.kept["clusters"]) if robust and "clusters" in state.kept else None,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        deviance=state.deviance if exact else None,
        total_squares=(state.total_squares if spec.has_constant else state.raw_squares) if exact else None,
        target_mean=state.mean if exact else None,
        saturated=state.saturated if exact and loss_of(family).has("saturated") else None,
        null_deviance=state.null_deviance if exact and math.isfinite(state.null_deviance) and family == "poisson" else None,
        alpha=alpha if family == "negative binomial" else None,
    )


def _dispersion(state: NewtonState, family: FamilyName) -> float:
    """Residual variance; NaN where noise left nothing of it."""
    if not loss_of(family).free_dispersion:
        return 1.0
    df = state.n - len(state.beta)
    if loss_of(family).has("pearson"):
        return state.pearson / df
    return state.deviance / df if df > 0 and state.deviance >= 0 else float("nan")
