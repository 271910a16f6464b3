"""Random-structure forests: splits from a public seed, and leaves that vote by noisy counts or by a private choice.

    server:  splits of all trees                                                             from a public seed
             vote "counts":  counts of the classes in each leaf -> sum with noise; shares of the counts vote
             vote "choice":  one class for each leaf, all leaves in one question (`choose_many`)

A record lies in one leaf of a tree. With `parts` every tree has records of its own, by a public hash of a record's bins, so
that a record lies in one leaf of one tree: all leaves of all trees are one event of the whole epsilon (disjoint records compose
in parallel). Else it lies in one leaf of each tree: counts of T trees have the length sqrt(T), or T in l1, and choices are
asked tree by tree at epsilon / T each, since trees add up.

The part of a record has to follow from the record alone. A place in a table would not do: it changes when a record joins before
it, and many records would change their tree at once.

No smooth sensitivity is offered (Fletcher & Islam 2017 noise the majority of a leaf by it). It follows from the leaf's exact
counts, so that only a place that sees these can scale the noise, and noise in shares or at the party cannot. Permute and flip
on the counts needs none, and its error is never larger than that of the exponential mechanism.

Releases : counts of classes, of shape (trees, leaves, classes), once; or one class for each leaf. Splits reveal nothing.
State    : none at the parties.
Unit     : record, l1 = l2 = the heaviest weight with parts.
Source   : Jagannathan, Pillaipakkamnatt & Wright 2009; Fletcher & Islam 2017. Differs: one split a level, parts by a hash,
           permute and flip for votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.bound import Bounds, l1
from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.core.party import Party
from hedgerow.core.question import local
from hedgerow.core.whole import held
from hedgerow.data import Schema, complete_cases, load
from hedgerow.display import displayed
from hedgerow.errors import BudgetInvalid, CheckpointMismatch, SettingsInvalid
from hedgerow.privacy.choice import ManyChoice, choose_many
from hedgerow.privacy.choice.mechanisms import Law
from hedgerow.privacy.shares import BudgetShares, Share, divided

from .bins import Bins, binned
from .charged import charged
from .noise import ball, deviation, refuse_choices_elsewhere
from .reading import refuse_undeclared, score_of
from .structures import RandomStructure, part_of
from .votes import VotingForest, classes_only, shares_of, shown, watched

Vote = Literal["counts", "choice"]


@displayed
@dataclass(frozen=True)
class VotesState:
    """A random-structure forest after some questions.

    Attributes
    ----------
    round : int
        Questions asked so far.
    value : array of shape (trees so far, leaves, classes)
        What each leaf says of the classes.
    """

    round: int
    value: Array


@local(additive=True, stackable=True, holds=True)
def leaf_votes(
    broadcast: Mapping[str, Array],
    party: Party,
    rng: Any,
    *,
    n_classes: int,
    parts: bool,
    structure: int,
    bounds: Bounds | None = None,
) -> Array:
    """Count the classes of the records of each leaf.

    Parameters
    ----------
    broadcast : mapping
        `feature` (trees, depth) and `right` (trees, depth, bins), as in `RandomStructure`.
    party : Party
        With the columns that `binned` prepares.
    n_classes : int
    parts : bool
        Whether a record is in one tree alone.
    structure : int
        Public seed of the parts.
    bounds : Bound, optional
        Behind noise: each record is held to it, in whole steps.

    Returns
    -------
    array of shape (trees * leaves, n_classes)
        With a leading axis for parties where they are stacked.
    """
    bins = party["bins"]
    trees = RandomStructure(broadcast["feature"], broadcast["right"].astype(bool))
    count, leaves, lead = len(trees.feature), trees.leaves, party.w.shape[:-1]
    w = held(party.w, bounds, times=1 if parts else count)
    whose = part_of(bins, count, structure) if parts else None
    parties = int(np.prod(lead, dtype=int))
    first = leaves * np.arange(parties).reshape((*lead, 1))
    target = party["target"].astype(np.int64)
    found = np.empty((parties, count, leaves * n_classes))
    for tree in range(count):
        cell = (first + trees.leaves_of(tree, bins)) * n_classes + target
        weight = w if whose is None else np.where(whose == tree, w, 0.0)
        found[:, tree] = np.bincount(cell.ravel(), weight.ravel(), parties * leaves * n_classes).reshape(parties, -1)
    return found.reshape((*lead, count * leaves, n_classes))


@program(
    "A forest of random structure whose leaves vote by noisy counts, or by a private choice.",
    name="private_forest",
    watch=lambda settings, state, schema, test: watched(model_of(settings, state, schema), schema, test),
    score=lambda settings, state, schema, table: score_of(model_of(settings, state, schema), schema, table),
    metric=lambda schema: ("accuracy", True),
    outcome=lambda federation, settings, state: shown(model_of(settings, state, federation.schema), {"value": state.value}),
    alone=lambda settings, rounds: {**settings, "vote": "counts"},  # a choice without a budget is none
    case=lambda: Case(load("breast_cancer").take(range(200)), {"trees": 4, "depth": 2, "n_bins": 4}),
)
def grow_private_forest(
    federation: Federation,
    *,
    trees: int = 32,
    depth: int = 8,
    vote: Vote = "counts",
    parts: bool = False,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    law: Law = "permute and flip",
    structure: int = 0,
    start: VotesState | None = None,
) -> Iterator[VotesState]:
    """Let the leaves of random trees vote.

    Parameters
    ----------
    federation : Federation
        With a schema that declares the range of every numeric feature; the target has classes.
    trees, depth : int
        Trees, and levels of each.
    vote : {"counts", "choice"}
        Shares of noisy counts, or the class that a private choice takes for each leaf.
    parts : bool
        Whether every tree has records of its own.
    n_bins, log, features, target
        As `hedgerow.trees.additive.additive_model`.
    epsilon, delta : float, optional
        A budget for the program. Choices are paid by epsilon alone. Without it counts are asked through the channel as it is.
    noise_at, least
        As `hedgerow.trees.additive.additive_model`, of counts.
    law : {"exponential", "noisy max", "permute and flip"}
        Of choices; see `hedgerow.privacy.choice.Choice`.
    structure : int
        Public seed of the splits, and of the parts.
    start : VotesState, optional
        Continue from this state.

    Yields
    ------
    VotesState
        After each question.

    Raises
    ------
    SettingsInvalid (HR-511), MissingColumn (HR-403), SchemaInvalid (HR-409), BudgetInvalid (HR-214), SlotFilled (HR-212),
    BudgetExhausted (HR-213)
        Before any party is asked.
    UnboundedSum (HR-210)
        Noise is added, and weights declare no range.
    CheckpointMismatch (HR-103)
        `start` is of other trees, another depth or target, or of another vote.
    """
    if not 1 <= depth <= 12 or trees < 1 or vote not in ("counts", "choice"):
        raise SettingsInvalid(
            f"{trees!r} trees of depth {depth!r} that vote by {vote!r}.",
            remedy='Give one tree or more, a depth from 1 to 12, and vote="counts" or vote="choice".',
        )
    bins = Bins.of(federation.schema, features=features, target=target, n_bins=n_bins, log=log)
    classes_only(bins)
    refuse_undeclared(bins, noisy=federation.protection.noisy or epsilon is not None)
    if vote == "choice" and (epsilon is None or delta):
        raise BudgetInvalid(
            f"votes by choice with epsilon={epsilon!r} and delta={delta!r}.",
            remedy="Give an epsilon and no delta: choices are paid by epsilon alone.",
        )
    if vote == "choice":
        refuse_choices_elsewhere(noise_at)
    heaviest, drawn = bins.heaviest or 1.0, RandomStructure.draw(bins, trees=trees, depth=depth, seed=structure)
    read = [*(column.name for column in bins.features), bins.target.name]
    federation = complete_cases(federation, read, count=epsilon is None)
    prepared = federation.prepare(binned, bins=bins)
    ask = partial(leaf_votes, n_classes=len(bins.classes), parts=parts, structure=structure)
    shape = (-1, drawn.leaves, len(bins.classes))
    state = VotesState(0, np.zeros((0, *shape[1:])))
    if start is not None:
        state = _continued(start, shape[1:], trees=trees, every=trees if vote == "counts" or parts else 1, vote=vote)
    plan = BudgetShares(epsilon, delta, noise_at, least)
    if vote == "counts":
        if state.round == 0:
            asked = plan.handles(prepared, {"votes": Share(1.0)}, begins=True)["votes"]
            bound = None if bins.bound is None else ball(asked, 1 if parts else trees, heaviest)
            sigma = deviation(asked, bound, trees * drawn.leaves * len(bins.classes))
            counts = asked.sum(ask, drawn.broadcast, bound=bound).reshape(shape)
            yield VotesState(1, shares_of(counts, sigma))
        return
    asked_of = [drawn] if parts else [drawn.some(slice(tree, tree + 1)) for tree in range(trees)]
    bound, spent = l1(heaviest, "record"), divided(epsilon or 0.0, len(asked_of))
    choices = len(asked_of) * [ManyChoice(law, spent, monotonic=True).event(bound)]
    plan.handles(prepared, {}, besides=choices, begins=start is None)
    for one in asked_of[state.round :]:
        chosen = choose_many(
            prepared,
            ask,
            one.broadcast,
            bound=bound,
            epsilon=spent,
            law=law,
            monotonic=True,
        )
        votes = np.eye(len(bins.classes))[chosen].reshape(shape)
        state = VotesState(state.round + 1, np.concatenate([state.value, votes]))
        yield state


def private_forest(
    federation: Federation,
    *,
    trees: int = 32,
    depth: int = 8,
    vote: Vote = "counts",
    parts: bool = False,
    n_bins: int = 16,
    log: Sequence[str] = (),
    features: Sequence[str] | None = None,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    law: Law = "permute and flip",
    structure: int = 0,
) -> VotingForest:
    """Let the leaves of random trees vote; parameters, releases and errors are those of `grow_private_forest`."""
    bins: dict[str, Any] = {"n_bins": n_bins, "log": log, "features": features, "target": target}
    drawn: dict[str, Any] = {"trees": trees, "depth": depth, "structure": structure}
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise_at": noise_at, "least": least, "law": law}
    asked_before = len(federation.ledger)
    *_, state = grow_private_forest(federation, vote=vote, parts=parts, **bins, **drawn, **budget)
    made: VotingForest = charged(model_of(bins | drawn, state, federation.schema), federation, asked_before, delta)
    return made


def _continued(start: VotesState, leaves: tuple[int, ...], *, trees: int, every: int, vote: Vote) -> VotesState:
    """A state from which a forest goes on, if each of its questions was about so many trees, and its leaves vote alike."""
    asked = len(start.value)
    alike = vote == "counts" or bool(np.isin(start.value, (0.0, 1.0)).all())
    if asked != every * start.round or asked > trees or start.value.shape[1:] != leaves or not alike:
        raise CheckpointMismatch(
            f"a state of round {start.round} with votes {start.value.shape}, in a forest of {trees} trees of leaves {leaves} "
            f"that vote by {vote!r}.",
            remedy="Continue with the trees, depth, parts and vote with which the state was made.",
        )
    return start


def model_of(settings: Mapping[str, Any], state: VotesState, schema: Schema) -> VotingForest:
    """The forest of a state."""
    bins = Bins.of(schema, **{name: settings[name] for name in ("features", "target", "n_bins", "log")})
    drawn = RandomStructure.draw(bins, trees=settings["trees"], depth=settings["depth"], seed=settings["structure"])
    return VotingForest("random structure", bins, drawn, state.value)
