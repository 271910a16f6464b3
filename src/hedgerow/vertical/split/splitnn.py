"""Split networks: parties that hold different columns of the same people train one network together.

    1  Alice initialises the weights of her part f_A                                    each
    2  Bob initialises the weights of his part f_B                                      each
    3  while epoch < epochs, for each batch of an order that both draw from one seed:
    4     Alice: z = f_A(x), sent to Bob                                                send, Alice to Bob
    5     Bob:   out = f_B(z)                                                           then, at Bob
    6     Bob:   loss(out, y), backward; updates f_B
    7     Bob:   dL/dz, sent to Alice                                                   send, Bob to Alice
    8     Alice: backward along dL/dz; updates f_A                                      then, at Alice

With several feature holders z is the sum of f_k(x_k) (or its concatenation), and dL/dz goes to each; Bob's own features have a
part of their own in his step. Nothing is added to training: weights are those of the whole network to the bit, where one
party sends.

Releases : at the end of an epoch the sum of losses and of hits over all records, to the server. It sees no activation, no slope
           and no weight but the initial ones.
Who sees : the label holder z of each record, or the total of several; each feature holder dL/dz of each record, which tells
           labels (`lawful`).
State    : weights and the optimiser's memory of its part, at each party; they are committed with its question.
Source   : Sempere Hernández 2024, Algorithm 5 and Figure 3.1; Vepakomma et al. 2018 (several parties). Differs: batches are
           drawn from one public seed, which the sources leave open; z is computed a second time in step 8, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from torch import nn

from hedgerow.crypto.peers import HUB
from hedgerow.errors import CheckpointMismatch, SettingsInvalid
from hedgerow.vertical.aligned import Aligned
from hedgerow.vertical.leaks import LabelDP, NoPeek, Observer

from .lawful import SHARED, lawful_columns, lawful_labels, lawful_merge
from .network import SplitNetwork, made_up
from .steps import backward, begin, forward, learn, say_labels, scored, slopes
from .ushape import train_u


@dataclass(frozen=True)
class SplitState:
    """A split network after an epoch. Its weights stay at the parties.

    Attributes
    ----------
    round : int
        Epochs so far.
    loss, score : float
        Means over the records of the epoch, each as it was when its batch was learned: the loss, and the accuracy, of numbers
        the mean squared error. The accuracy is NaN where fewer than `aligned.least` people are wrong, or right.
    n : int
        People on whom it was trained.
    letters : str
        "exact", or in which precision outputs and slopes were sent.
    middle : dict of arrays
        The middle of a U-shape that lies at the hub, with its optimiser's memory; empty otherwise.
    """

    round: int
    loss: float
    score: float
    n: int
    letters: str = "exact"
    middle: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def fit(self) -> SplitNetwork:
        """Which parts the parties keep; predictions ask for it.

        Raises
        ------
        CheckpointMismatch (HR-103)
            The state was read from a file: `SplitNetwork.of(...)` with the training's settings makes it again.
        """
        if (found := self.__dict__.get("_fit")) is None:
            raise CheckpointMismatch(
                "a state that was read from a file does not know its network.",
                remedy="Make it again: hr.vertical.SplitNetwork.of(both.schemas, bottoms, top, label, ...).",
            )
        made: SplitNetwork = found
        return made


def splitnn(
    aligned: Aligned,
    bottoms: Mapping[str, nn.Module],
    top: nn.Module,
    *,
    label: str,
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 0.1,
    optimiser: Any = "SGD",
    momentum: float = 0.0,
    optimiser_settings: Mapping[str, Any] | None = None,
    merge: Literal["sum", "concat", "maximum"] = "sum",
    middle: nn.Module | None = None,
    middle_at: str = HUB,
    seed: int = 0,
    held_out: float = 0.0,
    features: Mapping[str, Sequence[str]] | None = None,
    scale: Literal["ranges", "numbers", "none", "symmetric"] = "ranges",
    loss: str | None = None,
    hidden: bool = True,
    labels: Any = None,
    columns: Literal["shared"] | None = None,
    precision: Literal["float32", "float64"] = "float32",
    letters: Literal["exact", "float16"] = "exact",
    defence: Any = None,
    nopeek: NoPeek | None = None,
    observer: Observer | None = None,
    name: str = "split",
    start: SplitState | None = None,
) -> Iterator[SplitState]:
    """Train a network whose first layers lie at feature holders, and whose last layers at the label holder (Algorithm 5).

    Parameters
    ----------
    aligned : Aligned
        Parties whose rows are aligned; see `Federation.align`.
    bottoms : mapping from party to torch.nn.Module
        From a party's features, joined, to (batch, width). The label holder may have one of its own.
    top : torch.nn.Module
        From what was merged to the output that the loss takes: of a category one number for each level.
    label : str
        Column of the label holder, as `party.column` or alone.
    epochs : int
        In all, those before `start` included.
    batch_size : int
        Records in a batch; the last one of an epoch has what is left.
    learning_rate, optimiser, momentum, optimiser_settings
        Of a class of `torch.optim`, by name, which every party keeps for its part; momentum is that of SGD and RMSprop.
    merge : {"sum", "concat", "maximum"}
        How outputs of several parts meet. Concatenation shows the label holder each one's, whatever `hidden` says; a maximum
        has to see each, and is refused where they are hidden.
    middle, middle_at : torch.nn.Module, str
        Of the U-shape: the part between, and who holds it, the hub or a party without another part. The label holder then keeps
        the last layers as `top`, and its own features, where it has some, go through the middle like those of others.
    seed : int
        Of the order of batches, which is public; initial weights are the modules'.
    held_out : float
        Share of the people on whom nothing is trained, drawn by the seed; see `evaluate`.
    features : mapping from party to list of str, optional
        Columns that a part reads; all features by default.
    scale : {"ranges", "numbers", "none", "symmetric"}
        How they reach it; see `hedgerow.vertical.split.reading`.
    loss : str, optional
        A name of `hedgerow.learn.tasks.losses.LOSSES`; by default that of the label's kind. Its mean over a batch is minimised.
    hidden : bool
        Whether outputs of several senders go behind masks that cancel in their sum, so that the label holder sees that alone,
        to 2^-33. Otherwise it sees each party's, and training is that of the whole network to the bit.
    labels : None, "shared", or LabelDP
        What protects the labels from the feature holders, or that they may know them.
    columns : None or "shared"
        Whether the label holder may know the columns that affine parts read.
    precision : {"float32", "float64"}
        Of the whole training.
    letters : {"exact", "float16"}
        What is sent: all bits, or half precision, with which training is no longer that of the whole network.
    defence : hedgerow.vertical.leaks.GradientDefence, optional
        Noise on the slopes that are sent. It has no finite epsilon, and the labels have to be protected or shared all the same.
    nopeek : hedgerow.vertical.leaks.NoPeek, optional
        A term by which feature holders train their parts to say less.
    observer : hedgerow.vertical.leaks.Observer, optional
        Keeps what a party sends, at that party, so that what it tells can be measured.
    name : str
        Under which parties keep their parts; networks of other names are left alone.
    start : SplitState, optional
        Continue after this state, with what the parties keep.

    Yields
    ------
    SplitState
        After each epoch.

    Raises
    ------
    LabelsExposed (HR-247)
        Labels or columns would be told without being said to be shared.
    UnlawfulChannel (HR-211), ModelInvalid (HR-510), SettingsInvalid (HR-511)
        Before any party is asked.
    """
    settings = {"momentum": momentum, **(optimiser_settings or {})} if momentum else optimiser_settings
    own = {"features": features, "batch_size": batch_size, "optimiser": optimiser, "learning_rate": learning_rate}
    hidden = hidden and merge != "concat"
    own |= {
        "merge": merge,
        "seed": seed,
        "held_out": held_out,
        "scale": scale,
        "loss": loss,
        "precision": precision,
        "letters": letters,
    }
    own |= {"privacy": labels if isinstance(labels, LabelDP) else None, "defence": defence}
    own |= {"middle": middle, "middle_at": middle_at}
    own |= {"nopeek": nopeek, "observer": observer, "optimiser_settings": settings, "name": name}
    network = replace(SplitNetwork.of(aligned.schemas, bottoms, top, label, **own), shared=labels == SHARED)
    n = network.top.batches.trained(aligned.n)
    if epochs < 1 or n < 1 or (start is not None and start.n != n):
        raise SettingsInvalid(f"epochs is {epochs}, on {n} people.", remedy="Both are at least one, and those of the start.")
    check(aligned, network, epochs, labels, columns, hidden)
    hub = dict(start.middle) if start else starts(aligned, network)
    for epoch in range(start.round if start else 0, epochs):
        if network.middle is None:
            train(aligned, network, epoch, hidden)
        else:
            train_u(aligned, network, epoch, hidden, hub)
        yield state_of(aligned, network, epoch + 1, hub)


def check(aligned: Any, network: SplitNetwork, epochs: int, labels: Any, columns: Any, hidden: bool) -> None:
    """Refuse what cannot be done, or would tell labels or columns without being said."""
    senders, to = network.senders, network.receiver
    if not senders:
        raise SettingsInvalid(f"{network.seat} has all features and the label.", remedy="Train there; no network is split.")
    lawful_merge((network.middle or network.top).merge, senders, hidden)
    lawful_labels(labels, network.told, network.seat)
    modules = {party: network.bottoms[party].piece.module for party in senders}
    inputs = {party: made_up(network.schemas[party], network.bottoms[party].features) for party in senders}
    batches, fewest = network.top.batches, getattr(network.top.defence, "fewest", 1)
    if 0 < batches.trained(aligned.n) % batches.size < fewest:
        raise SettingsInvalid(
            f"the last batch has {batches.trained(aligned.n) % batches.size} people, and {network.top.defence} needs {fewest}.",
            remedy="Choose another batch_size.",
        )
    lawful_columns(columns, modules, inputs, epochs * batches.trained(aligned.n) / batches.size, to)


def starts(aligned: Any, network: SplitNetwork) -> dict[str, Any]:
    """1, 2: every party keeps the initial weights of its part, and the hub has its own; labels are replaced at random."""
    top, hub = network.top, dict[str, Any]()
    for party, piece in network.pieces:
        if party == HUB:
            piece.begin(piece.initial, hub)
        else:
            aligned.each(partial(begin, piece=piece, observer=top.observer), piece.initial, parties=[party])
    if top.privacy is not None:
        say, paid = partial(say_labels, column=top.label.column, privacy=top.privacy), aligned._facts.said
        whose, epsilon = (network.seat, top.label.column, top.privacy.classes), top.privacy.epsilon
        aligned.each(say, parties=[network.seat], charge=None if paid.get(whose, 0.0) >= epsilon else top.privacy.event())
        paid[whose] = max(epsilon, paid.get(whose, 0.0))
    return hub


def train(aligned: Any, network: SplitNetwork, epoch: int, hidden: bool) -> None:
    """3 to 8: one pass over the batches."""
    top, seat, senders = network.top, network.seat, network.senders
    up, step = partial(forward, bottoms=network.bottoms), partial(learn, top=top)
    ways = [(to, partial(slopes, keeps=top.keeps, block=block)) for to, block in network.ways_back]
    turn = partial(backward, bottoms=network.bottoms)
    for batch in range(top.batches.count(aligned.n)):
        at = np.array([epoch, batch])
        aligned.send(up, at, parties=senders, to=seat, then=step, hidden=hidden)  # 4, 5, 6
        for to, back in ways:
            aligned.send(back, at, parties=[seat], to=to, then=turn)  # 7, 8


def state_of(aligned: Any, network: SplitNetwork, round: int, hub: dict[str, Any]) -> SplitState:
    """What the server learns of an epoch."""
    n = network.top.batches.trained(aligned.n)
    made = SplitState(round, *means(aligned, network, n), n, network.top.letters, dict(hub))
    made.__dict__["_fit"] = network
    return made


def means(aligned: Any, network: SplitNetwork, n: int) -> tuple[float, float]:
    """Mean loss and mean score of the records as they were learned last: two sums over records."""
    sums = aligned.total(partial(scored, top=network.top), np.asarray(aligned.least), party=network.seat)
    return told(sums, n)


def told(sums: np.ndarray, n: int) -> tuple[float, float]:
    """Means from sums; NaN for a score that would tell of few people."""
    loss, score = (np.asarray(sums) / n).tolist()
    return loss, score if score >= 0 else float("nan")
