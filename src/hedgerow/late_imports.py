"""What a module imports under TYPE_CHECKING, as its source says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import resolve_name
from types import ModuleType
from typing import Any


def imported_for_types(module: ModuleType) -> dict[str, tuple[str, str]]:
    """Return what a module imports only where types are checked: by name, the module that it comes from and its name there."""
    loader: Any = module.__loader__
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    return dict(_imports(ast.parse(loader.get_source(module.__name__)), package))


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a source file imports under TYPE_CHECKING."""
    for block in tree.body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    path = resolve_name("." * line.level + (line.module or ""), package)
                    yield from ((one.asname or one.name, (path, one.name)) for one in line.names)
                elif isinstance(line, ast.Import):
                    yield from ((one.asname or one.name, (one.name, "")) for one in line.names)
