"""MST: one tree over all columns, from two questions whose tables hold everything.

    singles   <- the table of each column, + noise                                           one question, l2 sqrt(F)
    pairs     <- the table of each pair of columns, + noise                                  one question, l2 sqrt(F (F-1)/2)
    tree      <- the pairs whose noisy tables differ most from independence, free            post-processing, see `fitting`
    record    down the tree                                                                  post-processing, see `descent`

A target is a column like any other. To learn a target from made-up records, `tan` is better.

Releases : tables of one column and of two, once.
State    : none at the parties.
Unit     : record.
Source   : McKenna, Miklau & Sheldon 2021. Differs: they choose F - 1 pairs by the exponential mechanism from exact totals, and
           measure those alone; here all pairs are measured and the choice is free, so that no server has to see exact totals.
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
from .fitting import fitted, misfit
from .measured import TablesState, measure
from .synthesizer import provenance
from .tables import pairs, singles
from .tan import codes_of, drawn_from, shown

METHOD = "mst"


@program(
    "Made-up records: one tree over all columns, from noisy tables of pairs.",
    name="mst",
    outcome=lambda federation, settings, state: shown(
        codes := codes_of(federation.schema, settings), state, singles(codes), pairs(codes), score=misfit
    ),
    synthesizer=lambda settings, arrays, schema, about: drawn_from(settings, arrays, schema, about),
    case=lambda: Case(load("fair").take(range(200)), {"bins": 4, "columns": ["age", "occupation", "religious", "children"]}),
)
def spanning_tree(
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
    """Ask for the tables of one tree, with parameters and errors as `hedgerow.synth.tan.class_trees`.

    Yields
    ------
    TablesState
        After each question.
    """
    codes = codes_of(federation.schema, {"columns": columns, "bins": bins, "log": log, "points": points})
    plan = BudgetShares(epsilon, delta, noise_at, least)
    yield from measure(federation, codes, singles(codes), pairs(codes), plan, start)


def mst(
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
    """Return what made-up records are drawn from: one tree over all columns.

    Parameters, releases and errors are those of `spanning_tree`.

    Returns
    -------
    TreeSynthesizer
    """
    settings: dict[str, Any] = {"columns": columns, "bins": bins, "log": log, "points": points}
    *_, state = spanning_tree(federation, **settings, epsilon=epsilon, delta=delta, noise_at=noise_at, least=least)
    codes = codes_of(federation.schema, settings)
    return TreeSynthesizer(
        codes, provenance(federation, METHOD, delta=delta or None), *fitted(state, singles(codes), pairs(codes), score=misfit)
    )
