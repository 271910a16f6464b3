"""What a finished program has to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError

from .flow import Flow
from .forest import ForestPlot
from .headline import Headline
from .heat import Heat
from .model import BarChart, Curve, Dots, Grid
from .pictures import Pictures

if TYPE_CHECKING:
    import numpy
    import pandas


@dataclass(frozen=True)
class Outcome:
    """What a finished program has to show.

    Attributes
    ----------
    metrics : dict
        The few numbers that a reader looks for first.
    tables : dict from title to DataFrame
    text : dict from title to preformatted text
    arrays : dict of arrays
        Written to `model.safetensors`.
    coefficients : DataFrame, optional
        Written to `coefficients.csv`.
    curves : sequence of Curve
        Figures of the program's own, beside those by round.
    grids : sequence of Grid
        Tables that are no data frames.
    notes : sequence of str
        Sentences below.
    dots : sequence of Dots
        The same, of several numbers of each of several things.
    bars : sequence of BarChart
        Histograms side by side.
    heats : sequence of Heat
        Shaded tables, such as a matrix of correlations.
    pictures : sequence of Pictures
        Rows of small pictures, such as records beside what an attack made of them.
    forests : sequence of ForestPlot
        Estimates of sites with intervals, and of all together.
    flows : sequence of Flow
        Where records were lost.
    headlines : sequence of Headline
        Of a page of findings: the numbers at its top.
    counted : dict of numbers
        "records" of a model, and "events" among them; for who writes headlines, and shown nowhere by itself.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, pandas.DataFrame] = field(default_factory=dict)
    text: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, numpy.ndarray] = field(default_factory=dict)
    coefficients: pandas.DataFrame | None = None
    curves: Sequence[Curve] = ()
    grids: Sequence[Grid] = ()
    notes: Sequence[str] = ()
    dots: Sequence[Dots] = ()
    bars: Sequence[BarChart] = ()
    heats: Sequence[Heat] = ()
    pictures: Sequence[Pictures] = ()
    forests: Sequence[ForestPlot] = ()
    flows: Sequence[Flow] = ()
    headlines: Sequence[Headline] = ()
    counted: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_table(cls, title: str, frame: pandas.DataFrame) -> Outcome:
        """One table, which is written to a file too."""
        return cls(tables={title: frame}, coefficients=frame)


class Measured(dict[str, float]):
    """Metrics of a model, with `figures` that were made of the same answers, and why others were `refused`."""

    def __init__(self, metrics: Mapping[str, float], *figures: Curve, refused: HedgerowError | None = None) -> None:
        super().__init__(metrics)
        self.figures, self.refused = figures, refused


def plain_outcome(federation: Any, settings: Mapping[str, Any], state: Any) -> Outcome:
    """Show a state as it is: its `to_frame()`, or a table of its fields."""
    import pandas

    if hasattr(state, "to_frame"):
        return Outcome(tables={"result": state.to_frame()})
    values = {item.name: getattr(state, item.name) for item in fields(state)} if is_dataclass(state) else {"value": state}
    rows = [(key, str(value)) for key, value in values.items()]
    return Outcome(tables={"result": pandas.DataFrame(rows, columns=["name", "value"])})
