"""Types of arguments, checked where people call: an error then names the argument, not a line inside.

    hr.stats.means(hospitals, 5)      ArgumentInvalid [HR-107]: means: names=5 is an int; it takes a list or None.

Public packages hand out their functions with this check (`hedgerow.lazy`), and those classes that people make. What an
annotation says is taken generously: numbers of NumPy are numbers, lists are arrays, and a type that cannot be looked up is not
checked. Values are checked by the functions themselves. Code inside Hedgerow that imports a function from its module pays for
no check.
"""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import numbers
import re
import sys
import types
import typing
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from hedgerow.errors import ArgumentInvalid, HedgerowError, suggestion
from hedgerow.late_imports import imported_for_types

Thing = TypeVar("Thing", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)
Test = Callable[[Any], bool]
Rule = tuple[Test, str]
"""Whether a value is of a type, and the type in words."""

PLAIN = (str, bytes, bool, int, float, complex, list, tuple, dict, set, type(None))
"""What is a value and nothing more: no engine, no rail, no mechanism."""

_EMPTY = inspect.Parameter.empty
_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")
"""What Python says of a keyword that a function hands on to another, which does not know it."""


def checked(thing: Thing) -> Thing:
    """Return a function that checks the types of its arguments; or a class whose objects check theirs when they are made.

    A class, and a function that is given neither a federation nor an alignment, may know better what is wrong: its own refusal
    comes first.

    Parameters
    ----------
    thing : callable
        With annotations, of which those that cannot be looked up are not checked. A class is changed, not copied.
    """
    if isinstance(thing, type):
        kind: Any = thing
        kind.__init__ = _guarded(kind.__init__, kind.__name__, own=1, first=True)
        return thing
    harmless = not {"federation", "aligned"} & set(inspect.signature(thing).parameters) and not inspect.isgeneratorfunction(
        thing
    )
    return typing.cast(Thing, _guarded(thing, thing.__name__, own=0, first=harmless))


def checked_methods(kind: Kind, *, first: Collection[str] = ()) -> Kind:
    """Return a class whose public methods check the types of their arguments; own refusals of `first` come first."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(kind, name, _guarded(method, name, own=1, first=name in first))
    return kind


def is_checked(function: Any) -> bool:
    """Whether a function, or the making of a class's objects, checks the types of arguments."""
    return hasattr(function.__init__ if isinstance(function, type) else function, "checks_arguments")


def rules_of(function: Callable[..., Any]) -> dict[str, Rule]:
    """Return, by parameter, which values have the annotated type, and that type in words; annotated with Any, none."""
    inner = inspect.unwrap(function.__init__ if isinstance(function, type) else function)
    found: dict[str, Rule] = {}
    for parameter in inspect.signature(inner).parameters.values():
        hint = _looked_up(parameter.annotation, inner.__globals__)
        rule = None if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) else _rule(hint)
        if rule is not None:
            found[parameter.name] = rule
    return found


def _guarded(function: Any, called: str, *, own: int, first: bool) -> Any:
    """Return a function that checks its arguments; the first `own` of them are not the caller's."""
    parameters = list(inspect.signature(function).parameters.values())[own:]
    placed = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
    open_ended = any(one.kind is one.VAR_KEYWORD for one in parameters)

    @functools.cache
    def rules() -> dict[str, Rule]:  # at the first call: annotations may name what is defined further down
        return rules_of(function)

    def refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentInvalid | None:
        known = rules()
        for name, value in (*zip(placed, args[own:], strict=False), *kwargs.items()):
            if name in known:
                if not known[name][0](value):
                    return _refusal(called, name, value, known[name][1])
            elif name in kwargs and not open_ended and name not in named:
                return ArgumentInvalid(f"{called} takes no argument {name!r}.", remedy=suggestion(name, named))
        return None

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        refusal = refused(args, kwargs)
        if refusal is None and not open_ended:
            return function(*args, **kwargs)
        if refusal is None:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                found = _UNEXPECTED.search(str(error))
                if found is None or found[1] not in kwargs or found[1] in named:
                    raise
                remedy = f"help({called}) lists its own, and the settings that it hands on."
                raise ArgumentInvalid(f"{called} takes no argument {found[1]!r}.", remedy=remedy) from None
        if first:
            try:
                function(*args, **kwargs)
            except HedgerowError:
                raise
            except Exception:
                raise refusal from None
        raise refusal

    guarded.checks_arguments = True  # type: ignore[attr-defined]
    return guarded


def _refusal(called: str, name: str, value: Any, wanted: str) -> ArgumentInvalid:
    kind = type(value).__name__
    kind = f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
    said = (
        f"{name}={value!r} is {kind}" if isinstance(value, (str, int, float)) and len(repr(value)) < 60 else f"{name} is {kind}"
    )
    said = f"{name} is None" if value is None else said
    remedy = HANDLES.get((type(value).__name__, wanted)) or HANDLES.get(("", wanted))
    if remedy is not None:
        return ArgumentInvalid(f"{called}: {said}; it takes {wanted}.", remedy=remedy)
    return ArgumentInvalid(f"{called}: {said}; it takes {wanted}.", remedy=f"Give {name} as {wanted}.")


HANDLES = {
    ("Aligned", "a Federation"): "Its parties hold different columns: take a function of hr.vertical, such as\n"
    "hr.vertical.linear_regression.",
    ("Federation", "an Aligned"): "Its functions read columns that lie apart. Let the parties align first,\n"
    "federation.align(on=...), such as\n"
    "both = federation.align(on=..., by=hr.vertical.X25519()).",
    ("", "an Aligned"): "Make one of a table for each party:\n"
    "both = hr.simulate({party: table, ...}, on=...).align(on=..., by=hr.vertical.X25519()).",
}
"""What to do with one handle where the other is meant."""


ALIGNED = ("hedgerow.vertical.aligned", "Aligned")


def _looked_up(hint: Any, names: dict[str, Any]) -> Any:
    """The object that an annotation names; Any where it cannot be known."""
    if not isinstance(hint, str):
        return hint
    with suppress(Exception):  # what an annotation may name that is not there has no end
        return eval(hint, {}, _Names(names))
    return Any


class _Names(dict[str, Any]):
    """The names of a module, with those that it imports only where types are checked."""

    def __missing__(self, name: str) -> Any:
        path, attribute = _late_names(self["__name__"])[name]
        if path in sys.modules:
            return getattr(sys.modules[path], attribute) if attribute else sys.modules[path]
        if (path, attribute) == ALIGNED:  # whoever forgot to align has not imported it
            return getattr(import_module(path), attribute)
        return Any if path.startswith("hedgerow") else _Foreign


@functools.cache
def _late_names(module: str) -> dict[str, tuple[str, str]]:
    with suppress(Exception):  # a module need not have a source
        return imported_for_types(sys.modules[module])
    return {}


class _AnyName(type):
    def __getattr__(cls, name: str) -> Any:
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls


class _Foreign(metaclass=_AnyName):
    """Stands for every class of a library that was not imported yet."""


def _rule(hint: Any) -> Rule | None:
    """What an annotation asks of a value; None where it asks nothing that can be looked at."""
    if hint in (Any, object, _EMPTY) or isinstance(hint, (TypeVar, str)):
        return None
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _rule(inner[0])
    if origin in (Union, types.UnionType):
        found = [_rule(one) for one in inner]
        if any(one is None for one in found):
            return None
        rules = [one for one in found if one is not None]
        words = list(dict.fromkeys(words for _, words in rules))
        return (lambda value: any(test(value) for test, _ in rules)), " or ".join(words)
    if origin is Literal:
        kinds = tuple({type(one) for one in inner})
        words = ", ".join(map(repr, inner))
        return (lambda value: isinstance(value, kinds)), f"one of {words}" if len(inner) > 1 else words
    if origin in _SEVERAL and inner and inner[0] in (int, float):
        return (lambda value: _is_several(value) and not isinstance(value, (str, bytes))), "a list of numbers"
    return _of_class(origin or hint)


def _of_class(kind: Any) -> Rule | None:
    for classes, test, words in _KINDS:
        if kind in classes:
            return test, words
    if not isinstance(kind, type) or kind is type:
        return None
    if kind is _Foreign:
        return (lambda value: not isinstance(value, PLAIN)), "an object of its library"
    if hasattr(kind, "__required_keys__"):
        return _is_mapping, "a mapping"
    if kind.__name__ == "ndarray":
        return _is_array, "an array or a list of numbers"
    if getattr(kind, "_is_protocol", False):
        return (lambda value: not isinstance(value, PLAIN)), f"a {kind.__name__}"
    article = "an" if kind.__name__ == "Aligned" else "a"
    return (lambda value: isinstance(value, kind)), f"{article} {kind.__name__}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) or (hasattr(value, "__index__") and not isinstance(value, str))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) or (hasattr(value, "__float__") and not isinstance(value, (str, bytes)))


def _is_mapping(value: Any) -> bool:
    return isinstance(value, abc.Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__") or _is_number(value) or isinstance(value, (list, tuple))


def _is_several(value: Any) -> bool:
    return hasattr(value, "__iter__") or hasattr(value, "__getitem__")


_SEVERAL = (list, tuple, set, frozenset, abc.Sequence, abc.Iterable, abc.Collection, abc.Set, abc.Iterator)

_KINDS: tuple[tuple[tuple[Any, ...], Test, str], ...] = (
    ((bool,), lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"), "True or False"),
    ((int,), _is_whole, "a whole number"),
    ((float,), _is_number, "a number"),
    ((str,), lambda value: isinstance(value, str), "a text"),
    ((bytes,), lambda value: isinstance(value, (bytes, bytearray, memoryview)), "bytes"),
    ((None, type(None)), lambda value: value is None, "None"),
    ((Path,), lambda value: isinstance(value, (str, Path)), "a path"),
    ((abc.Mapping, abc.MutableMapping, dict), _is_mapping, "a mapping"),
    ((abc.Callable,), callable, "a function"),
    (_SEVERAL, _is_several, "a list"),
)
