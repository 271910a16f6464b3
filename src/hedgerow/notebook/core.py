"""Cards of the waist: a federation, and its ledger. Both show what a program may know of them."""

from __future__ import annotations

import math
from collections import Counter
from functools import singledispatch
from itertools import groupby
from typing import Any

from hedgerow.core.federation import Federation
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.core.ledger_view import LedgerView
from hedgerow.errors import HedgerowError
from hedgerow.privacy.statement import Statement, statement
from hedgerow.report import Card, Grid
from hedgerow.report.card import listed

from . import values


@singledispatch
def card(value: Any) -> Card:
    """The card of a value of the waist."""
    return values.card(value)


@card.register
def _(federation: Federation) -> Card:
    protection, schema = federation.protection, federation.schema
    n, size = len(federation.members), federation.size
    asked = len(federation.ledger)
    who = f"{size}" if not federation.is_cohort else f"{n} of {size}, a cohort"
    said = _stated(federation.ledger, {"party": size, "record": 0})
    facts = (
        ("parties", who),
        ("questions asked", asked),
        ("noise", protection.mechanism),
        ("aggregation", protection.aggregation),
    )
    limit = federation.ledger.limit
    tables = () if schema is None else (declared(schema),)
    return Card(
        kind="federation",
        title=f"{size} parties: {listed(list(federation.names), 4)}",
        facts=facts if limit is None else (*facts, ("budget", str(limit))),
        privacy=_promise(said) if asked else None,
        tables=tables,
    )


@card.register(Ledger)
@card.register(LedgerView)
def _(ledger: Any) -> Card:
    entries, limit = ledger.entries, ledger.limit
    said = _stated(ledger, {"party": 0, "record": 0})
    spent: tuple[tuple[str, Any], ...] = ()
    if said.private and entries:
        spent = (("epsilon", said.epsilon), ("delta", said.delta), ("per", said.unit))
    facts = [("questions", len(entries)), ("released", sum(entry.event.kind != "none" for entry in entries))]
    if ledger.others:
        facts.append(("by other runs", len(ledger.others)))
    return Card(
        kind="ledger",
        facts=(*facts, *spent, ("budget", "none" if limit is None else str(limit))),
        privacy=_promise(said),
        tables=(_questions(entries),) if entries else (),
        said=(() if spent or not entries else (said.sentence,)) + ((_kinds(entries),) if entries else ()),
    )


def _stated(ledger: Any, units: Any) -> Statement:
    """The privacy statement; where there can be none, as of a ledger of two units, why."""
    try:
        return statement(ledger, units)
    except HedgerowError as error:
        return Statement(math.inf, 0.0, "party", f"No epsilon is claimed: {error.reason}")


def _promise(said: Statement) -> Any:
    return said.text, "open" if not said.private else "weak" if said.weak else "private"


def declared(schema: Any) -> Grid:
    """What a schema declares of its columns, the target first; what no column has is left out."""
    rows = [
        (column.name, column.role, column.kind, _range(column), column.unit or None, column.description or None)
        for column in sorted(schema.columns, key=lambda column: column.role != "target")
    ]
    names = ("column", "role", "kind", "range or levels", "unit", "meaning")
    kept = [i for i in range(len(names)) if i < 3 or any(row[i] is not None for row in rows)]
    return Grid("Columns as declared", tuple(names[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))


def _range(column: Any) -> str | None:
    if column.levels:
        return listed(list(column.levels), 5)
    if column.low is None or column.high is None or column.kind == "binary":
        return None
    return f"{column.low:g} to {column.high:g}"


def _questions(entries: list[Entry]) -> Grid:
    """Equal questions one after another are one row."""
    rows = []
    for _, group in groupby(entries, key=_alike):
        every = list(group)
        first, last = every[0], every[-1]
        number = str(first.round) if len(every) == 1 else f"{first.round} to {last.round}"
        number = f"{first.branch} {number}" if first.branch else number
        bound, noise = first.protection
        leaves = "nothing" if first.verb == "each" else f"{first.numbers or '?'}: {first.contribution}"
        asked = f"{first.parties:g} ({first.sampling})"
        rows.append((number, f"{first.verb} of {first.query.rpartition(':')[2]}", asked, leaves, bound, noise, first.cost))
    columns = ("question", "asked", "parties", "numbers that leave each", "bound", "noise", "charge")
    return Grid("Questions", columns, tuple(rows))


def _alike(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.branch,
        entry.verb,
        entry.query,
        entry.parties,
        entry.contribution,
        entry.protection,
        entry.cost,
        entry.sampling,
    )


def _kinds(entries: list[Entry]) -> str:
    counts = Counter(f"{entry.verb} of {entry.query.rpartition(':')[2]}" for entry in entries)
    return listed([f"{n} × {name}" for name, n in counts.most_common()], 3)
