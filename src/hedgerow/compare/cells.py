"""From a comparison or a sweep to its cells: one study for each row and column."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hedgerow.errors import HedgerowError, StudyInvalid
from hedgerow.study.changes import Change, changed
from hedgerow.study.comparison import ComparisonSection, Variant
from hedgerow.study.study import Study, parse

_OF_THE_WHOLE = {"comparison", "name", "title", "description"}
"""Keys that a command line changes in the comparison itself, not in its cells."""


@dataclass(frozen=True)
class Cell:
    """One run of a comparison: its place in the table, its study, the name of its folder, and its seed where it has several."""

    row: str
    column: str
    study: Study
    folder: str
    seed: int | None = None

    @property
    def name(self) -> str:
        """Row and column, as a reader would say them, and the seed where there are several."""
        return f"{self.row}, {self.column}" + ("" if self.seed is None else f", seed {self.seed}")


def cells(study: Study, *, quick: bool = False, changes: Iterable[Change] = ()) -> list[Cell]:
    """Return the cells of a study with a comparison, row by row.

    Parameters
    ----------
    quick : bool
        Apply the comparison's `quick` changes after those of row and column, and take one seed, and the rows and
        columns that it names for that.
    changes : iterable of (dotted key, value)
        Those of the command line, which have the last word in every cell.

    Raises
    ------
    StudyInvalid (HR-101)
        A cell is no lawful study; the message names it. Parties have budgets, and cells no ledger that all of them share.
    """
    section = study.comparison
    if section is None:
        raise StudyInvalid(f"the study {study.name!r} has no [comparison].", remedy="Give one, or run it as a single run.")
    if quick and not section.quick:
        raise StudyInvalid(
            f"--quick: the comparison of {study.name!r} does not say what a quick run changes.",
            remedy='Say it, e.g. quick = { "program.rounds" = 5 }, or leave --quick out.',
        )
    if quick:
        section = section.quickly
    base = {"baselines": False} | study.model_dump(mode="json", exclude_unset=True, exclude={"comparison"})
    always = [*(section.quick.items() if quick else ()), *((k, v) for k, v in changes if k.split(".")[0] not in _OF_THE_WHOLE)]
    made = [_cell(study, base, row, column, always) for row, column in product(section.rows, section.columns)]
    if section.seeds > 1:
        made = [
            _with_seed(cell, k) for k in range(section.seeds) for cell in made
        ]  # so that the first seed has its table first
    _refuse_ledgers_apart(made)
    return made


def _with_seed(cell: Cell, k: int) -> Cell:
    """The same cell with its seed and k more."""
    if cell.study.seed == "system":
        raise StudyInvalid(
            f"comparison.seeds has several runs of {cell.name!r}, whose seed is 'system': there is no number to go on from.",
            remedy="Give the study a number as its seed.",
        )
    seed = int(cell.study.seed) + k
    return replace(cell, study=cell.study.model_copy(update={"seed": seed}), folder=f"{cell.folder}--seed-{seed}", seed=seed)


def _refuse_ledgers_apart(made: Sequence[Cell]) -> None:
    """Refuse budgets of parties where each run would spend them anew, since it counts by a ledger of its own."""
    ledgers = {cell.study.budget.ledger if cell.study.budget else None for cell in made}
    if len(made) > 1 and any(cell.study.party_budgets for cell in made) and (None in ledgers or len(ledgers) > 1):
        raise StudyInvalid(
            f"party_budgets limits what a party loses by all {len(made)} runs, which have no ledger in common: "
            "each of them would spend it anew.",
            remedy='Give them one, e.g. [budget] unit = "record", ledger = "owners.sqlite", with an epsilon and a delta; '
            "or leave party_budgets out of the comparison.",
        )


def _cell(study: Study, base: dict[str, Any], row: Variant, column: Variant, always: list[Change]) -> Cell:
    title = f"{study.title or study.name}: {row.name}, {column.name}"
    try:
        made = changed(base, [*row.set.items(), *column.set.items(), *always])
        made_ready = parse({**made, "name": study.name, "title": title})
    except HedgerowError as error:
        raise named(error, f"{row.name}, {column.name}") from None
    return Cell(row.name, column.name, made_ready, f"{row.slug}--{column.slug}")


def named(error: HedgerowError, cell: str) -> HedgerowError:
    """Return an error that says which run it is about."""
    error.reason = f"in the run {cell!r}: {error.reason}"
    return error


def sweep(study: Study, texts: Sequence[str]) -> Study:
    """Return a study with a comparison of trials: one row for each combination of the values that `a.b=1,2,3` name.

    Raises
    ------
    StudyInvalid (HR-101)
        A text that names no key or no value; a study that is a comparison already.
    """
    if study.comparison is not None:
        raise StudyInvalid(
            f"the study {study.name!r} is a comparison already.", remedy="Sweep a single study, or add rows to the comparison."
        )
    grid = [_values(text) for text in texts]
    last = [key.split(".")[-1] for key, _ in grid]
    short = last if len(set(last)) == len(last) else [key for key, _ in grid]
    rows = []
    for values in product(*(values for _, values in grid)):
        name = ", ".join(f"{key}={_word(value)}" for key, value in zip(short, values, strict=True))
        rows.append(Variant(name=name, set={key: value for (key, _), value in zip(grid, values, strict=True)}))
    columns = [Variant(name=study.program.name)]
    try:
        section = ComparisonSection(rows=rows, columns=columns, take="last", choose=True)
    except ValueError as error:
        raise StudyInvalid(f"--sweep {' '.join(texts)!r} names a value twice.", remedy="Name each value once.") from error
    return study.model_copy(update={"comparison": section})


def _values(text: str) -> Change:
    """Read `a.b=1,2,3`; values are those of TOML, or else words."""
    key, _, written = text.partition("=")
    key, written = key.strip(), written.strip()
    try:
        values = tomllib.loads(f"values = [{written}]")["values"]
    except tomllib.TOMLDecodeError:
        values = [part.strip() for part in written.split(",")]
    if not key or not values or "" in values:
        raise StudyInvalid(
            f"--sweep {text!r} is not of the form key=value,value.", remedy="For example --sweep program.learning_rate=0.01,0.1"
        )
    return key, values


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
