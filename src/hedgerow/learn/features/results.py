"""Models of features: the module that reads them, and metrics on a table that is given the same features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from hedgerow.core.declaration import Case
from hedgerow.core.federation import Federation
from hedgerow.data import Schema, Table, load

from .. import results
from ..evaluate import evaluate, evaluate_on, losses_on
from ..results import named
from ..tensors import width
from .chain import Features
from .principal import Basis

if TYPE_CHECKING:
    from .training import FeatureState

FIXED = ("straighten", "scatter", "length")
"""Settings from which features are made, beside what a state holds."""


def declares(**settings: Any) -> dict[str, Any]:
    """What a program declares besides its name and sentence; `settings` of its case."""
    return {
        "keys": results.MODEL,
        "bind": {"module": module_for},
        "outcome": results.outcome,
        "watch": on_table,
        "score": accuracy,
        "metric": results.metric,
        "alone": lambda given, rounds: dict(given) | {"rounds": rounds},
        "ask": over_parties,
        "losses": losses,
        "case": lambda: Case(load("digits").take(range(120)), settings, tolerance=results.SINGLE),
    }


def module_for(schema: Schema, settings: Mapping[str, Any]) -> nn.Module:
    """Build the module for features of a schema's records: their shape follows from the settings alone."""
    found, n = Features(settings["straighten"], settings["scatter"]), settings["components"]
    for step in found.steps(schema):
        schema = step.schema(schema)
    if n is not None:
        d = int(np.prod(width(schema)))
        blank = Basis(np.eye(d, n, dtype=np.float32), np.ones(n))
        schema = replace(found, straighten=False, scatter=False, basis=blank).steps(schema)[-1].schema(schema)
    return results.module_for(schema, settings)


def on_table(settings: Mapping[str, Any], state: FeatureState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Metrics of a state on the server's table; nothing where it holds none."""
    if test is None:
        return {}
    found = evaluate_on(_with_features(test, settings, state), module_for(schema, settings), state.weights)
    return named(found, "test ")


def accuracy(settings: Mapping[str, Any], state: FeatureState, schema: Schema, table: Table) -> float:
    """The headline score of a state on a table: accuracy, or mean squared error of a numeric target."""
    found = evaluate_on(_with_features(table, settings, state), module_for(schema, settings), state.weights)
    return found.get("accuracy", found.get("mean_squared_error", float("nan")))


def losses(settings: Mapping[str, Any], state: FeatureState, schema: Schema, table: Table) -> np.ndarray:
    """The loss of a state at each record of a table, shape (n,)."""
    return losses_on(_with_features(table, settings, state), module_for(schema, settings), state.weights)


def over_parties(federation: Federation, settings: Mapping[str, Any], state: FeatureState) -> dict[str, float]:
    """Metrics of a state by one sum over the parties, charged where noise is added."""
    module = module_for(federation.schema, settings)
    ready = Features.of(state, **{name: settings[name] for name in FIXED}).at_parties(federation)
    found = evaluate(ready, module, state.weights)
    return named(found, "noisy " * (federation.protection.noisy))


_made: list[tuple[Table, object, Table]] = []
"""The last table that was given features: they are made once, and measured often."""


def _with_features(table: Table, settings: Mapping[str, Any], state: FeatureState) -> Table:
    steps = Features.of(state, **{name: settings[name] for name in FIXED}).steps(table.schema)
    if not (_made and _made[0][0] is table and _made[0][1] == steps):
        made = replace(table, test=None)
        for step in steps:
            made = step.of(made)
        _made[:] = [(table, steps, made)]
    return _made[0][2]
