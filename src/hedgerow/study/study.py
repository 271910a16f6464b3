"""A study: one TOML file that says everything about a run. Unknown keys are refused with the nearest known one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hedgerow.core.toml import read_toml
from hedgerow.errors import StudyInvalid, UnknownStudy, suggestion
from hedgerow.privacy import Budget
from hedgerow.privacy.accounting import Accountant, Filter

from .agreed import ForecastSection, PartyBudgetSection
from .apart.sections import HUB, WORLD, AlignmentSection, RolesSection
from .attack import AttackSection
from .attack_matrix import MatrixSection
from .changes import changed
from .comparison import ComparisonSection
from .declared import DerivedSection, StudyColumn, derivations_of, problems_of, words_from
from .dictionaries import UNREAD, dictionary_from, problem_of, with_dictionary
from .evaluation import Evaluation
from .protection import ProtectionSection
from .section import Section, problems

if TYPE_CHECKING:
    from hedgerow.data.declared import Declared
    from hedgerow.data.dictionary.dictionary import Dictionary
    from hedgerow.stats.derived import Derivation


class Data(Section):
    """Which records: a catalogued set by name, or a file by path."""

    name: str | None = Field(None, description="a catalogued data set, e.g. breast_cancer")
    path: str | None = Field(None, description="a CSV, Parquet or npz file, relative to the study")
    parties: dict[str, str] = Field(
        default_factory=dict, description="a file for each of the parties that hold different columns, by their names"
    )
    records: int | None = Field(
        None, ge=2, description="at most so many of its records, and of its test records, drawn by the seed; all of them"
    )
    dictionary: str | dict[str, Any] | None = Field(
        None, description="a dictionary, by path from the study or as name@version beside it: what columns are"
    )
    target: str | None = Field(None, description="the column to predict")
    features: list[str] | None = Field(None, description="columns to use; all others are left at the parties")
    weight: str | None = Field(None, description="the column of record weights, which count as repeated records")
    ranges: dict[str, tuple[float, float]] = Field(
        default_factory=dict, description="declared ranges, from which bounds are made"
    )
    clip: bool = Field(False, description="clip values to their declared range instead of refusing them")
    missing: Literal["refuse", "drop"] = Field(
        "refuse", description="refuse missing values, or let each model drop the records that lack one it reads"
    )
    na_values: tuple[str, ...] = Field((), description="what stands for a missing value in every column of the file, e.g. ?")
    separator: str | None = Field(None, min_length=1, max_length=1, description="between values of a text file; a comma")
    decimal: Literal[".", ","] = Field(".", description="the decimal sign of a text file")
    columns: dict[str, StudyColumn] = Field(default_factory=dict, description="what columns are, by name")
    derived: dict[str, DerivedSection] = Field(default_factory=dict, description="columns that are computed, by name")

    @field_validator("na_values", mode="before")
    @classmethod
    def numbers_too(cls, given: Any) -> Any:
        return words_from(given)

    @model_validator(mode="after")
    def one_source(self) -> Data:
        found = problems_of(self.columns)
        if sum((self.name is not None, self.path is not None, bool(self.parties))) != 1:
            found.insert(0, "give data.name or data.path, one of the two, or [data.parties]")
        found += self._dictionary_problems()
        found += [f"parties.{name}: the name of another role" for name in (HUB, WORLD) if name in self.parties]
        if not found:
            found = [f"{name!r} is in data.ranges and has a range in data.columns" for name in self.ranges if self._spans(name)]
        if found:
            raise ValueError("; ".join(found))
        return self

    def declared_columns(self) -> dict[str, Declared]:
        """What is declared of each column, by the dictionary where there is one."""
        if (held := self.held_dictionary) is not None:
            return {name: held.declared(name) for name, one in held.columns.items() if one.kept}
        return {name: one.declared(name) for name, one in self.columns.items()}

    def derivations(self) -> dict[str, Derivation]:
        """How derived columns are computed, each after those that it reads."""
        if (held := self.held_dictionary) is not None:
            return derivations_of(held)
        return {name: one.derivation() for name, one in self.derived.items()}

    @property
    def held_dictionary(self) -> Dictionary | None:
        """The dictionary, where there is one."""
        return dictionary_from(self.dictionary) if isinstance(self.dictionary, dict) else None

    @property
    def dictionary_named(self) -> tuple[str, str] | None:
        """Name@version and digest of the dictionary, where there is one."""
        held = self.held_dictionary
        return None if held is None else (held.label, held.digest)

    @property
    def spelt(self) -> dict[str, Any]:
        """How the file spells what is missing and decimals, as `hedgerow.data.read` takes it."""
        held = self.held_dictionary
        if held is None:
            return {"na_values": self.na_values, "decimal": self.decimal}
        return {"na_values": held.na_values, "decimal": self.decimal if "decimal" in self.model_fields_set else held.decimal}

    def _dictionary_problems(self) -> list[str]:
        if self.dictionary is None:
            return []
        if isinstance(self.dictionary, str):
            return [f"dictionary = {self.dictionary!r} is {UNREAD}"]
        given = [key for key in ("columns", "derived", "na_values") if getattr(self, key)]
        found = [f"{', '.join(given)}: the dictionary says that; leave it out"] if given else []
        return [*found, *filter(None, [problem_of(self.dictionary)])]

    def _spans(self, name: str) -> bool:
        if self.held_dictionary is not None:
            declared = self.held_dictionary.columns.get(name)
            return declared is not None and declared.range is not None
        one = self.columns.get(name)
        return one is not None and any(end is not None for end in (one.range, one.low, one.high))


class PartitionSection(BaseModel):
    """How records are spread over parties; the other keys are those of the partitioner."""

    model_config = ConfigDict(extra="allow", frozen=True)
    by: str = Field("iid", description="a partitioner, e.g. iid, shards, dirichlet_labels, by_column")


class ProgramSection(BaseModel):
    """What is computed; the other keys are those of the program."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = Field(description="a catalogued program, e.g. fedavg, logistic_regression")


class BudgetSection(Section):
    """The limit on epsilon."""

    epsilon: float = Field(description="limit on everything released, above zero")
    delta: float = Field(description="probability with which epsilon may fail, well below one over the units")
    unit: Literal["party", "record"] = Field("party", description="whose presence is protected")
    adjacency: Literal["add-remove"] = Field("add-remove", description="how neighbours differ")
    accountant: Accountant = Field("tightest", description="how releases of a plan that is fixed beforehand are added up")
    filter: Filter | None = Field(
        None, description="admit questions by a privacy filter, which also holds where noise or sampling follow from answers"
    )
    order: float | None = Field(None, description='filter = "rdp": the Renyi order; from epsilon and delta if not given')
    ledger: str | None = Field(
        None, description="an SQLite file in which several runs share this budget; made if missing, relative to the study"
    )

    def budget(self) -> Budget:
        return Budget(**self.model_dump(exclude={"ledger"}))

    @property
    def shared(self) -> Path | None:
        """The ledger that runs share, if they do."""
        return None if self.ledger is None else Path(self.ledger)


class EngineSection(Section):
    """Where parties run, and what goes wrong there."""

    name: Literal["in-process", "loop", "processes", "ray"] = Field(
        "in-process", description="the fast engine, the plain loop it must equal, or parties spread over processes or a cluster"
    )
    threads: int | None = Field(None, description="one for each core by default; in each of several processes, one")
    shards: int | None = Field(None, description="processes: over how many parties are spread, or actors of a cluster; 2")
    address: str | None = Field(None, description="ray: a cluster's; one on this machine if not given")
    dropout_rate: float = Field(0.0, description="probability that a party does not answer a question")
    dropped: list[str] = Field(default_factory=list, description="parties that never answer")
    returns: bool = Field(True, description="whether who drops out answers later questions")
    deadline: float | None = Field(None, description="simulated seconds after which an answer is not counted")
    states: Literal["memory", "disk"] = Field(
        "memory", description='where parties keep control variates and the like: "disk", in the run folder, for very many'
    )

    @model_validator(mode="after")
    def on_disk(self) -> EngineSection:
        if self.states == "disk" and self.name != "in-process":
            raise ValueError(f'{self.name!r} keeps states in memory: choose name = "in-process"')
        if self.shards is not None and self.name not in ("processes", "ray"):
            raise ValueError(f'shards are for name = "processes" or "ray" (given: {self.name!r})')
        if self.address is not None and self.name != "ray":
            raise ValueError(f'an address is for name = "ray" (given: {self.name!r})')
        return self


class AuditSection(Section):
    """Whether a run is audited: trained once more with canaries, whose traces are compared with what the ledger states."""

    canaries: int = Field(400, ge=1, description="records or parties that are added to each run of the audit, half of them in")
    runs: int = Field(
        1, ge=1, description="runs of the audit, each with other coins and noise: statistics of few numbers need many"
    )
    level: float = Field(1e-3, gt=0, lt=0.5, description="with which right code is called red, at most")
    seed: int = Field(0, ge=0, description="of coins, canaries and noise of the audit")


class Study(Section):
    """A whole study."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    name: str = Field("study", pattern=r"^\w[\w. -]*$", description="names the run folder; the file's name by default")
    title: str = Field("", description="heading of the report")
    description: str = Field("", description="one line below it")
    seed: int | Literal["system"] = Field(0, description='of all randomness; "system" for the operating system\'s entropy')
    data: Data = Field(description="which records")
    partition: PartitionSection = Field(
        default_factory=lambda: PartitionSection(by="iid", parties=5), description="how they are spread over parties"
    )
    roles: RolesSection | None = Field(None, description="which party holds which columns, where they hold different ones")
    alignment: AlignmentSection | None = Field(None, description="how such parties find the people whom they have in common")
    program: ProgramSection = Field(description="what is computed")
    protection: ProtectionSection = Field(default_factory=ProtectionSection, description="clip and noise")
    budget: BudgetSection | None = Field(None, description="limit on epsilon; the question that would cross it is refused")
    party_budgets: dict[str, PartyBudgetSection] = Field(
        default_factory=dict, description="what single parties may lose per record, by their own noise"
    )
    forecast: ForecastSection | None = Field(None, description="what was expected of a run; printed beside what was achieved")
    engine: EngineSection = Field(default_factory=EngineSection, description="where parties run, and what goes wrong there")
    attack: AttackSection | None = Field(None, description="parties that lie in a simulation")
    evaluation: Evaluation = Field(default_factory=Evaluation, description="how a model is measured while it trains")
    baselines: bool = Field(True, description="fit the centralised and the local-only baseline, which only a simulation can")
    audit: AuditSection | None = Field(None, description="train once more with canaries after the run, and say what they show")
    comparison: ComparisonSection | None = Field(None, description="a table of runs, each a change of this study")
    matrix: MatrixSection | None = Field(None, description="acts of liars by rules, on partitions, with several seeds")
    quick: dict[str, Any] = Field(
        default_factory=dict, description="changes that `--quick` makes to a single run, by dotted keys"
    )

    @property
    def apart(self) -> bool:
        """Whether parties hold different columns of the same people."""
        return self.roles is not None or self.alignment is not None or bool(self.data.parties)

    @property
    def digest(self) -> str:
        """Identifies what may resume from this study's checkpoints: everything but names and words."""
        words = {"name", "title", "description", "baselines", "quick", "forecast"}
        kept = _Digested.model_construct(study=self).model_dump(mode="json", exclude={"study": words})["study"]
        if not self.party_budgets:
            del kept["party_budgets"]
        if kept["data"]["dictionary"] is None:
            del kept["data"]["dictionary"]
        for key in ("audit", "attack", "matrix"):
            if kept[key] is None:
                del kept[key]
        for key, usual in (("membership", False), ("tuning", 0.0)):
            if kept["evaluation"][key] == usual:
                del kept["evaluation"][key]
        for key, plain in (("also", []), ("seeds", 1), ("quick_rows", []), ("quick_columns", [])):
            if kept["comparison"] is not None and kept["comparison"][key] == plain:
                del kept["comparison"][key]
        if not self.apart:
            del kept["roles"], kept["alignment"], kept["data"]["parties"]
        return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def simulation_seed(self) -> int | None:
        """The seed of all streams, or None where they come from the operating system."""
        return None if self.seed == "system" else int(self.seed)


def bundled() -> dict[str, Path]:
    """The studies that come with Hedgerow: those that repeat a paper, and others."""
    package = Path(str(resources.files("hedgerow")))
    found = [*package.glob("papers/*/*.toml"), *package.glob("study/bundled/*.toml")]
    return {path.stem: path for path in sorted(found, key=lambda path: path.stem)}


def load(study: str | Path, changes: Mapping[str, Any] | None = None) -> Study:
    """Read a study by name or path, with `a.b` = value changes applied on top.

    Raises
    ------
    UnknownStudy (HR-102), StudyInvalid (HR-101)
        All problems of the file's own keys at once, each with the nearest known one.
    """
    path = bundled().get(str(study)) or Path(study)
    try:
        found = read_toml(path.read_bytes(), str(path))
    except FileNotFoundError as error:
        raise UnknownStudy(
            f"no study {str(study)!r}, by name or as a file.", remedy=suggestion(str(study), bundled())
        ) from error
    except OSError as error:
        raise StudyInvalid(f"{path} cannot be read: {error}.") from error
    found.setdefault("name", path.stem)
    found = changed(found, (changes or {}).items())
    _anchor(found, path.parent)
    study = parse(found)
    for changes in study.comparison.changes if study.comparison else ():
        _anchor(changes, path.parent)
    return study


def parse(found: Mapping[str, Any]) -> Study:
    """Check a study that is already a mapping."""
    try:
        return Study.model_validate(found)
    except ValidationError as error:
        raise StudyInvalid(
            f"the study {found.get('name', '')!r} has {error.error_count()} problem(s):",
            remedy="\n".join(problems(Study, error, "study")),
        ) from error


class _Digested(BaseModel):
    """A study within a model that writes None for infinities of any type, as all digests have it."""

    study: Study


def _anchor(values: dict[str, Any], folder: Path) -> None:
    """Take the paths of data and of a shared ledger in a study, or in changes to it, from the study's folder."""
    named = [(values.get("data"), "path"), (values.get("budget"), "ledger"), (values, "data.path"), (values, "budget.ledger")]
    for section, key in named:
        if isinstance(section, dict) and isinstance(section.get(key), str):
            section[key] = str((folder / section[key]).resolve())
    with_dictionary(values.get("data"), folder)
    files = values["data"].get("parties") if isinstance(values.get("data"), dict) else None
    if isinstance(files, dict):
        files |= {name: str((folder / path).resolve()) for name, path in files.items() if isinstance(path, str)}
