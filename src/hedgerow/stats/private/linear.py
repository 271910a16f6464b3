"""Least squares within a budget, of a number or of labels, by the method that is named."""

from __future__ import annotations

from typing import Any, Literal, cast, get_args

from hedgerow.core.federation import Federation
from hedgerow.errors import NotBinary, SettingsInvalid, suggestion

from ..columns import schema_of
from .fit import PrivateFit
from .histogram import HistogramMethod, by_histogram
from .relevance import adaptive
from .rows import UnitRows
from .solving import MomentMethod
from .sufficient import by_moments
from .with_intervals import with_intervals

LinearMethod = Literal["ssp", "adassp", "functional", "dpme", "histogram", "filter-priority", "relevance"]


def sufficient(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: LinearMethod = "ssp",
    **settings: Any,
) -> PrivateFit:
    """Fit a linear model of a number or of labels within a budget, by one or two questions.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the ranges of all columns of the formula, target included.
    formula : str
        For example `"charges ~ age + bmi + smoker"`, or `"income_over_50k ~ ."`.
    epsilon, delta : float, optional
        The budget of the whole fit; without delta noise is Laplace. Without epsilon the channel's own noise is used, and
        without any the fit is that of the pooled records.
    method : {"ssp", "adassp", "functional", "dpme", "histogram", "filter-priority", "relevance"}
        ssp, the default, was the best of the first four on Adult, cardio, insurance and CASP, also with Laplace noise
        (`hedgerow.stats.private.solving`). filter-priority was better still where a formula has three or four columns and
        epsilon is small (`hedgerow.stats.private.histogram`); relevance is in `hedgerow.stats.private.relevance`.
    **settings
        `bins`, `log`, `rows`, `weights`, `noise_at`, `least`; `ridge` of ssp; `target_bins` and `threshold` of histograms;
        `ratio` of relevance.

    Returns
    -------
    PrivateFit
        Of a number an ordinary linear model, with rows of a fixed length (`PrivateFit.own_units`). Of labels a logistic model
        by its polynomial at zero, with rows of length one; by a histogram, the logistic model itself. `rows` says otherwise.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), UnboundedSum (HR-210), SettingsInvalid (HR-511)
        Before any party is asked; see `UnitRows.of`.
    BudgetInvalid (HR-214), SlotFilled (HR-212)
        See `hedgerow.privacy.shares.BudgetShares`.
    """
    given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, **settings}
    if method == "relevance":
        return adaptive(federation, formula, **given)
    if method in get_args(HistogramMethod):
        return by_histogram(federation, formula, method=cast(HistogramMethod, method), **given)
    if method in get_args(MomentMethod):
        return by_moments(federation, formula, method=cast(MomentMethod, method), **given)
    raise SettingsInvalid(f"no method is called {method!r}.", remedy=suggestion(method, get_args(LinearMethod)))


def linear(
    federation: Federation,
    formula: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    method: LinearMethod = "ssp",
    intervals: bool = False,
    **settings: Any,
) -> PrivateFit:
    """Linear regression of a number within a budget; parameters and errors are those of `sufficient`.

    With `intervals` there are confidence intervals, by a plan of their own: `hedgerow.stats.private.inference`.
    A target with two values is refused (NotBinary, HR-311): `logistic` is better there, and `sufficient` takes it.
    """
    if not UnitRows.of(formula, schema_of(federation), weights=settings.get("weights")).numeric:
        raise NotBinary(
            f"the target of {formula!r} has two values, and this is linear regression of a number.",
            remedy="Take hr.stats.private.logistic; or hr.stats.private.sufficient, for least squares on labels.",
        )
    if intervals:
        given = {"epsilon": epsilon, "delta": delta, "method": method}
        return with_intervals(federation, "linear", formula, given | settings)
    return sufficient(federation, formula, epsilon=epsilon, delta=delta, method=method, **settings)
