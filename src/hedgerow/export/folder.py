"""A run folder as an export reads it."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.declaration import Declaration
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.data import Schema
from hedgerow.errors import CheckpointMismatch, MissingData, StudyInvalid, UnknownStudy
from hedgerow.privacy.statement import Statement, statement
from hedgerow.report import Report
from hedgerow.store import read_arrays, read_chain
from hedgerow.study import Study, load
from hedgerow.study.agreed import agreed_delta
from hedgerow.study.catalogue import listing
from hedgerow.study.keys import settings_of
from hedgerow.study.registry import own
from hedgerow.synth import Provenance, Synthesizer


@dataclass(frozen=True)
class RunFolder:
    """A finished run as its folder has it; made by `read_run`.

    Attributes
    ----------
    path : Path
    study : Study
    report : Report
    ledger : Ledger
        Its entries, and those of other runs with which it shares a budget.
    said : Statement
        What the ledger guarantees: epsilon, delta, unit.
    """

    path: Path
    study: Study
    report: Report
    ledger: Ledger
    said: Statement

    @property
    def program(self) -> Declaration:
        """The program that ran."""
        return listing(self.study.program.name)

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings, defaults included."""
        return settings_of(self.program, self.study.program.model_extra or {})

    @property
    def entries(self) -> list[Entry]:
        """Every question whose answer may be in the model, of other runs under the same budget too."""
        return [*self.ledger.others, *self.ledger.entries]

    @cached_property
    def schema(self) -> Schema:
        """The columns as the run declared them.

        Raises
        ------
        MissingData (HR-402)
            The folder was written by a version that did not keep them.
        """
        return Schema.from_json(json.loads(self._text("schema.json", "the columns that the run declared")))

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """Weights of a model, or nodes of a tree; none of a fit.

        Raises
        ------
        CheckpointMismatch (HR-103)
            The file is damaged.
        """
        path = self.path / "model.safetensors"
        return read_arrays(path)[0] if path.exists() else {}

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of a fit by name, in their order; none of others."""
        path = self.path / "coefficients.csv"
        if not path.exists():
            return {}
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {row["term"]: float(row["coef"]) for row in rows} if rows and "coef" in rows[0] else {}

    @property
    def about(self) -> dict[str, str]:
        """What is told of a model in any format: which study, by which guarantee.

        The study's digest only where randomness came from the operating system: it covers the seed, and a number that seeds a
        simulation is found by trying numbers.
        """
        said = self.said
        return {
            "study": self.report.study,
            **({"study digest": self.study.digest} if self.study.simulation_seed is None else {}),
            "program": self.study.program.name,
            "epsilon": "none: not differentially private" if not said.private else repr(said.epsilon),
            "delta": repr(said.delta),
            "unit": said.unit,
            "privacy": said.sentence,
            "exposed": self.report.exposed,
            "hedgerow": version("hedgerow"),
        }

    @cached_property
    def synthesizer(self) -> Synthesizer:
        """What made-up records are drawn from, with what is told of the run.

        Raises
        ------
        StudyInvalid (HR-101)
            Its program makes no records.
        MissingData (HR-402)
            The folder lacks what records are drawn from.
        CheckpointMismatch (HR-103)
            It is of another study: the folder's was changed since.
        """
        refuse_undrawable(self.study)
        if not self.arrays:
            raise MissingData(
                f"{self.path} lacks model.safetensors: what records are drawn from.",
                remedy="Keep the files of a run together, or run the study again.",
            )
        make, said, about = self.program.synthesizer, self.said, self.about
        assert make is not None
        private = said.private and math.isfinite(said.epsilon)
        told = Provenance(
            method=self.study.program.name,
            epsilon=said.epsilon if private else None,
            delta=said.delta if private else None,
            unit=said.unit,
            privacy=" ".join(filter(None, (said.sentence, self.report.exposed))),
            study=about["study"],
            digest=about.get("study digest", ""),
        )
        ran = dict(self.report.provenance)
        changed = ran.get("study digest", self.study.digest) != self.study.digest and ran.get("hedgerow") == about["hedgerow"]
        try:
            if changed:
                raise ValueError("the study has another digest than the one that ran")
            made: Synthesizer = make(self.settings, self.arrays, self.schema, told)
        except (KeyError, ValueError, IndexError, TypeError) as cause:
            raise CheckpointMismatch(
                f"{self.path / 'model.safetensors'} is not what the study.toml and schema.json beside it release: {cause}.",
                remedy="Keep the files of a run as they were written, or run the study again.",
            ) from cause
        return made

    def coef(self) -> Array:
        """Coefficients as an array, shape (d,).

        Raises
        ------
        StudyInvalid (HR-101)
            The run has none.
        """
        if not self.coefficients:
            raise self.no("coefficients")
        return np.array(list(self.coefficients.values()))

    def no(self, what: str) -> StudyInvalid:
        """The error that a run has no such thing."""
        return StudyInvalid(
            f"{self.path} is a run of {self.study.program.name!r}, which has no {what}.",
            remedy="Every run has a model card: --to model-card. Runs with weights or coefficients: --to safetensors.",
        )

    def _text(self, name: str, what: str) -> str:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise MissingData(f"{self.path} lacks {name}: {what}.", remedy="Run the study again with this version.") from error


def read_run(path: str | Path) -> RunFolder:
    """Read a run folder; no records are read, and nobody is asked.

    Raises
    ------
    UnknownStudy (HR-102), StudyInvalid (HR-101), LedgerDamaged (HR-231)
        It holds no finished run; a file of it cannot be read.
    """
    path = Path(path)
    try:
        report = Report.from_json(json.loads((path / "result.json").read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise UnknownStudy(
            f"{path} holds no finished run.", remedy="Give a folder that `hedgerow run` wrote, e.g. runs/digits-fedavg-001."
        ) from error
    except ValueError as error:
        raise StudyInvalid(f"{path / 'result.json'} cannot be read: {error}.") from error
    study = load(path / "study.toml")
    ledger = Ledger(study.budget.budget() if study.budget else None)
    shared = study.budget.shared if study.budget else None
    if shared is None:
        ledger.entries.extend(read_chain(path).entries)
    else:  # the budget is that of all runs together
        ledger.others.extend(read_chain(shared).entries)
    facts = dict(report.facts)
    units = {name: value if isinstance(value := facts.get(plural), int) else 0 for name, plural in UNITS}
    given = study.program.model_extra or {}
    planned = given.get("delta") if given.get("epsilon") is not None else None  # of a program with a budget of its own
    planned = planned or agreed_delta(study.party_budgets)
    return RunFolder(path, study, report, ledger, statement(ledger, units, delta=planned))  # type: ignore[arg-type]


def refuse_undrawable(study: Study) -> None:
    """Refuse a study from whose runs no records can be drawn.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    if study.comparison is None and listing(study.program.name).synthesizer is not None:
        return
    what = "is a comparison" if study.comparison is not None else f"runs {study.program.name!r}"
    raise StudyInvalid(
        f"the study {study.name!r} {what}, from which no records are drawn.",
        remedy=f"Programs that make records: {', '.join(place.name for place in own().values() if place.draws)}.",
    )


UNITS = (("party", "parties"), ("record", "records"))
