"""FedAvg and FedSGD: federated averaging and its one-step limit.

    server:  initialise w
             for each round t:
                 S    <- sampled parties                                   broadcast w
                 w_k  <- local SGD on party k, from w                      E epochs, batches of B
                 w    <- w + sum_k n_k (w_k - w) / sum_k n_k               sum, server

FedSGD is E = 1, B = all records: then n_k (w_k - w) = -lr * (sum of record gradients), which is asked directly.

Releases : sum of n_k (w_k - w) and sum of n_k, once per round.
State    : none at the parties.
Unit     : party. Through a channel that clips, `weighting` is "expected": parties count equally, the update alone is sent,
           and its total is divided by the expected size of the cohort, which is public.
Source   : McMahan et al., AISTATS 2017, Algorithm 1 and section 2. Differs: the weighted mean is taken over the updates
           w_k - w, which is the same. "expected" is the fixed denominator of McMahan et al., ICLR 2018, section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Local
from hedgerow.display import displayed

from .local import gradient, local_sgd
from .models import Weights
from .results import declares
from .robust.named import RuleSetting
from .scale import Scale
from .settings import Settings
from .tasks.declared import Task
from .training import Training


@displayed
@dataclass(frozen=True)
class ModelState:
    """A model after a round.

    Attributes
    ----------
    round : int
        Rounds so far.
    weights : dict of arrays
        Parameters by name, as in the module's `state_dict`.
    rule_state : dict of arrays
        What the rule keeps of the rounds so far; of the mean, and of most rules, nothing.
    """

    round: int
    weights: Weights
    rule_state: Weights = field(default_factory=dict)


@program("Federated averaging of a torch model (McMahan et al. 2017).", **declares(rounds=2))
def fedavg(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    rule: RuleSetting = "mean",
    expect: float | None = None,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Federated averaging (McMahan et al. 2017, Algorithm 1).

    Parameters
    ----------
    module : torch.nn.Module
        Architecture and initial weights; it is not changed.
    rounds : int
        Rounds in all, those before `start` included.
    rule : str, dict or Rule
        What the server takes of the parties' updates: their mean, or a rule that holds against liars. A rule is given
        by its name, by its name and settings, or as a value of `hedgerow.learn.robust`. The mean and "groups" ask for sums; any
        other rule sees every row.
    expect : float, optional
        How many of the parties that are asked in a round may lie: their share, below one, or their number.
    start : ModelState, optional
        Continue after this state.
    **settings
        What all algorithms share: participation, local solver, weighting; see `hedgerow.learn.Settings`.

    Yields
    ------
    ModelState
        After each round. `hedgerow.learn.with_weights(module, state)` makes a module of it.

    Releases
    --------
    The total update, of shape (d,), and the total weight (except "expected"), once per round. With a rule of rows every party's
    update; with groups the total of each group.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511), UnlawfulChannel (HR-211)
        Before any party is asked. The last of a rule of rows behind an aggregation that hides them.
    CohortTooSmall (HR-240)
        So few parties answered in a round that the rule cannot hold against those that may lie.
    """
    training = Training.of(federation, module, rounds, settings, rule=rule, expect=expect)
    yield from average(training, start, local_sgd)


def average(training: Training, start: ModelState | None, train: Local, **terms: Any) -> Iterator[ModelState]:
    """The loop of Algorithm 1, for any local function that returns an update and its weight."""
    model, w, kept = training.model, training.begin(start), training.kept(start)
    for t in training.left(start):
        found, kept = training.combined(train, t, w, kept, **terms)
        w = w + found["update"]
        yield ModelState(t + 1, model.named(w), kept)


@program("Federated SGD of a torch model: one gradient step a round (McMahan et al. 2017).", **declares(rounds=2))
def fedsgd(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    rate: float | None = None,
    size: int | None = None,
    learning_rate: float = 1.0,
    features: list[str] | None = None,
    scale: Scale = "ranges",
    task: dict[str, Any] | Task | None = None,
    rule: RuleSetting = "mean",
    expect: float | None = None,
    start: ModelState | None = None,
) -> Iterator[ModelState]:
    """Federated SGD (McMahan et al. 2017, section 2): one gradient step on the cohort's records a round.

    Parameters
    ----------
    rate : float, optional
        Participation: each party joins with this probability.
    size : int, optional
        Participation: exactly so many parties; everybody by default.
    learning_rate : float
        Of the step along the cohort's mean gradient.
    features : list of str, optional
        Columns that the module reads; all features by default.
    scale : {"ranges", "numbers", "none"}
        How they reach it: numbers by their declared ranges, the same without integers, or as they are.
    task : Task, optional
        Inputs, target, loss and metrics, where the target's kind does not decide them.

    Notes
    -----
    Other parameters, and what it yields, as `hedgerow.learn.fedavg`. Through an open channel the parties' gradient sums are
    asked, which an engine may take in one pass over all records; through any other, FedAvg with one epoch and one batch, which
    is the same. So it is with a rule, which then sees one step of each party.
    """
    own: Settings = {"rate": rate, "size": size, "learning_rate": learning_rate, "features": features, "scale": scale}
    own["task"] = task
    if not federation.protection.open or rule != "mean" or expect is not None:
        taken: Any = {"rule": rule, "expect": expect}
        yield from fedavg(federation, module, rounds=rounds, start=start, epochs=1, batch_size=None, **taken, **own)
        return
    training = Training.of(federation, module, rounds, own)
    model, ask = training.model, partial(gradient, model=training.model)
    w = training.begin(start)
    for t in training.left(start):
        total = training.cohort().sum(ask, w)
        w = (w - learning_rate * total["gradient"] / np.maximum(total["n"], 1.0)).astype(np.float32)
        yield ModelState(t + 1, model.named(w))
