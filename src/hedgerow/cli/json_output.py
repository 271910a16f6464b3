"""`--json`: what a command prints, as one JSON object for another program.

Keys are stable: one may be added, none is renamed within a version that is not a new minor one. Numbers are numbers, an
infinite one is the word "infinity", and what is not known is null. Errors stay sentences on the standard error,
with exit code 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def print_json(value: Mapping[str, Any]) -> None:
    """Print an object, one line for each of its leaves."""
    typer.echo(json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: mappings, lists, words, numbers, and null."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    return str(value) if not isinstance(value, Path) else value.as_posix()
