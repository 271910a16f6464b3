"""What a run of `synthesizers_beside` shows: one table of measures, printed numbers first, and histograms."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import spatial

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.data import Schema, Table
from hedgerow.report import Curve, Grid, Outcome, Series
from hedgerow.synth.metrics import ks_complement, tv_complement
from hedgerow.synth.tstr import MADE, tstr

from .synthesizers import MadeBesideState, flat
from .ways import ways_named

THEMSELVES, ANOTHER = "the records themselves", "the held-out records"
LEAST, CORRELATION, NEARER, TRAINED = "least", "correlation", "nearer", "trained"
FITS = 3
"""Draws on which models are trained."""
BARS = 12
"""Bins of a histogram."""


@dataclass(frozen=True)
class RealRecords:
    """The records with which made-up ones are compared, and those that no way has seen.

    Attributes
    ----------
    schema : Schema
    real, held_out : array of shape (n, columns) and (m, columns)
    """

    schema: Schema
    real: Array
    held_out: Array

    def alike(self, made: Array) -> dict[str, float]:
        """KS complements of numbers and TV complements of others, by column."""
        found = {}
        for j, column in enumerate(self.schema):
            measure = ks_complement if column.kind in ("number", "integer") else tv_complement
            found[column.name] = measure(self.real[:, j], made[:, j])
        return found

    def correlation(self, made: Array) -> float:
        """Of the first two numbers."""
        numbers = [j for j, column in enumerate(self.schema) if column.kind in ("number", "integer")][:2]
        return float(np.corrcoef(made[:, numbers].T)[0, 1]) if len(numbers) == 2 else math.nan

    def nearer(self, made: Array) -> float:
        """Share of records that are nearer to a real record than to a held-out one, of as many as there are of both."""
        n = min(len(self.real), len(self.held_out))
        if not n:
            return math.nan
        rng = np.random.default_rng(0)
        first, second = (part[rng.permutation(len(part))[:n]] for part in (self.real, self.held_out))
        near, far = (spatial.cKDTree(self.placed(part)).query(self.placed(made))[0] for part in (first, second))
        return float(np.mean((near < far) + (near == far) / 2))

    def placed(self, records: Array) -> Array:
        """Records as points: numbers in standard deviations, categories as corners that lie one apart."""
        found = []
        for j, column in enumerate(self.schema):
            if column.kind in ("number", "integer"):
                found.append(records[:, [j]] / max(float(self.real[:, j].std()), 1e-12))
            else:
                levels = max(len(column.levels), 2)
                found.append(np.eye(levels)[records[:, j].astype(int)] / math.sqrt(2))
        return np.concatenate(found, axis=1)

    def trained(self, made: Array, predict: str | None) -> float:
        """The better of two models that are trained on made-up records, scored on the held-out ones."""
        if not len(self.held_out) or not predict:
            return math.nan
        scores = tstr(self.table(made), self.table(self.held_out), target=predict).scores
        return max(value for (_, trained), value in scores.items() if trained == MADE)

    def table(self, records: Array) -> Table:
        """Records as a table."""
        columns = {
            column.name: records[:, j].astype(np.int16) if column.kind == "category" else records[:, j]
            for j, column in enumerate(self.schema)
        }
        return Table(columns, self.schema, name="records")


def outcome(schema: Schema, settings: Mapping[str, Any], state: MadeBesideState, records: Parties | None) -> Outcome:
    """The table, and a histogram of each column."""
    ways = [way.name for way in ways_named(settings["ways"])][: state.round]
    called = f" ({settings['called']})" if settings["called"] else ""
    if records is None:
        return Outcome(notes=("Real records are not in one place, so that nothing is compared here.",))
    real = RealRecords(schema, flat(records.columns, schema), state.held_out)
    predict = settings["predict"] or schema.target
    found = {way: measured(real, state.drawn[i], predict) for i, way in enumerate(ways)}
    metrics = {f"least complement: {way}": round(one[LEAST][0], 4) for way, one in found.items()}
    metrics |= {f"nearer to real records: {way}": round(one[NEARER][0], 4) for way, one in found.items() if NEARER in one}
    best = max((one[LEAST][0] for one in found.values()), default=math.nan)
    return Outcome(
        {"least complement of the best way": round(best, 4), **metrics},
        grids=(table(f"Made-up records beside real ones{called}", real, settings, found, predict), reasons(settings, called)),
        curves=histograms(real, state.drawn, ways, called),
    )


def measured(real: RealRecords, drawn: Array, predict: str | None) -> dict[str, tuple[float, float]]:
    """Means over draws, and standard deviations, by measure."""
    rows = []
    for i, made in enumerate(drawn):
        of_columns = real.alike(made)
        fitted = real.trained(made, predict) if i < FITS else math.nan
        more = {LEAST: min(of_columns.values()), CORRELATION: real.correlation(made), NEARER: real.nearer(made)}
        rows.append(of_columns | more | {TRAINED: fitted})
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of what nothing was measured
        for name in rows[0]:
            values = np.array([row[name] for row in rows])
            if np.isfinite(values).any():
                found[name] = float(np.nanmean(values)), float(np.nanstd(values))
    found[LEAST] = min(found[name][0] for name in real.schema.names), found[LEAST][1]
    return found


def table(
    title: str,
    real: RealRecords,
    settings: Mapping[str, Any],
    found: Mapping[str, Mapping[str, tuple[float, float]]],
    predict: str | None,
) -> Grid:
    """Rows are ways, the printed numbers first; columns are measures."""
    names = real.schema.names
    measures = [*names, LEAST, *(name for name in (CORRELATION, NEARER, TRAINED) if any(name in one for one in found.values()))]
    printed = settings["printed"]
    rows: list[tuple[Any, ...]] = []
    if printed:
        lowest = min(printed.values())
        rows.append((settings["printed_by"], *(printed.get(name, lowest if name == LEAST else None) for name in measures)))
    rows += [(way, *(round(one[name][0], 3) if name in one else None for name in measures)) for way, one in found.items()]
    for name, made in ((ANOTHER, real.held_out), (THEMSELVES, real.real)):
        if len(made):
            one = measured(real, made[None], predict)
            if name == ANOTHER:  # which are compared with themselves there
                one = {key: value for key, value in one.items() if key not in (NEARER, TRAINED)}
            rows.append((name, *(round(one[key][0], 3) if key in one else None for key in measures)))
    measure = "accuracy" if predict and real.schema[predict].kind in ("binary", "category") else "R2"
    heads = {
        LEAST: "least",
        CORRELATION: "correlation",
        NEARER: "nearer to real",
        TRAINED: f"{measure} of {predict}",
    }
    columns = ("way", *(heads.get(name, name) for name in measures))
    return Grid(title, columns, tuple(rows), note(settings, found))


def note(settings: Mapping[str, Any], found: Mapping[str, Mapping[str, tuple[float, float]]]) -> str:
    """What the columns of the table are."""
    widest = max((sd for one in found.values() for name, (_, sd) in one.items() if name not in (CORRELATION,)), default=0.0)
    return (
        f"KS complements of numbers, TV complements of categories: means over {settings['draws']} tables of "
        f"{settings['rows']} records, whose standard deviations are at most {widest:.2g}. These measures reward copies: the "
        "records themselves have 1. The correlation is that of the first two numbers. Of records that copy nothing one half is "
        f"nearer to a real than to a held-out record. Models are trained on {FITS} of the tables, and tested on held-out "
        "records; the better of a linear model and boosting is shown."
    )


def reasons(settings: Mapping[str, Any], called: str) -> Grid:
    """What is to be known of each way."""
    rows = tuple((way.name, way.program, way.why) for way in ways_named(settings["ways"]))
    return Grid(f"What is to be known of each way{called}", ("way", "program", "what it is"), rows)


def histograms(real: RealRecords, drawn: Array, ways: list[str], called: str) -> tuple[Curve, ...]:
    """Shares of values by bin, of real and of made-up records, for each column."""
    found = []
    for j, column in enumerate(real.schema):
        if column.kind in ("number", "integer"):
            both = np.concatenate([real.real[:, j], drawn[: len(ways), :, :, j].ravel()])
            ends = np.linspace(both.min(), both.max(), BARS + 1)
        else:
            ends = np.arange(max(len(column.levels), 2) + 1) - 0.5
        middles = tuple(((ends[:-1] + ends[1:]) / 2).tolist())

        def shares(values: Array, ends: Array = ends) -> tuple[float, ...]:
            return tuple((np.histogram(values, ends)[0] / max(len(values), 1)).tolist())

        lines = [Series("real records", middles, shares(real.real[:, j]), "muted")]
        lines += [Series(way, middles, shares(drawn[i, :, :, j].ravel())) for i, way in enumerate(ways)]
        told = [f"{i} {level}" for i, level in enumerate(column.levels) if level != str(i)]
        levels = f" ({', '.join(told)})" if told else ""
        found.append(Curve(f"Shares of {column.name}{called}", f"{column.name}{levels}", "share of records", tuple(lines)))
    return tuple(found)
