"""Sequential transfer: one model goes from party to party, and each trains it in turn.

    incremental:  for k = 1 .. N:                  w -> party k;  w <- local SGD on party k, from w         one pass
    cyclic:       for each pass, for k = 1 .. N:   w -> party k;  w <- local SGD on party k, from w         several passes

A hand-over is a round. It goes through the server, which so sees every model that is handed on; in the sources parties hand
on to each other.

Nothing can hide these models: secure aggregation hides rows inside a total, and the total of one party is its row, so a
channel that promises to hide rows is refused. Without noise every hand-over is charged as `nonprivate`. With a clip and a
mechanism the change of a party is clipped and noised before the next one receives it.

Releases : w_k - w of a single party k, of shape (d,), once a hand-over. The server knows w, so this is the party's whole model.
State    : none at the parties.
Unit     : party. A hand-over is charged as a cohort of exactly one party: no amplification is claimed, as the turn is known
           to all, and neither is it claimed that a pass asks each party only once, so the sum over a pass is an upper bound.
Source   : Chang et al., JAMIA 25 (2018), single and cyclical weight transfer; Sheller et al., BrainLes 2018, institutional
           incremental learning and its cyclic form. Differs: a party takes the given number of passes over its records, and
           none is stopped by its own validation loss.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

import numpy as np
from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.display import displayed
from hedgerow.errors import NobodyAnswered, SettingsInvalid, UnlawfulChannel

from .local import local_sgd
from .models import Weights
from .results import declares
from .settings import Settings
from .training import Training, equal_parties, mean_of

log = logging.getLogger("hedgerow.learn")

Order = Literal["fixed", "shuffled"]


@displayed
@dataclass(frozen=True)
class TransferState:
    """A model after a hand-over.

    Attributes
    ----------
    round : int
        Hand-overs so far.
    weights : dict of arrays
        Parameters by name.
    order : array of int, shape (n_parties,)
        Places of the parties in this pass: party `order[k]` of the federation is asked k-th.
    """

    round: int
    weights: Weights
    order: np.ndarray


@program("One model handed from party to party, several times round (Chang et al. 2018).", **declares(rounds=2))
def cyclic_transfer(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    order: Order = "fixed",
    start: TransferState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[TransferState]:
    """Cyclical weight transfer (Chang et al. 2018).

    Parameters
    ----------
    rounds : int
        Hand-overs in all, those before `start` included; a pass over the federation takes as many as there are parties.
    order : {"fixed", "shuffled"}
        Parties take turns in the federation's order, or in one that is drawn anew for each pass.

    **settings
        Shared, as `hedgerow.learn.fedavg`, without participation and weighting; a schedule counts hand-overs.

    Yields
    ------
    TransferState
        After each hand-over. A party that does not answer is passed over, and a log line says so.

    Releases
    --------
    The change of a single party, of shape (d,), once per hand-over.

    Raises
    ------
    UnlawfulChannel (HR-211)
        The channel hides rows. Before any party is asked, as are the refusals of fedavg.
    """
    training = in_turn(federation, module, rounds, order, settings)
    yield from hand_on(training, order, start)


@program("One model handed from party to party, once (Sheller et al. 2018).", **declares())
def incremental(
    federation: Federation,
    module: nn.Module,
    *,
    order: Order = "fixed",
    start: TransferState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[TransferState]:
    """Institutional incremental learning (Sheller et al. 2018): a single pass; what a party learned may be lost at the next.

    Parameters
    ----------
    order : {"fixed", "shuffled"}
        Parties take turns in the federation's order, or in a drawn one.

    **settings
        Shared, as `hedgerow.learn.cyclic_transfer`; `epochs` are all the passes that a party ever takes.
    """
    training = in_turn(federation, module, federation.size, order, settings)
    yield from hand_on(training, order, start)


def in_turn(federation: Federation, module: nn.Module, rounds: int, order: Order, settings: Mapping[str, Any]) -> Training:
    """Check what sequential transfer needs, before any party is asked."""
    if federation.protection.hides_rows:
        raise UnlawfulChannel(
            f"{federation.protection.aggregation} hides rows inside a total, and a model handed on is the row of one party.",
            remedy="Clip and add noise instead, or ask for sums: fedavg(federation, module, ...).",
        )
    if order not in get_args(Order):
        raise SettingsInvalid(f"order is {order!r}.", remedy=f"It is one of {', '.join(get_args(Order))}.")
    equal_parties(settings, "rate", "size", "spare", "every")
    return Training.of(federation, module, rounds, settings, lawful=("expected",))


def hand_on(training: Training, order: Order, start: TransferState | None) -> Iterator[TransferState]:
    """Let each party in turn train the model; a pass draws its order once and keeps it in the state."""
    federation, model, w = training.federation, training.model, training.begin(start)
    names = federation.names
    places = np.arange(len(names)) if start is None else start.order
    for t in training.left(start):
        k = t % len(names)
        if k == 0 and order == "shuffled":
            places = federation.stream(t + 1, "order").permutation(len(names))
        name = names[int(places[k])]
        one = federation.pick([name])
        try:
            w = w + mean_of(one.sum(training.ask(local_sgd, t), w), one)
        except NobodyAnswered:
            log.warning("%s did not answer in hand-over %d: the model goes on without it", name, t + 1)
        yield TransferState(t + 1, model.named(w), places)
