"""What a figure of a further measure says, in sentences that are made from its numbers.

what is bought      at the row where columns differ most in the measure of the comparison: from which to which it goes, and
                    what the further measure does meanwhile
what is allowed     from which row on the most that is allowed is nearly everything, and what was found there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hedgerow.report.numerals import show

NOTHING = 0.9
"""A bound of at least so much of 1 says nothing."""

Values = Mapping[str, Mapping[str, float]]
"""By the name of a row, and of a column in the figure."""


def bought(axis: str, label: str, first: Values, other: str, further: Values) -> str:
    """What columns differ in, where they differ most; "" where there is nothing to compare."""
    spread = {row: max(by.values()) - min(by.values()) for row, by in first.items() if len(by) > 1 and row in further}
    if not spread or not (row := max(spread, key=lambda name: spread[name])) or not spread[row]:
        return ""
    high, low = (pick(first[row], key=lambda name: first[row][name]) for pick in (max, min))
    if high not in further[row] or low not in further[row]:
        return ""
    ends = f"{_short(first[row][high])} to {_short(first[row][low])}"
    also = f"{_short(further[row][high])} to {_short(further[row][low])}"
    return f"At {axis} {row} the {label} goes from {ends} between {high} and {low}, and the {other} from {also}."


def allowed(axis: str, other: str, most: Sequence[tuple[str, float]], further: Values) -> str:
    """From where on the most that is allowed says nothing; "" where that never is. Rows are in the order of the axis."""
    void = [row for row, value in most if value >= NOTHING]
    found = [value for row in void for value in further.get(row, {}).values()]
    if not void or not found:
        return ""
    least = next(value for row, value in most if row == void[0])
    return (
        f"From {axis} {void[0]} on a {other} of {_short(least)} or more is allowed, which says nothing; found there: "
        f"{_short(min(found))} to {_short(max(found))}."
    )


def _short(value: float) -> str:
    return show(round(value, 3))
