"""Unit rows: a preparation whose rows are never longer than one, so that every sum of them carries its own bound.

    number     (value - low) / (high - low), in [0, 1]; or with bins the indicators of its public bins
               centred: (value - middle) / half the width, in [-1, 1]
    category   indicators of all its levels; of a product with numbers, divided by the product's limit
    x          <- the columns of a record, side by side
    x          <- x / |x|              rows "unit": each record by its own length
                  x / sqrt(blocks)     rows "fixed": every record by the largest length that there can be

A value beyond its declared range, a target too, counts as the nearer end of the range: so every record keeps the bound. Where
sums are exact (`rows_as_asked`) no bound is needed, values are as they are, and the fit is that of the pooled records.

Of the columns of one block at most one differs from zero, and it is at most 1, so that |x| is at most the root of the number of
blocks. Dividing each row by its own length is a function of that record alone and costs nothing, while noise is scaled to
length one: for Adult 3.7 times less of it in a score. It changes the model: the linear predictor is that of x / |x|. With bins
in every block all rows have the same length, and the two are the same.

Source : rows of length one are what private empirical risk minimisation assumes (Chaudhuri, Monteleoni & Sarwate 2011).
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import PRESENT, WEIGHTS
from hedgerow.core.question import elementwise_where, travels
from hedgerow.core.whole import by_column
from hedgerow.data import Schema
from hedgerow.data.cuts import Widths, cut_points, cuts_of_whole_numbers, names_of
from hedgerow.errors import FormulaInvalid, OutOfRange, SettingsInvalid

from ..design import Design
from ..expressions import evaluate_apart, is_binary
from ..factors import Levels, Number, Term
from ..formula import read_factor
from ..linear.reach import term_range, undeclared

Length = Literal["unit", "fixed"]
MOST_BINS = 4096
SHORTEST = 1e-12
"""Rows shorter than this are divided by it."""


@travels
@dataclass(frozen=True)
class RowBlock:
    """Columns of which at most one differs from zero in a record, and is at most 1.

    Attributes
    ----------
    term : Term
        With all levels of its categories.
    low, high : float
        Range of a term of numbers; of other terms zero and the limit. Where it is centred, the middle and the upper end.
    cuts : tuple of float or None
        Ascending cut points of its bins; None where it is not binned.
    centred : bool
        Whether a term of numbers is told from the middle of its range on.
    """

    term: Term
    low: float = 0.0
    high: float = 1.0
    cuts: tuple[float, ...] | None = None
    centred: bool = False

    @property
    def always_one(self) -> bool:
        """Whether one of its columns is 1 in every record."""
        return self.cuts is not None or all(isinstance(factor, Levels) for factor in self.term.factors)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; of a bin, its interval."""
        if self.cuts is None:
            return self.term.names
        (name,), ends = self.term.names, [f"{cut:.6g}" for cut in self.cuts]
        return tuple(f"{name}({low}, {high}]" for low, high in zip(["-inf", *ends], [*ends, "inf"], strict=True))

    def columns(self, columns: Mapping[str, Array], n: int) -> Array:
        """Return the columns of `n` records, shape (n, k)."""
        found = self.term.columns(columns, n)
        if self.cuts is not None:
            return (np.searchsorted(self.cuts, found[:, 0])[:, None] == np.arange(len(self.cuts) + 1)).astype(np.float64)
        scaled: Array = (found - self.low) / (self.high - self.low)
        return scaled

    def held(self, columns: Mapping[str, Array], n: int) -> Array:
        """The same, values beyond their ranges as the nearer end: in [-1, 1] if centred or times levels, else in [0, 1]."""
        mixed = {isinstance(factor, Levels) for factor in self.term.factors} == {True, False}
        return np.clip(self.columns(columns, n), -1.0 if mixed or self.centred else 0.0, 1.0)

    def about_the_middle(self) -> RowBlock:
        """The same of numbers told from the middle of their range on; other blocks as they are."""
        plain = self.term.factors and self.cuts is None and all(isinstance(one, Number) for one in self.term.factors)
        return replace(self, low=(self.low + self.high) / 2, centred=True) if plain and not self.centred else self


@travels
@dataclass(frozen=True)
class UnitRows:
    """Rows of length one at most and targets in [-1, 1], hashable; made by `UnitRows.of`.

    Attributes
    ----------
    spec : Design
        Target, weights, and the columns that are read.
    blocks : tuple of RowBlock
    length : {"unit", "fixed"}
        By what a row is divided: its own length, or the largest that there can be.
    held : bool
        Whether values beyond their declared ranges count as the nearer end, without which nothing has a bound.
    """

    spec: Design
    blocks: tuple[RowBlock, ...]
    length: Length = "unit"
    held: bool = True

    @classmethod
    def of(
        cls,
        formula: str,
        schema: Schema,
        *,
        bins: int | None = None,
        log: Sequence[str] = (),
        length: Length = "unit",
        weights: str | None = None,
        classes: bool = False,
    ) -> UnitRows:
        """Read a formula against a schema; nobody is asked.

        Parameters
        ----------
        formula : str
            As of `hedgerow.stats.regression`.
        bins : int, optional
            So many public bins for each number of the formula; integers of a narrower range have a bin for each value.
        log : sequence of str
            Columns whose bins have equal widths on a logarithmic scale.
        length : {"unit", "fixed"}
        weights : str, optional
            Column of record weights.
        classes : bool
            Whether the target is a category of any number of levels.

        Raises
        ------
        FormulaInvalid (HR-310), MissingColumn (HR-403), NotBinary (HR-311)
            The formula, or bins with a product of terms.
        UnboundedSum (HR-210)
            A column, the target or the weights declare no range.
        SettingsInvalid (HR-511)
            `bins`, `log` or `length` is not what it may be.
        """
        log = names_of(log)
        if bins is not None and not 2 <= bins <= MOST_BINS:
            raise SettingsInvalid(f"bins={bins!r} is outside [2, {MOST_BINS}].", remedy="16 is a good number of bins.")
        if length not in ("unit", "fixed"):
            raise SettingsInvalid(f"rows of length {length!r}.", remedy="Say 'unit' for prediction, 'fixed' for coefficients.")
        spec = Design.of(formula, schema, weights=weights, classes=classes)
        if spec.offset is not None:
            raise SettingsInvalid(
                f"private models have no offset, and {spec.offset!r} is one.", remedy="Give the column another role."
            )
        if spec.limits is None or spec.weight_limit is None or (spec.response_range is None and not classes):
            raise undeclared(spec, ", and no noise would hide one record")
        if unknown := [name for name in log if bins is None or Term((Number(name),)) not in spec.terms]:
            raise SettingsInvalid(
                f"log={unknown!r}: bins on a logarithmic scale are of numbers in the formula.",
                remedy="Name columns of the formula beside bins=16; without bins write log1p(column) in the formula.",
            )
        if not spec.response.names:
            raise FormulaInvalid("the target has a single level.", remedy="A target needs two levels or more.")
        terms = [term for term in spec.terms if term.names]  # of a category with one level, the constant has its only column
        blocks = tuple(_block(term, spec, bins, "log" if term.names[0] in log else "equal") for term in terms)
        return cls(spec, blocks, length)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(name for block in self.blocks for name in block.names)

    @property
    def size(self) -> int:
        """Columns of a row."""
        return len(self.names)

    @property
    def heaviest(self) -> float:
        """Largest weight of a record, which every bound is times."""
        return float(self.spec.weight_limit or 1.0)

    @property
    def factor(self) -> float:
        """By what a row of length `fixed` is divided."""
        return math.sqrt(len(self.blocks))

    @property
    def same_length(self) -> bool:
        """Whether all rows have the same length, so that dividing by it changes no model."""
        return self.length == "fixed" or all(block.always_one for block in self.blocks)

    @property
    def is_arithmetic(self) -> bool:
        """Whether a row's bits follow from its record alone, however many are prepared together."""
        return self.spec.is_arithmetic

    def about_the_middle(self) -> UnitRows:
        """The same model, its numbers told from the middle of their ranges on: as long, and farther from a constant."""
        return replace(self, blocks=tuple(block.about_the_middle() for block in self.blocks))

    def apart(self, columns: Mapping[str, Array]) -> Mapping[str, Array]:
        """Columns, and with them the expressions of the formula with the bits that each record has by itself, where held."""
        if not self.held or self.is_arithmetic:
            return columns
        factors = (self.spec.response, *(factor for block in self.blocks for factor in block.term.factors))
        texts = {one.text for one in factors if isinstance(one, Number)} - set(self.spec.schema.names)
        return ChainMap({text: evaluate_apart(text, columns) for text in sorted(texts)}, columns)  # type: ignore[arg-type]

    @property
    def numeric(self) -> bool:
        """Whether the target is a number, scaled to [-1, 1] by its declared range; else it is 0 or 1, or a class's code.

        Its kind decides and not its range: a share in [0, 1] is a number.
        """
        response = self.spec.response
        return isinstance(response, Number) and not is_binary(response.text, self.spec.schema)

    @property
    def middle(self) -> float:
        """Middle of a numeric target's range."""
        low, high = self.spec.response_range or (0.0, 1.0)
        return (low + high) / 2

    @property
    def half(self) -> float:
        """Half the width of a numeric target's range: the unit of targets and of linear predictors."""
        low, high = self.spec.response_range or (0.0, 1.0)
        return (high - low) / 2 or 1.0

    def rows(self, columns: Mapping[str, Array], n: int) -> Array:
        """Return the rows of `n` records, shape (n, size); where they are held none is longer than 1 but for the last bit."""
        x = np.concatenate([(block.held if self.held else block.columns)(columns, n) for block in self.blocks], axis=1)
        if self.length == "fixed":
            return x / self.factor
        longest: Array = x / np.maximum(np.sqrt(by_column(x.T, x.T)), SHORTEST)[:, None]
        return longest

    def targets(self, columns: Mapping[str, Array]) -> Array:
        """Return targets (n,): 0 or 1, a class's code, or a number, which is in [-1, 1] where it is held."""
        found = self.spec.response.columns(columns)
        if found.shape[1] > 1:
            return (found * np.arange(1.0, found.shape[1] + 1)).sum(1)
        y = found[:, 0]
        if not self.numeric:
            return y
        y = (y - self.middle) / self.half
        return np.clip(y, -1.0, 1.0) if self.held else y

    def weights(self, columns: Mapping[str, Array]) -> Array:
        """Return record weights (n,), of a design that names them; those that are held are in their declared range.

        Raises
        ------
        OutOfRange (HR-405)
            Weights below zero, where nothing holds them.
        """
        assert self.spec.weights is not None
        w = np.asarray(columns[self.spec.weights], np.float64)
        if self.held:
            return np.clip(w, 0.0, self.heaviest)
        if (w < 0).any():
            raise OutOfRange(f"weights {self.spec.weights!r} are below zero in {(w < 0).sum()} records.", asked=True)
        return w

    def predictor(self, coef: Array, frame: Any) -> Array:
        """Linear predictor of new records; coefficients (d,) give (n,), and (K, d) give (n, K).

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange (HR-403, 404, 405)
        """
        columns, n = self.spec.admitted(frame)
        found: Array = self.rows(columns, n) @ coef.T
        return found


@travels
@elementwise_where(lambda spec: spec.held or spec.is_arithmetic)
def unit_rows(columns: Mapping[str, Array], *, spec: UnitRows) -> dict[str, Array]:
    """Prepare `X` (n, size), rows of length one at most, `y` (n,), targets in [-1, 1], and record weights if any.

    Records that were left out before (`hedgerow.data.complete_cases`) have rows of zeros.
    """
    columns = spec.apart(columns)
    y = spec.targets(columns)
    prepared = {"X": spec.rows(columns, len(y)), "y": y}
    if PRESENT in columns and not (there := np.asarray(columns[PRESENT])).all():
        prepared = {"X": np.where(there[:, None], prepared["X"], 0.0), "y": np.where(there, y, 0.0)}
    if spec.spec.weights is None:
        return prepared
    return prepared | {WEIGHTS: spec.weights(columns)}


def rows_as_asked(rows: UnitRows, federation: Federation, *, planned: bool) -> UnitRows:
    """The rows as a federation is asked for them: held to their ranges, but where sums are exact.

    Parameters
    ----------
    planned : bool
        Whether a budget will add noise, that the federation's channel does not show yet.
    """
    return replace(rows, held=planned or not federation.protection.exact)


def _block(term: Term, spec: Design, bins: int | None, widths: Widths) -> RowBlock:
    """The block of a term: its range, its bins, and all levels of its categories."""
    if not term.factors:
        return RowBlock(term)
    full = Term(tuple(read_factor(factor.text, spec.schema) for factor in term.factors))
    numbers = [factor for factor in full.factors if isinstance(factor, Number)]
    if len(numbers) < len(full.factors):
        if bins is not None and len(full.factors) > 1:
            raise FormulaInvalid(
                f"{':'.join(full.names[:1])} is a product, which has no bins.", remedy="Leave bins out, or the product."
            )
        return RowBlock(full, 0.0, full.limit(spec.schema) or 1.0)
    low, high = term_range(full, spec)
    if bins is None:
        return RowBlock(full, low, high if high > low else low + 1.0)
    if len(numbers) > 1:
        raise FormulaInvalid(f"{full.names[0]} is a product, which has no bins.", remedy="Leave bins out, or the product.")
    if is_binary(numbers[0].text, spec.schema):
        return RowBlock(full, low, high, (0.5,))
    whole = numbers[0].text in spec.schema and spec.schema[numbers[0].text].kind == "integer"
    return RowBlock(full, low, high, (cuts_of_whole_numbers if whole else cut_points)(low, high, bins, widths))
