"""The U-shape: labels and last layers stay with the label holder, and the middle of the network is somebody else's.

    4   f_k(x_k) of the batch's records          feature holders to the middle's holder
        m = middle(merge(z))                     kept there
    5   m                                        to the label holder: loss, backward, own step; keeps dL/dm
    7   dL/dm                                    to the middle's holder: backward, own step; keeps dL/dz
    8   dL/dz                                    to the feature holders: backward, own steps

The middle's holder is a party, or the hub, which keeps the part in the program's state. Labels leave in no form but slopes,
and these tell labels to whoever receives them: the length of a slope alone found a rare label (6 %, made-up people) with an AUC
of 1.00 at the hub, of people whom it cannot name; another party knows who they are. So the U-shape tells labels
to no party where the hub holds the middle and the label holder has all features; everything else has to be said.

Who sees : the middle's holder m and dL/dm of each record; the hub in an order that it can follow from epoch to epoch.
Source   : Vepakomma et al. 2018, "Split learning for health", section 3 (configuration without label sharing).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.crypto.context import description_digest
from hedgerow.crypto.peers import HUB

from .piece import OwnPart, tensor
from .steps import Letters, Merge, arrived, backward, forward, learn, merged, sendable, slopes

if TYPE_CHECKING:
    from .network import SplitNetwork


@travels
@dataclass(frozen=True, eq=False)
class Middle:
    """The part between feature holders and the label holder's last layers, where it is neither's (shape "U").

    Parameters
    ----------
    piece : OwnPart
    at : str
        The party that keeps it, or the hub.
    merge, widths
        As of `Top`.
    output : int
        Numbers that it makes for each record.
    letters : {"exact", "float16"}
    keeps : str
        Under which its holder keeps what came, and slopes.
    """

    piece: OwnPart
    at: str
    merge: Merge
    widths: tuple[int, ...]
    output: int
    letters: Letters = "exact"
    keeps: str = "split"

    @cached_property
    def digested(self) -> bytes:
        """Its digest in the context of questions."""
        return description_digest(("middle", *(getattr(self, one.name) for one in fields(self))))

    @property
    def width(self) -> int:
        """Numbers that arrive for each record."""
        return self.widths[0] if self.merge == "sum" else sum(self.widths)

    def through(self, state: dict[str, Any], z: Tensor, *, trains: bool, rng: Any = None) -> np.ndarray:
        """What it makes of outputs, shape (batch, output); in training they are kept for the way back."""
        module = self.piece.opened(state, trains=trains)
        with torch.no_grad(), self.piece.randomness(state, rng) if trains else nullcontext():
            made = sendable(module(merged(self.merge, self.widths, z, None, None)), self.letters)
        if trains:
            state[f"{self.keeps}/came"] = z.numpy()
        return made

    def turned(self, state: dict[str, Any], along: Tensor) -> np.ndarray:
        """A step along the slopes of what it made; the slopes of what came, shape (batch, width)."""
        module, z = self.piece.opened(state), tensor(state[f"{self.keeps}/came"], self.piece.dtype).requires_grad_()
        with torch.enable_grad(), self.piece.randomness(state):
            module(merged(self.merge, self.widths, z, None, None)).backward(along)
        self.piece.stepped(module, state)
        assert z.grad is not None
        return sendable(z.grad, self.letters)


@local
def through(broadcast: np.ndarray, party: Party, rng: Any, *, middle: Middle, trains: bool) -> None:
    """The middle's holder computes on what came, and keeps what it made."""
    z = arrived(party, (*np.shape(party.received)[:1], middle.width), middle.piece.dtype)
    party.state[f"{middle.keeps}/made"] = middle.through(party.state, z, trains=trains, rng=rng)


@local
def made(broadcast: np.ndarray, party: Party, rng: Any, *, middle: Middle) -> np.ndarray:
    """What the middle's holder made of a batch, shape (batch, output)."""
    return np.array(party.state[f"{middle.keeps}/made"])


@local
def turned(broadcast: np.ndarray, party: Party, rng: Any, *, middle: Middle) -> None:
    """The middle's holder steps along the slopes of what it made, and keeps those of what came."""
    along = arrived(party, np.shape(party.state[f"{middle.keeps}/made"]), middle.piece.dtype)
    party.state[f"{middle.keeps}/slopes"] = middle.turned(party.state, along)


@local
def take(broadcast: dict[str, np.ndarray], party: Party, rng: Any, *, then: Any) -> None:
    """Let a step run on rows that the hub sent, as if they had come from a party."""
    party.received = broadcast["rows"]
    then(broadcast["at"], party, rng)


def train_u(aligned: Any, network: SplitNetwork, epoch: int, hidden: bool, hub: dict[str, Any]) -> None:
    """One pass over the batches; `hub` is what the hub keeps of a middle of its own, and changes."""
    middle, top, seat = network.middle, network.top, network.seat
    assert middle is not None
    up, step = partial(forward, bottoms=network.bottoms), partial(learn, top=top)
    into, onward, turn = (partial(one, middle=middle) for one in (partial(through, trains=True), made, turned))
    back, last = partial(slopes, keeps=top.keeps, block=(0, middle.output)), partial(backward, bottoms=network.bottoms)
    ways = [(to, partial(slopes, keeps=middle.keeps, block=block), block) for to, block in network.ways_back]
    handed, returned = partial(take, then=step), partial(take, then=last)
    for batch in range(top.batches.count(aligned.n)):
        at = np.array([epoch, batch])
        if middle.at == HUB:
            z = tensor(aligned.open_rows(up, at, parties=network.senders, hidden=hidden), middle.piece.dtype)
            rng = aligned.stream(epoch * top.batches.count(aligned.n) + batch, "layers that draw")
            rows = middle.through(hub, z, trains=True, rng=rng)
            aligned.each(handed, {"at": at, "rows": rows}, parties=[seat])
            along = tensor(aligned.open_rows(back, at, parties=[seat]), middle.piece.dtype)
            found = middle.turned(hub, along)
            for to, _, (start, width) in ways:
                aligned.each(returned, {"at": at, "rows": found[:, start : start + width]}, parties=to)
            continue
        aligned.send(up, at, parties=network.senders, to=middle.at, then=into, hidden=hidden)
        aligned.send(onward, at, parties=[middle.at], to=seat, then=step)
        aligned.send(back, at, parties=[seat], to=middle.at, then=turn)
        for to, way, _ in ways:
            aligned.send(way, at, parties=[middle.at], to=to, then=last)
