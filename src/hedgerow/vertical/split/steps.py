"""What a party computes in a batch of split training; every function is one line of Algorithm 5, or two.

    forward     4   z = f_k(x_k) of the batch's records                              sender, to the label holder
    learn       5   out = top(merge(z)); 6 loss, backward, own step; keeps dL/dz     `then` of the label holder
    slopes      7   dL/dz                                                            sender, to the feature holders
    backward    8   z = f_k(x_k) again; backward along dL/dz, own step               `then` of a feature holder

A feature holder keeps nothing between 4 and 8 but its weights: it computes z again, with the same bits, so that a party that
dies in between has lost nothing. Layers that draw random numbers draw them again from a seed that it keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.crypto.context import description_digest
from hedgerow.errors import MessageRefused, StateLost
from hedgerow.learn.models import hits
from hedgerow.vertical.leaks import LabelDP, NoPeek, Observer
from hedgerow.vertical.leaks.label_dp import SAID
from hedgerow.vertical.leaks.observer import forget

from .piece import OwnPart, tensor
from .reading import Batches, OwnFeatures, OwnLabel

Merge = Literal["sum", "concat", "maximum"]
"""How the outputs of several parts meet at the label holder."""

Letters = Literal["exact", "float16"]
"""In which form outputs and slopes are sent: with all their bits, or with those of half precision."""


@travels
@dataclass(frozen=True, eq=False)
class Bottom:
    """A feature holder's part.

    Parameters
    ----------
    piece : OwnPart
    features : OwnFeatures
    batches : Batches
    width : int
        Numbers of its output for a record.
    block : tuple of (int, int)
        Where its outputs begin among those of all, and how many all are; for a sum (0, its width).
    letters : {"exact", "float16"}
    nopeek : NoPeek, optional
        The feature holder's own term.
    observer : Observer, optional
        Keeps what is sent, for the measurement of what it tells.
    """

    piece: OwnPart
    features: OwnFeatures
    batches: Batches
    width: int
    block: tuple[int, int]
    letters: Letters = "exact"
    nopeek: NoPeek | None = None
    observer: Observer | None = None

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions."""
        return description_digest(("bottom", *(getattr(self, one.name) for one in fields(self))))

    def rows(self, party: Party, at: np.ndarray) -> np.ndarray:
        """Places of the records of the batch that a broadcast [epoch, batch] names."""
        return self.batches.rows(len(party.w), int(at[0]), int(at[1]))

    def inputs(self, party: Party, at: np.ndarray) -> Tensor:
        """The module's input for the batch, shape (batch, ...)."""
        return self.features.rows(party, self.rows(party, at), self.piece.dtype)


@travels
@dataclass(frozen=True, eq=False)
class Top:
    """The label holder's part.

    Parameters
    ----------
    piece : OwnPart
    label : OwnLabel
    batches : Batches
    merge : {"sum", "concat", "maximum"}
    widths : tuple of int
        Of the outputs of all bottoms, in their order.
    own : Bottom, optional
        Where the label holder has features of its own.
    letters : {"exact", "float16"}
    keeps : str
        Under which it keeps slopes, losses and scores.
    privacy : LabelDP, optional
        Replaces labels at random, once.
    defence : GradientDefence, optional
        Disturbs the slopes that are sent.
    observer : Observer, optional
        Keeps what is sent, for the measurement of what it tells.
    """

    piece: OwnPart
    label: OwnLabel
    batches: Batches
    merge: Merge
    widths: tuple[int, ...]
    own: Bottom | None = None
    letters: Letters = "exact"
    keeps: str = "split"
    privacy: LabelDP | None = None
    defence: Any = None
    observer: Observer | None = None

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions."""
        return description_digest(("top", *(getattr(self, one.name) for one in fields(self))))

    def merged(self, received: Tensor, own: Tensor | None) -> Tensor:
        """The top's input from what others sent together, and from the label holder's own output."""
        return merged(self.merge, self.widths, received, own, None if self.own is None else self.own.block[0])

    @property
    def width(self) -> int:
        """Numbers that arrive for each record."""
        return self.widths[0] if self.merge == "sum" else sum(self.widths)

    def labels(self, party: Party) -> np.ndarray:
        """The labels of training: as they are, or as they were said once.

        Raises
        ------
        StateLost (HR-615)
            They were to be said, and were not.
        """
        if self.privacy is None:
            return np.asarray(party[self.label.column])
        if SAID not in party.state:
            raise StateLost("the label holder keeps no labels that were said.", remedy="Begin the training anew.")
        return np.asarray(party.state[SAID])

    def mean(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss that is minimised: the mean of a batch, corrected for labels that were replaced."""
        if self.privacy is None:
            return self.label.losses(output, target).mean()
        return self.privacy.loss(output, target)


def merged(merge: Merge, widths: tuple[int, ...], received: Tensor, own: Tensor | None, start: int | None) -> Tensor:
    """What outputs of several parts are together; one's own output stands at `start` among those of all."""
    if merge == "sum":
        return received if own is None else received + own
    if own is not None and start is not None:
        received = torch.cat([received[:, :start], own, received[:, start + own.shape[1] :]], 1)
    return received if merge == "concat" else received.view(len(received), len(widths), -1).amax(1)


def sendable(values: Tensor, letters: Letters) -> np.ndarray:
    """Numbers as they are sent."""
    array: np.ndarray = values.detach().numpy()
    return array.astype(np.float16 if letters == "float16" else array.dtype)


def arrived(party: Party, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """What other parties sent, if it is of this shape and finite.

    Raises
    ------
    MessageRefused (HR-242)
    """
    given = np.asarray(party.received)
    if given.shape != shape or given.dtype.kind != "f" or not np.isfinite(given).all():
        raise MessageRefused(f"an array of shape {given.shape} came where {shape} finite numbers belong.")
    return tensor(given, dtype)


@local
def begin(
    broadcast: dict[str, np.ndarray], party: Party, rng: Any, *, piece: OwnPart, observer: Observer | None = None
) -> None:
    """1, 2: keep the initial weights of one's part; forget what was observed of another training."""
    piece.begin(broadcast, party.state)
    if observer is not None:
        forget(party.state)


@local
def say_labels(broadcast: Any, party: Party, rng: Any, *, column: str, privacy: LabelDP) -> None:
    """Replace labels at random, the first time; later what was said then is said again."""
    privacy.once(party.state, party[column], rng.entropy)


@local
def forward(broadcast: np.ndarray, party: Party, rng: Any, *, bottoms: Mapping[str, Bottom]) -> np.ndarray:
    """4: outputs for the batch, shape (batch, numbers), zeros where those of others belong."""
    bottom = bottoms[party.id]
    module = bottom.piece.opened(party.state)
    with torch.no_grad(), bottom.piece.randomness(party.state, rng):
        made = sendable(module(bottom.inputs(party, broadcast)), bottom.letters)
    observed(bottom.observer, party, broadcast, bottom.batches, made)
    start, total = bottom.block
    return made if bottom.width == total else np.pad(made, ((0, 0), (start, total - start - bottom.width)))


@local
def learn(broadcast: np.ndarray, party: Party, rng: Any, *, top: Top) -> None:
    """5 and 6: the label holder's step on what came; it keeps dL/dz, shape (batch, numbers)."""
    rows = top.batches.rows(len(party.w), int(broadcast[0]), int(broadcast[1]))
    z = arrived(party, (len(rows), top.width), top.piece.dtype).requires_grad_()
    module, bottom = top.piece.opened(party.state), None if top.own is None else top.own.piece.opened(party.state)
    target = top.label.rows(top.labels(party), rows, top.piece.dtype)
    with torch.enable_grad():
        own = None
        if bottom is not None and top.own is not None:
            with top.own.piece.randomness(party.state, rng):
                own = bottom(top.own.inputs(party, broadcast))
        with top.piece.randomness(party.state, rng):
            output = module(top.merged(z, own))
        top.mean(output, target).backward()
    top.piece.stepped(module, party.state)
    if bottom is not None and top.own is not None:
        top.own.piece.stepped(bottom, party.state)
    assert z.grad is not None
    sent = sendable(z.grad, top.letters)
    if top.defence is not None:
        sent = top.defence.protect(sent, rng.entropy)
    party.state[f"{top.keeps}/slopes"] = sent
    noted(party, top, rows, output.detach(), target)
    observed(top.observer, party, broadcast, top.batches, sent, output.detach())


@local
def slopes(broadcast: np.ndarray, party: Party, rng: Any, *, keeps: str, block: tuple[int, int]) -> np.ndarray:
    """7: dL/dz of a block of outputs, shape (batch, block[1])."""
    kept = party.state.get(f"{keeps}/slopes")
    if kept is None:
        raise StateLost("the party keeps no slopes: no batch went before.", remedy="Begin the training anew.")
    return np.array(kept[:, block[0] : block[0] + block[1]])


@local
def backward(broadcast: np.ndarray, party: Party, rng: Any, *, bottoms: Mapping[str, Bottom]) -> None:
    """8: a feature holder's step along the slopes that came."""
    bottom = bottoms[party.id]
    module = bottom.piece.opened(party.state)
    with torch.enable_grad(), bottom.piece.randomness(party.state):
        x = bottom.inputs(party, broadcast)
        z = module(x)
        along = arrived(party, (len(z), bottom.width), bottom.piece.dtype)
        if bottom.nopeek is None:
            z.backward(along)
        else:
            ((z * along).sum() + bottom.nopeek.term(x, z)).backward()
    bottom.piece.stepped(module, party.state)


@local
def scored(broadcast: np.ndarray, party: Party, rng: Any, *, top: Top) -> np.ndarray:
    """Loss and score of each record as the label holder keeps them, shape (n, 2); see `few_hidden`."""
    kept = party.state.get(f"{top.keeps}/records")
    if kept is None:
        raise StateLost("the label holder keeps no losses: no batch went before.", remedy="Begin the training anew.")
    return few_hidden(np.array(kept, np.float64), top, top.batches.people(len(party.w), "trained"), int(broadcast))


def few_hidden(rows: np.ndarray, top: Top, people: np.ndarray, least: int) -> np.ndarray:
    """Losses and scores, shape (n, 2); -1 as everybody's score where so few are right, or wrong, that their number tells."""
    wrong = len(people) - np.count_nonzero(rows[people, 1])
    if top.label.kind != "number" and (0 < wrong < least or 0 < len(people) - wrong < least):
        rows[:, 1] = -1.0
    return rows


def noted(party: Party, top: Top, rows: np.ndarray, output: Tensor, target: Tensor) -> None:
    """Keep loss and hit of each record of a batch, among those of all, shape (n, 2); what is released of them are sums."""
    key = f"{top.keeps}/records"
    before = party.state.get(key)
    kept = np.zeros((len(party.w), 2), np.float32) if before is None else np.array(before)
    with torch.no_grad():
        losses, right = top.label.losses(output, target), hits(top.label.kind, output, target)
        kept[rows] = torch.stack([losses.float(), right.float()], 1).numpy()
    party.state[key] = kept


def observed(
    observer: Observer | None, party: Party, at: np.ndarray, batches: Batches, sent: np.ndarray, score: Tensor | None = None
) -> None:
    """Let an observer keep what is sent of a batch, with the model's own score."""
    if observer is None:
        return
    n, epoch, batch = len(party.w), int(at[0]), int(at[1])
    own = None if score is None else (score[:, 0] if score.ndim == 2 and score.shape[1] == 1 else score).numpy()
    observer.note(party.state, epoch + 1, batch, batches.rows(n, epoch, batch), sent, own, n=n, size=batches.size)
