"""Numbers as a reader wants them: few digits, grouped thousands, true minus signs, aligned columns."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median
from typing import Any, TypeGuard

import numpy as np

from hedgerow.report.model import Cell

DASH, MINUS, THIN_SPACE = "–", "−", "\N{NARROW NO-BREAK SPACE}"

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOOKS_NUMERIC = re.compile(r"[<>≤≥±]?\s*[-−+]?[\d.,\s]*(\d|∞)(×10\S+|e[-+]\d+)?\s*%?")
_LARGE, _SMALL = 1e6, 1e-3
_P_VALUES = {"p", "p-value", "p value", "p>|z|", "p>|t|", "p > |z|", "p > |t|"}


def show(value: Cell) -> str:
    """Return one value by itself: floats with four digits, integers grouped, `None` and NaN as a dash."""
    if not is_number(value):
        return _words(value)
    if isinstance(value, int | np.integer):
        return _point(value, 0)
    size = abs(value)
    if size and not _SMALL <= size < _LARGE:
        return _power(value)
    decimals = max(0, 3 - math.floor(math.log10(size))) if size else 0
    written = _point(value, decimals)
    return written.rstrip("0").rstrip(".") if "." in written else written


def show_column(name: str, cells: Sequence[Cell]) -> list[str]:
    """Return the cells of one column with a common number of decimals; p-values below 0.001 are written so."""
    numbers = [cell for cell in cells if is_number(cell)]
    if name.strip().lower() in _P_VALUES:
        return [_p_value(cell) if is_number(cell) else _words(cell) for cell in cells]
    decimals = _common_decimals(numbers)
    return [_in_column(cell, decimals) if is_number(cell) else _words(cell) for cell in cells]


def fixed(value: float, decimals: int) -> str:
    """Return `value` with exactly `decimals` decimals, or as a power of ten when it is too large for that."""
    return _power(value) if abs(value) >= _LARGE else _point(value, decimals)


def is_numeric(cell: Cell) -> bool:
    """Whether a cell should be aligned to the right."""
    return (isinstance(cell, str) and bool(_LOOKS_NUMERIC.fullmatch(cell.strip()))) or is_number(cell)


def is_number(cell: Any) -> TypeGuard[float]:
    """Whether a cell is a finite number, of Python or of numpy."""
    return isinstance(cell, int | float | np.number) and not isinstance(cell, bool) and math.isfinite(cell)


def _words(cell: Cell) -> str:
    if cell is None or cell != cell:
        return DASH
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float | np.floating):
        return "∞" if cell > 0 else MINUS + "∞"
    return str(cell)


def _in_column(value: float, decimals: int) -> str:
    if isinstance(value, int | np.integer):
        return _point(value, 0)
    vanishes = value != 0 and round(value, decimals) == 0
    return _power(value) if vanishes else fixed(value, decimals)


def _common_decimals(numbers: Sequence[float]) -> int:
    """Four digits of a typical value, and at most four decimals."""
    sizes = [abs(number) for number in numbers if number]
    if not sizes or all(float(number).is_integer() for number in numbers):
        return 0
    return min(4, max(0, 3 - math.floor(math.log10(median(sizes)))))


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else _point(value, 3)


def _point(value: float, decimals: int) -> str:
    written = f"{value:,.{decimals}f}".replace(",", THIN_SPACE)
    negative_zero = written.startswith("-") and not any(digit in written for digit in "123456789")
    return written[1:] if negative_zero else written.replace("-", MINUS)


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".").replace("-", MINUS)
    return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
