"""A study that asks to board: read, judged by the guard, and rehearsed; and one that is admitted.

What reads and rehearses studies is imported when one comes: a station that waits holds no programs.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import inside
from hedgerow.data import Column, Schema
from hedgerow.errors import HedgerowError, HedgerowWarning, LimitExceeded, MessageRefused, NobodyAnswered, StudyInvalid
from hedgerow.privacy.guard import GuardedQuestion
from hedgerow.wire.values import unpack

from .accounts import Account
from .aggregations import answers_once, proves_rows, smallest_total, withstands
from .apart import admit_apart
from .by_party import admit_by_party
from .code import code_hash, installed_version
from .config import StationConfig
from .counts import AskedBefore, limits_of, most_rounds, repeated
from .disclosed import rehearsed_disclosure
from .local_data import Held
from .pinned import admit_aggregators
from .policy import (
    admit_columns,
    admit_program,
    admit_records,
    admit_rehearsed,
    admit_size,
    as_forbidden,
    named_columns,
)
from .roles import admit_weights
from .signatures import announced, rehearsed
from .submissions import Submission
from .wear import admit_wear, as_worn
from .wording import plain, rows_of, summary_of

if TYPE_CHECKING:
    from hedgerow.study import Study

    from .children.runner import StudyChild

MOST_STUDY = 1 << 24
"""Bytes of a study with what is told beside it, all of which is kept."""

MOST_PARTIES = 1 << 20
"""Of all stations of a study: each of them is rehearsed with made-up records."""


@dataclass(frozen=True)
class StudyDescription:
    """What a coordinator tells beside a study: who adds up, and the columns of all stations, or of each if they lie apart."""

    coordinator: str
    stations: dict[str, int]
    schema: tuple[Column, ...] | Mapping[str, tuple[Column, ...]]
    version: str
    aggregators: tuple[tuple[str, bytes], ...] = ()

    @property
    def apart(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each station where they lie apart; none otherwise."""
        return self.schema if isinstance(self.schema, Mapping) else {}

    def columns(self, station: str) -> tuple[Column, ...]:
        """The columns that a station is asked about."""
        return self.schema if isinstance(self.schema, tuple) else self.schema.get(station, ())


@dataclass(frozen=True)
class _Names:
    """An engine that knows how many parties there are and reaches none; of other stations' parties it makes the names up."""

    parties: Sequence[str]
    named: ClassVar[bool] = False

    def exchange(self, outbox: Outbox) -> Inbox:
        raise NobodyAnswered("a rehearsal asks nobody.")


def read_description(raw: bytes) -> StudyDescription:
    """Read what is told beside a study; MessageRefused (HR-242) where it is nothing of that kind."""
    found = unpack(raw)
    if not isinstance(found, dict) or set(found) - {"aggregators"} != {"coordinator", "stations", "schema", "version"}:
        raise MessageRefused("a study came without coordinator, stations, columns and version.")
    if not _are_aggregators(found.get("aggregators", ()), found["stations"]):
        raise MessageRefused("a study came with aggregators that are none, or that are its stations.")
    stations, columns = found["stations"], found["schema"]
    whole = isinstance(stations, dict) and all(
        isinstance(name, str) and type(n) is int and 0 < n < 1 << 24 for name, n in stations.items()
    )
    several = list(columns.values()) if isinstance(columns, dict) else [columns]
    known = bool(several) and all(isinstance(own, tuple) and own for own in several)
    known = known and all(isinstance(column, Column) for own in several for column in own)
    known = known and (isinstance(columns, tuple) or set(columns) == set(stations))
    if not whole or not known or not isinstance(found["coordinator"], str) or not isinstance(found["version"], str):
        raise MessageRefused("a study came with stations or columns that are none.")
    return StudyDescription(**found)


def _are_aggregators(found: Any, stations: Any) -> bool:
    """Whether these are names with keys, of nobody who brings a row."""
    pairs = isinstance(found, tuple) and len(found) <= 64 and all(isinstance(one, tuple) and len(one) == 2 for one in found)
    if not pairs or not all(isinstance(name, str) and isinstance(key, bytes) and len(key) == 32 for name, key in found):
        return False
    names = {name for name, _ in found}
    return len(names) == len(found) and isinstance(stations, dict) and names.isdisjoint(stations)


def read_study(toml: bytes) -> Study:
    """Read a study as it came; nothing in it names a file of this machine.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    from hedgerow.core.toml import read_toml
    from hedgerow.study import parse

    study = parse(read_toml(toml))
    if study.data.path is not None or (study.budget is not None and study.budget.ledger is not None):
        raise StudyInvalid("the study names a file, which would be one of this machine.", remedy="Name the data: data.name.")
    return study


def title_of(toml: bytes) -> str:
    """What a study calls itself, also one that is refused: so that people know which it was."""
    from hedgerow.core.toml import read_toml

    try:
        found = read_toml(toml)
    except StudyInvalid:
        return ""
    description = next((found[key] for key in ("title", "name") if isinstance(found.get(key), str) and found[key]), "")
    return str(description)[:200]


def boarding(
    config: StationConfig,
    held: Held,
    mine: str,
    submission: Submission,
    accounts: Sequence[Account],
    roster: Collection[str] | None = None,
) -> Submission:
    """Judge a study, and return its submission with everything that it will ask, in words.

    Parameters
    ----------
    mine : str
        The station's name, under which the coordinator lists its parties.
    submission : Submission
        As it came.
    accounts : sequence of Account
        In which the study must have room.
    roster : collection of str, optional
        Stations that may take part where rows are hidden from a server that lies.

    Raises
    ------
    HedgerowError
        The guard's reason, of which the code may leave.
    """
    from hedgerow.study.remote import data_name

    admit_size("a study", len(submission.toml) + len(submission.description), MOST_STUDY)
    description, study = read_description(submission.description), read_study(submission.toml)
    if (n := sum(description.stations.values())) > MOST_PARTIES:
        raise LimitExceeded(f"the study counts {n} parties, and {MOST_PARTIES} are the most.", remedy="Ask fewer at once.")
    if description.stations.get(mine) != len(held):
        raise MessageRefused(f"the study counts {description.stations.get(mine)} parties here, and there are {len(held)}.")
    if data_name(study) != config.data.name:
        raise StudyInvalid(f"the study is about {data_name(study)!r}, and the data here are {config.data.name!r}.")
    admit_dictionary(config, study, held.schema)
    schema = admitted(config, held, description, study)
    admit_records(config.guard, int(held.sizes.sum()))
    if description.apart:
        return _rehearsed_apart(config, held, submission, description, study, schema, accounts, roster)
    try:
        return _rehearsed(config, held, submission, description, study, schema, accounts, roster)
    except HedgerowError as error:
        raise as_forbidden(error, set(held.schema.names) - config.allowed) from error.__cause__


def admitted(config: StationConfig, held: Held, description: StudyDescription, study: Study) -> Schema:
    """The columns that a study may touch, by the guard as it is now.

    Raises
    ------
    ProgramForbidden (HR-602), ColumnForbidden (HR-603)
    """
    guard = config.guard
    admit_program(guard, study, description.version, installed_version(), code_hash(guard.modules))
    admit_weights(study, held.schema)
    if description.apart or study.apart:
        admit_apart(config, study, description.apart)
    named = () if study.apart else named_columns(study)
    return admit_columns(config.allowed, held.schema, description.columns(config.name), named)


def admit_dictionary(config: StationConfig, study: Study, schema: Schema) -> None:
    """Refuse a study whose dictionary is another than this station's, by name, version and digest.

    Raises
    ------
    StudyInvalid (HR-101)
        Says what differs.
    """
    from hedgerow.study.declared import agree

    theirs, mine = study.data.held_dictionary, config.data.held_dictionary
    if theirs is None or (mine is not None and mine.digest == theirs.digest and mine.label == theirs.label):
        return
    here = "declares its columns by none" if mine is None else f"has {mine.label}, digest {mine.digest[:16]}"
    what = f"the study names the dictionary {theirs.label}, digest {theirs.digest[:16]}, and this station {here}."
    columns = {name: theirs.declared(name) for name in schema.names if name in theirs.columns}
    try:
        agree(columns, study.data.derivations(), schema, "this station")
    except StudyInvalid as error:
        raise StudyInvalid(what, remedy=error.remedy) from None
    alike = (
        "Kinds, ranges, levels and units are alike: they differ in codes, missing codes, texts or in what one alone declares."
    )
    raise StudyInvalid(what, remedy=f"{alike} Agree on one version, at all stations.")


def _rehearsed_apart(
    config: StationConfig,
    held: Held,
    submission: Submission,
    description: StudyDescription,
    study: Study,
    schema: Schema,
    accounts: Sequence[Account],
    roster: Collection[str] | None,
) -> Submission:
    from .rehearsal_apart import rehearsed_apart

    schemas = {name: Schema(tuple(columns)) for name, columns in description.apart.items()} | {config.name: schema}
    found, asked = rehearsed_apart(config, submission, study, schemas, int(held.sizes.sum()), roster)
    _fits(asked, accounts, (config.name,))
    return found


def _ids(station: str, n: int) -> list[str]:
    """Names for the parties of another station: its own, where it is one party."""
    return [station] if n == 1 else [f"{station}#{k}" for k in range(n)]


def _rehearsed(
    config: StationConfig,
    held: Held,
    submission: Submission,
    description: StudyDescription,
    study: Study,
    schema: Schema,
    accounts: Sequence[Account],
    roster: Collection[str] | None,
) -> Submission:
    from hedgerow.study import build_remote
    from hedgerow.study.planned import with_noise

    guard, mine = config.guard, config.name
    ids = [id for name, n in description.stations.items() for id in (held.ids if name == mine else _ids(name, n))]
    make = partial(build_remote, schema=schema, engine=_Names(tuple(ids)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        built = make(with_noise(study, make, submission.digest, most=guard.limits.rehearsed_rounds))
        found, heard = rehearsed(built, guard.limits.rehearsed_rounds)
    aggregation = inside(built.federation).channel.aggregation
    added_up = admit_aggregators(config, aggregation, description.aggregators)
    if roster is not None and withstands(aggregation):
        if invented := sorted(set(description.stations) - set(roster)):
            raise MessageRefused(f"the study counts {', '.join(invented[:3])}, and the roster here names no such station.")
        if len(ids) > len(roster):
            raise MessageRefused(f"the study counts {len(ids)} parties, and the roster here names {len(roster)}.")
    noisy = any(entry.mechanism != "none" for entry in found.entries)
    further = built.listing.most(built.settings, schema) if built.listing.most else None
    kinds = announced(found.entries, heard, aggregation, most_rounds(built, noisy), further)
    by_name = {(entry.branch, entry.round): entry.aggregation for entry in found.entries}
    asked = [
        (outbox, by_name.get((asked.branch, asked.number), "").replace("plain", "") * (asked.verb == "sum"), len(whom))
        for outbox, whom in heard
        for asked in [outbox.question]
    ]
    how = {"withstood": withstands(aggregation), "once": answers_once(aggregation), "proved": proves_rows(aggregation)}
    for outbox, whom in heard:
        admit_by_party(guard.require, outbox, whom)
    admit_rehearsed(guard, asked, smallest_total(aggregation, len(ids)), held.ids, **how)
    _fits([outbox for outbox, whom in heard if held.ids[0] in whom], accounts, held.ids)
    said = rehearsed_disclosure(
        guard, study, built.schema, held, aggregation.together(len(ids)), found.entries, repeated(found.entries, heard, kinds)
    )
    told = {"exact numbers": said}
    for outbox, _ in heard:
        admit_wear(guard.require, as_worn(outbox, kinds))
    limits = limits_of(found, heard, kinds)
    every = [row | (told if k == 0 else {}) | limits[k] for k, row in enumerate(rows_of(found))]
    rows = tuple({name: plain(value) for name, value in row.items()} for row in every)
    return replace(
        submission,
        ready=True,
        title=plain(study.title or study.name),
        program=study.program.name,
        n_stations=len(description.stations),
        summary=plain(" ".join(filter(None, [summary_of(found, held.ids), added_up, f"Here: {said}"]))),
        rows=rows,
        columns=schema.names,
        announced=kinds,
    )


def _fits(queries: Sequence[Outbox], accounts: Sequence[Account], ids: Sequence[str]) -> None:
    """Refuse a study for which no party here has room: what it would be refused for in the middle, it is refused now.

    Of parties whose own noise differs the one for which there is room speaks for all, as each question decides of each anew.

    Raises
    ------
    BudgetExhausted (HR-213), ProtectionRequired (HR-606), MixedUnits (HR-215)
    """
    for account in accounts:
        asked = [GuardedQuestion.by(outbox, account.trust, ids) for outbox in queries]
        costs = {tuple(one.own.get(name) for one in asked): name for name in ids} if any(one.own for one in asked) else {(): ""}
        refused = [_refused(account.copy_of_richest(), asked, name) for name in costs.values()]
        if all(refused) and refused[0] is not None:
            raise refused[0]


def _refused(ahead: Account, asked: Sequence[GuardedQuestion], name: str) -> HedgerowError | None:
    """Why a party of this name, with a history of its own, is refused one of these questions; None where it may answer all."""
    one = np.array([0])
    for question in asked:
        decision = ahead.decide(one, question, (name,))
        if decision.codes:
            return decision.codes[0]
        for entry, payment, which in decision.entries:
            ahead.add(which, entry, payment)
    return None


@dataclass
class AdmittedStudy:
    """A study that is approved, in this life of the station.

    Attributes
    ----------
    parties : StudyChild
        Who answers for it.
    account : Account
        Of this study, for each party.
    asked : AskedBefore
        What it has asked, held against what it announced.
    n_questions : int
        How many were to be answered from records.
    """

    submission: Submission
    parties: StudyChild
    account: Account
    asked: AskedBefore
    n_questions: int = 0

    def close(self) -> None:
        """Release its files, and end what runs for it."""
        self.parties.close()
