"""One column: its declared meaning, and the admission of values to it.

A range is declared from what a column means, never from the values that it holds: a range taken from the data would
leak its extremes. Clips, bounds and noise are computed from declared ranges alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, Self, get_args

import numpy as np

from hedgerow.errors import DataError, NotFinite, OutOfRange, SchemaInvalid, suggestion

Kind = Literal["number", "integer", "binary", "category"]
Role = Literal["feature", "target", "id", "weight", "offset", "time", "event", "cluster", "treatment", "ignore"]
READABLE: tuple[Role, ...] = ("feature", "target", "time", "event", "treatment")
"""Roles of columns whose values a statistic of all columns reads."""


@dataclass(frozen=True)
class Column:
    """The declaration of one column.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "integer", "binary", "category"}
        What its values are; `binary` is 0 or 1.
    role : {"feature", "target", "id", "weight", "offset", "time", "event", "cluster", "treatment", "ignore"}
        What a program may use it for. A `time` and an `event` are of survival; records of one `cluster` belong together; a
        `treatment` is what is compared. An `id` tells people apart and is in no model and no formula.
    unit : str
        Physical unit, for labels.
    low, high : float or None
        Declared range, ends included; `None` where that side is open.
    levels : tuple of str
        The words of a category, in the order of their codes.
    shape : tuple of int
        Shape of one record's value: `()` for a scalar, `(28, 28)` for an image.
    clip : bool
        Whether values outside the range are clipped to it; otherwise they are refused.
    description : str
        One sentence for people.
    formula : str
        The expression of other columns by which it is computed, of a derived column.
    optional : bool
        Whether values may be missing: NaN, or code -1 of a category. Each model leaves out the records that lack a value
        that it reads (`hedgerow.data.complete_cases`). Otherwise a missing value is refused.
    inferred : bool
        Whether levels, or that all values are 0 or 1, were read off the records and are declared by nobody. They tell of
        records, so no question that promises protection reads such a column. Two columns that differ in this alone are equal.

    Raises
    ------
    SchemaInvalid (HR-409)
        The declaration contradicts itself.
    """

    name: str
    kind: Kind
    role: Role = "feature"
    unit: str = ""
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    clip: bool = False
    description: str = ""
    formula: str = ""
    optional: bool = False
    inferred: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        self._check_word("kind", self.kind, get_args(Kind))
        self._check_word("role", self.role, get_args(Role))
        self._check_range()
        self._check_levels()
        if any(size < 1 for size in self.shape):
            raise SchemaInvalid(f"column {self.name!r} has shape {self.shape}.", remedy="Every size is at least 1.")

    @property
    def absolute(self) -> float | None:
        """Largest absolute value that the declaration allows, or `None` where the range is open."""
        if self.kind == "binary":
            return 1.0
        if self.low is None or self.high is None:
            return None
        return max(abs(self.low), abs(self.high))

    def admit(self, values: Any) -> np.ndarray:
        """Return `values` checked against the declaration, in the dtype that programs expect.

        Parameters
        ----------
        values : array of shape (n, *shape)
            Numbers, booleans, or (category) words; an int16 array given to a category is taken as codes.

        Returns
        -------
        array of shape (n, *shape)
            float64; int16 codes for a category; array-shaped columns keep float32, float16, uint8 and integer types.
            Of an optional column NaN where a value is missing or infinite, and code -1.

        Raises
        ------
        NotFinite (HR-404), OutOfRange (HR-405), SchemaInvalid (HR-409)
            A value is missing or infinite, and the column is not optional; outside the range or levels; of another type or
            shape.
        """
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[1:] != self.shape:
            raise SchemaInvalid(
                f"column {self.name!r} holds values of shape {array.shape[1:]}, declared is {self.shape}.",
                remedy=f"Declare shape={array.shape[1:]}, or reshape the values to (n, *{self.shape}).",
            )
        if self.kind == "category":
            return self._codes(array)
        if self.optional and array.dtype.kind == "O":
            array = np.where(lacking(array), np.nan, array)
        numbers = self._numbers(array)
        absent = ~np.isfinite(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, bool)
        if not self.optional:
            self._refuse_where(absent, NotFinite, "missing or infinite")
        elif absent.any():
            numbers = np.where(absent, np.asarray(np.nan, numbers.dtype), numbers)
        if self.kind == "binary":
            self._refuse_where((numbers != 0) & (numbers != 1) & ~absent, OutOfRange, "neither 0 nor 1")
        if self.kind == "integer" and numbers.dtype.kind == "f":
            self._refuse_where((numbers != np.rint(numbers)) & ~absent, OutOfRange, "not whole")
        return self._within_range(numbers)

    def lacks(self, values: np.ndarray) -> np.ndarray:
        """Return which records lack a value of this column, from admitted values (..., n, *shape): shape (..., n)."""
        if self.kind == "category":
            absent = values < 0
        else:
            absent = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
        found: np.ndarray = absent.any(axis=tuple(range(-len(self.shape), 0))) if self.shape else absent
        return found

    @property
    def stand_in(self) -> float:
        """A lawful value, by the declaration alone, that stands where a missing one was; the record counts for nothing."""
        if self.kind in ("category", "binary"):
            return 0.0
        low = self.low if self.low is not None else self.high if self.high is not None else 0.0
        high = self.high if self.high is not None else low
        middle = low + (high - low) / 2
        return math.floor(middle) if self.kind == "integer" else middle

    def settle(self, numbers: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
        """Return computed `numbers` as values of this column: clipped to the range, whole where it is, in `dtype`."""
        inside = np.clip(numbers, self.low, self.high) if self.low is not None or self.high is not None else numbers
        return (np.rint(inside) if self.kind == "integer" else inside).astype(dtype)

    def synthetic(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` admitted values drawn from the declaration alone.

        Uniform over a closed range or the levels, standard normal where no range is declared, and the half-normal
        distribution from the one end where one is. Shape (n, *shape).
        """
        size = (n, *self.shape)
        if self.kind == "category":
            return rng.integers(len(self.levels), size=size).astype(np.int16)
        if self.kind == "binary":
            return rng.integers(2, size=size).astype(np.float64)
        return self.settle(self._draw(size, rng), self._synthetic_dtype())

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as plain values; what has its default is left out."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if self._differs(one)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the column that `to_json` described.

        Raises
        ------
        SchemaInvalid (HR-409)
            A key is unknown, or name or kind is absent.
        """
        known = [one.name for one in fields(cls)]
        for key in values:
            if key not in known:
                raise SchemaInvalid(f"a column declares {key!r}, which is unknown.", remedy=suggestion(key, known))
        if not {"name", "kind"} <= set(values):
            raise SchemaInvalid(f"a column is declared as {dict(values)}.", remedy="Give at least `name` and `kind`.")
        given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        return cls(**given)

    def _check_word(self, what: str, word: str, known: tuple[str, ...]) -> None:
        if word not in known:
            raise SchemaInvalid(f"column {self.name!r} has {what} {word!r}.", remedy=suggestion(str(word), known))

    def _check_range(self) -> None:
        ends = [end for end in (self.low, self.high) if end is not None]
        if self.kind in ("binary", "category") and (ends or self.clip):
            raise SchemaInvalid(f"{self.kind} column {self.name!r} declares a range.", remedy="Leave out low, high and clip.")
        if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends) or sorted(ends) != ends:
            raise SchemaInvalid(
                f"column {self.name!r} declares the range [{self.low}, {self.high}].",
                remedy="Give finite ends with low <= high, or None for an open side.",
            )
        if self.kind == "integer" and any(end != round(end) for end in ends):
            raise SchemaInvalid(
                f"integer column {self.name!r} declares the range [{self.low}, {self.high}].",
                remedy="Give whole ends, or declare a number.",
            )

    def _check_levels(self) -> None:
        if self.kind == "category" and not self.levels:
            raise SchemaInvalid(f"category {self.name!r} declares no levels.", remedy="Give levels=('a', 'b', ...).")
        if self.kind != "category" and self.levels:
            raise SchemaInvalid(
                f"{self.kind} column {self.name!r} declares levels.", remedy="Leave them out, or make it a category."
            )
        words = isinstance(self.levels, tuple) and all(isinstance(level, str) for level in self.levels)
        if not words or len(set(self.levels)) != len(self.levels):
            raise SchemaInvalid(
                f"category {self.name!r} declares the levels {self.levels[:5]}.", remedy="Give a tuple of different strings."
            )

    def _numbers(self, array: np.ndarray) -> np.ndarray:
        kept = (self.kind == "number" and array.dtype in (np.float32, np.float16, np.uint8)) or (
            self.kind == "integer" and array.dtype.kind in "iu"
        )
        if self.shape and kept:
            return array
        try:
            if array.dtype.kind in "Mmc":
                raise TypeError
            return array.astype(np.float64)
        except (TypeError, ValueError):
            raise SchemaInvalid(
                f"column {self.name!r} is declared {self.kind} and holds {array.dtype} such as {array.flat[0]!r}.",
                remedy="Convert it to numbers, or declare it a category.",
            ) from None

    def _codes(self, array: np.ndarray) -> np.ndarray:
        if array.dtype == np.int16:
            codes = array
        else:
            codes = self._match(array)
        least = -1 if self.optional else 0
        self._refuse_where((codes < least) | (codes >= len(self.levels)), OutOfRange, "not among its levels")
        return codes

    def _match(self, array: np.ndarray) -> np.ndarray:
        flat, known = array.ravel(), {level: code for code, level in enumerate(self.levels)}
        values = flat.tolist() if flat.dtype.kind in "OUbiu" or flat.dtype == np.float64 else list(flat)  # spelt as they were
        code_of = {value: -2 if _is_missing(value) else known.get(spelling(value), -1) for value in dict.fromkeys(values)}
        codes = np.fromiter(map(code_of.__getitem__, values), np.int16, len(values)).reshape(array.shape)
        if not self.optional:
            self._refuse_where(codes == -2, NotFinite, "missing")
        strange = [repr(spelling(value)) for value, code in code_of.items() if code == -1]
        if strange:
            raise OutOfRange(
                f"column {self.name!r} holds {', '.join(strange[:3])}, not among its {len(self.levels)} levels.",
                remedy="Add the level to the schema, or recode the value. " + suggestion(strange[0][1:-1], self.levels),
            )
        codes[codes == -2] = -1
        return codes

    def _within_range(self, numbers: np.ndarray) -> np.ndarray:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        known = numbers[np.isfinite(numbers)] if self.optional and numbers.dtype.kind == "f" else numbers
        if not known.size or (known.min() >= low and known.max() <= high):
            return numbers
        if self.clip:
            return np.clip(numbers, low, high).astype(numbers.dtype)
        span = f"outside its declared range [{low:g}, {high:g}]{' ' + self.unit if self.unit else ''}"
        reached = f"{span}: it reaches from {known.min():g} to {known.max():g}"
        self._refuse_where((numbers < low) | (numbers > high), OutOfRange, reached)
        return numbers

    def _refuse_where(self, wrong: np.ndarray | None, error: type[DataError], what: str) -> None:
        if wrong is not None and (count := int(np.count_nonzero(wrong))):
            raise error(f"column {self.name!r} has {count} of {wrong.size} values {what}.", remedy=_REMEDIES[error])

    def _draw(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        if self.low is not None and self.high is not None:
            if self.kind == "integer":
                return rng.integers(math.ceil(self.low), math.floor(self.high), size=size, endpoint=True)
            return rng.uniform(self.low, self.high, size=size)
        normal = rng.standard_normal(size)
        if self.low is not None:
            return self.low + np.abs(normal)
        return normal if self.high is None else self.high - np.abs(normal)

    def _synthetic_dtype(self) -> np.dtype[Any]:
        if not self.shape:
            return np.dtype(np.float64)
        if self.kind == "number":
            return np.dtype(np.float32)
        is_byte = self.low is not None and self.high is not None and 0 <= self.low <= self.high <= 255
        return np.dtype(np.uint8 if is_byte else np.int64)

    def _differs(self, one: Any) -> bool:
        return one.default is MISSING or getattr(self, one.name) != one.default


_REMEDIES: dict[type[DataError], str] = {
    NotFinite: 'Drop those records (read(..., missing="drop")), or fill the values before loading.',
    OutOfRange: "Widen the declaration, clip the column (clip=True), or correct those records.",
}


def lacking(values: np.ndarray) -> np.ndarray:
    """Return which values are missing, not a number or infinite: an array of booleans of the same shape."""
    if values.dtype.kind == "f":
        found: np.ndarray = ~np.isfinite(values)
        return found
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, bool)
    return np.fromiter(map(_is_missing, values.flat), bool, values.size).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, not a number, or of a library's own kind for what is missing."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth
        return True
    except ValueError:  # an array is a value
        return False


def spelling(value: Any) -> str:
    """Return a level's spelling: 1, 1.0 and '1' are one level."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
