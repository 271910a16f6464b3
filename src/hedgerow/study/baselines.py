"""Baselines that only a simulation can fit: the same program on all records in one place, and at each party alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.core.randomness import Streams
from hedgerow.data import Table
from hedgerow.engines import InProcess
from hedgerow.engines.simulate import parties_of
from hedgerow.errors import HedgerowError
from hedgerow.report.numerals import show
from hedgerow.store import last

from .build import Built
from .keys import Settings, divides_budget

LARGEST_ALONE = 20
"""At most so many parties are fitted alone, evenly spread."""


@dataclass(frozen=True)
class Baselines:
    """Scores on the same table: the server's if there is one, else held-out records, else all records of the parties.

    Attributes
    ----------
    federated, centralised : float or None
    alone : dict from party to score
        Parties that could be fitted alone.
    failed : int
        Parties that could not.
    tried : int
    at_parties : dict from party to (records, score of the federated model there)
    noisy : bool
        Whether the program adds noise of its own in these fits, too, which no channel protects.
    """

    federated: float | None = None
    centralised: float | None = None
    alone: dict[str, float] = field(default_factory=dict)
    failed: int = 0
    tried: int = 0
    at_parties: dict[str, tuple[int, float]] = field(default_factory=dict)
    on: str = ""
    noisy: bool = False


def baselines(built: Built, state: Any) -> Baselines:
    """Score a state beside the centralised and the local-only fit of the same program, unprotected."""
    score = built.listing.score
    if score is None:
        return Baselines()
    table, on = where(built)

    def judge(found: object, records: Table) -> float:
        return score(built.settings, found, built.schema, records)  # of complete records, as the model itself

    settings = built.listing.alone(built.settings, state.round)
    if divides_budget(settings):
        settings = {**settings, "epsilon": None, "delta": None}
    whole = parties_of(built.table, built.partition)
    spread = np.unique(np.linspace(0, len(whole) - 1, min(LARGEST_ALONE, len(whole))).astype(int))
    pooled = whole.pool(np.arange(len(whole)))
    alone: dict[str, float] = {}
    noise: list[bool] = []
    for i in spread:
        party = whole[int(i)]
        fitted = _fit(built, settings, Parties((party.id,), party.columns, [len(party.w)], party.w), noise)
        if fitted is not None:
            alone[party.id] = judge(fitted, table)
    central = _fit(built, settings, Parties(("everybody",), pooled.columns, [len(pooled.w)], pooled.w), noise)
    held = {whole.ids[i]: whole[int(i)] for i in spread}
    return Baselines(
        federated=judge(state, table),
        centralised=None if central is None else judge(central, table),
        alone=alone,
        failed=len(spread) - len(alone),
        tried=len(spread),
        at_parties={
            name: (len(there), judge(state, there))
            for name, party in held.items()
            if len(there := built.complete(replace(built.table, columns=dict(party.columns), test=None)))
        },
        on=on,
        noisy=any(noise),
    )


def where(built: Built) -> tuple[Table, str]:
    """The table on which models are scored, and what it is."""
    held_out = built.held_out
    if held_out is not None:
        return _complete(built, held_out, "the {} records that the parties held out")
    if built.test is not None:
        return _complete(built, built.test, "the server's {} test records")
    return _complete(built, built.whole, "all {} records of the parties")


def _complete(built: Built, table: Table, words: str) -> tuple[Table, str]:
    """The records of a table that lack nothing that the program reads, in words."""
    kept = built.complete(table)
    return kept, words.format(show(len(kept))) + (" that lack no value" if len(kept) < len(table) else "")


def _fit(built: Built, settings: Settings, parties: Parties, noise: list[bool]) -> object | None:
    """Run the study's program on one party that holds these records, without protection; None where it cannot be fitted.

    Whether it added noise of its own is appended to `noise`.
    """
    federation = Federation(InProcess().hosting(parties), built.schema, Streams(built.study.simulation_seed or 0))
    try:
        found = last(built.listing.program(settings)(federation))
        noise.append(any(entry.event.kind != "none" and not entry.event.open for entry in federation.ledger.entries))
        return found
    except (HedgerowError, np.linalg.LinAlgError):
        return None
