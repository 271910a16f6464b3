"""What programs that train torch models declare: a model by name or import path, metrics of a state, and baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from torch import nn

from hedgerow.core.declaration import Case, Key
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, load
from hedgerow.errors import HedgerowError, ModelInvalid, suggestion
from hedgerow.report import Outcome

from .evaluate import evaluate, evaluate_on, losses_on
from .evaluate_own import evaluate_personal
from .made import has_note, note
from .models import linear, mlp
from .scale import Scale, said, scale_for
from .tasks.declared import task_from
from .tasks.fitted import FittedTask
from .tensors import width
from .zoo import ZOO

if TYPE_CHECKING:
    import numpy as np

    from .fedavg import ModelState

MODEL = {
    "model": Key(
        str,
        "linear",
        "linear, mlp, logistic, two_nn, he_net, geyer_net, mcmahan_cnn, lenet, resnet18, lstm, or "
        "package.module:factory, called with (n_inputs, n_outputs), or (shape, n_outputs) if it begins with shape",
    ),
    "hidden": Key(list[int], [32], "units of each hidden layer of an mlp"),
    "model_seed": Key(int, 0, "of the initial weights"),
}
"""The keys by which a study names a model."""

MOST_PASSES = 30
"""Baselines of trained models take at most so many passes over their records."""

SINGLE = 2e-4
"""By how much engines may differ in single precision."""


def declares(*, personal: bool = False, records: int = 120, **settings: Any) -> dict[str, Any]:
    """What a program that trains a model declares besides its name and sentence.

    Parameters
    ----------
    personal : bool
        Whether parties keep models of their own, which `evaluation.on = "parties"` measures beside the global one.
    records : int
        Digits of its case.
    **settings
        Of its case.
    """
    return {
        "keys": MODEL,
        "bind": {"module": module_for},
        "outcome": outcome,
        "watch": on_table,
        "score": accuracy,
        "metric": metric,
        "alone": few_passes,
        "ask": own_models if personal else over_parties,
        "losses": None if personal else losses,
        "case": lambda: Case(load("digits").take(range(records)), settings, tolerance=SINGLE),
    }


def metric(schema: Schema) -> tuple[str, bool]:
    """Name of the headline score, and whether more is better."""
    return ("accuracy", True) if schema.classifies else ("mean squared error", False)


def few_passes(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """Everybody in every round, one pass a round, at most `MOST_PASSES` of them."""
    epochs = settings.get("epochs", 1)
    passes = min(rounds * (epochs if isinstance(epochs, int) else max(epochs)), MOST_PASSES)
    plain = {"rounds": passes, "epochs": 1, "rate": None, "size": None, "every": None, "spare": 0, "stragglers": 0.0}
    plain |= {"buffer": None, "concurrency": None, "expect": None, "row_rule" if "row_rule" in settings else "rule": "mean"}
    return {name: plain.get(name, value) for name, value in settings.items()}


def module_for(schema: Schema, settings: Mapping[str, Any]) -> nn.Module:
    """Build a module for a schema: by a name, or by `package.module:factory`.

    A factory is called with (n_inputs, n_outputs), or with (shape, n_outputs) where its first parameter is named `shape`. The
    inputs of a task are all numbers that it names, and the outputs are those of the schema's target.
    """
    model, task = settings["model"], task_from(settings.get("task"))
    shape = width(schema) if task is None else FittedTask.of(task, schema, settings.get("features"), "none").inputs.record
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
    return (
        {}
        if test is None
        else named(evaluate_on(test, module_for(schema, settings), state.weights, **scaled(settings)), "test ")
    )


def over_parties(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> dict[str, float]:
    """Metrics of a state by one sum over the parties, on the records that they held out where they did.

    Through an open channel also the mean and deviation of the parties' own scores; parties with a model of their own are
    scored with that, see `own_models`.
    """
    held_out, module = settings.get("held_out"), module_for(federation.schema, settings)
    noisy = federation.protection.noisy
    judge = evaluate_personal if federation.protection.open else evaluate
    found = judge(federation, module, state.weights, held_out=held_out, **scaled(settings))
    return named(found, "noisy " * noisy + "validation " * bool(held_out))


def own_models(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> dict[str, float]:
    """Metrics of the models that parties keep for themselves, and, asked apart, of the global one."""
    held_out, module = settings.get("held_out"), module_for(federation.schema, settings)
    own = over_parties(federation, settings, state)
    prefix = "global " + "noisy " * (federation.protection.noisy) + "validation " * bool(held_out)
    found = evaluate(federation, module, state.weights, held_out=held_out, **scaled(settings))
    return own | named(found, prefix)


def accuracy(settings: Mapping[str, Any], state: ModelState, schema: Schema, table: Table) -> float:
    """The headline score of a state on a table: accuracy, or mean squared error of a numeric target."""
    found = evaluate_on(table, module_for(schema, settings), state.weights, **scaled(settings))
    return found.get("accuracy", found.get("mean_squared_error", next(iter(found.values()))))


def losses(settings: Mapping[str, Any], state: ModelState, schema: Schema, table: Table) -> np.ndarray:
    """The loss of a state at each record of a table, shape (n,)."""
    return losses_on(table, module_for(schema, settings), state.weights, **scaled(settings))


def outcome(federation: Federation, settings: Mapping[str, Any], state: ModelState) -> Outcome:
    """The trained weights, a table of their shapes, and how features reached the module."""
    import pandas

    schema = federation.schema
    chosen = settings.get("features") or [name for name in schema.features if name != settings.get("held_out")]
    told = {"How features reach the model": said(schema, chosen, _scale(schema, settings))}
    if settings.get("task") is not None:
        told = {"How columns reach the model": FittedTask.of(task_from(settings["task"]), schema, chosen, "ranges").told}
    shapes = [(name, " x ".join(map(str, value.shape)), int(value.size)) for name, value in state.weights.items()]
    table = pandas.DataFrame(shapes, columns=["parameter", "shape", "numbers"])
    return Outcome(tables={"Model": table}, text=told, arrays=dict(state.weights))


def _scale(schema: Schema, settings: Mapping[str, Any]) -> Scale:
    """How features are scaled; a module of somebody's own may embed integers."""
    wanted: Scale = settings.get("scale", "ranges")
    own = ":" in settings["model"] and not {"inputs", "components"} & settings.keys()
    return scale_for(module_for(schema, settings), wanted) if own else wanted


def scaled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """How features are scaled, and the task, as evaluations are told them."""
    return {"scale": settings.get("scale", "ranges"), "task": settings.get("task")}


def named(found: Mapping[str, float], prefix: str) -> dict[str, float]:
    told = {name: name.replace("_", " ").replace("matthews", "Matthews") for name in found}
    return {prefix + told[name]: value for name, value in found.items() if name not in ("n", "parties")}
