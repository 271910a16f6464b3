"""Public names of a package that are imported when somebody uses them.

    if TYPE_CHECKING:
        from .moments import means, moments

    __all__ = ["means", "moments"]

    lazily(__name__)

The imports under TYPE_CHECKING are what editors and type checkers read, and they are the table: a name is imported from where
they say when it is first asked for. Submodules are imported in the same way.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec, resolve_name
from types import ModuleType
from typing import Any


def lazily(package: str) -> None:
    """Let a package import its public names when they are used; called by its `__init__`, at the end.

    Parameters
    ----------
    package : str
        Its `__name__`.
    """
    sys.modules[package].__class__ = LazyPackage


class LazyPackage(ModuleType):
    """A package whose public names are imported when they are used.

    A submodule of the same name as a public thing, as `stats.moments`, does not hide it: the attribute is the thing, also after
    the submodule has been imported.
    """

    def __getattr__(self, name: str) -> Any:
        path, attribute = self._origins.get(name, (self.__name__, name))
        if path != self.__name__:
            found = getattr(import_module(path), attribute)
        elif not name.startswith("_") and find_spec(f"{path}.{attribute}") is not None:
            found = import_module(f"{path}.{attribute}")
        else:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType) or self._origins.get(name, (self.__name__,))[0] == self.__name__:
            super().__setattr__(name, value)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *self._origins})

    @cached_property
    def _origins(self) -> dict[str, tuple[str, str]]:
        """The module that each public name comes from, and its name there."""
        loader: Any = self.__loader__
        return dict(_imports(ast.parse(loader.get_source(self.__name__)), self.__name__))


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """What a source file imports under TYPE_CHECKING."""
    for block in tree.body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom):
                    path = resolve_name("." * line.level + (line.module or ""), package)
                    yield from ((one.asname or one.name, (path, one.name)) for one in line.names)
