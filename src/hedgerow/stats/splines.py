"""Splines with declared knots: columns of one record each, whatever the other records are.

    rcs(x, [t1, ..., tk])                   k - 1 columns: x itself, and k - 2 that rise from t1 on; straight beyond both ends
        [j + 1] = (p(x - tj) - p(x - tk-1) (tk - tj) / (tk - tk-1) + p(x - tk) (tk-1 - tj) / (tk - tk-1)) / (tk - t1)^2
        where p(u) = max(u, 0)^3
    bs(x, knots=[...], degree=3)            len(knots) + degree columns within [0, 1]: B-splines but for the first, which the
                                            intercept spans; between the ends of the declared range

A column is written `rcs(age, [30, 45, 60, 75])[2]` or `bs(age, [40, 60], 3, [18, 90])[1]`, degree and ends being said, so that
every party computes the same from its text alone. Only sums, products, quotients and comparisons of a record's numbers are in
it.

Source : Harrell 2015, section 2.4.5; de Boor 1978, chapter IX (the recursion).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import FormulaInvalid

SPLINES = ("rcs", "bs")
MOST_KNOTS = 50


@dataclass(frozen=True)
class Spline:
    """A spline of an expression, and which of its columns is meant.

    Attributes
    ----------
    kind : {"rcs", "bs"}
    of : str
        The expression.
    knots : tuple of float
        Rising.
    degree : int
        Of B-splines.
    ends : (float, float) or None
        Between which B-splines lie.
    column : int or None
        From 1.
    """

    kind: Literal["rcs", "bs"]
    of: str
    knots: tuple[float, ...]
    degree: int = 3
    ends: tuple[float, float] | None = None
    column: int | None = None

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.knots) - 1 if self.kind == "rcs" else len(self.knots) + self.degree

    @property
    def text(self) -> str:
        """As it is written in a formula."""
        knots = _listed(self.knots)
        ends = "" if self.ends is None else f", {_listed(self.ends)}"
        said = f"rcs({self.of}, {knots})" if self.kind == "rcs" else f"bs({self.of}, {knots}, {self.degree}{ends})"
        return said if self.column is None else f"{said}[{self.column}]"

    @property
    def columns(self) -> tuple[Spline, ...]:
        """Each of its columns."""
        return tuple(replace(self, column=j + 1) for j in range(self.size))

    @property
    def straight(self) -> Array:
        """Coefficients of the columns that give a straight line, up to a constant, shape (size,)."""
        if self.kind == "rcs":
            line: Array = np.eye(1, self.size)[0]
            return line
        padded = self._padded
        means = np.array([padded[j + 1 : j + 1 + self.degree].mean() for j in range(self.size + 1)])
        found: Array = means[1:] - means[0]
        return found

    def value(self, x: Array) -> Array:
        """The column that is meant, of numbers of any shape."""
        assert self.column is not None, "a spline by itself is several columns"
        x = np.asarray(x, dtype=np.float64)
        if self.kind == "bs":
            return self._b_spline(x, self.column, self.degree)
        return x if self.column == 1 else self._restricted(x, self.column - 2)

    def range_of(self, low: float, high: float) -> tuple[float, float]:
        """Between what the column lies for numbers in a range."""
        if self.kind == "bs":
            return 0.0, 1.0
        first, last = self.value(np.array([low, high])).tolist()  # they rise
        return first, last

    def _restricted(self, x: Array, j: int) -> Array:
        t = self.knots
        gap, unit = t[-1] - t[-2], (t[-1] - t[0]) ** 2
        bent = _cube(x - t[j]) - _cube(x - t[-2]) * ((t[-1] - t[j]) / gap) + _cube(x - t[-1]) * ((t[-2] - t[j]) / gap)
        found: Array = bent / unit
        return found

    @property
    def _padded(self) -> Array:
        """All knots, the ends as often as the degree and once more."""
        assert self.ends is not None, "B-splines have ends"
        low, high = self.ends
        return np.array([low] * (self.degree + 1) + list(self.knots) + [high] * (self.degree + 1))

    def _b_spline(self, x: Array, j: int, degree: int) -> Array:
        t = self._padded
        if degree == 0:
            last = t[j] < t[j + 1] == t[-1]  # the last interval holds its right end
            return np.asarray((x >= t[j]) & ((x <= t[j + 1]) if last else (x < t[j + 1])), dtype=np.float64)
        found: Array = np.zeros(x.shape)
        if t[j + degree] > t[j]:
            found = found + (x - t[j]) / (t[j + degree] - t[j]) * self._b_spline(x, j, degree - 1)
        if t[j + degree + 1] > t[j + 1]:
            found = found + (t[j + degree + 1] - x) / (t[j + degree + 1] - t[j + 1]) * self._b_spline(x, j + 1, degree - 1)
        return found


def _cube(u: Array) -> Array:
    above = np.maximum(u, 0.0)
    return above * above * above


def _listed(numbers: tuple[float, ...]) -> str:
    return f"[{', '.join(f'{one:.17g}' if float(f'{one:g}') != one else f'{one:g}' for one in numbers)}]"


def spline_at(node: ast.AST) -> tuple[Spline, ast.expr] | None:
    """Read `rcs(...)`, `bs(...)`, or a column of one, with the expression inside; `None` for anything else.

    Raises
    ------
    FormulaInvalid (HR-310)
        It is one of them, and wrongly written.
    """
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name("rcs" | "bs")) as call, slice=ast.Constant(int(j))):
            spline, inner = _read(call)
            if not 1 <= j <= spline.size:
                raise FormulaInvalid(
                    f"{ast.unparse(node)!r}: there are columns 1 to {spline.size}.", remedy="Name one of them."
                )
            if spline.kind == "bs" and spline.ends is None:
                raise _wrong(call)
            return replace(spline, column=j), inner
        case ast.Call(func=ast.Name("rcs" | "bs")):
            return _read(node)
    return None


def _read(call: ast.Call) -> tuple[Spline, ast.expr]:
    kind: Any = ast.unparse(call.func)
    order = ("x", "knots") if kind == "rcs" else ("x", "knots", "degree", "range")
    given = dict(zip(order, call.args, strict=False)) | {str(one.arg): one.value for one in call.keywords}
    is_count = isinstance(one := given.get("knots"), ast.Constant) and isinstance(one.value, int)
    if "df" in given or is_count or (len(call.args) == 1 and "knots" not in given):
        said = "says how many knots, and not where" if is_count else "names no knots"
        raise FormulaInvalid(
            f"{ast.unparse(call)!r} {said}; to choose them needs all records at once, and a party has only its own.",
            remedy="Name them: rcs(age, [30, 45, 60, 75]); hr.stats.knots_of(federation, 'age') asks for quantiles.",
        )
    if len(call.args) > len(order) or not {"x", "knots"} <= given.keys() <= set(order):
        raise _wrong(call)
    knots, degree = _numbers(given["knots"], call), 3
    if "degree" in given:
        match given["degree"]:
            case ast.Constant(value=int() as degree) if not isinstance(degree, bool):
                pass
            case _:
                raise _wrong(call)
    ends = _numbers(given["range"], call) if "range" in given else None
    spline = Spline(kind, ast.unparse(given["x"]), knots, degree, None if ends is None else (ends[0], ends[-1]))
    _check(spline, call, ends)
    return spline, given["x"]


def _check(spline: Spline, call: ast.Call, ends: tuple[float, ...] | None) -> None:
    written, knots = ast.unparse(call), spline.knots
    if any(not b > a for a, b in pairwise(knots)) or len(knots) > MOST_KNOTS:
        raise FormulaInvalid(
            f"the knots of {written!r} do not rise, or are more than {MOST_KNOTS}.", remedy="Write [30, 45, 60]."
        )
    if spline.kind == "rcs" and len(knots) < 3:
        raise FormulaInvalid(
            f"{written!r} has {len(knots)} knots, and between two it is straight.", remedy="Name three or more."
        )
    if spline.kind == "bs" and not 1 <= spline.degree <= 9:
        raise FormulaInvalid(f"{written!r} is of degree {spline.degree}.", remedy="A degree is 1 to 9; 3 is usual.")
    if ends is not None and not (len(ends) == 2 and ends[0] < ends[1] and all(ends[0] < knot < ends[1] for knot in knots)):
        raise FormulaInvalid(
            f"the knots of {written!r} do not lie between its ends.", remedy="Write range=[low, high] around them."
        )


def _numbers(node: ast.expr, call: ast.Call) -> tuple[float, ...]:
    try:
        found = tuple(map(float, ast.literal_eval(node)))
    except (TypeError, ValueError):
        raise _wrong(call) from None
    if not np.isfinite(found).all():
        raise _wrong(call)
    return found


def _wrong(call: ast.Call) -> FormulaInvalid:
    return FormulaInvalid(
        f"{ast.unparse(call)!r} is not understood.",
        remedy="Write rcs(age, [30, 45, 60, 75]) or bs(age, knots=[40, 60], degree=3), knots being numbers.",
    )
