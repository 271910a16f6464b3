"""Travellers: classes of this package whose objects cross the wire by their fields, and what is checked when one arrives.

An object travels as a dataclass's `init` fields. Where that does not do, its class says how:

    __travel__(self) -> dict              what crosses; a server's secrets are left out
    __arrive__(cls, **values) -> object   what is made of it; the class itself by default

Classes are named here as text and imported when one arrives, so that no extra is imported before it is needed. An object is
made by its class's own constructor and passes its checks; before that its fields are compared with their declared types.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from hedgerow.core.question import may_travel
from hedgerow.data import Schema
from hedgerow.errors import MessageRefused

TRAVELLERS = frozenset(
    f"hedgerow.{module}:{name}"
    for module, names in {
        "core.arrays": "Layout",
        "core.bound": "Bound",
        "core.aggregation": "Plain",
        "core.events": "Event Sampling",
        "core.question": "Preparation",
        "core.release": "Release",
        "data.column": "Column",
        "data.schema": "Schema",
        "compression.coordinates": "TopK RandomK",
        "compression.levels": "Quantised",
        "compression.rotation": "Rotated",
        "compression.sketch": "Sketched",
        "privacy.budget": "Budget",
        "privacy.mechanisms": "Noise",
        "privacy.simulated_gaussian": "SimulatedGaussian",
        "privacy.tree": "Tree",
        "privacy.choice.counts": "TruncatedGeometric",
        "privacy.choice.mechanisms": "Choice",
        "privacy.choice.sparse": "Memory SparseVector",
        "privacy.local.bits": "Generalised Unary",
        "privacy.local.bloom": "Bloom",
        "privacy.local.mean": "Signs",
        "privacy.local.rappor": "Permanent",
        "privacy.local.reports": "Reports",
        "privacy.local.sketches": "Sketch",
        "crypto.aggregation": "Hidden",
        "crypto.hidden_model": "HiddenModel",
        "crypto.pairwise": "PairwiseMasks",
        "crypto.privfl.grid": "Cubic LinearGradientGrid",
        "crypto.privfl.settings": "PrivFL",
        "crypto.schemes": "DoubleMasks GroupMasks Shares",
        "crypto.secagg.settings": "SecAgg",
        "crypto.shares.settings": "AdditiveShares",
        "stats.design": "Design",
        "stats.factors": "Levels Number Term",
        "stats.private.rows": "RowBlock UnitRows",
        "stats.mixed.design": "MixedDesign",
        "stats.survival.design": "SurvivalDesign",
        "synth.codes": "Codes",
        "trees.bins": "Bins",
        "learn.descent.adversary": "Adversary",
        "learn.descent.solver": "Solver",
        "learn.features.rows": "FeatureReading",
        "learn.features.steps": "Matrix",
        "learn.made": "Made",
        "learn.models": "Model",
        "learn.private.clipping": "Split",
        "learn.private.schedules": "ScheduledGaussian",
        "learn.pruning": "Pruning",
        "learn.queries.answers": "Answers",
        "learn.queries.async_queries": "AnswersInTurn",
        "learn.queries.inputs": "Inputs",
        "learn.queries.losses": "QueryLoss",
        "learn.records.clipping": "Clipping",
        "learn.records.dpsgd": "GradientStep",
        "learn.records.plan": "RecordPlan",
        "learn.schedule": "Schedule",
        "learn.tasks.declared": "Input Metric Task",
        "learn.tasks.fitted": "FittedTask",
        "learn.tasks.packing": "Packing Piece",
    }.items()
    for name in names.split()
)
"""Classes whose objects travel, by import path."""

KEPT = frozenset(
    {"hedgerow.core.question:Preparation", "hedgerow.learn.models:Model"}
    | {f"hedgerow.vertical.split.{module}" for module in ("piece:OwnPart", "steps:Bottom", "steps:Top", "ushape:Middle")}
)
"""Of these the same bytes are the same object: modules keep what is made of them, and parties keep prepared columns."""

DEEPEST = 32
"""Axes of an array, at most."""


@lru_cache(maxsize=1024)
def class_name(kind: Any) -> str | None:
    """The name of a class whose objects travel, or None."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    return name if name in TRAVELLERS or (is_dataclass(kind) and may_travel(kind) and "<" not in name) else None


def leave(value: Any) -> Mapping[str, Any]:
    """What crosses of an object."""
    if hasattr(value, "__travel__"):
        told: Mapping[str, Any] = value.__travel__()
        return told
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


def arrive(kind: type, values: Mapping[str, Any]) -> Any:
    """Make an object of what crossed.

    Raises
    ------
    MessageRefused (HR-242)
        Fields are missing, unknown, or of another type.
    Exception
        Whatever the class itself makes of the values.
    """
    if hasattr(kind, "__arrive__"):
        return kind.__arrive__(**values)
    if tuple(values) != _names(kind):
        _refuse(kind, "other fields")
    for name, hint in hints(kind).items():
        if not fits(values[name], hint):
            _refuse(kind, f"a wrong {name}")
    found = kind(**values)
    check = _SOUND.get(f"{kind.__module__}:{kind.__qualname__}")
    if check is not None and not check(found):
        _refuse(kind, "impossible values")
    return found


def _refuse(kind: type, what: str) -> None:
    raise MessageRefused(f"a {kind.__name__} with {what}.", remedy="Both sides must run the same version of Hedgerow.")


@lru_cache(maxsize=1024)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.init)


@lru_cache(maxsize=1024)
def hints(kind: Any) -> Mapping[str, Any]:
    """Declared types of the fields that travel; none where a name in them is known to type checkers alone."""
    try:
        declared = get_type_hints(kind, localns={"Schema": Schema})
    except NameError:
        return {}
    return {name: declared[name] for name in _names(kind)}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type; what a type does not say in terms of values is not looked at."""
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    origin = get_origin(hint)
    if origin is not None:
        return _fits_form(value, origin, get_args(hint))
    if not isinstance(hint, type):  # a type variable, a NewType
        return True
    if getattr(hint, "_is_protocol", False):
        kind: Any = type(value)
        return class_name(kind) is not None and all(hasattr(value, name) for name in _members(hint))
    return isinstance(value, hint)


def _fits_form(value: Any, origin: Any, of: tuple[Any, ...]) -> bool:
    """Whether a value is of a type with arguments."""
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in of)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in of)
    if origin is tuple:
        if type(value) is not tuple:
            return False
        if len(of) == 2 and of[1] is Ellipsis:
            return all(fits(part, of[0]) for part in value)
        return len(value) == len(of) and all(map(fits, value, of))
    if not isinstance(origin, type):
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(key, of[0]) and fits(part, of[1]) for key, part in value.items())
    if issubclass(origin, (list, AbstractSet)) or origin is Sequence:
        return isinstance(value, origin) and not isinstance(value, (str, bytes)) and all(fits(part, of[0]) for part in value)
    return isinstance(value, origin)


@lru_cache(maxsize=256)
def _members(protocol: Any) -> tuple[str, ...]:
    """What a protocol's objects have."""
    return tuple(name for name in {**vars(protocol), **protocol.__annotations__} if not name.startswith("_"))


def _layout_is_sound(layout: Any) -> bool:
    keys = [key for key, _ in layout.shapes]
    shapes = [shape for _, shape in layout.shapes]
    large = any(n < 0 or n > 1 << 32 for shape in shapes for n in shape) or any(len(shape) > DEEPEST for shape in shapes)
    return len(set(keys)) == len(keys) and not large and layout.size <= 1 << 32


_SOUND: dict[str, Callable[[Any], bool]] = {"hedgerow.core.arrays:Layout": _layout_is_sound}
"""What classes that check nothing themselves are checked for."""
