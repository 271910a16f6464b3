"""Rehearse a study: run its program against made-up records, and list what it would ask of the real parties.

No party is asked and no record is read by the program: each party is replaced by a few records drawn from the schema's
declared ranges. Questions, sizes, bounds, events and the budget's refusal are those of the real run as far as they do not
depend on the answers; how many rounds an iteration needs does, and the filter, not the plan, is the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.disclosure import ALLOW, REMEDY
from hedgerow.core.federation import handle, inside
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.party import Parties
from hedgerow.data import Schema
from hedgerow.engines import InProcess
from hedgerow.errors import NotFinite, NotIdentified, RangeExceeded, Separated
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import epsilon
from hedgerow.privacy.statement import Statement
from hedgerow.report import Grid
from hedgerow.store import Driven, drive

from .agreed import budget_grids, forecast_grids
from .answering import FewAnswer
from .attacked import attack_grids
from .build import Built, build
from .disclosed import room_of, told_of, unlimited
from .explain import statement_of, what_left
from .furthest import taken_furthest
from .planned import with_noise
from .quiet import quiet
from .study import Study

RECORDS = 200
"""Made-up records in all, at least two for each party."""


@dataclass(frozen=True)
class Rehearsal:
    """What a study would do.

    Attributes
    ----------
    ledger : Ledger
        Every question in order, as it would be debited.
    ended : str
        Why the program stopped.
    whole : bool
        Whether it came to its own end.
    after : tuple of int
        Questions that had been asked by the end of each round.
    room : str
        For how many rounds the rule of exact numbers leaves room, where that is known and the program may take more.
    agreed : tuple of Grid
        What each party with a budget would lose, and what was expected of a run, where the study says so.
    """

    study: Study
    parties: int
    ledger: Ledger
    statement: Statement
    left: Grid
    ended: str
    whole: bool = True
    after: tuple[int, ...] = ()
    room: str = ""
    agreed: tuple[Grid, ...] = ()

    @property
    def entries(self) -> list[Entry]:
        """Every question, in order."""
        return self.ledger.entries

    def runs(self) -> list[tuple[int, int]]:
        """First and last index of each run of equal questions."""
        kinds = [(e.verb, e.query, e.numbers, e.protection, e.compression, e.event, e.sampling) for e in self.entries]
        starts = [i for i, kind in enumerate(kinds) if i == 0 or kind != kinds[i - 1]]
        return [(first, after - 1) for first, after in pairwise([*starts, len(kinds)])]

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


def rehearse(study: Study, *, data_dir: str | Path | None = None, rounds: int | None = None) -> Rehearsal:
    """Say what a study would ask, without asking anybody; of its first `rounds` alone, where they are given."""
    with quiet():
        make = partial(build, data_dir=data_dir)
        built = make(with_noise(study, make, data_dir))
    return rehearse_built(built, rounds=rounds)


def positive(schema: Schema, n: int) -> dict[str, np.ndarray]:
    """Made-up records of which numbers without a declared range are positive: a logarithm or a count is made of many."""
    drawn = schema.synthetic(n, np.random.default_rng(0))
    free = [column for column in schema if column.kind in ("number", "integer") and column.low is column.high is None]
    return drawn | {column.name: np.abs(drawn[column.name]) + (column.kind == "number") / 64 for column in free}


def refuse_beyond(built: Built) -> None:
    """Refuse a study that would ask too many exact numbers, by its rehearsal, so that nothing of it is asked.

    Raises
    ------
    DisclosureExceeded (HR-216)
    """
    holdings = built.run.holdings
    if holdings is not None and holdings.disclosure is not None and math.isfinite(holdings.disclosure.most):
        disclosure = holdings.disclosure
        with quiet():
            found = rehearse_built(built, until=lambda ledger: told_of(built, ledger).ratio > disclosure.most)
        told = told_of(built, found.ledger)
        holdings.disclosure.refuse(told, "rehearsed on made-up records, the study asks too much", remedy=REMEDY + ALLOW)


def rehearse_built(
    built: Built,
    *,
    rounds: int | None = None,
    until: Callable[[Ledger], bool] | None = None,
    ledger: Ledger | None = None,
) -> Rehearsal:
    """Say what a study made ready would ask, wherever its records are: of so many rounds, or `until` a ledger is enough.

    It is charged to `ledger`, by default one under the study's budgets, which may end it.
    """
    values = inside(built.federation)
    each = max(2, RECORDS // values.run.size)
    columns = positive(built.schema, each * values.run.size)
    made_up = Parties(built.federation.names, columns, [each] * values.run.size)
    run = values.run.afresh(
        FewAnswer(InProcess(threads=1).hosting(made_up)),
        ledger=built.unspent if ledger is None else ledger,
        holdings=unlimited(values.run.holdings),
    )
    aggregation = values.channel.aggregation
    channel = replace(values.channel, aggregation=aggregation.rehearsed())
    federation = handle(values._replace(run=run, channel=channel))
    made_ready = replace(built, federation=federation, test=None)
    ended: Driven | None = None
    seen: list[int] = []
    try:

        def watch(state: Any) -> None:
            made_ready.measure(state)
            seen.append(len(run.ledger))

        def enough() -> str:
            cut = (rounds is not None and len(seen) >= rounds) or (until is not None and until(run.ledger))
            return "rehearsed no further" if cut else ""

        ended = drive(built.listing.program(built.settings), federation, watch=watch, enough=enough, progress=False)
        if ended.state is not None:
            metrics = made_ready.measure_last(ended.state)
            if refusal := getattr(metrics, "refused", None):
                raise refusal
        n = ended.state.round if ended.state else 0
        taken = f"{n} round{'s' * (n != 1)}"
        words = f"ends after {taken}" if ended.stopped == "finished" else f"stops after {taken}: {ended.reason}"
        if ended.stopped == "patience":
            words = f"is rehearsed for {taken} only"
    except (NotFinite, NotIdentified, RangeExceeded, Separated) as error:
        if isinstance(error, RangeExceeded) and not error.asked and not run.ledger.entries:
            raise  # of the settings, whatever the records are
        words = f"on made-up records the fit stops early ({type(error).__name__}); real records decide how many rounds it takes"
    ledger = run.ledger
    if ended is not None and ended.stopped == "finished":
        words += taken_furthest(made_ready, ledger)
    left, whole = what_left(ledger.entries, aggregation.shows), ended is not None and ended.stopped == "finished"
    said, room = statement_of(built, ledger), room_of(built, ledger, seen)
    agreed = (*budget_grids(ledger), *forecast_grids(built.study), *attack_grids(built, {}, {}))
    return Rehearsal(built.study, federation.size, ledger, said, left, words, whole, tuple(seen), room, agreed)
