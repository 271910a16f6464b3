"""Training of torch models as a study: a model by name or import path, metrics on a table or over the parties."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from typing import Any

import pandas as pd
from torch import nn

from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table
from hedgerow.errors import HedgerowError, ModelInvalid, suggestion
from hedgerow.learn import ZOO, ModelState, evaluate, evaluate_on, evaluate_personal, linear, mlp
from hedgerow.learn.made import has_note, note
from hedgerow.learn.tensors import width

from .listing import Outcome


def module_for(schema: Schema, settings: Mapping[str, Any]) -> nn.Module:
    """Build a module for a schema: by a name, or by `package.module:factory`.

    A factory is called with (n_inputs, n_outputs), or with (shape, n_outputs) where its first parameter is named `shape`.
    """
    model, shape = settings["model"], width(schema)
    n_outputs = len(schema[schema.target].levels) or 1 if schema.target else 1
    if model == "linear":
        return linear(math.prod(shape), n_outputs)
    if model == "mlp":
        return mlp(math.prod(shape), settings["hidden"], n_outputs, seed=settings["model_seed"])
    if model in ZOO:
        return ZOO[model](shape, n_outputs, seed=settings["model_seed"])
    factory = _factory(model)
    given = (shape if _first_parameter(factory) == "shape" else math.prod(shape), n_outputs)
    try:
        made = factory(*given)
    except HedgerowError:
        raise
    except Exception as error:
        raise ModelInvalid(f"{model}{given} failed: {type(error).__name__}: {error}", remedy="Mend the factory.") from error
    if not isinstance(made, nn.Module):
        raise ModelInvalid(f"{model} made a {type(made).__name__}, not a torch.nn.Module.")
    return made if has_note(made) else note(made, factory, given)


def _factory(model: str) -> Callable[..., Any]:
    """What an import path names."""
    module, colon, name = model.partition(":")
    if not (module and colon and name):
        raise ModelInvalid(
            f"model {model!r} is neither a known name nor an import path.",
            remedy=f"{suggestion(model, ['linear', 'mlp', *ZOO])}\nWrite your own as package.module:factory.",
        )
    try:
        found = getattr(import_module(module), name)
    except (ValueError, TypeError, ImportError, AttributeError) as error:
        raise ModelInvalid(
            f"model {model!r} cannot be imported: {error}.", remedy="Write it as package.module:factory."
        ) from error
    if not callable(found):
        raise ModelInvalid(f"{model} is a {type(found).__name__}, not a factory.", remedy="Name a function or a class.")
    return found


def _first_parameter(factory: Callable[..., Any]) -> str:
    try:
        return next(iter(signature(factory).parameters), "")
    except (TypeError, ValueError):  # made in C, without a signature
        return ""


def on_table(settings: Mapping[str, Any], state: ModelState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Metrics of a state on the server's table; nothing where it holds none."""
    return {} if test is None else _named(evaluate_on(test, module_for(schema, settings), state.weights), "test ")


def over_parties(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> dict[str, float]:
    """Metrics of a state by one sum over the parties, on the records that they held out where they did.

    Through an open channel also the mean and deviation of the parties' own scores; parties with a model of their own are
    scored with that, see `own_models`.
    """
    held_out, module = settings.get("held_out"), module_for(federation.schema, settings)
    noisy = federation.protection.noisy
    judge = evaluate_personal if federation.protection.open else evaluate
    found = judge(federation, module, state.weights, held_out=held_out)
    return _named(found, "noisy " * noisy + "validation " * bool(held_out))


def own_models(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> dict[str, float]:
    """Metrics of the models that parties keep for themselves, and, asked apart, of the global one."""
    held_out, module = settings.get("held_out"), module_for(federation.schema, settings)
    own = over_parties(federation, settings, state)
    prefix = "global " + "noisy " * (federation.protection.noisy) + "validation " * bool(held_out)
    return own | _named(evaluate(federation, module, state.weights, held_out=held_out), prefix)


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
    told = {name: name.replace("_", " ").replace("matthews", "Matthews") for name in found}
    return {prefix + told[name]: value for name, value in found.items() if name not in ("n", "parties")}
