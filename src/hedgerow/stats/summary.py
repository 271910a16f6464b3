"""The summary of a fit as text: a heading, the coefficients, and what left each party."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.report.numerals import fixed, show, show_column

from .factors import Levels
from .sandwich import FEW_CLUSTERS

if TYPE_CHECKING:
    from .fit import Fit
    from .multinomial_fit import MultinomialFit
    from .penalty.penalised import PenalisedFit

WIDTH = 79
UNBOUNDED = "the log-likelihood and what follows from it: one record can move it without bound"


def summarise(fit: Fit, level: float) -> str:
    """Return the summary, at most `WIDTH` characters wide unless a name or a number is wider."""
    title, ending = f"hedgerow {fit.law.title}", _ending(fit)
    lines = [
        title + ending.rjust(WIDTH - len(title)),
        *textwrap.wrap(fit.spec.formula + _event(fit), WIDTH, subsequent_indent="  "),
        _pairs(("parties", _answered(fit)), (_size(fit), _records(fit)), ("events", _shown_count(fit, fit.n_events))),
        *_cases(fit),
        *([_pairs(*_goodness(fit))] if fit.deviance is not None else []),
        "",
        *_table(fit, level),
        "",
        *(_paragraph("method", fit.method) if fit.method else []),
        *_paragraph("protection", fit.protection),
        *_paragraph("left each party", fit.left),
        *_paragraph_if("weights", _weights(fit)),
        *_paragraph_if("errors", _errors(fit)),
        *(_paragraph("not asked for", UNBOUNDED) if fit.deviance is None else []),
    ]
    return "\n".join(line.rstrip() for line in lines)


def penalised_summary(fit: PenalisedFit) -> str:
    """Return the summary of a penalised regression."""
    ratio = {0.0: "ridge", 1.0: "lasso"}.get(fit.l1_ratio, f"elastic net, l1_ratio {show(fit.l1_ratio)}")
    title, ending = f"hedgerow penalised {fit.law.title}", f"converged in {fit.rounds} rounds"
    missing = "all answered" if not fit.n_missing else f"{fit.n_missing} answers missing"
    width = max(map(len, fit.names))
    cells = _aligned(show_column("coef", fit.coef_.tolist()))
    scaled = ", of standardised columns" if fit.standardised else ""
    lines = [
        title + ending.rjust(WIDTH - len(title)),
        *textwrap.wrap(fit.spec.formula, WIDTH, subsequent_indent="  "),
        _pairs(("parties", f"{fit.n_parties} ({missing})"), (_size(fit), _records(fit))),
        *_cases(fit),
        _pairs(("penalty", f"{show(fit.penalty)} ({ratio}{scaled})"), ("selected", f"{fit.n_selected} columns")),
        "",
        *(f"{name.ljust(width)}  {cell}" for name, cell in zip(fit.names, cells, strict=True)),
        "",
        *_paragraph("protection", fit.protection),
        *_paragraph("left each party", fit.left),
    ]
    return "\n".join(line.rstrip() for line in lines)


def multinomial_summary(fit: MultinomialFit, level: float) -> str:
    """Return the summary of a multinomial regression, level by level."""
    title, ending = "hedgerow multinomial logistic regression", f"converged in {fit.rounds} rounds"
    missing = "all answered" if not fit.n_missing else f"{fit.n_missing} answers missing"
    counts = ((word, _shown_count(fit, n)) for word, n in zip(fit.levels, fit.counts.tolist(), strict=True))
    goodness = (("log-likelihood", fit.log_likelihood), ("AIC", fit.aic), ("BIC", fit.bic), ("pseudo R²", fit.r_squared))
    lines = [
        title + ending.rjust(WIDTH - len(title)),
        *textwrap.wrap(f"{fit.spec.formula}    reference: {fit.levels[0]}", WIDTH, subsequent_indent="  "),
        _pairs(("parties", f"{fit.n_parties} ({missing})"), (_size(fit), _records(fit)), *counts),
        *_cases(fit),
        _pairs(*((name, _shown(value)) for name, value in goodness)),
    ]
    intervals = fit.conf_int(level)
    for i, word in enumerate(fit.levels[1:]):
        cells = (fit.coef_[i], fit.se_[i], *intervals[i].T)
        z, p = fit.statistic_[i].tolist(), fit.p_values[i].tolist()
        lines += ["", *_columns(fit.spec.names, cells, level, "z", z, p, np.exp(fit.coef_[i]).tolist(), heading=word)]
    lines += ["", *_paragraph("protection", fit.protection), *_paragraph("left each party", fit.left)]
    return "\n".join(line.rstrip() for line in lines)


def _ending(fit: Fit) -> str:
    rounds = f"{fit.rounds} round{'s' * (fit.rounds != 1)}"
    return f"converged in {rounds}" if fit.deviance is not None else f"{rounds} through a protected channel"


def _answered(fit: Fit) -> str:
    missing = "all answered" if not fit.n_missing else f"{fit.n_missing} answers missing"
    return f"{fit.n_parties} ({missing})"


def _size(fit: Fit | PenalisedFit | MultinomialFit) -> str:
    """What `n_records` is: records that count more or less than once are counted by their weights."""
    return "sum of weights" if fit.spec.weights and not fit.spec.probability else "records"


def _records(fit: Fit | PenalisedFit | MultinomialFit) -> str | None:
    """How many records the fit read: about how many, where that was clipped or noisy, or would tell of a few beside others."""
    if fit.deviance is None:
        return f"about {show(max(round(fit.n_records), 0))}"
    return _shown_count(fit, fit.n_records)


def _shown_count(fit: Fit | PenalisedFit | MultinomialFit, count: float | None) -> str | None:
    """A count of records as people see it; events beside left out ones are rounded like these."""
    if count is None or fit.cases is None or fit.cases.exact:
        return _count(count)
    return f"about {show(fit.cases.shown(count))}"


def _cases(fit: Fit | PenalisedFit | MultinomialFit) -> list[str]:
    """One line about records that lack a value, where there may be any."""
    return [] if fit.cases is None else [fit.cases.sentence()]


def _event(fit: Fit) -> str:
    if not fit.law.binary:
        return ""
    response = fit.spec.response
    return f"    event: {response.column} = {response.labels[0]}" if isinstance(response, Levels) else "    event: 1"


def _goodness(fit: Fit) -> list[tuple[str, str | None]]:
    f_test = fit.f_test
    return [
        ("log-likelihood", _shown(fit.log_likelihood)),
        ("AIC", _shown(fit.aic)),
        ("BIC", _shown(fit.bic)),
        ("R²" if fit.law.quadratic else "pseudo R²", _shown(fit.r_squared)),
        ("adjusted R²", _shown(fit.adjusted_r_squared)),
        ("dispersion", _shown(fit.dispersion) if fit.law.has("pearson") else None),
        ("alpha", _shown(fit.alpha)),
        ("F", None if f_test is None else f"{show(f_test[0])} (p {show_column('p', [f_test[1]])[0]})"),
    ]


def _table(fit: Fit, level: float) -> list[str]:
    cells = (fit.coef_, fit.se_, *fit.conf_int(level).T)
    statistic = "z" if fit.df_inference is None else "t"
    with np.errstate(over="ignore"):
        ratios = None if not fit.law.ratio else np.exp(fit.coef_).tolist()
    return _columns(fit.names, cells, level, statistic, fit.statistic_.tolist(), fit.p_values.tolist(), ratios)


def _columns(
    names: Sequence[str],
    cells: Sequence[Iterable[float]],
    level: float,
    statistic: str,
    statistics: list[float],
    p: list[float],
    ratios: list[float] | None,
    heading: str = "",
) -> list[str]:
    by_row = [_like_error(values) for values in zip(*cells, strict=True)]
    coef, se, low_cells, high_cells = (_aligned(column) for column in zip(*by_row, strict=True))
    columns = [
        [heading, *names],
        ["coef", *coef],
        ["se(coef)", *se],
        [f"{level:.0%} CI of coef", *("  ".join(ends) for ends in zip(low_cells, high_cells, strict=True))],
        [statistic, *show_column(statistic, statistics)],
        ["p", *show_column("p", p)],
    ]
    if ratios is not None:
        columns.insert(3, ["exp(coef)", *(show(value) for value in ratios)])
    widths = [max(map(len, column)) for column in columns]
    gap = "  " if sum(widths) + 2 * len(widths) <= WIDTH + 2 else " "
    rows = [gap.join(map(str.rjust, row, widths[1:])) for row in zip(*columns[1:], strict=True)]
    width = min(widths[0], max(WIDTH - len(rows[0]) - 2, 12))  # of names; a longer one has a line of its own
    return [
        line
        for name, row in zip(columns[0], rows, strict=True)
        for line in ([f"{name.ljust(width)}  {row}"] if len(name) <= width else [name, f"{' ' * width}  {row}"])
    ]


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
    """Names with their values, in as many lines as they need."""
    lines = [""]
    for said in (f"{name} {value}" for name, value in pairs if value is not None):
        joined = f"{lines[-1]}     {said}" if lines[-1] else said
        lines = [*lines[:-1], joined] if len(joined) <= WIDTH else [*lines, said]
    return "\n".join(lines)


def _paragraph(heading: str, words: str) -> Iterable[str]:
    indent = " " * 18
    return textwrap.wrap(words, WIDTH, initial_indent=heading.ljust(18), subsequent_indent=indent)


def _paragraph_if(heading: str, words: str) -> Iterable[str]:
    return _paragraph(heading, words) if words else []


def _weights(fit: Fit) -> str:
    if not fit.spec.weights:
        return ""
    return (
        "of probability: estimates are weighted, a record counts once" if fit.spec.probability else "count as repeated records"
    )


def _errors(fit: Fit) -> str:
    """What robust errors are made of."""
    if fit.errors == "model":
        return ""
    if fit.n_clusters is None:
        return f"robust, {fit.errors}"
    few = "; so few clusters make errors too small" if fit.n_clusters < FEW_CLUSTERS else ""
    by = "parties" if fit.errors == "party" else f"clusters by {fit.spec.cluster}"
    return f"robust, of {show(round(fit.n_clusters))} {by}; t on {show(round(fit.n_clusters) - 1)} degrees of freedom{few}"


def _shown(value: float | None) -> str | None:
    return None if value is None else show(value)


def _count(value: float | None) -> str | None:
    if value is None:
        return None
    return show(round(value)) if abs(value - round(value)) < 1e-6 * max(value, 1.0) else show(value)
