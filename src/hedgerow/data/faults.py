"""Values that do not fit their column: found for whole columns at once, and told all together, with the first line of each.

Words are looked at once for each different word, not once for each record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedgerow.errors import DataError, NotFinite, OutOfRange, SchemaInvalid, suggestion

from .column import Column, lacking, spelling

MOST_TOLD = 20
"""Faults that one error tells."""
SHOWN = 3
"""Values that a fault shows."""
TRUTH: Mapping[Any, float] = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}
"""Words of a binary column."""

LinesOf = Callable[[Collection[int]], Mapping[int, int]]
"""From positions of records, from 0, to their lines in the file."""


@dataclass(frozen=True)
class Fault:
    """Values of one column that do not fit.

    Attributes
    ----------
    column : str
    count, of : int
        So many of all values; `count` is 0 where the fault is the column's as a whole.
    what : str
        What they are, such as "not numbers".
    first : int or None
        Position of the first of them, from 0.
    values : tuple of str
        Some of them, as they are spelt.
    error : type
        What is raised.
    remedy : str
        What to do, without a value of the records.
    hints : tuple of str
        What else to do, with values of the records: for who holds them alone.
    """

    column: str
    count: int
    of: int
    what: str
    first: int | None
    values: tuple[str, ...]
    error: type[DataError]
    remedy: str
    hints: tuple[str, ...] = ()

    def sentence(self, lines: Mapping[int, int] | None, shown: bool) -> str:
        """What is wrong: the column, how many values, where the first one is and, if `shown`, some of them."""
        parts = [f"column {self.column!r} has {self.count} of {self.of} values {self.what}" if self.count else self.what]
        if self.first is not None:
            parts.append(f"first in record {self.first + 1}" if lines is None else f"first in line {lines[self.first]}")
        told = ", ".join(parts)
        more = ", ..." if self.count > len(self.values) == SHOWN else ""
        return f"{told}: {', '.join(map(repr, self.values))}{more}." if shown and self.values else f"{told}."


WHERE = "Columns are declared in [data.columns.NAME] of a study, or by read(..., declared={NAME: {...}}) in Python."
"""Where columns are declared."""

OF_FRAMES = {
    WHERE: "Columns are declared by Table.from_frame(frame, declared={NAME: {...}}).",
    'missing = "drop" in a study, read(..., missing="drop") in Python': 'Table.from_frame(frame, missing="drop")',
    'read(..., missing="drop")': 'Table.from_frame(frame, missing="drop")',
    "name those that are used: features = [...] in [data], read(..., columns=[...]) in Python": "give frame[[...]]",
}
"""What remedies say of files, and what is said of a frame in its place."""


def refuse(
    faults: Sequence[Fault], where: str, *, lines_of: LinesOf | None = None, shown: bool = True, advice: str = WHERE
) -> None:
    """Raise one error that tells all faults; none, and nothing happens.

    Parameters
    ----------
    where : str
        What holds the values, such as a file's name.
    lines_of : callable, optional
        The lines of records; without it records are counted from 1.
    shown : bool
        Whether values may be shown.
    advice : str
        The last line.

    Raises
    ------
    NotFinite, OutOfRange, SchemaInvalid, ColumnUndeclared (HR-404, 405, 409, 410)
        The code is that of the first fault.
    """
    if not faults:
        return
    told = faults[:MOST_TOLD]
    lines = None if lines_of is None else lines_of({one.first for one in told if one.first is not None})
    said = [one.sentence(lines, shown) for one in told]
    hints = [" ".join(one.hints) if shown else "" for one in told]
    remedies = [*dict.fromkeys(one.remedy for one in told), advice]
    if len(faults) == 1:
        raise _counted(told[0].error(f"{where}: {said[0]}", remedy="\n".join(filter(None, [*hints, *remedies]))), faults)
    said = [f"{sentence} {hint}".strip() for sentence, hint in zip(said, hints, strict=True)]
    said += [f"And {len(faults) - MOST_TOLD} more."] if len(faults) > MOST_TOLD else []
    raise _counted(
        told[0].error(f"{where} does not fit in {len(faults)} places:", remedy="\n".join([*said, *remedies])), faults
    )


def values_refused(error: BaseException) -> int:
    """How many values an error of `refuse` is about; 0 of any other error."""
    return int(vars(error).get("values_refused", 0))


def count_refused(error: Exception, count: int) -> Exception:
    """Return an error that is about so many values."""
    vars(error)["values_refused"] = count
    return error


def _counted(error: DataError, faults: Sequence[Fault]) -> Exception:
    return count_refused(error, sum(one.count for one in faults))


@dataclass(frozen=True)
class Text:
    """A column of words: the different ones, and which of them each record holds.

    Attributes
    ----------
    codes : array of int, shape (n,)
        Position in `words`, -1 where a value is missing.
    words : array of object
    decimal : str
        The decimal sign of numbers among them.
    """

    codes: np.ndarray
    words: np.ndarray
    decimal: str = "."

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, values: Any, decimal: str = ".") -> Text:
        """Take a series, or an array of one axis, apart."""
        import pandas as pd

        if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
            return cls(values.cat.codes.to_numpy(), values.cat.categories.to_numpy(dtype=object), decimal)
        codes, words = pd.factorize(values if isinstance(values, pd.Series) else np.asarray(values, dtype=object))
        return cls(codes, np.asarray(words, dtype=object), decimal)

    @property
    def absent(self) -> np.ndarray:
        """Which values are missing."""
        return self.codes < 0

    def where(self, words: np.ndarray) -> np.ndarray:
        """Which records hold one of the words that are marked, by an array of booleans."""
        found: np.ndarray = np.append(words, False)[self.codes]
        return found

    def without(self, blank: Collection[str]) -> Text:
        """Return the column with these words missing."""
        gone = np.array([self._is_among(spelling(word), blank) for word in self.words], bool)
        if not gone.any():
            return self
        place = np.where(gone, -1, np.cumsum(~gone) - 1)
        return replace(self, codes=np.append(place, -1)[self.codes], words=self.words[~gone])

    def _is_among(self, word: str, blank: Collection[str]) -> bool:
        """Whether a word is one of others; in a file with a decimal comma -9,0 is -9."""
        return (
            word in blank or word.strip() in blank or (self.decimal != "." and level_of(word, blank, self.decimal) is not None)
        )

    def bare(self) -> Text:
        """Return the column with words that differ in the blanks around them, or in how a number is spelt, as one."""
        words = [spelling(word).strip() for word in self.words]
        place = {word: place for place, word in enumerate(dict.fromkeys(words))}
        codes = np.array([*(place[word] for word in words), -1])[self.codes]
        return replace(self, codes=codes, words=np.array([*place], dtype=object))

    def numbers(self, column: Column) -> np.ndarray:
        """Each word as a number, NaN where it is none; true and false of a binary column are 1 and 0."""
        words = self.words
        if column.kind == "binary":
            words = np.array([TRUTH.get(word, word) for word in words], dtype=object)
        return numbers_of(words, self.decimal)


def faults_of(column: Column, values: np.ndarray | Text, *, missing: bool = True) -> list[Fault]:
    """Return what `column.admit` would refuse of these values, all of it.

    Parameters
    ----------
    values : array of numbers of shape (n,), or Text
    missing : bool
        Whether missing values are faults.
    """
    if isinstance(values, Text):
        found = _faults_of_words(column, values)
        absent = values.absent
    elif values.ndim != 1 or values.dtype == np.float16 or values.dtype == np.int16:
        return []
    else:
        found = _outside(column, values) if column.kind != "category" else [_strange(column, Text.of(values))]
        absent = lacking(values)
    if missing:
        found.append(_fault(column, absent, "missing or infinite", values, NotFinite, MISSING))
    return [one for one in found if one is not None]


def _faults_of_words(column: Column, text: Text) -> list[Fault | None]:
    if column.kind == "category":
        return [_strange(column, text)]
    numbers = text.numbers(column)
    whole = np.append(numbers, np.nan)[text.codes]
    return [_not_numbers(column, text, ~np.isfinite(numbers)), *_outside(column, whole)]


def without_outside(column: Column, held: np.ndarray | Text) -> tuple[np.ndarray | Text, int]:
    """Return values with those outside the column's range missing, and how many these are."""
    low = -np.inf if column.low is None else column.low
    high = np.inf if column.high is None else column.high
    numbers = held.numbers(column) if isinstance(held, Text) else np.asarray(held)
    strange = np.isfinite(numbers) & ((numbers < low) | (numbers > high))
    where = held.where(strange) if isinstance(held, Text) else strange
    count = int(where.sum())
    if not count:
        return held, 0
    return (
        replace(held, codes=np.where(where, -1, held.codes)) if isinstance(held, Text) else np.where(where, np.nan, held)
    ), count


MISSING = 'Drop those records (missing = "drop" in a study, read(..., missing="drop") in Python), or fill the values before.'


def numbers_of(words: np.ndarray, decimal: str = ".") -> np.ndarray:
    """Return words as the nearest float64, NaN for what is no number."""
    import pandas as pd

    if decimal != ".":
        words = np.array([_pointed(word, decimal) for word in words], dtype=object)
    found = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    known = ~np.isnan(found)
    made = np.full(len(words), np.nan)
    made[known] = words[known].astype(np.float64)  # what pandas reads may be off by a bit
    return made


def _pointed(word: Any, decimal: str) -> Any:
    """A word with a point for its decimal sign; one that has a point is no number then."""
    return word if not isinstance(word, str) else None if "." in word else word.replace(decimal, ".")


def _strange(column: Column, text: Text) -> Fault | None:
    known = set(column.levels)
    strange = np.array([level_of(word, known, text.decimal) is None for word in text.words], bool)
    if not strange.any():
        return None
    near = [suggestion(spelling(word), known) for word in text.words[strange][:1]]
    levels = f"{', '.join(map(repr, column.levels[:10]))}{', ...' if len(known) > 10 else ''}"
    remedy = f"Known of {column.name!r}: {levels}. {LEVEL}"
    hints = tuple(hint for hint in near if hint.startswith("Did"))
    return _fault(column, text.where(strange), f"not among its {len(known)} levels", text, OutOfRange, remedy, hints)


LEVEL = "Mend the file, add the level to `levels`, or name what stands for a missing value in `na_values`."


def level_of(word: Any, levels: Collection[str], decimal: str = ".") -> str | None:
    """Return the level that a value spells.

    1, 1.0 and '1' are one level, and so is '1.0' where no level is called so, or '1,0' in a file with a decimal comma; likewise
    ' male' is 'male'.
    """
    text = spelling(word)
    for one in (text, text.strip()):
        if one in levels:
            return one
    try:
        number = spelling(float(_pointed(text, decimal) or text))
    except ValueError:
        return None
    return number if number in levels else None


def _not_numbers(column: Column, text: Text, wrong: np.ndarray) -> Fault | None:
    if not wrong.any():
        return None
    what = "neither 0 nor 1" if column.kind == "binary" else f"that are not numbers, and it is declared {column.kind}"
    hints = hints_for([str(word) for word in text.words[wrong]], text.decimal)
    return _fault(column, text.where(wrong), what, text, SchemaInvalid, BINARY if column.kind == "binary" else KIND, hints)


KIND = "Mend the file, name what stands for a missing value in `na_values`, or declare it a category."


def hints_for(words: Sequence[str], decimal: str = ".") -> tuple[str, ...]:
    """What the words that are no numbers look like."""
    numbers = numbers_of(np.array([word.replace(",", ".") for word in words], dtype=object))
    mended = [word.translate(LETTERS) for word in words]
    zeros = numbers_of(np.array(mended, dtype=object), decimal)
    comma = [word for word, number in zip(words, numbers, strict=True) if "," in word and not np.isnan(number)]
    letter = [place for place, number in enumerate(zeros) if mended[place] != words[place] and not np.isnan(number)]
    blank = [word for word in words if not any(character.isalnum() for character in word)]
    hints = []
    if comma and decimal == "." and THOUSANDS.fullmatch(comma[0]):
        hints.append(f"Write {comma[0].replace(',', '')}, or {comma[0].replace(',', '.')} if the comma is a decimal sign.")
    elif comma and decimal == ".":
        hints.append(f'Write {comma[0].replace(",", ".")}; where all numbers of a file are spelt so, say decimal = ",".')
    if decimal == "," and (point := [word for word in words if POINTED.fullmatch(word)]):
        hints.append(f"Write {point[0].replace('.', ',')}: numbers of this file have a decimal comma.")
    if letter:
        hints.append(f"Write {mended[letter[0]]}: {words[letter[0]]!r} holds a letter.")
    if blank:
        hints.append(f"If {blank[0]!r} stands for a missing value, say na_values = [{blank[0]!r}].".replace("'", '"'))
    return tuple(hints)


THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+")
POINTED = re.compile(r"[-+]?\d*\.\d+")
LETTERS = str.maketrans({"O": "0", "o": "0", "l": "1", "I": "1"})


def _outside(column: Column, numbers: np.ndarray) -> list[Fault | None]:
    known = np.isfinite(numbers)
    if column.kind == "binary":
        return [_fault(column, known & (numbers != 0) & (numbers != 1), "neither 0 nor 1", numbers, OutOfRange, BINARY)]
    found = []
    if column.kind == "integer" and numbers.dtype.kind == "f":
        found.append(_fault(column, known & (numbers != np.rint(numbers)), "not whole", numbers, OutOfRange, WHOLE))
    if (column.low is not None or column.high is not None) and not column.clip:
        low = -np.inf if column.low is None else column.low
        high = np.inf if column.high is None else column.high
        span = f"outside its declared range [{low:g}, {high:g}]{' ' + column.unit if column.unit else ''}"
        found.append(_fault(column, known & ((numbers < low) | (numbers > high)), span, numbers, OutOfRange, RANGE))
    return found


BINARY = (
    "A binary column holds 0 and 1, or true and false. Mend the file, or name what stands for a missing value in `na_values`."
)
WHOLE = 'Mend the file, or declare kind = "number".'
RANGE = (
    "Mend the file, widen the range, declare clip = true, or name what stands for a missing value (such as -9 or 999) in "
    "`na_values`."
)


def _fault(
    column: Column,
    wrong: np.ndarray,
    what: str,
    held: np.ndarray | Text,
    error: type[DataError],
    remedy: str,
    hints: tuple[str, ...] = (),
) -> Fault | None:
    where = np.flatnonzero(wrong)
    if not len(where):
        return None
    some = where[:LOOKED_AT] if error is not NotFinite else where[:0]
    values = held.words[held.codes[some]] if isinstance(held, Text) else held[some]
    shown = tuple(dict.fromkeys(map(spelling, values.tolist())))[:SHOWN]
    return Fault(column.name, len(where), len(held), what, int(where[0]), shown, error, remedy, hints)


LOOKED_AT = 1_000
"""Values among which those that a fault shows are looked for."""
