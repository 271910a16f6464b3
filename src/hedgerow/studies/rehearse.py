"""Rehearse a study: run its program against made-up records, and list what it would ask of the real parties.

No party is asked and no record is read by the program: each party is replaced by a few records drawn from the schema's
declared ranges. Questions, sizes, bounds, events and the budget's refusal are those of the real run as far as they do not
depend on the answers; how many rounds an iteration needs does, and the filter, not the plan, is the guarantee.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hedgerow.core.errors import HedgerowWarning, NotIdentified, Separated
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.party import Parties
from hedgerow.engines import InProcess
from hedgerow.privacy import Budget
from hedgerow.privacy.statement import Statement
from hedgerow.report import Grid
from hedgerow.runs import drive

from .build import build
from .explain import statement_of, what_left
from .study import Study

RECORDS = 200
"""Made-up records in all, at least two for each party."""


@dataclass(frozen=True)
class Rehearsal:
    """What a study would do.

    Attributes
    ----------
    entries : list of Entry
        Every question in order.
    epsilons : list of float or None
        Running epsilon after each question; None where it is infinite.
    ended : str
        Why the program stopped.
    """

    study: Study
    parties: int
    entries: list[Entry]
    epsilons: list[float | None]
    statement: Statement
    left: Grid
    ended: str


def rehearse(study: Study, *, data_dir: Path | None = None) -> Rehearsal:
    """Say what a study would ask, without asking anybody."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        built = build(study, data_dir=data_dir)
    federation = replace(built.federation, ledger=Ledger(built.federation.ledger.limit))
    each = max(2, RECORDS // federation.size)
    columns = built.schema.synthetic(each * federation.size, np.random.default_rng(0))
    made_up = Parties(federation.engine.parties, columns, [each] * federation.size)
    federation = replace(federation, engine=InProcess(threads=1).hosting(made_up))
    try:
        ended = drive(built.listing.program(built.settings), federation)
        rounds = ended.state.round if ended.state else 0
        words = f"ends after {rounds} rounds" if ended.stopped == "finished" else f"stops after {rounds} rounds: {ended.reason}"
    except (NotIdentified, Separated) as error:
        words = f"on made-up records the fit stops early ({type(error).__name__}); real records decide how many rounds it takes"
    entries = federation.ledger.entries
    return Rehearsal(
        study,
        federation.size,
        entries,
        running_epsilon(federation.ledger),
        statement_of(replace(built, federation=federation), federation.ledger),
        what_left(entries),
        words,
    )


def running_epsilon(ledger: Ledger) -> list[float | None]:
    """Epsilon after each question, None where it is infinite or not limited by a budget."""
    budget, found = ledger.limit, []
    if not isinstance(budget, Budget):
        return [None] * len(ledger)
    upto = Ledger(budget)
    for entry in ledger.entries:
        upto.entries.append(entry)
        spent = budget.spent(upto.charges(budget.unit))
        found.append(spent if math.isfinite(spent) else None)
    return found
