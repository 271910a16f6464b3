"""REDCap's data dictionary, the CSV of 18 columns that every project exports, as a dictionary of ours.

    radio, dropdown, sql    Choices "0, female | 1, male"  ->  levels { female = "0", male = "1" }
    checkbox                a binary column for each choice, called field___code, as REDCap exports them
    yesno, truefalse        binary                          slider      integer, [0, 100] by default
    text                    by its validation: integer or number, and its minimum and maximum
    Identifier? = y         role id
    notes, calc, dates ...  todo                            descriptive is no data

`Required Field?` is of the form and not of the data: branching leaves values missing, so nothing is `required` here. Branching
logic and calculated fields are not evaluated.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

from hedgerow.errors import MissingData, SchemaInvalid, suggestion

from ..inference import MOST_LEVELS
from .dictionary import Dictionary

NAME, TYPE, LABEL = "Variable / Field Name", "Field Type", "Field Label"
CHOICES, CHECK = "Choices, Calculations, OR Slider Labels", "Text Validation Type OR Show Slider Number"
LOW, HIGH, IDENTIFIER = "Text Validation Min", "Text Validation Max", "Identifier?"
READ = (NAME, TYPE, LABEL, CHOICES, CHECK, LOW, HIGH, IDENTIFIER)
"""The columns that are read, of 18."""
TAGS = re.compile(r"<[^>]+>")


def from_redcap(path: str | Path, *, name: str = "", version: str = "0.1.0") -> Dictionary:
    """Return the dictionary that REDCap's says; what is not told becomes a `todo`.

    Parameters
    ----------
    name : str
        That of the file by default.

    Raises
    ------
    MissingData (HR-402), SchemaInvalid (HR-409)
        No such file; it is no dictionary of REDCap, or its choices contradict themselves.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as cause:
        raise MissingData(f"{path} cannot be read: {cause}.", remedy="Name the CSV of the data dictionary, in UTF-8.") from None
    called = re.sub(r"[^\w.-]+", "-", name or path.name.split(".")[0]).strip("-.") or "imported"
    top = {"name": called, "version": version}
    return Dictionary.from_values({"dictionary": top, "columns": columns_of(text, path.name)}, where=path.name)


def columns_of(text: str, where: str) -> dict[str, dict[str, Any]]:
    """Return the columns that the rows of a REDCap dictionary say; raises SchemaInvalid (HR-409)."""
    rows = csv.DictReader(text.splitlines(keepends=True))
    head = list(rows.fieldnames or ())
    if gone := [one for one in READ if one not in head]:
        raise SchemaInvalid(
            f"{where} is no data dictionary of REDCap: it has no column {gone[0]!r}.", remedy=suggestion(gone[0], head)
        )
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        said = {key: (row[key] or "").strip() for key in READ}
        label = " ".join(TAGS.sub("", said[LABEL]).split())
        for column, values in _columns(said).items():
            part = values.pop("choice", "")
            shown = ": ".join(filter(None, [label, part]))
            found[column] = values | ({"label": shown} if shown else {})
    return found


def _columns(said: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The columns of one field."""
    kind, name = said[TYPE].lower(), said[NAME]
    if not name or kind == "descriptive":
        return {}
    if kind == "checkbox":
        binary = {"kind": "binary", "levels": {"no": "0", "yes": "1"}}
        return {f"{name}___{code.lower()}": binary | {"choice": word} for word, code in _choices(said[CHOICES]).items()}
    if said[IDENTIFIER].lower() == "y":
        return {name: {"role": "id"}}
    if kind in ("radio", "dropdown", "sql") and (levels := _choices(said[CHOICES])):
        many = {"many": True, "todo": f"{len(levels)} levels: are all of them meant?"} if len(levels) > MOST_LEVELS else {}
        return {name: {"kind": "category", "levels": levels} | many}
    if kind in ("yesno", "truefalse"):
        words = ("no", "yes") if kind == "yesno" else ("false", "true")
        return {name: {"kind": "binary", "levels": dict(zip(words, "01", strict=True))}}
    return {name: _numeric(said)}


def _numeric(said: dict[str, str]) -> dict[str, Any]:
    """A text field or slider, by its validation."""
    kind, check = said[TYPE].lower(), said[CHECK].lower()
    low, high = _number(said[LOW]), _number(said[HIGH])
    if kind == "slider":
        return {"kind": "integer", "range": [0 if low is None else low, 100 if high is None else high]}
    found = re.fullmatch(r"(integer|number)(?:_(\d)dp)?(_comma_decimal)?", check) if kind == "text" else None
    if not found:
        return {"todo": f'REDCap\'s {" ".join(filter(None, [kind, check]))} needs a kind and a range, or role = "ignore"'}
    values: dict[str, Any] = {"kind": found[1]}
    todo = ['its numbers have a decimal comma: decimal = "," of the file'] if found[3] else []
    if found[2]:
        values["digits"] = int(found[2])
    if low is None or high is None:
        todo.append("range: from what it means")
    else:
        values["range"] = [low, high]
    return values | ({"todo": "; ".join(todo)} if todo else {})


def _choices(text: str) -> dict[str, str]:
    """Level = code of choices such as `0, female | 1, male`; levels that share a word keep their code beside it."""
    pairs = [one.partition(",") for one in text.split("|") if one.strip()]
    words = [" ".join(TAGS.sub("", word).split()) or code.strip() for code, _, word in pairs]
    twice = Counter(words)
    return {
        word if twice[word] == 1 else f"{word} ({code.strip()})": code.strip()
        for word, (code, _, _) in zip(words, pairs, strict=True)
    }


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return None
    return int(number) if number.is_integer() else number
