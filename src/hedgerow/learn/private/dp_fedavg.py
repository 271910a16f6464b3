"""DP-FedAvg: federated averaging that hides whether a party took part, with a clip that follows a private quantile.

    server:  w, S, v <- initial weights, initial clip, 0
             for each round t:
                 C     <- every party by itself with probability q_t                        Poisson
                 k in C:  u_k <- local SGD from w, shortened to S, in units of S; is |u_k| <= S?
                 mean, below  <- one noisy sum over C, divided by the expected size of C    `clipping`
                 v     <- server_momentum * v + mean
                 w     <- w + server_rate * v
                 S     <- S exp(-clip_step (below - quantile))                              unless the clip is fixed

Releases : the noisy sum of updates and of their indicators, of shape (d + 1,), bounded by l2(1) together, once per round.
State    : none at the parties; w, v and S at the server, which are made from releases.
Unit     : party. Without a mechanism in its channel the program runs as well, and the ledger says "nonprivate".
Source   : McMahan et al., ICLR 2018, Algorithm 1 (fixed denominator); Andrew et al., NeurIPS 2021, Algorithm 1 (clip).
           Differs: see `clipping`; the schedule of rates is that of Geyer et al. 2017, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import delta

from ..heterogeneity import spread
from ..models import Weights
from ..settings import Settings
from ..training import Training, above, at_least
from .clipping import UNIT, Split, followed, in_units_of_the_clip, noise_now, read
from .results import declares
from .schedules import Growth, grown
from .views import Inputs, step_of


@displayed
@dataclass(frozen=True)
class PrivateState:
    """A model after a round, and what the server knows besides.

    Attributes
    ----------
    round : int
    weights : dict of arrays
        Parameters by name, as in the module's `state_dict`.
    velocity : array of shape (d,)
        What the server's momentum remembers.
    clip : float
        Of the next round.
    below : float
        Noisy share of the round's updates that were no longer than its clip; nan with a fixed clip.
    spent : float
        delta at the epsilon of `delta_at` after this round; nan if not asked for.
    scale : float
        U_s: mean squared coordinate of the round's mean clipped update, less the known variance of its noise.
    variance : float
        V_c of unclipped updates at these weights, where `spread_every` asked for it; else nan.
    """

    round: int
    weights: Weights
    velocity: np.ndarray
    clip: float
    below: float = math.nan
    spent: float = math.nan
    scale: float = math.nan
    variance: float = math.nan


@program(
    "FedAvg that hides parties, with a private clip (Andrew et al. 2021).",
    **declares({"mechanism": {"law": "gaussian", "noise_multiplier": 1.0}}, rounds=2),
)
def dp_fedavg(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    clip: float = 1.0,
    quantile: float | None = 0.5,
    clip_step: float = 0.2,
    count_noise: float | None = None,
    last_rate: float | None = None,
    growth: Growth = "geometric",
    rates: list[float] | None = None,
    server_rate: float = 1.0,
    server_momentum: float = 0.0,
    inputs: Inputs = "columns",
    delta_at: float | None = None,
    spread_every: int = 0,
    start: PrivateState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[PrivateState]:
    """Federated averaging with party-level differential privacy.

        fed = federation.protect(mechanism=hr.Gaussian(1.1)).within(hr.Budget(8.0, 1e-5))
        for state in dp_fedavg(fed, net, rounds=100, rate=0.1): ...

    Parameters
    ----------
    module : torch.nn.Module
        Architecture and initial weights; it is not changed.
    rounds : int
        Rounds in all, those before `start` included.
    clip : float
        Longest update that passes whole in the first round.
    quantile : float or None
        The share of updates that are to pass whole: the clip follows. None keeps the clip as it is.
    clip_step : float
        How fast it follows: the exponent in front of the difference of shares.
    count_noise : float, optional
        Standard deviation of the noise on the count behind that share, in parties; by default a twentieth of the expected
        cohort, or more where that would take more than a tenth of a release.
    last_rate : float, optional
        Cohorts grow, or shrink, from `rate` to this.
    growth : {"constant", "linear", "geometric"}
        How they grow.
    rates : list of float, optional
        Instead of `rate` and `last_rate`: a rate for each round.
    server_rate : float
        Learning rate of the server.
    server_momentum : float
        Share of the server's last step that is taken again, in [0, 1).
    inputs : {"columns", "pooled scattering"}
        What the module reads: the columns as they are, or fixed features of images (see `views`).
    delta_at : float, optional
        Report delta at this epsilon after each round, as `spent`.
    spread_every : int
        Measure V_c and U_s of unclipped updates after each so many rounds, through an open channel only; 0 never does.
    start : PrivateState, optional
        Continue after this state.
    **settings
        As `hedgerow.learn.fedavg`. Parties count equally, `weighting` is "expected".

    Yields
    ------
    PrivateState
        After each round.

    Releases
    --------
    Updates in units of the clip and their indicators, of shape (d + 1,), once per round.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511)
        Before any party is asked.
    """
    above(0.0, clip=clip, server_rate=server_rate)
    at_least(0.0, clip_step=clip_step, server_momentum=server_momentum, spread_every=float(spread_every))
    _check(federation, quantile, server_momentum, spread_every, delta_at)
    federation = _seen(federation, inputs)
    training = Training.of(federation, module, rounds, settings, lawful=("expected",))
    chosen = _rates(training, rates, last_rate, growth)
    model, w = training.model, training.begin(start)
    v, S = (np.zeros_like(w), clip) if start is None else (start.velocity, start.clip)
    size = w.size + (quantile is not None)
    for t in training.left(start):
        cohort = training.cohort() if chosen is None else sampled(training.federation, chosen[t])
        noise = noise_now(cohort, size)
        split = Split() if quantile is None else Split.of(noise, cohort.expected_size, count_noise)
        ask = training.ask(in_units_of_the_clip, t, split=split)
        found = read(cohort.sum(ask, {"w": w, "clip": np.array([S])}, bound=UNIT), S, split, cohort, noise)
        v = (server_momentum * v + found.mean).astype(np.float32)
        w = (w + server_rate * v).astype(np.float32)
        S = S if quantile is None else followed(S, found.below, quantile, clip_step)
        told = {"below": found.below, "scale": update_scale(found.mean, found.noise), "spent": spent(federation, delta_at)}
        if spread_every and (t + 1) % spread_every == 0:
            seen = spread(federation, module, model.named(w), measures=("updates",), rounds=rounds, **settings)
            told |= {"variance": seen.variance, "scale": seen.scale}
        yield PrivateState(t + 1, model.named(w), v, S, **told)


def sampled(federation: Federation, rate: float) -> Federation:
    """A Poisson cohort; everybody at rate one."""
    return federation if rate == 1 else federation.sample(rate=rate)


def update_scale(mean: np.ndarray, noise: float) -> float:
    """U_s of a noisy mean update, its known noise subtracted; a little below zero where there is nothing but noise."""
    return float(np.mean(mean.astype(np.float64) ** 2) - noise**2)


def spent(federation: Federation, epsilon: float | None) -> float:
    """delta at an epsilon of everything that the ledger holds; nan without an epsilon, one after an open release."""
    if epsilon is None:
        return math.nan
    return delta(federation.ledger.charges("party"), epsilon=epsilon, adjacency="add-remove")


def delta_threshold(epsilon: float, threshold: float) -> Budget:
    """Stop, as Geyer et al. 2017 do, before delta at a fixed epsilon exceeds a threshold.

    delta at epsilon exceeds the threshold exactly where epsilon at the threshold exceeds epsilon: it is a `Budget`.
    """
    return Budget(epsilon, threshold)


def _check(
    federation: Federation, quantile: float | None, server_momentum: float, spread_every: int, delta_at: float | None
) -> None:
    protection = federation.protection
    if protection.clip is not None or protection.compressed:
        raise SettingsInvalid(
            f"the channel has clip {protection.clip} and compression {protection.compression}.",
            remedy="dp_fedavg clips by itself: give it `clip`, and protect(mechanism=...) alone. For a fixed clip of the "
            "channel's own take fedavg.",
        )
    if quantile is not None and not 0 < quantile < 1:
        raise SettingsInvalid(f"quantile is {quantile}.", remedy="A share between 0 and 1, or none for a fixed clip.")
    if server_momentum >= 1 or (delta_at is not None and not delta_at > 0):
        raise SettingsInvalid(
            f"server_momentum is {server_momentum}, delta_at is {delta_at}.", remedy="Below one, and above zero."
        )
    if spread_every and protection.noisy:
        raise SettingsInvalid(
            f"spread_every is {spread_every}, and the channel adds noise.",
            remedy="Measure spread through an open channel, or by hedgerow.learn.spread with a clip for each key.",
        )


def _seen(federation: Federation, inputs: Inputs) -> Federation:
    step = step_of(federation.schema, inputs)
    return federation if step is None else step.at_parties(federation)


def _rates(training: Training, rates: list[float] | None, last_rate: float | None, growth: Growth) -> tuple[float, ...] | None:
    """A rate for each round, or nothing where `rate` or `size` says it all."""
    if rates is not None:
        if training.rate is not None or training.size is not None or last_rate is not None:
            raise SettingsInvalid("rates, and rate, size or last_rate besides.", remedy="Give one of them.")
        if len(rates) != training.rounds or not all(0 < q <= 1 for q in rates):
            raise SettingsInvalid(
                f"rates are {len(rates)} numbers for {training.rounds} rounds.", remedy="Give one in (0, 1] for each round."
            )
        return tuple(rates)
    if last_rate is None:
        return None
    if training.rate is None:
        raise SettingsInvalid(f"last_rate is {last_rate} and rate is None.", remedy="Give the rate of the first round, too.")
    return grown(training.rate, last_rate, training.rounds, growth)
