"""What a module is trained for, as a program is told it.

Task(inputs={"input_ids": "ids", "attention_mask": "mask"}, output="logits")       a module with two inputs
Task(target=["time", "event"], loss=hazard)                                         an own loss of two columns
Task(loss={"diagnosis": "cross_entropy", "days": ("squared", 0.1)})                 a loss for each of two outputs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Literal, get_args

from pydantic_core.core_schema import is_instance_schema

from hedgerow.core.question import travels
from hedgerow.errors import ModelInvalid, SettingsInvalid, suggestion

from .losses import LOSSES, METRICS, PerRecord

Dtype = Literal["float32", "int64", "bool"]
"""The type in which a module receives an input."""


@travels
@dataclass(frozen=True)
class Input:
    """Columns that reach a module as one tensor.

    Parameters
    ----------
    columns : str or sequence of str
        One column keeps its shape, (n, *shape). Several are joined along the last axis, (n, numbers).
    dtype : {"float32", "int64", "bool"}, optional
        By default whole numbers and codes of categories are int64, and numbers float32, scaled as the program says. Of several
        columns with numbers among them a category becomes an indicator for each of its levels. A binary column of its own is
        int64 as an input and float32 as a target.
    shape : tuple of int, optional
        Shape of one record, in which the numbers are laid out anew.
    """

    columns: str | tuple[str, ...]
    dtype: Dtype | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, str):
            object.__setattr__(self, "columns", tuple(self.columns))
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))
        if not self.names or not all(isinstance(name, str) for name in self.names):
            raise SettingsInvalid(f"an input of columns {self.columns!r}.", remedy="Name at least one column.")
        if self.dtype is not None and self.dtype not in get_args(Dtype):
            raise SettingsInvalid(
                f"dtype is {self.dtype!r}.", remedy=f"{suggestion(str(self.dtype), get_args(Dtype))} One of {get_args(Dtype)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, one or many."""
        return (self.columns,) if isinstance(self.columns, str) else self.columns


@travels
@dataclass(frozen=True)
class Metric:
    """What an evaluation shows beside the loss: a mean over records.

    Parameters
    ----------
    function : str or callable
        A name of `hedgerow.learn.tasks.losses.METRICS`, or a top-level function `(output, target) -> (n,)`.
    name : str
        Under which it is shown; the function's own by default.
    bound : float, optional
        Largest absolute value of a record. Behind noise values are held to it; without it the metric is not asked there.
    on : str, optional
        The target, and output of that name, that it is about; all of them by default.
    """

    function: Any
    name: str = ""
    bound: float | None = None
    on: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.function, str) and self.function in METRICS:
            name, bound = self.function, METRICS[self.function][1]
        else:
            object.__setattr__(self, "function", found(self.function, METRICS, "metric"))
            name, bound = name_of(self.function), None
        object.__setattr__(self, "name", self.name or (f"{self.on} {name}" if self.on else name))
        object.__setattr__(self, "bound", bound if self.bound is None else float(self.bound))
        if self.bound is not None and not 0 < self.bound < float("inf"):
            raise SettingsInvalid(f"the bound of metric {self.name!r} is {self.bound}.", remedy="It is above zero, and finite.")
        if self.name in ("n", "loss", "parties"):
            raise SettingsInvalid(f"a metric is named {self.name!r}, as evaluations name another sum.", remedy="Rename it.")

    @property
    def values(self) -> PerRecord:
        """The function itself."""
        made: PerRecord = METRICS[self.function][0] if isinstance(self.function, str) else self.function
        return made


@travels
@dataclass(frozen=True)
class Task:
    """What a module is trained for: the columns that it reads, what it predicts, its loss and its metrics.

    Parameters
    ----------
    inputs : str, sequence of str, Input, or mapping, optional
        A mapping from the name of an argument of `forward` (or its position) to a column, columns or an `Input`. Anything else
        is its first argument. By default all features, joined as without a task.
    target : str, sequence of str, or mapping, optional
        The columns that the loss compares with; the schema's target by default. One of them reaches the loss as a tensor,
        several as a dict of tensors by name.
    loss : str, callable, or mapping, optional
        A name of `hedgerow.learn.tasks.losses.LOSSES`, or a top-level function `(output, target) -> (n,)`, one number for each
        record, which may not depend on the other records. A mapping has for each target a loss of its own, or a pair of it and
        its weight; the module then returns a dict with outputs of these names, or a tuple in their order. By default the loss
        of the target's kind.
    metrics : sequence of str, callable or Metric, or mapping from name to them, optional
        Shown by evaluations. By default what belongs to a loss that has a name.
    output : str or int, optional
        The part of what `forward` returns, such as "logits".
    as_dict : bool
        Whether `forward` takes one dict with all inputs.

    Notes
    -----
    A function travels to parties in other processes if it is at the top of a module that they can import, and marked with
    `hedgerow.core.question.travels`. A study file writes its import path, `package.module:function`.

    Raises
    ------
    SettingsInvalid (HR-511)
        A name is unknown, with the nearest known one.
    """

    inputs: Any = None
    target: Any = None
    loss: Any = None
    metrics: Any = None
    output: str | int | None = None
    as_dict: bool = False

    def __post_init__(self) -> None:
        made = {
            "inputs": None if self.inputs is None else inputs_from(self.inputs),
            "target": None if self.target is None else targets_from(self.target),
            "loss": loss_from(self.loss),
            "metrics": None if self.metrics is None else metrics_from(self.metrics),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if self.as_dict and (self.inputs is None or any(not isinstance(key, str) for key, _ in self.inputs)):
            raise SettingsInvalid("as_dict without names of inputs.", remedy='Give inputs={"name": column, ...}.')
        names = [metric.name for metric in self.metrics or ()]
        if len(set(names)) < len(names):
            raise SettingsInvalid(f"metrics are named {names}.", remedy="Give each a name of its own: Metric(..., name=...).")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A setting is a task itself; tables of a study are read by `task_from`, which alone imports functions."""
        return is_instance_schema(cls)


def task_from(given: Any) -> Task | None:
    """A task, from itself or from a table of a study file, in which functions are import paths.

    Raises
    ------
    SettingsInvalid (HR-511), ModelInvalid (HR-510)
        A name is unknown; a function cannot be imported.
    """
    if given is None or isinstance(given, Task):
        return given
    if not isinstance(given, Mapping):
        raise SettingsInvalid(f"task is a {type(given).__name__}.", remedy="Give a hedgerow.learn.Task.")
    table = _known(Task, given, "task")
    return Task(**table | {name: _with_functions(table[name], name) for name in ("loss", "metrics") if name in table})


def _with_functions(given: Any, what: str) -> Any:
    """A study's loss or metrics with functions in the place of import paths."""
    if isinstance(given, str) and ":" in given:
        return imported(given, what)
    if isinstance(given, Mapping):
        return {key: _with_functions(value, what) for key, value in given.items()}
    return [_with_functions(value, what) for value in given] if isinstance(given, list | tuple) else given


def inputs_from(given: Any) -> tuple[tuple[str | int, Input], ...]:
    """Inputs by argument."""
    if isinstance(given, Mapping) and "columns" not in given:
        return tuple((key, input_from(value)) for key, value in given.items())
    if _pairs(given):
        return tuple(given)
    return ((0, input_from(given)),)


def targets_from(given: Any) -> tuple[tuple[str | int, Input], ...]:
    """Targets by name."""
    if isinstance(given, Mapping) and "columns" not in given:
        return tuple((key, input_from(value)) for key, value in given.items())
    if _pairs(given):
        return tuple(given)
    many = [given] if isinstance(given, str | Input | Mapping) else list(given)
    made = [input_from(one) for one in many]
    return tuple((" ".join(one.names), one) for one in made)


def input_from(given: Any) -> Input:
    """One input, from columns or a table of a study file."""
    if isinstance(given, Input):
        return given
    if isinstance(given, Mapping):
        return Input(**_known(Input, given, "input"))
    if not isinstance(given, str) and not isinstance(given, Sequence):
        raise SettingsInvalid(f"an input is {given!r}.", remedy="Give a column, a list of columns, or a hedgerow.learn.Input.")
    return Input(given if isinstance(given, str) else tuple(given))


def loss_from(given: Any) -> Any:
    """A name, a function, or tuples (target, name or function, weight)."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        pairs = [(key, *(value if isinstance(value, tuple | list) else (value, 1.0))) for key, value in given.items()]
    elif isinstance(given, tuple):
        pairs = list(given)
    else:
        return found(given, LOSSES, "loss")
    if not pairs or any(len(one) != 3 for one in pairs):
        raise SettingsInvalid(f"loss is {given!r}.", remedy="Give for each target a loss, or a pair of a loss and its weight.")
    return tuple((key, found(loss, LOSSES, "loss"), float(weight)) for key, loss, weight in pairs)


def metrics_from(given: Any) -> tuple[Metric, ...]:
    """Metrics, from names, functions and tables."""
    if isinstance(given, str | Metric) or callable(given):
        given = (given,)
    if isinstance(given, Mapping):
        return tuple(_metric(value, name) for name, value in given.items())
    return tuple(_metric(value) for value in given)


def _metric(given: Any, name: str = "") -> Metric:
    if isinstance(given, Mapping):
        return Metric(**({"name": name} | _known(Metric, given, "metric")))
    if not isinstance(given, Metric):
        return Metric(given, name)
    return Metric(given.function, name, given.bound, given.on) if name else given


def found(given: Any, known: Mapping[str, Any], what: str) -> str | Callable[..., Any]:
    """A name that is known, or a function. Nothing is imported here, since a task may come in a message."""
    if isinstance(given, str) and given in known:
        return given
    if isinstance(given, str) or not callable(given):
        nearest = suggestion(given, known) if isinstance(given, str) else f"Known: {', '.join(known)}."
        raise SettingsInvalid(f"no {what} {given!r}.", remedy=f"{nearest} Or give a function (output, target) -> (n,).")
    function: Callable[..., Any] = given
    return function


def imported(path: str, what: str) -> Callable[..., Any]:
    """The function of an import path."""
    module, _, name = path.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise ModelInvalid(
            f"the {what} {path!r} cannot be imported: {error}.", remedy="Write it as package.module:function."
        ) from error
    if not callable(function):
        raise ModelInvalid(f"the {what} {path} is a {type(function).__name__}.", remedy="Name a function.")
    made: Callable[..., Any] = function
    return made


def name_of(function: Any) -> str:
    """The name under which a function is spoken of."""
    inner = getattr(function, "func", function)  # of a functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _pairs(given: Any) -> bool:
    """Whether it is what a task keeps already."""
    return isinstance(given, tuple) and all(isinstance(one, tuple) and isinstance(one[-1], Input) for one in given)


def _known(kind: Any, given: Mapping[str, Any], what: str) -> dict[str, Any]:
    names = [one.name for one in fields(kind)]
    if unknown := [name for name in given if name not in names]:
        raise SettingsInvalid(f"{what} has no {unknown[0]!r}.", remedy=suggestion(str(unknown[0]), names))
    return dict(given)
