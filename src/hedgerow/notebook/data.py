"""Cards of declarations."""

from __future__ import annotations

from collections import Counter
from functools import singledispatch
from typing import Any

from hedgerow.data import Schema
from hedgerow.report import Card
from hedgerow.report.card import listed

from . import values
from .core import declared


@singledispatch
def card(value: Any) -> Card:
    """The card of a value of this room."""
    return values.card(value)


@card.register
def _(schema: Schema) -> Card:
    kinds = Counter(column.kind for column in schema.columns)
    facts = (("columns", len(schema.columns)), ("target", schema.target or "none"), *kinds.items())
    return Card(kind="schema", facts=facts, tables=(declared(schema),), said=(listed([*schema.names], 6),))
