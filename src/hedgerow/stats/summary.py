"""The summary of a fit as text: a heading, the coefficients, and what left each party."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hedgerow.report.numerals import fixed, show, show_column

from .factors import Levels

if TYPE_CHECKING:
    from .fit import Fit

WIDTH = 96
UNBOUNDED = "the log-likelihood and what follows from it: one record can move it without bound"
TITLES = {"gaussian": "linear regression", "binomial": "logistic regression"}


def summarise(fit: Fit, level: float) -> str:
    """Return the summary, at most about a hundred characters wide."""
    title, ending = f"hedgerow {TITLES[fit.family]}", _ending(fit)
    lines = [
        title + ending.rjust(WIDTH - len(title)),
        *textwrap.wrap(fit.spec.formula + _event(fit), WIDTH, subsequent_indent="  "),
        _pairs(("parties", _answered(fit)), ("records", _count(fit.n_records)), ("events", _count(fit.n_events))),
        *([_pairs(*_goodness(fit))] if fit.deviance is not None else []),
        "",
        *_table(fit, level),
        "",
        *_paragraph("protection", fit.protection),
        *_paragraph("left each party", fit.left),
        *(_paragraph("weights", "count as repeated records") if fit.spec.weights else []),
        *(_paragraph("not asked for", UNBOUNDED) if fit.deviance is None else []),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _ending(fit: Fit) -> str:
    rounds = f"{fit.rounds} round{'s' * (fit.rounds != 1)}"
    return f"converged in {rounds}" if fit.deviance is not None else f"{rounds} through a protected channel"


def _answered(fit: Fit) -> str:
    missing = "all answered" if not fit.n_missing else f"{fit.n_missing} answers missing"
    return f"{fit.n_parties} ({missing})"


def _event(fit: Fit) -> str:
    if fit.family == "gaussian":
        return ""
    response = fit.spec.response
    return f"    event: {response.column} = {response.labels[0]}" if isinstance(response, Levels) else "    event: 1"


def _goodness(fit: Fit) -> list[tuple[str, str | None]]:
    f_test = fit.f_test
    return [
        ("log-likelihood", _shown(fit.log_likelihood)),
        ("AIC", _shown(fit.aic)),
        ("BIC", _shown(fit.bic)),
        ("R²" if fit.family == "gaussian" else "pseudo R²", _shown(fit.r_squared)),
        ("adjusted R²", _shown(fit.adjusted_r_squared)),
        ("F", None if f_test is None else f"{show(f_test[0])} (p {show_column('p', [f_test[1]])[0]})"),
    ]


def _table(fit: Fit, level: float) -> list[str]:
    low, high = fit.conf_int(level).T
    by_row = [_like_error(values) for values in zip(fit.coef_, fit.se_, low, high, strict=True)]
    coef, se, low_cells, high_cells = (_aligned(cells) for cells in zip(*by_row, strict=True))
    p_heading, statistic = "p", "t" if fit.family == "gaussian" else "z"
    columns = [
        ["", *fit.names],
        ["coef", *coef],
        ["se(coef)", *se],
        [f"{level:.0%} CI of coef", *("  ".join(ends) for ends in zip(low_cells, high_cells, strict=True))],
        [statistic, *show_column(statistic, fit.statistic_.tolist())],
        [p_heading, *show_column(p_heading, fit.p_values.tolist())],
    ]
    if fit.family == "binomial":
        columns.insert(3, ["exp(coef)", *(show(value) for value in fit.odds_ratios(level)["odds ratio"].tolist())])
    widths = [max(map(len, column)) for column in columns]
    columns[0] = [name.ljust(widths[0]) for name in columns[0]]
    rows = zip(*columns, strict=True)
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _like_error(values: tuple[float, ...]) -> list[str]:
    """Write a row's estimate, error and interval with the decimals that give the error three digits."""
    error = values[1]
    decimals = max(0, 2 - math.floor(math.log10(error))) if error > 0 and math.isfinite(error) else 4
    return [fixed(value, decimals) if math.isfinite(value) else show(value) for value in values]


def _aligned(cells: Iterable[str]) -> list[str]:
    """Pad cells so that their decimal points stand below one another."""
    parts = [cell.partition(".") for cell in cells]
    left, right = max(len(whole) for whole, _, _ in parts), max(len(point + rest) for _, point, rest in parts)
    return [whole.rjust(left) + (point + rest).ljust(right) for whole, point, rest in parts]


def _pairs(*pairs: tuple[str, object]) -> str:
    return "     ".join(f"{name} {value}" for name, value in pairs if value is not None)


def _paragraph(heading: str, words: str) -> Iterable[str]:
    indent = " " * 18
    return textwrap.wrap(words, WIDTH, initial_indent=heading.ljust(18), subsequent_indent=indent)


def _shown(value: float | None) -> str | None:
    return None if value is None else show(value)


def _count(value: float | None) -> str | None:
    if value is None:
        return None
    return show(round(value)) if abs(value - round(value)) < 1e-6 * max(value, 1.0) else show(value)
