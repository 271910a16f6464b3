"""Consensus ADMM: parties solve their own problems exactly enough, and prices make their solutions agree.

Minimise sum_i n_i f_i(z) / n + r(z), where f_i is party i's mean loss and r an optional penalty, as a problem with a copy y_i
of z at each party. With scaled dual variables u_i:

    party:   y_i  <- argmin over y of  f_i(y) + rho/2 |y - z + u_i|^2        from the last y_i, by the local solver
    server:  z    <- argmin over z of  r(z) + rho/2 |z - mean of (y_i + u_i)|^2
    party:   u_i  <- u_i + y_i - z                                           when it next hears of z

The mean counts parties by their records, as does the price of disagreeing, so the fixed point is the pooled optimum: there
every y_i = z, grad f_i(z) = -rho u_i, and the mean of u_i is grad r(z) / rho. The server keeps the mean over all parties heard
of so far, and a party sends by how much its y_i + u_i has changed; so parties may be sampled or drop out.

Releases : sum of n_i (change of y_i + u_i), sum of n_i |y_i - z|^2, n_i of parties new to the server, sum of n_i; once a round.
State    : y_i and u_i at each party, of shape (d,), and whether it was ever counted; committed when the round was counted.
Unit     : party. Behind a clip `weighting` is "expected": sum of (y_i + u_i - z) alone, over the cohort's expected size. The
           memory at the server is left out there, since the noise of all rounds would add up in it; so sampling, too, costs
           accuracy.
Source   : Boyd et al., Foundations and Trends in Machine Learning 3 (2011), sections 7.1.1 (consensus, with the residuals of
           section 3.3) and 8.2 (split across examples). Differs: weights n_i, and the local problem is solved inexactly, by the
           given number of steps; where these use all records at once (batch_size 0), the fixed point is still exact. Changes
           in place of values are Gong, Li and Freris, ICDE 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.display import displayed

from .descent import Correction, Solver, descend
from .models import Model, Weights
from .results import declares
from .settings import Settings, Weighting
from .training import Training, above, at_least
from .weighting import weighed


@displayed
@dataclass(frozen=True)
class AdmmState:
    """The model z after a round, what the server remembers, and how far from a solution it is.

    Attributes
    ----------
    mean : array of shape (d,)
        Mean of y_i + u_i over the parties heard of.
    weight : float
        Their total weight.
    primal : float
        How far parties disagree: root of the mean |y_i - z|^2 over the cohort, for the z that this round began with; nan in
        the first round, and where it was not sent.
    dual : float
        rho times the length of this round's step of z. Near a solution both are small.
    """

    round: int
    weights: Weights
    mean: np.ndarray
    weight: float
    primal: float
    dual: float


@travels
def unheard(z: np.ndarray, party: Party) -> dict[str, np.ndarray]:
    """A party that was never counted begins at z, without a price."""
    return {"y": np.array(z), "u": np.zeros_like(z), "heard": np.zeros((), np.float32)}


@local(stackable=True)
def augmented_sgd(
    z: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    rho: float,
) -> Mapping[str, np.ndarray]:
    """Renew the price, solve the party's problem near z - u from its last solution, and return the change of y + u."""
    heard = party.state["heard"][..., None]
    y, u = party.state["y"], party.state["u"]
    sent, apart = heard * summed(y, u), heard * (y - z)
    u = u + apart
    begin = np.where(heard > 0, y, z)
    y = begin + descend(begin, party, rng, model=model, solver=solver, correction=Correction(rho, towards=z - u)).change
    party.state |= {"y": y, "u": u, "heard": np.ones_like(party.state["heard"])}
    if weighting == "expected":
        return {"update": summed(y, u) - z}
    rest = {"apart": (apart.astype(float) ** 2).sum(-1, keepdims=True), "fresh": 1.0 - heard}
    return weighed(party, weighting, largest_weight, update=summed(y, u) - sent, **rest)


def summed(y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """y + u in double precision, so that what is sent round by round adds up to the last value."""
    return y.astype(float) + u


@program("Consensus ADMM: the pooled optimum of convex models (Boyd et al. 2011).", **declares(rounds=2))
def admm(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    rho: float = 0.1,
    l1: float = 0.0,
    l2: float = 0.0,
    start: AdmmState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[AdmmState]:
    """Consensus ADMM (Boyd et al. 2011, section 7.1).

    Convergence is proved for convex losses, such as those of linear and logistic regression; on other models it is a heuristic.

    Parameters
    ----------
    rho : float
        Price of disagreeing, in the units of the loss over squared weights; above zero. It moves no optimum, only the speed.
    l1, l2 : float
        Penalty l1 |z|_1 + l2/2 |z|^2 on all parameters but biases, added to the mean loss.

    **settings
        As `hedgerow.learn.fedavg`. Give enough `steps` with `batch_size=0`, and a learning rate below two over rho plus the
        largest curvature of a party's loss.
    """
    above(0.0, rho=rho)
    at_least(0.0, l1=l1, l2=l2)
    bounded = not federation.protection.exact
    training = Training.of(
        federation, module, rounds, settings, lawful=("expected",) if bounded else ("records", "uniform", "expected")
    )
    model, z = training.model, training.begin(start)
    penalised = np.concatenate([np.full(shape.numel(), len(shape) > 1) for shape in model.shapes])
    mean, weight = (z.astype(float), 0.0) if start is None else (start.mean, start.weight)
    for t in training.left(start):
        cohort, primal = training.cohort(), math.nan
        total = cohort.sum(training.ask(augmented_sgd, t, rho=rho), z, init=unheard)
        if "n" in total:
            before, weight = weight, weight + float(total["fresh"].item())
            mean = (before * mean + total["update"]) / weight if weight > 0 else mean
            known = float(total["n"] - total["fresh"].item())
            primal = math.sqrt(total["apart"].item() / known) if known > 1e-9 else primal
        else:
            mean = z + total["update"] / cohort.expected_size
        shrunk = np.sign(mean) * np.maximum(np.abs(mean) - l1 / rho, 0.0) * (rho / (rho + l2))
        step = np.where(penalised, shrunk, mean).astype(np.float32) - z
        z = z + step
        yield AdmmState(t + 1, model.named(z), mean, weight, primal, rho * float(np.linalg.norm(step)))
