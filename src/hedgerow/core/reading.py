"""Which columns a question reads, found out on made-up records before any party is asked.

A question names its columns in settings and in preparations, each in its own way. So a local function is asked about made-up
records whose columns note that they are read (`layouts`), and `columns_read` tells the columns of the schema among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hedgerow.errors import ColumnUndeclared, NotFinite

from .arrays import Array
from .party import Parties, Party

if TYPE_CHECKING:
    from .layouts import Layouts
    from .question import Preparation, Question
    from .randomness import Streams


def columns_read(question: Question, layouts: Layouts, streams: Streams) -> tuple[str, ...]:
    """Return the declared columns that a question reads, in the order of the schema; the one place that tells.

    Record weights are read with every record and are not among them. Of a question that fails for made-up records all
    columns are told, since nothing else is known.

    Parameters
    ----------
    question : Question
    layouts : Layouts
        Of the run (`Run.layouts`); what is found is kept there.
    streams : Streams

    Returns
    -------
    tuple of str
        Empty where the federation has no schema.
    """
    found, schema = layouts.of(question, streams), layouts.schema
    if schema is None:
        return ()
    return tuple(column.name for column in schema if found.unknown or column.name in found.reads)


def refuse_missing(question: Question, bare: frozenset[str], schema: Any) -> None:
    """Refuse a question that reads values which may be missing, and does not say what happens to those records.

    Raises
    ------
    NotFinite (HR-404)
        Before any party is asked.
    """
    optional = [name for name in getattr(schema, "optional", ()) if name in bare]
    if optional:
        named = ", ".join(optional[:5]) + (", ..." if len(optional) > 5 else "")
        raise NotFinite(
            f"{question.name} reads {named}, of which values may be missing, and does not say what happens to those records.",
            remedy="Leave them out: federation = hr.data.complete_cases(federation, [names of the columns that it reads]).",
        )


def refuse_inferred(question: Question, names: Sequence[str], schema: Any) -> None:
    """Refuse a question that promises protection, and reads columns whose levels or kind were read off the records.

    Bounds, codes and the length of an answer would follow from records, which no noise covers: one typo more is a level more.

    Parameters
    ----------
    names : sequence of str
        The columns that it reads; the weight of records is looked at besides.

    Raises
    ------
    ColumnUndeclared (HR-410)
        Before any party is asked.
    """
    looked = {*names, getattr(schema, "weight", None)}
    found = [column for column in schema or () if column.name in looked and getattr(column, "inferred", False)]
    if found:
        told = [f"{one.name} ({f'{len(one.levels)} levels' if one.levels else one.kind})" for one in found[:5]]
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise ColumnUndeclared(
            f"{question.name} promises protection and reads {', '.join(told)}{more}, of which nobody declared what values they "
            "have: that was read off the records, and tells of them whatever the noise.",
            remedy='Declare them: declared={"NAME": {"levels": [...]}} or {"kind": "binary"} where the table is made, '
            "[data.columns.NAME] of a study, or a dictionary: hedgerow dictionary draft FILE writes one to complete.",
        )


@dataclass
class Seen:
    """What has been read: `reads` all columns, `bare` those read by what does not know of missing values."""

    reads: set[str] = field(default_factory=set)
    bare: set[str] = field(default_factory=set)
    minded: bool = False

    def note(self, name: str) -> None:
        """Note that a column is read."""
        self.reads.add(name)
        if not self.minded:
            self.bare.add(name)

    @contextmanager
    def by(self, function: Any) -> Iterator[None]:
        """Note reads as those of a function."""
        before, self.minded = self.minded, bool(getattr(function, "minds_missing", False))
        try:
            yield
        finally:
            self.minded = before

    def view(self, question: Question) -> tuple[Any, ...]:
        """The preparations of a question, whose reads are noted as theirs."""
        return tuple(_Watching(one, self) for one in question.view)


@dataclass(frozen=True, eq=False)
class _Watching:
    """A preparation whose reads are noted as its own."""

    one: Preparation
    seen: Seen

    @property
    def elementwise(self) -> bool:
        return self.one.elementwise

    def __call__(self, party: Party) -> Mapping[str, Array]:
        with self.seen.by(self.one.function):
            return self.one(party)


class _Noted(Mapping[str, Array]):
    """Columns that note which of the declared ones are read."""

    def __init__(self, columns: Mapping[str, Array], declared: frozenset[str], seen: Seen) -> None:
        self._columns, self._declared, self._seen = columns, declared, seen

    def __getitem__(self, name: str) -> Array:
        found = self._columns[name]
        if name in self._declared:
            self._seen.note(name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Watched(Parties):
    """Parties whose columns note that they are read, as long as they are the declared ones."""

    def __init__(
        self,
        ids: Sequence[str],
        columns: Mapping[str, Array],
        sizes: Sequence[int] | Array,
        w: Array,
        *,
        declared: frozenset[str],
        seen: Seen,
    ) -> None:
        super().__init__(ids, columns, sizes, w)
        self.declared, self.seen = declared, seen

    @classmethod
    def nobody(cls, columns: Mapping[str, Array], w: Array, seen: Seen) -> Watched:
        """One made-up party."""
        return cls(("nobody",), columns, [len(w)], w, declared=frozenset(columns), seen=seen)

    def __getitem__(self, i: Any) -> Any:
        return self._noted(super().__getitem__(i))

    @property
    def kept(self) -> Party:
        """All records as they are held."""
        return self._noted(super().kept)

    def _noted(self, party: Party) -> Party:
        return Party(party.id, _Noted(party.columns, self.declared, self.seen), party.w)

    def _extended(self, made: dict[str, Array]) -> Parties:
        before, self.declared = self.declared, self.declared - made.keys()
        try:
            return super()._extended(made)
        finally:
            self.declared = before

    def _like(self, columns: dict[str, Array], w: Array) -> Parties:
        return Watched(self.ids, columns, self.sizes, w, declared=self.declared, seen=self.seen)
