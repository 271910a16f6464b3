"""Distributed selective SGD (Shokri & Shmatikov 2015): a party uploads a few changes of parameters, as printed and corrected.

    as printed                                                   corrected
    ---------------------------------------------------------    -----------------------------------------------------
    for each round, at each party:                                for each round:
        u   <- change by local SGD                                    G <- sum over records of g_i min(1, S / |g_i|)
        c   <- share of d uploads                                          + noise of the channel
        rho <- Lap(2 c D / e1)         anew after each upload         w <- step along G / B
        upload clip(u_j + Lap(2 c D / e2)) where
        |clip(u_j)| + Lap(4 c D / e1) >= tau + rho
        stop after c uploads
    w <- w + mean over parties of what was uploaded

    clip to [-gamma, gamma], D = 2 gamma, e1 = 8/9 e, e2 = 2/9 e; answers cost e2 / 2, so e is split 8/9 : 1/9

The paper's epsilon is that of one parameter in one round, e / c. An upload of c parameters costs c times as much, and so does
each round: both numbers are told here. At epsilon 1 for a parameter the noise of an answer is Lap(18 gamma), whatever c is.

Why they differ: gamma clips a change that all of a party's records made together, so that no less than the party is protected,
and by the sum of all rounds alone; a bound per record needs gradients that are clipped record by record, which DP-SGD has.

Releases : as printed, sums of uploads, and how many there were of each parameter; corrected, as `dpsgd`. Once per round.
Unit     : as printed none is charged (the noise is drawn in floating point, the channel is open); corrected, record.
Source   : Shokri & Shmatikov, CCS 2015, Figures 10 and 12; the constants from memory of the paper and of Dwork & Roth 2014,
           Algorithm 3, which it cites, since Haug 2022 (section 4.3) prints none. Differs: parties answer at the same time and
           their uploads are averaged, and a parameter is offered once a round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.learn.descent import Solver, descend
from hedgerow.learn.models import Model, Weights
from hedgerow.learn.records import RecordState, dpsgd
from hedgerow.learn.results import declares, outcome
from hedgerow.learn.scale import Scale
from hedgerow.learn.training import Training
from hedgerow.report import Outcome

from .forms import Form, checked, claimed, descending

TO_CHOOSE = 8 / 9
"""Of an epsilon, for the comparisons with the threshold; answers take the ninth that is left."""


@displayed
@dataclass(frozen=True)
class SelectiveState:
    """A model after a round, and what the paper's epsilon of a parameter adds up to.

    Attributes
    ----------
    weights : dict of arrays
    first, second : array of shape (d,)
        What the server's rule remembers; zeros as printed.
    per_parameter, in_all : float
        As printed: the paper's epsilon, and what it adds up to over uploads and rounds so far by the paper's own count, per
        party. Zero where corrected: what was spent is in the ledger.
    """

    round: int
    weights: Weights
    first: np.ndarray
    second: np.ndarray
    per_parameter: float = 0.0
    in_all: float = 0.0


@dataclass(frozen=True)
class Uploads:
    """What a party uploads in a round of the printed form.

    Parameters
    ----------
    most : int
        c.
    clip, threshold : float
        gamma and tau.
    per_parameter : float
        Epsilon of one parameter; a round has c of them.
    """

    most: int
    clip: float
    threshold: float
    per_parameter: float

    @property
    def a_round(self) -> float:
        """Epsilon of a round by the paper's count."""
        return self.per_parameter * self.most

    @property
    def threshold_scale(self) -> float:
        """Laplace scale of the threshold; that of a comparison is twice as large."""
        return 2 * self.most * 2 * self.clip / (TO_CHOOSE * self.a_round)

    @property
    def answer_scale(self) -> float:
        """Laplace scale of an upload: 2 c D / (2/9 e), which costs (1/9 e) / c."""
        return self.most * 2 * self.clip / ((1 - TO_CHOOSE) * self.a_round)

    def chosen(self, change: np.ndarray, rng: Any) -> np.ndarray:
        """Which parameters are uploaded, at most `most`, in the order of their upload."""
        size = len(change)
        order = rng.permutation(size)
        offered = np.abs(np.clip(change, -self.clip, self.clip))[order] + rng.laplace(scale=2 * self.threshold_scale, size=size)
        limits = self.threshold + rng.laplace(scale=self.threshold_scale, size=self.most)
        found, at = [], 0
        for limit in limits:
            above = np.flatnonzero(offered[at:] >= limit)
            if not len(above):
                break
            at += int(above[0]) + 1
            found.append(order[at - 1])
        return np.array(found, np.int64)


@local()
def selected(
    broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, solver: Solver, uploads: tuple[int, float, float, float]
) -> Mapping[str, np.ndarray]:
    """Train from the broadcast weights; return noisy changes of the chosen parameters, and which they are, each (d,)."""
    rule, change = Uploads(*uploads), descend(broadcast, party, rng, model=model, solver=solver).change
    which, sent, counts = rule.chosen(change, rng), np.zeros(len(change)), np.zeros(len(change))
    noisy = change[which] + rng.laplace(scale=rule.answer_scale, size=len(which))
    sent[which], counts[which] = np.clip(noisy, -rule.clip, rule.clip), 1.0
    return {"update": sent, "uploads": counts}


def claim(settings: Mapping[str, Any]) -> str:
    """What the paper would claim, and what it adds up to."""
    if settings["form"] != "printed":
        return ""
    what = (
        f"at epsilon {settings['epsilon']:g} for each parameter of a round, added up over {100 * settings['share']:g} % of "
        f"all parameters and {settings['rounds']} rounds"
    )
    why = "A change is clipped that all records of a party made together, so that nothing smaller than a party is protected"
    return claimed(settings, why, what)


def shown(federation: Federation, settings: Mapping[str, Any], state: SelectiveState) -> Outcome:
    """The model, and what the epsilon of a parameter adds up to."""
    made = outcome(federation, settings, state)  # type: ignore[arg-type]
    if not state.per_parameter:
        return made
    told = f"{state.per_parameter:g} for a parameter; {state.in_all:g} for all uploads of a party in {state.round} rounds"
    return replace(made, text=dict(made.text) | {"Epsilon by the paper's count": told})


@program(
    "A few noisy changes of parameters from each party (Shokri & Shmatikov 2015), as printed or corrected.",
    claim=claim,
    **declares(rounds=2, batch_size=60.0)
    | {"outcome": shown, "alone": lambda settings, rounds: {**settings, "rounds": rounds}},
)
def selective_sgd(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    batch_size: float,
    epsilon: float | None = None,
    delta: float | None = None,
    form: Form = "corrected",
    share: float = 0.1,
    threshold: float = 0.0,
    clip: float = 1.0,
    sampling_rate: float = 1.0,
    learning_rate: float = 0.5,
    local_learning_rate: float = 0.1,
    epochs: int = 1,
    local_batch_size: int = 10,
    scale: Scale = "ranges",
    start: SelectiveState | None = None,
) -> Iterator[SelectiveState]:
    """Distributed selective SGD (Shokri & Shmatikov 2015), and the form of it that protects records.

    Parameters
    ----------
    module : torch.nn.Module
        Architecture and initial weights.
    rounds : int
        In all, those before `start` included.
    batch_size : float
        Corrected: what the sum of gradients is divided by, public. As printed it is not read.
    epsilon, delta : float, optional
        As printed, epsilon of one parameter in one round. Corrected, the whole budget; None takes the channel's noise.
    form : {"printed", "corrected"}
        What the paper prints, of which nothing is proved, or what protects records.
    share : float
        As printed: theta_u, of the parameters that a party uploads in a round.
    threshold : float
        As printed: tau.
    clip : float
        As printed: gamma, of a change of a parameter. Corrected: largest length of a record's gradient.
    sampling_rate : float
        Corrected: each record joins a step by itself with this probability.
    learning_rate : float
        Corrected: of the server's steps, which have momentum 0.9.
    local_learning_rate, epochs, local_batch_size : float, int, int
        As printed: of the party's own training.
    scale : {"ranges", "numbers", "none"}
        How features reach the module, as in `hedgerow.learn.fedavg`.
    start : SelectiveState, optional
        Continue after this state.

    Yields
    ------
    SelectiveState
        After each round.

    Releases
    --------
    As printed, sums of uploads at no finite epsilon; corrected, noisy sums of clipped gradients. Once per round.

    Raises
    ------
    SettingsInvalid (HR-511), UnlawfulChannel (HR-211), BudgetInvalid (HR-214)
    """
    if not 0 < share <= 1 or clip <= 0:
        raise SettingsInvalid(f"share is {share}, clip is {clip}.", remedy="A share lies in (0, 1], a clip is above zero.")
    if checked(form, federation, epsilon):
        solver = {"learning_rate": local_learning_rate, "epochs": epochs, "batch_size": local_batch_size, "scale": scale}
        yield from _printed(federation, module, rounds, solver, (share, clip, threshold, float(epsilon or 0.0)), start)
        return
    private = descending(federation, epsilon, delta, rounds, sampling_rate)
    begun = None if start is None else RecordState(start.round, start.weights, start.first, start.second)
    step: Any = {"learning_rate": learning_rate, "solver": "momentum", "scale": scale}
    how: Any = {"sampling_rate": sampling_rate, "batch_size": batch_size, "clip": clip, "start": begun}
    for state in dpsgd(private, module, rounds=rounds, **how, **step):
        yield SelectiveState(state.round, state.weights, state.first, state.second)


def _printed(
    federation: Federation,
    module: nn.Module,
    rounds: int,
    solver: Mapping[str, Any],
    sizes: tuple[float, float, float, float],
    start: SelectiveState | None,
) -> Iterator[SelectiveState]:
    share, clip, threshold, epsilon = sizes
    training = Training.of(federation, module, rounds, solver)
    model, w = training.model, training.begin(start)
    uploads = Uploads(max(math.ceil(share * w.size), 1), clip, threshold, epsilon)
    settled = (uploads.most, clip, threshold, epsilon)
    for t in training.left(start):
        ask = partial(selected, model=model, solver=training.solver_in(t), uploads=settled)
        total: Any = training.federation.sum(ask, w)
        w = (w + total["update"] / np.maximum(total["uploads"], 1.0)).astype(np.float32)
        yield SelectiveState(t + 1, model.named(w), np.zeros_like(w), np.zeros_like(w), epsilon, uploads.a_round * (t + 1))
