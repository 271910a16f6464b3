"""Are hazards proportional? A test of whether coefficients drift with time, by sums over events.

    g(t)      the time of an event, or its logarithm
    r         Schoenfeld residual: columns of who has the event less their mean over the risk set
    V(t)      information of an event time

    score     sums of g, r, g r, g V, g² V:  score test of x g(t) added to the model          as R's cox.zph since 3.0
    average   sums of g, g², r, g r:         the same with V(t) replaced by its mean           as R's before, and lifelines

Risk sets are those of strata within sites. `average` asks for fewer numbers.

Releases : 3 + 2 d numbers, and with `score` two triangles; once, at the estimates.
Unit     : party, a range for hidden sums (see `cox`).
Source   : Schoenfeld 1982; Grambsch & Therneau 1994; Therneau & Grambsch 2000, section 6.2.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import chdtrc

from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid, UnboundedSum

from ..expressions import interval
from ..linear.sums import symmetric
from ..state import solve
from .asking import AskedSurvival, ask_for_survival, refuse_noise
from .cox_fit import CoxFit
from .cox_sums import schoenfeld_bounds, schoenfeld_sums

if TYPE_CHECKING:
    import pandas

Transform = Literal["time", "log"]
Method = Literal["score", "average"]

FARTHEST_LOG = 50.0
"""Logarithms of times lie within: of times between 1e-21 and 1e21."""


def schoenfeld(
    federation: Federation, fit: CoxFit, transform: Transform = "time", method: Method = "score"
) -> pandas.DataFrame:
    """Test proportional hazards of a Cox regression.

    Parameters
    ----------
    federation : Federation
        The parties of the fit.
    fit : CoxFit
    transform : {"time", "log"}
        Of time, with which coefficients would drift.
    method : {"score", "average"}
        Exact score test, or with the average information, which asks for fewer numbers.

    Returns
    -------
    pandas.DataFrame
        `statistic` (chi-squared), `df` and `p` of each column, and of all together ("all").

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked.
    """
    import pandas

    if transform not in ("time", "log") or method not in ("score", "average"):
        reason = f"transform={transform!r}, method={method!r}."
        raise SettingsInvalid(reason, remedy="transform: time or log; method: score or average.")
    if fit.pooled:
        raise SettingsInvalid("risk sets of a pooled fit are at no party.", remedy="Test the fit of cox, stratified by site.")
    if fit.spec.cuts:
        raise SettingsInvalid("coefficients change at the cuts already.", remedy="Test the fit without cuts.")
    refuse_noise(federation, "a test of proportional hazards", "Ask through a channel without them.")
    asked, by_time = ask_for_survival(federation, fit.spec, fit.most), method == "score"
    local = partial(
        schoenfeld_sums,
        ties=fit.ties,
        columns=asked.spec.columns,
        logarithm=transform == "log",
        by_time=by_time,
        **asked.settings,
    )
    bounds = asked.bounds(schoenfeld_bounds(_farthest(asked, transform), by_time, asked.most, asked.heaviest))
    factors = asked.asked.factors
    sums = asked.asked.total(local, fit.coef_ * factors, bounds)
    n, g, gg = map(float, sums["moments"])
    mean = g / n
    r, gr = sums["residuals"] * factors
    drift = gr - mean * r  # residuals add up to the score, which is zero but for rounding
    if by_time:
        gV, ggV = symmetric(sums["information"]) * np.outer(factors, factors)
        V = solve(fit.model_covariance, np.eye(len(drift)))
        cross, square = gV - mean * V, ggV - 2 * mean * gV + mean**2 * V
        matrix = square - cross.T @ fit.model_covariance @ cross
        one = [drift[k] ** 2 / (square[k, k] - cross[:, k] @ fit.model_covariance @ cross[:, k]) for k in range(len(drift))]
        every = float(drift @ solve(matrix, drift))
    else:
        spread, V = gg - n * mean**2, fit.model_covariance
        moved = V @ drift
        one = list(n * moved**2 / (np.diag(V) * spread))
        every = float(n * (drift @ moved) / spread)
    rows = [(value, 1, float(chdtrc(1, max(value, 0.0)))) for value in map(float, one)]
    rows.append((every, len(drift), float(chdtrc(len(drift), max(every, 0.0)))))
    return pandas.DataFrame(rows, index=pandas.Index([*fit.names, "all"], name="column"), columns=["statistic", "df", "p"])


def _farthest(asked: AskedSurvival, transform: Transform) -> float:
    """Largest absolute value of g by the declared range of the time; where that is none, no bound is needed or known."""
    found = interval(asked.spec.time, asked.spec.schema)
    far = math.inf if found is None else max(abs(found[0]), abs(found[1]))
    if transform == "log":
        return FARTHEST_LOG
    return far if math.isfinite(far) else _undeclared(asked)


def _undeclared(asked: AskedSurvival) -> float:
    if asked.asked.hidden and asked.asked.federation.protection.largest is None:
        raise UnboundedSum(
            f"{asked.spec.time} declares no range, so sums of times have no bound where rows are hidden.",
            remedy=f"Declare it: table.declare({asked.spec.time}=(0, 3650)).",
        )
    return 1.0
