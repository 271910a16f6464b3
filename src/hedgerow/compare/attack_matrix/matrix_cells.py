"""From a study with a matrix to its cells: one lawful study for each act, rule, partition and seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hedgerow.errors import HedgerowError, StudyInvalid
from hedgerow.study.catalogue import listing
from hedgerow.study.changes import changed
from hedgerow.study.keys import keys_of
from hedgerow.study.study import Study, parse

from ..cells import named

APART = {"matrix", "comparison", "quick"}
"""Sections of the whole, which cells do not have."""


@dataclass(frozen=True)
class MatrixCell:
    """One run of a matrix: where it stands, and its study."""

    act: str
    rule: str
    partition: str
    seed: int
    study: Study

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.act, self.rule, self.partition, self.seed

    @property
    def name(self) -> str:
        """As a reader would say it."""
        return f"{self.act}, {self.rule}" + f", {self.partition}" * bool(self.partition) + f", seed {self.seed}"


def matrix_cells(study: Study) -> list[MatrixCell]:
    """Return the cells of a study with a matrix, a seed after the other.

    Raises
    ------
    StudyInvalid (HR-101)
        A cell is no lawful study; the message names it. Seeds come from the operating system, so that no cell could be
        repeated. The program has no `rule`.
    """
    section = study.matrix
    if section is None:
        raise StudyInvalid(f"the study {study.name!r} has no [matrix].", remedy="Give one, or run it as a single run.")
    first = study.simulation_seed
    if first is None:
        raise StudyInvalid("a matrix is of simulations, and the study has no seed.", remedy="Give one, such as seed = 0.")
    base = study.model_dump(mode="json", exclude_unset=True, exclude=APART) | {"baselines": False, "name": study.name}
    expect, found = base["program"].pop("expect", None), []
    drawn = "model_seed" in keys_of(listing(study.program.name)).model_fields  # each seed begins with weights of its own
    for (act, rule, partition, k), changes in section.changes(base.get("attack") or {}, expect):
        place = f"{act}, {rule}" + f", {partition}" * bool(partition)
        try:
            seeds = [("seed", first + k), *[("program.model_seed", first + k)] * drawn]
            made = changed(base, _flat(changes) + seeds)
            found.append(MatrixCell(act, rule, partition, first + k, parse(made)))
        except HedgerowError as error:
            raise named(error, place) from None
    return found


def _flat(changes: dict[str, Any]) -> list[tuple[str, Any]]:
    """Partition, protection and attack replace a section; of the program single keys change."""
    whole = [(name, value) for name, value in changes.items() if name != "program"]
    return [*whole, *((f"program.{key}", value) for key, value in changes.get("program", {}).items())]
