"""Owners' terms in one TOML file: who could take part, with how many records, at which epsilons, and what an epsilon costs it.

    title = "Lending rates, five owners"
    study = "lending.toml"                    a study with gradient_queries; or [model] says the same
    [pilot]   data, epsilon, bounds, or the numbers themselves: what is known of the loss before the first question
    [value]   per_fitness                     what one unit of relative fitness is worth to the learner
    [owners]
    harbour = { records = 40000, epsilon = [0.2, 10.0], cost = 1.0 }

An epsilon of [e, e], or e alone, means exactly this one. Owners can be the rows of a CSV file: `owners = "owners.csv"`, with
the columns owner, records, epsilon_low, epsilon_high and, where they are known, cost. Every key is known, and all problems of
a file are told at once.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from hedgerow.core.toml import read_toml
from hedgerow.errors import StudyInvalid, suggestion
from hedgerow.market.plans.owner_offer import OwnerOffer

from ..section import Section, problems

MOST_TOLD = 20
"""Problems of a file that are listed; how many more there are is said."""

COLUMNS = ("owner", "records", "epsilon_low", "epsilon_high", "cost")
"""Of a CSV file of owners; `cost` may be missing, as a column or in a row."""


class ModelSection(Section):
    """What is asked, where no study says it: keys as `gradient_queries` has them."""

    program: Literal["gradient_queries"] = Field("gradient_queries", description="what is computed")
    loss: Literal["linear", "logistic", "svm"] = Field("linear", description="regression, or a linear classifier")
    ridge: float | None = Field(None, ge=0, description="weight of |theta|^2 / 2; none, and 1 for svm, if not given")
    inputs: int = Field(ge=1, description="coordinates of a row of features")
    rows: Literal["ball", "cube"] = Field("ball", description="shortened to length 1, or each coordinate cut to [-1, 1]")
    constant: float = Field(0.0, description="a coordinate of this value is appended, for an intercept")
    rounds: int = Field(ge=1, description="the questions on which owners agree")
    rule: Literal["algorithm-2", "algorithm-1", "strongly-convex"] = Field("algorithm-2", description="steps and average")
    step: float = Field(1.0, gt=0, description="the first step: about one over the largest curvature")
    box: float = Field(1.0, gt=0, description="largest absolute value of a coefficient")
    convexity: float = Field(0.0, ge=0, description='least curvature, for "strongly-convex"')
    noise: Literal["laplace", "gaussian"] = Field("gaussian", description="of the owners' answers")
    delta: float = Field(1e-6, gt=0, lt=1, description="for Gaussian noise")
    neighbours: Literal["replace-one", "add-remove"] = Field("add-remove", description="for whom epsilons hold")


class DeclaredBounds(Section):
    """What is certain of the loss without a record."""

    curvature: tuple[float, float] = Field(description="least and largest second derivative along any direction")
    least: float = Field(gt=0, description="the least loss, by which excess is divided")
    sampling: float | None = Field(None, ge=0, description="excess, times n, of the best theta of n records; d times least")

    @field_validator("curvature")
    @classmethod
    def in_order(cls, given: tuple[float, float]) -> tuple[float, float]:
        if not 0 < given[0] <= given[1]:
            raise ValueError("give two numbers above zero, the smaller first")
        return given


class PilotSection(Section):
    """What is known before the first question, and whence: records of nobody, a private question, bounds, or numbers."""

    data: str | None = Field(
        None, description='a catalogued set or a file, of none of the owners; "server" for those that the study holds out'
    )
    records: int | None = Field(None, ge=2, description="at most so many of them, the first")
    epsilon: float | None = Field(None, gt=0, description="of one question for second moments, which every owner pays")
    delta: float | None = Field(
        None, ge=0, lt=1, description="of that question; that of the plan, and 0 where noise is Laplace's"
    )
    run: str | None = Field(None, description="folder of that question's run, asked once; NAME-pilot beside the file")
    bounds: DeclaredBounds | None = Field(None, description="declared ends of the curvature")
    curvature: tuple[float, ...] = Field((), description="eigenvalues of the second derivative, one for each coordinate")
    residual: float | None = Field(None, gt=0, description="the least loss, of linear regression the mean squared residual")
    sampling: float | None = Field(None, ge=0, description="excess, times n, of the best theta of n records; residual times d")
    best: tuple[float, ...] = Field((), description="the best theta along the eigenvectors of `curvature`")
    amplification: float | None = Field(None, gt=0, description="excess for noise of variance 1 in each mean gradient")
    bias: float | None = Field(None, ge=0, description="excess that is left without noise")

    @field_validator("curvature")
    @classmethod
    def positive(cls, given: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 <= value < float("inf") for value in given):
            raise ValueError("give finite numbers of at least zero")
        return given

    @model_validator(mode="after")
    def one_way(self) -> PilotSection:
        numbers = self.residual is not None
        ways = {"data": self.data is not None and not numbers, "epsilon": self.epsilon is not None}
        ways |= {"bounds": self.bounds is not None, "residual and other numbers": numbers}
        named = [name for name, given in ways.items() if given]
        if self.run is not None and self.epsilon is None:
            raise ValueError("run is the folder of the question that pilot.epsilon asks: give both, or neither")
        if len(named) != 1:
            said = "nothing does" if not named else f"{' and '.join(named)} do"
            raise ValueError(f"one of data, epsilon, bounds, or residual with other numbers says what is known; {said}")
        if numbers and not (self.amplification is not None and self.bias is not None) and not (self.curvature and self.best):
            raise ValueError("residual needs amplification and bias, or curvature and best, from which these follow")
        if self.best and len(self.best) != len(self.curvature):
            raise ValueError(f"best has {len(self.best)} numbers and curvature {len(self.curvature)}: one for each eigenvector")
        return self


class ValueSection(Section):
    """What the result is worth to the learner, in its own currency."""

    per_fitness: float = Field(gt=0, description="one unit of relative fitness less")


class OwnerSection(Section):
    """One owner."""

    records: int = Field(
        ge=1, description="certified, or what a private count released; their weight in all, if they have weights"
    )
    epsilon: tuple[float, float] = Field(description="what it could be asked to spend at least, and at most")
    cost: float | None = Field(None, ge=0, description="c of c (e^epsilon - 1), in the learner's currency")

    @field_validator("epsilon", mode="before")
    @classmethod
    def alone(cls, given: Any) -> Any:
        return (given, given) if isinstance(given, int | float) and not isinstance(given, bool) else given

    @field_validator("epsilon")
    @classmethod
    def in_order(cls, given: tuple[float, float]) -> tuple[float, float]:
        if not 0 < given[0] <= given[1] < float("inf"):
            raise ValueError("give two finite numbers above zero, the smaller first, or one for exactly this epsilon")
        return given


class OwnersFile(Section):
    """A whole file."""

    title: str = Field("", description="heading of the plan")
    study: str | None = Field(None, description="a study with gradient_queries, by name or relative to the file")
    model: ModelSection | None = Field(None, description="the same without a study")
    pilot: PilotSection = Field(description="what is known before the first question")
    value: ValueSection | None = Field(None, description="what the result is worth; prices follow from it")
    owners: dict[str, OwnerSection] = Field(min_length=1, description="by name; or the path of a CSV file")
    digest: str = Field("", description="of the file's text, and of the CSV file's")

    @model_validator(mode="after")
    def one_model(self) -> OwnersFile:
        found = []
        if (self.study is None) == (self.model is None):
            found.append("give study, a file or a bundled study, or [model], one of the two")
        if self.model is not None and self.pilot.data is not None and self.pilot.residual is None:
            found.append("pilot.data needs a study, which says how records become rows")
        if self.model is not None and self.pilot.epsilon is not None:
            found.append("pilot.epsilon needs a study, whose owners are asked")
        free = [name for name, one in self.owners.items() if one.cost is None]
        if self.value is not None and free:
            found.append(
                f"[value] asks for prices, and {_some(free)} declare no cost: give one for each owner, or leave [value] out"
            )
        if self.value is None and len(free) < len(self.owners):
            found.append("costs are of use beside [value] per_fitness: give it, or leave costs out")
        if found:
            raise ValueError("; ".join(found))
        return self

    @property
    def priced(self) -> bool:
        """Whether owners are paid."""
        return self.value is not None

    def offers(self) -> dict[str, OwnerOffer]:
        """Owners as a plan takes them."""
        return {name: OwnerOffer(one.records, one.epsilon, one.cost) for name, one in self.owners.items()}


def load_owners(path: str | Path) -> OwnersFile:
    """Read a file of owners, and the CSV file that it may name.

    Raises
    ------
    StudyInvalid (HR-101)
        It cannot be read; or all of its problems at once, an unknown key with the nearest known one.
    """
    path = Path(path)
    raw = _read(path)
    found = read_toml(raw, str(path))
    digest = hashlib.sha256(raw)
    told: list[str] = []
    if isinstance(found.get("owners"), str):
        rows = _read(path.parent / found["owners"])
        digest.update(rows)
        found["owners"], told = _rows(rows, found["owners"])
    study = found.get("study")
    if isinstance(study, str) and study.endswith(".toml"):
        found["study"] = str((path.parent / study).resolve())
    _anchored(found.get("pilot"), path.parent)
    if "digest" in found:
        told.append("unknown key 'digest'. It is computed.")
    try:
        if told:
            parse_owners(found | {"digest": ""})
        else:
            return parse_owners(found | {"digest": digest.hexdigest()[:16]}, str(path))
    except StudyInvalid as error:
        told += error.remedy.splitlines()
    raise _refused(str(path), told)


def parse_owners(found: Mapping[str, Any], what: str = "the file of owners") -> OwnersFile:
    """Check a file that is already a mapping."""
    try:
        return OwnersFile.model_validate(found)
    except ValidationError as error:
        raise _refused(what, problems(OwnersFile, error, "file", hidden=("digest",))) from error


def _refused(what: str, told: list[str]) -> StudyInvalid:
    more = [f"and {len(told) - MOST_TOLD} more."] if len(told) > MOST_TOLD else []
    return StudyInvalid(f"{what} has {len(told)} problem(s):", remedy="\n".join([*told[:MOST_TOLD], *more]))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StudyInvalid(f"{path} cannot be read: {error.strerror}.", remedy="Name a file of owners.") from error


def _anchored(pilot: Any, folder: Path) -> None:
    """Take a file of public records, and the folder of a run, from the folder of the owners' file."""
    if isinstance(pilot, dict) and isinstance(pilot.get("data"), str) and (folder / pilot["data"]).is_file():
        pilot["data"] = str((folder / pilot["data"]).resolve())
    if isinstance(pilot, dict) and isinstance(pilot.get("run"), str):
        pilot["run"] = str((folder / pilot["run"]).resolve())


def _rows(raw: bytes, name: str) -> tuple[dict[str, Any], list[str]]:
    """Owners of a CSV file, and what is wrong with it."""
    try:
        lines = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"))))
    except (UnicodeDecodeError, csv.Error) as error:
        return {}, [f"{name} is no CSV file of UTF-8 text: {error}"]
    heads = [head.strip() for head in lines[0]] if lines else []
    told = [f"{name} has an unknown column {head!r}. {suggestion(head, COLUMNS)}" for head in heads if head not in COLUMNS]
    told += [f"{name} lacks the column {head!r}." for head in COLUMNS[:-1] if head not in heads]
    owners: dict[str, Any] = {}
    for number, line in enumerate([] if told else lines[1:], 2):
        if not any(map(str.strip, line)):
            continue
        cells = dict(zip(heads, map(str.strip, line), strict=False))
        if len(line) != len(heads):
            told.append(f"{name}, line {number}: {len(line)} values under {len(heads)} heads")
        elif not cells["owner"] or cells["owner"] in owners:
            told.append(
                f"{name}, line {number}: the owner {cells['owner']!r} "
                + ("is there twice" if cells["owner"] else "has no name")
            )
        else:
            owner: dict[str, Any] = {"records": cells["records"], "epsilon": [cells["epsilon_low"], cells["epsilon_high"]]}
            owners[cells["owner"]] = owner | ({"cost": cells["cost"]} if cells.get("cost") else {})
    return owners, told


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
