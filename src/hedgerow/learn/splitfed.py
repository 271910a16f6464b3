"""Split networks of parties that hold the same columns: one after the other (horizontal split learning), or at once (SplitFed).

    in each round:
       hub -> party k: weights of the bottom; k draws the order of its batches       gather (its number of records)
       for each batch:
          party: z = bottom(x), sent to the hub with the labels                      gather, a row for each record
          hub:   loss(top(z), y), backward; updates the top; dL/dz, to this party    each
          party: z again; backward along dL/dz; updates its bottom                   each
       party -> hub: the bottom                                                      sum
    sequential:  the parties take turns with all their batches; the next one begins with the bottom of the last one
    parallel:    all parties train the same bottom, each a copy, which are averaged by records when the round ends; the hub
                 updates its one top along their first batches, in the order of the parties, then their second ones

Nothing protects a record here, which is why `labels="shared"` has to be said: the hub reads the label and the outputs of the
bottom of every record, and knows the bottom too. A channel that clips, adds noise or hides rows is refused, and so is a budget.

Releases : of each record its label, its weight and z, once for each pass; the bottoms, d numbers, each in turn or their
           average. Charged as `rows`, batches of one record and the rest as `nonprivate`.
State    : the bottom, and the order of the batches, at each party; the round begins both anew.
Source   : Sempere Hernández 2024, section 3.2 (sequential); Thapa et al., AAAI 2022, SplitFed V2 (parallel). Differs: parties
           come in the federation's order and not in a drawn one; bottoms pass through the hub, and not from party to party.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from hedgerow.core.federation import Federation
from hedgerow.core.layouts import FEW
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.errors import LabelsExposed, ModelInvalid, NobodyAnswered, SettingsInvalid, StateLost, UnlawfulChannel

from .descent.work import tensors
from .fedavg import ModelState
from .models import Model
from .scale import Scale
from .training import Training, mean_of

log = logging.getLogger("hedgerow.learn")

SplitOrder = Literal["parallel", "sequential"]

BOTTOM, BATCHES, ROUND = "splitfed/bottom", "splitfed/batches", "splitfed/round"
"""What a party keeps."""


def splitfed(
    federation: Federation,
    bottom: nn.Module,
    top: nn.Module,
    *,
    rounds: int,
    order: SplitOrder = "parallel",
    epochs: int = 1,
    batch_size: int = 10,
    learning_rate: float = 0.1,
    labels: Literal["shared"] | None = None,
    features: list[str] | None = None,
    scale: Scale = "ranges",
    start: ModelState | None = None,
) -> Iterator[ModelState]:
    """Train a network whose first layers lie at the parties, which hold the same columns, and whose last layers at the hub.

    Parameters
    ----------
    bottom, top : torch.nn.Module
        From a record's features to z, and from z to the output that the target needs. They are not changed.
    rounds : int
        Rounds in all, those before `start` included; in each of them every party takes `epochs` passes over its records.
    order : {"parallel", "sequential"}
        Whether bottoms are averaged in each round, weighted by records, or passed from party to party.
    epochs, batch_size, learning_rate
        Of plain SGD of both parts; a `batch_size` of 0 takes all records of a party.
    labels : "shared"
        Says that the hub may know the labels of all records, and what the bottom tells of their columns.
    features, scale
        As `hedgerow.learn.fedavg`.
    start : ModelState, optional
        Continue after this state.

    Yields
    ------
    ModelState
        After each round, with the weights of `nn.Sequential(bottom, top)`; `hedgerow.learn.with_weights` makes a module of it.

    Raises
    ------
    LabelsExposed (HR-247)
        `labels` is not "shared".
    UnlawfulChannel (HR-211)
        The channel clips, adds noise, compresses or hides rows.
    ModelInvalid (HR-510), SettingsInvalid (HR-511)
        Before any party is asked, as the others.
    """
    if labels not in (None, "shared"):
        raise SettingsInvalid(f"labels is {labels!r}.", remedy='Say "shared", or train by fedavg, which sends no label.')
    if labels is None:
        raise LabelsExposed(
            "the hub would receive the label of each record, and with it what the bottom makes of the record.",
            remedy="Train the whole network by fedavg, which sends totals.\n"
            'Where the hub may know labels and outputs of records, say so: labels="shared".',
        )
    if order not in get_args(SplitOrder):
        raise SettingsInvalid(f"order is {order!r}.", remedy=f"It is one of {', '.join(get_args(SplitOrder))}.")
    if not federation.protection.open:
        raise UnlawfulChannel(
            "the hub trains its part on the outputs of single records, which this channel would clip, blur or hide.",
            remedy="Train the whole network by fedavg, which asks for totals.",
        )
    own: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    training = Training.of(federation, nn.Sequential(bottom, top), rounds, own | {"features": features, "scale": scale})
    split = SplitParts.of(training, bottom, top)
    w, flat = np.split(training.begin(start), [len(split.bottom.initial)])
    hub = Hub(split.top, torch.from_numpy(flat.copy()), learning_rate)
    for t in training.left(start):
        names = list(training.federation.names)
        for turn in [[name] for name in names] if order == "sequential" else [names]:
            w = passes(training.federation, turn, split, hub, t, w)
        yield ModelState(t + 1, training.model.named(np.concatenate([w, hub.weights.numpy()])))


@dataclass(frozen=True)
class SplitParts:
    """The two parts of a network, and how a party trains its own: `epochs` passes of batches of `size`, 0 for all."""

    bottom: Model
    top: Model
    epochs: int
    size: int
    rate: float

    @classmethod
    def of(cls, training: Training, bottom: nn.Module, top: nn.Module) -> SplitParts:
        """The parts of a network that was checked as a whole.

        Raises
        ------
        ModelInvalid (HR-510)
        """
        whole, solver = training.model, training.solver
        parts = Model(bottom, whole.kind, low=whole.low, scale=whole.scale, stackable=False), Model(top, whole.kind)
        if whole.stochastic:
            raise ModelInvalid("a layer draws random numbers, and z is computed twice.", remedy="Leave dropout out.")
        if sum(len(part.initial) for part in parts) != len(whole.initial):
            raise ModelInvalid("bottom and top share weights, and lie at different places.", remedy="Give each its own layers.")
        return cls(*parts, int(training.solver.epochs), solver.batch_size or 0, solver.learning_rate)  # type: ignore[call-overload]

    def count(self, n: int) -> int:
        """Batches of a party with n records in a round."""
        return self.epochs * -(-n // (self.size or max(n, 1)))


@dataclass
class Hub:
    """The hub's part and its weights, shape (d,), which change with each batch."""

    top: Model
    weights: Tensor
    rate: float

    def learn(self, z: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Take a step along the mean loss of a batch; return dL/dz, of the shape of z."""
        flat, inputs = self.weights.clone().requires_grad_(), torch.from_numpy(z.astype(np.float32)).requires_grad_()
        target = torch.from_numpy(y).to(torch.int64 if self.top.kind == "category" else torch.float32)
        counts = torch.from_numpy(w).to(torch.float32)
        loss = (counts * self.top.losses(flat, inputs, target)).sum() / counts.sum().clamp_min(1e-12)
        own, slopes = torch.autograd.grad(loss, (flat, inputs))
        self.weights = self.weights - self.rate * own
        return slopes.numpy()


def passes(federation: Federation, turn: list[str], split: SplitParts, hub: Hub, t: int, w: np.ndarray) -> np.ndarray:
    """All batches in round t of the parties whose turn it is, from the bottom w; return the mean of their bottoms."""
    setting = {"model": split.bottom, "size": split.size}
    try:
        begun = federation.pick(turn).gather(
            partial(begin, epochs=split.epochs), {"w": w, "round": np.asarray(t)}, init=nothing_yet
        )
    except NobodyAnswered:
        log.warning("%s did not answer in round %d: training goes on without it", ", ".join(turn), t + 1)
        return w
    left = {name: split.count(int(sent["records"])) for name, sent in begun.items()}
    for step in range(max(left.values())):
        for name in [name for name, count in left.items() if count > step]:
            try:
                one, at = federation.pick([name]), place(t, step)
                slopes = hub.learn(**one.gather(partial(outputs, **setting), at)[name])
                one.each(partial(backward, **setting, rate=split.rate), {"at": at, "slopes": slopes})
            except NobodyAnswered:
                log.warning("%s left in batch %d of round %d: its bottom does not count", name, step + 1, t + 1)
                del left[name]
    if not left:
        return w
    stayed = federation.pick(list(left))
    try:
        return w + mean_of(stayed.sum(moved, {"w": w, "round": np.asarray(t)}), stayed)
    except NobodyAnswered:
        return w


def place(t: int, step: int) -> np.ndarray:
    """[round, step] of a batch, and zeros: the ledger foresees answers to short broadcasts by their numbers, to long ones by
    their length, and a later batch, of which made-up records fill none or one row, is to be charged like the first."""
    return np.array([t, step, *[0] * FEW])


@travels
def nothing_yet(broadcast: Mapping[str, np.ndarray], party: Party) -> dict[str, np.ndarray]:
    """What a party keeps before its first round."""
    return {ROUND: np.asarray(-1)}


@local
def begin(broadcast: Mapping[str, np.ndarray], party: Party, rng: Any, *, epochs: int) -> dict[str, Any]:
    """Keep the bottom and an order of batches for each pass; return how many records there are."""
    n = len(party.w)
    party.state[BOTTOM] = np.array(broadcast["w"], np.float32)
    party.state[BATCHES] = np.stack([rng.permutation(n) for _ in range(epochs)])
    party.state[ROUND] = np.array(broadcast["round"])
    return {"records": np.asarray(float(n))}


def batch_of(party: Party, at: np.ndarray, size: int) -> np.ndarray:
    """Places of the records of a batch [round, step].

    Raises
    ------
    StateLost (HR-615)
        The party did not begin this round.
    """
    if BATCHES not in party.state or int(party.state[ROUND]) != int(at[0]):
        raise StateLost("the party has not begun this round.", remedy="Begin the training anew.")
    n = len(party.w)
    size = size or n
    epoch, batch = divmod(int(at[1]), -(-n // size))
    found: np.ndarray = party.state[BATCHES][epoch][batch * size : (batch + 1) * size]
    return found


@local
def outputs(broadcast: np.ndarray, party: Party, rng: Any, *, model: Model, size: int) -> dict[str, np.ndarray]:
    """Of each record of a batch z, label y and weight w."""
    rows = batch_of(party, broadcast, size)
    x, target, w = (value[rows] for value in tensors(party))
    with torch.no_grad():
        z = model.outputs(torch.from_numpy(np.array(party.state[BOTTOM])), x)
    return {"z": z.numpy(), "y": target.double().numpy(), "w": w.double().numpy()}


@local
def backward(broadcast: Mapping[str, np.ndarray], party: Party, rng: Any, *, model: Model, size: int, rate: float) -> None:
    """Update the bottom along the slopes of a batch."""
    rows, slopes = batch_of(party, broadcast["at"], size), torch.from_numpy(np.array(broadcast["slopes"], np.float32))
    flat = torch.from_numpy(np.array(party.state[BOTTOM])).requires_grad_()
    (gradient,) = torch.autograd.grad(model.outputs(flat, tensors(party)[0][rows]), flat, slopes)
    party.state[BOTTOM] = (flat.detach() - rate * gradient).numpy()


@local
def moved(broadcast: Mapping[str, np.ndarray], party: Party, rng: Any) -> dict[str, Any]:
    """The change of the bottom in this round, (d,), times the records, and how many they are.

    Raises
    ------
    StateLost (HR-615)
    """
    if ROUND not in party.state or int(party.state[ROUND]) != int(broadcast["round"]):
        raise StateLost("the party has not begun this round.", remedy="Begin the training anew.")
    return {"update": party.n * (party.state[BOTTOM] - broadcast["w"]), "n": party.n}
