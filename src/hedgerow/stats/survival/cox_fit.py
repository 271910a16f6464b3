"""A fitted Cox regression: hazard ratios and inference, with the conventions of R's coxph."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure, ForPapers, Intervals, Outcome
from hedgerow.report.numerals import show, show_column

from ..columns import schema_of
from ..estimates import NormalEstimates
from ..provenance import provenance
from ..spline_curves import SplineCurves
from ..state import NewtonState, solve
from .concordance import concordance_of
from .design import SurvivalDesign, read_survival
from .risk_sets import Ties
from .summary import answered, ratio_table, shown_count, survival_summary

if TYPE_CHECKING:
    import pandas

FEW_CLUSTERS = 20
"""With fewer clusters robust errors are too small, and the summary says so."""
BASELINE = (
    "each site's own, of any shape; it stays at the site, and so do its risk sets: sites' hazards are not compared. "
    "A baseline in common: piecewise_exponential"
)

SHARED = "what left the parties is nearly their records; they were said to share them"


@displayed
@dataclass(frozen=True, eq=False)
class CoxFit(NormalEstimates, ForPapers, SplineCurves):
    """Estimates of a Cox regression, with d coefficients.

    Attributes
    ----------
    spec : SurvivalDesign
    ties : {"efron", "breslow"}
    coef_ : array of shape (d,)
        Logarithms of hazard ratios, for each unit of a column.
    covariance, model_covariance : arrays of shape (d, d)
        Of `coef_`: as errors were asked for, and from the information.
    n_records, n_events : float
        Records, and those with the event.
    log_likelihood, null_log_likelihood : float
        Of the fit, and of hazard ratios of one.
    score_statistic : float
        Of the score test of all coefficients.
    concordance, concordance_se : float
        Of pairs within strata, and so within sites; NaN where it was not asked.
    n_clusters : float or None
        Of robust errors.
    robust : bool
        Whether errors follow from score residuals.
    rounds, n_parties, n_missing, left, protection, cases
        As in `hedgerow.stats.Fit`.
    most : float or None
        Most records of a party, as they were declared.
    pooled : bool
        Whether risk sets were those of all parties together, which share their records.
    """

    spec: SurvivalDesign
    ties: Ties
    coef_: Array
    covariance: Array
    model_covariance: Array
    n_records: float
    n_events: float
    log_likelihood: float
    null_log_likelihood: float
    score_statistic: float
    rounds: int
    n_parties: int
    n_missing: int
    left: str
    protection: str
    concordance: float = math.nan
    concordance_se: float = math.nan
    n_clusters: float | None = None
    robust: bool = False
    cases: LeftOut | None = None
    most: float | None = None
    pooled: bool = False

    # ---- estimates --------------------------------------------------------------------------------------------------
    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        return self.spec.names

    def hazard_ratios(self, level: float = 0.95) -> pandas.DataFrame:
        """Exponentials of coefficients and of their confidence intervals."""
        return self._ratios("hazard ratio", level)

    # ---- goodness of fit --------------------------------------------------------------------------------------------
    @property
    def aic(self) -> float:
        """Akaike's criterion, of the partial likelihood."""
        return 2 * len(self.coef_) - 2 * self.log_likelihood

    def tests(self) -> pandas.DataFrame:
        """Likelihood ratio, Wald and score test of all coefficients; Wald's with the errors of the fit."""
        import pandas

        wald = float(self.coef_ @ solve(self.covariance, self.coef_))
        ratio = 2 * (self.log_likelihood - self.null_log_likelihood)
        df = len(self.coef_)
        found = {"likelihood ratio": ratio, "Wald": wald, "score": self.score_statistic}
        values = [(value, df, float(chdtrc(df, max(value, 0.0)))) for value in found.values()]
        return pandas.DataFrame(values, index=pandas.Index(found, name="test"), columns=["statistic", "df", "p"])

    def schoenfeld(self, federation: Federation, transform: str = "time", method: str = "score") -> pandas.DataFrame:
        """Test proportional hazards; as `hedgerow.stats.schoenfeld`, which asks once more."""
        from .schoenfeld import schoenfeld

        return schoenfeld(federation, self, transform, method)  # type: ignore[arg-type]

    # ---- use --------------------------------------------------------------------------------------------------------
    def predict(self, frame: Any) -> Array:
        """Hazard of new records relative to that of a record whose columns are zero, in the same stratum; shape (n,).

        Parameters
        ----------
        frame : table of any kind
            The columns of the formula's right-hand side.

        Raises
        ------
        SettingsInvalid (HR-511)
            Coefficients change with time, and so does the ratio.
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        """
        if self.spec.cuts:
            raise SettingsInvalid("hazard ratios change at the cuts.", remedy="Take hazard_ratios(), period by period.")
        ratio: Array = np.exp(self.spec.rows.predictor(self.coef_, frame))
        return ratio

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each coefficient."""
        return ratio_frame(self, level)

    def plot(self, level: float = 0.95) -> Figure:
        """Draw the coefficients with their intervals, as SVG."""
        return ratio_figure(self, level)

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        test, score = self.tests(), self.concordance
        facts = [
            ("parties", answered(self.n_parties, self.n_missing)),
            ("records", records_of(self)),
            ("events", shown_count(self.cases, self.n_events)),
            ("log-likelihood", show(self.log_likelihood)),
            ("likelihood ratio", _test(test, "likelihood ratio")),
            ("Wald", _test(test, "Wald")),
            ("score", _test(test, "score")),
            ("concordance", f"{show(score)} (se {show(self.concordance_se)})" if math.isfinite(score) else None),
        ]
        said = {"strata": ", ".join(["site", *self.spec.strata]), "ties": self.ties.capitalize(), "baseline hazard": BASELINE}
        if self.pooled:
            said = {"strata": "none: risk sets of all parties together", "ties": said["ties"], "disclosure": SHARED}
        said |= {"errors": self._errors()} if self.robust else {}
        said |= {"protection": self.protection, "left each party": self.left}
        return survival_summary(
            f"hedgerow Cox regression, {'of shared records' if self.pooled else 'stratified by site'}",
            f"converged in {self.rounds} questions",
            self.spec.formula,
            facts,
            ratio_table(self.to_frame(level), level),
            said,
            None if self.cases is None else self.cases.sentence(),
        )

    def _errors(self) -> str:
        n, by = self.n_clusters or 0.0, self.spec.cluster
        words = f"robust, by score residuals; {show(round(n))} clusters{f' by {by}' if by else ', each record one'}"
        few = "; so few clusters make errors too small" if n < FEW_CLUSTERS else ""
        apart = by is None and self.spec.probability is None
        note = "" if apart else "; the likelihood ratio and score tests know nothing of clusters and weights, Wald's does"
        return words + few + note

    def __str__(self) -> str:
        return self.summary()


def ratio_frame(fit: Any, level: float) -> pandas.DataFrame:
    """Coefficients, errors, z, p, intervals, and hazard ratios, of a fit of survival."""
    import pandas

    low, high = fit.conf_int(level).T
    with np.errstate(over="ignore"):
        ratio = np.exp(fit.coef_)
    values = {"coef": fit.coef_, "se": fit.se_, "z": fit.statistic_, "p": fit.p_values, "low": low, "high": high}
    return pandas.DataFrame(values | {"hazard ratio": ratio}, index=pandas.Index(fit.names, name="column"))


def ratio_figure(fit: Any, level: float) -> Figure:
    """Coefficients with their intervals."""
    low, high = fit.conf_int(level).T
    return Figure(
        Intervals(
            "Log hazard ratios", "log hazard ratio", fit.names, fit.coef_.tolist(), low.tolist(), high.tolist(), level=level
        )
    )


def cox_fit(
    federation: Federation, settings: Mapping[str, Any], state: NewtonState, asked_before: int = 0, *, pooled: bool = False
) -> CoxFit:
    """Turn the last state of `cox_newton` into a fit.

    Parameters
    ----------
    settings : mapping
        With which it was asked.
    asked_before : int
        Length of the ledger before its first question.
    pooled : bool
        Whether risk sets were those of all parties together.
    """
    spec = read_survival(schema_of(federation), settings["formula"], **{key: settings.get(key) for key in READ})
    kept, inverse = state.kept, solve(state.information, np.eye(spec.size))
    model = (inverse + inverse.T) / 2
    robust = "meat" in kept
    covariance = model @ kept["meat"] @ model if robust else model
    pairs = np.concatenate([kept["pairs"], kept["squares"]]) if "pairs" in kept else np.zeros(6)
    score, error = concordance_of(pairs)
    return CoxFit(
        spec=spec,
        ties=settings.get("ties", "efron"),
        coef_=state.beta,
        covariance=covariance,
        model_covariance=model,
        n_records=state.n,
        n_events=float(kept["events"]),
        log_likelihood=-state.deviance / 2,
        null_log_likelihood=-float(kept["null"]) / 2,
        score_statistic=float(kept["score_test"]),
        rounds=state.round,
        **provenance(federation, asked_before, spec.valued),
        concordance=score,
        concordance_se=error,
        n_clusters=float(kept["clusters"]) if robust else None,
        robust=robust,
        most=settings.get("most"),
        pooled=pooled,
    )


READ = ("time", "event", "entry", "strata", "cluster", "probability", "cuts", "varying", "offset")
"""Settings that decide a design."""


def show_cox(federation: Federation, settings: Mapping[str, Any], state: NewtonState) -> Outcome:
    """Show the fit: coefficients, hazard ratios, tests, and the summary."""
    fit = cox_fit(federation, settings, state)
    frame, found = fit.to_frame(), {"log-likelihood": fit.log_likelihood, "AIC": fit.aic, "concordance": fit.concordance}
    metrics = {name: float(value) for name, value in found.items() if math.isfinite(value)}
    tables = {"Coefficients": frame, "Hazard ratios": fit.hazard_ratios().rename_axis("column"), "Tests": fit.tests()}
    counted = {"records": float(fit.n_records), "events": float(fit.n_events)}
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame, counted=counted)


def _test(tests: pandas.DataFrame, name: str) -> str:
    statistic, df, p = map(float, tests.loc[name].to_numpy())
    return f"{show(statistic)} on {df:g} df (p {show_column('p', [p])[0]})"


def records_of(fit: Any) -> str:
    return shown_count(fit.cases, fit.n_records)
