"""From a study to what runs: table, partition, federation. Every refusal that can come before a party is asked comes here."""

from __future__ import annotations

import hashlib
import re
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.declaration import Declaration
from hedgerow.core.federation import Federation, inside
from hedgerow.core.ledger import Ledger
from hedgerow.core.run import Run
from hedgerow.data import Partition, Schema, Table, load, partitioner, read
from hedgerow.data.cases import all_left_out, complete_sizes, whole_cases
from hedgerow.engines import InProcess, Loop, simulate
from hedgerow.engines.shared import warn_of_copies
from hedgerow.engines.simulate import parties_of
from hedgerow.errors import HedgerowWarning, StudyInvalid, suggestion
from hedgerow.report import Outcome, plain_outcome
from hedgerow.stats.derived import Derivation, derive_columns
from hedgerow.stats.quality.cells import number_of_bins
from hedgerow.store import read_chain

from .agreed import budgets_of
from .apart.ready import refuse_sections
from .attacked import refuse_unmeasurable, success
from .catalogue import listing
from .declared import agree
from .defined import refuse_undefined
from .disclosed import has_dot, holdings_of, texts_in
from .keys import settings_of
from .liars import acting
from .roots import with_root
from .several import with_labels
from .study import EngineSection, Study
from .validation import for_tuning, refuse_membership, refuse_several, refuse_unmeasured, with_held_out


@dataclass(frozen=True)
class Built:
    """A study made ready.

    Attributes
    ----------
    table : Table
        The records that the parties hold.
    test : Table or None
        Records that the server holds.
    tuning : Table or None
        Others that it holds, by which it chooses rounds.
    """

    study: Study
    listing: Declaration
    settings: dict[str, Any]
    table: Table
    test: Table | None
    partition: Partition
    federation: Federation
    tuning: Table | None = None

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @property
    def run(self) -> Run:
        """The run behind the federation, with engine and ledger."""
        return inside(self.federation).run

    @property
    def held_out(self) -> Table | None:
        """The records that the parties keep for validation, which only a simulation can put in one place."""
        if not self.study.evaluation.validation:
            return None
        return self.whole.take(self.table[self.settings["held_out"]] == 1)

    @property
    def of_server(self) -> dict[str, Table | None]:
        """The server's tables, by what they are for."""
        return {"test": self.test, "tuning": self.tuning}

    @property
    def whole(self) -> Table:
        """All records of the parties as the partition made them."""
        return replace(self.table, columns=self.table.columns | (self.partition.columns or {}))

    def complete(self, table: Table) -> Table:
        """The records of a table that lack none of the columns which the program has read so far, as its own records do."""
        read = {name for one in all_left_out(self.federation) for name in one.optional}
        return whole_cases(table, [name for name in table.schema.names if name in read])

    @property
    def simulated(self) -> bool:
        """Whether the report may show what only a simulation can know: exact values of the parties' records."""
        return self.study.simulation_seed is not None

    @property
    def unspent(self) -> Ledger:
        """A ledger under the study's budget that holds what other runs spent, and nothing of this one."""
        limit, budget = self.run.ledger.limit, self.study.budget
        shared = budget.shared if budget else None
        found = Ledger(limit) if shared is None or not shared.exists() else read_chain(shared).ledger(limit)
        found.party_limits = self.run.ledger.party_limits
        return found

    @property
    def bins(self) -> int:
        """Bins of a curve that parties are asked for; they follow the number of records where it is known before."""
        return self.study.evaluation.bins or number_of_bins(len(self.table))

    @cached_property
    def digest(self) -> str:
        """Identifies what may resume a run: its study and its records."""
        found = hashlib.sha256(self.study.digest.encode())
        for name, column in sorted(self.table.columns.items()):
            found.update(name.encode() + np.ascontiguousarray(column).tobytes())
        return found.hexdigest()[:16]

    def shown(self, state: Any) -> Outcome:
        """What a state has to show; in a simulation beside what only that knows."""
        given: tuple[Any, ...] = (self.federation, self.settings, state)
        if self.listing.with_records:
            given = (*given, parties_of(self.table, self.partition) if self.simulated else None)
        return (self.listing.outcome or plain_outcome)(*given)

    def measure(self, state: Any) -> dict[str, float]:
        """Metrics of a state, where they are due in its round; where parties are asked once, what nobody is asked for."""
        between = self.study.evaluation.between
        if between is None:
            return self.listing.watch(self.settings, state, self.schema, None) if self.listing.watch else {}
        due = state.round % between == 0 or state.round == self.settings.get("rounds")
        return self.metrics(state) if due else {}

    def measure_last(self, state: Any) -> dict[str, float]:
        """Metrics of the last state, where they are asked for once."""
        return self.metrics(state) if self.study.evaluation.between is None else {}

    def metrics(self, state: Any) -> dict[str, float]:
        """Metrics of a state: on the server's table, or by a sum over the parties."""
        on = self.study.evaluation.on
        if on == "parties" and self.listing.ask is not None:
            how = {"evaluation.bins": self.bins, "evaluation.groups": self.study.evaluation.groups}
            return self.listing.ask(self.federation, self.settings | how, state)
        if self.listing.watch is None or on == "none":
            return {}
        chosen_by = {} if self.tuning is None else self._watched(state, self.tuning)
        told = {f"tuning {name.removeprefix('test ')}": value for name, value in chosen_by.items()}
        return told | self._watched(state, self.test) | success(self, state)

    def _watched(self, state: Any, table: Table | None) -> dict[str, float]:
        assert self.listing.watch is not None
        return self.listing.watch(self.settings, state, self.schema, None if table is None else self.complete(table))


def build(
    study: Study,
    *,
    data_dir: str | Path | None = None,
    threads: int | None = None,
    state_folder: str | Path | None = None,
    table: Table | None = None,
    engine: Any = None,
) -> Built:
    """Load, split and protect; ask nobody.

    `threads` holds where the study does not say how many, `state_folder` where it wants parties' states on disk; `table` and
    `engine` stand in for those that the study names.
    """
    if study.comparison is not None:
        raise StudyInvalid(
            f"the study {study.name!r} is a comparison, not a single run.",
            remedy="Run it by `hedgerow run` or hedgerow.compare.run; hedgerow.compare.cells gives its single runs.",
        )
    if study.matrix is not None:
        raise StudyInvalid(
            f"the study {study.name!r} is a matrix, not a single run.",
            remedy="Run it by `hedgerow run` or hedgerow.compare.run_matrix; matrix_cells there gives its single runs.",
        )
    found = listing(study.program.name)
    if study.apart or found.columns == "apart":
        refuse_sections(study)
        raise StudyInvalid(
            f"the study {study.name!r} is of parties that hold different columns.", remedy="Run it by hedgerow.study.run_study."
        )
    settings = with_labels(study, settings_of(found, study.program.model_extra or {}))
    if study.data.name == "fashion_mnist" and "pretrained:garments" in str((study.program.model_extra or {}).get("model")):
        raise StudyInvalid(
            "program.model was trained on fashion_mnist, which are the parties' records here: nothing would charge that.",
            remedy="Train from scratch: program.model = 'hedgerow.papers.haug.pretrained:scratch'.",
        )
    table, test = tables(study, data_dir, table)
    refuse_undefined(study, table)
    seed = study.simulation_seed
    partition = partitioner(study.partition.by, **(study.partition.model_extra or {}))(table, seed or 0)
    for name in study.engine.dropped:
        if name not in partition.names:
            raise StudyInvalid(
                f"engine.dropped names {name!r}, which is no party.", remedy=suggestion(name, partition.names[:50])
            )
    settings, test = with_root(found, settings, test, seed or 0)
    settings, table = with_held_out(study, found, settings, table, partition)
    refuse_unmeasured(study, found)
    refuse_several(study, found, partition)
    refuse_membership(study, found, test, simulated=seed is not None)
    test, tuning = for_tuning(study, test)
    hosted = engine_of(study.engine, threads, state_folder) if engine is None else engine
    if study.attack is not None:
        refuse_unmeasurable(study.attack, test)
        hosted = acting(hosted, study.attack, table.schema, partition.names, seed)
    federation = simulate(table, partition, seed=seed, engine=hosted).protect(**study.protection.slots())
    inside(federation).run.holdings = holdings_of(study, found, complete_sizes(table, partition.indices), table.schema)
    budget = study.budget.budget() if study.budget else None
    if budget is not None:
        federation = federation.within(budget)
        if budget.unit == "record":
            warn_of_copies(partition)
    inside(federation).run.ledger.party_limits = budgets_of(study.party_budgets, partition.names)
    if seed is not None:
        _warn_of_one_class(table, partition)
    return Built(study, found, settings, table, test, partition, federation, tuning)


def tables(study: Study, data_dir: str | Path | None, table: Table | None = None) -> tuple[Table, Table | None]:
    """Load the parties' table, unless it is given, and the server's."""
    data = study.data
    table = records_of(study, data_dir) if table is None else table
    if data.records is not None:
        table = table.drawn(data.records, study.simulation_seed or 0)
    table = derive_columns(table, derivable(study, table.schema))
    roles = {"target": data.target, "weight": data.weight, "features": data.features}
    table = table.with_roles(**{role: given for role, given in roles.items() if given is not None})
    if data.ranges:
        table = table.declare(clip=data.clip, **data.ranges)
    test = table.test
    if study.evaluation.holdout:
        test, table = table.split(study.evaluation.holdout, study.simulation_seed or 0)
    if len(table) == 0 or (test is not None and len(test) == 0):
        parts = f"{len(table)} records to the parties and {len(test or ())} to the server"
        raise StudyInvalid(
            f"evaluation.holdout = {study.evaluation.holdout:g} leaves {parts}.", remedy="Both need some: choose another share."
        )
    return table, test


def derivable(study: Study, schema: Schema) -> dict[str, Derivation]:
    """The derived columns that are not in a table yet; of a dictionary's, those of which it has all that they read."""
    found: dict[str, Derivation] = {}
    for name, one in study.data.derivations().items():
        there = study.data.dictionary is None or all(source in schema or source in found for source in one.sources)
        if name not in schema and there:
            found[name] = one
    return found


def records_of(study: Study, data_dir: str | Path | None) -> Table:
    """All records of a study's data, as the catalogue or its file has them."""
    data = study.data
    if data.path:
        return read_declared(study)
    table = load(str(data.name), data_dir=data_dir)
    agree(data.declared_columns(), data.derivations(), table.schema, f"the catalogue and {data.name}")
    return table


def read_declared(study: Study) -> Table:
    """Read a study's file by what the study declares of its columns."""
    data, used = study.data, used_columns(study)
    if (held := data.held_dictionary) is not None:
        named = words_of(study) if used is None else used
        known = [name for name in held.schema().names if named is None or name in named]
        return read(str(data.path), dictionary=held, columns=known, separator=data.separator, decimal=data.spelt["decimal"])
    return read(
        str(data.path),
        columns=used,
        missing=data.missing,
        declared=data.declared_columns(),
        separator=data.separator,
        **data.spelt,
        needed=None if (words := words_of(study)) is None else lambda name: name in words,
    )


def words_of(study: Study) -> ColumnTexts | None:
    """All that a study says, where a formula names the columns that its program reads; None where it may read every feature."""
    formula = (study.program.model_extra or {}).get("formula")
    if not isinstance(formula, str) or has_dot(formula):
        return None
    data, more = study.data, [study.partition.model_extra, study.program.model_extra, study.evaluation.model_dump(mode="json")]
    named = [
        data.target,
        data.weight,
        *data.ranges,
        *(source for one in data.derived.values() for source in one.derivation().sources),  # a dictionary knows its own
    ]
    values = [value for one in more for value in (one or {}).values()]
    return ColumnTexts(tuple(sorted({*texts_in([*named, *values])})))


@dataclass(frozen=True)
class ColumnTexts:
    """Texts in which names of columns are looked for."""

    texts: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        return any(word.search(text) for text in self.texts)


def used_columns(study: Study) -> set[str] | None:
    """The columns that a study names, where it says which features it uses; None for all."""
    if study.data.features is None:
        return None
    used = {*study.data.features, study.data.target, study.data.weight, *study.data.ranges}
    for value in [*(study.partition.model_extra or {}).values(), *(study.program.model_extra or {}).values()]:
        used |= set(re.findall(r"\w+", value)) if isinstance(value, str) else set(value) if isinstance(value, list) else set()
    named = {str(name) for name in used if name is not None}
    if (held := study.data.held_dictionary) is not None:
        return named | held.needed([name for name in named if name in held.derived])
    return named | {source for one in study.data.derivations().values() for source in one.sources}


def engine_of(section: EngineSection, threads: int | None = None, state_folder: str | Path | None = None) -> Any:
    """Return the engine that a study names."""
    if section.name == "loop":
        return Loop()
    given = section.threads or threads
    wrong = {"dropout_rate": section.dropout_rate, "dropped": tuple(section.dropped), "deadline": section.deadline}
    wrong["returns"] = section.returns
    if section.name != "in-process":
        from hedgerow.engines import Processes, Ray

        spread: dict[str, Any] = {"shards": section.shards or 2, "threads_each": section.threads or 1}
        return Processes(**wrong, **spread) if section.name == "processes" else Ray(**wrong, **spread, address=section.address)
    more: dict[str, Any] = {"threads": given} if given else {}
    return InProcess(**wrong, **more, state_folder=state_folder if section.states == "disk" else None)


def _warn_of_one_class(table: Table, partition: Partition) -> None:
    """Say which parties hold one class only: lawful, but they cannot fit a model alone."""
    target = table.schema.target
    if target is None or table.schema[target].kind not in ("binary", "category") or len(partition.indices) > 1000:
        return
    values = (partition.columns or {}).get(target, table.columns[target])
    known = ~table.schema[target].lacks(values)
    parts = zip(partition.names, partition.indices, strict=True)
    single = [name for name, rows in parts if len(np.unique(values[rows[known[rows]]])) == 1]
    if single:
        shown = ", ".join(single[:5]) + (f" and {len(single) - 5} more" if len(single) > 5 else "")
        warnings.warn(
            f"{shown} hold one class of {target!r} only: the federation can learn from them, but they cannot fit alone.",
            HedgerowWarning,
            stacklevel=2,
        )
