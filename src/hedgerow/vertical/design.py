"""Designs over columns that lie apart: a formula's terms by owner, and where their columns stand in a cross product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.crypto.cross.bits import ColumnReach
from hedgerow.data import Schema
from hedgerow.errors import DisclosureExceeded, NotBinary, SettingsInvalid
from hedgerow.stats.design import Design, design_of
from hedgerow.stats.factors import INTERCEPT, Term
from hedgerow.stats.formula import read_number
from hedgerow.stats.linear.losses import FamilyName

from .terms import CONSTANT, OwnTerm, Terms, admit_column, joint_schema, own_units, owner_of, refuse_shared


@dataclass(frozen=True)
class HeldColumns:
    """Columns with their owners, in an order of the program's choice.

    Attributes
    ----------
    terms : tuple of (party, terms)
        In the order of the parties, which is that of a cross product.
    place : array of int, shape (d,)
        Where each column, in the program's order, stands in a cross product.
    names : tuple of str
    centre, scale : arrays of shape (d,)
        Of each column, in the program's order: `x = centre + scale * own`.
    """

    terms: Terms
    place: Array
    names: tuple[str, ...]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, parties: Sequence[str], owned: Sequence[tuple[str, OwnTerm]]) -> HeldColumns:
        """From owners and terms in the program's order."""
        terms = tuple((party, tuple(term for owner, term in owned if owner == party)) for party in parties)
        starts, place = [], 0
        for party in parties:  # of each term, where its first column stands
            for i, (owner, term) in enumerate(owned):
                if owner == party:
                    starts.append((i, place))
                    place += len(term.names)
        first = dict(starts)
        spread = [(one, j, first[i]) for i, (_, one) in enumerate(owned) for j in range(len(one.names))]
        return cls(
            terms,
            np.array([start + j for _, j, start in spread], dtype=np.intp),
            tuple(one.names[j] for one, j, _ in spread),
            *(np.array([getattr(one, name) for one, _, _ in spread], dtype=float) for name in ("centre", "scale")),
        )

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.names)

    def reaches(self) -> dict[str, ColumnReach]:
        """How far the columns of each party reach, by declared ranges."""
        found = {}
        for party, own in self.terms:
            largest = tuple(one.reach for one in own for _ in one.names)
            found[party] = ColumnReach(largest)
        return found

    @property
    def rows(self) -> dict[str, ColumnReach]:
        """The same of rows that hold the columns of all parties side by side, each at its owner and zeros elsewhere."""
        found, start = {}, 0
        for party, reach in self.reaches().items():
            own = reach.largest or ()
            largest = np.zeros(self.size)
            largest[start : start + len(own)] = own
            start += len(own)
            found[party] = ColumnReach(tuple(largest.tolist()))
        return found

    def to_cross(self, values: Array) -> Array:
        """Numbers (d,) of columns in the order of a cross product."""
        found = np.empty(self.size)
        found[self.place] = values
        return found


@dataclass(frozen=True)
class Apart:
    """A regression over columns that lie apart.

    Attributes
    ----------
    spec : Design
        The formula against the columns of all parties.
    label_at : str
        The party that holds the target, and the intercept.
    columns : sequence of (party, term)
        In the formula's order.
    target : OwnTerm
    offset_at : str or None
        The party that holds the offset.
    """

    spec: Design
    label_at: str
    columns: tuple[tuple[str, OwnTerm], ...]
    target: OwnTerm
    offset_at: str | None = None

    @property
    def fewest(self) -> int:
        """Columns of the party that brings the fewest, of those that bring any; the intercept is nobody's."""
        found: dict[str, int] = {}
        for party, one in self.columns:
            if one.term.factors:
                found[party] = found.get(party, 0) + len(one.names)
        return min(found.values(), default=0)


def apart(
    parties: Mapping[str, Schema],
    n: int,
    formula: str,
    family: FamilyName,
    *,
    offset: str | None = None,
    centred: bool = True,
) -> Apart:
    """Read a formula against the columns of several parties; nobody is asked.

    Parameters
    ----------
    parties : mapping from party to Schema
    n : int
        Common records.
    formula, family, offset
        As of a regression whose parties hold the same columns.
    centred : bool
        Whether columns are centred where the formula has an intercept, which takes the centre up.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SchemaInvalid (HR-409)
    ColumnsDiffer (HR-407)
        A column of the formula is held by several parties.
    UnboundedSum (HR-210)
        A range is not declared.
    DisclosureExceeded (HR-216)
        As many columns as records.
    """
    schema, owners, shared = joint_schema(parties)
    refuse_shared([formula, *([offset] if offset else [])], shared)
    offset = offset or schema.offset
    try:
        spec = design_of(schema, formula, family, offset=offset)
    except NotBinary as error:
        raise NotBinary(
            error.reason, remedy="Make a column that is 1 for one level and 0 for the others, at its party."
        ) from None
    for name in spec.schema.names:
        admit_column(schema[name])
    if schema.weight is not None:
        raise SettingsInvalid(
            f"column {schema.weight!r} holds record weights, which regressions over columns that lie apart do not take.",
            remedy="Give the column another role; or repeat records before parties align.",
        )
    label_at = owner_of(spec.response.reads(schema), owners, spec.response.text)
    centred = centred and INTERCEPT in spec.names
    columns = tuple(
        (label_at, CONSTANT)
        if not term.factors
        else (owner_of(_reads(term, schema), owners, _text(term)), own_units(term, schema, centred=centred))
        for term in spec.terms
    )
    check_size(n, spec.size + 1)
    offset_at = owner_of(read_number(offset, schema).reads(schema), owners, offset) if offset else None
    target = own_units(Term((spec.response,)), schema, centred=centred and family == "gaussian")
    return Apart(spec, label_at, columns, target, offset_at)


def check_size(n: int, d: int) -> None:
    """Refuse as many columns as records: sums of products would be the records themselves.

    Raises
    ------
    DisclosureExceeded (HR-216)
    """
    if d >= n:
        raise DisclosureExceeded(
            f"sums of products of {d} columns, of {n} common records, would give the records themselves.",
            remedy="Take fewer columns or levels, or align parties that have more people in common.",
        )


def _reads(term: Term, schema: Schema) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for factor in term.factors for name in factor.reads(schema)))


def _text(term: Term) -> str:
    return ":".join(factor.text for factor in term.factors)
