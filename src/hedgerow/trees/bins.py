"""Bins: public cut points for every feature, from its declaration alone.

A tree looks at data only through bins, so no threshold can reveal a record's exact value, and parties agree on the cut
points before anybody is asked. Bin `b` of a feature holds the values above cut `b - 1` and up to cut `b`, included.

    number     `n_bins` bins over the declared range, of equal width, or of equal width of a logarithm
    integer    the same, or one bin for each whole number where there are no more than `n_bins`
    category   one bin for each level, in the order of the levels: a split sends the first levels left, the others right
    binary     two bins
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.core.bound import Bound, l2
from hedgerow.core.question import elementwise, travels
from hedgerow.data import Column, Schema
from hedgerow.data.cuts import cuts_of_column, names_of
from hedgerow.errors import SchemaInvalid, SettingsInvalid

MOST_BINS = 2**15
"""Bin numbers travel as int16."""


@dataclass(frozen=True)
class Bins:
    """The features of a tree with their cut points, and its target.

    Attributes
    ----------
    features : tuple of Column
        Declarations of the features, in order.
    cuts : tuple of tuple of float
        Ascending cut points of each feature, in the feature's units; one fewer than its bins.
    target : Column
        Declaration of the target: binary and category are classified, numbers and integers are regressed.
    heaviest : float or None
        Largest declared weight of a record, one where records have no weights; None where it is not declared.
    """

    features: tuple[Column, ...]
    cuts: tuple[tuple[float, ...], ...]
    target: Column
    heaviest: float | None = 1.0

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        features: Sequence[str] | None = None,
        target: str | None = None,
        n_bins: int = 32,
        log: Sequence[str] = (),
    ) -> Bins:
        """Place cut points by a schema.

        Parameters
        ----------
        features, target : optional
            The columns with these roles by default.
        n_bins : int
            Bins of a number.
        log : sequence of str
            Features whose bins have equal widths of log(1 + value - low), as incomes need; others have equal widths.

        Raises
        ------
        SettingsInvalid (HR-511)
            `n_bins` is below 2 or above 2^15, or `log` names what is no number among the features.
        MissingColumn (HR-403), SchemaInvalid (HR-409)
            No such column, no target, no features; a feature without a declared range, or with a shape.
        """
        if not 2 <= n_bins <= MOST_BINS:
            raise SettingsInvalid(f"n_bins={n_bins!r} is outside [2, {MOST_BINS}].", remedy="32 is a good number of bins.")
        heaviest, schema = schema.heaviest, schema.with_roles(target=target, features=features)
        if schema.target is None or not schema.features:
            raise SchemaInvalid(
                f"a tree needs a target and features; here are target {schema.target!r} and {len(schema.features)} features.",
                remedy="Name them: decision_tree(federation, target='y', features=['a', 'b']).",
            )
        chosen = tuple(schema[name] for name in schema.features)
        _refuse_unbinnable(chosen, schema[schema.target])
        log = names_of(log)
        if strange := sorted(set(log) - {column.name for column in chosen if column.kind in ("number", "integer")}):
            raise SettingsInvalid(
                f"log={list(log)!r} names {strange[:5]}, which are no numbers among the features.",
                remedy="Name features that are declared as number or integer.",
            )
        cuts = tuple(cuts_of_column(column, n_bins, "log" if column.name in log else "equal") for column in chosen)
        return cls(chosen, cuts, schema[schema.target], heaviest)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each feature."""
        return tuple(len(cuts) + 1 for cuts in self.cuts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The target's classes in the order of their codes; empty for a regression."""
        return ("0", "1") if self.target.kind == "binary" else self.target.levels

    @property
    def centre(self) -> float:
        """Middle of the target's declared range, where regression sums start from; zero where it is not declared."""
        low, high = self.target.low, self.target.high
        return 0.0 if low is None or high is None else (low + high) / 2

    @property
    def scale(self) -> float:
        """Half the width of the target's declared range: the unit of regression sums; one where it is not declared."""
        low, high = self.target.low, self.target.high
        return 1.0 if low is None or high is None or low == high else (high - low) / 2

    @property
    def bound(self) -> Bound | None:
        """How far one record moves a level's histogram, per record; None where target or weights declare no range.

        A record lies in one bin of each of f features. There it adds 1 to the count of its class, or (1, y) with
        |y| <= 1 to count and sum: l2 length sqrt(f), or sqrt(2 f), times the heaviest weight. A root that was rounded down
        would shorten counts, and is rounded up. Laplace noise needs its l1 length, f or 2 f: `noise.ball` takes that of a
        channel.
        """
        if (self.target.absolute is None and not self.classes) or self.heaviest is None:
            return None
        return root_bound(len(self.features) * (1 if self.classes else 2), self.heaviest)

    def number(self, columns: Mapping[str, Any]) -> np.ndarray:
        """Return the bin numbers of admitted columns: array of shape (n, f), int16."""
        found = [np.searchsorted(cuts, columns[column.name]) for column, cuts in zip(self.features, self.cuts, strict=True)]
        return np.stack(found, axis=-1).astype(np.int16)


def root_bound(squares: Fraction | float, heaviest: float) -> Bound:
    """l2(heaviest x sqrt(squares)) per record, rounded up."""
    length, exact = heaviest * math.sqrt(squares), Fraction(squares) * Fraction(heaviest) ** 2
    return l2(length if Fraction(length) ** 2 >= exact else math.nextafter(length, math.inf), "record")


@travels
@elementwise
def binned(columns: Mapping[str, Any], *, bins: Bins) -> dict[str, np.ndarray]:
    """Prepare `bins` of shape (n, f), int16, and `target` of shape (n,): class codes, or the scaled number in [-1, 1]."""
    target = columns[bins.target.name]
    if not bins.classes:
        scaled = (target - bins.centre) / bins.scale
        target = scaled if bins.bound is None else np.clip(scaled, -1.0, 1.0)
    return {"bins": bins.number(columns), "target": target}


def _refuse_unbinnable(features: tuple[Column, ...], target: Column) -> None:
    if shaped := [column.name for column in (*features, target) if column.shape]:
        raise SchemaInvalid(
            f"the columns {shaped[:5]} hold an array for each record, and a tree splits on single values.",
            remedy="Leave them out, or make one column of each value that matters.",
        )
    numbers = [column for column in features if column.kind in ("number", "integer")]
    if undeclared := [column.name for column in numbers if column.low is None or column.high is None]:
        example = f"table.declare({', '.join(f'{name}=(low, high)' for name in undeclared[:5])})"
        raise SchemaInvalid(
            f"{len(undeclared)} features declare no range, so their bins have no ends: {', '.join(undeclared[:5])}.",
            remedy=f"Declare what values are possible, not what values occur:  {example}",
        )
