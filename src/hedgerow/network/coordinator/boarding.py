"""Boarding: stations are told of a study, and each decides, by its guard or by a person, before any question is asked.

    hello    who is there, with which data, columns and parties            every station that is asked to join
             columns compared; the study tried on the agreed ones          here: a mistake ends it before anybody is bothered
    board    the study, the coordinator, the stations, the columns         approved | refused | waiting for a person

What was agreed is kept before anybody boards, so that after a restart stations are told the same again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, Literal, Protocol

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import handle, inside
from hedgerow.crypto.cohort import LONGEST_NAME
from hedgerow.crypto.keys import Roster, verify
from hedgerow.data import Column, Schema
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused, StationUnknown
from hedgerow.study import Study, build_remote
from hedgerow.study.apart.overheard import overheard
from hedgerow.study.check import check
from hedgerow.study.planned import with_noise
from hedgerow.study.remote import data_name
from hedgerow.study.toml import to_toml
from hedgerow.wire.boarding import decision, submission_digest
from hedgerow.wire.envelope import Letter, PublicIdentity
from hedgerow.wire.question import common
from hedgerow.wire.refusal import code_in, is_code
from hedgerow.wire.values import pack, unpack

from .apart import agreed_schemas, holders_of
from .columns import agreed_schema
from .config import CoordinatorLimitsSection
from .journal import refusal
from .states import Boarded, Kept

log = logging.getLogger("hedgerow")

PATIENT = frozenset({"HR-104", "HR-245", "HR-610", "HR-611", "HR-618"})
"""Codes that waiting may change: a full disk, a party that is missing, opening hours, a rate, a journal that was lost."""


class Boards(Protocol):
    """What carries letters to stations and brings back those that came."""

    def alive(self) -> frozenset[str]: ...

    def ask(self, kind: str, parts: Mapping[str, Sequence[bytes]]) -> dict[str, Letter]: ...


@dataclass(frozen=True)
class Agreed:
    """What all stations are told of a study, and what follows from it.

    Attributes
    ----------
    text : str
        The study as stations see it; see `as_stations_see_it`.
    stations : mapping from station to its parties
    schema : Schema
        The columns that the study uses, as every station declares them.
    at : float
        When it was agreed.
    schemas : mapping from station to Schema
        Of a study over columns that lie apart, those of each; then there is no common one.
    """

    text: str
    stations: Mapping[str, tuple[str, ...]]
    schema: Schema
    coordinator: str
    version: str
    at: float
    schemas: Mapping[str, Schema] = field(default_factory=dict)

    def pack(self) -> bytes:
        stations = {name: tuple(parties) for name, parties in self.stations.items()}
        apart = {name: tuple(schema.columns) for name, schema in self.schemas.items()}
        return pack((self.text, stations, tuple(self.schema.columns), self.coordinator, self.version, self.at, apart))

    @classmethod
    def unpack(cls, raw: bytes) -> Agreed:
        text, stations, columns, coordinator, version, at, *apart = unpack(raw)
        schemas = {name: Schema(tuple(own)) for name, own in (apart[0] if apart else {}).items()}
        return cls(text, stations, Schema(tuple(columns)), coordinator, version, at, schemas)

    def parts(self) -> list[bytes]:
        """The letter to every station."""
        stations = {name: len(parties) for name, parties in self.stations.items()}
        about = {
            "coordinator": self.coordinator,
            "stations": stations,
            "schema": {name: tuple(schema.columns) for name, schema in self.schemas.items()} or tuple(self.schema.columns),
            "version": self.version,
        }
        return [self.text.encode(), pack(about)]


@dataclass(frozen=True)
class Verdict:
    """Where boarding stands. Of "ready", `stations` are those on board, with their parties."""

    state: Literal["wait", "ready", "refused", "failed"]
    reason: str
    stations: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Hello:
    """What a station says of itself."""

    data: str
    schema: Schema
    parties: tuple[str, ...]
    version: str


def as_stations_see_it(study: Study) -> Study:
    """A study as stations see it: its data by their name, and no path of the coordinator's machine."""
    spelt = {"separator": None, "decimal": ".", "na_values": ()}  # of the coordinator's file, if it has one
    data = study.data.model_copy(update={"name": data_name(study), "path": None, **spelt})
    budget = None if study.budget is None else study.budget.model_copy(update={"ledger": None})
    return study.model_copy(update={"data": data, "budget": budget})


def meet(
    study: Study,
    kept: Kept,
    public_identities: Mapping[str, PublicIdentity],
    asks: Boards,
    limits: CoordinatorLimitsSection,
    coordinator: str,
    now: float,
    since: float,
) -> Agreed | Verdict:
    """Ask stations who they are, and agree on columns; what cannot be agreed ends the study before anybody boards.

    `since` is when stations could come: the study was there, and so was the coordinator.
    """
    wanted = holders_of(study) or kept.asked or tuple(sorted(public_identities))
    if unknown := [name for name in wanted if name not in public_identities]:
        return _end("failed", f"{', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not on the roster")
    if not wanted:
        return _end("failed", "no station is on the roster; hedgerow keys enrol puts one there")
    letters = asks.ask("hello", {name: [] for name in wanted if name in asks.alive()})
    found: dict[str, Hello] = {}
    refused: dict[str, str] = {}
    for name, letter in letters.items():
        try:
            if letter.kind == "refused":
                if (code := code_in(letter)) not in PATIENT:
                    refused[name] = refusal(name, code)
            else:
                found[name] = read_hello(letter)
        except MessageRefused:
            refused[name] = f"{name} answered what is no hello"
    name_of_data = data_name(study)
    for name, hello in list(found.items()):
        if hello.data != name_of_data:
            refused[name] = f"{name} has the data {hello.data[:100]!r}, not {name_of_data!r}"
            del found[name]
    least = len(wanted) if study.apart else least_of(limits, len(wanted))
    away = [name for name in wanted if name not in found and name not in refused]
    if len(wanted) - len(refused) < least or (kept.asked and refused and limits.least_stations is None):
        return _end("refused", "; ".join(refused.values()))
    if away and (len(found) < least or now - since < 60 * limits.away_minutes):
        if now - kept.changed > 3600 * limits.approval_hours:
            return _end("failed", f"{_and(away)} did not come in {limits.approval_hours:g} hours")
        return _wait(f"waiting for {_and(away)} to connect")
    in_order = {name: found[name] for name in wanted if name in found}
    if limits.least_stations is not None and not study.apart:
        in_order = _most(study, in_order, least)
    try:
        agreed = _agree(study, in_order, coordinator, now)
        rehearsed(study, agreed, roster_of(agreed.stations, public_identities))
    except HedgerowError as error:
        return _end("failed", f"{error.code} {type(error).__name__}: {error.reason} {error.remedy}".strip())
    return agreed


def board(
    kept: Kept,
    agreed: Agreed,
    asks: Boards,
    limits: CoordinatorLimitsSection,
    public_identities: Mapping[str, PublicIdentity],
    now: float,
    since: float,
) -> tuple[list[Boarded], Verdict]:
    """Ask the stations that have not decided; return what is new, and where boarding stands."""
    before = {one.station: one for one in kept.boarded}
    said = {name: before.get(name, Boarded(name)) for name in agreed.stations}
    open_ = [name for name, one in said.items() if one.status not in ("approved", "refused")]
    alive = asks.alive()
    parts = agreed.parts()
    submission = submission_digest(*parts)
    letters = asks.ask("board", {name: parts for name in open_ if name in alive})
    new = []
    for name in open_:
        letter = letters.get(name)
        if name not in public_identities:
            one = Boarded(name, "refused", StationUnknown.code, at=now)
        elif letter is None:
            one = replace(said[name], at=now)
        else:
            one = read_board(letter, agreed.stations[name], submission, public_identities[name], now)
        if replace(one, at=0.0) != replace(before.get(name, Boarded("")), at=0.0):
            new.append(one)
        said[name] = one
    return new, verdict(list(said.values()), agreed, limits, now, since)


def verdict(said: Sequence[Boarded], agreed: Agreed, limits: CoordinatorLimitsSection, now: float, since: float) -> Verdict:
    """Where boarding stands, by what stations said."""
    by = {status: [one for one in said if one.status == status] for status in ("approved", "refused", "waiting", "away")}
    least = len(said) if agreed.schemas else least_of(limits, len(said))
    refusals = "; ".join(refusal(one.station, one.code) for one in by["refused"])
    ready = Verdict("ready", _boarding(by["approved"], refusals), {one.station: one.parties for one in by["approved"]})
    if len(said) - len(by["refused"]) < least:
        return _end("refused", refusals)
    enough, waited = len(by["approved"]) >= least, now - agreed.at
    if not by["waiting"] and not by["away"]:
        return ready
    if enough and not by["waiting"] and now - max(since, agreed.at) >= 60 * limits.away_minutes:
        return ready
    names = {status: [one.station for one in by[status]] for status in ("waiting", "away")}
    parts = [f"{_and(names['waiting'])} to decide"] if names["waiting"] else []
    parts += [f"{_and(names['away'])} to come back"] if names["away"] else []
    if waited > 3600 * limits.approval_hours:
        if enough:
            return ready
        missing = _and([*names["waiting"], *names["away"]])
        return _end(
            "failed", f"no word of {missing} in {limits.approval_hours:g} hours" + (f"; {refusals}" if refusals else "")
        )
    return _wait(f"waiting for {' and '.join(parts)}" + (f"; {refusals}" if refusals else ""))


def rehearsed(study: Study, agreed: Agreed, roster: Roster | None = None) -> None:
    """Make a study ready on the agreed columns, and write its first question: what it would be refused for, it is refused now.

    Raises
    ------
    HedgerowError
        A formula, a setting, a channel or a budget that does not fit; a function that cannot be named on the wire.
    """
    if agreed.schemas:
        overheard(study, dict(agreed.schemas), 1)
        return
    nobody = _Nobody(tuple(party for parties in agreed.stations.values() for party in parties), roster)
    make = partial(build_remote, schema=agreed.schema, engine=nobody)
    built = make(with_noise(study, make, nobody.parties))
    check(built)
    values = inside(built.federation)
    federation = handle(values._replace(run=values.run.afresh(ledger=built.unspent)))
    with suppress(_Written):
        next(iter(built.listing.program(built.settings)(federation)), None)


def least_of(limits: CoordinatorLimitsSection, wanted: int) -> int:
    """Stations that must board, of so many."""
    return wanted if limits.least_stations is None else min(limits.least_stations, wanted)


def read_hello(letter: Letter) -> Hello:
    """Read what a station says of itself; MessageRefused (HR-242) where it is nothing of that kind.

    Its parties have its name, or `name/...`: no station speaks in the name of another.
    """
    said = _mapping(letter, "hello")
    parties, columns, mine = said.get("parties"), said.get("schema"), letter.sender
    if (
        not isinstance(parties, tuple)
        or not _names(parties)
        or not all(one == mine or one.startswith(f"{mine}/") for one in parties)
        or not isinstance(columns, tuple)
        or not all(isinstance(one, Column) for one in columns)
    ):
        raise MessageRefused(f"{mine} answered a hello without columns, or without parties of its own name.")
    try:
        return Hello(str(said.get("data", "")), Schema(columns), parties, str(said.get("version", "")))
    except HedgerowError as error:
        raise MessageRefused(f"{letter.sender} declares columns that contradict each other.") from error


def roster_of(on: Mapping[str, tuple[str, ...]], public_identities: Mapping[str, PublicIdentity]) -> Roster | None:
    """Identities of all stations, as they have them from their enrolment; none where parties are not stations."""
    if any(parties != (station,) for station, parties in on.items()):
        return None
    return Roster({name: public_identity.identity for name, public_identity in public_identities.items()})


def read_board(
    letter: Letter, parties: tuple[str, ...], submission: bytes, public_identity: PublicIdentity, now: float
) -> Boarded:
    """Read a station's decision; what is none, or not signed, or about something else, counts as a refused message."""
    name = letter.sender
    try:
        if letter.kind == "refused":
            code = code_in(letter)
            return Boarded(name, "waiting" if code in PATIENT else "refused", code, at=now)
        said = _mapping(letter, "board")
        status, code, signature = said.get("status"), said.get("code", ""), said.get("signature", b"")
        if (
            status not in ("waiting", "approved", "refused")
            or not (code == "" or is_code(code))
            or said.get("submission") != submission
        ):
            raise MessageRefused(f"{name} answered a board letter with what is no decision about it.")
        if status == "approved" and said.get("parties") != parties:
            raise MessageRefused(f"{name} boards with other parties than it said hello with.")
        if status == "approved":
            verify(public_identity.identity, signature, decision(submission, status))
    except (MessageRefused, KeyInvalid) as error:
        return Boarded(name, "refused", error.code, at=now)
    return Boarded(
        name, status, code, parties if status == "approved" else (), submission, signature if status == "approved" else b"", now
    )


def _most(study: Study, found: Mapping[str, Hello], least: int) -> Mapping[str, Hello]:
    """The stations that declare columns alike, where they are enough and more than half; otherwise all, who will not agree."""
    groups: list[dict[str, Hello]] = []
    for name, hello in found.items():
        for group in groups:
            with suppress(HedgerowError):
                agreed_schema(study, {"": next(iter(group.values())).schema, name: hello.schema})
                group[name] = hello
                break
        else:
            groups.append({name: hello})
    largest = max(groups, key=len, default={})
    if len(largest) < max(least, len(found) // 2 + 1):
        return found
    if others := found.keys() - largest.keys():
        log.warning("%s: %s declare columns otherwise than most, and are left out", study.name, _and(sorted(others)))
    return largest


def _agree(study: Study, found: Mapping[str, Hello], coordinator: str, now: float) -> Agreed:
    declared = {name: hello.schema for name, hello in found.items()}
    stations = {name: hello.parties for name, hello in found.items()}
    apart = agreed_schemas(study, declared, stations) if study.apart else {}
    schema = Schema(()) if apart else agreed_schema(study, declared)
    text = to_toml(as_stations_see_it(study).model_dump(mode="json")) + "\n"
    return Agreed(text, stations, schema, coordinator, version("hedgerow"), now, apart)


def _mapping(letter: Letter, kind: str) -> Mapping[str, Any]:
    found = unpack(letter.parts[0]) if letter.kind == kind and len(letter.parts) == 1 else None
    if not isinstance(found, dict):
        raise MessageRefused(f"{letter.sender} answered with what is no {kind!r}.")
    return found


def _names(found: tuple[Any, ...]) -> bool:
    words = all(isinstance(one, str) and one.isprintable() and len(one.encode()) <= LONGEST_NAME for one in found)
    return bool(found) and words and len(set(found)) == len(found)


def _boarding(on: Sequence[Boarded], refusals: str) -> str:
    return f"{_and([one.station for one in on])} on board" + (f"; {refusals}" if refusals else "")


def _wait(reason: str) -> Verdict:
    return Verdict("wait", reason, {})


def _end(state: Literal["refused", "failed"], reason: str) -> Verdict:
    return Verdict(state, reason, {})


def _and(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


class _Written(Exception):
    """The first question could be written."""


@dataclass(frozen=True)
class _Nobody:
    """An engine that knows its parties, writes what it would ask them, and asks nobody."""

    parties: tuple[str, ...]
    roster: Roster | None
    elsewhere: bool = True

    def exchange(self, outbox: Outbox) -> Inbox:
        common(outbox)
        raise _Written
