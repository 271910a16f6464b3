"""What a run of `synthesizer_trials` shows: what models learn from made-up records, and how alike these are, over epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.data import Schema
from hedgerow.report import Curve, Grid, Outcome, Series

from .budgets import BOOSTED, COLUMNS, LINEAR, PAIRS, SPENT, RecordTrialState, measure_of, trials_of

NOTE = "Columns are epsilons, per record; means over repeats."


def outcome(schema: Schema, settings: Mapping[str, Any], state: RecordTrialState) -> Outcome:
    """A table and a figure for each measure, what each trial cost, and what is to be known of each way."""
    measure = measure_of(schema, settings["target"])
    linear = "logistic regression" if measure == "accuracy" else "linear regression"
    titles = {
        LINEAR: f"Train on made-up, test on real: {measure} of {linear}",
        BOOSTED: f"Train on made-up, test on real: {measure} of boosting",
        COLUMNS: "TV complement of columns",
        PAIRS: "TV complement of pairs of columns",
    }
    called = f" ({settings['called']})" if settings["called"] else ""
    grids, curves, metrics = [], [], {}
    for measured, title in titles.items():
        found = by_way(settings, state, measured)
        if not found:
            continue
        grids.append(table(title + called, settings, found))
        curves += figure(title + called, measure if measured in (LINEAR, BOOSTED) else "TV complement", found)
        best = title.rpartition(": ")[2] + (", trained on made-up records" if measured in (LINEAR, BOOSTED) else "")
        metrics[f"best {best}"] = round(max(max(values.values()) for values in found.values()), 5)
    return Outcome(metrics, grids=(*grids, costs(settings, state), known(settings)), curves=tuple(curves))


def by_way(settings: Mapping[str, Any], state: RecordTrialState, measured: int) -> dict[str, dict[float, float]]:
    """Means over repeats, by way and epsilon, of what was measured."""
    found: dict[str, dict[float, list[float]]] = {}
    for trial, result in zip(trials_of(settings), state.results, strict=True):
        if math.isfinite(result[measured]):
            found.setdefault(trial.way.name, {}).setdefault(trial.epsilon, []).append(float(result[measured]))
    return {way: {epsilon: float(np.mean(values)) for epsilon, values in one.items()} for way, one in found.items()}


def table(title: str, settings: Mapping[str, Any], found: Mapping[str, Mapping[float, float]]) -> Grid:
    """Rows are ways, columns epsilons."""
    epsilons = sorted({epsilon for one in found.values() for epsilon in one})
    rows = [(way, *(round(one[e], 4) if e in one else None for e in epsilons)) for way, one in found.items()]
    repeats = f" {settings['repeats']} of each." if settings["repeats"] > 1 else ""
    return Grid(title, ("way", *(f"{e:g}" if math.isfinite(e) else "no noise" for e in epsilons)), tuple(rows), NOTE + repeats)


def figure(title: str, label: str, found: Mapping[str, Mapping[float, float]]) -> list[Curve]:
    """A line for each way over epsilon; without noise a level."""
    series = []
    for way, values in found.items():
        places = sorted(e for e in values if math.isfinite(e))
        if len(places) > 1:
            series.append(Series(way, tuple(places), tuple(values[e] for e in places)))
        if math.inf in values:
            series.append(Series(f"{way}, no noise", (1.0,), (values[math.inf],), "reference"))
    return [Curve(title, "epsilon", label, tuple(series), log="x")] if any(len(one.x) > 1 for one in series) else []


def costs(settings: Mapping[str, Any], state: RecordTrialState) -> Grid:
    """The largest epsilon that the ledger counts for a trial of each way, beside what was asked."""
    found: dict[tuple[str, float], list[float]] = {}
    for trial, result in zip(trials_of(settings), state.results, strict=True):
        if not math.isnan(result[SPENT]) and math.isfinite(trial.epsilon):
            found.setdefault((trial.way.name, trial.epsilon), []).append(float(result[SPENT]))
    rows = [(way, epsilon, _cell(max(values))) for (way, epsilon), values in found.items()]
    note = f"Of one table of made-up records, at delta {settings['delta']:g} per record: asked for, and in the ledger."
    return Grid("What each trial cost", ("way", "asked", "by the ledger"), tuple(rows), note)


def known(settings: Mapping[str, Any]) -> Grid:
    """What is to be known of each way."""
    ways = dict.fromkeys(trial.way for trial in trials_of(settings))
    return Grid(
        "What is to be known of each way", ("way", "program", "what it is"), tuple((w.name, w.program, w.why) for w in ways)
    )


def _cell(value: float) -> float | str:
    return round(value, 6) if math.isfinite(value) else "none finite"
