"""Conditions on made-up records: `{"sex": "Female", "age": (40, 60)}`, as weights of codes.

A level weighs one or nothing. Of a range each bin weighs the part of it that lies inside, as values are uniform there, and
values are then drawn from that part: what comes out satisfies the condition exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.data import Column
from hedgerow.errors import SettingsInvalid, suggestion

from .codes import Codes, is_point


@dataclass(frozen=True)
class Conditions:
    """What made-up records have to satisfy.

    Attributes
    ----------
    weights : mapping from a column's place to array of shape (codes,)
        In [0, 1], not all zero.
    within : mapping from a column's place to (low, high)
        Of the ranges of numbers, ends included.
    """

    weights: Mapping[int, Array] = field(default_factory=dict)
    within: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, codes: Codes, where: Mapping[str, Any] | None = None) -> Conditions:
        """Read conditions by column name.

        Parameters
        ----------
        where : mapping, optional
            Of a category a level or several; of a binary column 0 or 1; of a number one value or a pair (low, high), in which
            None is the declared end. None alone asks for any number, so that none is missing. No condition asks for a missing
            value; without a condition values are missing about as often as in the tables.

        Raises
        ------
        MissingColumn (HR-403)
            No such column.
        SettingsInvalid (HR-511)
            A level is unknown, or a range holds no value.
        """
        weights, within = {}, {}
        for name, wanted in (where or {}).items():
            j = codes.place(name)
            column, size = codes.columns[j], codes.sizes[j]
            if column.kind in ("category", "binary"):
                weights[j] = np.isin(np.arange(size), _codes_of(column, wanted)).astype(float)
                continue
            within[j] = _range(column, wanted)
            weights[j] = np.append(_parts(codes, j, *within[j]), np.zeros(int(column.optional)))
            if not weights[j].any():
                low, high = within[j]
                raise SettingsInvalid(
                    f"{name!r} from {low:g} to {high:g} holds no value of this column.",
                    remedy=f"It is {column.kind}, declared from {column.low:g} to {column.high:g}.",
                )
        return cls(weights, within)


def _codes_of(column: Column, wanted: Any) -> list[int]:
    several = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
    levels = ("0", "1") if column.kind == "binary" else column.levels
    found = []
    for one in several:
        spelt = _spelt(one)
        if spelt not in levels and (one is None or one != one):
            raise SettingsInvalid(
                f"{column.name!r} = {one!r}: a missing value is no level.",
                remedy=f"Name levels: {levels[:8]}; all of them ask for any value that is there.",
            )
        if spelt not in levels:
            raise SettingsInvalid(
                f"{column.name!r} = {one!r:.80}: there is no such level.",
                remedy=suggestion(spelt, levels) or f"Levels: {levels[:8]}.",
            )
        found.append(levels.index(spelt))
    if not found:
        raise SettingsInvalid(f"{column.name!r} may have no level at all.", remedy="Name one level or several.")
    return found


def _spelt(one: Any) -> str:
    """A level as it is spelt: of a whole number without a point."""
    try:
        whole = isinstance(one, int | float | np.number) and one == int(one)
    except (TypeError, ValueError, OverflowError):  # no number of the line, or none that is finite
        whole = False
    return str(int(one)) if whole else str(one)


def _range(column: Column, wanted: Any) -> tuple[float, float]:
    pair = isinstance(wanted, Sequence) and not isinstance(wanted, str)
    try:
        low, high = wanted if pair else (wanted, wanted)
        low, high = (float(end if end is not None else own) for end, own in ((low, column.low), (high, column.high)))
    except (TypeError, ValueError, OverflowError):
        raise SettingsInvalid(
            f"{column.name!r} = {wanted!r:.80} is no value or range.", remedy="Give a number, or a pair (low, high)."
        ) from None
    given = wanted if pair else (wanted, wanted)
    if low > high and None in given:
        end, beyond = (column.high, "above") if given[1] is None else (column.low, "below")
        raise SettingsInvalid(
            f"{column.name!r} = {wanted!r:.80}: that is {beyond} the declared {end:g}.",
            remedy=f"It is declared from {column.low:g} to {column.high:g}.",
        )
    if math.isnan(low) or math.isnan(high):
        raise SettingsInvalid(
            f"{column.name!r} = {wanted!r:.80}: no number, and a missing value is no condition.",
            remedy="Give a number, or a pair (low, high); None asks for any value that is there.",
        )
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise SettingsInvalid(f"{column.name!r} from {low:g} to {high:g} is no range.", remedy="Give low <= high.")
    return low, high


def _parts(codes: Codes, j: int, low: float, high: float) -> Array:
    """The part of each bin of a number that lies in [low, high]."""
    column, ends = codes.columns[j], codes.ends(j)
    if column.kind == "integer":  # how many whole numbers
        first, last = codes.whole_ends(j)
        inside = np.minimum(last, math.floor(high)) - np.maximum(first, math.ceil(low)) + 1
        return np.maximum(inside, 0) / np.maximum(last - first + 1, 1)
    scale = (lambda x: np.log1p(x - ends[0])) if codes.widths[j] == "log" else (lambda x: x)
    if low == high:  # one value: the bin that holds it
        at = np.searchsorted(codes.cuts[j], low)
        return (np.arange(len(ends) - 1) == at) * float(ends[0] <= low <= ends[-1])
    a, b = np.maximum(ends[:-1], low), np.minimum(ends[1:], high)
    inside = np.where(b > a, scale(np.maximum(b, ends[0])) - scale(np.clip(a, ends[0], None)), 0.0)
    width = scale(ends[1:]) - scale(ends[:-1])
    points = is_point(ends[:-1], ends[1:]) | (width <= 0)
    found: Array = np.where(points, (low <= ends[1:]) & (ends[1:] <= high), inside / np.where(points, 1.0, width))
    return found
