"""The settings that every algorithm of this room shares: one table of names, types, defaults and meanings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hedgerow.errors import SettingsInvalid, suggestion

from .descent.optimisers import SolverName, name_of
from .descent.rules import RuleName
from .scale import Scale
from .tasks.declared import Task

Weighting = Literal["records", "uniform", "expected"]
ScheduleName = Literal["constant", "step", "exponential", "inverse", "cosine"]


class StepSettings(TypedDict, total=False):
    """A step along a gradient: the update rule, its constants, and how its learning rate falls."""

    learning_rate: Annotated[float, Field(0.1, description="of the first round")]
    solver: Annotated[RuleName, Field("sgd", description="update rule")]
    momentum: Annotated[float, Field(0.9, description="constant of the rules momentum, nesterov, adadelta and adam")]
    second_decay: Annotated[float, Field(0.999, description="decay of adam's second moment")]
    epsilon: Annotated[float, Field(1e-8, description="added to the root of adagrad, adadelta and adam")]
    schedule: Annotated[ScheduleName, Field("constant", description="how the learning rate falls from round to round")]
    decay: Annotated[float, Field(0.99, description="factor of the schedules step and exponential, slope of inverse")]
    period: Annotated[int, Field(10, description="rounds between two steps of the schedule step")]


class Settings(StepSettings, total=False):
    """Keyword arguments of every algorithm; `defaults()` has their defaults, and a study's `[program]` the same keys."""

    solver: Annotated[  # type: ignore[misc]
        SolverName | type,
        Field("sgd", description="update rule, or a class of torch.optim or its name"),
        BeforeValidator(name_of),
    ]
    solver_settings: Annotated[
        dict[str, bool | float | tuple[float, ...] | None] | None,
        Field(
            None, description="arguments of a class of torch.optim, such as weight_decay; its learning rate is learning_rate"
        ),
    ]
    rate: Annotated[float | None, Field(None, description="participation: each party joins with this probability")]
    size: Annotated[int | None, Field(None, description="participation: exactly so many parties; everybody by default")]
    spare: Annotated[int, Field(0, description="with size: parties asked beyond it; the first `size` answers count")]
    every: Annotated[int | None, Field(None, description="participation: parties take turns, each once in so many rounds")]
    epochs: Annotated[
        int | list[int], Field(1, description="passes over a party's records; a list gives each party its own number")
    ]
    steps: Annotated[int | None, Field(None, description="steps in a round, instead of epochs")]
    batch_size: Annotated[int | None, Field(10, description="records in a local step; 0 takes all of the party's")]
    stragglers: Annotated[float, Field(0.0, description="share of parties that take fewer passes, drawn from 1 to epochs")]
    weighting: Annotated[
        Weighting | None,
        Field(None, description="how parties count: records, where the channel allows it, uniform, or expected"),
    ]
    largest_weight: Annotated[float | None, Field(None, description="a party counts for at most so many records")]
    held_out: Annotated[str | None, Field(None, description="a 0/1 column: records with 1 are kept for validation")]
    precision: Annotated[Literal["float32", "bfloat16"], Field("float32", description="of products in large modules")]
    path: Annotated[
        Literal["auto", "native", "traced", "eager"], Field("auto", description="how local steps are computed; auto is fastest")
    ]
    adversarial: Annotated[
        dict[str, bool | int | float | None] | None,
        Field(
            None,
            description="adversarial training: records of a batch are moved within this radius, in so many steps, before it",
        ),
    ]
    scale: Annotated[
        Scale, Field("ranges", description="numbers by their declared ranges; numbers: not integers; none: all as they are")
    ]
    features: Annotated[list[str] | None, Field(None, description="columns that the module reads; all features by default")]
    task: Annotated[
        dict[str, Any] | Task | None,
        Field(None, description="inputs, target, loss and metrics, where the target's kind does not decide them"),
    ]


RULES_ARE_OF = (
    "Rules of rows are settings of fedavg, fedsgd, fedprox and fednag, and row_rule of fedopt; other programs take a mean."
)
"""Said where another program is given one."""

MOVED_IN_BATCHES = (
    "Adversarial training is a setting of programs whose parties train on batches of their own, such as fedavg; dpsgd and its "
    "kin take one gradient of each record as it is."
)
"""Said where a program of other steps is given it."""


def fields(kind: Any = Settings) -> dict[str, Any]:
    """Each setting's pydantic field, with its default and description."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}


def _shown(value: Any) -> str:
    """A value in a sentence: as it is written where that is short, else its type."""
    written = repr(value)
    return written if len(written) < 80 and "\n" not in written else f"of type {type(value).__name__}"


def _nearest(problem: Any) -> str:
    """The word that was meant, where one of several was asked."""
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    near = suggestion(problem["input"], re.findall(r"'([^']+)'", problem["ctx"]["expected"]))
    return "" if near.startswith("Known") else near


def filled(given: Mapping[str, Any], kind: Any = Settings) -> dict[str, Any]:
    """Check settings, or those of a part such as `StepSettings`, and fill in defaults.

    Raises
    ------
    SettingsInvalid (HR-511)
        An unknown name, with the nearest known one; a value of the wrong type.
    """
    known = fields(kind)
    if unknown := [name for name in given if name not in known]:
        near = {*known, "rounds"} if kind is Settings else known  # an argument of every algorithm
        own = {"rule": RULES_ARE_OF, "expect": RULES_ARE_OF, "adversarial": MOVED_IN_BATCHES}
        said = [own.get(name) or suggestion(name, near) for name in unknown]
        remedy = "\n".join(dict.fromkeys(said))
        raise SettingsInvalid(f"no setting {', '.join(map(repr, unknown))}.", remedy=remedy)
    try:
        checked = _adapter(kind).validate_python(dict(given))
    except ValidationError as error:
        first = {str(found["loc"][0]): found for found in reversed(error.errors())}  # one of several types has a problem each
        wrong = [f"{name} is {_shown(found['input'])}: {found['msg']}" for name, found in reversed(first.items())]
        near = [near for found in first.values() if (near := _nearest(found))]
        remedy = "\n".join([*near, f"hedgerow.learn.{kind.__name__} lists their types."])
        raise SettingsInvalid("; ".join(wrong) + ".", remedy=remedy) from error
    return {name: field.default for name, field in known.items()} | dict(checked)


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
