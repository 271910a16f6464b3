"""A dictionary as a file says it, read into columns; all problems are told together, misspelt words with the nearest one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from hedgerow.errors import DataError, FormulaInvalid, SchemaInvalid, suggestion

from ..column import Kind, Role, spelling
from ..declared import Outside, words_of
from .entries import DerivedColumn, DictionaryColumn

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
"""A version, as semver.org has it: 1.2.0, 1.3.0-draft."""
NAME = re.compile(r"[\w][\w.-]*")
TOP = ("name", "version", "na_values", "least", "decimal", "description")
MOST_TOLD = 20
"""Problems that one error tells."""

Check = Callable[[Any], Any]
"""Returns a value as it is kept, or raises ValueError with what would be right."""


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise ValueError("give a text in quotes")
    return given


def _flag(given: Any) -> bool:
    if not isinstance(given, bool):
        raise ValueError("give true or false")
    return given


def _among(*words: str) -> Check:
    def check(given: Any) -> str:
        if given not in words:
            raise ValueError(suggestion(str(given), words))
        return str(given)

    return check


def _whole(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValueError("give a whole number")
    return given


def _span(given: Any) -> tuple[float, float]:
    pair = isinstance(given, list | tuple) and len(given) == 2
    if not pair or not all(isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in given):
        raise ValueError("give two numbers, such as [18, 110]")
    if given[0] > given[1]:
        raise ValueError("give the smaller number first")
    return given[0], given[1]


def _words(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not all(isinstance(word, str | int | float) for word in given):
        raise ValueError('give a list of words or numbers, such as ["?", -9]')
    return tuple(dict.fromkeys(words_of(given)))


def _levels(given: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words, and how files spell them."""
    if isinstance(given, Mapping) and all(isinstance(code, str | int | float) for code in given.values()):
        words, codes = tuple(map(str, given)), tuple(map(spelling, given.values()))
    elif isinstance(given, list | tuple) and all(isinstance(word, str | int | float) for word in given):
        words = codes = tuple(map(spelling, given))
    else:
        raise ValueError('give a list of words, or word = code, such as { female = "0", male = "1" }')
    if len(set(words)) < len(words) or len(set(codes)) < len(codes):
        raise ValueError("give each level a word and a code of its own")
    if any(word != word.strip() or not word for word in (*words, *codes)):
        raise ValueError("give words without blanks around them")
    return words, codes


COLUMN: dict[str, Check] = {
    "kind": _among(*get_args(Kind)),
    "role": _among(*get_args(Role)),
    "range": _span,
    "unit": _text,
    "label": _text,
    "levels": _levels,
    "na_values": _words,
    "outside": _among(*get_args(Outside)),
    "digits": _whole,
    "required": _flag,
    "many": _flag,
    "concept": _text,
    "description": _text,
    "todo": _text,
}
"""What a column may say."""
DERIVED: dict[str, Check] = {
    "as": _text,
    "outside": _among("refuse", "clip"),
    **{key: COLUMN[key] for key in ("range", "unit", "label", "digits", "concept", "description", "todo")},
}
"""What a derived column may say."""
COMPUTED = "computed"
"""What a derived column may say for its range, as if it said none."""


def parse(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what `Dictionary` is made of.

    Raises
    ------
    SchemaInvalid (HR-409)
        All problems.
    """
    wrong: list[str] = []
    for key in values:
        if key not in ("dictionary", "columns", "derived"):
            wrong.append(f"[{key}]: unknown. {suggestion(key, ('dictionary', 'columns', 'derived'))}")
    found = _top(_section(values, "dictionary", wrong), wrong)
    columns = {
        name: DictionaryColumn(name, **_said(f"columns.{name}", given, COLUMN, wrong))
        for name, given in _section(values, "columns", wrong).items()
    }
    derived = {}
    for name, given in _section(values, "derived", wrong).items():
        computed = isinstance(given, Mapping) and given.get("range") == COMPUTED
        said = _said(f"derived.{name}", {k: v for k, v in given.items() if k != "range"} if computed else given, DERIVED, wrong)
        if "as" not in said:
            wrong.append(f'derived.{name}: as is missing. Say what it is computed from: as = "log(creatinine)".')
            continue
        derived[name] = DerivedColumn(name, said.pop("as"), **said)
    if not columns and not wrong:
        wrong.append("columns: there are none. Declare one: [columns.age].")
    refuse_all(wrong, where)
    return found | {"columns": columns, "derived": derived}


def refuse_all(wrong: list[str], where: str) -> None:
    """Raise one error that tells all problems; none, and nothing happens."""
    if wrong:
        more = [f"And {len(wrong) - MOST_TOLD} more."] if len(wrong) > MOST_TOLD else []
        raise SchemaInvalid(
            f"{where} has {len(wrong)} problem{'s' * (len(wrong) > 1)}:", remedy="\n".join([*wrong[:MOST_TOLD], *more])
        )


def problems_of(columns: Mapping[str, DictionaryColumn]) -> list[str]:
    """What contradicts itself in columns, a sentence for each; one that has a `todo` may still lack a kind."""
    found = []
    for name, column in columns.items():
        if not column.kept and column.kind is None:
            continue
        if column.todo and (column.kind is None or (column.kind == "category" and not column.levels)):
            continue
        try:
            column.declared()
        except (DataError, FormulaInvalid) as error:
            found.append(f"columns.{name}: {error.reason} {error.remedy}".strip())
    return found


def _section(values: Mapping[str, Any], key: str, wrong: list[str]) -> Mapping[str, Any]:
    given = values.get(key, {})
    if not isinstance(given, Mapping):
        wrong.append(f"{key}: it is a table, [{key}].")
        return {}
    return given


def _top(given: Mapping[str, Any], wrong: list[str]) -> dict[str, Any]:
    checks: dict[str, Check] = {
        "name": _text,
        "version": _text,
        "na_values": _words,
        "least": _whole,
        "decimal": _among(".", ","),
        "description": _text,
    }
    said = _said("dictionary", given, checks, wrong)
    if not NAME.fullmatch(said.setdefault("name", "")):
        wrong.append("dictionary.name: give letters, digits, - and _, such as heart-failure.")
    if not VERSION.fullmatch(said.setdefault("version", "")):
        wrong.append('dictionary.version: give three numbers, such as "1.2.0".')
    if said.get("least", 1) < 1:
        wrong.append("dictionary.least: give 1 or more.")
    return said


def _said(where: str, given: Any, checks: Mapping[str, Check], wrong: list[str]) -> dict[str, Any]:
    """What a table says, checked key by key; `levels` become words and codes."""
    if not isinstance(given, Mapping):
        wrong.append(f"{where}: it is a table, [{where}].")
        return {}
    said: dict[str, Any] = {}
    for key, value in given.items():
        if key not in checks:
            wrong.append(f"{where}: {key} is unknown. {suggestion(key, checks)}")
            continue
        try:
            said[key] = checks[key](value)
        except ValueError as error:
            wrong.append(f"{where}: {key} = {value!r}: {error}")
    if "levels" in said:
        said["levels"], said["codes"] = said["levels"]
    if said.get("levels") and "kind" not in said:
        said["kind"] = "category"
    if not said.get("required", True):
        said.pop("required")
    return said
