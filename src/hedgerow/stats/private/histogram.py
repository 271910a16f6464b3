"""Models of a noisy histogram of whole records: DPME, and filter-priority.

    cell     <- the bins of a record's columns and of its target, together; public bins
    H        <- sum over records of the indicator of its cell                  l1 = l2 = 1 a record
    C        <- max(H, 0)                                          histogram
                H where it is above the threshold, else 0          filter-priority
    theta    <- minimum over theta of  sum over cells of C times the loss at the cell's centre

A record is in one cell of the whole grid, so that one record moves one number by one. Histograms of the columns one by one
would have a record in each of them, and an l1 length of as many.

A grid has as many cells as the product of all bins; beyond a million it is refused. Most cells are empty, and the half of
their noise that is left when it is clipped at zero may outweigh all records: the threshold is against that. Filtering the full
noisy histogram has the law of Cormode et al.'s shortcut, which draws how many empty cells pass; the shortcut needs the number
of empty cells, which nobody here knows. The sample by priority that follows there makes the table short, and is left out.

Releases : H, once, as many numbers as cells.
Unit     : record.
Source   : Lei 2011; Cormode, Procopiuc, Srivastava & Tran 2012. Differs: the number of bins is a public setting, not a function
           of n, which is private; Gaussian noise besides Laplace; neighbours have one record more, where Lei replaces one, with
           twice the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import WEIGHTS, Party
from hedgerow.core.question import elementwise_where, local, travels
from hedgerow.core.whole import held
from hedgerow.data import Schema, load
from hedgerow.data.cuts import names_of
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.privacy.shares import BudgetShares, Share

from ..columns import schema_of
from ..indicators import cases_of_model
from .fit import PrivateFit
from .judged import Settings, reported, row_length
from .rows import SHORTEST, Length, RowBlock, UnitRows
from .solving import spectral
from .sufficient import fit_of_state, rows_of

HistogramMethod = Literal["histogram", "filter-priority"]
MOST_CELLS = 10**6
PENALTY = 1.0
"""Times half the squared length of coefficients of labels, so that they are finite."""
MOST_STEPS = 100
SHARES = {"histogram": Share(1.0)}
WORDS: dict[HistogramMethod, str] = {
    "histogram": "fit at the centres of a noisy histogram of whole records (DPME, Lei 2011)",
    "filter-priority": "fit at the centres of those cells of a noisy histogram that pass a threshold (Cormode et al. 2012)",
}


@travels
@dataclass(frozen=True)
class CellGrid:
    """Public cells of whole records, hashable.

    Attributes
    ----------
    rows : UnitRows
        With bins for every number of the formula.
    target_bins : int
        Bins of a number's declared range; two for labels.
    log : tuple of str
        Columns whose bins have equal widths on a logarithmic scale.
    """

    rows: UnitRows
    target_bins: int
    log: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each block of columns, and last of the target."""
        return (*(len(block.names) for block in self.rows.blocks), self.target_bins)

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(self.sizes)

    def codes(self, columns: Mapping[str, Array]) -> Array:
        """The cell of each record, shape (n,)."""
        t = self.rows.targets(columns)
        cuts = np.linspace(-1.0, 1.0, self.target_bins + 1)[1:-1] if self.rows.numeric else np.array([0.5])
        found: Array = np.zeros(len(t), np.int64)
        for block in self.rows.blocks:
            found = found * len(block.names) + block.columns(columns, len(t)).argmax(1)
        return found * self.target_bins + np.searchsorted(cuts, t)

    @cached_property
    def targets(self) -> Array:
        """Targets at the centres: 0 and 1, or numbers in [-1, 1]."""
        if not self.rows.numeric:
            return np.array([0.0, 1.0])
        return (np.arange(self.target_bins) + 0.5) * 2 / self.target_bins - 1

    def centres(self, model: UnitRows, cells: Array) -> Array:
        """Rows of a model at the centres of cells (k,) of the columns alone, shape (k, d)."""
        at = np.unravel_index(cells, self.sizes[:-1]) if len(self.sizes) > 1 else ()
        found = [
            _values(grid, wanted, grid.term.names[0] in self.log)[index]
            for grid, wanted, index in zip(self.rows.blocks, model.blocks, at, strict=True)
        ]
        x = np.concatenate(found, axis=1)
        size = model.factor if model.length == "fixed" else np.linalg.norm(x, axis=1, keepdims=True)
        return np.asarray(x / np.maximum(size, SHORTEST))


def _values(grid: RowBlock, wanted: RowBlock, log: bool) -> Array:
    """Columns of a block of a model at the centre of each bin, shape (bins, k)."""
    if grid.cuts is None:
        return np.eye(len(grid.names))
    low, high, cuts = grid.low, grid.high, np.array(grid.cuts)
    first = math.ceil(low)
    if np.array_equal(cuts, np.arange(first + 0.5, high)):  # a bin for each whole number
        centres: Array = first + np.arange(len(cuts) + 1.0)
    else:
        ends = np.concatenate([[low], cuts, [high]])
        ends = np.log1p(ends - low) if log else ends
        centres = (ends[1:] + ends[:-1]) / 2
        centres = np.expm1(centres) + low if log else centres
    return ((centres - wanted.low) / (wanted.high - wanted.low))[:, None]


@travels
@elementwise_where(lambda grid: grid.rows.held or grid.rows.is_arithmetic)
def cells_of(columns: Mapping[str, Array], *, grid: CellGrid) -> dict[str, Array]:
    """Prepare `cell` (n,), where a record lies in the grid, and record weights if any."""
    found = {"cell": grid.codes(grid.rows.apart(columns))}
    spec = grid.rows.spec
    if spec.weights is None:
        return found
    return found | {WEIGHTS: grid.rows.weights(columns)}


@local(additive=True, stackable=True, holds=True)
def cell_counts(broadcast: None, party: Party, rng: Any, *, cells: int, bounds: Bounds | None = None) -> Array:
    """Count records, times their weights, in each cell; shape (..., cells)."""
    cell, w = party["cell"], held(party.w, bounds)
    lead = w.shape[:-1]
    n_parties = math.prod(lead)
    offset = cells * np.arange(n_parties).reshape((*lead, 1)) if lead else 0
    return np.bincount((cell + offset).ravel(), w.ravel(), n_parties * cells).reshape((*lead, cells))


@displayed
@dataclass(frozen=True)
class RecordHistogram:
    """A histogram of whole records, and coefficients made of it.

    Attributes
    ----------
    coef : array of shape (d,)
    counts : array of shape (cells,)
        As released.
    noise : float
        Standard deviation of the noise in a count.
    """

    round: int
    coef: Array
    counts: Array
    noise: float = 0.0


def model_rows(schema: Schema, settings: Settings) -> UnitRows:
    """The rows that coefficients belong to: those of numbers, which the bins stood for."""
    return rows_of(schema, {**settings, "bins": None, "log": ()})


def histogram_fit(federation: Federation, settings: Settings, state: RecordHistogram, asked_before: int = 0) -> PrivateFit:
    """The fit of a last state."""
    given, words = {**settings, "bins": None, "log": ()}, WORDS[settings.get("method") or "histogram"]
    made = fit_of_state(federation, given, state.coef, words, asked_before=asked_before, parts=SHARES)
    return replace(made, rows=replace(made.rows, held=True))  # the last bins hold what is beyond them, with noise and without


@program(
    "A private linear model from a noisy histogram of whole records: DPME, filter-priority.",
    name="private_histogram",
    **reported(model_rows, histogram_fit),
    case=lambda: Case(
        load("breast_cancer").take(range(200)),
        {"formula": "malignant ~ mean_radius + mean_texture", "epsilon": 2.0, "bins": 4},
        tolerance=1e-8,
    ),
)
def whole_histogram(
    federation: Federation,
    *,
    formula: str,
    method: HistogramMethod = "histogram",
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    bins: int = 8,
    log: Sequence[str] = (),
    target_bins: int | None = None,
    rows: Length | None = None,
    weights: str | None = None,
    threshold: float = 3.0,
    start: RecordHistogram | None = None,
) -> Iterator[RecordHistogram]:
    """Ask once for a histogram of whole records, and fit a linear model at the centres of its cells.

    Parameters
    ----------
    formula : str
        As of `hedgerow.stats.regression`, without products. The target is a number, or binary.
    method : {"histogram", "filter-priority"}
        Whether noisy counts are clipped at zero, or kept where they pass the threshold.
    epsilon, delta, noise_at, least, rows, weights
        As `hedgerow.stats.private.sufficient.sufficient_moments`.
    bins : int
        Of each number of the formula; integers of a narrower range have a bin for each value.
    log : sequence of str
        Columns whose bins have equal widths on a logarithmic scale.
    target_bins : int, optional
        Of a number's declared range; as many as `bins` by default.
    threshold : float
        Of filter-priority, in standard deviations of the noise; a public constant, not tuned.
    start : RecordHistogram, optional
        Continue from this state, after which nothing is asked.

    Yields
    ------
    RecordHistogram
        Once.

    Raises
    ------
    SettingsInvalid (HR-511)
        The grid has more than a million cells, or a setting is out of its range.
    FormulaInvalid (HR-310), MissingColumn (HR-403), NotBinary (HR-311), UnboundedSum (HR-210)
        See `UnitRows.of`.

    Releases
    --------
    Counts of all cells, once.
    """
    schema = schema_of(federation)
    model = row_length(rows, formula, schema, weights=weights)
    grid = grid_of(formula, schema, bins=bins, log=names_of(log), target_bins=target_bins, weights=weights)
    if not threshold >= 0:
        raise SettingsInvalid(f"threshold={threshold!r}.", remedy="Zero or more, in standard deviations of the noise.")
    if start is not None:
        return
    records = cases_of_model(federation, model.spec, count=epsilon is None).prepare(cells_of, grid=grid)
    asked = BudgetShares(epsilon, delta, noise_at, least).handles(records, SHARES, begins=True)["histogram"]
    bound = l1(model.heaviest, "record")
    noise = noise_level(asked, bound, "", grid.size)
    counts = asked.sum(partial(cell_counts, cells=grid.size), bound=bound)
    kept = np.maximum(counts, 0.0) if method == "histogram" else np.where(counts > threshold * noise, counts, 0.0)
    yield RecordHistogram(1, fit_at_centres(grid, model, kept), counts, noise)


def grid_of(
    formula: str, schema: Schema, *, bins: int, log: tuple[str, ...], target_bins: int | None, weights: str | None
) -> CellGrid:
    """The cells of a formula's columns and target.

    Raises
    ------
    SettingsInvalid (HR-511)
        They are more than a million.
    """
    rows = UnitRows.of(formula, schema, bins=bins, log=log, weights=weights)
    grid = CellGrid(rows, (target_bins or bins) if rows.numeric else 2, log)
    if grid.size > MOST_CELLS or grid.target_bins < 2:
        raise SettingsInvalid(
            f"a grid of {' x '.join(map(str, grid.sizes))} = {grid.size} cells, of which two to {MOST_CELLS} can be asked for.",
            remedy="Name fewer columns or bins; or take method='ssp', which asks for second moments alone.",
        )
    return grid


def fit_at_centres(grid: CellGrid, model: UnitRows, counts: Array) -> Array:
    """Coefficients (d,) of least squares, or of a logistic regression, at the centres of cells with counts (cells,)."""
    by_cell = counts.reshape(-1, grid.target_bins)
    n, total = by_cell.sum(1), by_cell @ grid.targets
    cells = np.flatnonzero(n > 0)
    X, n, total = grid.centres(model, cells), n[cells], total[cells]
    if model.numeric:
        return spectral((X * n[:, None]).T @ X, X.T @ total)
    return _logistic(X, n, total)


def _logistic(X: Array, n: Array, events: Array) -> Array:
    """Newton's method, halving steps that do not pay, for counts and events of cells."""

    def loss(beta: Array) -> float:
        eta = X @ beta
        return float(n @ np.logaddexp(0.0, eta) - events @ eta + PENALTY / 2 * beta @ beta)

    beta = np.zeros(X.shape[1])
    for _ in range(MOST_STEPS):
        p = special.expit(X @ beta)
        slope = X.T @ (events - n * p) - PENALTY * beta
        step = np.linalg.solve((X * (n * p * (1 - p))[:, None]).T @ X + PENALTY * np.eye(len(beta)), slope)
        now, size = loss(beta), 1.0
        while loss(beta + size * step) > now and size > 1e-6:
            size /= 2
        beta = beta + size * step
        if slope @ step < 1e-18 * max(now, 1.0):
            break
    return beta


def by_histogram(
    federation: Federation,
    formula: str,
    *,
    method: HistogramMethod = "histogram",
    epsilon: float | None = None,
    **settings: Any,
) -> PrivateFit:
    """Run `whole_histogram` to its end, and make a fit; settings are its own."""
    asked_before = len(federation.ledger)
    given: dict[str, Any] = {"formula": formula, "method": method, "epsilon": epsilon, **settings}
    *_, state = whole_histogram(federation, **given)
    return histogram_fit(federation, given, state, asked_before)
