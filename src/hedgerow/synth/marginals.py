"""Marginals: each column by itself, from one question. It is what columns that have nothing to do with each other would be.

    singles   <- the table of each column, + noise                                           one question, l2 sqrt(F)
    record    each column by its own table                                                   post-processing, see `descent`

Releases : tables of one column, once.
State    : none at the parties.
Unit     : record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hedgerow.core.declaration import Case, program
from hedgerow.core.federation import Federation
from hedgerow.core.mechanism import Position
from hedgerow.data import load
from hedgerow.privacy.shares import BudgetShares

from .drawing import TreeSynthesizer
from .fitting import fitted
from .measured import TablesState, measure
from .synthesizer import provenance
from .tables import singles
from .tan import codes_of, drawn_from, shown

METHOD = "marginals"


@program(
    "Made-up records: each column by itself, from noisy tables of one column.",
    name="marginals",
    outcome=lambda federation, settings, state: shown(
        codes := codes_of(federation.schema, settings), state, singles(codes), None
    ),
    synthesizer=lambda settings, arrays, schema, about: drawn_from(settings, arrays, schema, about),
    case=lambda: Case(load("fair").take(range(200)), {"bins": 4}),
)
def one_way_tables(
    federation: Federation,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 16,
    log: Sequence[str] = (),
    points: dict[str, list[float]] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
    start: TablesState | None = None,
) -> Iterator[TablesState]:
    """Ask for the table of each column, with parameters and errors as `hedgerow.synth.tan.class_trees`.

    Yields
    ------
    TablesState
        After the only question.
    """
    codes = codes_of(federation.schema, {"columns": columns, "bins": bins, "log": log, "points": points})
    yield from measure(federation, codes, singles(codes), None, BudgetShares(epsilon, delta, noise_at, least), start)


def marginals(
    federation: Federation,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 16,
    log: Sequence[str] = (),
    points: dict[str, list[float]] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    noise_at: Position = "server",
    least: int = 0,
) -> TreeSynthesizer:
    """Return what made-up records are drawn from: each column by itself.

    Parameters, releases and errors are those of `one_way_tables`.

    Returns
    -------
    TreeSynthesizer
    """
    settings: dict[str, Any] = {"columns": columns, "bins": bins, "log": log, "points": points}
    *_, state = one_way_tables(federation, **settings, epsilon=epsilon, delta=delta, noise_at=noise_at, least=least)
    codes = codes_of(federation.schema, settings)
    return TreeSynthesizer(codes, provenance(federation, METHOD, delta=delta or None), *fitted(state, singles(codes)))
