"""Moments and correlations, by sums about a centre.

Sums of squares about zero lose their digits where a mean is far from zero. So the centre moves: the first question is
asked about the middle of each declared range (zero where none is declared), the second about the mean that the first one
gave. Through a channel that clips or adds noise one question is asked, since a second would cost as much again.
Where rows are hidden, columns are asked for in units of their largest deviation, so that all have the same digits.

Releases : n, the sum of deviations and the sum of their squares (or products); twice, or once where they are protected.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds, l2, linf
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, held
from hedgerow.data import complete_cases, load
from hedgerow.display import displayed
from hedgerow.report import Outcome

from .blocks import by_blocks
from .columns import NUMERIC, chosen, heaviest, is_exact, names_of, range_of, schema_of
from .linear.sums import symmetric
from .whole import WholeRows

if TYPE_CHECKING:
    import pandas

    from hedgerow.data import Column, Schema


@local(additive=True, stackable=True, holds=BITS)
@by_blocks
def deviations(
    centre: Array, party: Party, rng: Any, *, columns: tuple[str, ...], cross: bool, bounds: Bounds | None = None
) -> dict[str, Array]:
    """Add up records, their deviations from `centre` (k,), and the squares (k,) or products (k, k) of deviations.

    A `centre` of shape (2, k) holds a scale besides, by which deviations are divided.
    """
    if bounds is not None:
        return _held(np.atleast_2d(centre), party, columns, bounds, cross=cross)
    x = np.moveaxis(_framed(np.atleast_2d(centre), party, columns), 0, -2)
    weighted = party.w[..., None, :] * x
    squares = weighted @ np.swapaxes(x, -1, -2) if cross else np.vecdot(weighted, x)
    return {"n": party.n, "sum": weighted.sum(-1), "squares": squares}


def _held(
    frame: Array, party: Party, columns: tuple[str, ...], bounds: Bounds, *, cross: bool = False, squares: bool = True
) -> dict[str, Array]:
    """The same, each record held to bounds, about a centre or in a frame of centre and scale."""
    rows, w = WholeRows(_framed(frame, party, columns)), party.w
    found = {"n": held(w, bounds, "n").sum(-1), "sum": rows.sums(w, bound_in(bounds, "sum"))}
    if not squares:
        return found
    one = bound_in(bounds, "squares")
    return found | {"squares": symmetric(rows.products(w, one)) if cross else rows.squared.sums(w, one)}


def _framed(frame: Array, party: Party, columns: tuple[str, ...]) -> Array:
    """Values about a centre, and in units of a scale if there is one, as columns (k, ..., n)."""
    x = np.empty((len(columns), *party.w.shape))
    for values, name, centre in zip(x, columns, frame[0], strict=True):
        np.subtract(party[name], centre, out=values, dtype=np.float64)
    apart = frame.reshape(*frame.shape, *(1,) * (x.ndim - 1))
    return x if len(frame) == 1 else np.divide(x, apart[1], out=x)


@local(additive=True, stackable=True, holds=BITS)
def deviations_about(broadcast: None, party: Party, rng: Any, *, centre: tuple[Any, ...], **settings: Any) -> dict[str, Array]:
    """The same about a centre that is a setting: parties may know it also where broadcasts are hidden from them."""
    return deviations(np.array(centre), party, rng, **settings)


def deviation_bounds(centre: Array, columns: Sequence[Column], weight: float | None, *, cross: bool) -> dict[str, Bound] | None:
    """Return by how much one record moves `deviations`, from declared ranges; `None` where one is not declared."""
    ranges = [range_of(column) for column in columns]
    if weight is None or any(found is None for found in ranges):
        return None
    low, high = np.array(ranges, dtype=float).T
    reach = np.maximum(np.abs(high - centre), np.abs(centre - low))
    length = float(np.linalg.norm(reach))
    squares = length**2 if cross else float(np.linalg.norm(reach**2))
    return {
        "n": linf(weight, "record"),
        "sum": l2(weight * length or weight, "record"),  # a bound is above zero, even where no value can differ
        "squares": l2(weight * squares or weight, "record"),
    }


def _hidden_sums(federation: Federation, ask: Any, centre: Array, columns: Sequence[Column], weight: float) -> dict[str, Array]:
    """Ask for deviations in units of their largest value, of which none exceeds one, and return them in the columns' own."""
    low, high = np.array([range_of(column) or (0.0, 0.0) for column in columns]).T
    scale = np.maximum(np.maximum(high - centre, centre - low), np.finfo(float).tiny)
    bound = dict.fromkeys(("n", "sum", "squares"), linf(weight * (1 + 1e-9), "record"))
    totals: dict[str, Array] = _sums(federation, ask, np.stack([centre, scale]), bound)
    squared = scale**2 if totals["squares"].ndim == 1 else np.outer(scale, scale)
    return {"n": totals["n"], "sum": totals["sum"] * scale, "squares": totals["squares"] * squared}


def _sums(federation: Federation, ask: Any, centre: Array, bound: Any) -> Any:
    """Ask for deviations about a centre."""
    if not federation.protection.hides_model:
        return federation.sum(ask, centre, bound=bound)
    told = tuple(map(tuple, centre.tolist())) if centre.ndim > 1 else tuple(centre.tolist())
    return federation.sum(partial(deviations_about, centre=told, **ask.keywords), bound=bound)


@dataclass(frozen=True)
class DeviationState:
    """Totals about a centre.

    Attributes
    ----------
    centre : array of shape (k,)
        Where deviations were taken from.
    totals : dict
        `n` (), `sum` (k,), `squares` (k,) or (k, k).
    """

    round: int
    centre: Array
    totals: dict[str, Array]

    @property
    def n(self) -> float:
        return float(self.totals["n"])

    @property
    def mean(self) -> Array:
        return self.centre + self.totals["sum"] / self.n

    @property
    def covariance(self) -> Array:
        """Variances (k,) or covariances (k, k), with n - 1 in the denominator; weights count as repeated records."""
        mean, squares = self.totals["sum"] / self.n, self.totals["squares"]
        shift = np.outer(mean, mean) if squares.ndim == 2 else mean**2
        return (squares - self.n * shift) / (self.n - 1) if self.n > 1 else np.full_like(squares, np.nan)


def small() -> Case:
    """Two columns of a few patients."""
    return Case(load("diabetes").take(range(200)), {"columns": ["bmi", "bp"]})


def show_moments(federation: Federation, settings: Mapping[str, Any], state: DeviationState) -> Outcome:
    """Means and deviations."""
    return Outcome.of_table("Moments", moments_of(schema_of(federation), settings["columns"], state).to_frame())


def show_correlation(federation: Federation, settings: Mapping[str, Any], state: DeviationState) -> Outcome:
    """Correlations and moments."""
    table = correlation_of(schema_of(federation), settings["columns"], state)
    others = show_moments(federation, settings, state).tables
    return Outcome(tables={"Correlations": table, **others}, coefficients=table)


@program(
    "Means and deviations of columns, by two sums.", name="moments", fixed={"cross": False}, outcome=show_moments, case=small
)
@program(
    "Correlations of columns, by sums of products.",
    name="correlation",
    fixed={"cross": True},
    outcome=show_correlation,
    case=small,
)
def centred_sums(
    federation: Federation,
    columns: Sequence[str] | None = None,
    *,
    cross: bool = False,
    start: DeviationState | None = None,
) -> Iterator[DeviationState]:
    """Ask for sums of deviations and their squares (`cross`: products), first about a public centre, then about the mean.

    Parameters as `hedgerow.stats.moments`.

    Yields
    ------
    DeviationState
        After each of two rounds, or of one where the channel clips or adds noise.

    Releases
    --------
    n, sum of deviations (k,), their squares (k,) or products (k, k); once a round.
    """
    schema = schema_of(federation)
    read = chosen(schema, columns, NUMERIC)
    federation = complete_cases(federation, names_of(read))
    ask = partial(deviations, columns=names_of(read), cross=cross)
    rounds = 2 if is_exact(federation) else 1
    state = start
    while state is None or state.round < rounds:
        centre = np.array([sum(range_of(c) or (0.0, 0.0)) / 2 for c in read]) if state is None else state.mean
        weight = heaviest(schema)
        bounds = deviation_bounds(centre, read, weight, cross=cross)
        if federation.protection.hides_rows and is_exact(federation) and bounds is not None and weight is not None:
            totals = _hidden_sums(federation, ask, centre, read, weight)
        else:
            totals = _sums(federation, ask, centre, bounds)
        state = DeviationState(1 if state is None else state.round + 1, centre, totals)
        yield state


@displayed
@dataclass(frozen=True, eq=False)
class Moments:
    """Means and variances of columns.

    Attributes
    ----------
    names : tuple of str
    n : float
        Records, or the sum of their weights.
    mean, variance : arrays of shape (k,)
        The variance has n - 1 in the denominator.
    """

    names: tuple[str, ...]
    n: float
    mean: Array
    variance: Array

    @property
    def sd(self) -> Array:
        """Standard deviations, shape (k,); NaN where noise has pushed a variance below zero."""
        sd: Array = np.sqrt(np.where(self.variance >= 0, self.variance, np.nan))
        return sd

    @property
    def standard_error(self) -> Array:
        """Standard errors of the means, shape (k,)."""
        return self.sd / np.sqrt(self.n)

    def to_frame(self) -> pandas.DataFrame:
        """Return one row for each column."""
        import pandas

        return pandas.DataFrame(
            {
                "n": self.n,
                "mean": self.mean,
                "sd": self.sd,
                "variance": self.variance,
                "standard error": self.standard_error,
            },
            index=pandas.Index(self.names, name="column"),
        )


def moments(federation: Federation, columns: Sequence[str] | None = None) -> Moments:
    """Mean, variance, standard deviation and standard error of columns.

    Parameters
    ----------
    federation : Federation
    columns : sequence of str, optional
        Numbers, integers or binary columns; every such feature and target by default.

    Notes
    -----
    Weights count as repeated records. All columns are of the same records, those that lack none of them; name one column for
    the moments of all records that have it. Minimum and maximum are not sums and are not asked for; see `quantiles`.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409), UnboundedSum (HR-210)
        A column is unknown or holds no numbers; the channel adds noise and a range is not declared.
    """
    *_, state = centred_sums(federation, columns)
    return moments_of(schema_of(federation), columns, state)


def moments_of(schema: Schema, columns: Sequence[str] | None, state: DeviationState) -> Moments:
    """Turn the last state of `centred_sums` into moments."""
    names = names_of(chosen(schema, columns, NUMERIC))
    variance = np.diag(state.covariance) if state.covariance.ndim == 2 else state.covariance
    return Moments(names, state.n, state.mean, variance)


@local(additive=True, stackable=True, holds=BITS)
@by_blocks
def scaled_deviations(
    frame: Array, party: Party, rng: Any, *, columns: tuple[str, ...], bounds: Bounds | None = None
) -> dict[str, Array]:
    """Add up records, and how far their values are from a centre, in units of a scale: `frame`, two times (k,)."""
    if bounds is not None:
        return _held(frame, party, columns, bounds, squares=False)
    x = np.moveaxis(_framed(frame, party, columns), 0, -2)
    return {"n": party.n, "sum": (party.w[..., None, :] * x).sum(-1)}


@dataclass(frozen=True)
class MeanState:
    """Means after the only round: `n` records, or the sum of their weights, and `mean` of shape (k,)."""

    round: int
    n: float
    mean: Array


def show_means(federation: Federation, settings: Mapping[str, Any], state: MeanState) -> Outcome:
    """Means."""
    found = means_of(schema_of(federation), settings["columns"], state).to_frame()
    return Outcome.of_table("Means", found.assign(n=state.n).reset_index())


@program(
    "Means of columns and nothing else, by one sum; through noise cheaper than moments.",
    name="means",
    outcome=show_means,
    case=small,
)
def mean_totals(
    federation: Federation, columns: Sequence[str] | None = None, *, start: MeanState | None = None
) -> Iterator[MeanState]:
    """Ask once for the means of columns, as `hedgerow.stats.means`.

    Releases
    --------
    n, and the sums (k,) of deviations from the middle of each declared range in units of its half, so that noise is in
    proportion to each column's range.
    """
    if start is None:
        schema = schema_of(federation)
        read = chosen(schema, columns, NUMERIC)
        federation = complete_cases(federation, names_of(read))
        low, high = np.array([range_of(column) or (-1.0, 1.0) for column in read], dtype=float).T
        centre, half = (low + high) / 2, np.where(high > low, (high - low) / 2, 1.0)
        bounds = mean_bounds(read, heaviest(schema))
        ask = partial(scaled_deviations, columns=names_of(read))
        totals = federation.sum(ask, np.stack([centre, half]), bound=bounds)
        yield MeanState(1, float(totals["n"]), centre + half * totals["sum"] / totals["n"])


def mean_bounds(columns: Sequence[Column], weight: float | None) -> dict[str, Bound] | None:
    """Return by how much one record moves `scaled_deviations`; `None` where a range is not declared."""
    if weight is None or any(range_of(column) is None for column in columns):
        return None
    return dict.fromkeys(("n", "sum"), linf(weight * (1 + 1e-9), "record"))


def means(federation: Federation, columns: Sequence[str] | None = None) -> pandas.Series:
    """Means of columns, and nothing else: one question without squares, so through noise cheaper than `moments`.

    Parameters
    ----------
    columns : sequence of str, optional
        Numbers, integers or binary columns; every such feature and target by default.
    """
    *_, state = mean_totals(federation, columns)
    return means_of(schema_of(federation), columns, state)


def means_of(schema: Schema, columns: Sequence[str] | None, state: MeanState) -> pandas.Series:
    """Turn the state of `mean_totals` into a series."""
    import pandas

    return pandas.Series(state.mean, index=pandas.Index(names_of(chosen(schema, columns, NUMERIC)), name="column"), name="mean")


def correlation(federation: Federation, columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Pearson correlations of columns, as a data frame of shape (k, k); NaN beside a constant column.

    Releases
    --------
    n, sums of deviations (k,) and of their products (k, k); as `centred_sums`.
    """
    *_, state = centred_sums(federation, columns, cross=True)
    return correlation_of(schema_of(federation), columns, state)


def correlation_of(schema: Schema, columns: Sequence[str] | None, state: DeviationState) -> pandas.DataFrame:
    """Turn the last state of `centred_sums` with `cross` into correlations."""
    import pandas

    names = names_of(chosen(schema, columns, NUMERIC))
    variances = np.diag(state.covariance)
    sd = np.sqrt(np.where(variances > 0, variances, np.nan))
    found = np.clip(state.covariance / np.outer(sd, sd), -1.0, 1.0)
    np.fill_diagonal(found, np.where(variances > 0, 1.0, np.nan))
    return pandas.DataFrame((found + found.T) / 2, index=names, columns=names)
