"""Curves of a fit along one column, and tests of their curvature; from coefficients and covariance alone, never at records.

    D          rows at the values asked for, less the row at the reference; other columns at declared values
    estimate   D b
    band       D b -+ reach * sqrt(diag(D V D'))              at each value by itself
    curvature  Wald test that b, along a spline, is a straight line: for `rcs` that all but the first coefficient are zero

Source : Harrell 2015, sections 2.3.3 and 2.4.5.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.data import Column
from hedgerow.errors import MissingColumn, SettingsInvalid, suggestion
from hedgerow.report import Curve, Figure, Series

from .columns import range_of, upper_end
from .design import Design
from .factors import Levels, Number
from .splines import Spline, spline_at

POINTS = 61
"""Values of a curve, over the declared range, where none are asked for."""


class SplineCurves:
    """What every fit of a formula can draw along one of its columns; needs `spec`, `coef_` and `covariance`."""

    def curvature(self, column: str) -> tuple[float, int, float]:
        """Test that the splines of a column are straight lines: statistic, number of constraints, p.

        Of `rcs` it is the Wald test of all coefficients but the first, in products by a colon too. The statistic is F where
        there are degrees of freedom for it, chi-squared over their number otherwise.

        Parameters
        ----------
        column : str
            Or the expression that the spline is of, such as `log(age)`.

        Raises
        ------
        SettingsInvalid (HR-511)
            The formula has no spline of it, or one that is always straight.
        """
        contrasts = _bends(_rows_of(self), column)
        return wald_test(self.coef_, self.covariance, contrasts, getattr(self, "df_inference", None))  # type: ignore[attr-defined]

    def curve(
        self,
        column: str,
        at: Sequence[float] | None = None,
        *,
        reference: float | None = None,
        given: Mapping[str, Any] | None = None,
        ratio: bool = False,
        level: float = 0.95,
    ) -> Curve:
        """The linear predictor along a column, less that at a reference value, with a band.

        It is made of coefficients, covariance and declared values; no record is looked at.

        Parameters
        ----------
        column : str
            Of numbers.
        at : sequence of float, optional
            Values within the declared range; by default 61 from its one end to the other.
        reference : float, optional
            Where the curve is zero, without a band; by default the middle of the declared range.
        given : mapping, optional
            Values of columns that stand in a product with this one, levels as words; by default the middle of the declared
            range, and the first level. Other columns make no difference.
        ratio : bool
            Whether to show exponentials: odds ratios, hazard ratios or ratios of means.
        level : float
            Of the band, at each value by itself.

        Raises
        ------
        MissingColumn (HR-403)
            The formula does not read the column.
        SettingsInvalid (HR-511)
            It is a category; a value lies outside the declared range, or there is none to choose one from.
        """
        rows, words = _rows_of(self), _ratio_of(self)
        if ratio and not words:
            raise SettingsInvalid("coefficients of this fit are no logarithms of ratios.", remedy="Leave ratio out.")
        read = _column(rows, column)
        values = np.atleast_1d(np.asarray(_grid(read) if at is None else at, dtype=np.float64))
        middle = _middle(read) if reference is None else float(reference)
        _inside(read, [*values, middle])
        along = np.append(values, middle)
        columns, others = _held(rows, column, len(along), dict(given or {}))
        made = rows.matrix(columns | {column: along}, len(along))
        apart = made[:-1] - made[-1]
        y, se = apart @ self.coef_, _errors(apart, self.covariance)  # type: ignore[attr-defined]
        df, share = getattr(self, "df_inference", None), upper_end(level)
        reach = special.ndtri(share) if df is None else special.stdtrit(df, share)
        lines = np.array([y, y - reach * se, y + reach * se])
        with np.errstate(over="ignore"):
            lines = np.exp(lines) if ratio else lines
        unit = f" ({read.unit})" if read.unit else ""
        held = f", at {', '.join(f'{name} = {word}' for name, word in others.items())}" if others else ""
        drawn, low, high = (tuple(one) for one in lines.tolist())
        if not np.isfinite(lines).all():  # a fit through noise has no errors
            low = high = ()
        main = Series(f"against {middle:g}", tuple(values.tolist()), drawn, low=low, high=high)
        target = rows.response.names[0] if isinstance(rows.response, Levels) else rows.response.text
        return Curve(
            f"{target} along {column}",
            f"{column}{unit}",
            words if ratio else f"difference of {_PREDICTORS.get(words, 'means')}",
            (main,),
            line=1.0 if ratio else 0.0,
            note=f"Against {column} = {middle:g}{held}. The band is of {level:.0%} at each value by itself.",
            log="y" if ratio else "",
        )

    def plot_curve(
        self,
        column: str,
        at: Sequence[float] | None = None,
        *,
        reference: float | None = None,
        given: Mapping[str, Any] | None = None,
        ratio: bool = False,
        level: float = 0.95,
    ) -> Figure:
        """Draw `curve` as SVG, with the same parameters."""
        return Figure(self.curve(column, at, reference=reference, given=given, ratio=ratio, level=level))


_PREDICTORS = {"odds ratio": "log-odds", "hazard ratio": "log-hazards", "ratio of means": "log-means"}


def wald_test(coef: Array, covariance: Array, contrasts: Array, df: float | None) -> tuple[float, int, float]:
    """Test that `contrasts @ coef` (q,) is zero: statistic, q, p; F with `df` degrees of freedom, else chi-squared."""
    apart, q = contrasts @ coef, len(contrasts)
    value = float(apart @ np.linalg.solve(contrasts @ covariance @ contrasts.T, apart)) / q
    return value, q, float(special.chdtrc(q, value * q) if df is None else special.fdtrc(q, df, value))


def splines_of(rows: Design, column: str) -> dict[tuple[Spline, str], list[tuple[int, int]]]:
    """Splines of a column or expression: for each, and what it is multiplied by, numbers of its columns and their places."""
    found: dict[tuple[Spline, str], list[tuple[int, int]]] = {}
    start = 0
    for term in rows.terms:
        for i, factor in enumerate(term.factors):
            read = _read(factor.text) if isinstance(factor, Number) else None
            if read is None or read.of != column:
                continue
            others = [factor.names for j, factor in enumerate(term.factors) if j != i]
            for place, name in enumerate(_products(others)):
                found.setdefault((_whole(read), name), []).append((read.column or 1, start + place))
        start += len(term.names)
    return found


def _products(names: Sequence[Sequence[str]]) -> list[str]:
    made = [""]
    for some in names:
        made = [f"{before}:{one}" for before in made for one in some]
    return made


def _whole(spline: Spline) -> Spline:
    return Spline(spline.kind, spline.of, spline.knots, spline.degree, spline.ends)


def _read(text: str) -> Spline | None:
    try:
        found = spline_at(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):  # a column's name may be no expression
        return None
    return found and found[0]


def _bends(rows: Design, column: str) -> Array:
    """Combinations of coefficients that are zero where all splines of a column are straight lines, shape (q, d)."""
    contrasts = []
    for (spline, _), columns in splines_of(rows, column).items():
        straight = spline.straight[[j - 1 for j, _ in columns]]
        across = np.linalg.svd(straight[None, :])[2][1:]  # what is orthogonal to a straight line
        found = np.zeros((len(across), rows.size))
        found[:, [place for _, place in columns]] = across
        contrasts.append(found)
    bends = np.concatenate(contrasts) if contrasts else np.zeros((0, rows.size))
    if not len(bends):
        why = "which is straight by its degree" if contrasts else "no spline"
        raise SettingsInvalid(
            f"{rows.formula!r} has {why} of {column!r}.",
            remedy=f"Write rcs({column}, [30, 45, 60, 75]), with knots of its own.",
        )
    return bends


def _rows_of(fit: Any) -> Design:
    """The design whose columns are a fit's coefficients, one each."""
    spec = fit.spec
    rows: Design = spec if isinstance(spec, Design) else spec.rows
    if rows.size != len(fit.coef_):
        raise SettingsInvalid(
            f"coefficients of {rows.formula!r} differ by period, so that a column has several curves.",
            remedy="Fit without varying columns.",
        )
    return rows


def _ratio_of(fit: Any) -> str:
    """What exponentials of coefficients are; empty where they mean nothing."""
    if hasattr(fit, "law"):
        return str(fit.law.ratio)
    kind = getattr(fit, "kind", None)
    return {"linear": "", "logistic": "odds ratio"}.get(str(kind), "hazard ratio")


def _column(rows: Design, name: str) -> Column:
    if name not in rows.reads:
        raise MissingColumn(f"{rows.formula!r} reads no column {name!r}.", remedy=suggestion(name, rows.reads))
    column = rows.schema[name]
    if column.kind == "category":
        raise SettingsInvalid(f"{name!r} is a category, and has no curve.", remedy="Take plot() or wald([...]).")
    return column


def _grid(column: Column) -> Array:
    return np.linspace(*_range(column), POINTS)


def _middle(column: Column) -> float:
    low, high = _range(column)
    return (low + high) / 2 if column.kind == "number" else float((low + high) // 2)


def _range(column: Column) -> tuple[float, float]:
    found = range_of(column)
    if found is None:
        raise SettingsInvalid(
            f"{column.name!r} has no declared range to choose values from, and records are not looked at.",
            remedy="Give at= and reference=, or given= where it is another column.",
        )
    return found


def _inside(column: Column, values: Sequence[float]) -> None:
    low, high = range_of(column) or (-np.inf, np.inf)
    if wrong := [value for value in values if not low <= value <= high]:
        raise SettingsInvalid(
            f"{column.name} = {wrong[0]:g} lies outside the declared range [{low:g}, {high:g}].", remedy="Name values inside."
        )


def _held(rows: Design, column: str, n: int, given: dict[str, Any]) -> tuple[dict[str, Array], dict[str, str]]:
    """Columns of one value each, and those of them, in words, that make a difference."""
    for name in given:
        if name not in rows.reads or name == column:
            raise MissingColumn(f"given= names {name!r}, which is no other column.", remedy=suggestion(name, rows.reads))
    beside = {
        name
        for term in rows.terms
        if any(column in one.reads(rows.schema) for one in term.factors)
        for one in term.factors
        for name in one.reads(rows.schema)
    } - {column}
    columns, words = {}, {}
    for name in rows.reads:
        if name == column:
            continue
        value, word = _value_of(rows.schema[name], given, needed=name in beside)
        columns[name] = np.full(n, value)
        if name in beside and name not in rows.indicated:
            words[name] = word
    return columns, words


def _value_of(column: Column, given: dict[str, Any], *, needed: bool) -> tuple[float | int, str]:
    if column.kind == "category":
        word = str(given.get(column.name, column.levels[0]))
        if word not in column.levels:
            raise SettingsInvalid(f"{column.name!r} has no level {word!r}.", remedy=suggestion(word, column.levels))
        return column.levels.index(word), word
    if column.name in given:
        value = float(given[column.name])
        _inside(column, [value])
    elif column.kind == "binary":
        value = 0.0
    else:
        value = _middle(column) if needed and not column.optional else column.stand_in
    return value, f"{value:g}"


def _errors(rows: Array, covariance: Array) -> Array:
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, covariance, rows), 0.0)))
