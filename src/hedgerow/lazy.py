"""Public names of a package that are imported when somebody uses them.

    if TYPE_CHECKING:
        from .moments import means, moments

    __all__ = ["means", "moments"]

    lazily(__name__)

The imports under TYPE_CHECKING are what editors and type checkers read, and they are the table: a name is imported from where
they say when it is first asked for. Submodules are imported in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazily(package: str, *, checks: bool = False) -> None:
    """Let a package import its public names when they are used; called by its `__init__`, at the end.

    Parameters
    ----------
    package : str
        Its `__name__`.
    checks : bool
        Whether its functions and classes check the types of their arguments; see `CheckingPackage`.
    """
    sys.modules[package].__class__ = CheckingPackage if checks else LazyPackage


class LazyPackage(ModuleType):
    """A package whose public names are imported when they are used.

    A submodule of the same name as a public thing, as `stats.moments`, does not hide it: the attribute is the thing, also after
    the submodule has been imported.
    """

    def __getattr__(self, name: str) -> Any:
        path, attribute = self._origins.get(name, (self.__name__, name))
        if path != self.__name__:
            found = self._handed_out(getattr(import_module(path), attribute))
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

    def _handed_out(self, found: Any) -> Any:
        return found

    @cached_property
    def _origins(self) -> dict[str, tuple[str, str]]:
        """The module that each public name comes from, and its name there."""
        from hedgerow.late_imports import imported_for_types

        return imported_for_types(self)


class CheckingPackage(LazyPackage):
    """A package whose functions and classes check the types of their arguments, once they were taken from it.

    Of classes those that people make: their docstring has Parameters. What Hedgerow makes has Attributes. Functions that
    parties run on their records are left as they are.
    """

    def _handed_out(self, found: Any) -> Any:
        from hedgerow.arguments import checked, is_checked

        if isinstance(found, type):
            said = found.__doc__ or ""
            by_people = "Parameters\n" in said and "Attributes\n" not in said
        else:
            code = getattr(getattr(found, "__wrapped__", found), "__code__", None)  # as of a function that keeps its answers
            by_people = code is not None and not (hasattr(found, "travels") and {"party", "columns"} & set(code.co_varnames))
        return checked(found) if by_people and not is_checked(found) else found
