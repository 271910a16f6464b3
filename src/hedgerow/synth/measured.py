"""Tables of one column and of two, asked one after the other: what synthesizers by trees are made of.

    singles   <- the table of each column in each class, + noise                   one question
    pairs     <- the table of each pair of columns in each class, + noise          one question

Releases : both, once.
State    : none at the parties.
Unit     : record. It adds its weight to one cell of each of m tables: l2 sqrt(m), l1 m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.data import complete_cases
from hedgerow.display import displayed
from hedgerow.privacy.shares import BudgetShares, Share

from .codes import Codes, coded
from .tables import Tables

SINGLES = 0.6
"""Share of a budget for the tables of one column, where those of pairs are asked too; looked at on Adult."""


@displayed
@dataclass(frozen=True)
class TablesState:
    """Tables that were asked so far.

    Attributes
    ----------
    round : int
        Questions so far.
    singles : array of shape (cells,)
        Tables of one column, one after the other, in each class.
    pairs : array of shape (cells,)
        The same of two columns; empty before they are asked.
    sigma_singles, sigma_pairs : float
        Standard deviation of the noise in each cell; zero where tables are exact.
    """

    round: int
    singles: Array = field(default_factory=lambda: np.zeros(0))
    pairs: Array = field(default_factory=lambda: np.zeros(0))
    sigma_singles: float = 0.0
    sigma_pairs: float = 0.0


def measure(
    federation: Federation,
    codes: Codes,
    singles: Tables,
    pairs: Tables | None,
    plan: BudgetShares,
    start: TablesState | None,
) -> Iterator[TablesState]:
    """Ask for tables of one column, then for those of two where there are any.

    Raises
    ------
    BudgetInvalid (HR-214), SlotFilled (HR-212), UnboundedSum (HR-210)
        See `BudgetShares`; noise is added, and weights declare no range.
    """
    weighed = complete_cases(federation, [], count=False)  # a record without a weight counts for nothing
    parts = {"singles": Share(SINGLES), "pairs": Share(1 - SINGLES)} if pairs and pairs.cliques else {"singles": Share(1.0)}
    asked = plan.handles(weighed.prepare(coded, codes=codes), parts, begins=start is None)
    state = start or TablesState(0)
    if state.round == 0:
        sigma = singles.sigma(asked["singles"], codes.heaviest)
        found = singles.ask(asked["singles"], codes.heaviest)
        state = replace(state, round=1, singles=found, sigma_singles=sigma)
        yield state
    if state.round == 1 and pairs and pairs.cliques:
        sigma = pairs.sigma(asked["pairs"], codes.heaviest)
        found = pairs.ask(asked["pairs"], codes.heaviest)
        yield replace(state, round=2, pairs=found, sigma_pairs=sigma)
