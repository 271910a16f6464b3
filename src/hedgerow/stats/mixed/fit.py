"""A fitted mixed model: fixed effects with inference, and how much clusters differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import LeftOut
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Figure, ForPapers, Intervals, Outcome
from hedgerow.report.numerals import show, show_column

from ..columns import schema_of
from ..estimates import NormalEstimates
from ..linear.losses import loss_of
from ..provenance import provenance
from ..spline_curves import SplineCurves
from ..state import solve
from ..survival.summary import answered, shown_count, survival_summary
from .design import MixedDesign, read_mixed

if TYPE_CHECKING:
    import pandas

Kind = Literal["linear", "logistic"]
FAMILIES: Mapping[Kind, Literal["gaussian", "binomial"]] = {"linear": "gaussian", "logistic": "binomial"}
FEW_CLUSTERS = 10
"""With fewer clusters their variance is poorly known, and the summary says so."""
NO_SPREAD = 1e-4
"""A standard deviation between clusters below this is none."""
WIDE = 16.0
"""Where the variance between clusters is larger, log-likelihoods of clusters are no bells, and 25 nodes may be too few."""
LOGISTIC_VARIANCE = math.pi**2 / 3
"""Of a standard logistic distribution, as which records of a cluster vary on the scale of log-odds."""


@displayed
@dataclass(frozen=True, eq=False)
class MixedFit(NormalEstimates, ForPapers, SplineCurves):
    """Estimates of a model with a random intercept, with d coefficients.

    Attributes
    ----------
    spec : MixedDesign
    kind : {"linear", "logistic"}
    coef_ : array of shape (d,)
        Of the fixed effects; logistic: log-odds within a cluster, for each unit of a column.
    covariance : array of shape (d, d)
        Of `coef_`.
    between : float
        Variance of the clusters' intercepts, tau^2.
    within : float
        Variance of records within a cluster, sigma^2; logistic: of the standard logistic distribution.
    between_se : float
        Standard error of tau, the standard deviation; NaN of a linear model, and where tau is zero, the end of its range.
    n_records, n_clusters : float
    log_likelihood : float
        Restricted where the criterion is REML.
    criterion : {"REML", "ML"}
    rounds, n_parties, n_missing, left, protection, cases
        As in `hedgerow.stats.Fit`.
    """

    spec: MixedDesign
    kind: Kind
    coef_: Array
    covariance: Array
    between: float
    within: float
    between_se: float
    n_records: float
    n_clusters: float
    log_likelihood: float
    criterion: str
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
        return self.spec.rows.names

    @property
    def icc(self) -> float:
        """Share of the variance that lies between clusters; logistic: on the scale of log-odds."""
        return self.between / (self.between + self.within)

    def odds_ratios(self, level: float = 0.95) -> pandas.DataFrame:
        """Exponentials of coefficients and of their confidence intervals: ratios of odds within a cluster.

        Raises
        ------
        SettingsInvalid (HR-511)
            The model is linear.
        """

        if self.kind == "linear":
            raise SettingsInvalid("a linear model has no odds ratios.", remedy="Take conf_int() or to_frame().")
        return self._ratios("odds ratio", level)

    # ---- use --------------------------------------------------------------------------------------------------------
    def predict(self, frame: Any) -> Array:
        """Expected target of new records in a cluster whose intercept is the average one, shape (n,).

        Parameters
        ----------
        frame : table of any kind
            The columns of the fixed effects, offset included.

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
        """
        return loss_of(FAMILIES[self.kind]).mean(self.spec.rows.predictor(self.coef_, frame))

    def to_frame(self, level: float = 0.95) -> pandas.DataFrame:
        """Return one row for each fixed effect."""
        import pandas

        low, high = self.conf_int(level).T
        values = {"coef": self.coef_, "se": self.se_, "z": self.statistic_, "p": self.p_values, "low": low, "high": high}
        if self.kind == "logistic":
            with np.errstate(over="ignore"):
                values["odds ratio"] = np.exp(self.coef_)
        return pandas.DataFrame(values, index=pandas.Index(self.names, name="column"))

    def variances(self) -> pandas.DataFrame:
        """Return how much clusters and their records vary: variance and standard deviation."""
        import pandas

        values = [(value, math.sqrt(value)) for value in (self.between, self.within)]
        rows = pandas.Index([f"between {self.spec.of_what}s", "within"], name="part")
        return pandas.DataFrame(values, index=rows, columns=["variance", "standard deviation"])

    def plot(self, level: float = 0.95) -> Figure:
        """Draw the fixed effects with their intervals, as SVG; without the intercept."""
        frame = self.to_frame(level)
        frame = frame[frame.index != "Intercept"] if len(frame) > 1 else frame
        coef, low, high = (frame[key].tolist() for key in ("coef", "low", "high"))
        return Figure(Intervals("Fixed effects", "coefficient", list(map(str, frame.index)), coef, low, high, level=level))

    def summary(self, level: float = 0.95) -> str:
        """Return the estimates as text, with what left each party and how it was protected."""
        frame, what = self.to_frame(level), self.spec.of_what
        facts = [
            ("parties", answered(self.n_parties, self.n_missing)),
            ("records", shown_count(self.cases, self.n_records)),
            (f"clusters ({what})", show(round(self.n_clusters))),
            ("restricted log-likelihood" if self.criterion == "REML" else "log-likelihood", show(self.log_likelihood)),
            (f"variance between {what}s", show(self.between)),
            ("within", show(self.within) if self.kind == "linear" else None),
            ("intraclass correlation", show(self.icc)),
        ]
        columns = [[str(name), *show_column(str(name), frame[name].tolist())] for name in frame]
        table = _aligned([["", *map(str, frame.index)], *columns])
        said = {"variances": self._caution()} if self._caution() else {}
        said |= {"protection": self.protection, "left each party": self.left}
        kind = "linear" if self.kind == "linear" else "logistic"
        return survival_summary(
            f"hedgerow {kind} regression, random intercepts", f"{self.criterion}, {self.rounds} rounds", self.spec.formula,
            facts, table, said, None if self.cases is None else self.cases.sentence(),
        )  # fmt: skip

    def _caution(self) -> str:
        said = []
        if self.between <= NO_SPREAD**2:
            said.append("between clusters none was found: the fit is that without random intercepts")
        if self.n_clusters < FEW_CLUSTERS:
            said.append(f"{self.n_clusters:.0f} clusters tell little of how much clusters differ")
        if self.kind == "logistic" and self.between > WIDE:
            said.append("clusters differ so much that the quadrature may be too coarse: compare with more nodes=")
        return "; ".join(said)

    def __str__(self) -> str:
        return self.summary()


def _aligned(columns: list[list[str]]) -> list[str]:
    """Lines of a table whose first column stands at the left and whose others stand at the right."""
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]) for row in rows
    ]


def mixed_fit(federation: Federation, settings: Mapping[str, Any], state: Any, kind: Kind, asked_before: int = 0) -> MixedFit:
    """Turn the last state of `reml` or `laplace_newton` into a fit.

    Parameters
    ----------
    settings : mapping
        With which it was asked.
    asked_before : int
        Length of the ledger before its first question.
    """
    spec = read_mixed(
        schema_of(federation),
        settings["formula"],
        FAMILIES[kind],
        offset=settings.get("offset"),
        nested=bool(settings.get("nested")),
    )
    given = _linear(state, settings) if kind == "linear" else _logistic(state)
    told = provenance(federation, asked_before, spec.reads)
    return MixedFit(spec, kind, rounds=state.round, n_records=state.n, **given, **told)


def _linear(state: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    restricted = settings.get("criterion", "REML") == "REML"
    within = state.squares / (state.n - len(state.beta) * restricted)
    inverse = solve(state.precision, np.eye(len(state.beta)))
    return {
        "coef_": state.beta,
        "covariance": within * (inverse + inverse.T) / 2,
        "between": state.ratio * within,
        "within": within,
        "between_se": math.nan,
        "n_clusters": state.clusters,
        "log_likelihood": state.log_likelihood,
        "criterion": "REML" if restricted else "ML",
    }


def _logistic(state: Any) -> dict[str, Any]:
    inverse = solve(state.information, np.eye(len(state.beta)))
    covariance = (inverse + inverse.T) / 2
    return {
        "coef_": state.beta[:-1],
        "covariance": covariance[:-1, :-1],
        "between": float(state.beta[-1]) ** 2,
        "within": LOGISTIC_VARIANCE,
        "between_se": math.sqrt(covariance[-1, -1]) if abs(state.beta[-1]) > NO_SPREAD else math.nan,
        "n_clusters": float(state.kept["clusters"]),
        "log_likelihood": -state.deviance / 2,
        "criterion": "ML",
    }


def show_mixed(federation: Federation, settings: Mapping[str, Any], state: Any, *, kind: Kind) -> Outcome:
    """Fixed effects, variances, and the summary."""
    fit = mixed_fit(federation, settings, state, kind)
    frame = fit.to_frame()
    tables = {"Coefficients": frame, "Variances": fit.variances()}
    if kind == "logistic":
        tables["Odds ratios"] = fit.odds_ratios().rename_axis("column")
    metrics = {
        "log-likelihood": fit.log_likelihood,
        "variance between clusters": fit.between,
        "intraclass correlation": fit.icc,
    }
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame)
