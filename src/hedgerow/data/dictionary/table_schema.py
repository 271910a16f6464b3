"""Dictionaries as Frictionless Table Schema v2, and back: exported and read again, a dictionary has the same digest.

    kind        type: integer, number, boolean, string with categories {value: code, label: word}
    range       constraints.minimum and maximum        required    constraints.required
    label       title                                  na_values   missingValues, of the table and of the field
    the rest    "hedgerow": what Table Schema has no word for, such as role, outside and derived columns

Of a schema that others wrote, what is not told becomes a `todo`. Source: https://datapackage.org/standard/table-schema/ (v2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.errors import MissingData, SchemaInvalid

from ..column import spelling
from .dictionary import Dictionary
from .entries import DictionaryColumn, plain

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
OURS = "hedgerow"
"""The property that holds what Table Schema has no word for."""
TYPES = {"integer": "integer", "number": "number", "binary": "boolean", "category": "string"}
TOLD = ("kind", "range", "required", "label", "description", "na_values", "unit")
"""What Table Schema says of a column by its own words; levels besides."""


def to_table_schema(dictionary: Dictionary) -> dict[str, Any]:
    """Return a dictionary as a Table Schema, of plain values."""
    values = dictionary.to_values()
    top = values["dictionary"] | ({"derived": values["derived"]} if dictionary.derived else {})
    blank = top.pop("na_values")
    fields = [_field(column, dictionary) for column in dictionary.columns.values()]
    return {"$schema": PROFILE, "fields": fields, "missingValues": blank, OURS: top}


def _field(column: DictionaryColumn, dictionary: Dictionary) -> dict[str, Any]:
    said = plain(column)
    kind = TYPES[column.kind] if column.kind else "string" if column.coded else "any"
    field: dict[str, Any] = {"name": column.name, "type": kind}
    field |= {
        theirs: said[ours]
        for ours, theirs in (("label", "title"), ("description", "description"), ("unit", "unit"))
        if ours in said
    }
    limits = dict(zip(("minimum", "maximum"), column.range or (), strict=False))
    if column.required:
        limits["required"] = True
    if limits:
        field["constraints"] = limits
    if column.na_values:
        field["missingValues"] = [*dictionary.na_values, *column.na_values]
    rest = {key: value for key, value in said.items() if key not in TOLD}
    if column.kind == "category" and column.levels:
        rest.pop("levels")
        pairs = zip(column.levels, column.codes, strict=True)
        field["categories"] = [code if word == code else {"value": code, "label": word} for word, code in pairs]
    if column.kind == "binary" and column.levels:
        field["falseValues"], field["trueValues"] = [column.codes[0]], [column.codes[1]]
        if column.levels == ("no", "yes"):
            rest.pop("levels")
    return field | ({OURS: rest} if rest else {})


def from_table_schema(values: Mapping[str, Any], *, name: str = "imported", version: str = "0.1.0") -> Dictionary:
    """Return the dictionary that a Table Schema says.

    Parameters
    ----------
    values : mapping
        As JSON has it; of a data package, its first table's.
    name, version : str
        Where the schema does not say them.

    Raises
    ------
    SchemaInvalid (HR-409)
        It is no Table Schema, or contradicts itself.
    """
    fields = values.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, Mapping) and isinstance(one.get("name"), str) for one in fields):
        raise SchemaInvalid("this is no Table Schema: it has no list of fields with names.", remedy="Give the schema itself.")
    ours, keys = values.get(OURS), values.get("primaryKey", [])
    top: dict[str, Any] = {"name": name, "version": version} | dict(ours if isinstance(ours, Mapping) else {})
    derived, columns, place = top.pop("derived", {}), {}, "missingValues"
    try:
        blank = [_value(one) for one in values.get("missingValues", [""])]
        for one in fields:
            place = f"field {one['name']!r}"
            is_key = one["name"] == keys or (isinstance(keys, list) and one["name"] in keys)
            columns[one["name"]] = _column(one, blank, is_ours=ours is not None, is_key=is_key)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as cause:
        remedy = f"Look the standard up: https://datapackage.org/standard/table-schema/. ({type(cause).__name__}: {cause})"
        raise SchemaInvalid(f"{place} of the Table Schema is not as the standard has it.", remedy=remedy) from None
    top["na_values"] = blank
    if {str(one.get("decimalChar", ".")) for one in fields if one.get("type") == "number"} == {","}:
        top["decimal"] = ","
    return Dictionary.from_values({"dictionary": top, "columns": columns, "derived": derived}, where="the Table Schema")


def read_table_schema(path: str | Path, *, name: str = "") -> Dictionary:
    """Return the dictionary that a file of JSON says: a Table Schema, or a data package of one table.

    Raises
    ------
    MissingData (HR-402), SchemaInvalid (HR-409)
        No such file; as `from_table_schema`.
    """
    path = Path(path)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise MissingData(f"{path} cannot be read: {cause}.", remedy="Name a file of JSON.") from None
    except (ValueError, RecursionError) as cause:
        raise SchemaInvalid(f"{path.name} is no JSON: {cause}.", remedy="Name a Table Schema.") from None
    found = values if isinstance(values, dict) else {}
    resources = found.get("resources")
    if isinstance(resources, list) and len(resources) == 1 and isinstance(resources[0], dict):
        found = resources[0].get("schema", {})
    called = re.sub(r"[^\w.-]+", "-", name or path.name.split(".")[0]).strip("-.") or "imported"
    return from_table_schema(found if isinstance(found, dict) else {}, name=called)


def _column(field: Mapping[str, Any], blank: list[str], *, is_ours: bool, is_key: bool) -> dict[str, Any]:
    """A field as a dictionary says it."""
    limits, kind, todo = field.get("constraints", {}), field.get("type", "any"), []
    said: dict[str, Any] = {}
    for theirs, mine in (("title", "label"), ("description", "description"), ("unit", "unit")):
        if field.get(theirs):
            said[mine] = str(field[theirs])
    if limits.get("required"):
        said["required"] = True
    if "missingValues" in field:
        own = [_value(one) for one in field["missingValues"]]
        if only := [word for word in own if word not in blank]:
            said["na_values"] = only
        if not {*blank} <= {*own}:
            todo.append("the table's marks for missing values do not all hold for it")
    choices = field.get("categories") or limits.get("enum")
    if kind == "boolean":
        said |= _boolean(field)
    elif choices and kind in ("string", "integer", "any"):
        said |= {"kind": "category", "levels": _levels(choices)}
    elif kind in ("integer", "number", "year"):
        said["kind"] = "number" if kind == "number" else "integer"
        if "minimum" in limits and "maximum" in limits:
            said["range"] = [_number(limits["minimum"]), _number(limits["maximum"])]
        else:
            todo.append("range: from what it means")
    elif is_key or limits.get("unique"):
        said["role"] = "id"
    else:
        todo.append(f'type {kind!r} needs a kind, or role = "ignore"')
    if is_ours:
        return said | dict(field.get(OURS, {}))
    if is_key and "kind" in said:
        todo.append("it is the table's key: an id?")
    return said | ({"todo": "; ".join(todo)} if todo else {})


def _boolean(field: Mapping[str, Any]) -> dict[str, Any]:
    low, high = field.get("falseValues", []), field.get("trueValues", [])
    if len(low) == 1 and len(high) == 1:
        return {"kind": "binary", "levels": {"no": _value(low[0]), "yes": _value(high[0])}}
    return {"kind": "binary"}


def _levels(choices: list[Any]) -> dict[str, str]:
    pairs = [(one.get("label", one["value"]), one["value"]) if isinstance(one, Mapping) else (one, one) for one in choices]
    return {spelling(word): spelling(code) for word, code in pairs}


def _value(given: Any) -> str:
    """A mark for a missing value, which v2 may give with a label."""
    return spelling(given["value"] if isinstance(given, Mapping) else given)


def _number(given: Any) -> float:
    return given if isinstance(given, int | float) else float(given)
