"""A coordinator's configuration: one TOML file in its folder. Unknown keys are refused with the nearest known one.

coordinator.toml    who it is, its rail, its limits
keys/               its keys and the roster (`hedgerow keys`)
state/              coordinator.sqlite: studies and journal
runs/               a folder for each study that ran
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from hedgerow.errors import ConfigInvalid
from hedgerow.study.section import Section, problems

FILE = "coordinator.toml"
"""Name of the configuration in a coordinator's folder."""


class RailSection(Section):
    """What carries sealed bodies to and from stations."""

    kind: Literal["grpc", "socket", "nvflare"] = Field("grpc", description="which rail; stations name the same")
    address: str | None = Field(None, description="where stations dial in, e.g. 0.0.0.0:8443 (grpc)")
    path: Path | None = Field(
        None, description="a socket in a folder that nobody else may enter, e.g. state/rail.sock (socket, nvflare)"
    )
    kit: Path | None = Field(None, description="the submitter's kit, relative to the folder (nvflare)")

    @model_validator(mode="after")
    def one_place(self) -> RailSection:
        if self.kind == "grpc" and self.address is None:
            raise ValueError("the rail 'grpc' needs an address, e.g. address = '0.0.0.0:8443'")
        if self.kind != "grpc" and self.path is None:
            raise ValueError(f"the rail {self.kind!r} needs the path of a socket, e.g. path = 'state/rail.sock'")
        if (self.kind == "nvflare") != (self.kit is not None):
            raise ValueError("the rail 'nvflare', and no other, needs the submitter's kit, e.g. kit = 'kits/submitter'")
        if self.kind == "grpc" and self.address is not None and not _is_address(self.address):
            raise ValueError(f"the address {self.address!r} is not of the form host:port")
        return self


class CoordinatorKeysSection(Section):
    """Where keys and roster are."""

    folder: Path = Field(Path("keys"), description="made by `hedgerow keys init`; relative to the coordinator's folder")


class StateSection(Section):
    """Where studies and their runs are kept."""

    folder: Path = Field(Path("state"), description="studies and journal; on a disk of this machine")
    runs: Path = Field(Path("runs"), description="a folder for each study that ran")


class CoordinatorLimitsSection(Section):
    """How long is waited, and for whom."""

    question_seconds: float = Field(60.0, gt=0, description="after this an answer is not waited for any more")
    approval_hours: float = Field(72.0, gt=0, description="how long people at stations have to decide on a study")
    away_minutes: float = Field(
        10.0, ge=0, description="how long a station that is not connected is waited for, where enough others have boarded"
    )
    gather_seconds: float = Field(
        30.0, ge=0, description="how long stations that boarded are waited for when a study goes on, if enough others are there"
    )
    least_stations: int | None = Field(
        None, ge=1, description="a study runs where so many of its stations have boarded; all of them by default"
    )
    least_answers: int | None = Field(
        None, ge=1, description="a question that fewer stations answer is put again later; more than half of them by default"
    )
    studies_at_once: int = Field(4, ge=1, description="others wait for their turn")
    retry_seconds: float = Field(5.0, gt=0, description="the first pause before a question is asked again")
    retry_most_seconds: float = Field(600.0, gt=0, description="pauses double up to this one")
    waiting_hours: float = Field(
        336.0, gt=0, description="a study that came no further for so long has failed; it keeps its checkpoint"
    )

    @model_validator(mode="after")
    def pauses_grow(self) -> CoordinatorLimitsSection:
        if self.retry_most_seconds < self.retry_seconds:
            raise ValueError("retry_most_seconds is below retry_seconds")
        return self


class CoordinatorConfig(Section):
    """The whole file.

    Attributes
    ----------
    root : Path
        The folder from which the paths in it are taken.
    """

    name: str = Field(pattern=r"^\w[\w.-]*$", description="as stations know it: the name of its keys")
    rail: RailSection = Field(description="what carries sealed bodies")
    keys: CoordinatorKeysSection = Field(default_factory=CoordinatorKeysSection, description="where keys and roster are")
    state: StateSection = Field(default_factory=StateSection, description="where studies and runs are kept")
    limits: CoordinatorLimitsSection = Field(
        default_factory=CoordinatorLimitsSection, description="how long is waited, and for whom"
    )
    aggregators: tuple[str, ...] = Field(
        (), description="who on the roster adds up shares, the last of whom opens corrections; a study takes the first so many"
    )
    root: Path = Field(Path("."), exclude=True, description="set by `load_config`")

    @model_validator(mode="after")
    def names_aggregators_once(self) -> CoordinatorConfig:
        if len(set(self.aggregators)) < len(self.aggregators) or self.name in self.aggregators:
            raise ValueError("aggregators names somebody twice, or this coordinator: each is an organisation of its own")
        return self

    def at(self, path: Path) -> Path:
        """A path of the file, from the coordinator's folder."""
        return self.root / path

    @property
    def keys_folder(self) -> Path:
        return self.at(self.keys.folder)

    @property
    def state_folder(self) -> Path:
        return self.at(self.state.folder)

    @property
    def runs_folder(self) -> Path:
        return self.at(self.state.runs)


def load_config(where: Path) -> CoordinatorConfig:
    """Read a coordinator's folder, or its file.

    Raises
    ------
    ConfigInvalid (HR-601)
        All problems of the file at once.
    """
    path = where / FILE if where.is_dir() else where
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigInvalid(
            f"{where} is no folder of a coordinator: there is no {path.name}."
            if where.is_dir()
            else f"{where} does not exist.",
            remedy=f"Name its folder by --at or in HEDGEROW_COORDINATOR. A new one needs a file {FILE}:\n{EXAMPLE}",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigInvalid(f"{path} is not a TOML file: {error}.") from error
    return parse_config(found, path.parent, str(path))


def parse_config(found: Mapping[str, Any], root: Path = Path("."), source: str = "the configuration") -> CoordinatorConfig:
    """Check a configuration that is already a mapping."""
    sentences = ["unknown key 'root'."] if "root" in found else []
    given = {key: value for key, value in found.items() if key != "root"}
    try:
        config = CoordinatorConfig.model_validate(given | {"root": root})
    except ValidationError as error:
        sentences += problems(CoordinatorConfig, error, "the file", hidden=("root",))
    if sentences:
        raise ConfigInvalid(f"{source} has {len(sentences)} problem(s):", remedy="\n".join(sentences))
    return config


EXAMPLE = """name = "hub"
[rail]
kind = "grpc"
address = "0.0.0.0:8443\""""


def _is_address(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(host) and bool(colon) and port.isdigit() and 0 < int(port) < 65536
