"""Rehearse a study: run its program against made-up records, and list what it would ask of the real parties.

No party is asked and no record is read by the program: each party is replaced by a few records drawn from the schema's
declared ranges. Questions, sizes, bounds, events and the budget's refusal are those of the real run as far as they do not
depend on the answers; how many rounds an iteration needs does, and the filter, not the plan, is the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.party import Parties
from hedgerow.engines import InProcess
from hedgerow.errors import NotIdentified, RangeExceeded, Separated
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import epsilon
from hedgerow.privacy.statement import Statement
from hedgerow.report import Grid
from hedgerow.store import drive

from .build import Built, build
from .cells import cells
from .changes import Change
from .compare import check_cells
from .explain import statement_of, what_left
from .planned import with_noise
from .quiet import quiet
from .study import Study

RECORDS = 200
"""Made-up records in all, at least two for each party."""

FEW_ROUNDS = 2
"""Rounds of each cell of a comparison that are rehearsed."""


@dataclass(frozen=True)
class Rehearsal:
    """What a study would do.

    Attributes
    ----------
    ledger : Ledger
        Every question in order, as it would be debited.
    ended : str
        Why the program stopped.
    """

    study: Study
    parties: int
    ledger: Ledger
    statement: Statement
    left: Grid
    ended: str

    @property
    def entries(self) -> list[Entry]:
        """Every question, in order."""
        return self.ledger.entries

    def runs(self) -> list[tuple[int, int]]:
        """First and last index of each run of equal questions."""
        kinds = [(e.verb, e.query, e.numbers, e.protection, e.compression, e.event, e.sampling) for e in self.entries]
        starts = [i for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1]]
        return list(zip(starts, [*(start - 1 for start in starts[1:]), len(kinds) - 1], strict=True))

    def epsilon_after(self, questions: int) -> float | None:
        """Epsilon spent by the first questions, at the delta of the statement; None where it is infinite."""
        budget, upto, said = self.ledger.limit, Ledger(), self.statement
        upto.entries, upto.others = self.ledger.entries[:questions], self.ledger.others
        charges = upto.charges(said.unit)
        if isinstance(budget, Budget):
            spent = budget.spent(charges)
        else:
            spent = epsilon(charges, delta=said.delta, adjacency="add-remove")
        return spent if math.isfinite(spent) else None


def rehearse(study: Study, *, data_dir: Path | None = None, rounds: int | None = None) -> Rehearsal:
    """Say what a study would ask, without asking anybody; of its first `rounds` alone, where they are given."""
    with quiet():
        make = partial(build, data_dir=data_dir)
        built = make(with_noise(study, make, data_dir))
    return rehearse_built(built, rounds=rounds)


def rehearse_built(built: Built, *, rounds: int | None = None) -> Rehearsal:
    """Say what a study that is made ready would ask, wherever its records are."""
    federation = replace(built.federation, ledger=built.unspent)
    each = max(2, RECORDS // federation.size)
    columns = built.schema.synthetic(each * federation.size, np.random.default_rng(0))
    made_up = Parties(federation.engine.parties, columns, [each] * federation.size)
    federation = replace(federation, engine=InProcess(threads=1).hosting(made_up))
    aggregation = federation.channel.aggregation
    if hasattr(aggregation, "rehearsed"):
        federation = replace(federation, channel=replace(federation.channel, aggregation=aggregation.rehearsed()))
    made_ready = replace(built, federation=federation, test=None)
    try:
        seen: list[int] = []

        def watch(state: Any) -> None:
            made_ready.measure(state)
            seen.append(state.round)

        def enough() -> str:
            return "rehearsed no further" if rounds is not None and len(seen) >= rounds else ""

        ended = drive(built.listing.program(built.settings), federation, watch=watch, enough=enough)
        n = ended.state.round if ended.state else 0
        taken = f"{n} round{'s' * (n != 1)}"
        words = f"ends after {taken}" if ended.stopped == "finished" else f"stops after {taken}: {ended.reason}"
        if ended.stopped == "patience":
            words = f"is rehearsed for {taken} only"
    except (NotIdentified, Separated, RangeExceeded) as error:
        words = f"on made-up records the fit stops early ({type(error).__name__}); real records decide how many rounds it takes"
    ledger = federation.ledger
    left = what_left(ledger.entries, aggregation.shows)
    return Rehearsal(built.study, federation.size, ledger, statement_of(built, ledger), left, words)


def rehearse_cells(
    study: Study, *, quick: bool = False, changes: Iterable[Change] = (), data_dir: Path | None = None
) -> list[tuple[list[str], Rehearsal]]:
    """Check every cell of a comparison, and rehearse its first rounds; cells that would ask the same stand together.

    Returns
    -------
    list of (names, rehearsal)
        Names of the cells that ask the same, and the rehearsal of the first of them.
    """
    found = cells(study, quick=quick, changes=changes)
    lacking = {one.cell.name for one in check_cells(study, found, data_dir) if one.absent}
    alike: dict[object, tuple[list[str], Rehearsal]] = {}
    for cell in (cell for cell in found if cell.name not in lacking):
        made = rehearse(cell.study, data_dir=data_dir, rounds=FEW_ROUNDS)
        kind = tuple((e.verb, e.query, e.numbers, e.protection, str(e.event), str(e.sampling)) for e in made.entries)
        alike.setdefault((kind, made.parties), ([], made))[0].append(cell.name)
    return list(alike.values())
