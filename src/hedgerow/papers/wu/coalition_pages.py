"""What a run of `coalition_trials` shows: each coalition's relative fitness, forecast and achieved, by records of owner 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.data import Schema
from hedgerow.learn.queries import optimum, pooled, relative_fitness
from hedgerow.learn.queries.keys import loss_of_keys, spec_of_keys
from hedgerow.report import Curve, Grid, Outcome, Series

from .coalition_trials import WAYS, WORTHS, CoalitionTrialState

EQUAL, BEST = 0, 3
"""Places in `WAYS`."""

CLEAR = 0.25
"""Below so much of the relative fitness of zeros the box hardly holds noise back; looked at on the lending rows."""


def outcome(schema: Schema, settings: Mapping[str, Any], state: CoalitionTrialState, records: Parties | None) -> Outcome:
    """Tables, a figure, and how many times worse than the best weights the other ways are at the largest n_1."""
    if records is None:
        return Outcome(text={"Trials": "Relative fitness is known to a simulation only."}, arrays={"average": state.average})
    runs = fitness(schema, settings, state, records)
    mean, last = runs.mean(-1), int(np.argmax(settings["firsts"]))
    metrics = {f"{way} over best weights": float(mean[last, i] / mean[last, BEST]) for i, way in enumerate(WAYS[:BEST])}
    valid = state.forecast < CLEAR * state.nobody
    if valid.any():
        metrics["forecast over achieved"] = float(np.exp(np.mean(np.log(state.forecast[valid] / mean[valid]))))
        inside = (runs >= state.interval[..., :1]) & (runs <= state.interval[..., 1:])
        metrics["runs inside the forecast interval"] = float(inside[valid].mean())
    arrays = {"relative fitness": runs, "forecast": state.forecast, "interval": state.interval, "weights": state.weights}
    return Outcome(
        metrics,
        grids=(beside(settings, state, mean), spread(settings, state, runs), worths(settings, state)),
        curves=(figure(settings, state, mean),),
        arrays=arrays,
    )


def fitness(schema: Schema, settings: Mapping[str, Any], state: CoalitionTrialState, records: Parties) -> Array:
    """psi of every training on all records of the parties: shape (points, ways, repeats); NaN of those to come."""
    loss, spec = loss_of_keys(schema, settings), spec_of_keys(schema, settings)
    rows = pooled(records, spec)
    best = optimum(loss, *rows, settings["box"])
    found = np.full(state.average.shape[:-1], np.nan)
    for number in range(state.round):
        place = divmod(number, len(WAYS))
        found[place] = relative_fitness(loss, state.average[place], best, *rows)
    return found


def firsts_of(settings: Mapping[str, Any]) -> list[int]:
    """Records of owner 1."""
    return [round(share * settings["held"][0]) for share in settings["firsts"]]


def beside(settings: Mapping[str, Any], state: CoalitionTrialState, mean: Array) -> Grid:
    """A line for each n_1: what was achieved, what was forecast, who is the best prefix, and the best weights."""
    columns = ["others", "n 1", *(name for way in WAYS for name in (way, f"forecast: {way}")), "prefix", "weights"]
    rows = []
    for i, n in enumerate(firsts_of(settings)):
        pairs = [cell for way in range(len(WAYS)) for cell in (_short(mean[i, way]), _told(state, i, way))]
        prefix = " ".join(str(owner + 1) for owner in np.flatnonzero(state.weights[i, 2]))
        rows.append((settings["scenario"], n, *pairs, prefix, " ".join(f"{w:.3g}" for w in state.weights[i, BEST])))
    note = (
        f"Means of {settings['repeats']} trainings of {settings['horizon']} questions; {settings['noise']} noise, epsilon "
        f"{settings['epsilon']:g} of owner 1. The forecast stands on public records of the server. It is the mean over ways "
        "to deal the records, takes the box for inactive, and sees no differences between owners."
    )
    return Grid(f"Relative fitness, achieved and forecast: {settings['called']}", tuple(columns), tuple(rows), note)


def spread(settings: Mapping[str, Any], state: CoalitionTrialState, runs: Array) -> Grid:
    """A line for each coalition: ends of 90 of 100 runs, forecast and achieved, and the standard error of the mean."""
    rows = []
    for i, n in enumerate(firsts_of(settings)):
        for j, way in enumerate(WAYS):
            ends = np.percentile(runs[i, j], (5, 95))
            error = runs[i, j].std(ddof=1) / np.sqrt(runs.shape[-1]) if runs.shape[-1] > 1 else None
            rows.append((way, n, _told(state, i, j), *map(_short, (*state.interval[i, j], runs[i, j].mean(), error, *ends))))
    columns = ("way", "n 1", "forecast", "5%", "95%", "achieved", "standard error", "5% of runs", "95% of runs")
    return Grid("Each coalition", columns, tuple(rows), "Relative fitness on all records of the parties.")


def worths(settings: Mapping[str, Any], state: CoalitionTrialState) -> Grid:
    """A line for each owner at each n_1: what it adds, by the forecast."""
    rows = [
        (f"owner {owner + 1}", n, *map(_short, map(float, state.worth[i, owner])))
        for i, n in enumerate(firsts_of(settings))
        for owner in range(state.worth.shape[1])
    ]
    note = "Relative fitness that is saved, beside that of zeros; below 0 an owner does harm. With the best weights none does."
    return Grid("What each owner is worth", ("owner", "n 1", *WORTHS), tuple(rows), note)


def figure(settings: Mapping[str, Any], state: CoalitionTrialState, mean: Array) -> Curve:
    """Relative fitness by records of owner 1, a line for each way, and the forecasts of the first and the last."""
    x = tuple(map(float, firsts_of(settings)))
    series = [Series(way, x, tuple(map(float, mean[:, i]))) for i, way in enumerate(WAYS)]
    series += [Series(f"{WAYS[i]}, forecast", x, tuple(map(float, state.forecast[:, i])), "muted") for i in (EQUAL, BEST)]
    title = ", ".join(filter(None, ("Relative fitness by records of owner 1", settings["called"], settings["scenario"])))
    return Curve(title, "records of owner 1", "relative fitness", tuple(series), note="Means over trainings.", log="xy")


def _told(state: CoalitionTrialState, i: int, way: int) -> float | str:
    """A forecast, and whether the box holds the result back."""
    value = float(f"{state.forecast[i, way]:.3g}")
    if value >= state.nobody:
        return f"{value:g}, saturated"
    return value if value < CLEAR * state.nobody else f"{value:g}, near the box"


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.3g}")
