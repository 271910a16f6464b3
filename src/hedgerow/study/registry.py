"""Where programs are: in rooms of the package, whose files are read and not run, and in other people's packages.

A program of another package is an entry point of the group `hedgerow.programs`, its name and its function:

    [project.entry-points."hedgerow.programs"]
    share = "my_lab.share:share"
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
GROUP = "hedgerow.programs"


@dataclass(frozen=True)
class Place:
    """Where a program is: `module:function`; the sentence is empty where only an import would tell.

    `apart` is whether its parties hold different columns of the same people; `draws`, whether records are drawn from what it
    finds.
    """

    name: str
    path: str
    sentence: str = ""
    apart: bool = False
    draws: bool = False


@cache
def own() -> dict[str, Place]:
    """Programs of this package by name, in the order of rooms and files. Nothing is imported."""
    found: dict[str, Place] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "\n@program(" in text:
            module = ".".join((PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts))
            found |= {place.name: place for place in declared_in(text, module)}
    return found


def declared_in(text: str, module: str) -> Iterator[Place]:
    """Programs that a module's text declares by `@program(...)` at its top."""
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in function.decorator_list:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "program":
                given = {keyword.arg: keyword.value for keyword in call.keywords}
                name = ast.literal_eval(given["name"]) if "name" in given else function.name
                first = ast.literal_eval(call.args[0]) if call.args else (ast.get_docstring(function) or "")
                apart = "columns" in given and ast.literal_eval(given["columns"]) == "apart"
                yield Place(name, f"{module}:{function.name}", first.partition("\n")[0], apart, "synthesizer" in given)


@cache
def others() -> dict[str, tuple[Place, ...]]:
    """Programs of other packages by name; several where packages disagree. Nothing is imported."""
    found: dict[str, tuple[Place, ...]] = {}
    for point in entry_points(group=GROUP):
        place = Place(point.name, point.value)
        if place not in found.get(point.name, ()):  # a package may be on the path twice
            found[point.name] = (*found.get(point.name, ()), place)
    return found
