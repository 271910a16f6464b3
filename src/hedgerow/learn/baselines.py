"""Baselines of federated training by the same local solver: all records in one place, and every party by itself.

    local only:   v_k <- local SGD on party k, from v_k        each round; nothing leaves
    centralised:  w   <- local SGD on one table, from w        each round; no federation is asked

Releases : nothing. `local_only` leaves each party its own model, scored by `evaluate_personal`; `centralised` takes a table,
           as a federation's records cannot be put in one place.
State    : v_k at each party, of shape (d,), initially the module's weights.

A rule that remembers, such as momentum, starts at zero in every round: for its usual course take one round of many epochs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Unpack

from torch import nn

from hedgerow.core.declaration import program
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.core.randomness import Streams
from hedgerow.data import Table

from .fedavg import ModelState, fedavg
from .personal import own_copy, train_own
from .results import declares
from .settings import Settings
from .training import Training, equal_parties


@program("Every party trains alone and keeps its model: a baseline.", **declares(personal=True, rounds=2))
def local_only(
    federation: Federation,
    module: nn.Module,
    *,
    rounds: int,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Every party trains alone, from the same weights, and keeps its model.

    Parameters
    ----------
    **settings
        Shared, as `hedgerow.learn.fedavg`; `weighting` has no use.

    Yields
    ------
    ModelState
        After each round, with the weights that everybody began with: `evaluate_personal(federation, module, state.weights)`.
    """
    training = Training.of(federation, module, rounds, settings)
    w = training.begin(start)
    for t in training.left(start):
        training.cohort().each(partial(train_own, model=training.model, solver=training.solver_in(t)), w, init=own_copy)
        yield ModelState(t + 1, training.model.named(w))


def centralised(
    table: Table,
    module: nn.Module,
    *,
    engine: Any,
    rounds: int,
    seed: int | None = 0,
    start: ModelState | None = None,
    **settings: Unpack[Settings],
) -> Iterator[ModelState]:
    """Ordinary training on a table, by the local solver that parties use.

    Parameters
    ----------
    table : Table
        Records that the caller holds.
    engine : engine
        Where they are trained on, such as `hedgerow.InProcess()`.
    seed : int or None
        Of the shuffles.

    **settings
        Shared, as `hedgerow.learn.fedavg`, without participation.
    """
    equal_parties(settings, "rate", "size", "spare", "every")
    alone = gathered(table, engine, seed=seed)
    alone.clock.queries = start.round if start else 0  # a round's shuffles follow its number
    yield from fedavg(alone, module, rounds=rounds, start=start, **settings)


def gathered(table: Table, engine: Any, *, seed: int | None = 0) -> Federation:
    """A federation of the single party `everybody`, which holds the whole table: any program trains on it as on one machine."""
    w = None if table.schema.weight is None else table[table.schema.weight]
    held = Parties(("everybody",), table.columns, [len(table)], w)
    return Federation(engine.hosting(held), schema=table.schema, streams=Streams(seed))
