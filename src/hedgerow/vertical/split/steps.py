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
from torch import Tensor, nn

from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.crypto.aggregation import description_digest
from hedgerow.errors import MessageRefused, StateLost
from hedgerow.learn.models import hits

from .piece import Piece, tensor
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
    piece : Piece
    features : OwnFeatures
    batches : Batches
    width : int
        Numbers of its output for a record.
    block : tuple of (int, int)
        Where its outputs begin among those of all, and how many all are; for a sum (0, its width).
    letters : {"exact", "float16"}
    """

    piece: Piece
    features: OwnFeatures
    batches: Batches
    width: int
    block: tuple[int, int]
    letters: Letters = "exact"

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions."""
        return description_digest(("bottom", *(getattr(self, one.name) for one in fields(self))))

    def rows(self, party: Party, at: np.ndarray) -> np.ndarray:
        """Places of the records of the batch that a broadcast [epoch, batch] names."""
        return self.batches.rows(len(party.w), int(at[0]), int(at[1]))

    def output(self, party: Party, at: np.ndarray, module: nn.Module) -> Tensor:
        """Outputs for the batch, shape (batch, width)."""
        found: Tensor = module(self.features.rows(party, self.rows(party, at), self.piece.dtype))
        return found


@travels
@dataclass(frozen=True, eq=False)
class Top:
    """The label holder's part.

    Parameters
    ----------
    piece : Piece
    label : OwnLabel
    batches : Batches
    merge : {"sum", "concat", "maximum"}
    widths : tuple of int
        Of the outputs of all bottoms, in their order.
    own : Bottom, optional
        Where the label holder has features of its own.
    letters : {"exact", "float16"}
    keeps : str
        Under which it keeps slopes, losses and labels.
    """

    piece: Piece
    label: OwnLabel
    batches: Batches
    merge: Merge
    widths: tuple[int, ...]
    own: Bottom | None = None
    letters: Letters = "exact"
    keeps: str = "split"

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions."""
        return description_digest(("top", *(getattr(self, one.name) for one in fields(self))))

    def merged(self, received: Tensor, own: Tensor | None) -> Tensor:
        """The top's input from what others sent together, and from the label holder's own output."""
        if self.merge == "sum":
            return received if own is None else received + own
        if own is not None:
            assert self.own is not None
            start = self.own.block[0]
            received = torch.cat([received[:, :start], own, received[:, start + own.shape[1] :]], 1)
        if self.merge == "concat":
            return received
        return received.view(len(received), len(self.widths), -1).amax(1)

    @property
    def width(self) -> int:
        """Numbers that arrive for each record."""
        return self.widths[0] if self.merge == "sum" else sum(self.widths)

    def labels(self, party: Party) -> np.ndarray:
        """The labels of training: as they are, or as label privacy drew them once (`hedgerow.vertical.split.guarded`)."""
        kept = party.state.get(f"{self.keeps}/labels")
        return np.asarray(party[self.label.column] if kept is None else kept)


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
def begin(broadcast: dict[str, np.ndarray], party: Party, rng: Any, *, piece: Piece) -> None:
    """1, 2: keep the initial weights of one's part."""
    piece.begin(broadcast, party.state)


@local
def forward(broadcast: np.ndarray, party: Party, rng: Any, *, bottoms: Mapping[str, Bottom]) -> np.ndarray:
    """4: outputs for the batch, shape (batch, numbers), zeros where those of others belong."""
    bottom = bottoms[party.id]
    module = bottom.piece.opened(party.state)
    with torch.no_grad(), bottom.piece.randomness(party.state, rng):
        made = sendable(bottom.output(party, broadcast, module), bottom.letters)
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
                own = top.own.output(party, broadcast, bottom)
        with top.piece.randomness(party.state, rng):
            output = module(top.merged(z, own))
        losses = top.label.losses(output, target)
        losses.mean().backward()
    top.piece.stepped(module, party.state)
    if bottom is not None and top.own is not None:
        top.own.piece.stepped(bottom, party.state)
    assert z.grad is not None
    party.state[f"{top.keeps}/slopes"] = sendable(z.grad, top.letters)
    noted(party, top.keeps, rows, losses, output, target, top.label.kind)


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
        z = bottom.output(party, broadcast, module)
        z.backward(arrived(party, (len(z), bottom.width), bottom.piece.dtype))
    bottom.piece.stepped(module, party.state)


@local
def found(broadcast: Any, party: Party, rng: Any, *, seat: str, keeps: str) -> np.ndarray:
    """Loss and score of each record as the label holder keeps them, shape (n, 2); nothing of others."""
    if party.id != seat:
        return np.zeros((len(party.w), 0))
    return np.asarray(party.state[f"{keeps}/records"], np.float64)


@local
def one(broadcast: Any, party: Party, rng: Any, *, seat: str) -> np.ndarray:
    """One for each record, at the label holder, shape (n, 1)."""
    return np.full((len(party.w), 1), float(party.id == seat))


def noted(party: Party, keeps: str, rows: np.ndarray, losses: Tensor, output: Tensor, target: Tensor, kind: str) -> None:
    """Keep loss and hit of each record of a batch, among those of all, shape (n, 2); what is released of them are sums."""
    before = party.state.get(f"{keeps}/records")
    found = np.zeros((len(party.w), 2), np.float32) if before is None else before.copy()
    with torch.no_grad():
        found[rows] = torch.stack([losses.float(), hits(kind, output, target).float()], 1).numpy()
    party.state[f"{keeps}/records"] = found
