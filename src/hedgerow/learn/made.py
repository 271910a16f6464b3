"""How a module was made: a note on it, by which a party elsewhere makes the same.

A module does not travel. What travels is its factory, a marked function that both sides can import, with its arguments; the
parameters come with each broadcast. The note remembers the module's structure, so that one that was changed after it was
made is refused, and so is a factory that makes something else at the other end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec

import torch
from torch import nn

from hedgerow.core.question import may_travel, travels
from hedgerow.errors import ModelInvalid, NotNamed

NOTE = "_hedgerow_made"
"""Attribute of a module that holds its note."""

MOST_PARAMETERS = 1 << 28
"""Numbers of a module that is made because a message says so, at most."""

P = ParamSpec("P")
Factory = Callable[..., nn.Module]


@dataclass(frozen=True)
class Made:
    """A note on a module.

    Attributes
    ----------
    factory : callable
        Marked (`hedgerow.core.question.travels`), at the top of a module.
    arguments, settings : tuple
        What it was called with; in the place of a module its own note.
    structure : bytes
        Digest of layers, parameters, and which of them are trained.
    """

    factory: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()
    structure: bytes = b""

    def make(self) -> nn.Module:
        """Make the module again.

        Raises
        ------
        ModelInvalid (HR-510)
            The factory makes no module, a larger one than may be, or one of another structure.
        """
        if not may_travel(self.factory) or hasattr(self.factory, "additive"):  # a local function makes no modules
            raise ModelInvalid(f"{self.factory!r} is not marked as a factory.", remedy="Write @hedgerow.core.question.travels.")
        with torch.device("meta"):  # sizes without memory
            self._checked(self._call())
        module = self._call()
        self._checked(module)
        return noted(module, self)

    def _call(self) -> Any:
        arguments = [value.make() if isinstance(value, Made) else value for value in self.arguments]
        return self.factory(*arguments, **dict(self.settings))

    def _checked(self, module: Any) -> None:
        if not isinstance(module, nn.Module):
            raise ModelInvalid(f"the factory made a {type(module).__name__}.", remedy="It returns a torch.nn.Module.")
        if sum(value.numel() for value in module.parameters()) > MOST_PARAMETERS:
            raise ModelInvalid("the model has too many parameters.", remedy=f"At most {MOST_PARAMETERS}.")
        if structure(module) != self.structure:
            raise ModelInvalid("the factory made another model here.", remedy="Both sides must run the same version of it.")


def structure(module: nn.Module) -> bytes:
    """Digest of a module's layers, the shapes of its parameters, and which of them are trained; 16 bytes."""
    parameters = [(name, tuple(value.shape), value.requires_grad) for name, value in module.named_parameters()]
    return hashlib.blake2b(repr((str(module), parameters)).encode(), digest_size=16).digest()


def noted(module: nn.Module, made: Made) -> nn.Module:
    """Leave a note on a module, and return it."""
    module.__dict__[NOTE] = made
    return module


def leaves_note(factory: Callable[P, nn.Module]) -> Callable[P, nn.Module]:
    """Mark a factory, and let it leave a note on every module that it makes."""

    @wraps(factory)
    def make(*arguments: P.args, **settings: P.kwargs) -> nn.Module:
        module = factory(*arguments, **settings)
        return note(module, make, arguments, settings)

    return travels(make)


def note(module: nn.Module, factory: Factory, arguments: tuple[Any, ...], settings: Any = ()) -> nn.Module:
    """Leave a note of a call on the module that it made; none where one of its arguments is a module without a note."""
    module.__dict__.pop(NOTE, None)
    given = tuple(value.__dict__.get(NOTE) if isinstance(value, nn.Module) else value for value in arguments)
    if not any(isinstance(value, nn.Module) and NOTE not in value.__dict__ for value in arguments):
        noted(module, Made(factory, given, tuple(dict(settings).items()), structure(module)))
    return module


def has_note(module: nn.Module) -> bool:
    """Whether a module has a note that is still true."""
    found = module.__dict__.get(NOTE)
    return isinstance(found, Made) and found.structure == structure(module)


def made_of(module: nn.Module) -> Made:
    """The note on a module.

    Raises
    ------
    NotNamed (HR-224)
        There is none, or the module was changed since.
    """
    if not has_note(module):
        what = "was changed after it" if NOTE in module.__dict__ else "does not say how it"
        raise NotNamed(
            f"this {type(module).__name__} {what} was made, so no party elsewhere could make it.",
            remedy="Build it by a factory that a station can import: hr.learn.made_by('package.module:factory', *arguments).",
        )
    found: Made = module.__dict__[NOTE]
    return found


def made_by(factory: str, *arguments: Any, **settings: Any) -> nn.Module:
    """Make a module by a factory that parties elsewhere can import, too.

    Parameters
    ----------
    factory : str
        `package.module:factory`, a function or class marked with `hedgerow.core.question.travels` in a package that stations
        allow.
    *arguments, **settings
        Numbers, texts, and tuples of them.

    Raises
    ------
    ModelInvalid (HR-510)
        It cannot be imported, or makes no module.
    """
    path, _, name = factory.partition(":")
    try:
        found = getattr(import_module(path), name)
    except (ValueError, ImportError, AttributeError) as error:
        raise ModelInvalid(f"{factory!r} cannot be imported: {error}.", remedy="Write it as package.module:factory.") from error
    module = found(*arguments, **settings)
    if not isinstance(module, nn.Module):
        raise ModelInvalid(f"{factory} made a {type(module).__name__}.", remedy="It returns a torch.nn.Module.")
    return note(module, found, arguments, settings)
