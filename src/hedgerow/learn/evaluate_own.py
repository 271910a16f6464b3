"""Evaluation of the models that parties keep for themselves, by one federated sum.

Releases : sums of hits, loss and records; of each party's accuracy a_k and of a_k^2; the number of parties. Behind a clip or
           noise only sum a_k and sum a_k^2, each bounded by one per party.
State    : read, and not changed.
Unit     : party. A record changes its party's whole model, and with it how all records there are classified; so no sum over
           records is bounded by one record, as it is where everybody scores one public model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.bound import linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import travels

from .evaluate import judged, metrics
from .local import score, scored
from .models import Model, Weights
from .scale import Scale
from .tasks.declared import Task


@travels
def score_own(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, bounded: bool) -> dict[str, Any]:
    """Score the party's own model, or the broadcast one where it keeps none.

    `value` is its accuracy (or mean squared error) at this party, `square` the square of that; unless `bounded` also the sums
    of `score`, and 1 for a party with records.
    """
    sums = score(party.state.get("v", broadcast), party, rng, model=model)
    value = float(sums[headline(model)]) / max(float(party.n), 1e-12)
    spread = {"value": value, "square": value**2}
    return spread if bounded else {**sums, **spread, "parties": float(party.n > 0)}


def headline(model: Model) -> str:
    """The sum from which the parties' own scores are made: hits, or the first metric of a task, or its loss."""
    return next(iter(scored(model)), "loss")


def own_bound(model: Model) -> float | None:
    """The largest absolute value of a party's own score, where there is one."""
    if model.task is None:
        return None if model.kind == "number" else 1.0
    return next((metric.bound for metric in model.task.metrics), None)


def evaluate_personal(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> dict[str, float]:
    """Metrics of the parties' own models by one federated sum; a party that keeps none is scored with `weights`.

    Parameters
    ----------
    held_out : str, optional
        A 0/1 column: only records with 1 are counted, which training with the same setting leaves out.
    scale : {"ranges", "numbers", "none"}, optional
        As of `evaluate`.
    task : Task, optional
        As of `evaluate`; the parties' own scores are those of its first metric.

    Returns
    -------
    dict
        As `evaluate`: `accuracy` (classification) or `mean_squared_error` over all records, `loss`, `n`. Beside them that
        metric as parties see it: `party_mean` and `party_deviation`, each party counting equally, and `parties`. Through a
        channel that clips or adds noise, `party_mean` and `party_deviation` alone; a clip of l2(1.5) leaves them as they are.

    Raises
    ------
    UnboundedSum (HR-210)
        The channel adds noise without a clip, and the target is a number: squared errors have no bound.
    """
    model, ready = judged(federation, module, weights, features, held_out, scale, task)
    bounded, most = not federation.protection.exact, own_bound(model)
    bound = {"value": linf(most), "square": linf(most**2)} if bounded and most is not None else None
    sums = ready.sum(partial(score_own, model=model, bounded=bounded), model.flat(weights), bound=bound)
    parties = federation.expected_size if bounded else max(float(sums["parties"]), 1e-12)
    mean, square = float(sums["value"]) / parties, float(sums["square"]) / parties
    found = {"party_mean": mean, "party_deviation": max(square - mean**2, 0.0) ** 0.5}
    return found if bounded else metrics(model, sums) | found | {"parties": parties}
