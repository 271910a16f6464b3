"""Sub-FedAvg: each party prunes its own copy of the model, and the server averages where copies overlap.

    party:   y    <- m_k x;  E epochs of local SGD on what m_k keeps                                local
             m'   <- prune(y after the first epoch, m_k),   m'' <- prune(y after the last, m_k)
             if distance(m', m'') >= least_change and accuracy of m'' y >= least_accuracy:
                 m_k <- m''                                                                         party state
    server:  x_j  <- x_j + sum_k m_kj (y_kj - x_j) / sum_k m_kj,  where some party keeps j            sum, server

prune drops a share `step` of what a layer still keeps, the smallest magnitudes first, and stops at the share `share`. Biases
stay. Structured ("hybrid"): whole filters of convolutions, with their biases, by the sum of their magnitudes, up to the share
`filters`; single weights elsewhere. The distance is the share of a layer's mask in which m' and m'' differ, averaged over
layers. A party's personal model is m_k x.

Releases : sum of m_k (y_k - x), sum of m_k, number of parties; once a round. A transport that leaves out zeros carries `sent`
           numbers for a party instead of d; ours carries all 2d + 1.
State    : m_k at each party, of shape (d,), initially all ones; committed when the round was counted.
Unit     : party. Behind one clip `weighting` is "expected": m_k (y_k - x) alone is sent, and divided by the cohort's expected
           size, so that what few keep moves little; else give one bound to each of "update", "kept" and "n".
Source   : Vahidian, Morafah and Lin, ICDCS Workshops 2021, Algorithms 1 and 2. Differs: filters are ranked by their own
           magnitudes rather than by the scale of a batch normalisation, which would mix records; inputs that only a pruned
           filter feeds stay in the mask, where they no longer learn. One step and one pair of thresholds serve both kinds. m'
           is found by an epoch of its own. A party that takes one epoch compares with the mask before it. Without held-out
           records accuracy is that on the training records. With share = 0 it is FedAvg of equal parties.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid

from .descent import NOTHING, Correction, Solver, descend
from .evaluate import metrics
from .local import score, scored
from .models import Model, Weights
from .pruning import Pruning
from .reading import reading_for
from .results import declares
from .scale import Scale
from .settings import Settings, Weighting
from .tasks.declared import Task, task_from
from .tensors import prepared
from .training import Training, mean_of, model_of
from .weighting import weighed


@displayed
@dataclass(frozen=True)
class SubState:
    """A model after a round, and how far parties have pruned it.

    `sent` is how many numbers of an update a party of the cohort kept, on average as parties count; `sparsity` is the share of
    the model that it did not. Both are nan where no masks were sent.
    """

    round: int
    weights: Weights
    sent: float
    sparsity: float


@travels
def everything(x: np.ndarray, party: Party) -> dict[str, np.ndarray]:
    """A party that was never asked has pruned nothing."""
    return {"kept": np.ones(x.shape, bool)}


@local(stackable=True)
def pruning_sgd(
    x: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    pruning: Pruning,
) -> Mapping[str, np.ndarray]:
    """Train the party's subnetwork, prune it further, and return the change of what is left, with the mask."""
    kept = party.state["kept"]
    again = rng if party.w.ndim == 2 else copy.deepcopy(getattr(rng, "generator", rng))  # stacked streams start afresh
    begin, terms = x * kept, NOTHING if kept.all() else Correction(mask=kept)
    found = descend(begin, party, rng, model=model, solver=solver, correction=terms)

    def early() -> np.ndarray:
        one = replace(solver, epochs=1, steps=None)
        first = descend(begin, party, again, model=model, solver=one, correction=terms)
        return begin + np.where((found.steps > first.steps)[..., None], first.change, 0.0)

    kept = pruning.renewed(kept, begin + found.change, early, party, model)
    party.state["kept"] = kept
    masks = {} if weighting == "expected" else {"kept": kept.astype(np.float32)}
    return weighed(party, weighting, largest_weight, update=found.change * kept, **masks)


@program("Personal subnetworks, averaged where they overlap (Vahidian et al. 2021).", **declares(rounds=2, share=0.3))
def subfedavg(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    share: float = 0.5,
    step: float = 0.1,
    filters: float | None = None,
    per_layer: bool = True,
    least_accuracy: float = 0.5,
    least_change: float = 1e-4,
    start: SubState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[SubState]:
    """Sub-FedAvg (Vahidian et al. 2021); `evaluate_subnetworks` says how well the parties' personal models do.

    Parameters
    ----------
    share : float
        Share of each layer's weights that a party prunes in the end, in [0, 1).
    step : float
        Share of what is left that it prunes at a time, in [0, 1].
    filters : float, optional
        Prune whole filters of convolutions, up to this share of each layer's, rather than their weights.
    per_layer : bool
        Whether weights are ranked within their layer, or over all layers together; filters always are within theirs.
    least_accuracy : float
        A party prunes only if what is left is right this often, on its `held_out` records where the setting names some; 0 for
        a target that is a number.
    least_change : float
        It prunes only if the first and the last epoch disagree on so much of the mask; 0 leaves this test out.

    **settings
        As `hedgerow.learn.fedavg`; parties count equally by default.
    """
    shares = {"share": share, "step": step, "filters": filters or 0.0, "least_accuracy": least_accuracy}
    wrong = [f"{name} is {value}" for name, value in (shares | {"least_change": least_change}).items() if not 0 <= value <= 1]
    wrong += [f"{name} is 1" for name in ("share", "filters") if shares[name] == 1]
    training = Training.of(federation, module, rounds, settings, lawful=("uniform", "records", "expected"))
    model, pruning = (
        training.model,
        Pruning(share, step, least_accuracy, least_change, per_layer, filters, settings.get("held_out")),
    )
    if filters is not None and not pruning.kinds(model)[1][0]:
        wrong.append(f"filters is {filters}, and the model has no convolution")
    if (model.kind == "number" or (model.task is not None and "accuracy" not in scored(model))) and least_accuracy > 0:
        wrong.append(f"least_accuracy is {least_accuracy}, and the target is a number, or its task has no such metric")
    if wrong:
        raise SettingsInvalid("; ".join(wrong) + ".", remedy="They are shares; what is left is never nothing.")
    x, d = training.begin(start), len(model.initial)
    sent = float(d) if start is None else start.sent
    floor = 1e-12 if not federation.protection.noisy else 1.0
    for t in training.left(start):
        cohort = training.cohort()
        total = cohort.sum(training.ask(pruning_sgd, t, pruning=pruning), x, init=everything)
        if training.weighting == "expected":
            x, sent = x + mean_of(total, cohort), math.nan
        else:
            x = x + (total["update"] / np.maximum(total["kept"], floor)).astype(np.float32)
            sent = float(total["kept"].sum() / total["n"]) if total["n"] > 0 else sent
        yield SubState(t + 1, model.named(x), sent, 1 - sent / d)


@local
def score_subnetwork(x: np.ndarray, party: Party, rng: Any, *, model: Model) -> dict[str, np.ndarray]:
    """Sums from which metrics are made, of the broadcast weights where the party's mask keeps them."""
    return score(x * party.state["kept"], party, rng, model=model)


def evaluate_subnetworks(
    federation: Federation,
    module: nn.Module,
    weights: Weights | Any,
    features: Sequence[str] | None = None,
    *,
    held_out: str | None = None,
    scale: Scale | None = None,
    task: Task | None = None,
) -> dict[str, float]:
    """Metrics of the parties' personal subnetworks, each on its own records, by one federated sum.

    Parameters and result as `hedgerow.learn.evaluate`; a party that never pruned is scored with all weights. A mask depends on
    all records of its party, so there is no bound per record: a channel that adds noise needs a clip.
    """
    reading = reading_for(weights, module, federation.schema, features, scale, task_from(task), held_out)
    model = model_of(module, federation, reading.features, scale=reading)
    ready = prepared(federation, reading.features, held_out=held_out, validation=True, scale=reading)
    return metrics(model, ready.sum(partial(score_subnetwork, model=model), model.flat(weights), init=everything))
