"""What losses, metrics and modules keep from call to call: copies that share nothing of it, and a comparison that finds it.

    Copies      each record gets a copy of its own: attributes, what functions close over, their defaults and attributes
    remembers   two copies are called with different made-up records; what is left in them may not differ, nor grow

Variables of a program's modules and attributes of classes are shared by all copies. `remembers` sees those that a given
function names, and those of classes that are not a library's.
"""

from __future__ import annotations

import copy
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

ATOMS = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), torch.dtype, torch.device, torch.Size)
CONTAINERS = (Mapping, set, frozenset, list, tuple, deque, np.ndarray)
LIBRARIES = {"torch", "builtins", "collections", "functools", "numpy", "abc", "typing", "dataclasses", "enum", "transformers"}
OPAQUE = {"logging", "threading", "_thread", "weakref", "re", "_io", "types"}
"""Where classes come from whose own attributes are not looked at, and whose objects are not."""
LAID_OUT = ("_parameters", "_buffers", "_modules")
"""Attributes of a module that hold its parts."""
MOST = 200_000
"""Objects, at most, that are looked at."""


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


class _Walk:
    """Goes through all that an object holds, each object once, in an order that copies of it share.

    told : whether values count, and what classes and modules of programs keep; otherwise only what is held.
    """

    def __init__(self, told: bool = True) -> None:
        self.told = told
        self.seen: dict[int, tuple[int, Any]] = {}

    def over(self, thing: Any) -> Iterator[tuple[Any, Any]]:
        """Each object, and what tells it from one that holds something else."""
        waiting = deque([thing])
        while waiting and len(self.seen) < MOST:
            value = waiting.popleft()
            if isinstance(value, ATOMS):
                yield value, (type(value), repr(value))
            elif id(value) in self.seen:
                yield None, ("again", self.seen[id(value)][0])
            else:
                self.seen[id(value)] = len(self.seen), value  # held, so that its number stays its own
                tells, inside = self._inside(value)
                yield value, tells
                waiting.extend(inside)

    def _inside(self, value: Any) -> tuple[Any, list[Any]]:
        kind = type(value)
        if isinstance(value, Tensor):
            return (kind, value.dtype, tuple(value.shape), _bits(value) if self.told else b""), list(
                getattr(value, "__dict__", {}).values()
            )
        if isinstance(value, np.ndarray) and value.dtype != object:
            return (kind, value.dtype.str, value.shape, _hash(value) if self.told else b""), []
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return kind, [value.__func__, value.__self__]
        if isinstance(value, CellType):
            return kind, _contents(value)
        if isinstance(value, BuiltinFunctionType):
            return (kind, value.__name__), [] if isinstance(value.__self__, ModuleType) else [value.__self__]
        if isinstance(value, type):
            return (kind, value.__qualname__), []
        if isinstance(value, ModuleType | CodeType) or _root(kind) in OPAQUE:
            return kind, []
        return self._object(value)

    def _function(self, value: FunctionType) -> tuple[Any, list[Any]]:
        inside = [*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__, dict(value.__dict__)]
        if self.told:
            named = [value.__globals__.get(name) for name in sorted(_names(value.__code__))]
            inside += [one for one in named if not isinstance(one, ModuleType | type) and not _foreign(one, value)]
        return (FunctionType, value.__qualname__), inside

    def _object(self, value: Any) -> tuple[Any, list[Any]]:
        kind, inside = type(value), list[Any]()
        if isinstance(value, Mapping):
            inside += [part for pair in value.items() for part in pair]
        elif isinstance(value, set | frozenset):
            inside += sorted(value, key=repr)
        elif isinstance(value, list | tuple | deque | np.ndarray):
            inside += list(value)
        own = getattr(value, "__dict__", None)
        if own is not None:
            inside += [part for pair in own.items() for part in pair]
        inside += [getattr(value, name, None) for part in kind.__mro__ for name in _slots(part)]
        if isinstance(value, bytearray):
            inside.append(bytes(value))
        elif not isinstance(value, CONTAINERS) and (own is None or kind.__reduce__ is not object.__reduce__):
            inside += _reduced(value)
        if self.told:
            inside += _of_classes(kind)
        return (kind, len(inside)), inside


def _of_classes(kind: type) -> list[Any]:
    """What a class that is no library's, and those that it inherits from, keep for all of their objects."""
    return [one for part in kind.__mro__ if _root(part) not in LIBRARIES for one in _of_class(part)]


def _of_class(kind: type) -> Iterator[Any]:
    for name, value in vars(kind).items():
        if isinstance(value, FunctionType):
            yield from (value.__defaults__, value.__kwdefaults__, *(value.__closure__ or ()))
        elif not name.startswith("__") and isinstance(value, (*ATOMS, list, dict, set, deque, bytearray, np.ndarray, Tensor)):
            yield value


def _names(code: CodeType) -> set[str]:
    """Names that code, and code within it, may read of its module."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _foreign(one: Any, beside: FunctionType) -> bool:
    return isinstance(one, FunctionType) and one.__globals__ is not beside.__globals__


def _contents(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # nothing yet
        return []


def _slots(kind: type) -> list[str]:
    found = vars(kind).get("__slots__", ())
    return [name for name in ((found,) if isinstance(found, str) else found) if name not in ("__dict__", "__weakref__")]


def _reduced(value: Any) -> list[Any]:
    """Of objects made in C, such as generators of random numbers and counters, what a copy is made of."""
    try:
        made = value.__reduce_ex__(4)
    except Exception:  # what cannot be copied is refused elsewhere
        return []
    return [made] if isinstance(made, str) else [part for part in made[1:] if part is not None]


def _hash(value: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()


def _bits(value: Tensor) -> Any:
    try:
        return _hash(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    except (RuntimeError, TypeError):  # sparse, quantised, or of a transform of torch.func
        return str(value.layout)


class Copies:
    """Makes copies of an object that share nothing that changes with it; the object itself where it has nothing of the kind.

    Parameters
    ----------
    thing : object
        Looked through once; it may not change while copies are made.
    """

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    @cached_property
    def _found(self) -> tuple[list[FunctionType], dict[int, Any]]:
        """Functions that hold something, and what copies may share."""
        walk, functions, shared = _Walk(told=False), list[FunctionType](), dict[int, Any]()
        for value, _ in walk.over(self.thing):
            if isinstance(value, FunctionType) and not plain(value):
                functions.append(value)
            elif isinstance(value, ModuleType):
                shared[id(value)] = value
        return functions, shared

    def __call__(self, memo: Mapping[int, Any] | None = None) -> Any:
        """A copy; `memo` has copies that are at hand, by the numbers of what they are copies of."""
        functions, shared = self._found
        if isinstance(self.thing, str | BuiltinFunctionType) or (isinstance(self.thing, FunctionType) and not functions):
            return self.thing
        known, cells = {**shared, **(memo or {})}, dict[int, tuple[CellType, CellType]]()
        made = list[tuple[FunctionType, FunctionType]]()
        for old in functions:
            own = tuple(cells.setdefault(id(cell), (cell, CellType()))[1] for cell in old.__closure__ or ())
            new = FunctionType(old.__code__, old.__globals__, old.__name__, None, own or None)
            new.__qualname__, new.__module__ = old.__qualname__, old.__module__
            known[id(old)] = new
            made.append((old, new))
        for old, new in made:
            new.__defaults__, new.__kwdefaults__ = copy.deepcopy((old.__defaults__, old.__kwdefaults__), known)
            new.__dict__.update(copy.deepcopy(old.__dict__, known))
        for cell, fresh in cells.values():
            for value in _contents(cell):
                fresh.cell_contents = copy.deepcopy(value, known)
        return copy.deepcopy(self.thing, known)


def plain(thing: Any) -> bool:
    """Whether a loss or metric is a name, or a function that holds nothing: no closure, and neither defaults nor attributes
    that could change."""
    if not isinstance(thing, FunctionType):
        return isinstance(thing, str) or (isinstance(thing, BuiltinFunctionType) and isinstance(thing.__self__, ModuleType))
    held = (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), *thing.__dict__.values())
    return thing.__closure__ is None and all(isinstance(value, ATOMS) for value in held)


def kept_by(thing: Any) -> list[Any]:
    """What an object holds, so that it can be compared with what it holds later, or with what a copy does."""
    return [tells for _, tells in _Walk().over(thing)]


def remembers(make: Callable[[], Any], use: Callable[[Any, int], object], of: Callable[[Any], Any] = lambda made: made) -> bool:
    """Whether something is left of records where an object was called.

    Parameters
    ----------
    make : callable
        Makes a copy of the object.
    use : callable
        Calls a copy with made-up records of a number, 0 or 1.
    of : callable
        What of a copy is looked at.
    """
    one, other = make(), make()
    use(one, 0)
    first = kept_by(of(one))
    use(one, 1)
    second = kept_by(of(one))
    use(other, 1)
    return not first == second == kept_by(of(other))


def left_in(module: nn.Module, use: Callable[[nn.Module, int], object]) -> bool:
    """Whether a module keeps something of records beside parameters and buffers; `use` as in `remembers`."""
    copies = Copies(module)

    def held(made: nn.Module) -> list[Any]:
        return [
            ({name: value for name, value in vars(part).items() if name not in LAID_OUT}, _of_classes(type(part)))
            for part in made.modules()
        ]

    return remembers(copies, use, held)
