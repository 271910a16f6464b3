"""Totally random trees, boosted in batches: splits from a public seed, and only leaves are asked.

    server:  splits of all trees                                                             from a public seed
             repeat for each batch of B trees:
                 splits, earlier leaves  -> parties                                          broadcast
                 G, H  <- for each leaf of the batch: sum of w g and of w 4 h                local
                          g = y - p, h = p (1 - p), p = expit(sum of earlier leaves)         of numbers y - eta and 1
                 G, H  <- sum over parties                                                   sum, server
                 leaf  <- rate / B * G / (max(H / 4, 0) + floor)

The denominators have a public floor: twice the deviation of the noise. A record lies in one leaf of each tree of a batch and
adds (y - p, 4 p (1 - p)) to it. Over both classes and all p its length is at most sqrt((71 + 8 sqrt 2) / 64) = 1.134, at
p = (2 + sqrt 2) / 8 for y = 1, so that a batch moves by sqrt(B) times that and the heaviest weight; in l1 by 25 / 16 B, at
p = 3 / 8. Of numbers it is (r, 1) with |r| <= 1: sqrt(2 B), and 2 B. Behind noise a residual beyond half of the declared range
counts as half of it, which is Huber's loss; without noise none is cut, which is least squares.

Releases : G and H, once for each batch, of shape (B, leaves, 2). Splits reveal nothing.
State    : none at the parties.
Unit     : record.
Source   : Maddock, Cormode, Wang, Maple & Jha 2022 (CCS), totally random splits with Newton leaves in batches. Differs: one
           split a level; the length of (g, 4 h) is that of both together, 1.134, where bounds one by one give sqrt 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from hedgerow.display import cell, displayed
from hedgerow.errors import SettingsInvalid
from hedgerow.privacy.shares import BudgetShares, Share

from .bins import Bins, binned
from .charged import ForestCost, charged, summary_of
from .noise import ball, deviation
from .reading import bin_numbers, name_of_score, named, refuse_undeclared, score_of, two_classes_or_a_number
from .structures import RandomStructure, reached

SQUARES = (71 + 8 * math.sqrt(2)) / 64 * (1 + 1e-15)
"""Largest squared length of (y - p, 4 p (1 - p))."""
MOST = 25 / 16
"""Largest sum of their sizes."""


@displayed
@dataclass(frozen=True)
class RandomTreesState:
    """Random trees after some batches.

    Attributes
    ----------
    round : int
        Batches asked so far.
    value : array of shape (trees so far, leaves)
        What a leaf adds to the log-odds, or to the mean in halves of the target's range.
    """

    round: int
    value: Array


@local(additive=True, stackable=True, holds=BITS)
def leaf_sums(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    features: int,
    classified: bool,
    clip: bool,
    bounds: Bounds | None = None,
) -> Array:
    """Add up first and second derivatives of the records of each leaf.

    Parameters
    ----------
    broadcast : mapping
        `feature` (trees, depth) and `right` (trees, depth, bins) as in `RandomStructure`, `value` (earlier trees, leaves).
    party : Party
        With the columns that `binned` prepares.
    features : int
        How many there are.
    classified : bool
        Whether the target is 0 or 1, and the model one of log-odds.
    clip : bool
        Whether residuals of numbers are cut to [-1, 1], as behind noise.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (trees of the batch, leaves, 2)
        Of (g, 4 h), or (r, 1) of numbers; with a leading axis for parties where they are stacked.
    """
    columns = [party["bins"][..., j].astype(np.int64) for j in range(features)]
    feature, right, value = broadcast["feature"], broadcast["right"], broadcast["value"]
    eta = predicted(feature[: len(value)], right[: len(value)], value, columns)
    if classified:
        p = special.expit(eta)
        added = np.stack([party["target"] - p, 4 * p * (1 - p)], axis=-1)
    else:
        residual = party["target"] - eta
        added = np.stack([np.clip(residual, -1.0, 1.0) if clip else residual, np.ones_like(residual)], axis=-1)
    added = party.w[..., None] * added
    batch = len(feature) - len(value)
    if bounds is not None:
        added = whole(added, bound_in(bounds, ""), times=batch)
    lead, leaves = party.w.shape[:-1], int(2 ** feature.shape[1])
    parties = int(np.prod(lead, dtype=int))
    first = leaves * np.arange(parties).reshape((*lead, 1))
    found = np.empty((batch, 2, parties * leaves))
    for t in range(batch):
        leaf = (first + reached(feature[len(value) + t], right[len(value) + t], columns)).ravel()
        for k in range(2):
            found[t, k] = np.bincount(leaf, added[..., k].ravel(), parties * leaves)
    return np.moveaxis(found.reshape(batch, 2, parties, leaves), (2, 0, 3, 1), (0, 1, 2, 3)).reshape((*lead, batch, leaves, 2))


def predicted(feature: Array, right: Array, value: Array, columns: Sequence[Array]) -> Array:
    """Sums of the leaves that records reach, one tree after the other: shape (..., n)."""
    found = np.zeros(columns[0].shape)
    for asked, goes, adds in zip(feature, right, value, strict=True):
        found += adds[reached(asked, goes, columns)]
    return found


@program(
    "Totally random trees, boosted in batches of which only leaves are asked (Maddock et al. 2022).",
    name="random_trees",
    watch=lambda settings, state, schema, test: watch(settings, state, schema, test),
    score=lambda settings, state, schema, table: score_of(model_of(settings, state, schema), schema, table),
    metric=lambda schema: ("accuracy" if schema.classifies else "R2", True),
    outcome=lambda federation, settings, state: outcome(federation, settings, state),
    case=lambda: Case(load("diabetes").take(range(200)), {"trees": 6, "batch": 2, "depth": 2, "n_bins": 4}),
)
def boost_random_trees(
    federation: Federation,
    *,
    trees: int = 400,
    depth: int = 3,
    batch: int = 20,
    rate: float = 1.0,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    structure: int = 0,
    floor: float = 1.0,
    start: RandomTreesState | None = None,
) -> Iterator[RandomTreesState]:
    """Boost random trees, one batch in a round.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; noise needs that of a numeric target, too.
    trees, depth, batch : int
        Trees, levels of each, and trees of a batch; 400, 3 and 20 were looked at on Adult. `trees` is a multiple of `batch`.
    rate : float
        Learning rate of a batch; each of its trees has its share.
    n_bins, log, features, target
        As `hedgerow.trees.additive.additive_model`.
    epsilon, delta, noise_at, least
        As `hedgerow.trees.additive.additive_model`; batches have equal parts of the budget.
    structure : int
        Public seed of the splits.
    floor : float
        Added to the second derivatives of a leaf where noise is smaller: behind noise, twice its deviation.
    start : RandomTreesState, optional
        Continue from this state.

    Yields
    ------
    RandomTreesState
        After each batch.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409), BudgetInvalid (HR-214), SlotFilled (HR-212)
        Before any party is asked; see `Bins.of` and `BudgetShares`.
    UnboundedSum (HR-210)
        Noise is added, and target or weights declare no range.
    """
    if not 1 <= depth <= 12 or batch < 1 or trees < batch or trees % batch or floor <= 0 or not rate > 0:
        raise SettingsInvalid(
            f"{trees!r} trees of depth {depth!r} in batches of {batch!r}, at rate {rate!r} with a floor of {floor!r}.",
            remedy="Give a depth from 1 to 12, a multiple of the batch as trees, and a rate and a floor above zero.",
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    two_classes_or_a_number(bins)
    clip = federation.protection.noisy or epsilon is not None
    refuse_undeclared(bins, noisy=clip)
    rounds = trees // batch
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=epsilon is None)
    plan = BudgetShares(epsilon, delta, noise_at, least)
    prepared = federation.prepare(binned, bins=bins)
    asked = plan.handles(prepared, {"leaves": Share(1.0, times=rounds)}, begins=start is None)["leaves"]
    drawn = RandomStructure.draw(bins, trees=trees, depth=depth, seed=structure)
    ask = partial(leaf_sums, features=len(bins.features), classified=bool(bins.classes), clip=clip)
    state = start or RandomTreesState(0, np.zeros((0, drawn.leaves)))
    sigma = deviation(asked, bound_of(asked, bins, batch), 2 * batch * drawn.leaves)
    while state.round < rounds:
        grown = drawn.some(slice(0, batch * (state.round + 1)))
        bound = bound_of(asked, bins, batch, None if clip else state.value)
        sums = asked.sum(ask, grown.broadcast | {"value": state.value}, bound=bound)
        curvature = np.maximum(sums[..., 1] / 4 if bins.classes else sums[..., 1], 0.0) + max(floor, 2 * sigma)
        state = RandomTreesState(state.round + 1, np.concatenate([state.value, rate / batch * sums[..., 0] / curvature]))
        yield state


def bound_of(federation: Federation, bins: Bins, batch: int, value: Array | None = None) -> Bound | None:
    """How far one record moves a batch whose residuals are cut to [-1, 1]; without noise, after leaves of any `value`."""
    if bins.bound is None:
        return None
    squares, most = (SQUARES, MOST) if bins.classes else (2.0, 2.0)
    if value is not None and not bins.classes:
        farthest = 1.0 + float(np.abs(value).max(-1, initial=0.0).sum())
        squares, most = farthest**2 + 1, farthest + 1
    return ball(federation, batch, bins.heaviest or 1.0, squares, most)


def random_trees(
    federation: Federation,
    *,
    trees: int = 400,
    depth: int = 3,
    batch: int = 20,
    rate: float = 1.0,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    structure: int = 0,
    floor: float = 1.0,
) -> RandomTrees:
    """Boost random trees to their end; parameters, releases and errors are those of `boost_random_trees`."""
    bins: dict[str, Any] = {"n_bins": n_bins, "log": log, "features": features, "target": target}
    drawn: dict[str, Any] = {"trees": trees, "depth": depth, "structure": structure}
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least}
    asked_before = len(federation.ledger)
    *_, state = boost_random_trees(federation, batch=batch, rate=rate, floor=floor, **bins, **drawn, **budget)
    made: RandomTrees = charged(model_of(bins | drawn, state, federation.schema), federation, asked_before, delta)
    return made


@dataclass(frozen=True, eq=False, repr=False)
class RandomTrees:
    """Boosted random trees.

    Attributes
    ----------
    bins : Bins
    structure : RandomStructure
    value : array of shape (trees, leaves)
        What a leaf adds to the log-odds, or to the mean in halves of the target's declared range.
    cost : ForestCost or None
        What was asked and spent for it; None of a model that was made from a state alone.
    """

    bins: Bins
    structure: RandomStructure
    value: Array
    cost: ForestCost | None = None

    @property
    def spent(self) -> tuple[float, float] | None:
        """Epsilon and delta of everything that its federation's ledger holds; None where that is not finite or not known."""
        return None if self.cost is None else self.cost.spent

    def summary(self) -> str:
        """Return the model as text, with what was spent and how it was protected."""
        return summary_of(self, self.cost)

    def decide(self, data: Any) -> Array:
        """Log-odds of new records, or their mean in units of the target: shape (n,).

        Raises
        ------
        MissingColumn, NotFinite, OutOfRange, SchemaInvalid (HR-403, 404, 405, 409)
            The data do not hold the features as declared, or lack a value.
        """
        columns = list(bin_numbers(self.bins, data).astype(np.int64).T)
        eta = predicted(self.structure.feature, self.structure.right, self.value, columns)
        return eta if self.bins.classes else np.asarray(eta * self.bins.scale + self.bins.centre)

    def predict(self, data: Any) -> Array:
        """The more probable class (0 or 1 for a binary target, else the level's word), or the mean within its range: (n,)."""
        found = self.decide(data)
        if self.bins.classes:
            return named(self.bins, (found > 0).astype(np.int64))
        low, high = self.bins.target.low, self.bins.target.high
        return np.asarray(np.clip(found, -np.inf if low is None else low, np.inf if high is None else high))

    def probabilities(self, data: Any) -> Array:
        """Probability of each class of `bins.classes`: shape (n, 2). For classification."""
        p = special.expit(self.decide(data))
        return np.stack([1 - p, p], axis=-1)

    def __str__(self) -> str:
        return repr(self)

    _repr_html_ = cell

    def __repr__(self) -> str:
        return f"RandomTrees({self.bins.target.name!r}, {len(self.value)} trees of depth {self.structure.feature.shape[1]})"


def model_of(settings: Mapping[str, Any], state: RandomTreesState, schema: Schema) -> RandomTrees:
    """The model of a state."""
    bins = Bins.of(schema, **{name: settings[name] for name in ("features", "target", "n_bins", "log")})
    drawn = RandomStructure.draw(bins, trees=settings["trees"], depth=settings["depth"], seed=settings["structure"])
    return RandomTrees(bins, drawn.some(slice(0, len(state.value))), state.value)


def watch(settings: Mapping[str, Any], state: RandomTreesState, schema: Schema, test: Table | None) -> dict[str, float]:
    """Score of a state on the server's table."""
    model = model_of(settings, state, schema)
    return {} if test is None else {name_of_score(model.bins): score_of(model, schema, test)}


def outcome(federation: Federation, settings: Mapping[str, Any], state: RandomTreesState) -> Any:
    """The arrays of the trees."""
    from hedgerow.report import Outcome

    model = model_of(settings, state, federation.schema)
    return Outcome(text={"The model": str(model)}, arrays=model.structure.broadcast | {"value": state.value})
