"""What a guard allows: checks of a study when it asks to board, and of each of its questions.

Pure functions of a configuration and of what is to be judged; each refuses by raising one of the 6xx errors, of which only
the code leaves the station.

    boarding    program, version, code    columns    records    protection and cohort of every rehearsed question
    question    announced    hours    cohort    records    protection

Who is `asked` is what the server says. That a total is of so many parties is certain only where rows are hidden: then it is
the parties' own masks that need them, and `least` of the aggregation that they keep to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from hedgerow.core.disclosure import covers
from hedgerow.core.engine import Outbox
from hedgerow.crypto.aggregation import steadily
from hedgerow.data import Column, Schema
from hedgerow.errors import (
    CohortForbidden,
    ColumnForbidden,
    ColumnUndeclared,
    LimitExceeded,
    MessageRefused,
    MissingColumn,
    OutsideHours,
    ProgramForbidden,
    ProtectionRequired,
    SchemaInvalid,
    TooFewRecords,
)
from hedgerow.study.several import programs_in
from hedgerow.wire.names import Names
from hedgerow.wire.question import Received

from .aggregations import answers_once, proves_rows, smallest_total, withstands
from .asked_noise import noise_at, noise_multiplier
from .by_party import admit_by_party
from .config import GuardSection, RequireSection
from .hours import Hours

if TYPE_CHECKING:
    from hedgerow.study.study import Study

STRENGTH = {"none": 0, "server": 1, "aggregators": 2, "shares": 3, "party": 4}
"""Whose noise is worth how much.

That of the server needs trust in it, that of aggregators in one of them, that of all parties in `least` of many others, one's
own in nobody.
"""

PATH = re.compile(r"([A-Za-z_]\w*)((?:\.\w+)*):([A-Za-z_][\w.]*)")
"""An import path, by which settings of a study may name a factory."""


# ---- boarding -------------------------------------------------------------------------------------------------------
def admit_program(guard: GuardSection, study: Study, told: str, installed: str, code: str) -> None:
    """Refuse a program, a version or an import path that the guard does not list.

    Parameters
    ----------
    told, installed : str
        Hedgerow's version at the coordinator, and here.
    code : str
        Hash of the installed code.

    Raises
    ------
    ProgramForbidden (HR-602)
    """
    for name, _ in programs_in(study):
        _admit_named(guard, name, told, installed, code)
    allowed = ("hedgerow", *guard.modules)
    for text in _strings(study.program.model_dump()):
        match = PATH.fullmatch(text)
        if match is None or find_spec(match[1]) is None:
            continue  # `age:dose` is a term of a formula
        try:
            Names(allowed).function(text)
        except MessageRefused as error:
            raise ProgramForbidden(
                f"the study names {text!r}, and this station runs marked functions of {', '.join(allowed)} alone.",
                remedy="To allow a package that is installed and reviewed here: guard.modules.",
            ) from error


def _admit_named(guard: GuardSection, name: str, told: str, installed: str, code: str) -> None:
    """Refuse one program by its name; of several each has to be allowed."""
    if guard.programs is not None:
        rules = [rule for rule in guard.programs if rule.name == name]
        if not rules:
            listed = ", ".join(sorted({rule.name for rule in guard.programs})) or "none"
            raise ProgramForbidden(f"the program {name!r} is not among those allowed: {listed}.", remedy="See guard.programs.")
        fits = [r for r in rules if fnmatchcase(told, r.version) and fnmatchcase(installed, r.version)]
        if not fits:
            versions = ", ".join(rule.version for rule in rules)
            raise ProgramForbidden(
                f"{name} is allowed in version {versions}; the coordinator has {told}, this station {installed}.",
                remedy="Install the same version at both ends, or allow this one in guard.programs.",
            )
        if all(rule.code and rule.code != code for rule in fits):
            raise ProgramForbidden(
                f"{name} is allowed with the code {fits[0].code}, and what is installed here is {code}.",
                remedy="Find out what changed; `hedgerow station check` prints the hash of the installed code.",
            )


def admit_columns(allowed: Collection[str], declared: Schema, told: Sequence[Column], named: Iterable[str] = ()) -> Schema:
    """Return the columns that a study may touch, or refuse it.

    Parameters
    ----------
    allowed : collection of str
        By the guard.
    declared : Schema
        All columns of this station.
    told : sequence of Column
        As the coordinator understands them; bounds are made of these.
    named : iterable of str
        Columns that the study names besides.

    Raises
    ------
    ColumnForbidden (HR-603)
    MissingColumn (HR-403), SchemaInvalid (HR-409)
        There is no such column, or it is declared differently here. Values that may be missing elsewhere need not be here.
    ColumnUndeclared (HR-410)
        What a column may hold was read off records.
    """
    names = [column.name for column in told]
    if forbidden := sorted({name for name in (*names, *named) if name in declared and name not in allowed}):
        raise _forbidden(forbidden)
    if guessed := [column.name for column in told if column.inferred]:
        raise ColumnUndeclared(
            f"what {', '.join(guessed)} may hold was read off somebody's records, and declared by nobody.",
            remedy="Declare it at the stations, and take what they declare.",
        )
    for column in told:
        own, column = (replace(one, description="") for one in (declared[column.name], column))  # which coordinators leave out
        if column != own and (own.optional or column != replace(own, optional=True)):
            raise SchemaInvalid(
                f"the study takes {column.to_json()}, and what is declared here is {own.to_json()}.",
                remedy="Bounds follow from declarations: both ends use the same one.",
            )
    return Schema(tuple(replace(declared[one.name], optional=one.optional, description=one.description) for one in told))


def named_columns(study: Study) -> set[str]:
    """Words of a study that may be names of columns: its data section, and every word of its program's settings."""
    data = study.data
    found = {*(data.features or ()), *data.ranges, *filter(None, (data.target, data.weight))}
    for text in _strings(study.program.model_extra or {}):
        found |= {text, *re.findall(r"\w+", text)}
    return found


def as_forbidden(error: Exception, forbidden: Collection[str]) -> Exception:
    """Say of a column that is missing because the guard kept it back that it is forbidden."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MissingColumn) and (found := [name for name in forbidden if f"column {name!r}" in cause.reason]):
            return _forbidden(sorted(found))
        if isinstance(cause, KeyError) and cause.args and cause.args[0] in forbidden:
            return _forbidden([cause.args[0]])
        cause = cause.__cause__
    return error


def admit_rehearsed(
    guard: GuardSection,
    asked: Sequence[tuple[Outbox, str, int]],
    least: int,
    ids: Sequence[str] = (),
    *,
    withstood: bool = False,
    once: bool = False,
    proved: bool = False,
) -> None:
    """Refuse a study of which a rehearsed question would be refused later.

    Parameters
    ----------
    asked : sequence of (Outbox, aggregation, parties)
        Every question with the name of its aggregation, "" for none, and how many are asked.
    least : int
        The smallest total of that aggregation.
    ids : sequence of str
        The parties here.
    withstood, once, proved : bool
        Whether that aggregation hides rows from a server that lies, answers the same question once, and has rows proved.

    Raises
    ------
    ProtectionRequired (HR-606), CohortForbidden (HR-605)
    """
    for outbox, aggregation, parties in asked:
        admit_rows(guard, outbox)
        how = {"withstood": withstood, "once": once, "proved": proved}
        admit_protection(guard.require, outbox, ids, hidden=bool(aggregation), **how)
        admit_cohort(guard, outbox, parties, least if aggregation else None)


# ---- each question --------------------------------------------------------------------------------------------------
def admit_question(guard: GuardSection, question: Received, sizes: np.ndarray, at: datetime) -> None:
    """Refuse what the guard does not allow, whatever was announced.

    Parameters
    ----------
    sizes : array of int, shape (k,)
        Records of the parties that are asked here.
    at : datetime
        Now, with a time zone.

    Raises
    ------
    OutsideHours (HR-610), CohortForbidden (HR-605), TooFewRecords (HR-604), ProtectionRequired (HR-606)
    """
    admit_hours(guard, at)
    aggregation, step = question.aggregation, question.step
    hidden = aggregation is not None and step is not None and bool(aggregation.hides_rows)
    outbox, sampling = question.outbox, question.question.cohort.sampling
    apart = step is None and (question.question.verb == "gather" or outbox.keep_rows)  # each row by itself is an answer
    share = sampling.rate if sampling.kind == "records" else 1.0
    admit_records(guard, math.ceil(share * (sizes.min() if apart else sizes.sum())))
    if step is not None and not step.contributes:
        return  # nothing of records is in it, and it is sent without settings
    how = {"withstood": withstands(aggregation), "once": answers_once(aggregation), "proved": proves_rows(aggregation)}
    admit_protection(guard.require, outbox, outbox.ids, hidden=hidden, **how)
    admit_by_party(guard.require, outbox, outbox.ids)
    admit_cohort(guard, outbox, outbox.asked, smallest_total(aggregation, outbox.asked) if hidden else None)


def admit_hours(guard: GuardSection, at: datetime) -> None:
    """Refuse questions at other hours (HR-610)."""
    if not guard.hours:
        return
    local = at.astimezone(ZoneInfo(guard.timezone))
    if not any(Hours.read(text).holds(local) for text in guard.hours):
        open_ = ", ".join(guard.hours)
        raise OutsideHours(f"it is {local:%a %H:%M} in {guard.timezone}, and questions are answered {open_}.", remedy="Wait.")


def admit_records(guard: GuardSection, n_records: int) -> None:
    """Refuse answers about too few records (HR-604)."""
    if n_records < guard.least_records:
        raise TooFewRecords(
            f"the answer would be about {n_records} records, and guard.least_records is {guard.least_records}.",
            remedy="Ask where there are more.",
        )


def admit_protection(
    require: RequireSection,
    outbox: Outbox,
    ids: Sequence[str] = (),
    *,
    hidden: bool,
    withstood: bool = False,
    once: bool = False,
    proved: bool = False,
) -> None:
    """Refuse an answer that lacks what the guard of parties `ids` requires (HR-606); where nothing leaves, that is nothing."""
    question, release = outbox.question, outbox.release
    if question.verb == "each":
        return
    if require.hidden_rows and (not hidden or question.verb != "sum"):
        raise ProtectionRequired(
            f"{question.verb} of {question.name} would show this station's row, and guard.require.hidden_rows is set.",
            remedy="Ask through a secure aggregation: [protection] aggregation = 'secagg'.",
        )
    if require.hidden_rows and require.adversary == "active" and not withstood:
        raise ProtectionRequired(
            f"{question.name} hides this station's row from a coordinator that keeps to the protocol. The guard wants it "
            "hidden from one that lies, and could play the other parties.",
            remedy="[protection.aggregation] adversary = 'active'.",
        )
    if require.hidden_rows and not release.hides_parties and not steadily(outbox):
        raise ProtectionRequired(
            f"{question.name} asks parties that are drawn anew each time, without noise that hides one of them: totals over "
            "changing parties can be combined to one row, and guard.require.hidden_rows is set.",
            remedy="Ask everybody each time, or add noise of a bound per party: [protection.mechanism] at = 'shares'.",
        )
    if require.hidden_rows and release.plan is not None and not covers(release.event):
        raise ProtectionRequired(
            f"{question.name} makes its noise itself, of {release.event}: too little beside settings by party, with which "
            "a total can be little else than one station's row, and guard.require.hidden_rows is set.",
            remedy="Raise its noise_multiplier, or lower its epsilon.",
        )
    if require.verified and not (hidden and proved):
        raise ProtectionRequired(
            f"{question.name} adds up rows that nobody proves to be within their bound, and guard.require.verified is set.",
            remedy="[protection.aggregation] by = 'additive', verified = true.",
        )
    if require.once_per_context and not once:
        raise ProtectionRequired(
            f"{question.name} may be asked again, and guard.require.once_per_context is set.",
            remedy="[protection.aggregation] once_per_context = true.",
        )
    at = noise_at(release)
    if at in ("aggregators", "shares") and not hidden:
        raise ProtectionRequired(
            f"{question.name} has noise at {at!r}, and would show this station's row, in which there is "
            f"{'a share of it' if at == 'shares' else 'none of it'}.",
            remedy="Such noise goes with hidden rows: [protection] aggregation = "
            + ("'additive'." if at == "aggregators" else "'secagg'."),
        )
    if STRENGTH[at] < STRENGTH[require.noise]:
        raise ProtectionRequired(
            f"{question.name} has noise at {at!r}, and guard.require.noise is {require.noise!r}.",
            remedy=f"[protection.mechanism] at = {require.noise!r}."
            + " Aggregators are those of additive shares: aggregation = 'additive'." * (require.noise == "aggregators"),
        )
    if require.noise_multiplier and (found := noise_multiplier(release, ids)) < require.noise_multiplier:
        raise ProtectionRequired(
            f"{question.name} has a noise multiplier of {found:g}, and the guard wants {require.noise_multiplier:g}.",
            remedy="Raise protection.mechanism.noise_multiplier.",
        )


def admit_rows(guard: GuardSection, outbox: Outbox) -> None:
    """Refuse answers that have a row for each record, unless the guard allows them (HR-606).

    Rehearsals and stations find them, by asking about a few made-up records and about one; an unknown shape may have them too.
    """
    if (outbox.rows or outbox.unforeseen) and not guard.rows:
        raise ProtectionRequired(
            f"the shape of what {outbox.question.name} returns follows the records, as where each of them has a row, and "
            "guard.rows is not set.",
            remedy="Ask for totals, of a shape that follows from the schema; or set guard.rows = true.",
        )


def admit_cohort(guard: GuardSection, outbox: Outbox, asked: int, smallest: int | None) -> None:
    """Refuse a total of too few parties (HR-605); `smallest` is of how many a hidden total may be, None without one."""
    question = outbox.question
    if question.verb == "each":
        return
    if asked < guard.least_cohort:
        raise CohortForbidden(
            f"{question.name} asks {asked} parties, and guard.least_cohort is {guard.least_cohort}.", remedy="Ask more parties."
        )
    if smallest is not None and smallest < guard.least_cohort:
        raise CohortForbidden(
            f"{question.name} may end in a total of {smallest} parties, and guard.least_cohort is {guard.least_cohort}.",
            remedy=f"[protection.aggregation] least = {guard.least_cohort}",
        )


def admit_size(what: str, size: int, most: int) -> None:
    """Refuse bodies that are too large (HR-611)."""
    if size > most:
        raise LimitExceeded(f"{what} of {size:,} bytes, and the guard's limit is {most:,}.", remedy="Ask for fewer numbers.")


def _forbidden(names: Sequence[str]) -> ColumnForbidden:
    return ColumnForbidden(
        f"the study uses {', '.join(map(repr, names))}, which guard.columns does not allow.",
        remedy="Leave it out of the study; or, as the owner of the data, allow it.",
    )


def _strings(value: Any) -> Iterable[str]:
    """Every string in plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _strings(key)
            yield from _strings(part)
    elif isinstance(value, Sequence | set | frozenset):
        for part in value:
            yield from _strings(part)
