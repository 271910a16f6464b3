"""Terms of a formula at the parties that own their columns, each in units of its own.

A column is sent into a ring of whole numbers with a fixed number of binary places. So it is centred at a whole number and
divided by a power of two, both from its declared range: whole numbers stay exact, and nothing is estimated from records. The
hub undoes both on coefficients and covariances, where it costs no digits.

    own = (x - centre) / scale,     |own| <= 1

Standardised columns would be irrational, and the rounding of a discrete column's few levels does not average out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Party
from hedgerow.core.question import local, travels
from hedgerow.data import Column, Schema
from hedgerow.errors import ColumnsDiffer, FormulaInvalid, NotFinite, SchemaInvalid, UnboundedSum
from hedgerow.stats.expressions import Interval, interval
from hedgerow.stats.factors import Levels, Term

from .few import refuse_few
from .given import gives

SINGLE_ROLES = ("target", "weight", "offset")


@travels
@dataclass(frozen=True)
class OwnTerm:
    """A term of a formula in its owner's units; `reach` is the largest absolute value there, by declared ranges."""

    term: Term
    centre: float = 0.0
    scale: float = 1.0
    reach: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its columns."""
        return self.term.names

    def columns(self, party: Party) -> Array:
        """Its columns of all records, shape (n, columns)."""
        found: Array = (self.term.columns(party.columns, len(party.w)) - self.centre) / self.scale
        return found


Terms = tuple[tuple[str, tuple[OwnTerm, ...]], ...]
"""Of each party, by name, its terms."""

CONSTANT = OwnTerm(Term())


def joint_schema(schemas: Mapping[str, Schema]) -> tuple[Schema, dict[str, str], dict[str, list[str]]]:
    """One schema of all parties' columns, the owner of each column, and the columns that several parties have.

    A role that several parties give to a column, as the target's, is given to none.
    """
    owners: dict[str, list[str]] = {}
    for party, schema in schemas.items():
        for name in schema.names:
            owners.setdefault(name, []).append(party)
    shared = {name: parties for name, parties in owners.items() if len(parties) > 1}
    columns = [column for schema in schemas.values() for column in schema if column.name not in shared]
    for role in SINGLE_ROLES:
        if sum(column.role == role for column in columns) > 1:
            columns = [replace(column, role="ignore") if column.role == role else column for column in columns]
    return Schema(tuple(columns)), {column.name: owners[column.name][0] for column in columns}, shared


def refuse_shared(texts: Iterable[str], shared: Mapping[str, Sequence[str]]) -> None:
    """Refuse a column that several parties have: which one is meant cannot be known.

    Raises
    ------
    ColumnsDiffer (HR-407)
    """
    for text in texts:
        for name, parties in shared.items():
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
                raise ColumnsDiffer(
                    f"column {name!r} is held by {' and '.join(parties)}, so that {text!r} does not say whose is meant.",
                    remedy="Give the column another name at one of them, or leave it out of the columns that it brings.",
                )


def owner_of(reads: Sequence[str], owners: Mapping[str, str], what: str) -> str:
    """The one party that holds all of some columns.

    Raises
    ------
    FormulaInvalid (HR-310)
        The columns lie at several parties.
    """
    held: dict[str, list[str]] = {}
    for name in reads:
        held.setdefault(owners[name], []).append(name)
    if len(held) > 1:
        where = ", ".join(f"{' and '.join(map(repr, names))} at {party}" for party, names in held.items())
        raise FormulaInvalid(
            f"{what!r} reads columns of several parties: {where}. No party can compute it.",
            remedy="Give each party terms of its own columns: a product of columns needs them at one place.",
        )
    return next(iter(held))


def admit_column(column: Column) -> None:
    """Refuse a column whose values may be missing, or of record weights: over columns that lie apart neither is built.

    Raises
    ------
    SchemaInvalid (HR-409)
    """
    if column.optional:
        raise SchemaInvalid(
            f"values of column {column.name!r} may be missing, and who lacks one may not be told to other parties.",
            remedy="Leave out the records that lack it before parties align, and declare it complete.",
        )


def own_units(term: Term, schema: Schema, *, centred: bool = True) -> OwnTerm:
    """Units of a term by the declared ranges of its columns.

    Raises
    ------
    UnboundedSum (HR-210)
        A range is not declared.
    """
    found = range_of_term(term, schema)
    if found is None:
        name = ":".join(factor.text for factor in term.factors)
        raise UnboundedSum(
            f"{name!r} has no declared range, and columns that lie apart become whole numbers of so many bits.",
            remedy='Declare its ends: Table.from_frame(frame, declared={"patient": {"role": "ignore"}}).declare(age=(0, 120)),'
            '\nwhere "patient" is the column of ids; or in a study [data.columns.age] low = 0, high = 120.\n'
            "An expression needs a range of its own: log(x) is bounded where x is above zero.",
        )
    low, high = found
    width = high - low
    step = 1.0 if width >= 1 or width == 0 else 2.0 ** (math.floor(math.log2(width)) - 2)
    centre = step * round((low + high) / 2 / step) if centred else 0.0
    reach = max(abs(low - centre), abs(high - centre))
    scale = 2.0 ** math.ceil(math.log2(reach)) if reach > 0 else 1.0
    return OwnTerm(term, centre, scale, reach / scale if reach > 0 else 1.0)


def range_of_term(term: Term, schema: Schema) -> Interval | None:
    """A range that holds every value of a term's columns; None where a declared range does not give one."""
    ranges = [(0.0, 1.0) if isinstance(one, Levels) else interval(one.text, schema) for one in term.factors]
    if any(one is None for one in ranges):
        return None
    return reduce(_product, (one for one in ranges if one is not None), (1.0, 1.0))


def _product(first: Interval, second: Interval) -> Interval:
    corners = [a * b for a in first for b in second]
    return min(corners), max(corners)


# ---- at the parties -------------------------------------------------------------------------------------------------
@gives("columns of the formula")
@local
def own_columns(broadcast: Any, party: Party, rng: Any, *, terms: Terms, least: int = 0) -> Array:
    """The columns of a party in its own units, shape (n, d_k); none of a party without terms.

    Parameters
    ----------
    least : int
        A column that all but fewer people have the same value of is refused: its products would be sums over those few.

    Raises
    ------
    TooFewRecords (HR-604)
        Told by its code alone.
    NotFinite (HR-404)
        An expression is undefined for some record.
    """
    own = dict(terms).get(party.id, ())
    found = block_of(party, own)
    if least > 0:
        refuse_few_of(found, least)
        for one in own:  # people of the reference are those of no other level
            if len(one.term.factors) == 1 and isinstance(one.term.factors[0], Levels):
                refuse_few(one.columns(party).sum(1), least, "the other levels together")
    return found


def refuse_few_of(columns: Array, least: int) -> None:
    """Refuse columns (n, d) that single out few people, alone or two of them together."""
    refuse_few(columns, least, "a party's own")


def block_of(party: Party, own: Sequence[OwnTerm]) -> Array:
    """Columns of terms side by side, shape (n, columns)."""
    if not own:
        return np.zeros((len(party.w), 0))
    found = np.concatenate([one.columns(party) for one in own], axis=1)
    if not np.isfinite(found).all():
        names = [name for one in own for name in one.names]
        wrong = [name for name, column in zip(names, found.T, strict=True) if not np.isfinite(column).all()]
        raise NotFinite(f"{wrong} are not finite in some records.", remedy="Change the expression.", asked=True)
    return found
