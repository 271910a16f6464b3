"""Training of torch models as a study: a model by name or import path, metrics on a table or over the parties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pandas as pd
from torch import nn

from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.errors import ModelInvalid
from hedgerow.learn import ModelState, evaluate, evaluate_on, linear, mlp
from hedgerow.learn.tensors import width

from .listing import Outcome


def module_for(schema: Schema, settings: Mapping[str, Any]) -> nn.Module:
    """Build a module for a schema: "linear", "mlp", or `package.module:factory` called with (n_inputs, n_outputs)."""
    model, n_inputs = settings["model"], math.prod(width(schema))
    n_outputs = len(schema[schema.target].levels) or 1 if schema.target else 1
    if model == "linear":
        return linear(n_inputs, n_outputs)
    if model == "mlp":
        return mlp(n_inputs, settings["hidden"], n_outputs, seed=settings["model_seed"])
    try:
        module, name = model.split(":")
        made = getattr(import_module(module), name)(n_inputs, n_outputs)
    except (ValueError, ImportError, AttributeError) as error:
        raise ModelInvalid(
            f"model {model!r} is neither 'linear', 'mlp' nor an import path: {error}.",
            remedy="Write it as package.module:factory.",
        ) from error
    if not isinstance(made, nn.Module):
        raise ModelInvalid(f"{model} made a {type(made).__name__}, not a torch.nn.Module.")
    return made


def on_table(settings: Mapping[str, Any], state: ModelState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Metrics of a state on the server's table; nothing where it holds none."""
    return {} if test is None else _named(evaluate_on(test, module_for(schema, settings), state.weights), "test ")


def over_parties(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> dict[str, float]:
    """Metrics of a state by one sum over the parties."""
    prefix = "noisy " if federation.channel.mechanism is not None else ""
    return _named(evaluate(federation, module_for(federation.schema, settings), state.weights), prefix)


def accuracy(settings: Mapping[str, Any], state: ModelState, schema: Schema, table: Table) -> float:
    """The headline score of a state on a table: accuracy, or mean squared error of a numeric target."""
    found = evaluate_on(table, module_for(schema, settings), state.weights)
    return found.get("accuracy", found.get("mean_squared_error", float("nan")))


def outcome(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> Outcome:
    """The trained weights, and a table of their shapes."""
    shapes = [(name, " x ".join(map(str, value.shape)), int(value.size)) for name, value in state.weights.items()]
    table = pd.DataFrame(shapes, columns=["parameter", "shape", "numbers"])
    return Outcome(tables={"Model": table}, arrays=dict(state.weights))


def _named(found: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {prefix + name.replace("_", " "): value for name, value in found.items() if name != "n"}
