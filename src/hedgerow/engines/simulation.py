"""What who runs a simulation may do with its handle, and a program may not: look at records and views, change the engine.

on(federation, engine)           the same parties, unasked, hosted by another engine
watch(federation)                a handle whose exchanges are recorded for every observer
view(federation, observer)       what `server`, `world` or a party saw
records(federation)              the records of all parties
told(federation)                 exact numbers asked so far, against the values that parties hold
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hedgerow.core.disclosure import Told
from hedgerow.core.federation import Federation, handle, inside
from hedgerow.core.party import Parties
from hedgerow.core.view import Observation, Views
from hedgerow.errors import BudgetInvalid, UnlawfulChannel

from .hosting import Hosting


def on(federation: Federation, engine: Hosting) -> Federation:
    """Return a federation, unasked, with its parties hosted by another engine; its seed starts again.

    Raises
    ------
    BudgetInvalid (HR-214)
        Questions were charged to the federation's budget.
    UnlawfulChannel (HR-211)
        The parties' records are not in this process.
    """
    values = inside(federation)
    if values.run.ledger.limit is not None and len(values.run.ledger):
        raise BudgetInvalid("questions were charged to this budget.", remedy="Choose the engine before the first one.")
    run = values.run.afresh(engine.hosting(records(federation).fresh()))
    return handle(values._replace(run=run, cohort=replace(values.cohort, members=_members(values, run))))


def _members(values: Any, run: Any) -> Any:
    """The members as they were, or all parties of the new engine."""
    return values.cohort.members if values.cohort.number else run.engine.parties


def watch(federation: Federation) -> Federation:
    """Return a federation with the views of all observers recorded from now on; it shares ledger and numbers with the first."""
    values = inside(federation)
    return handle(values._replace(run=replace(values.run, views=Views(recording=True))))


def view(federation: Federation, observer: str) -> list[Observation]:
    """Return what `server`, `world` or a party saw so far.

    Raises
    ------
    ViewNotRecorded
        Views are not recorded: see `watch`, or `simulate(..., record_views=True)`.
    """
    return inside(federation).run.views.of(observer)


def told(federation: Federation) -> Told:
    """Return how many exact numbers the smallest party was asked so far, against the values that it holds.

    Raises
    ------
    UnlawfulChannel (HR-211)
        What parties hold is not known in this process.
    """
    found = inside(federation).run.told()
    if found is None:
        raise UnlawfulChannel("what parties hold is not known in this process.", remedy="Ask a simulation: simulate(...).")
    return found


def records(federation: Federation) -> Parties:
    """Return the records of all parties of a simulation.

    Raises
    ------
    UnlawfulChannel (HR-211)
        They are not in this process.
    """
    held = getattr(inside(federation).run.engine, "held", None)
    if not isinstance(held, Parties):
        raise UnlawfulChannel(
            "the parties' records are not in this process.", remedy="Only a simulation in one process can look at them."
        )
    return held


def known(federation: Federation) -> bool:
    """Whether this is a simulation from a seed whose records are in this process, so that a report may show exact values."""
    run = inside(federation).run
    return run.streams.seed is not None and isinstance(getattr(run.engine, "held", None), Parties)
