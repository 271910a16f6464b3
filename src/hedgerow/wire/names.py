"""Names on the wire: which functions and classes a message may name.

To name a function is to run it at a party, so a name is taken only if it is `module:name` of an allowed package, defined in
that very module at its top, and marked there (`hedgerow.local`, `hedgerow.core.question.travels`). Everything else that a
package defines or imports cannot be named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from importlib import import_module
from types import FunctionType
from typing import Any, NoReturn

from hedgerow.core.question import may_travel
from hedgerow.errors import ConfigInvalid, MessageRefused

from .travellers import TRAVELLERS


@dataclass(frozen=True)
class Names:
    """Packages whose marked functions and classes may be named.

    Parameters
    ----------
    modules : tuple of str
        Import paths; what lies below them is allowed as well.

    Raises
    ------
    ConfigInvalid (HR-601)
        One of them is no import path.
    """

    modules: tuple[str, ...] = ("hedgerow",)

    def __post_init__(self) -> None:
        for module in self.modules:
            if not _is_path(module):
                raise ConfigInvalid(
                    f"{module!r} is no package's import path.", remedy="For example 'hedgerow' or 'my_lab.trains'."
                )

    def function(self, name: str) -> Callable[..., Any]:
        """The marked function (or class that makes modules) of this name.

        Raises
        ------
        MessageRefused (HR-242)
        """
        return _function(name, self.modules)

    def traveller(self, name: str) -> type:
        """The class of this name whose objects travel.

        Raises
        ------
        MessageRefused (HR-242)
        """
        return _traveller(name, self.modules)


def refused(why: str) -> NoReturn:
    """Refuse a message."""
    raise MessageRefused(f"a message {why}.", remedy="Both sides must run the same version of Hedgerow.")


@lru_cache(maxsize=1024)
def _function(name: str, modules: tuple[str, ...]) -> Callable[..., Any]:
    found = _found(name, modules)
    if not isinstance(found, (FunctionType, type)) or not may_travel(found):
        refused(f"names {name[:100]!r}, which is not marked as something that may be asked")
    return found


@lru_cache(maxsize=1024)
def _traveller(name: str, modules: tuple[str, ...]) -> type:
    listed = name in TRAVELLERS
    found = _found(name, ("hedgerow",) if listed else modules)
    if not isinstance(found, type) or not (listed or (may_travel(found) and is_dataclass(found))):
        refused(f"names {name[:100]!r}, whose objects do not travel")
    return found


def _found(name: str, modules: tuple[str, ...]) -> Any:
    """What is defined under a name at the top of its own module."""
    path, _, attribute = name.partition(":")
    allowed = any(path == module or path.startswith(module + ".") for module in modules)
    if not allowed or not _is_path(path) or not attribute.isidentifier():
        refused(f"names {name[:100]!r}, which is in no allowed package")
    try:
        module = sys.modules.get(path) or import_module(path)
    except Exception as error:
        raise MessageRefused(f"{path!r} cannot be imported ({type(error).__name__}).", remedy="Install it here too.") from error
    found = vars(module).get(attribute)
    if getattr(found, "__module__", None) != path or getattr(found, "__qualname__", None) != attribute:
        refused(f"names {name[:100]!r}, which is not defined there")
    return found


def _is_path(path: str) -> bool:
    """Whether this is the import path of a module; `__main__`, whose import runs it, is none."""
    return all(part.isidentifier() and not part.startswith("__") for part in path.split("."))


HEDGEROW = Names()
"""What Hedgerow itself defines."""
