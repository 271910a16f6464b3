"""A fitted piecewise-exponential regression: hazard ratios, and the baseline hazard with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Curve, Figure, ForPapers, Outcome, Series
from hedgerow.report.numerals import show, show_column

from ..columns import schema_of, upper_end
from ..estimates import NormalEstimates
from ..provenance import provenance
from ..spline_curves import SplineCurves
from ..state import NewtonState, solve
from .cox_fit import ratio_figure, ratio_frame, records_of
from .design import SurvivalDesign, period_names, read_survival, rising
from .summary import answered, ratio_table, shown_count, survival_summary

if TYPE_CHECKING:
    import pandas


@displayed
@dataclass(frozen=True, eq=False)
class PiecewiseFit(NormalEstimates, ForPapers, SplineCurves):
    """Estimates of a piecewise-exponential regression, with K intervals and p coefficients.

    Attributes
    ----------
    spec : SurvivalDesign
    cuts : tuple of float
        Ends of all intervals but the last.
    coef_ : array of shape (p,)
        Logarithms of hazard ratios, for each unit of a column.
    log_hazards : array of shape (K,)
        Logarithms of the hazards of a record whose columns are zero.
    parameters_covariance : array of shape (K + p, K + p)
        Of `log_hazards` and `coef_`.
    events, at_risk : arrays of shape (K,)
        Events by interval, and time at risk; with an offset time is multiplied by its exponential.
    n_records, log_likelihood, null_log_likelihood, rounds, n_parties, n_missing, left, protection, cases
        As in `hedgerow.stats.CoxFit`; the null model has no columns.
    """

    spec: SurvivalDesign
    cuts: tuple[float, ...]
    coef_: Array
    log_hazards: Array
    parameters_covariance: Array
    events: Array
    at_risk: Array
    n_records: float
    log_likelihood: float
    null_log_likelihood: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    cases: LeftOut | None = None

    # ---- estimates --------------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.spec.names

    @property
    def covariance(self) -> Array:
        """Of `coef_`, shape (p, p)."""
        k = len(self.log_hazards)
        return self.parameters_covariance[k:, k:]

    @property
    def n_events(self) -> float:
        """Records with the event."""
        return float(self.events.sum())

    @property
    def aic(self) -> float:
        """Akaike's criterion; hazards count as parameters."""
        return 2 * len(self.parameters_covariance) - 2 * self.log_likelihood

    def hazard_ratios(self, level: float = 0.95) -> pandas.DataFrame:
        """Exponentials of coefficients and of their confidence intervals."""
        return self._ratios("hazard ratio", level)

    def test(self) -> tuple[float, int, float]:
        """Likelihood ratio test of all coefficients: statistic, degrees of freedom, p."""
        statistic = 2 * (self.log_likelihood - self.null_log_likelihood)
        return statistic, len(self.coef_), float(chdtrc(len(self.coef_), max(statistic, 0.0)))

    # ---- hazards ----------------------------------------------------------------------------------------------------
    def baseline(self, at: Any = None, level: float = 0.95) -> pandas.DataFrame:
        """Hazards by interval, with events, time at risk and crude rates.

        Parameters
        ----------
        at : table of any kind, optional
            One record, whose hazards are given; by default one whose columns are zero.
        level : float
            Of the intervals of hazards.

        Returns
        -------
        pandas.DataFrame
            A row for each interval: `events`, `time at risk`, `rate` (their quotient), `hazard`, `low`, `high`.
        """
        import pandas

        weights = self._weights(at)
        log, se = self._along(weights)
        reach = float(ndtri(upper_end(level))) * se
        values = {
            "events": self.events,
            "time at risk": self.at_risk,
            "rate": self.events / self.at_risk,
            "hazard": np.exp(log),
            "low": np.exp(log - reach),
            "high": np.exp(log + reach),
        }
        return pandas.DataFrame(values, index=pandas.Index(period_names(self.cuts), name="interval"))

    def survival(self, times: Any, at: Any = None, level: float = 0.95) -> pandas.DataFrame:
        """Expected survival at some times, with intervals that are symmetric on the scale log(-log).

        Parameters
        ----------
        times : sequence of float
            Zero or more.
        at : table of any kind, optional
            One record; by default one whose columns are zero.

        Returns
        -------
        pandas.DataFrame
            `time`, `survival`, `low`, `high`.
        """
        import pandas

        t = np.asarray(times, dtype=float)
        if t.ndim != 1 or not (t >= 0).all():
            raise SettingsInvalid("times are zero or more.", remedy="Give a list of times.")
        ends = np.array([0.0, *self.cuts, np.inf])
        spent = np.clip(t[:, None] - ends[:-1], 0.0, np.diff(ends))
        weights = self._weights(at)
        log, _ = self._along(weights)
        parts = spent * np.exp(log)
        cumulative = parts.sum(1)
        share = parts / np.where(cumulative > 0, cumulative, 1.0)[:, None]
        gradient = share @ weights
        se = np.sqrt(np.einsum("ti,ij,tj->t", gradient, self.parameters_covariance, gradient))
        reach = np.exp(float(ndtri(upper_end(level))) * se)
        values = {"time": t, "survival": np.exp(-cumulative)}
        values |= {"low": np.exp(-cumulative * reach), "high": np.exp(-cumulative / reach)}
        return pandas.DataFrame(values)

    def _weights(self, at: Any) -> Array:
        """What log hazards are made of, shape (K, K + p)."""
        k = len(self.log_hazards)
        x = np.zeros(len(self.coef_))
        if at is not None:
            columns, n = self.spec.rows.admitted(at)
            if n != 1:
                raise SettingsInvalid(f"{n} records.", remedy="Give one record, such as a data frame of one row.")
            x = self.spec.rows.matrix(columns, n)[0]
        return np.concatenate([np.eye(k), np.tile(x, (k, 1))], axis=1)

    def _along(self, weights: Array) -> tuple[Array, Array]:
        """Log hazards and their standard errors."""
        log = weights @ np.concatenate([self.log_hazards, self.coef_])
        return log, np.sqrt(np.einsum("ki,ij,kj->k", weights, self.parameters_covariance, weights))

    # ---- use --------------------------------------------------------------------------------------------------------
    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each coefficient."""
        return ratio_frame(self, level)

    def plot(self, level: float = 0.95) -> Figure:
        """Draw the coefficients with their intervals, as SVG."""
        return ratio_figure(self, level)

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        statistic, df, p = self.test()
        facts = [
            ("parties", answered(self.n_parties, self.n_missing)),
            ("records", records_of(self)),
            ("events", shown_count(self.cases, self.n_events)),
            ("intervals", str(len(self.log_hazards))),
            ("log-likelihood", show(self.log_likelihood)),
            ("likelihood ratio", f"{show(statistic)} on {df} df (p {show_column('p', [p])[0]})"),
            ("AIC", show(self.aic)),
        ]
        said = {"baseline hazard": f"one for all sites, constant in {', '.join(period_names(self.cuts))}: baseline()"}
        said |= {"protection": self.protection, "left each party": self.left}
        return survival_summary(
            "hedgerow piecewise-exponential regression",
            f"converged in {self.rounds} questions",
            self.spec.formula,
            facts,
            ratio_table(self.to_frame(level), level),
            said,
            None if self.cases is None else self.cases.sentence(),
        )

    def __str__(self) -> str:
        return self.summary()


def piecewise_fit(
    federation: Federation, settings: Mapping[str, Any], state: NewtonState, asked_before: int = 0
) -> PiecewiseFit:
    """Turn the last state of `piecewise_newton` into a fit; arguments as `hedgerow.stats.cox_fit`."""
    given = {key: settings.get(key) for key in ("time", "event", "entry", "offset")}
    spec, cuts = read_survival(schema_of(federation), settings["formula"], **given), rising(settings["cuts"])
    k, inverse = len(cuts) + 1, solve(state.information, np.eye(len(state.beta)))
    return PiecewiseFit(
        spec=spec,
        cuts=cuts,
        coef_=state.beta[k:],
        log_hazards=state.beta[:k],
        parameters_covariance=(inverse + inverse.T) / 2,
        events=state.kept["events_by_interval"],
        at_risk=state.kept["at_risk"],
        n_records=state.n,
        log_likelihood=-state.deviance / 2,
        null_log_likelihood=-float(state.kept["null"]) / 2,
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
    )


def show_piecewise(federation: Federation, settings: Mapping[str, Any], state: NewtonState) -> Outcome:
    """Show the fit: coefficients, hazard ratios, the baseline, and the summary."""
    fit = piecewise_fit(federation, settings, state)
    frame, hazards = fit.to_frame(), fit.baseline()
    tables = {
        "Coefficients": frame,
        "Hazard ratios": fit.hazard_ratios().rename_axis("column"),
        "Baseline hazard": hazards,
    }
    ends = np.array([0.0, *fit.cuts])
    crude = Series("events over time at risk", tuple(ends.tolist()), tuple(hazards["rate"].tolist()))
    curve = Curve("Rate of events", "from", "rate", (crude,), note="Of each interval, drawn where it begins.")
    metrics = {"log-likelihood": fit.log_likelihood, "AIC": fit.aic}
    counted = {"records": float(fit.n_records), "events": float(hazards["events"].sum())}
    return Outcome(
        metrics, tables=tables, curves=(curve,), text={"Summary": fit.summary()}, coefficients=frame, counted=counted
    )
