"""How much parties differ: in the updates they would send, and in their gradients. Labels are in `labels`.

At given weights w every party k of the cohort takes its local steps as in FedAvg, to an update u_k of shape (d,), and
the gradient g_k of its mean loss at w. All measures follow from sums over the K parties:

    between-party variance   V_c = 1/d sum_j 1/K sum_k (u_kj - m_j)^2  = (1/K sum_k |u_k|^2 - |m|^2) / d,   m = 1/K sum_k u_k
    update scale             U_s = 1/d sum_j m_j^2                     = |m|^2 / d
    mean cosine of updates   1/(K(K-1)) sum_{k != l} cos(u_k, u_l)     = (|sum_k u_k/|u_k||^2 - K) / (K (K - 1))
    gradient dissimilarity   B^2 = sum_k p_k |g_k|^2 / |g|^2,          g = sum_k p_k g_k,   p_k = n_k / n
    gradient variance        sigma^2 = sum_k p_k |g_k - g|^2           = sum_k p_k |g_k|^2 - |g|^2

The second form of each line holds since sum_k (u_kj - m_j)^2 = sum_k u_kj^2 - K m_j^2, and since the square of a sum of
unit vectors is K ones and every pair's cosine twice. A matrix of q x p parameters is summed and divided by q p, as
published; over a whole model the divisor is d, so that V_c and U_s are the means of the matrices', weighted by size.

Releases : K; "updates": sum of u_k, of |u_k|^2 for each parameter array; "directions": sum of u_k/|u_k|, and how many moved;
           "gradients": sum of n_k g_k, of n_k |g_k|^2, and n. Once a call; see `spread` for channels that clip.
State    : none; what an algorithm keeps at its parties stays as it is.
Unit     : party. "directions" have a bound by themselves, l2(1); the others need a clip for each key, as `spread_clip` gives.
Source   : V_c and U_s: Geyer et al. 2017, section 3, the definition. Differs: K are the parties of the cohort that answered.
           B and sigma^2: Li et al., MLSys 2020, section 4, Definition 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack, get_args

import numpy as np
from torch import nn

from hedgerow.core.bound import Bound, Bounds, l1, l2, linf
from hedgerow.core.federation import Federation
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.level import noise_level
from hedgerow.report import Curve, Series

from .descent import Solver, descend
from .local import gradient
from .models import Model, own_generator
from .settings import Settings, Weighting
from .training import Training, at_least
from .weighting import weighed

Measure = Literal["updates", "directions", "gradients"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
KEYS: dict[Measure, tuple[str, ...]] = {
    "updates": ("update", "update_square"),
    "directions": ("direction", "moved"),
    "gradients": ("gradient", "gradient_square", "n"),
}
COUNTS = ("moved", "n", "parties")
BOUNDED = {"direction": l2(1.0), "moved": linf(1.0), "parties": linf(1.0)}
"""Bounds that hold whatever the data are."""


@dataclass(frozen=True)
class LayerSpread:
    """Between-party variance V_c and update scale U_s of one parameter array."""

    variance: float
    scale: float


@dataclass(frozen=True)
class Spread:
    """How much parties differ at some weights; nan where a measure was not asked for or is not defined.

    Attributes
    ----------
    parties : float
        Parties that answered, or that were expected where their number is not sent.
    variance : float
        V_c: mean over parameters of the variance of their change between parties; squared units of a parameter.
    scale : float
        U_s: mean over parameters of the squared mean change.
    cosine : float
        Mean cosine of two parties' updates, from -1 / (K - 1) to 1.
    dissimilarity : float
        B^2: 1 where all parties have the same gradient, and without limit as their mean vanishes.
    gradient_variance : float
        sigma^2: mean squared distance of a party's gradient to the mean gradient; B^2 = 1 + sigma^2 / |g|^2.
    layers : dict from parameter name to LayerSpread

    Notes
    -----
    Noise and rounding can carry a variance below zero.
    """

    parties: float
    variance: float = math.nan
    scale: float = math.nan
    cosine: float = math.nan
    dissimilarity: float = math.nan
    gradient_variance: float = math.nan
    layers: Mapping[str, LayerSpread] = field(default_factory=dict, repr=False)


@local(stackable=True)
def differences(
    broadcast: np.ndarray,
    party: Party,
    rng: Any,
    *,
    model: Model,
    solver: Solver,
    weighting: Weighting,
    largest_weight: float | None,
    measures: tuple[Measure, ...],
) -> dict[str, np.ndarray]:
    """What a party adds to the sums above; counts (`parties`, `moved`, `n`) are left out for "expected" weighting.

    `update` (d,), `update_square` (n_arrays,); `direction` (d,); `gradient` (d,), `gradient_square` (1,).
    """
    counted = weighting != "expected"
    found = {"parties": np.ones(np.shape(party.n))} if counted else {}
    if "updates" in measures or "directions" in measures:
        u = descend(broadcast, party, rng, model=model, solver=solver).change.astype(np.float64)
        squares = np.add.reduceat(u**2, _starts(model), axis=-1)
        length = np.sqrt(squares.sum(-1, keepdims=True))
        if "updates" in measures:
            found |= {"update": u, "update_square": squares}
        if "directions" in measures:
            found["direction"] = np.divide(u, length, out=np.zeros_like(u), where=length > 0)
            found |= {"moved": (length[..., 0] > 0).astype(float)} if counted else {}
    if "gradients" in measures:
        with own_generator(rng) if model.stochastic else nullcontext():
            total = gradient(broadcast, party, rng, model=model)
        g = total["gradient"].astype(np.float64) / np.maximum(total["n"], 1e-12)[..., None]
        found |= weighed(party, weighting, largest_weight, gradient=g, gradient_square=(g**2).sum(-1, keepdims=True))
    return found


def spread(
    federation: Federation,
    module: nn.Module,
    weights: Any = None,
    *,
    measures: Sequence[Measure] = MEASURES,
    rounds: int | None = None,
    **settings: Unpack[Settings],
) -> Spread:
    """Measure by one sum how much parties differ at some weights.

        for state in fedavg(federation, net, rounds=50, **settings):
            print(spread(federation, net, state, **settings))

    Parameters
    ----------
    module : torch.nn.Module
        Architecture; it is not changed.
    weights : state of any algorithm, or mapping from name to array, optional
        Where to measure; the module's own weights by default. After round t of a state, these are the updates of a round
        t + 1 by FedAvg, with that round's learning rate.
    measures : sequence of {"updates", "directions", "gradients"}
        What to ask for: V_c and U_s; the mean cosine; B^2 and sigma^2. Each adds about d numbers to what a party sends.
    rounds : int, optional
        Rounds of the whole training, which the schedule cosine needs.
    **settings
        As for `hedgerow.learn.fedavg`: cohort, local solver, and the `weighting` of gradients (p_k).

    Releases
    --------
    Sums of shape (d,) and their counts, as at the head of this module, once.

    Raises
    ------
    ModelInvalid (HR-510), SettingsInvalid (HR-511), UnboundedSum (HR-210)
        Before any party is asked.

    Notes
    -----
    Every party of the cohort trains once more, so a measurement costs about as much time as a round, and what it releases is
    written to the federation's ledger and charged to its budget. It draws a cohort and shuffles of its own, by numbers below
    zero: cohorts, shuffles and noise of the training stay what they would be without it, and so does the trained model.

    Through a channel that clips, parties count equally, counts are not sent, and sums are divided by the expected size of
    the cohort. The variance of the channel's noise, which is public, is subtracted from the squared length of a sum, so V_c
    and U_s are those of the clipped updates on average.
    """
    training, chosen = _checked(federation, module, weights, measures, rounds, settings)
    return _measure(training, weights, chosen)


def watch_spread(
    states: Iterator[Any],
    federation: Federation,
    module: nn.Module,
    *,
    every: int = 1,
    measures: Sequence[Measure] = MEASURES,
    rounds: int | None = None,
    **settings: Unpack[Settings],
) -> Iterator[tuple[Any, Spread | None]]:
    """Pass on the states of any algorithm, with a measurement beside each.

        for state, found in watch_spread(fedavg(federation, net, rounds=50, **settings), federation, net, **settings):
            print(state.round, found.variance)

    Parameters and costs are those of `spread`, which would prepare the model again for every state.

    Parameters
    ----------
    every : int
        Measure after each so many rounds; other states come with None.
    """
    at_least(1, every=every)
    ready: tuple[Training, tuple[Measure, ...]] | None = None
    for state in states:
        if state.round % every:
            yield state, None
            continue
        ready = ready or _checked(federation, module, state, measures, rounds, settings)
        yield state, _measure(ready[0], state, ready[1])


def _checked(
    federation: Federation, module: nn.Module, weights: Any, measures: Sequence[Measure], rounds: int | None, settings: Settings
) -> tuple[Training, tuple[Measure, ...]]:
    """What is asked and of whom, checked before anybody is asked."""
    chosen = tuple(name for name in MEASURES if name in measures)
    if not chosen or set(measures) - set(MEASURES):
        raise SettingsInvalid(f"measures are {list(measures)}.", remedy=f"Choose from {', '.join(MEASURES)}.")
    if rounds is None and settings.get("schedule") == "cosine":
        raise SettingsInvalid("the schedule is cosine and rounds is None.", remedy="Give the rounds of the whole training.")
    if federation.protection.compressed:
        raise SettingsInvalid(
            f"{federation.protection.compression} changes the length of a sum, from which spread is measured.",
            remedy="Measure through a channel without compression.",
        )
    training = Training.of(federation, module, max(getattr(weights, "round", 0), 1) if rounds is None else rounds, settings)
    if federation.keeps_state:  # parties keep states, which may differ in kind and cannot be stacked
        training = replace(training, model=replace(training.model, stackable=False))
    if isinstance(federation.protection.clip, Bound) and len(keys := _keys(training, chosen)) > 1:
        raise SettingsInvalid(
            f"one clip of {federation.protection.clip} cannot fit {', '.join(keys)}.",
            remedy="Clip each key: protect(clip=spread_clip(update=1.0, gradient=5.0)).",
        )
    return training, chosen


def _measure(training: Training, weights: Any, measures: tuple[Measure, ...]) -> Spread:
    training = replace(training, federation=training.federation.aside())
    model, cohort, keys = training.model, training.cohort(), _keys(training, measures)
    bounds = {key: BOUNDED[key] for key in keys} if set(keys) <= set(BOUNDED) else None
    at = model.initial if weights is None else model.flat(weights)
    ask = training.ask(differences, getattr(weights, "round", 0), measures=measures)
    return measured(cohort.sum(ask, at, bound=bounds), model, cohort, bounds)


def _keys(training: Training, measures: Sequence[Measure]) -> list[str]:
    """The keys of a contribution."""
    keys = ["parties", *(key for name in measures for key in KEYS[name])]
    return [key for key in keys if key not in COUNTS] if training.weighting == "expected" else keys


def _starts(model: Model) -> np.ndarray:
    """Where each parameter array begins in the flat vector."""
    return np.cumsum([0, *(shape.numel() for shape in model.shapes)])[:-1]


def spread_clip(*, update: float | None = None, direction: bool = True, gradient: float | None = None) -> dict[str, Bound]:
    """A clip for each sum of `spread`, for `federation.protect(clip=...)`.

    Parameters
    ----------
    update : float, optional
        Largest length of an update. Its squares are clipped to the square of it, so both are those of one shortened update.
    direction : bool
        Whether directions are measured.
    gradient : float, optional
        Largest length of a party's mean gradient.

    Notes
    -----
    For parties that count equally; ask `spread` for the `measures` that have a clip here.
    """
    clip = {} if update is None else {"update": l2(update), "update_square": l1(update**2)}
    clip |= {"direction": l2(1.0)} if direction else {}
    return clip | ({} if gradient is None else {"gradient": l2(gradient), "gradient_square": linf(gradient**2)})


def measured(total: Mapping[str, np.ndarray], model: Model, cohort: Federation, bounds: Bounds | None = None) -> Spread:
    """Divide the sums of `differences`, noisy or not, into measures."""
    numbers = sum(np.size(value) for value in total.values())
    spare = {k: noise_level(cohort, bounds, k, np.size(v), numbers - np.size(v)) ** 2 for k, v in total.items()}

    def count(key: str) -> float:
        return float(total[key]) if key in total else cohort.expected_size

    K, starts, found = count("parties"), _starts(model), {}
    if "update" in total and K > 0:
        sizes = np.diff([*starts, len(total["update"])])
        of_mean = (np.add.reduceat(total["update"] ** 2, starts) - sizes * spare["update"]) / K**2
        variances = total["update_square"] / K - of_mean
        every = zip(model.names, variances / sizes, of_mean / sizes, strict=True)
        found["layers"] = {name: LayerSpread(float(variance), float(scale)) for name, variance, scale in every}
        found |= {"variance": float(variances.sum() / sizes.sum()), "scale": float(of_mean.sum() / sizes.sum())}
    if "direction" in total and (m := count("moved")) > 1:
        of_sum = float(total["direction"] @ total["direction"]) - len(total["direction"]) * spare["direction"]
        found["cosine"] = (of_sum - m) / (m * (m - 1))
    if "gradient" in total and (n := count("n")) > 0:
        of_mean = (float(total["gradient"] @ total["gradient"]) - len(total["gradient"]) * spare["gradient"]) / n**2
        mean_square = float(total["gradient_square"][0]) / n
        found["gradient_variance"] = mean_square - of_mean
        found["dissimilarity"] = mean_square / of_mean if of_mean > 0 else math.nan
    return Spread(K, **found)


DRAWN = {
    "variance": ("Between-party variance", "V_c"),
    "scale": ("Update scale", "U_s"),
    "cosine": ("Agreement of updates", "mean cosine"),
    "dissimilarity": ("Gradient dissimilarity", "B^2"),
    "gradient_variance": ("Gradient variance", "sigma^2"),
}
"""Title and vertical axis of each measure's figure."""


def curves(rounds: Sequence[float], spreads: Sequence[Spread] | Mapping[str, Sequence[Spread]]) -> tuple[Curve, ...]:
    """Draw measures over rounds, one figure for each that was measured, for `hedgerow.report.Report(curves=...)`.

    Parameters
    ----------
    rounds : sequence of float
        The round of each measurement.
    spreads : sequence of Spread, or mapping from name to it
        Of one run, or of several to be compared, each measured at these rounds.

    Notes
    -----
    V_c and U_s come first, as in Figure 2 of Geyer et al. 2017, where accuracy is beside them. Axes are linear.
    """
    runs = spreads if isinstance(spreads, Mapping) else {"all parties": spreads}
    drawn = []
    for measure, (title, axis) in DRAWN.items():
        values = {name: tuple(float(getattr(one, measure)) for one in run) for name, run in runs.items()}
        if np.isfinite([value for run in values.values() for value in run]).any():
            series = tuple(Series(name, tuple(map(float, rounds)), run) for name, run in values.items())
            drawn.append(Curve(title, "round", axis, series))
    return tuple(drawn)
