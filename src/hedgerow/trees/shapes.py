"""Additive models as a reader sees them: predictions, and the shape of each feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.data import Column
from hedgerow.display import cell
from hedgerow.errors import MissingColumn, suggestion
from hedgerow.report import Curve, Dots, Figure, Series

from .bins import Bins
from .charged import ForestCost, summary_of
from .reading import bin_numbers, named

if TYPE_CHECKING:
    import pandas

UNSURE = "The line holds privacy noise. How far that moves it does not follow from what is released, so no band is drawn."


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveModel:
    """A generalised additive model: the sum of one step function of each feature.

    Attributes
    ----------
    bins : Bins
    theta : array of shape (sum of the features' bins,)
        What each bin adds to the log-odds, or to the mean in halves of the target's declared range.
    counts : array of the same shape
        Records of each bin, noisy where they were asked through noise: the weights by which shapes are centred.
    log : tuple of str
        Features with bins on a logarithmic scale.
    rounds : int
    sigma : float
        Standard deviation of the noise in each sum of a round: of y - p, or of residuals in halves of the target's range; zero
        without noise. What it makes of a finished shape is not known; see `hedgerow.trees.additive`.
    cost : ForestCost or None
        What was asked and spent for it; None of a model that was made from a state alone.
    """

    bins: Bins
    theta: Array
    counts: Array
    log: tuple[str, ...] = ()
    rounds: int = 0
    sigma: float = 0.0
    cost: ForestCost | None = None

    @property
    def spent(self) -> tuple[float, float] | None:
        """Epsilon and delta of everything that its federation's ledger holds; None where that is not finite or not known."""
        return None if self.cost is None else self.cost.spent

    def summary(self) -> str:
        """Return the model as text, with what was spent and how it was protected."""
        return summary_of(self, self.cost)

    # ---- use --------------------------------------------------------------------------------------------------------
    def decide(self, data: Any) -> Array:
        """Log-odds of new records, or their mean in units of the target: shape (n,).

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            The data do not hold the features as declared, or lack a value.
        """
        numbers = bin_numbers(self.bins, data)
        parts = self._parts(self.theta)
        eta = np.sum([part[numbers[:, j]] for j, part in enumerate(parts)], axis=0, initial=0.0)
        return eta if self.bins.classes else np.asarray(eta * self.bins.scale + self.bins.centre)

    def predict(self, data: Any) -> Array:
        """The more probable class (0 or 1 for a binary target, else the level's word), or the mean within its range: (n,)."""
        found = self.decide(data)
        if self.bins.classes:
            return named(self.bins, (found > 0).astype(np.int64))
        low, high = self.bins.target.low, self.bins.target.high
        return np.asarray(np.clip(found, -np.inf if low is None else low, np.inf if high is None else high))

    def probabilities(self, data: Any) -> Array:
        """Probability of each class of `bins.classes`: shape (n, 2). For classification."""
        p = special.expit(self.decide(data))
        return np.stack([1 - p, p], axis=-1)

    # ---- what it says -----------------------------------------------------------------------------------------------
    @property
    def intercept(self) -> float:
        """What an average record has, by the counts of bins: log-odds, or units of the target."""
        total = sum(_mean(part, n) for part, n in zip(self._parts(self.theta), self._parts(self.counts), strict=True))
        return total if self.bins.classes else total * self.bins.scale + self.bins.centre

    def shape(self, feature: str) -> pandas.DataFrame:
        """What each bin of a feature adds, centred so that the mean over records is zero.

        Returns
        -------
        DataFrame
            One row for each bin: `low` and `high`, its ends in units of the feature (`low` excluded, but of the first), or the
            `level` of a category; `contribution`, in log-odds or in units of the target; `records`, noisy where they were asked
            through noise.

        Raises
        ------
        MissingColumn (HR-403)
            The model has no such feature.
        """
        import pandas

        place = self._place(feature)
        column, part, n = self.bins.features[place], self._parts(self.theta)[place], self._parts(self.counts)[place]
        unit = 1.0 if self.bins.classes else self.bins.scale
        found: dict[str, Any] = {"contribution": (part - _mean(part, n)) * unit, "records": n}
        if (words := _levels(column)) is not None:
            return pandas.DataFrame({"level": list(words)} | found)
        edges = self._edges(place)
        return pandas.DataFrame({"low": edges[:-1], "high": edges[1:]} | found)

    @property
    def importance(self) -> dict[str, float]:
        """Mean size of each feature's centred contribution, by the counts of its bins."""
        return {
            name: _mean(np.abs(frame["contribution"].to_numpy()), frame["records"].to_numpy()) for name, frame in self._all()
        }

    def plot(self, *features: str) -> Figure:
        """Draw the shapes of some features; of the six most important where none is named.

        Raises
        ------
        MissingColumn (HR-403)
            The model has no such feature.
        """
        chosen = features or [name for name, _ in sorted(self.importance.items(), key=lambda pair: -pair[1])[:6]]
        return Figure(*(_drawn(self, name) for name in chosen))

    def __str__(self) -> str:
        unit = "log-odds" if self.bins.classes else self.bins.target.unit or "units of the target"
        lines = [f"{self!r}", f"intercept {self.intercept:.4g} {unit}", "mean size of a contribution"]
        if self.sigma:
            lines.insert(1, f"noise of every sum of a round: standard deviation {self.sigma:.4g}")
        first = sorted(self.importance.items(), key=lambda pair: -pair[1])
        width = max(len(name) for name, _ in first)
        return "\n".join([*lines, *(f"    {name.ljust(width)}  {size:.4g}" for name, size in first)])

    _repr_html_ = cell

    def __repr__(self) -> str:
        return f"AdditiveModel({self.bins.target.name!r}, {len(self.bins.features)} features, {self.rounds} rounds)"

    # ---- parts ------------------------------------------------------------------------------------------------------
    def _parts(self, numbers: Array) -> list[Array]:
        return np.split(numbers, np.cumsum(self.bins.sizes)[:-1])

    def _place(self, feature: str) -> int:
        names = [column.name for column in self.bins.features]
        if feature not in names:
            raise MissingColumn(f"the model has no feature {feature!r}.", remedy=suggestion(feature, names))
        return names.index(feature)

    def _edges(self, place: int) -> list[float]:
        column = self.bins.features[place]
        return [float(column.low or 0.0), *self.bins.cuts[place], float(column.high or 0.0)]

    def _all(self) -> list[tuple[str, pandas.DataFrame]]:
        return [(column.name, self.shape(column.name)) for column in self.bins.features]


def shape_drawings(model: AdditiveModel, features: Sequence[str]) -> tuple[tuple[Curve, ...], tuple[Dots, ...]]:
    """Drawings of some features: steps of numbers, and dots of levels."""
    drawn = [_drawn(model, name) for name in features]
    return tuple(one for one in drawn if isinstance(one, Curve)), tuple(one for one in drawn if isinstance(one, Dots))


def _drawn(model: AdditiveModel, feature: str) -> Curve | Dots:
    frame = model.shape(feature)
    column = model.bins.features[model._place(feature)]
    unit = f" [{column.unit}]" if column.unit else ""
    of = "log-odds" if model.bins.classes else f"{model.bins.target.name}{_in(model.bins.target)}"
    contribution, note = frame["contribution"].to_numpy(), UNSURE if model.sigma else ""
    if "level" in frame:
        order = np.argsort(-contribution, kind="stable")
        marks = (("contribution", tuple(contribution[order].tolist())),)
        return Dots(f"Shape of {feature}", of, tuple(frame["level"].to_numpy()[order].tolist()), marks, line=0.0, note=note)
    ends, label = frame[["low", "high"]].to_numpy(), f"{feature}{unit}"
    if feature in model.log:
        away = 1 - float(column.low or 0.0)
        ends, label = ends + away, f"{feature}{'' if away == 0 else f' + {away:g}' if away > 0 else f' - {-away:g}'}{unit}"
    steps = Series(feature, tuple(ends.ravel().tolist()), tuple(np.repeat(contribution, 2).tolist()))
    log = "x" if feature in model.log else ""
    return Curve(f"Shape of {feature}", label, of, (steps,), line=0.0, log=log, note=note)  # type: ignore[arg-type]


def _in(column: Column) -> str:
    return f" [{column.unit}]" if column.unit else ""


def _levels(column: Column) -> tuple[str, ...] | None:
    """Words of the bins of a category or of a binary feature."""
    if column.kind == "category":
        return column.levels
    return ("0", "1") if column.kind == "binary" else None


def _mean(values: Array, records: Array) -> float:
    """Mean by counts that are never below zero; the plain mean where there are none."""
    w = np.maximum(records, 0.0)
    total = math.fsum(w.tolist())
    return float(values @ w / total) if total > 0 else float(values.mean())
