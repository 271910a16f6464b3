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
from typing import Literal, Protocol

from hedgerow.core.engine import Inbox, Outbox
from hedgerow.core.federation import handle, inside
from hedgerow.core.toml import to_toml
from hedgerow.crypto.keys import Roster, verify
from hedgerow.data import Schema
from hedgerow.engines.aggregators import AggregatorsAway
from hedgerow.errors import HedgerowError, KeyInvalid, MessageRefused, StationUnknown
from hedgerow.study import Study, build_remote
from hedgerow.study.apart.overheard import overheard
from hedgerow.study.check import check
from hedgerow.study.planned import with_noise
from hedgerow.study.remote import data_name
from hedgerow.wire.boarding import decision, submission_digest
from hedgerow.wire.envelope import Letter, PublicIdentity
from hedgerow.wire.question import common
from hedgerow.wire.refusal import code_in, is_code
from hedgerow.wire.values import pack, unpack

from .adding_up import Known, MetAggregators
from .apart import agreed_schemas, holders_of
from .columns import agreed_schema
from .config import CoordinatorLimitsSection
from .hellos import CLOSED, Hello, columns_absent, differs, mapping_in, read_hello
from .journal import refusal
from .states import Boarded, Kept

log = logging.getLogger("hedgerow")

PATIENT = frozenset({"HR-104", "HR-245", "HR-610", "HR-611", CLOSED, "HR-618"})
"""Codes that waiting may change: a full disk, a missing party, opening hours, a rate, a closed table, a lost journal."""


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
    notes : str
        Which stations it goes on without, and why; for the researcher alone.
    aggregators : mapping from name to (bytes, int)
        Who adds up its shares, in order, with key and least set.
    """

    text: str
    stations: Mapping[str, tuple[str, ...]]
    schema: Schema
    coordinator: str
    version: str
    at: float
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    notes: str = ""
    aggregators: Known = field(default_factory=dict)

    def pack(self) -> bytes:
        stations = {name: tuple(parties) for name, parties in self.stations.items()}
        apart = {name: tuple(schema.columns) for name, schema in self.schemas.items()}
        columns, further = tuple(self.schema.columns), (apart, self.notes, dict(self.aggregators))
        return pack((self.text, stations, columns, self.coordinator, self.version, self.at, *further))

    @classmethod
    def unpack(cls, raw: bytes) -> Agreed:
        text, stations, columns, coordinator, version, at, *apart = unpack(raw)
        schemas = {name: Schema(tuple(own)) for name, own in (apart[0] if apart else {}).items()}
        return cls(text, stations, Schema(tuple(columns)), coordinator, version, at, schemas, *apart[1:])

    def parts(self) -> list[bytes]:
        """The letter to every station."""
        stations = {name: len(parties) for name, parties in self.stations.items()}
        about = {
            "coordinator": self.coordinator,
            "stations": stations,
            "schema": {name: tuple(schema.columns) for name, schema in self.schemas.items()} or tuple(self.schema.columns),
            "version": self.version,
        }
        if self.aggregators:
            about["aggregators"] = tuple((name, key) for name, (key, _) in self.aggregators.items())
        return [self.text.encode(), pack(about)]


@dataclass(frozen=True)
class Verdict:
    """Where boarding stands. Of "ready", `stations` are those on board, with their parties."""

    state: Literal["wait", "ready", "refused", "failed"]
    reason: str
    stations: Mapping[str, tuple[str, ...]]


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
    adding: MetAggregators | None = None,
) -> Agreed | Verdict:
    """Ask stations who they are, and agree on columns; what cannot be agreed ends the study before anybody boards.

    `since` is when stations could come: the study was there, and so was the coordinator. `adding` is what became of greeting
    its aggregators.
    """
    adding = MetAggregators() if adding is None else adding
    if adding.wrong:
        return _end("failed", adding.wrong)
    if adding.away:
        if now - kept.changed > 3600 * limits.approval_hours:
            return _end("failed", f"{_and(adding.away)} did not come in {limits.approval_hours:g} hours")
        return _wait(f"waiting for {_and(adding.away)}, who add{'s' if len(adding.away) == 1 else ''} up, to connect")
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
    for name, hello in list(found.items()):
        if why := differs(study, hello):
            refused[name] = f"{name} {why}"
            del found[name]
    closed = {name: found.pop(name).waits for name in [*found] if found[name].closed}
    without = {} if study.apart else columns_absent(study, {name: found[name] for name in wanted if name in found})
    found = {name: hello for name, hello in found.items() if name not in without}
    wanted = tuple(name for name in wanted if name not in without)
    notes = "; ".join(without.values())
    if not wanted:
        return _end("failed", notes)
    least = len(wanted) if study.apart else least_of(limits, len(wanted))
    away = [name for name in wanted if name not in found and name not in refused]
    if len(wanted) - len(refused) < least or (kept.asked and refused and limits.least_stations is None):
        return _end("refused", "; ".join(refused.values()))
    if away and (len(found) < least or now - since < 60 * limits.away_minutes):
        gone = [name for name in away if name not in closed]
        if now - kept.changed > 3600 * limits.approval_hours:
            late = [f"{_and(gone)} did not come in {limits.approval_hours:g} hours"] if gone else []
            return _end("failed", "; ".join([*late, *closed.values()]))
        return _wait("; ".join([*([f"waiting for {_and(gone)} to connect"] if gone else []), *closed.values()]))
    in_order = {name: found[name] for name in wanted if name in found}
    if limits.least_stations is not None and not study.apart:
        in_order = _most(study, in_order, least)
    try:
        agreed = _agree(study, in_order, coordinator, now, "; ".join(filter(None, [notes, *closed.values()])), adding.known)
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
    parties = {**dict.fromkeys(agreed.aggregators, ()), **agreed.stations}
    said = {name: before.get(name, Boarded(name)) for name in parties}
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
            one = read_board(letter, parties[name], submission, public_identities[name], now)
        if replace(one, at=0.0) != replace(before.get(name, Boarded("")), at=0.0):
            new.append(one)
        said[name] = one
    return new, verdict(list(said.values()), agreed, limits, now, since)


def verdict(said: Sequence[Boarded], agreed: Agreed, limits: CoordinatorLimitsSection, now: float, since: float) -> Verdict:
    """Where boarding stands, by what stations and aggregators said."""
    adding, said = [[one for one in said if (one.station in agreed.aggregators) == adds] for adds in (True, False)]
    if refusing := [refusal(one.station, one.code) for one in adding if one.status == "refused"]:
        return _end("refused", "; ".join(refusing))
    if missing := [one.station for one in adding if one.status != "approved"]:
        if now - agreed.at > 3600 * limits.approval_hours:
            return _end("failed", f"no word of {_and(missing)}, who add up, in {limits.approval_hours:g} hours")
        return _wait(f"waiting for {_and(missing)}, who add{'s' if len(missing) == 1 else ''} up, to decide")
    by = {status: [one for one in said if one.status == status] for status in ("approved", "refused", "waiting", "away")}
    least = len(said) if agreed.schemas else least_of(limits, len(said))
    refusals = "; ".join(refusal(one.station, one.code) for one in by["refused"])
    why = "; ".join(filter(None, [agreed.notes, refusals]))
    ready = Verdict("ready", _boarding(by["approved"], why), {one.station: one.parties for one in by["approved"]})
    if len(said) - len(by["refused"]) < least:
        return _end("refused", refusals)
    enough, waited = len(by["approved"]) >= least, now - agreed.at
    if not by["waiting"] and not by["away"]:
        return ready
    if enough and not by["waiting"] and now - max(since, agreed.at) >= 60 * limits.away_minutes:
        return ready
    names = {status: [one.station for one in by[status] if one.code != CLOSED] for status in ("waiting", "away")}
    closed = [f"{one.station} waits: its table is closed" for one in by["away"] if one.code == CLOSED]
    parts = [f"{_and(names['waiting'])} to decide"] if names["waiting"] else []
    parts += [f"{_and(names['away'])} to come back"] if names["away"] else []
    if waited > 3600 * limits.approval_hours:
        if enough:
            return ready
        missing = _and([*names["waiting"], *names["away"]])
        words = [f"no word of {missing} in {limits.approval_hours:g} hours"] if missing else []
        return _end("failed", "; ".join(filter(None, [*words, *closed, refusals])))
    words = [f"waiting for {' and '.join(parts)}"] if parts else []
    return _wait("; ".join(filter(None, [*words, *closed, agreed.notes, refusals])))


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
    reached = AggregatorsAway(None, b"", b"", agreed.aggregators) if agreed.aggregators else None
    nobody = _Nobody(tuple(party for parties in agreed.stations.values() for party in parties), roster, reached)
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
            status = "away" if code == CLOSED else "waiting" if code in PATIENT else "refused"
            return Boarded(name, status, code, at=now)
        said = mapping_in(letter, "board")
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


def _agree(study: Study, found: Mapping[str, Hello], coordinator: str, now: float, notes: str, adding: Known) -> Agreed:
    declared = {name: hello.schema for name, hello in found.items()}
    stations = {name: hello.parties for name, hello in found.items()}
    apart = agreed_schemas(study, declared, stations) if study.apart else {}
    schema = Schema(()) if apart else agreed_schema(study, declared)
    text = to_toml(as_stations_see_it(study).model_dump(mode="json")) + "\n"
    return Agreed(text, stations, schema, coordinator, version("hedgerow"), now, apart, notes, adding)


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
    aggregators: AggregatorsAway | None = None
    elsewhere: bool = True

    def exchange(self, outbox: Outbox) -> Inbox:
        common(outbox)
        raise _Written
