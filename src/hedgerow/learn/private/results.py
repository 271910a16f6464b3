"""What private training by party declares: a module for the inputs that a program makes, metrics of a state, baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

from hedgerow.core.declaration import Case
from hedgerow.data import Schema, Table, load
from hedgerow.errors import SettingsInvalid

from .. import results
from ..evaluate import evaluate_on
from .views import step_of

if TYPE_CHECKING:
    from .dp_fedavg import PrivateState

_LARGEST = 4
_made: list[tuple[Table, str, Table]] = []
"""Tables with features, kept beside the tables that they were made from, the latest last."""


def declares(protection: Mapping[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """What a program declares besides its name and sentence; `protection` and `settings` of its case."""
    return {
        "keys": results.MODEL,
        "bind": {"module": module_of_inputs},
        "outcome": results.outcome,
        "watch": watched,
        "score": accuracy,
        "metric": results.metric,
        "alone": without_schedule,
        "case": lambda: Case(load("digits").take(range(120)), settings, protection=protection or {}, tolerance=results.SINGLE),
    }


def without_schedule(settings: Mapping[str, Any], rounds: int) -> dict[str, Any]:
    """Settings of a baseline: everybody in every round, and nothing measured besides."""
    plain = {"last_rate": None, "rates": None, "quantile": None, "clip": 1e6, "delta_at": None, "spread_every": 0}
    plain |= {"parties": 1, "last_parties": None}
    few = results.few_passes(settings, rounds)
    if "parties" in settings:
        raise SettingsInvalid("geyer has no baseline of one party.", remedy="baselines = false")
    return {name: plain.get(name, value) for name, value in few.items()}


def module_of_inputs(schema: Schema, settings: Mapping[str, Any]) -> nn.Module:
    """Build the module that reads what the program makes of the columns."""
    step = step_of(schema, settings["inputs"])
    return results.module_for(schema if step is None else step.schema(schema), settings)


def watched(settings: Mapping[str, Any], state: PrivateState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Accuracy on the server's table, the clip, delta at the study's epsilon, V_c and U_s, as far as they were asked for."""
    found = {} if test is None else {f"test {name}": value for name, value in scores(settings, state, schema, test).items()}
    level = settings.get("delta_at") or settings.get("target_epsilon")
    delta = "delta, claimed, not proved," if settings.get("printed") else "delta"
    more = {
        "clip": math.nan if settings.get("quantile", 0.5) is None or settings.get("clip_step") == 0 else state.clip,
        f"{delta} at epsilon {level:g}" if isinstance(level, float) else delta: state.spent if state.spent < 1 else math.nan,
        "update scale U_s": state.scale,
        "between-party variance V_c": state.variance,
    }
    return found | {name: value for name, value in more.items() if math.isfinite(value)}


def accuracy(settings: Mapping[str, Any], state: PrivateState, schema: Schema, table: Table) -> float:
    """The headline score of a state on a table."""
    found = scores(settings, state, schema, table)
    return found.get("accuracy", found.get("mean squared error", math.nan))


def scores(settings: Mapping[str, Any], state: PrivateState, schema: Schema, table: Table) -> dict[str, float]:
    """Metrics of a state on a table, which is given the program's features once."""
    module = module_of_inputs(schema, settings)
    found = evaluate_on(_with_features(table, settings["inputs"]), module, state.weights, **results.scaled(settings))
    return {name.replace("_", " "): value for name, value in found.items() if name != "n"}


def _with_features(table: Table, inputs: Any) -> Table:
    step = step_of(table.schema, inputs)
    if step is None:
        return table
    for kept, name, made in _made:
        if kept is table and name == inputs:
            return made
    found = step.of(table)
    _made.append((table, inputs, found))
    del _made[:-_LARGEST]
    return found
