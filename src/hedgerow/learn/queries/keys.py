"""Keys by which a study names losses, inputs and owners' epsilons, and the arguments that are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hedgerow.core.declaration import Key
from hedgerow.data import Schema

from .answers import Answers
from .inputs import Inputs
from .lengths import answers_for
from .losses import QueryLoss, loss_of
from .steps import Steps

Settings = Mapping[str, Any]

INPUTS = {
    "model": Key(Literal["linear", "logistic", "svm"], "linear", "regression, or a linear classifier"),
    "ridge": Key(float | None, None, "weight of |theta|^2 / 2; none, and 1 for svm, if not given"),
    "centre": Key(
        list[float],
        [],
        "public constants, one for each feature; declared ranges serve where none is given",
    ),
    "spread": Key(list[float], [], "by which features are divided; goes with centre"),
    "projection": Key(list[list[float]], [], "rows of public coefficients, such as principal components"),
    "radius": Key(float | None, None, "rows are divided by it and shortened to length 1; else cut to [-1, 1]"),
    "constant": Key(float, 0.0, "append a coordinate of this value, for an intercept"),
    "target_centre": Key(float, 0.0, "public constant; goes with centre"),
    "target_spread": Key(float, 1.0, "by which the target is divided and then cut to [-1, 1]"),
}
"""Keys of inputs and loss."""

OWNERS = {
    "rule": Key(
        Literal["algorithm-2", "algorithm-1", "strongly-convex"],
        "algorithm-2",
        "steps and average",
    ),
    "step": Key(float, 1.0, "the first step: about one over the largest curvature"),
    "box": Key(float, 1.0, "largest absolute value of a coefficient"),
    "convexity": Key(float, 0.0, 'least curvature, for "strongly-convex"'),
    "epsilons": Key(
        dict[str, float],
        {},
        "each owner's epsilon over all rounds; none leaves noise to [protection]",
    ),
    "noise": Key(Literal["laplace", "gaussian"], "laplace", "of the owners' answers"),
    "neighbours": Key(Literal["replace-one", "add-remove"], "replace-one", "for whom epsilons hold"),
    "delta": Key(float, 1e-6, "for Gaussian noise"),
    "weights": Key(
        dict[str, float],
        {},
        "a public factor in (0, 1] on each owner's sum and noise alike; then n_records says the records of each owner",
    ),
}
"""Keys of steps and owners' noise."""


def loss_of_keys(schema: Schema, settings: Settings) -> QueryLoss:
    """The loss that the keys name."""
    return loss_of(settings["model"], settings["ridge"])


def spec_of_keys(schema: Schema, settings: Settings) -> Inputs:
    """The inputs that the keys describe; by declared ranges where no centre is given."""
    radius, constant = settings["radius"], settings["constant"]
    if not settings["centre"]:
        return Inputs.scaled(schema, radius=radius, constant=constant)
    classes = schema.target is not None and schema[schema.target].kind == "binary"
    return Inputs(
        schema.features,
        schema.target or "",
        tuple(settings["centre"]),
        tuple(settings["spread"]),
        tuple(map(tuple, settings["projection"])),
        radius=radius,
        constant=constant,
        target_centre=settings["target_centre"],
        target_spread=settings["target_spread"],
        classes=classes,
    )


def steps_of_keys(schema: Schema, settings: Settings) -> Steps:
    """The steps that the keys describe."""
    return Steps(settings["rule"], settings["step"], settings["box"], settings["convexity"])


def planned_answers(schema: Schema, settings: Settings) -> Answers | None:
    """The owners' noise, where the keys give them epsilons."""
    if not settings["epsilons"]:
        return None
    law = settings["noise"]
    return answers_for(
        schema,
        settings["epsilons"],
        settings["rounds"],
        loss_of_keys(schema, settings),
        spec_of_keys(schema, settings),
        settings["box"],
        law=law,
        neighbours=settings["neighbours"],
        delta=settings["delta"] if law == "gaussian" else 0.0,
        weights=settings["weights"],
    )
