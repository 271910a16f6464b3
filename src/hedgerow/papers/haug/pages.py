"""What a run of `haug_models` shows: the survey's numbers above ours, a row for each way, and accuracy against epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.report import Curve, Grid, Outcome, Series

from .families import NONE, SURVEY, WAYS, ModelWay, PrintedFamily
from .trials import SPENT, ModelTrialState, trials_of

OUR_BEST = "ours at the largest epsilon"
REASONS = "What is to be known of each way"
OURS = PrintedFamily("What a budget is worth", "accuracy", {}, "", "")


def outcome(settings: Mapping[str, Any], state: ModelTrialState) -> Outcome:
    """The table, the figure, and a sentence on each way."""
    family = SURVEY.get(settings["family"], OURS)
    title = f"{family.title}: {family.measure} on {settings['called'] or 'the test records'}"
    found = by_way(settings, state)
    epsilons = sorted(settings["epsilons"])
    metrics = {
        f"{way.name} at {epsilon:g}": round(float(values[epsilon].mean()), 5)
        for way, values in found.items()
        for epsilon in values
        if way.form == "ours" and epsilon == max(values)
    }
    return Outcome(
        {OUR_BEST: _best(family, metrics), **metrics},
        grids=(
            table(title, family, found, epsilons, by_ledger(settings, state)),
            *((reasons(family, found),) if settings["reasons"] else ()),
        ),
        curves=tuple(figure(title, family, found)),
    )


def _best(family: PrintedFamily, metrics: Mapping[str, float]) -> float:
    """The best of our ways at its largest epsilon; no number where nothing was measured."""
    pick = max if family.measure == "accuracy" else min
    return pick(metrics.values(), default=math.nan)


def by_way(settings: Mapping[str, Any], state: ModelTrialState) -> dict[ModelWay, dict[float, np.ndarray]]:
    """Values of all repeats, by way and epsilon; those that were measured."""
    found: dict[str, dict[float, list[float]]] = {}
    for trial, (value, _) in zip(trials_of(settings), state.results, strict=True):
        if math.isfinite(value):
            found.setdefault(trial.way.name, {}).setdefault(trial.epsilon, []).append(float(value))
    ways = {way.name: way for way in WAYS[settings["family"]]}
    return {ways[name]: {e: np.array(values) for e, values in one.items()} for name, one in found.items()}


def table(
    title: str,
    family: PrintedFamily,
    found: Mapping[ModelWay, Mapping[float, np.ndarray]],
    epsilons: list[float],
    ledger: Mapping[str, str],
) -> Grid:
    """Rows are ways, columns epsilons; the survey's numbers stand first."""
    columns = sorted({*epsilons, *(e for line in family.lines.values() for e, _ in line if e != NONE)})
    rows: list[tuple[Any, ...]] = []
    for name, line in family.lines.items():
        printed = dict(line)
        rows.append((name, "survey", None, *(printed.get(e) for e in columns), printed.get(NONE)))
    for way, values in found.items():
        means = [round(float(values[e].mean()), 4) if e in values else None for e in columns]
        rows.append(
            (way.name, way.form, ledger.get(way.name), *means, round(float(values[NONE].mean()), 4) if NONE in values else None)
        )
    widest = max((float(v.std(ddof=1)) for one in found.values() for v in one.values() if len(v) > 1), default=math.nan)
    note = "Columns are epsilons, per record; by the ledger is what a fit costs (as asked: no more)."
    note += " Means over repeats on the server's table"
    note += f", whose standard deviations are at most {widest:.2g}." if math.isfinite(widest) else "."
    note += f" Printed numbers: {family.source}. {family.unnamed}" if family.lines else ""
    return Grid(title, ("way", "form", "by the ledger", *(f"{e:g}" for e in columns), "no noise"), tuple(rows), note)


def reasons(family: PrintedFamily, found: Mapping[ModelWay, Any]) -> Grid:
    """What is to be known of each way, in a sentence."""
    rows = tuple((way.name, way.form, way.why) for way in found if way.why)
    return Grid(f"{REASONS}: {family.title}", ("way", "form", "what is to be known"), rows)


def by_ledger(settings: Mapping[str, Any], state: ModelTrialState) -> dict[str, str]:
    """What the ledger says of each way's fits: that they cost what was asked for, what else, or that nothing finite holds."""
    found: dict[str, str] = {}
    for trial, one in zip(trials_of(settings), state.results, strict=True):
        if math.isnan(one[SPENT]) or trial.way.form == "without noise":
            continue
        as_asked = one[SPENT] <= trial.epsilon * (1 + 1e-6)
        said = "as asked" if as_asked else f"{one[SPENT]:.4g}" if math.isfinite(one[SPENT]) else "none finite"
        if found.setdefault(trial.way.name, said) != said:
            found[trial.way.name] = "more than asked"
    return found


def figure(title: str, family: PrintedFamily, found: Mapping[ModelWay, Mapping[float, np.ndarray]]) -> list[Curve]:
    """A line for each way over epsilon; the survey's lines are grey, and fits without noise a level."""
    series = []
    for way, values in found.items():
        places = sorted(e for e in values if e != NONE)
        if not places:
            best = float(values[NONE].mean())
            series.append(Series(way.name, (1.0,), (best,), "reference"))
            continue
        means = tuple(float(values[e].mean()) for e in places)
        series.append(Series(way.name, tuple(places), means))
    for name, line in family.lines.items():
        kept = [(e, value) for e, value in line if e != NONE]
        series.append(Series(f"{name} (survey)", tuple(e for e, _ in kept), tuple(v for _, v in kept), "muted"))
    if not any(len(one.x) > 1 for one in series):
        return []
    least = lowest_drawn(family, found)
    drawn = tuple(replace(one, y=tuple(y if y >= least else math.nan for y in one.y)) for one in series)
    below = [one.name for one in series if min(one.y) < least]
    note = f"Not drawn are points below {least:g}, of: {', '.join(below)}." if below else ""
    return [Curve(title, "epsilon", family.measure, drawn, log="x", note=note)]


def lowest_drawn(family: PrintedFamily, found: Mapping[ModelWay, Mapping[float, np.ndarray]]) -> float:
    """Where the axis of an accuracy begins: a twentieth at most below all that is ours."""
    ours = [float(v.mean()) for way, values in found.items() if way.form == "ours" for v in values.values()]
    return math.floor(20 * min(ours) + 1e-9) / 20 if ours and family is OURS else -math.inf
