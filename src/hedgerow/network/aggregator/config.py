"""An aggregator's configuration: one TOML file in its folder. Unknown keys are refused with the nearest known one.

aggregator.toml    name, coordinator, guard, aggregators
keys/              its keys, the roster, and its key for shares (`hedgerow aggregator init`)
state/             aggregator.sqlite: studies, epochs that were served, journal
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from hedgerow.crypto.cohort import FLOOR
from hedgerow.crypto.shares.letters import LONGEST
from hedgerow.errors import ConfigInvalid
from hedgerow.network.station.config import CoordinatorSection, pinned_keys
from hedgerow.study.section import Section, problems
from hedgerow.wire.envelope import NAME

FILE = "aggregator.toml"
"""Name of the configuration in an aggregator's folder."""

DATABASE = Path("state", "aggregator.sqlite")


class AggregatorKeysSection(Section):
    """Where the keys are."""

    folder: Path = Field(Path("keys"), description="relative to the aggregator's folder")


class AggregatorGuardSection(Section):
    """What this aggregator adds up, and what it does not."""

    least: int = Field(FLOOR, ge=FLOOR, description="of fewer parties it gives no total, whatever a study says")
    signed: bool = Field(
        True, description="parties are stations of the roster and sign their keys; false where gateways bring many parties"
    )
    studies: tuple[str, ...] | None = Field(None, description='names of studies, e.g. "readmission*"; all if not given')
    numbers: int = Field(1 << 24, ge=1, le=LONGEST, description="most numbers of a total: so many times 8 bytes are held")
    bytes_in: int = Field(1 << 28, ge=1 << 16, description="largest letter that is read")
    studies_at_once: int = Field(100, ge=1, description="studies that were approved and have not ended")


class AggregatorConfig(Section):
    """The whole file."""

    name: str = Field(pattern=rf"^{NAME.pattern}$", description="the aggregator's name, as on its public identity")
    coordinator: CoordinatorSection = Field(description="who may ask")
    keys: AggregatorKeysSection = Field(default_factory=AggregatorKeysSection, description="where the keys are")
    guard: AggregatorGuardSection = Field(default_factory=AggregatorGuardSection, description="what is added up")
    aggregators: dict[str, str] = Field(
        default_factory=dict, description="public keys of those with whom it adds up, by name, its own among them; any if empty"
    )

    @field_validator("aggregators")
    @classmethod
    def are_keys(cls, given: dict[str, str]) -> dict[str, str]:
        return pinned_keys(given)

    @model_validator(mode="after")
    def fits_together(self) -> AggregatorConfig:
        if self.name == self.coordinator.name:
            raise ValueError(f"name and coordinator.name are both {self.name!r}: a coordinator that adds up sees every row")
        if self.aggregators and self.name not in self.aggregators:
            raise ValueError(f"aggregators lacks {self.name!r} itself: name all that add up together")
        return self


def load_config(path: str | Path) -> tuple[AggregatorConfig, Path]:
    """Read the configuration of a folder, or a file, and return it with the folder.

    Raises
    ------
    ConfigInvalid (HR-601)
        The file is not there or no TOML; or all its problems at once.
    """
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        remedy = f"hedgerow aggregator init {path} --name NAME --coordinator NAME --address HOST:PORT"
        raise ConfigInvalid(f"{file} does not exist.", remedy=remedy) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigInvalid(f"{file} is not a TOML file: {error}.", remedy="Mend the line that is named.") from error
    return parse_config(found, str(file)), file.parent


def parse_config(found: Mapping[str, Any], where: str = FILE) -> AggregatorConfig:
    """Check a configuration that is already a mapping."""
    try:
        return AggregatorConfig.model_validate(dict(found))
    except ValidationError as error:
        sentences = problems(AggregatorConfig, error, "the file")
        raise ConfigInvalid(f"{where} has {error.error_count()} problem(s):", remedy="\n".join(sentences)) from None
