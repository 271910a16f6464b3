"""The privacy statement: what a ledger guarantees, and what was published beside it, in sentences that leave nothing out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hedgerow.core.events import Unit
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.mechanism import Position

from .accounting import epsilon
from .budget import Budget
from .owners import Individuals

WEAK = 20.0
"""A larger epsilon is called weak in reports."""

DELTA = 1e-6
"""Without a budget, and where nobody knows how many units there are, epsilon is at this delta."""


Status = Literal["charged", "exposed", "declared", "public"]
"""Of something that is published: paid for in a ledger; computed from records without protection; said by people, who may have
looked at records; not computed from records."""


@dataclass(frozen=True)
class Publication:
    """Something that a run publishes.

    Attributes
    ----------
    what : str
    whose : str
        Whose data it was computed from, or who said it.
    status : {"charged", "exposed", "declared", "public"}
    unit : str
        Whose presence the charge protects: "party" or "record"; "" where nothing is charged.
    how : str
        By what it is protected, or why it is not.
    """

    what: str
    whose: str
    status: Status
    unit: str = ""
    how: str = ""


@dataclass(frozen=True)
class Statement:
    """What was spent, and the sentences that say so.

    Attributes
    ----------
    epsilon : float
        Infinity where some release was not private; under a filter that of the budget, whatever was used of it.
    delta : float
    unit : {"party", "record"}
    sentence : str
        What the ledger guarantees.
    exposed : str
        What is published without protection beside what the ledger has; "" where nothing is, or nobody said.
    published : tuple of Publication
        Everything that is published, the ledger's releases included.
    disclosed : str
        How many exact numbers were asked, against the values that parties hold; "" where nobody said.
    """

    epsilon: float
    delta: float
    unit: Unit
    sentence: str
    exposed: str = ""
    published: tuple[Publication, ...] = ()
    disclosed: str = ""

    @property
    def text(self) -> str:
        """All sentences."""
        return " ".join(filter(None, (self.sentence, self.disclosed, self.exposed)))

    @property
    def private(self) -> bool:
        """Whether a finite epsilon is claimed."""
        return math.isfinite(self.epsilon)

    @property
    def weak(self) -> bool:
        """Whether a finite epsilon is claimed that promises hardly anything: even odds may become 500 million to one."""
        return self.private and self.epsilon > WEAK


def statement(
    ledger: Ledger, units: Mapping[Unit, int], individuals: Individuals | None = None, *, delta: float | None = None
) -> Statement:
    """Interpret a ledger, what other runs wrote to it included.

    Parameters
    ----------
    units : mapping
        How many parties and records there are, 0 where nobody knows: without a budget, delta is a tenth of one over the
        number of units, or `DELTA`.
    individuals : Individuals, optional
        What individuals lost at owners who keep ledgers (`hedgerow.privacy.owners`), to be said beside it.
    delta : float, optional
        At which epsilon is said where there is no budget, such as that for which a program planned its noise.
    """
    budget = ledger.limit if isinstance(ledger.limit, Budget) else None
    entries = [*ledger.others, *ledger.entries]
    unit: Unit = budget.unit if budget else next((entry.unit for entry in entries if entry.unit), "party")
    delta = budget.delta if budget else delta or (0.1 / units[unit] if units[unit] else DELTA)
    releases = [entry for entry in entries if entry.event.kind != "none"]
    if not releases:
        return Statement(0.0, delta, unit, "Nothing was released.")
    n_open = sum(entry.event.open for entry in releases)
    if n_open:
        where = " of this run and of others that share its ledger" if ledger.others else ""
        plural = "s" * (len(releases) != 1)
        n_rows = sum(entry.event.kind == "rows" for entry in releases)
        rows = f", {n_rows} with a row for each record" if n_rows else ""
        sentence = f"No epsilon is claimed: {n_open} of {len(releases)} release{plural}{where} went out without noise{rows}."
        return Statement(math.inf, delta, unit, sentence)
    charges = ledger.charges(unit)
    spent = budget.spent(charges) if budget else epsilon(charges, delta=delta, adjacency="add-remove")
    held = budget is not None and budget.filter is not None
    limit = f" of a budget of {budget.epsilon:g}" if budget else ""
    claimed = budget.epsilon if budget and held else spent
    parts = (
        f"Epsilon {claimed:.4g}{'' if held else limit} at delta {delta:g} per {unit}, {adjacency(releases, unit)}",
        f"{_counted(ledger, releases)}, sampling: {', '.join(sorted({str(entry.sampling) for entry in releases}))}",
        *_composed(ledger, budget, spent),
        _randomness(releases),
        *([individuals.sentence] if individuals else []),
        "tuning not counted",
    )
    return Statement(claimed, delta, unit, "; ".join(parts) + ".")


def _composed(ledger: Ledger, budget: Budget | None, spent: float) -> list[str]:
    """By which theorem charges were added up, and what has to be true for it."""
    if budget is not None and budget.measure is not None:
        return [f"held by a {budget.measure}, also where noise and sampling followed from answers, and used to {spent:.4g}"]
    said = [f"accountant: {budget.accountant if budget else 'tightest'}, for noise and sampling fixed beforehand"]
    if ledger.others:
        said.append("where a later run was chosen by what an earlier one released, only a budget with a filter holds")
    return said


def _counted(ledger: Ledger, releases: list[Entry]) -> str:
    """How many releases there were, and how many of them were not this run's."""
    elsewhere = sum(entry.event.kind != "none" for entry in ledger.others)
    if not elsewhere:
        return f"{len(releases)} release{'s' * (len(releases) != 1)}"
    if not ledger.entries:
        return f"{len(releases)} release{'s' * (len(releases) != 1)} of all runs"
    return f"{len(releases)} releases, {elsewhere} of them by other runs that share the ledger"


def added_at(mechanism: str) -> Position:
    """Who adds the noise of a mechanism, by its words in a ledger."""
    if mechanism.endswith("at the party"):
        return "party"
    if " in shares of " in mechanism:
        return "shares"
    return "aggregators" if mechanism.endswith(" aggregators") else "server"


def adjacency(releases: list[Entry], unit: Unit) -> str:
    """Which data are neighbours, and from whom they are hidden."""
    places = {added_at(entry.mechanism) for entry in releases}
    if unit == "party" and any(entry.sampling.kind in ("given", "dealt") for entry in releases):
        return "between any two contributions of a party at a public schedule, against whoever sees the releases alone"
    if places == {"shares"}:
        least = max(entry.mechanism.split("in shares of ")[-1] for entry in releases)
        return f"add-remove adjacency, also against the server where {least} add their shares of noise"
    if places == {"aggregators"}:
        return f"add-remove adjacency, also against the server while one of the {_several(releases)} keeps its noise secret"
    replaced = unit == "party" and "party" in places
    neighbours = "between any two contributions of a party that takes part" if replaced else "add-remove adjacency"
    if places == {"party"}:
        return f"{neighbours}, also against the server"
    kept = "but not the server"
    if any(map(_seen_by_aggregators, releases)):
        kept = "but neither the server nor an aggregator, who sees which parties were drawn"
    return f"{neighbours}, against whoever sees the releases {kept}"


def _seen_by_aggregators(entry: Entry) -> bool:
    """Whether aggregators know who is in the cohort of a question, so that being drawn protects nobody from them."""
    return entry.aggregation.startswith("additive-share") and entry.sampling.kind in ("poisson", "fixed")


def _several(releases: list[Entry]) -> str:
    """The aggregators of a run, in words: the fewest, where their number differs."""
    return min((entry.mechanism.rpartition(" at each of ")[-1] for entry in releases), key=_number)


def _number(said: str) -> int:
    first = said.split()[0]
    return int(first) if first.isdigit() else 0


def _randomness(releases: list[Entry]) -> str:
    if any("not for deployment" in entry.mechanism for entry in releases):
        return "noise in floating point (not for deployment)"
    if all(entry.randomness == "system" for entry in releases):
        return "noise from the operating system's entropy"
    return "noise from a simulation seed (not for deployment)"
