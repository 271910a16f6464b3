"""Check what a linter does not know of: files that fit one sitting, words with one meaning, and closed handles.

a file                  has at most 400 lines
a room                  names its public things, and they exist
a public class          has a name of its own in the whole package
a module                bears none of the names that said nothing
a room of programs      opens no handle: it asks, and reads what a federation tells
a file of tests         has a name of its own among all folders, without which pytest reads only one of two
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hedgerow"
TESTS = Path(__file__).parents[1] / "tests"
LONGEST_FILE = 400
ROOMS = (
    "attacks",
    "compare",
    "compression",
    "core",
    "crypto",
    "data",
    "engines",
    "learn",
    "loggers",
    "market",
    "notebook",
    "privacy",
    "report",
    "stats",
    "store",
    "study",
    "synth",
    "testing",
    "trees",
    "vertical",
)
NOTHING_SAID = {
    "aboard",
    "abroad",
    "beside",
    "book",
    "clocked",
    "common",
    "found",
    "helpers",
    "holdings",
    "kinds",
    "misc",
    "once",
    "post",
    "strand",
    "told",
    "trains",
    "util",
    "utils",
    "words",
}
OPENS_HANDLES = (
    "cli",
    "compare",
    "core",
    "engines",
    "network",
    "store",
    "study",
    "testing",
    "privacy/level.py",
    "vertical/aligned.py",
    "vertical/hidden_sums.py",
)
INSIDE = {"hedgerow.core.federation": {"Inside", "inside", "handle", "_INSIDE"}, "hedgerow.core.run": {"Run"}}


def lengths(path: Path, tree: ast.Module) -> Iterator[str]:
    n = len(path.read_text(encoding="utf-8").splitlines())
    if n > LONGEST_FILE:
        yield f"{n} lines, at most {LONGEST_FILE}"


def module_names(path: Path, tree: ast.Module) -> Iterator[str]:
    for word in {path.stem, path.parent.name} & NOTHING_SAID:
        yield f"the name {word!r} does not say what is in it"


def open_handles(path: Path, tree: ast.Module) -> Iterator[str]:
    """Imports, and attributes of the module, by which a program could open a handle."""
    if path.relative_to(SOURCE).as_posix().startswith(OPENS_HANDLES):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for name in {alias.name for alias in node.names} & INSIDE.get(node.module or "", set()):
                yield f"line {node.lineno} imports {name}, which opens a federation"
            if node.module == "hedgerow.core" and "federation" in {alias.name for alias in node.names}:
                yield f"line {node.lineno} imports the module that opens a federation"
        if isinstance(node, ast.Import) and {alias.name for alias in node.names} & INSIDE.keys():
            yield f"line {node.lineno} imports the module that opens a federation"


def homonyms(trees: dict[Path, ast.Module]) -> Iterator[str]:
    defined = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path.relative_to(SOURCE).as_posix())
    for name, places in defined.items():
        if len(places) > 1:
            yield f"{name} is a class of {' and of '.join(sorted(places))}"


def test_names() -> Iterator[str]:
    places = defaultdict(list)
    for path in TESTS.rglob("test_*.py"):
        places[path.name].append(path.parent.relative_to(TESTS).as_posix())
    for name, folders in places.items():
        if len(folders) > 1:
            yield f"{name} is a file of tests in {' and in '.join(sorted(folders))}"


def public_names() -> Iterator[str]:
    for room in ("hedgerow", *(f"hedgerow.{room}" for room in ROOMS)):
        module = importlib.import_module(room)
        names = list(getattr(module, "__all__", ()))
        yield from (f"{room}.__all__ names {name!r}, which does not exist" for name in names if not hasattr(module, name))
        if not names:
            yield f"{room}.__all__ is missing"


def main() -> int:
    """Print every problem; the exit status says whether there is one."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    problems = [
        f"{path.relative_to(SOURCE)}: {problem}"
        for path, tree in trees.items()
        for check in (lengths, module_names, open_handles)
        for problem in check(path, tree)
    ]
    problems += [*homonyms(trees), *test_names(), *public_names()]
    print("\n".join(problems) or f"the house: {len(trees)} files, no problem")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
