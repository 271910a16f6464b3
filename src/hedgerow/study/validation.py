"""Measuring at the parties: whether a program can, and held-out records of each, drawn by the seed and never trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.core.declaration import Declaration
from hedgerow.core.randomness import Streams
from hedgerow.data import Column, Partition, Schema, Table
from hedgerow.errors import SettingsInvalid, StudyInvalid

from .study import Study

COLUMN = "held out"
"""1 for a record that is kept for validation."""


def refuse_unmeasured(study: Study, listing: Declaration) -> None:
    """Refuse a study that is to be measured by sums over the parties, of a program that has no such metrics.

    Raises
    ------
    StudyInvalid (HR-101)
    """
    if study.evaluation.on == "parties" and listing.ask is None:
        raise StudyInvalid(
            f"evaluation.on = 'parties', and the program {study.program.name!r} has no metrics by sums over the parties: "
            "nothing would be measured there.",
            remedy="Measure on a table of the server, [evaluation] on = 'test' and holdout = 0.2, or not at all, on = 'none'.",
        )


def refuse_several(study: Study, listing: Declaration, partition: Partition) -> None:
    """Refuse a study whose parties do not have one record each, of a program that is about such parties.

    Raises
    ------
    SettingsInvalid (HR-511)
    """
    other = sum(len(one) != 1 for one in partition.indices) if listing.one_record else 0
    if other:
        raise SettingsInvalid(
            f"{other} of {len(partition.indices)} parties do not have one record each of the "
            f"{sum(map(len, partition.indices))}, and the program {study.program.name!r} is about parties that do.",
            remedy="Give as many parties as records: the same number as data.records and as partition.parties, by = 'iid'.",
        )


def refuse_membership(study: Study, listing: Declaration, test: Table | None, *, simulated: bool = True) -> None:
    """Refuse `evaluation.membership` where nobody can measure it, before any party is asked.

    Raises
    ------
    StudyInvalid (HR-101)
        The records are at stations, or may not be shown; the program has no loss of single records; the server has no table.
    """
    if not study.evaluation.membership:
        return
    said = "evaluation.membership compares the losses of the parties' records with those of others"
    if not simulated:
        raise StudyInvalid(
            f"{said}, and only a simulation may show what it finds.",
            remedy="Leave it out; simulate the study with a seed, on records that may be shown, to see what its model leaks.",
        )
    if listing.losses is None:
        raise StudyInvalid(
            f"{said}, and the program {study.program.name!r} releases no one model with a loss of each record.",
            remedy="Leave it out, or choose a program that trains one model, such as fedavg or dpsgd.",
        )
    if test is None:
        raise StudyInvalid(f"{said}, and the server holds no table.", remedy="Hold some out: [evaluation] holdout = 0.5.")


def for_tuning(study: Study, test: Table | None) -> tuple[Table | None, Table | None]:
    """The server's table without the part by which rounds are chosen, and that part.

    Raises
    ------
    StudyInvalid (HR-101)
        The server holds no table, or one of the parts would be empty.
    """
    share = study.evaluation.tuning
    if not share:
        return test, None
    if test is None or not 0 < round(share * len(test)) < len(test):
        raise StudyInvalid(
            f"evaluation.tuning = {share:g} takes records from the server's table, which has {len(test or ())}.",
            remedy="Give it more: [evaluation] holdout = 0.4, or another table; or leave tuning out.",
        )
    tuning, rest = test.split(share, (study.simulation_seed or 0) + 1)
    return rest, tuning


def with_held_out(
    study: Study, listing: Declaration, settings: dict[str, Any], table: Table, partition: Partition
) -> tuple[dict[str, Any], Table]:
    """Return settings and table with `evaluation.validation` of each party's records held out.

    Raises
    ------
    StudyInvalid (HR-101)
        The program cannot leave records out, or the study names a column itself, or every party is too small.
    """
    share = study.evaluation.validation
    if not share:
        return settings, table
    if "held_out" not in settings or listing.ask is None:
        raise StudyInvalid(
            f"evaluation.validation = {share:g}: the program {study.program.name!r} cannot leave records out of its training.",
            remedy="Leave it out and measure on a table of the server: [evaluation] on = 'test', holdout = 0.2.",
        )
    if settings["held_out"] is not None:
        raise StudyInvalid(
            f"evaluation.validation = {share:g} and program.held_out = {settings['held_out']!r} both say what is held out.",
            remedy="Give one of the two.",
        )
    column = COLUMN
    while column in table.schema:
        column += "'"
    held = draw(partition, len(table), share, study.simulation_seed or 0)
    if not held.any():
        raise StudyInvalid(
            f"evaluation.validation = {share:g} leaves every party without a record to measure on.",
            remedy="Choose a larger share or fewer parties.",
        )
    schema = Schema((*table.schema.columns, Column(column, "binary", role="ignore")))
    return settings | {"held_out": column}, replace(table, columns=table.columns | {column: held}, schema=schema)


def draw(partition: Partition, n_records: int, share: float, seed: int) -> np.ndarray:
    """1 for the records that each party holds out, 0 for the others; shape (n_records,).

    A party of n records holds out share * n of them, rounded up or down at random so that small parties have their part,
    and keeps at least one to train on.
    """
    rng = Streams(seed).stream(0, "server", "validation").generator
    sizes = np.array([len(records) for records in partition.indices])
    wanted = np.minimum(np.floor(share * sizes + rng.random(len(sizes))), sizes - 1)
    records, owner = np.concatenate(partition.indices), np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((rng.random(len(records)), owner))
    rank = np.arange(len(records)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held = np.zeros(n_records)
    held[records[order]] = rank < wanted[owner]
    return held
