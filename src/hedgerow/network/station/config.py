"""A station's configuration: one TOML file in its folder. Unknown keys are refused with the nearest known one.

    station.toml    name, coordinator, data, stores, aggregators, guard, console
    keys/           its keys and the coordinator's public identity (`hedgerow keys`)
    state/          station.sqlite: submissions and journal; and what its parties have answered

The guard has the last word. What it does not mention it allows, but for two things: a person approves each study, unless
`approval = "automatic"`, and noise is this station's own, whatever seed a server names.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from re import fullmatch
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, ValidationError, field_validator, model_validator

from hedgerow.core.disclosure import MOST
from hedgerow.core.events import Unit
from hedgerow.data import Schema
from hedgerow.errors import BudgetInvalid, ConfigInvalid, HedgerowError, KeyInvalid, suggestion
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import Accountant, Filter
from hedgerow.privacy.guard import Trust
from hedgerow.study.dictionaries import with_dictionary
from hedgerow.study.section import Section, problems
from hedgerow.wire.envelope import checked_name

from .data_section import DataSection, schema_of
from .hours import Hours
from .vertical_section import VerticalSection

FILE = "station.toml"
"""Name of the configuration in a station's folder."""

Noise = Literal["none", "server", "aggregators", "shares", "party"]


class CoordinatorSection(Section):
    """Who may ask, and by which rail."""

    name: str = Field(description="the coordinator's name, as on its public identity")
    rail: Literal["grpc", "socket", "nvflare"] = Field("grpc", description="what carries sealed bodies")
    address: str | None = Field(None, description="where the coordinator listens, e.g. hub.example.org:8443 (grpc)")
    path: Path | None = Field(None, description="a socket in the file system, relative to the folder (socket, nvflare)")

    @field_validator("name")
    @classmethod
    def is_a_name(cls, given: str) -> str:
        return _named(given)

    @model_validator(mode="after")
    def one_place(self) -> CoordinatorSection:
        if self.rail == "grpc" and (self.address is None or self.path is not None):
            raise ValueError("the rail 'grpc' needs an address and no path, e.g. address = 'hub.example.org:8443'")
        if self.rail != "grpc" and (self.path is None or self.address is not None):
            raise ValueError(f"the rail {self.rail!r} needs the path of a socket and no address, e.g. path = 'rail.sock'")
        return self


class StationKeysSection(Section):
    """Where the keys are."""

    folder: Path = Field(Path("keys"), description="relative to the station's folder")


class StoresSection(Section):
    """A gateway: each value of a column is a party of its own."""

    by: str = Field(description="the column whose values tell stores apart; no study may use it")
    policies: Path | None = Field(None, description="CSV of stores that differ: store, epsilon, allow")


class ProgramRule(Section):
    """A program that may be asked."""

    name: str = Field(description="as in the catalogue of studies, e.g. logistic_regression")
    version: str = Field("*", description="of Hedgerow, at both ends, e.g. 0.1.*")
    code: str = Field(
        "", pattern=r"^(sha256:[0-9a-f]{64})?$", description="hash of the installed code (`hedgerow station check`)"
    )


class RequireSection(Section):
    """Protection that every answer has."""

    hidden_rows: bool = Field(False, description="the coordinator sees totals of parties alone")
    verified: bool = Field(False, description="rows are proved to be within their bound, so that no other can spoil a total")
    adversary: Literal["curious", "active"] = Field(
        "curious", description="from whom rows are hidden: a coordinator that keeps to the protocol, or also one that lies"
    )
    noise: Noise = Field(
        "none", description="who adds noise, at least: the server, each aggregator, parties in shares, each party by itself"
    )
    noise_multiplier: float = Field(0.0, ge=0, description="least noise, relative to the bound")
    once_per_context: bool = Field(
        False, description="secagg: the same question is answered once, also where no total came of it"
    )

    @model_validator(mode="after")
    def noise_for_a_multiplier(self) -> RequireSection:
        if self.noise_multiplier and self.noise == "none":
            raise ValueError("noise_multiplier without noise: say who adds it, at least, e.g. noise = 'server'")
        if self.adversary == "active" and not self.hidden_rows:
            raise ValueError("an adversary from whom nothing is hidden: add hidden_rows = true")
        if self.verified and not self.hidden_rows:
            raise ValueError("verified is of hidden rows: add hidden_rows = true")
        if self.once_per_context and not self.hidden_rows:
            raise ValueError("once_per_context is of hidden rows: add hidden_rows = true")
        return self


class StationLimitsSection(Section):
    """Rates and sizes."""

    questions_per_minute: int | None = Field(None, ge=1, description="of all studies together")
    questions_per_study: int | None = Field(None, ge=1, description="that one study may ask in all")
    bytes_in: int = Field(1 << 30, ge=1, description="largest letter that is read")
    bytes_out: int = Field(1 << 30, ge=1, description="largest answer that is sent")
    studies_at_once: int = Field(100, ge=1, description="studies that wait or are approved, and have not ended")
    rehearsed_rounds: int = Field(1_000, ge=1, description="rounds of a study that are rehearsed before it is approved")
    rehearsal_seconds: float = Field(3_600.0, gt=0, description="longest rehearsal, after which the study is refused")
    question_seconds: float = Field(3_600.0, gt=0, description="longest computation of one answer, after which it is refused")
    megabytes: int = Field(8_192, ge=256, description="most memory of a rehearsal or a study's parties, without the records")
    processes: int = Field(4, ge=1, description="studies whose parties are ready to answer at once; one process each")


class BudgetLimit(Section):
    """What may be lost."""

    epsilon: float = Field(description="above zero")
    delta: float = Field(description="probability with which epsilon may fail, well below one over the units")
    unit: Unit = Field("record", description="whose presence is protected")
    trust: Trust = Field(
        "nobody", description="whose noise counts: nobody's but the party's own, all parties', aggregators', the server's"
    )
    accountant: Accountant = Field("tightest", description='how answers of a plan are added up; "basic" adds pure epsilons')
    filter: Filter | None = Field(
        None, description="a privacy filter, which also holds where studies are chosen by what earlier ones released"
    )

    @model_validator(mode="after")
    def is_a_budget(self) -> BudgetLimit:
        try:
            self.budget()
        except BudgetInvalid as error:
            raise ValueError(f"{error.reason}. {error.remedy}") from None
        return self

    def budget(self, epsilon: float | None = None) -> Budget:
        """The budget; of another epsilon where one is given."""
        how: dict[str, Any] = {"unit": self.unit, "accountant": self.accountant, "filter": self.filter}
        return Budget(self.epsilon if epsilon is None else epsilon, self.delta, **how)


class GuardSection(Section):
    """The station's policy, which has the last word."""

    approval: Literal["ask", "automatic"] = Field("ask", description="a person approves each study, or the guard alone does")
    programs: tuple[ProgramRule, ...] | None = Field(None, description="programs that may be asked; all if not given")
    modules: tuple[str, ...] = Field((), description="packages whose functions may be named, besides hedgerow")
    columns: tuple[str, ...] | None = Field(None, description="columns that may be used; all declared ones if not given")
    tell_records: bool = Field(False, description="whether a coordinator learns how many records are here, about")
    least_records: int = Field(0, ge=0, description="fewest records behind an answer; that one is refused tells of them")
    rows: bool = Field(False, description="whether an answer may have a row for each record, or a shape that follows them")
    least_cohort: int = Field(1, ge=1, description="fewest parties that a question asks, or a hidden total is made of")
    disclosure: float = Field(
        MOST, gt=0, description="most exact numbers that a study asks of a party for each value that it holds; inf for any"
    )
    disclosure_overall: float | None = Field(
        None, gt=0, description="the same over all studies together, for each value of all columns; none if not given"
    )
    require: RequireSection = Field(default_factory=RequireSection, description="protection that every answer has")
    vertical: VerticalSection = Field(
        default_factory=VerticalSection, description="studies over columns that lie apart at several stations"
    )
    hours: tuple[str, ...] = Field(
        (), description='when questions are answered, e.g. "Mon-Fri 08:00-18:00"; always if not given'
    )
    timezone: str = Field("UTC", description="of the hours, e.g. Europe/Amsterdam")
    limits: StationLimitsSection = Field(default_factory=StationLimitsSection, description="rates and sizes")
    budget: BudgetLimit | None = Field(None, description="over everything ever answered, for each party")
    study_budget: BudgetLimit | None = Field(None, description="of each study, for each party")
    randomness: Literal["own", "study"] = Field(
        "own", description="noise from this system's entropy; \"study\" honours a server's seed, for pilots and tests only"
    )

    @field_validator("hours")
    @classmethod
    def are_hours(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for text in given:
            Hours.read(text)
        return given

    @field_validator("timezone")
    @classmethod
    def is_a_timezone(cls, given: str) -> str:
        try:
            ZoneInfo(given)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("no such time zone; e.g. Europe/Amsterdam") from None
        return given

    @model_validator(mode="after")
    def names_programs(self) -> GuardSection:
        if self.approval == "automatic" and self.programs is None:
            raise ValueError("approval = 'automatic' needs a list of programs: nobody else looks at a study")
        return self


class ConsoleSection(Section):
    """A page for the owner of the data, served to this machine alone."""

    port: int = Field(ge=0, le=65535, description="of 127.0.0.1; 0 for a free one")


class StationConfig(Section):
    """The whole file."""

    name: str = Field(description="the station's name, as on its public identity")
    coordinator: CoordinatorSection = Field(description="who may ask")
    keys: StationKeysSection = Field(default_factory=StationKeysSection, description="where the keys are")
    data: DataSection = Field(description="records and their declaration")
    stores: StoresSection | None = Field(None, description="a gateway of many parties; otherwise the station is one")
    aggregators: dict[str, str] = Field(
        default_factory=dict, description="public keys of all who may add up shares, by name (`hedgerow aggregator pin`)"
    )
    guard: GuardSection = Field(default_factory=GuardSection, description="the station's policy")
    console: ConsoleSection | None = Field(None, description="a page on this machine that shows studies, budgets and journal")
    device: str | None = Field(
        None,
        pattern=r"^(auto|cpu|mps|(cuda|xpu)(:\d+)?)$",
        description="where modules are trained: auto, cpu, cuda, cuda:1, mps; otherwise as HEDGEROW_DEVICE says, or the CPU",
    )

    @field_validator("name")
    @classmethod
    def is_a_name(cls, given: str) -> str:
        return _named(given)

    @field_validator("aggregators")
    @classmethod
    def are_keys(cls, given: dict[str, str]) -> dict[str, str]:
        return pinned_keys(given)

    @model_validator(mode="after")
    def fits_together(self) -> StationConfig:
        problems = []
        declared = self.data.columns
        for name in self.guard.columns or ():
            if name not in declared:
                problems.append(f"guard.columns names {name!r}, which is not declared. {suggestion(name, declared)}")
        if self.stores is not None and self.stores.by not in declared:
            problems.append(
                f"stores.by names {self.stores.by!r}, which is not declared. {suggestion(self.stores.by, declared)}"
            )
        if self.stores is not None and self.data.ids is not None:
            problems.append("stores and data.ids: people are matched between stations of one party each")
        if self.name == self.coordinator.name:
            problems.append(f"name and coordinator.name are both {self.name!r}: they are two holders of keys")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def declared(self) -> Schema:
        """The public declaration of all columns; those that tell stores apart are no part of it."""
        found = schema_of(self.data)
        return found if self.stores is None else Schema(tuple(c for c in found if c.name != self.stores.by))

    @property
    def allowed(self) -> frozenset[str]:
        """Columns that the guard lets studies use."""
        names = self.declared.names
        return frozenset(names if self.guard.columns is None else set(names) & set(self.guard.columns))


@dataclass(frozen=True)
class StorePolicy:
    """What differs for one store of a gateway."""

    epsilon: float | None = None
    allow: bool = True


def read_config(path: str | Path) -> tuple[StationConfig, Path]:
    """Read the configuration of a folder, or a file, and return it with the folder.

    Raises
    ------
    ConfigInvalid (HR-601)
        The file is not there or no TOML; or all its problems at once, unknown keys with the nearest known one.
    """
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        remedy = f"Write a {FILE}: name, [coordinator], [data], and [guard]."
        raise ConfigInvalid(f"{file} does not exist.", remedy=remedy) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigInvalid(f"{file} is not a TOML file: {error}.", remedy="Mend the line that is named.") from error
    try:
        with_dictionary(found.get("data"), file.parent)
    except HedgerowError as error:
        raise ConfigInvalid(f"{file}: data.dictionary: {error.reason}", remedy=error.remedy) from error
    return parse_config(found, str(file)), file.parent


def parse_config(found: Mapping[str, Any], where: str = FILE) -> StationConfig:
    """Check a configuration that is already a mapping."""
    try:
        return StationConfig.model_validate(dict(found))
    except ValidationError as error:
        raise ConfigInvalid(
            f"{where} has {error.error_count()} problem(s):",
            remedy="\n".join(problems(StationConfig, error, "the file", silent=True)),
        ) from None  # the cause would show values, which may be secret


def read_policies(path: Path) -> dict[str, StorePolicy]:
    """Read what differs for single stores: a CSV with the columns store, epsilon (may be empty) and allow (yes or no).

    Raises
    ------
    ConfigInvalid (HR-601)
    """
    words = {"yes": True, "true": True, "1": True, "": True, "no": False, "false": False, "0": False}
    found: dict[str, StorePolicy] = {}
    problems: list[str] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames is None or not {"store"} <= set(rows.fieldnames) <= {"store", "epsilon", "allow"}:
                raise ConfigInvalid(f"{path} has the columns {rows.fieldnames}.", remedy="Give store, epsilon, allow.")
            for line, row in enumerate(rows, 2):
                try:
                    epsilon = float(row["epsilon"]) if (row.get("epsilon") or "").strip() else None
                    allow = words[(row.get("allow") or "").strip().lower()]
                    if epsilon is not None and not epsilon > 0:
                        raise ValueError
                    if row["store"] in found:
                        problems.append(f"line {line}: the store was named before")
                    found[row["store"]] = StorePolicy(epsilon, allow)
                except (ValueError, KeyError):
                    problems.append(f"line {line}: epsilon is a number above zero or empty, allow is yes or no")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}.", remedy="Name a CSV file in stores.policies.") from error
    if problems:
        raise ConfigInvalid(f"{path} has {len(problems)} problem(s):", remedy="\n".join(problems[:20]))
    return found


def pinned_keys(given: dict[str, str]) -> dict[str, str]:
    """Keys of aggregators by name, if each is one, and nobody's is another's; ValueError otherwise."""
    for name, key in given.items():
        _named(name)
        if not fullmatch("[0-9a-f]{64}", key):
            raise ValueError(f"the key of {name!r} is not 64 digits of 0-9a-f, as `hedgerow aggregator pin` prints it")
    if len(set(given.values())) < len(given):
        raise ValueError("two aggregators have one key: each makes its own")
    if len(given) == 1:
        raise ValueError("one aggregator alone would see every row: pin two or more, of organisations that do not collude")
    return given


def _named(given: str) -> str:
    try:
        return checked_name(given)
    except KeyInvalid as error:
        raise ValueError(f"{error.reason} {error.remedy}") from None
