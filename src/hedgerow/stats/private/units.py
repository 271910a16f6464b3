"""Coefficients of rows of a fixed length in the units of their columns, as an ordinary linear model has them."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.errors import SettingsInvalid

from ..factors import Levels
from .rows import UnitRows


def own_units(rows: UnitRows, coef: Array) -> Array:
    """Coefficients (d,) of columns as they are, for the target in its own units or for log-odds.

    Rows of fixed length are x_j = (v_j - low_j) / (width_j factor), and a number's target (y - middle) / half: both are undone,
    and what is left over goes to the constant. Levels of one category are told as differences from its first one. Without a
    constant nothing may be left over, and levels are told as they are.

    Raises
    ------
    SettingsInvalid (HR-511)
        Rows have been divided by their own lengths, so that no coefficient belongs to a column; or there is no constant.
    """
    if not rows.same_length:
        raise SettingsInvalid(
            "rows were divided by their own lengths, and coefficients of x / |x| have no units.",
            remedy="Fit with rows='fixed'.",
        )
    constants = [block for block in rows.blocks if not block.term.factors]
    shifted = [block for block in rows.blocks if block.low != 0.0 and block.cuts is None]
    unit = (rows.half if rows.numeric else 1.0) / rows.factor
    if not constants:
        if shifted or (rows.numeric and rows.middle):
            raise SettingsInvalid("without a constant nothing takes up the ranges' lower ends.", remedy="Leave out '- 1'.")
        widths = [1.0 if block.cuts is not None else block.high - block.low for block in rows.blocks]
        return np.asarray(coef) * unit / np.repeat(widths, [len(block.names) for block in rows.blocks])
    found, constant, at, start = np.empty(len(coef)), 0.0, 0, 0
    for block in rows.blocks:
        here = slice(start, start := start + len(block.names))
        found[here] = coef[here] * unit
        if not block.term.factors:
            at = here.start
        elif block.cuts is None:
            found[here] /= block.high - block.low
            constant -= block.low * float(found[here].sum())
        if block.cuts is not None or (len(block.term.factors) == 1 and isinstance(block.term.factors[0], Levels)):
            constant += found[here.start]
            found[here] -= found[here.start]
    found[at] += constant + (rows.middle if rows.numeric else 0.0)
    return found
