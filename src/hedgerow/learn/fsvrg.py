"""FSVRG: the federation's gradient first, then a local pass that corrects it record by record.

    for each round:
        x          -> cohort S                                                          broadcast
        G          <- sum_k n_k grad f_k(x) / sum_k n_k                                   sum, server
        x, G       -> the same cohort                                                   broadcast
        y_k        <- x
        y_k        <- y_k - h_k (grad f_i(y_k) - grad f_i(x) + G)   for i in a permutation of the records    local
        x          <- x + sum_k n_k (y_k - x) / sum_k n_k                                 sum, server

h_k = h / n_k, so that every party goes equally far, whatever the number of its records. With batches of b records the step on
a batch's mean gradient is h over the number of batches in a pass: b h / n_k where b divides n_k. `learning_rate` is h.

Releases : sum of n_k grad f_k(x), then sum of n_k (y_k - x), each with sum of n_k: two questions to one cohort, once a round.
State    : none at the parties.
Unit     : party. Both questions send the key "update" (and "n"), so that one clip fits both.
Source   : Konecny, McMahan, Ramage and Richtarik 2016, Algorithm 4; G and h_k as there, from Algorithm 3 the anchored step.
           Differs: batches of several records, more than one pass (`epochs`). The diagonal scalings S_k and A of Algorithm 4
           weigh features by how many records and parties they appear in; where every feature is present in every record they
           are the identity, and they are left out here: for sparse features this is not the full FSVRG. With one batch in one
           pass a party steps from x along G: FedSGD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local

from .descent import Correction, Solver, descend
from .fedavg import ModelState
from .local import gradient
from .models import Model
from .results import declares
from .settings import Settings, Weighting
from .training import Training, equal_parties, mean_of
from .weighting import weighed


@local(stackable=True)
def mean_gradient(
    x: np.ndarray, party: Party, rng: Any, *, model: Model, weighting: Weighting, largest_weight: float | None
) -> Mapping[str, np.ndarray]:
    """The mean gradient of the party's records at the server's model, weighed as a change is."""
    at_x = gradient(x, party, rng, model=model)
    mean = at_x["gradient"] / np.maximum(at_x["n"], 1e-12)[..., None].astype(np.float32)
    return weighed(party, weighting, largest_weight, update=mean)


@local(stackable=True)
def anchored_sgd(
    server: Mapping[str, np.ndarray],
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
) -> Mapping[str, np.ndarray]:
    """Pass over the records along the federation's gradient, corrected by each batch; return the change."""
    share = 1.0 / np.maximum(batches(party, solver), 1.0)[..., None]  # the same for every parameter of a party
    terms = Correction(shift=server["gradient"], anchored=True, mask=share)
    found = descend(server["x"], party, rng, model=model, solver=solver, correction=terms)
    return weighed(party, weighting, largest_weight, update=found.change)


def batches(party: Party, solver: Solver) -> np.ndarray:
    """Batches in a pass over the records that count: shape (), stacked (n_parties,)."""
    counted = np.count_nonzero(party.w, axis=-1)
    return np.ceil(counted / (solver.batch_size or np.maximum(counted, 1)))


@program("The federation's gradient, then variance-reduced local passes (Konecny et al. 2016).", **declares(rounds=2))
def fsvrg(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Federated stochastic variance-reduced gradient (Konecny et al. 2016, Algorithm 4 for dense features).

    Parameters
    ----------
    **settings
        Shared, as `hedgerow.learn.fedavg`; the local solver is sgd. `learning_rate` is h, the sum of a pass's steps: it is
        larger than for FedAvg by the number of steps in a pass.

    Releases
    --------
    The total gradient and the total change, of shape (d,) each, in two questions to one cohort, each with the total weight
    (except "expected"), once per round.
    """
    equal_parties(settings, "solver", "adversarial")
    training = Training.of(federation, module, rounds, settings)
    model, x = training.model, training.begin(start)
    ask = partial(mean_gradient, model=model, weighting=training.weighting, largest_weight=training.largest_weight)
    for t in training.left(start):
        cohort = training.cohort()
        server = {"x": x, "gradient": mean_of(cohort.sum(ask, x), cohort)}
        x = x + mean_of(cohort.sum(training.ask(anchored_sgd, t), server), cohort)
        yield ModelState(t + 1, model.named(x))
