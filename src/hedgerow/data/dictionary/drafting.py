"""A first dictionary, drafted from a file: what the file tells, and a `todo` wherever a person must decide.

    kind       what nearly all words of a column are; the others are a todo
    range      never taken from the file, whose extremes are records: a round guess around them stands in the todo
    levels     those that occur, in their order of spelling: a todo, since the first becomes the reference
    missing    the usual marks that occur; codes such as -9 that lie far outside are a todo

A draft is refused by every study until its todos are gone.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..column import spelling
from ..faults import TRUTH, Text, numbers_of
from ..inference import DATE, MOST_LEVELS, MOSTLY, OTHERWISE
from ..loaders import raw_columns
from ..missing_codes import codes_in
from ..text_files import BLANKS, SEPARATORS, beginning
from .dictionary import Dictionary
from .entries import DictionaryColumn

UNIQUE = 0.95
"""Share of different words from which on a column is taken to name records."""
MANY = 1_000
"""Different whole numbers that may name people, where they are more than half of all."""
STEPS = (1.0, 2.0, 5.0, 10.0)


def draft(path: str | Path, *, name: str = "", separator: str = "", decimal: str = "") -> Dictionary:
    """Return a first dictionary of a file, with a todo wherever a person must decide.

    Parameters
    ----------
    name : str
        Of the dictionary; that of the file by default.
    separator, decimal : str
        Of a text file; looked for in its first two lines, and in its words, where they are empty.

    Raises
    ------
    MissingData (HR-402), SchemaInvalid (HR-409)
        No such file; it cannot be read.
    """
    path = Path(path)
    between = separator or separator_of(path)
    raw, _ = raw_columns(path, separator=between)
    texts = {column: Text.of(values).bare() for column, values in raw.items() if np.ndim(values) == 1}
    sign = decimal or (
        "," if between != "," and any(_share(text, ",") > MOSTLY > _share(text, ".") for text in texts.values()) else "."
    )
    blanks = tuple(word for word in BLANKS if word != "None" and any(word in text.words for text in texts.values()))
    columns = {
        column: _with_marks(column, Text(text.codes, text.words, sign).without(blanks)) for column, text in texts.items()
    }
    called = re.sub(r"[^\w.-]+", "-", name or path.name.split(".")[0]).strip("-.") or "dictionary"
    return Dictionary(called, "0.1.0", columns, na_values=blanks or ("",), decimal=sign)


def separator_of(path: Path) -> str:
    """What lies between the values of a text file, by its header; empty where it is the usual one, or no text file."""
    if not path.is_file() or Path(path.name.removesuffix(".gz")).suffix.lower() != ".csv":
        return ""
    try:
        head, _ = beginning(path, ",")
    except (ValueError, OSError):
        return ""  # whoever reads it says what is wrong
    return next((one for one in SEPARATORS if one != "," and len(head) == 1 and one in head[0]), "")


def _share(text: Text, sign: str) -> float:
    """The share of different words that are numbers by this decimal sign."""
    return float(np.isfinite(numbers_of(text.words, sign)).mean()) if len(text.words) else 0.0


def _with_marks(name: str, text: Text) -> DictionaryColumn:
    """A column of words, of which marks such as ? stand for missing values, if a person says so."""
    marks = tuple(str(word) for word in text.words if not any(character.isalnum() for character in str(word)))
    found = _drafted(name, text.without(marks))
    if not marks:
        return found
    said = f"does {', '.join(marks)} stand for a missing value? else take it out of na_values"
    return replace(found, na_values=marks, todo="; ".join(filter(None, [found.todo, said])))


def _drafted(name: str, text: Text) -> DictionaryColumn:
    """What a column of words tells, and what it does not."""
    words = [str(word) for word in text.words]
    counts = np.bincount(text.codes[text.codes >= 0], minlength=len(words))
    n = int(counts.sum())
    if not n:
        return DictionaryColumn(
            name, role="ignore", todo="it has no value in this file: give it a kind and a role, or leave it out"
        )
    numbers = numbers_of(text.words, text.decimal)
    known = np.isfinite(numbers)
    whole = bool((numbers[known] == np.rint(numbers[known])).all())
    truth = all(word in TRUTH for word in words)
    if truth or (known.all() and {*numbers.tolist()} <= {0.0, 1.0}):
        return DictionaryColumn(name, "binary", todo='say what 0 and 1 mean: levels = { no = "0", yes = "1" }' * (not truth))
    if {*numbers[known].tolist()} == {0.0, 1.0} and not known.all():
        wrong = ", ".join(repr(word) for word in np.array(words, dtype=object)[~known][:3])
        return DictionaryColumn(name, "binary", todo=f"neither 0 nor 1: {wrong}. Mend the file, or na_values")
    if counts[known].sum() >= MOSTLY * n:
        many = len(words) > max(UNIQUE * n, MOST_LEVELS) or len(words) > max(MOSTLY * n, MANY)
        if many and whole and known.all():
            return DictionaryColumn(name, role="id", todo="it tells records apart: an id? or give it a kind and a range")
        return _numeric(name, text, numbers, known, whole)
    dates = np.asarray(pd.Series(words, dtype=object).str.fullmatch(DATE), bool)
    if counts[dates].sum() >= MOSTLY * n:
        return DictionaryColumn(name, role="ignore", todo="dates: make days since a fixed date of them, or leave it ignored")
    if len(words) > max(UNIQUE * n, MOST_LEVELS):
        return DictionaryColumn(name, role="id", todo='it tells records apart: an id? or role = "ignore"')
    if len(words) > MOST_LEVELS:
        return DictionaryColumn(name, role="ignore", todo=f"{len(words)} different words: levels, with many = true? free text?")
    spelt = sum(OTHERWISE.fullmatch(word) is not None for word in words)
    todo = "are these all levels? the first is the reference" + "; numbers in another spelling?" * (spelt > MOSTLY * len(words))
    levels = tuple(sorted(words))
    return DictionaryColumn(name, "category", levels=levels, codes=levels, todo=todo)


def _numeric(name: str, text: Text, numbers: np.ndarray, known: np.ndarray, whole: bool) -> DictionaryColumn:
    """A column that is mostly numbers."""
    whole_column = np.append(numbers, np.nan)[text.codes]
    codes = [spelling(code) for code, _ in codes_in(whole_column)]
    rest = numbers[known & ~np.isin(numbers, [float(code) for code in codes])]
    low, high = around(float(rest.min()), float(rest.max())) if len(rest) else (0.0, 1.0)
    todo = [f"range: from what it means, never from records; a round guess is [{low:g}, {high:g}]", "unit: in UCUM"]
    if codes:
        todo.append(f"does {', '.join(codes)} stand for a missing value? then na_values")
    if n := int((~known).sum()):
        todo.append(f"{n} different word{'s are' if n > 1 else ' is'} no number: mend the file, or na_values")
    return DictionaryColumn(name, "integer" if whole else "number", todo="; ".join(todo))


def around(low: float, high: float) -> tuple[float, float]:
    """Return round numbers around a span, which tell of its ends no more than their size: 1, 2 or 5 times a power of ten."""

    def out(value: float) -> float:
        if value == 0:
            return 0.0
        power = 10.0 ** math.floor(math.log10(abs(value)))
        return math.copysign(next(step * power for step in STEPS if step * power >= abs(value) * (1 - 1e-12)), value)

    return (out(low) if low < 0 else 0.0), (out(high) if high > 0 else 0.0)


def drafted_words(found: Dictionary) -> str:
    """A draft as a file, with a line above it for who decides."""
    n = f"{len(found.todo)} of {len(found.columns)} columns"
    head = f"# A draft: {n} have a todo. Decide, and take that line out; no study uses the dictionary before.\n\n"
    return head + found.to_toml()
