"""Who saw what of a run in which parties hold the same columns: read off the ledger, by role."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.ledger import Entry
from hedgerow.report import ForestPlot, Grid
from hedgerow.report.numerals import show

from .build import Built

TITLE = "Who saw what"
COLUMNS = ("", "Saw", "Did not see")


def who_saw_what(built: Built, forests: Sequence[ForestPlot] = ()) -> Grid:
    """A row for each role: a party, who coordinates, and who reads the page."""
    entries, protection = built.run.ledger.entries, built.federation.protection
    sums, rows = ([one for one in entries if one.verb == verb] for verb in ("sum", "gather"))  # `each` leaves nothing
    size, together = built.federation.size, _together(built)
    parties = show(size)
    hidden = protection.hides_rows
    saw = []
    if sums:
        totals = f"totals of all {parties} parties" if together == size else f"totals of groups of {together} parties or more"
        whose = totals if hidden else f"each party's part of sums over {_parties(size)}"
        saw.append(f"{whose}: {_counted(sums)}")
    if rows:
        saw.append(f"by itself what each party was asked for: {_counted(rows)}")
    if protection.noisy:
        saw.append(f"all of it with noise ({protection.mechanism})")
    unseen = "any record; any single party's part of a total" if hidden and size > 1 else "any record"
    shown = any(forest.rows for forest in forests)
    read = "what is printed here" + (", with each party's own estimate in the forest plot" if shown else "")
    others = "any record; any other number of a single party" if shown else "any record; any number of a single party"
    apart = "any record or number of another party"
    if size == 1:  # what is printed is the party's own
        apart, others = "", "any record"
    if size == 2:
        apart = "any record of the other party; of a total and its own part it knows the other's"
    lines = (
        ("Each party", "its own records, and every question that it was asked", apart),
        ("The coordinator", "; ".join(saw) or "nothing", unseen),
        ("Readers of this page", read, others),
    )
    simulated = (
        "The run was a simulation, on one machine: this is who would see what in a deployment. " if built.simulated else ""
    )
    return Grid(TITLE, COLUMNS, lines, f"{simulated}Counted from the ledger; {protection.shows}.")


def given_away(built: Built, forests: Sequence[ForestPlot], statement: str, promise: str) -> str:
    """What a page of findings gives away, in two sentences: whose numbers are on it, and what is promised of them."""
    shown = any(forest.rows for forest in forests)
    one = f", and for {'one figure' if len(forests) == 1 else 'some figures'} one estimate of each party" if shown else ""
    size, together = built.federation.size, _together(built)
    whose = f"Totals over {_parties(size)}" + (f", in groups of {together} or more" if together < size else "")
    if size == 1:
        whose = "Numbers of one party alone, which no total hides"
    return f"{whose}{one}. {promise}: {statement[:1].lower()}{statement[1:]}"


def _parties(size: int) -> str:
    return f"{show(size)} {'party' if size == 1 else 'parties'}"


def _together(built: Built) -> int:
    """How many parties are in the smallest total that the coordinator sees."""
    size, aggregation = built.federation.size, built.study.protection.slots()["aggregation"]
    return size if aggregation is None else min(size, aggregation.together(size))


def _counted(entries: Sequence[Entry]) -> str:
    known = [one.numbers for one in entries if one.numbers is not None]
    numbers = f", {show(sum(known))} numbers in all" if len(known) == len(entries) else ""
    return f"{show(len(entries))} question{'s' * (len(entries) != 1)}{numbers}"
