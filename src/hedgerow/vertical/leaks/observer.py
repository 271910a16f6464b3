"""What passes between feature holders and the label holder in a split run, kept at the party that sends it.

    label holder     sees leave: gradients of each record, with its own score of that record     -> label inference
    feature holder   sees leave: activations of each record                                      -> feature inversion

The party that sends has everything that an attack's score needs: the label holder knows labels, the feature holder features. So
each of them measures at home what the other could find out, and only areas and shares leave. In a simulation a study measures.

What is kept is bounded: whole batches, evenly spread over an epoch, of some epochs, so that an attack that compares records of
a batch finds batches as they were. Arrays are added to the party's state under keys of their own and none is changed, so that
they are committed, dropped and persisted with the batch that they belong to.

Releases : nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.core.question import travels
from hedgerow.core.state import State
from hedgerow.errors import SettingsInvalid

from .inference import How, LabelLeak, label_leak

MOST = 2**21
"""Numbers that an epoch's gradients or activations may take: 8 MB of float32."""

_KEY = "observed"


@dataclass(frozen=True)
class SentBatches:
    """What was kept of one epoch.

    Attributes
    ----------
    epoch : int
        Counted from 1.
    rows, batch : integer arrays of shape (m,)
        Place of each record in the aligned order, and in which batch it was.
    sent : array of shape (m, cut)
        Gradients, or activations.
    score : array of shape (m,) or (m, classes), or None
        The model's own score of each record in that batch, before its step.
    """

    epoch: int
    rows: NDArray[np.int64]
    batch: NDArray[np.int64]
    sent: NDArray[Any]
    score: NDArray[Any] | None = None

    def leak(self, how: How, labels: Any, *, said: Any = None, known: Any = None, classes: int = 2) -> LabelLeak:
        """Carry an attack on labels out on these gradients; arrays are of all n records, in the aligned order.

        Raises
        ------
        SettingsInvalid (HR-511)
            No score was kept: an attack is not told without the model's own.
        """
        if self.score is None:
            raise SettingsInvalid(
                "gradients were observed without the model's own score, beside which an attack is told.",
                remedy="Give `score` to `Observer.note` at the label holder.",
            )
        y, used = np.asarray(labels)[self.rows], None if said is None else np.asarray(said)[self.rows]
        mask = None if known is None else np.asarray(known, bool)[self.rows]
        return label_leak(how, self.sent, self.batch, y, self.score, said=used, known=mask, classes=classes, epoch=self.epoch)


@travels
@dataclass(frozen=True)
class Observer:
    """Which batches are kept, the same at every party.

    Parameters
    ----------
    epochs : tuple of int
        Counted from 1.
    most : int
        Numbers that are kept of each epoch at most, at each party; a batch that is larger alone is cut short.

    Raises
    ------
    SettingsInvalid (HR-511)
    """

    epochs: tuple[int, ...] = (1,)
    most: int = MOST

    def __post_init__(self) -> None:
        if not self.epochs or min(self.epochs) < 1 or self.most < 1:
            raise SettingsInvalid(
                f"an observer of epochs {self.epochs} that keeps {self.most} numbers.",
                remedy="Epochs are counted from 1: Observer(epochs=(1, 4)).",
            )

    def wants(self, epoch: int, batch: int, *, n: int, size: int, cut: int) -> bool:
        """Whether a batch, counted from 0, is kept, where n records go in batches of `size` through a cut of this width."""
        room = max(1, self.most // (size * cut))
        batches = math.ceil(n / size)
        return epoch in self.epochs and batch % math.ceil(batches / room) == 0

    def note(self, state: State, epoch: int, batch: int, rows: Any, sent: Any, score: Any = None, *, n: int, size: int) -> None:
        """Keep what a party sends of a batch in its state, or nothing where the batch is not wanted.

        Parameters
        ----------
        state : dict
            `party.state`.
        epoch, batch : int
            Counted from 1 and from 0.
        rows : integer array of shape (b,)
        sent : array of shape (b, ...)
            As it leaves, after every defence.
        score : array of shape (b,) or (b, classes), optional
        n, size : int
            Records of the study and of a batch.
        """
        given = np.asarray(sent).reshape(len(rows), -1)
        if not self.wants(epoch, batch, n=n, size=size, cut=given.shape[1]):
            return
        kept = slice(max(1, self.most // given.shape[1]))
        key = f"{_KEY}/{epoch}/{batch}"
        state[f"{key}/rows"] = np.asarray(rows).astype(np.int64)[kept]
        state[f"{key}/sent"] = given[kept].copy()
        if score is not None:
            state[f"{key}/score"] = np.asarray(score)[kept].copy()

    def seen(self, state: State) -> tuple[SentBatches, ...]:
        """What a party's state keeps, by epoch."""
        return tuple(found for epoch in sorted(set(self.epochs)) if (found := _of_epoch(state, epoch)) is not None)


def forget(state: State) -> None:
    """Take what was observed out of a party's state."""
    for key in [key for key in state if key.startswith(f"{_KEY}/")]:
        del state[key]


def pooled(observations: tuple[SentBatches, ...]) -> SentBatches | None:
    """Gradients of records that were seen in every epoch, added up, as epoch 0: noise that is drawn anew averages out.

    Each is divided first by the epoch's mean length, so that late epochs, whose gradients are short, count as much. Batches are
    those of the last epoch, as are scores. None where fewer than two epochs share records.
    """
    if len(observations) < 2:
        return None
    common = observations[-1].rows
    for one in observations[:-1]:
        common = np.intersect1d(common, one.rows)
    if not len(common):
        return None
    total: NDArray[np.float64] = np.zeros(())
    for one in observations:
        place = np.argsort(one.rows, kind="stable")[np.searchsorted(np.sort(one.rows), common)]
        rows = one.sent[place].astype(np.float64)
        total = total + rows / max(float(np.linalg.norm(rows, axis=1).mean()), 1e-300)
    last = observations[-1]
    score = None if last.score is None else last.score[place]
    return SentBatches(0, common, np.zeros(len(common), np.int64), total, score)


def _of_epoch(state: State, epoch: int) -> SentBatches | None:
    start = f"{_KEY}/{epoch}/"
    batches = sorted({int(key.removeprefix(start).split("/")[0]) for key in state if key.startswith(start)})
    if not batches:
        return None
    rows = [np.asarray(state[f"{start}{b}/rows"]) for b in batches]
    sent = [np.asarray(state[f"{start}{b}/sent"]) for b in batches]
    scores = [np.asarray(state[key]) for b in batches if (key := f"{start}{b}/score") in state]
    return SentBatches(
        epoch,
        np.concatenate(rows),
        np.repeat(batches, [len(one) for one in rows]),
        np.concatenate(sent),
        np.concatenate(scores) if len(scores) == len(batches) else None,
    )
