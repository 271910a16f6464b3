"""Additive histograms: a generalised additive model on public bins, fitted by a histogram of residuals a round.

    server:  N  <- how many records lie in each bin of each feature                          sum, once
             repeat rounds times:
                 theta   -> parties                                                          broadcast
                 R       <- for each bin: sum of w (y - p), p = expit(sum_f theta_f[bin_f])   local; of numbers y - eta
                 R       <- sum over parties                                                 sum, server
                 v       <- momentum v + 2 R / (F (N / 4 + caution sigma))                   of numbers N in place of N / 4
                 theta   <- theta + v

A row of F indicators has length sqrt(F), so that F diag(N) / 4 bounds the information of the logistic model: a step of half
this size never passes the maximum, and heavy balls of momentum b are stable below 2 (1 + b) times it. Noise of standard
deviation sigma (public) enters the denominator, so that bins with fewer records than noise hardly move.

A record lies in one bin of every feature. It adds 1 to F counts, l2 sqrt(F), and w (y - p) to F sums, |y - p| <= 1: l2 sqrt(F),
times the heaviest weight; Laplace noise is scaled by F. Numbers are scaled to [-1, 1] by their declared range. Without noise
they are fitted by least squares. Behind noise a residual beyond half of the range counts as half of it, which is Huber's loss:
means are drawn towards the middle of most values where few are far from it.

How far noise moves a finished shape is not said. The noise of each round is known, sigma in every sum, but it goes on through
the residuals of all features, by how many records pairs of bins share, and these counts are not released. Where features say
nearly the same, noise that moves them in opposite directions is hardly brought back: on three such features deviations
computed one bin at a time were up to 2.7 times too small.

Releases : N once and R once per round, of shape (sum of the features' bins,).
State    : none at the parties.
Unit     : record.
Source   : additive models by histograms, Lou, Caruana & Gehrke 2012; with noise Nori, Caruana et al. 2021 (DP-EBM). Differs:
           all features in one question instead of one after the other, which costs the same noise in 1 / F as many rounds; a
           step from a bound of the information; no auto-detected types; bins of public cut points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bound, Bounds
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import BITS, bound_in, whole
from hedgerow.data import Schema, Table, complete_cases, load
from hedgerow.data.cuts import names_of
from hedgerow.display import displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share
from hedgerow.report import Outcome

from .bins import Bins, binned
from .charged import charged
from .noise import ball, deviation, refuse_whole_noise
from .reading import name_of_score, refuse_undeclared, score_of, two_classes_or_a_number
from .shapes import AdditiveModel, shape_drawings

COUNTS = 0.1
"""Share of a budget for the counts of bins; looked at on Adult."""


@displayed
@dataclass(frozen=True)
class AdditiveState:
    """An additive model after some rounds.

    Attributes
    ----------
    round : int
        Histograms of residuals asked so far.
    counts : array of shape (sum of the features' bins,)
        Records of each bin, feature after feature; noisy where counts were.
    theta : array of the same shape
        What each bin adds to the log-odds, or to the mean in halves of the target's range.
    velocity : array of the same shape
        The last step.
    sigma : float
        Standard deviation of the noise in a sum of residuals; zero where they are exact.
    """

    round: int
    counts: Array
    theta: Array
    velocity: Array
    sigma: float = 0.0


@local(additive=True, stackable=True, holds=True)
def bin_records(broadcast: None, party: Party, rng: Any, *, sizes: tuple[int, ...], bounds: Bounds | None = None) -> Array:
    """Count the records of each bin of each feature: shape (sum(sizes),), with a leading axis where parties are stacked."""
    return _added(party.w, party["bins"], sizes, bounds)


@local(additive=True, stackable=True, holds=BITS)
def bin_residuals(
    theta: Array,
    party: Party,
    rng: Any,
    *,
    sizes: tuple[int, ...],
    classified: bool,
    clip: bool,
    bounds: Bounds | None = None,
) -> Array:
    """Add up what the model leaves unexplained in each bin of each feature.

    Parameters
    ----------
    theta : array of shape (sum(sizes),)
    party : Party
        With the columns that `binned` prepares.
    sizes : tuple of int
        Bins of each feature.
    classified : bool
        Whether the target is 0 or 1, and the model one of log-odds.
    clip : bool
        Whether residuals of numbers are cut to [-1, 1], as behind noise.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (sum(sizes),)
        With a leading axis for parties where they are stacked.
    """
    bins = party["bins"]
    residual = party["target"] - mean_of(predictor(theta, bins, sizes), classified)
    if clip:
        residual = np.clip(residual, -1.0, 1.0)
    return _added(party.w * residual, bins, sizes, bounds)


def predictor(theta: Array, bins: Array, sizes: tuple[int, ...]) -> Array:
    """Sums of contributions of bins (..., n, f), one feature after the other: shape (..., n)."""
    found = np.zeros(bins.shape[:-1])
    for j, start in enumerate(_starts(sizes)):
        found += theta[start + bins[..., j].astype(np.int64)]
    return found


def mean_of(eta: Array, classified: bool) -> Array:
    """Probability of a predictor; of numbers the predictor itself."""
    return np.asarray(special.expit(eta)) if classified else eta


@program(
    "A generalised additive model on public bins, by histograms of residuals.",
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    watch=lambda settings, state, schema, test: watch(settings, state, schema, test),
    score=lambda settings, state, schema, table: score_of(model_of(settings, state, schema), schema, table),
    metric=lambda schema: ("accuracy" if schema.classifies else "R2", True),
    case=lambda: Case(load("diabetes").take(range(200)), {"rounds": 3, "n_bins": 4}),
)
def additive_model(
    federation: Federation,
    *,
    rounds: int = 20,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    momentum: float = 0.7,
    caution: float = 2.0,
    tol: float | None = None,
    start: AdditiveState | None = None,
) -> Iterator[AdditiveState]:
    """Fit an additive model, one histogram of residuals in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; noise needs that of a numeric target, too.
    rounds : int
        Histograms of residuals. The counts of bins are asked besides, once.
    n_bins : int
        Bins of a number (see `Bins`). Of Adult, 32 and 64 bins are worse than 16 at epsilon 0.5.
    log : sequence of str
        Features whose bins have equal widths on a logarithmic scale, such as amounts of money.
    features, target : optional
        The columns with these roles by default. The target is a number, or has two classes. Of a number the model is that of
        least squares without noise, and of Huber's loss behind it, with its bend at half of the declared range.
    epsilon, delta : float, optional
        A budget that the program divides: a tenth for the counts, the rest for the rounds in equal parts. Without it each
        question is asked through the channel as it is.
    noise_at : {"server", "aggregators", "shares", "party"}
        Who adds the noise of that budget.
    least : int
        For shares: as many parties' shares make the whole noise.
    momentum : float
        In [0, 1).
    caution : float
        By how many standard deviations of the noise the denominators grow; 1 and 2 were looked at on Adult.
    tol : float, optional
        Stop where no bin's mean residual is above this. It is read from the sums, so that noise refuses it.
    start : AdditiveState, optional
        Continue from this state.

    Yields
    ------
    AdditiveState
        After each round.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Before any party is asked; see `Bins.of` and `BudgetShares`.
    UnboundedSum (HR-210)
        Noise is added, and target or weights declare no range.
    """
    if rounds < 1 or not 0 <= momentum < 1 or caution <= 0:
        raise SettingsInvalid(
            f"{rounds!r} rounds with a momentum of {momentum!r} and a caution of {caution!r}.",
            remedy="Give one round or more, a momentum in [0, 1) and a caution above zero.",
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    two_classes_or_a_number(bins)
    shares = {"counts": Share(COUNTS), "residuals": Share(1 - COUNTS, times=rounds)}
    noisy = federation.protection.noisy or epsilon is not None
    refuse_undeclared(bins, noisy=noisy)
    refuse_whole_noise(federation, "residuals")
    if tol is not None and noisy:
        raise SettingsInvalid(
            f"tol={tol:g} stops by what the sums say, which is a release of its own.",
            remedy="Leave tol out: behind noise the number of rounds is fixed beforehand.",
        )
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=epsilon is None)
    plan = BudgetShares(epsilon, delta, noise_at, least)
    asked = plan.handles(federation.prepare(binned, bins=bins), shares, begins=start is None)
    state = start or AdditiveState(0, *np.zeros((3, sum(bins.sizes))))
    if state.round == 0:
        counts = asked["counts"].sum(partial(bin_records, sizes=bins.sizes), bound=bound_of(asked["counts"], bins))
        state = replace(state, counts=counts)
    clip = noisy or bool(bins.classes)
    ask = partial(bin_residuals, sizes=bins.sizes, classified=bool(bins.classes), clip=clip)
    sigma = deviation(asked["residuals"], bound_of(asked["residuals"], bins), sum(bins.sizes))
    while state.round < rounds:
        bound = bound_of(asked["residuals"], bins, state.theta if not clip else None)
        residuals = asked["residuals"].sum(ask, state.theta, bound=bound)
        state = _stepped(replace(state, sigma=sigma), residuals, bins, momentum=momentum, floor=caution * sigma)
        yield state
        if tol is not None and (np.abs(residuals) <= tol * state.counts).all():
            return


def bound_of(federation: Federation, bins: Bins, theta: Array | None = None) -> Bound | None:
    """How far one record moves counts, or residuals that are cut to [-1, 1]; without noise, residuals of any `theta`."""
    if bins.bound is None:
        return None
    most = 1.0
    if theta is not None:
        most += sum(float(np.abs(part).max()) for part in np.split(theta, _starts(bins.sizes)[1:]))
    return ball(federation, len(bins.features), bins.heaviest or 1.0, most**2, most)


def additive(
    federation: Federation,
    *,
    rounds: int = 20,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    momentum: float = 0.7,
    caution: float = 2.0,
    tol: float | None = None,
) -> AdditiveModel:
    """Fit an additive model to its end; parameters, releases and errors are those of `additive_model`.

    Returns
    -------
    AdditiveModel
        With `predict`, `probabilities`, `shape("age")` and `plot("age")`.
    """
    settings: dict[str, Any] = {"n_bins": n_bins, "log": log, "features": features, "target": target}
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least}
    steps: dict[str, Any] = {"rounds": rounds, "momentum": momentum, "caution": caution, "tol": tol}
    asked_before = len(federation.ledger)
    *_, state = additive_model(federation, **steps, **budget, **settings)
    made: AdditiveModel = charged(model_of(settings, state, federation.schema), federation, asked_before, delta)
    return made


def model_of(settings: Mapping[str, Any], state: AdditiveState, schema: Schema) -> AdditiveModel:
    """The model of a state."""
    bins = Bins.of(schema, **{name: settings[name] for name in ("features", "target", "n_bins", "log")})
    return AdditiveModel(bins, state.theta, state.counts, names_of(settings["log"]), state.round, state.sigma)


def watch(settings: Mapping[str, Any], state: AdditiveState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a state on the server's table."""
    model = model_of(settings, state, schema)
    return {} if test is None else {name_of_score(model.bins): score_of(model, schema, test)}


def outcome(federation: Federation, settings: Mapping[str, Any], state: AdditiveState) -> Outcome:
    """Importances, the shapes of the most important features, and the arrays."""
    import pandas

    model = model_of(settings, state, federation.schema)
    first = sorted(model.importance.items(), key=lambda pair: -pair[1])
    curves, dots = shape_drawings(model, [name for name, _ in first[:8]])
    return Outcome(
        tables={"Importance of the features": pandas.DataFrame(first, columns=["feature", "mean size of its contribution"])},
        arrays={"theta": state.theta, "counts": state.counts},
        curves=curves,
        dots=dots,
    )


def _stepped(state: AdditiveState, residuals: Array, bins: Bins, *, momentum: float, floor: float) -> AdditiveState:
    """A heavy-ball step; bins of neither records nor noise stay where they are."""
    curvature = np.maximum(state.counts, 0.0) * (0.25 if bins.classes else 1.0) + floor
    rates = np.divide(2 / len(bins.features), curvature, out=np.zeros_like(curvature), where=curvature > 0)
    velocity = momentum * state.velocity + rates * residuals
    return replace(state, round=state.round + 1, theta=state.theta + velocity, velocity=velocity)


def _starts(sizes: tuple[int, ...]) -> list[int]:
    """The place of each feature's first bin."""
    return [sum(sizes[:j]) for j in range(len(sizes))]


def _added(numbers: Array, bins: Array, sizes: tuple[int, ...], bounds: Bounds | None) -> Array:
    """Add one number of each record (..., n) to one bin of each feature: shape (..., sum(sizes))."""
    if bounds is not None:
        numbers = whole(numbers[..., None], bound_in(bounds, ""), times=len(sizes))[..., 0]
    lead = numbers.shape[:-1]
    parties = int(np.prod(lead, dtype=int))
    party = np.arange(parties).reshape((*lead, 1))
    found = [
        np.bincount((party * size + bins[..., j]).ravel(), numbers.ravel(), parties * size).reshape((*lead, size))
        for j, size in enumerate(sizes)
    ]
    return np.concatenate(found, axis=-1)
