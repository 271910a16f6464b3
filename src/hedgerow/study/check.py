"""Checks of a study that is ready, before any party is asked: its first question, and the metrics that it will have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hedgerow.core.federation import handle, inside
from hedgerow.core.ledger import Ledger
from hedgerow.core.party import Parties
from hedgerow.engines import InProcess
from hedgerow.errors import HedgerowError, StudyInvalid

from .build import Built
from .first_question import first_unit
from .membership import METRICS

RECORDS = 40
"""Made-up records with which `measures` finds the names of metrics."""


def check(built: Built) -> None:
    """Run a program up to its first question, which is not asked, so that what it refuses it refuses now.

    Raises
    ------
    HedgerowError
        A formula, a model, a setting or a channel that does not fit; a budget that does not allow one question; patience or a
        target where nothing is measured; a lie in rows that are bounded per record.
    """
    first_unit(built)
    evaluation = built.study.evaluation
    if evaluation.by_round and measures(built, ended=False) == []:
        where = (
            "the server holds no table" if built.test is None and evaluation.on == "test" else "the program has no metric there"
        )
        parties = " or measure at the parties (on = 'parties')" if built.listing.ask is not None else ""
        raise StudyInvalid(
            f"evaluation.patience, target and keep need a metric by round, and {where}.",
            remedy=f"Give the server a table (evaluation.holdout = 0.2){parties}.",
        )


def measures(built: Built, *, ended: bool = True) -> list[str] | None:
    """Names of a run's metrics, found by one short round on made-up records; None where that cannot be fitted.

    Parameters
    ----------
    ended : bool
        Whether those count that a run has at its end only.
    """
    columns = built.schema.synthetic(RECORDS, np.random.default_rng(0))
    weight = built.schema.weight
    party = Parties(("made up",), columns, [RECORDS], columns[weight] if weight else None)
    values = inside(built.federation)
    run = values.run.afresh(InProcess(threads=1).hosting(party), ledger=Ledger(), holdings=None)
    federation = handle(values._replace(run=run, cohort=replace(values.cohort, members=party.ids)))
    settings = dict(built.listing.alone(built.settings, 1))
    if settings.get("steps"):
        settings["steps"] = 1
    few = {name: None if table is None else table.take(slice(RECORDS)) for name, table in built.of_server.items()}
    tried = replace(built, federation=federation, **few)
    try:
        state = next(iter(built.listing.program(settings, tried.test)(federation)))
        outcome = tried.shown(state) if ended else None
        leaked = METRICS if ended and built.study.evaluation.membership else ()
        return [*tried.metrics(state), *(outcome.metrics if outcome else ()), *leaked]
    except (HedgerowError, np.linalg.LinAlgError, StopIteration):
        return None
