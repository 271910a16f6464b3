"""Forest plots: one estimate with its interval for each site, all of them together, and where another site's is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from hedgerow.errors import StudyInvalid


@dataclass(frozen=True)
class ForestRow:
    """One estimate with its interval.

    Parameters
    ----------
    name : str
    estimate, low, high : float
        On the scale that is read: of odds ratios the ratios, not their logarithms. NaN ends leave the interval out.
    weight : float
        How much it counts among all; its box is as large. Only relations matter.
    """

    name: str
    estimate: float
    low: float
    high: float
    weight: float = 1.0


@dataclass(frozen=True)
class ForestPlot:
    """Estimates of several sites, and of all together.

    Parameters
    ----------
    title, x_label : str
    rows : tuple of ForestRow
        The sites, as they are shown.
    total : ForestRow or None
        All sites together: a diamond.
    prediction : (low, high) or None
        Where the value of another site is expected.
    ratio : bool
        Whether steps of the axis are factors and 1 is no effect; otherwise 0 is.
    sentence : str
        What follows from the test of whether sites differ.
    note : str
        How the total was made, below the drawing.
    level : float
        Of the intervals.

    Raises
    ------
    StudyInvalid (HR-101)
        A ratio is not above zero.
    """

    title: str
    x_label: str
    rows: tuple[ForestRow, ...]
    total: ForestRow | None = None
    prediction: tuple[float, float] | None = None
    ratio: bool = False
    sentence: str = ""
    note: str = ""
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.ratio and any(value <= 0 for row in self.drawn for value in (row.estimate, row.low, row.high)):
            raise StudyInvalid(
                f"{self.title!r} has ratios that are not above zero.", remedy="Give ratios, not their logarithms."
            )

    @property
    def drawn(self) -> tuple[ForestRow, ...]:
        """The rows, and the total below them."""
        return (*self.rows, *(() if self.total is None else (self.total,)))

    @property
    def no_effect(self) -> float:
        return 1.0 if self.ratio else 0.0

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> Self:
        """The plot of which a report's JSON has these values."""
        total = None if values["total"] is None else ForestRow(**values["total"])
        return cls(**values | {"rows": tuple(ForestRow(**row) for row in values["rows"]), "total": total})
