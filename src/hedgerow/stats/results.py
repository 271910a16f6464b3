"""What regressions show in a report: coefficients with intervals, the ratios they stand for, goodness of fit, a summary."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.errors import SettingsInvalid
from hedgerow.report import Outcome

from .columns import schema_of
from .design import Design, design_of
from .fit import Fit, fit_of
from .linear.losses import FamilyName
from .provenance import left_of, protection_of
from .sandwich import errors_of
from .standard import raw_coefficients
from .state import NewtonState

if TYPE_CHECKING:
    import pandas

Settings = Mapping[str, Any]


def spec_of(federation: Federation, settings: Settings, family: FamilyName) -> Design:
    """The design that settings describe."""
    given = {key: settings.get(key) for key in ("offset", "weights", "probability", "cluster")}
    return design_of(schema_of(federation), settings["formula"], family, **given)


def show_regression(federation: Federation, settings: Settings, state: NewtonState) -> Outcome:
    """Show the fit of a family."""
    family = settings["family"]
    errors = errors_of(settings.get("errors", "model"), settings.get("probability"))
    return show_fit(fit_of(federation, spec_of(federation, settings, family), family, state, errors=errors))


def show_fit(fit: Fit) -> Outcome:
    """Show a fit: coefficients with intervals, the ratios they stand for, goodness of fit, and the summary."""
    frame = fit.to_frame()
    law, estimated = fit.law, fit.alpha_se is not None
    goodness = {
        "log-likelihood": fit.log_likelihood,
        "AIC": fit.aic,
        "R2": fit.r_squared if law.quadratic else None,
        "deviance": fit.deviance if law.log_link and fit.alpha is None else None,
        "dispersion": fit.dispersion if law.has("pearson") else None,
        "alpha": fit.alpha if estimated else None,
        "standard error of alpha": fit.alpha_se,
    }
    metrics = {name: float(value) for name, value in goodness.items() if value is not None}
    tables = {"Coefficients": frame}
    if law.ratio:
        ratios = fit.odds_ratios().rename_axis("column").rename(columns={"odds ratio": law.ratio})
        tables[law.ratios] = ratios
    counted = {"records": float(fit.n_records)} | ({} if fit.n_events is None else {"events": float(fit.n_events)})
    return Outcome(metrics, tables=tables, text={"Summary": fit.summary()}, coefficients=frame, counted=counted)


def coefficients(federation: Federation, settings: Settings, spec: Design, beta: Array, state: Any) -> pandas.DataFrame:
    """Coefficients; of standardised columns in their own units too, where a formula allows that."""
    import pandas

    index = pandas.Index(spec.names, name="column")
    if state.scaling is None:
        return pandas.DataFrame({"coef": beta}, index=index)
    columns = {"coef": beta, "per standard deviation": beta}
    try:
        columns["coef"] = raw_coefficients(federation, settings["formula"], state.scaling, beta)
    except SettingsInvalid:  # a product of scaled columns: its parts belong to several coefficients
        columns.pop("coef")
    return pandas.DataFrame(columns, index=index)


def brief(
    federation: Federation, settings: Settings, ending: str, frame: pandas.DataFrame, metrics: dict[str, float], method: str
) -> Outcome:
    """An outcome with a short summary: the formula, how it ended, how it was estimated and protected, and what left."""
    said = {"method": method, "protection": protection_of(federation), "left each party": left_of(federation, 0)}
    lines = [settings["formula"], ending, ""]
    for heading, words in said.items():
        lines += textwrap.wrap(words, 96, initial_indent=heading.ljust(18), subsequent_indent=" " * 18)
    return Outcome(metrics, tables={"Coefficients": frame}, text={"Summary": "\n".join(lines)}, coefficients=frame)
