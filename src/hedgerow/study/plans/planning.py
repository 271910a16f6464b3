"""From a file of owners to a plan: what is asked, by its study or its [model], and what is known of the loss, by its [pilot].

    [pilot] data       public records, made rows by the study's inputs               PilotEstimate.of_records
    [pilot] bounds     the worst loss within them                                    KnownLoss.of_bounds
    [pilot] residual   numbers                                                       KnownLoss.of_numbers
    [pilot] curvature, best   the same along each eigenvector                        KnownLoss.of

    [pilot] epsilon    one private question to the owners, once                      hedgerow.study.plans.pilot_question

Only the last asks owners anything.
"""

from __future__ import annotations

import filecmp
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.data import Column, Schema, Table
from hedgerow.data.cases import whole_cases
from hedgerow.errors import StudyInvalid
from hedgerow.learn.queries import Inputs, QueryLoss, Steps, length_of, longest_of, loss_of
from hedgerow.learn.queries.keys import loss_of_keys, spec_of_keys, steps_of_keys
from hedgerow.market.forecasts.known_loss import KnownLoss
from hedgerow.market.forecasts.pilot_estimate import PilotEstimate
from hedgerow.market.plans.owners_plan import OwnersPlan
from hedgerow.market.plans.plan import plan
from hedgerow.market.prices.sum_noise import SumNoise

from ..build import tables
from ..catalogue import listing
from ..keys import settings_of
from ..study import Study, load
from .owners_file import ModelSection, OwnersFile, PilotSection, load_owners
from .plan_digest import plan_digest

PROGRAM = "gradient_queries"
SERVER = "server"
"""As `[pilot] data`: the records that the study holds out, which belong to no owner."""


@dataclass(frozen=True)
class QueriesAsked:
    """What a plan is of.

    Attributes
    ----------
    loss, spec, steps
        Of `gradient_queries`.
    noise : SumNoise
    study : Study or None
        Where a study says all that.
    schema : Schema or None
    public : Table or None
        Records that belong to no owner, where the file names some.
    """

    loss: QueryLoss
    spec: Inputs
    steps: Steps
    noise: SumNoise
    study: Study | None = None
    schema: Schema | None = None
    public: Table | None = None


def plan_owners(path: str | Path, *, data_dir: str | Path | None = None) -> OwnersPlan:
    """Plan from a file of owners; with [pilot] epsilon these are asked one question, the first time.

    Parameters
    ----------
    path : str or Path
        See `hedgerow.study.plans.owners_file`.
    data_dir : str or Path, optional
        Folder of data sets.

    Raises
    ------
    StudyInvalid (HR-101)
        All problems of the file at once; a study of another program.
    """
    file = load_owners(path)
    asked = asked_of(file, data_dir)
    if file.pilot.epsilon is None:
        return plan_file(file, asked, known_of(file, asked, data_dir))
    from .pilot_question import ask_once, delta_of, spent_by

    known, _ = ask_once(file, asked, pilot_folder(file, path), data_dir)
    return plan_file(file, asked, known, spent=spent_by(file, asked), spent_delta=delta_of(file, asked))


def pilot_folder(file: OwnersFile, path: str | Path) -> Path:
    """Folder of the private question's run."""
    return Path(path).with_name(f"{Path(path).stem}-pilot") if file.pilot.run is None else Path(file.pilot.run)


def plan_file(
    file: OwnersFile, asked: QueriesAsked, known: KnownLoss, *, spent: float = 0.0, spent_delta: float = 0.0
) -> OwnersPlan:
    """Plan from what a file says and what is known; `spent` as of `hedgerow.market.plan`."""
    value = None if file.value is None else file.value.per_fitness
    before = {"spent": spent, "spent_delta": spent_delta}
    digest = plan_digest(file.digest, asked.study, known)
    return plan(file.offers(), known, asked.noise, value=value, title=file.title, digest=digest, **before)


def asked_of(file: OwnersFile, data_dir: str | Path | None = None) -> QueriesAsked:
    """What is asked, by the file's study or its [model]."""
    return _of_model(file.model) if file.model is not None else _of_study(load(str(file.study)), file.pilot, data_dir)


def known_of(file: OwnersFile, asked: QueriesAsked, data_dir: str | Path | None = None) -> KnownLoss:
    """What is known of the loss without asking anybody."""
    pilot, size, rounds = file.pilot, asked.spec.size, asked.noise.horizon
    if pilot.residual is not None:
        return _of_numbers(pilot, asked)
    if pilot.bounds is not None:
        b = pilot.bounds
        if asked.loss.kind != "squared" and b.sampling is None:
            raise _no_sampling("pilot.bounds")
        return KnownLoss.of_bounds(size, asked.steps, rounds, curvature=b.curvature, least=b.least, sampling=b.sampling)
    if asked.public is not None:
        table = whole_cases(asked.public, [*asked.spec.features, asked.spec.target])
        table = table if pilot.records is None else table.take(range(min(pilot.records, len(table))))
        whose = f"public records of {table.name}"
        estimate = PilotEstimate.of_table(asked.loss, asked.spec, table, asked.steps.box, whose)
        return KnownLoss.of(estimate, asked.steps, rounds, quadratic=asked.loss.kind == "squared")
    raise StudyInvalid(
        "pilot.epsilon is a question to the owners.", remedy="hedgerow.study.plans.pilot_question.ask_once asks it."
    )


def _of_model(model: ModelSection) -> QueriesAsked:
    names = tuple(f"input {k}" for k in range(1, model.inputs + 1))
    radius = 1.0 if model.rows == "ball" else None
    spec = Inputs(names, "target", (0.0,) * len(names), (1.0,) * len(names), radius=radius, constant=model.constant)
    loss = loss_of(model.loss, model.ridge)
    steps = Steps(model.rule, model.step, model.box, model.convexity)
    longest = length_of(loss, spec, model.box, 1 if model.noise == "laplace" else 2)
    return QueriesAsked(loss, spec, steps, _noise(model.model_dump(), longest))


def _of_study(study: Study, pilot: PilotSection, data_dir: str | Path | None) -> QueriesAsked:
    if study.program.name != PROGRAM:
        raise StudyInvalid(
            f"the study {study.name!r} is of {study.program.name!r}.", remedy=f"A plan is of owners' answers to {PROGRAM!r}."
        )
    given = study.program.model_extra or {}
    settings: dict[str, Any] = settings_of(listing(PROGRAM), given)
    if "neighbours" not in given:  # those of the ledger, so that one number stands everywhere
        settings["neighbours"] = "add-remove"
    public, schema = None, None
    if pilot.data is not None and pilot.residual is None:
        public = _public(pilot, study, data_dir)
        schema = public.schema
    schema = schema or declared_schema(study, settings) or tables(study, data_dir)[0].schema
    loss, spec, steps = loss_of_keys(schema, settings), spec_of_keys(schema, settings), steps_of_keys(schema, settings)
    longest = longest_of(schema, loss, spec, steps.box, 1 if settings["noise"] == "laplace" else 2)
    if longest is None:
        raise StudyInvalid("record weights declare no range, so a record's gradient has no bound.", remedy="Declare it.")
    return QueriesAsked(loss, spec, steps, _noise(settings, longest), study, schema, public)


def _noise(settings: Mapping[str, Any], longest: float) -> SumNoise:
    law = settings["noise"]
    delta = settings["delta"] if law == "gaussian" else 0.0
    return SumNoise(law, settings["rounds"], longest, settings["neighbours"], delta)


def _of_numbers(pilot: PilotSection, asked: QueriesAsked) -> KnownLoss:
    size, least = asked.spec.size, float(pilot.residual or 0.0)
    source = "numbers in the file" + (f", from {pilot.data} records" if pilot.data else "")
    if pilot.sampling is None and asked.loss.kind != "squared":
        raise _no_sampling("pilot")
    sampling = least * size if pilot.sampling is None else pilot.sampling
    if pilot.amplification is not None and pilot.bias is not None:
        how = {"amplification": pilot.amplification, "bias": pilot.bias}
        zeros = math.log(2) if asked.loss.kind == "logistic" else 1.0
        return KnownLoss.of_numbers(size, **how, sampling=sampling, least=least, zeros=zeros, source=source)
    if len(pilot.curvature) != size:
        raise StudyInvalid(
            f"pilot.curvature has {len(pilot.curvature)} eigenvalues, and rows have {size} coordinates.",
            remedy="Give one for each coordinate, and as many numbers of best.",
        )
    h = np.array(pilot.curvature)
    scatter = np.diag(2 * h * sampling / size)  # which makes tr(H^-1 G) / 2 the sampling
    estimate = PilotEstimate(np.diag(h), np.array(pilot.best), least, scatter, source)
    return KnownLoss.of(estimate, asked.steps, asked.noise.horizon, quadratic=asked.loss.kind == "squared")


def _public(pilot: PilotSection, study: Study, data_dir: str | Path | None) -> Table:
    """Records that belong to no owner."""
    if pilot.data == SERVER:
        server = tables(study, data_dir)[1]
        if server is None:
            raise StudyInvalid(
                'pilot.data = "server", and the study holds none out.', remedy="Set evaluation.holdout in the study."
            )
        return server
    _refuse_own(str(pilot.data), study)
    named = Path(str(pilot.data)).suffix.lower() in SUFFIXES
    where: dict[str, Any] = {
        "path": pilot.data if named else None,
        "name": None if named else pilot.data,
        "records": None,
        "parties": {},
    }
    whole = study.evaluation.model_copy(update={"holdout": 0.0})
    other = study.model_copy(update={"data": study.data.model_copy(update=where), "evaluation": whole})
    return tables(other, data_dir)[0]


def _refuse_own(public: str, study: Study) -> None:
    """Refuse public records that are the study's own: what follows from them would be charged to nobody.

    Raises
    ------
    StudyInvalid (HR-101)
        The study's data set by name, its file or a party's, also a link to it or a copy.
    """
    files = [one for one in (study.data.path, *study.data.parties.values()) if one is not None]
    there = [Path(one) for one in files if Path(one).is_file()] if Path(public).is_file() else []
    same = any(Path(public).samefile(one) or filecmp.cmp(public, one, shallow=False) for one in there)
    if same or public == study.data.name or public in files:
        raise StudyInvalid(
            f"pilot.data = {public!r} names the study's own records, which belong to its owners, and a plan of them would be "
            "charged to nobody.",
            remedy='Take records of others; those that the study holds out, data = "server" with [evaluation] holdout; or ask '
            "privately, [pilot] epsilon = 0.1.",
        )


def declared_schema(study: Study, settings: Mapping[str, Any]) -> Schema | None:
    """The columns that the program reads, as the study itself declares them; None where it leaves that to the data.

    With it no record of an owner is read for a plan, also where these are at stations.
    """
    data, target = study.data, study.data.target
    if target is None or not data.features or data.weight is not None or data.derivations():
        return None
    columns, declared = [], data.declared_columns()
    for name in (*data.features, target):
        said = declared.get(name)
        kind = "number" if said is None or said.kind is None else said.kind
        kind = "binary" if name == target and settings["model"] != "linear" else kind
        ends = data.ranges.get(name) or (None if said is None else (said.low, said.high)) or (None, None)
        if kind == "category" or (kind != "binary" and None in ends and not settings["centre"]):
            return None
        low, high = (None, None) if kind == "binary" else ends
        columns.append(Column(name, kind, "target" if name == target else "feature", low=low, high=high))
    return Schema(tuple(columns))


SUFFIXES = (".csv", ".parquet", ".npz", ".tsv", ".txt")
"""Of files; other names are those of the catalogue."""


def _no_sampling(where: str) -> StudyInvalid:
    return StudyInvalid(
        f"{where}.sampling is missing.",
        remedy="Of another loss than the squared one it follows from neither curvature nor loss.",
    )
