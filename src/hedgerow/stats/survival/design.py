"""Designs of survival: a formula with time and event read against a schema, the same at every party.

    "time + event ~ age + C(arm)"      or "~ age + C(arm)" with time= and event=      or "Surv(time, event) ~ age"

There is no intercept: risk sets know no level of hazard. Categories are coded as if there were one, so that the first level
is the reference. `strata(grade)` and `cluster(patient)` may stand in the formula, as in R.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.question import elementwise_where, travels
from hedgerow.errors import FormulaInvalid, NotBinary, SettingsInvalid

from ..columns import COUNTED, chosen, levels_of
from ..design import Design, design
from ..expressions import evaluate, is_arithmetic, is_binary
from ..factors import Number
from ..formula import read_number

if TYPE_CHECKING:
    from hedgerow.data import Schema

_SURV = re.compile(r"^\s*Surv\((.*)\)\s*$", re.DOTALL)
_MARK = re.compile(r"^\s*(strata|cluster)\((.*)\)\s*$", re.DOTALL)


@dataclass(frozen=True)
class SurvivalDesign:
    """The columns of a regression of survival, hashable; made by `read_survival`.

    Attributes
    ----------
    rows : Design
        The event and the right-hand side, without an intercept.
    time, entry : str
        Columns or expressions: end of the follow-up, and from when a record is at risk, where that is not the beginning.
    strata : tuple of str
        Categories whose levels have risk sets of their own.
    cluster, probability : str or None
        Columns: records that belong together, and weights that make a sample stand for others.
    cuts : tuple of float
        Ends of periods, inside the follow-up.
    varying : tuple of int
        Columns with a coefficient for each period.
    schema : Schema
        All columns that are read.
    """

    rows: Design
    time: str
    entry: str | None
    strata: tuple[str, ...]
    cluster: str | None
    probability: str | None
    cuts: tuple[float, ...]
    varying: tuple[int, ...]
    schema: Schema

    @property
    def formula(self) -> str:
        """As it was written."""
        return self.rows.formula

    @cached_property
    def columns(self) -> tuple[tuple[int, ...], ...]:
        """For each period the coefficient that belongs to each column."""
        varying, n_periods = set(self.varying), len(self.cuts) + 1
        places: list[list[int]] = [[] for _ in range(n_periods)]
        start = 0
        for column in range(self.rows.size):
            many = column in varying
            for period in range(n_periods):
                places[period].append(start + period * many)
            start += n_periods if many else 1
        return tuple(map(tuple, places))

    @cached_property
    def of_coefficient(self) -> tuple[int, ...]:
        """The column that each coefficient belongs to."""
        many, varying = len(self.cuts) + 1, set(self.varying)
        return tuple(column for column in range(self.rows.size) for _ in range(many if column in varying else 1))

    @property
    def weights(self) -> str | None:
        """Column of record weights; none, since those of the table count."""
        return self.rows.weights

    @property
    def size(self) -> int:
        """How many coefficients."""
        return len(self.of_coefficient)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        varying, periods = set(self.varying), period_names(self.cuts)
        return tuple(
            f"{name} {period}".rstrip()
            for column, name in enumerate(self.rows.names)
            for period in (periods if column in varying else ("",))
        )

    def to_unit(self) -> SurvivalDesign:
        """Return the design with each column divided by its limit."""
        return replace(self, rows=self.rows.to_unit())

    @property
    def indicated(self) -> tuple[str, ...]:
        """As of `Design`."""
        return self.rows.indicated

    @property
    def valued(self) -> tuple[str, ...]:
        """As of `Design`."""
        return tuple(name for name in self.schema.names if name not in self.rows.indicated)

    @property
    def is_arithmetic(self) -> bool:
        """As of `Design`."""
        said = [text for text in (self.time, self.entry) if text]
        return self.rows.is_arithmetic and all(is_arithmetic(text, self.schema) for text in said)


def period_names(cuts: Sequence[float]) -> tuple[str, ...]:
    """Periods as people write them; one without a name where there are no cuts."""
    if not cuts:
        return ("",)
    ends = [f"(0, {cuts[0]:g}]", *(f"({a:g}, {b:g}]" for a, b in pairwise(cuts)), f"> {cuts[-1]:g}"]
    return tuple(ends)


def read_survival(
    schema: Schema,
    formula: str,
    *,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    strata: str | Sequence[str] | None = None,
    cluster: str | None = None,
    probability: str | None = None,
    cuts: Sequence[float] | None = None,
    varying: Sequence[str] | None = None,
    offset: str | None = None,
) -> SurvivalDesign:
    """Read a formula of survival against a schema; nobody is asked.

    Parameters
    ----------
    time, event, entry
        Where the formula begins with `~`.
    varying : sequence of str, optional
        Columns of the design, or terms, with a coefficient for each period; by default all of them where there are `cuts`.

    Raises
    ------
    FormulaInvalid (HR-310), NotBinary (HR-311), MissingColumn (HR-403), SchemaInvalid (HR-409), SettingsInvalid (HR-511)
    """
    left, tilde, right = formula.partition("~")
    if not tilde:
        raise FormulaInvalid(f"{formula!r} needs one `~`.", remedy="Write `time + event ~ a + b`.")
    time, event, entry = _left(schema, left, time, event, entry)
    terms, marks = _marked(right)
    strata = (*((strata,) if isinstance(strata, str) else strata or ()), *marks["strata"])
    cluster = cluster or next(iter(marks["cluster"]), None)
    aside = [name for text in (time, entry) if text for name in read_number(text, schema).reads(schema)]
    aside += [*strata, *(name for name in (cluster, probability) if name)]
    chosen(schema, strata, COUNTED) if strata else None
    known = [schema[name].name for name in aside]
    set_aside = replace_roles(schema, known)
    rows = Design.of(f"{event} ~ {terms}", set_aside, offset=offset)
    if isinstance(rows.response, Number) and not is_binary(rows.response.text, rows.schema):
        raise NotBinary(
            f"event {event!r} is not declared binary.",
            remedy="1 where the time ended with the event, 0 where it was censored: compare it, e.g. I(status == 2);\n"
            "or declare its kind binary in the schema.",
        )
    kept = tuple(term for term in rows.terms if term.factors)
    if len(kept) == len(rows.terms):
        raise FormulaInvalid(
            f"{formula!r} takes away an intercept, which no regression of survival shows.", remedy="Leave out 0 and -1."
        )
    if not kept:
        raise FormulaInvalid(f"{formula!r} has no columns.", remedy="Add a term.")
    rows = replace(rows, terms=kept, formula=formula.strip())
    ends = rising(cuts) if cuts is not None else ()
    read = schema.select(tuple(dict.fromkeys([*rows.response.reads(schema), *rows.reads, *known])))
    return SurvivalDesign(
        rows,
        time,
        entry,
        strata,
        cluster,
        probability,
        ends,
        tuple(_varying(rows, varying)) if ends else _without_cuts(varying),
        read.allowing(missing=False),
    )


def rising(cuts: Sequence[float]) -> tuple[float, ...]:
    """Return cuts of the follow-up, which rise and lie above zero.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    ends = np.asarray(cuts, dtype=float)
    if ends.ndim != 1 or not len(ends) or not np.isfinite(ends).all() or not (np.diff(ends, prepend=0.0) > 0).all():
        raise SettingsInvalid(
            f"cuts {list(cuts)[:6]} do not rise from above zero.",
            remedy="Give one or more times, in the unit of the time column.",
        )
    return tuple(map(float, ends))


def replace_roles(schema: Schema, names: Sequence[str]) -> Schema:
    """The schema in which some columns are no features, so that `.` of a formula leaves them out."""
    return type(schema)(tuple(replace(c, role="ignore") if c.name in names else c for c in schema))


def _left(schema: Schema, left: str, time: str | None, event: str | None, entry: str | None) -> tuple[str, str, str | None]:
    """Time, event and entry, of the formula's left side or of settings, or by the roles of columns."""
    call = _SURV.match(left)
    parts = [part.strip() for part in (_split(call[1], ",") if call else _split(left, "+")) if part.strip()]
    if parts and (time or event):
        raise FormulaInvalid(f"{left.strip()!r} beside time= or event=.", remedy="Give them once.")
    if call and len(parts) == 3:
        entry, time, event = parts
    elif len(parts) == 2:
        time, event = parts
    elif parts:
        raise FormulaInvalid(f"{left.strip()!r} names no time and event.", remedy="Write `time + event ~ a + b`.")
    time, event = time or _by_role(schema, "time"), event or _by_role(schema, "event")
    if not time or not event:
        raise FormulaInvalid(
            "no column says when the follow-up ended, or whether with the event.",
            remedy="Write `time + event ~ a + b`, or give time= and event=.",
        )
    return time, event, entry


def _by_role(schema: Schema, role: str) -> str | None:
    found = [column.name for column in schema if column.role == role]
    if role == "event" and not found:  # the one target, where it can be an event
        found = [column.name for column in schema if column.role == "target" and column.kind == "binary"]
    return found[0] if len(found) == 1 else None


def _marked(right: str) -> tuple[str, dict[str, list[str]]]:
    """Take `strata(...)` and `cluster(...)` out of a sum of terms."""
    kept: list[str] = []
    marks: dict[str, list[str]] = {"strata": [], "cluster": []}
    for part in _split(right, "+"):
        call = _MARK.match(part)
        if call:
            marks[call[1]] += [name.strip() for name in call[2].split(",")]
        else:
            kept.append(part)
    return "+".join(kept).strip() or "1", marks


def _split(text: str, sign: str) -> Iterator[str]:
    """Parts of a text between signs that are in no bracket."""
    depth, start = 0, 0
    for place, one in enumerate(text):
        depth += (one in "([{") - (one in ")]}")
        if one == sign and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _varying(rows: Design, varying: Sequence[str] | None) -> Iterator[int]:
    """The columns of the design with a coefficient for each period."""
    if varying is None:
        yield from range(rows.size)
        return
    wanted = {varying} if isinstance(varying, str) else set(varying)
    place, found = 0, set()
    for term in rows.terms:
        words = {
            ":".join(factor.text for factor in term.factors),
            *(name for f in term.factors for name in f.reads(rows.schema)),
        }
        for name in term.names:
            hit = wanted & ({name} | words)
            found |= hit
            if hit:
                yield place
            place += 1
    if wanted - found:
        raise SettingsInvalid(
            f"varying={sorted(wanted - found)} is no term of {rows.formula!r}.",
            remedy=f"Its columns are {', '.join(rows.names)}.",
        )


def _without_cuts(varying: Sequence[str] | None) -> tuple[int, ...]:
    if varying is not None:
        raise SettingsInvalid("varying= without cuts=.", remedy="Give cuts= too: the times at which coefficients change.")
    return ()


@travels
@elementwise_where(lambda spec: spec.is_arithmetic)
def survival_design(columns: Mapping[str, Array], *, spec: SurvivalDesign) -> dict[str, Array]:
    """Prepare the rows of a regression of survival at a party: those of `design`, and `time`, `since`, `stratum` and others.

    `stratum` (n,) is one number for each combination of the strata's levels; `since`, `cluster` and `probability` are there
    where the design has them.
    """
    found = design(columns, spec=spec.rows)
    n = len(found["y"])
    found["time"] = np.array(np.broadcast_to(evaluate(spec.time, columns), n), dtype=np.float64)
    if spec.entry:
        found["since"] = np.array(np.broadcast_to(evaluate(spec.entry, columns), n), dtype=np.float64)
    stratum = np.zeros(n, dtype=np.int64)
    for name in spec.strata:
        stratum = stratum * len(levels_of(spec.schema[name])) + np.asarray(columns[name], dtype=np.int64)
    found["stratum"] = stratum
    if spec.cluster:
        found["cluster"] = np.asarray(columns[spec.cluster])
    if spec.probability:
        found["probability"] = np.asarray(columns[spec.probability], dtype=np.float64)
    return found
