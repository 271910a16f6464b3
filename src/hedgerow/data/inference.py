"""Kinds and levels read off the records, for a first look at a table. What would have to be guessed is refused.

    numbers               integer, number; binary where all of them are 0 or 1
    words                 a category of the words that occur, at most `MOST_LEVELS`, without the blanks around them
    ?, -, ., --, *        refused among words: marks without a letter or digit, which as a rule stand for missing values
    mostly numbers        refused: `27,5` among numbers is a typo, not a reason for a level of each number
    mostly true and false refused likewise; mostly dates; and mostly numbers in another spelling: `20,5`, `1,100`, `12%`
    more words than that  refused: a level of each name or note would be asked of every party

*Mostly* is half of the records that hold a value, or half of the different values, whichever says so: a column of which nine
tenths are `?` has hundreds of numbers and one `?`. A mistake to this side costs a declaration; one to the other side makes
parties count records one by one, which gives them away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import ColumnUndeclared, SchemaInvalid

from .column import Column, Kind, spelling
from .faults import SHOWN, TRUTH, Fault, Text, hints_for, numbers_of, refuse
from .frames import RawTable
from .schema import Schema

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 50
"""Most levels of a category that nobody declares."""
MOSTLY = 0.5
"""Share of records, or of different values, from which on a column is taken to be of a kind."""
NUMERIC_OBJECTS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
"""What pandas calls objects that are numbers."""
MONTH = r"(?:jan|feb|m[aä]r|a[pv]r|ma[iy]|ju[nilr]|jui|aug|ao[uû]|se[pt]|o[ck]t|nov|d[eé][cz])[^\W\d]*\.?"
DATE = (
    rf"(?i:\s*(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|\d{{1,2}}\.?[- ]*{MONTH}[-, ]*\d{{2,4}}|{MONTH}[- ]*\d{{1,2}}[-, ]+\d{{2,4}})(?:[T ]\d{{1,2}}:\d{{2}}.*)?\s*)"
)
"""What looks like a date."""
OTHERWISE = re.compile(r"[-+]?(?:\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?(?:[eE][-+]?\d+)?\s*%?")
"""What looks like a number with another decimal sign, with marks between thousands, or with a per cent sign."""


def infer(
    frame: Any,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Schema:
    """Return a schema with the kinds of a data frame of any library (see `Table.from_frame`).

    Booleans and numbers that are only 0 or 1 become `binary`, other integers `integer`, floats `number`, text and
    categoricals `category` with sorted levels. Ranges are declared in `ranges` or absent: they are never taken from the
    data. Levels are taken from the data, and so is that all values are 0 or 1: such columns are marked `inferred`, and no
    question that promises protection reads them (HR-410).

    Parameters
    ----------
    frame : data frame
        One record per row.
    target : str, optional
        Column that a model predicts.
    features : sequence of str, optional
        Columns that a model may read; all but the target by default.
    ranges : mapping of str to (low, high), optional
        Declared ranges.

    Raises
    ------
    MissingColumn (HR-403), SchemaInvalid (HR-409)
        A named column is absent; a column is neither numbers nor text.
    ColumnUndeclared (HR-410)
        Text that is mostly numbers, truth values or dates, or that has more than 50 different values; of all columns.
    """
    found = [infer_column(name, values) for name, values in RawTable.of(frame).columns.items()]
    refuse([one for one in found if isinstance(one, Fault)], "the table")
    schema = Schema(tuple(one for one in found if isinstance(one, Column)))
    for name, (low, high) in (ranges or {}).items():
        schema = schema.replace(replace(schema[name], low=low, high=high))
    return schema.with_roles(target=target, features=features)


def infer_column(name: str, values: Any) -> Column | Fault:
    """Return a column with the kind and levels of its values, or why they do not tell it.

    Parameters
    ----------
    values : pandas.Series, array of shape (n, ...), or Text
    """
    import pandas as pd

    if isinstance(values, np.ndarray) and values.ndim > 1:
        return Column(name, "integer" if values.dtype.kind in "iu" else "number", shape=values.shape[1:])
    if isinstance(values, Text):
        return _of_words(name, values)
    series = plain(values)
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if len(dtype.categories) > MOST_LEVELS:
            return _many(name, len(dtype.categories), LEVELS)
        if marks := marks_in(name, Text.of(series)):
            return marks
        return Column(name, "category", levels=tuple(sorted(map(str, dtype.categories))), inferred=True)
    if pd.api.types.is_numeric_dtype(dtype):
        known = series.dropna()
        is_binary = len(known) > 0 and bool(known.isin([0, 1]).all())
        kind: Kind = "binary" if is_binary else "integer" if pd.api.types.is_integer_dtype(dtype) else "number"
        return Column(name, kind, inferred=is_binary and not pd.api.types.is_bool_dtype(dtype))
    if pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype):
        return _of_words(name, Text.of(series))
    raise SchemaInvalid(
        f"column {name!r} holds {dtype}, which is neither numbers nor text.",
        remedy="Convert it (dates, for example, to days since a fixed date), or drop it.",
    )


def plain(values: Any) -> pd.Series:
    """Return values as a series; objects that are all numbers become numbers."""
    import pandas as pd

    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if series.dtype == object and (held := pd.api.types.infer_dtype(series, skipna=True)) in NUMERIC_OBJECTS:
        whole = held in ("integer", "boolean") and not series.isna().any()
        return (
            pd.to_numeric(series.astype("Int64")) if held == "integer" and not whole else series.astype(int if whole else float)
        )
    return series


def levels_in(text: Text) -> tuple[str, ...]:
    """The different values of a column as words: numbers by size, others by spelling."""
    words = list(dict.fromkeys(re.sub(r"^(-?[1-9]\d*|0)\.0+$", r"\1", bare(spelling(word))) for word in text.words))
    numbers = dict(zip(words, numbers_of(np.array(words, dtype=object), text.decimal), strict=True))
    return tuple(sorted(words, key=lambda word: (np.isnan(numbers[word]), np.nan_to_num(numbers[word]), word)))


def bare(word: str) -> str:
    """A word without the blanks around it; a mark stays as it is."""
    return word.strip() if any(character.isalnum() for character in word) else word


def _of_words(name: str, text: Text) -> Column | Fault:
    """A category of the words that occur, where it is neither of another kind nor too large."""
    import pandas as pd

    words = np.array([bare(str(word)) for word in text.words], dtype=object)
    counts = np.bincount(text.codes[text.codes >= 0], minlength=len(words))
    numbers = ~np.isnan(numbers_of(words, text.decimal))
    truth = np.array([word in TRUTH for word in words], bool)
    spelt = numbers | np.array([OTHERWISE.fullmatch(word) is not None for word in words], bool)
    dates = np.asarray(pd.Series(words, dtype=object).str.fullmatch(DATE), bool) if len(words) else truth
    if numbers.any() and not numbers.all() and _mostly(numbers, counts):
        return _mixed(name, text, words, numbers, "numbers", NUMBERS)
    if truth.any() and not truth.all() and _mostly(truth, counts):
        return _mixed(name, text, words, truth, "true or false", TRUTHS)
    if dates.any() and _mostly(dates, counts):
        return Fault(
            name, 0, 0, f"column {name!r} holds dates or times, which no program reads", None, (), ColumnUndeclared, DATES
        )
    if spelt.any() and not numbers.all() and _mostly(spelt, counts):
        other = spelt & ~numbers
        where, shown = text.where(other), list(words[other])
        first, hints = int(np.argmax(where)), hints_for(shown, text.decimal)
        what = "that look like numbers in another spelling"
        n = int(where.sum())
        return Fault(name, n, len(text), what, first, tuple(shown[:SHOWN]), ColumnUndeclared, SPELT, hints)
    levels = tuple(sorted(set(words)))
    if len(levels) > MOST_LEVELS:
        said = (
            f"column {name!r} holds {len(levels)} different words, and at most {MOST_LEVELS} become levels that nobody declares"
        )
        return Fault(name, 0, 0, said, None, (), ColumnUndeclared, NUMBERS_AS_TEXT if numbers.all() else LEVELS)
    return marks_in(name, text) or Column(name, "category", levels=levels, inferred=True)


def marks_in(name: str, text: Text) -> Fault | None:
    """What is wrong with a category that nobody declares and that holds a mark, such as ?, for a level; None if nothing."""
    words = [spelling(word) for word in text.words]
    wrong = np.array([not any(character.isalnum() for character in word) for word in words], bool)
    where = text.where(wrong)
    if not where.any():
        return None
    marks, n = [word for word, one in zip(words, wrong, strict=True) if one], int(where.sum())
    what = "that are marks without a letter or digit, which as a rule stand for missing values"
    return Fault(
        name, n, len(text), what, int(np.argmax(where)), tuple(marks[:SHOWN]), ColumnUndeclared, MARKS, hints_for(marks)
    )


def _many(name: str, n: int, remedy: str) -> Fault:
    said = f"column {name!r} holds {n} different words, and at most {MOST_LEVELS} become levels that nobody declares"
    return Fault(name, 0, 0, said, None, (), ColumnUndeclared, remedy)


def _mostly(of_a_kind: np.ndarray, counts: np.ndarray) -> bool:
    shares = of_a_kind.mean(), float(counts[of_a_kind].sum()) / max(int(counts.sum()), 1)
    return bool(max(shares) >= MOSTLY)


def _mixed(name: str, text: Text, words: np.ndarray, fits: np.ndarray, kind: str, remedy: str) -> Fault:
    wrong = text.where(~fits)
    n, known = int(wrong.sum()), int((~text.absent).sum())
    what = f"that are not {kind}, and {known - n} that are"
    strange = words[~fits]
    first, hints = int(np.argmax(wrong)), hints_for(list(strange), text.decimal)
    return Fault(name, n, len(text), what, first, tuple(strange[:SHOWN]), ColumnUndeclared, remedy, hints)


NUMBERS = (
    "Mend the file; name what stands for a missing value in `na_values`; or declare the column: kind, or levels if it is a "
    "category."
)
SPELT = (
    "Write them as 1234.5, without marks between thousands and without %, or say the decimal sign of the file (decimal); or "
    "declare the column: its levels, or many = true, if it is a category."
)
TRUTHS = 'Mend the file; name what stands for a missing value in `na_values`; or declare kind = "binary", or levels.'
DATES = 'Convert it, for example to days since a fixed date; or declare role = "ignore", or kind = "category".'
LEVELS = (
    "Leave the column out (name those that are used: features = [...] in [data], read(..., columns=[...]) in Python); declare "
    'its levels, or many = true if all of them are meant; or role = "ignore" if it only names records.'
)
MARKS = "Name what stands for a missing value in `na_values`; or declare its levels, if that is one of them."
NUMBERS_AS_TEXT = (
    'They are numbers as text: declare kind = "number" or "integer", or many = true if they are codes of a category.'
)
