"""What a run of `forecast_trials` shows: forecast and achieved, how many runs lie in the interval, boxes over questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.learn.queries import looks_of, optimum, pooled, relative_fitness, trials_of
from hedgerow.learn.queries.keys import loss_of_keys, spec_of_keys
from hedgerow.learn.queries.results import AXES, COLUMNS, NAMES, SHORT, slope_of
from hedgerow.market.forecasts.theorems import theorem_3_printed
from hedgerow.report import Curve, Grid, Outcome, Series
from hedgerow.report.numerals import show

from .forecast_trials import ForecastTrialState

if TYPE_CHECKING:
    import pandas

MEAN, LOW, HIGH, ZERO, BIAS, STOPPED = range(6)
"""Places in `ForecastTrialState.forecasts`."""
BOXES = 4
"""Combinations whose boxes are drawn."""


def outcome(federation: Federation, settings: Mapping[str, Any], state: ForecastTrialState, records: Parties | None) -> Outcome:
    """Tables and figures, and two numbers: achieved over forecast, and the share of runs in the interval."""
    if records is None:
        return Outcome(text={"Trials": "Relative fitness is known to a simulation only."})
    import pandas

    loss, spec, box = loss_of_keys(federation.schema, settings), spec_of_keys(federation.schema, settings), settings["box"]
    trials = trials_of(settings["noises"], settings["epsilons"], settings["shares"], settings["horizons"])
    parts = {share: pooled(records, spec, share) for share in settings["shares"]}
    announced = {share: share * settings["n_records"] / rows[2].sum() for share, rows in parts.items()}
    asked = {share: replace(loss, ridge=loss.ridge * announced[share]) for share in parts}  # beside sums over announced records
    best = {share: optimum(asked[share], *rows, box) for share, rows in parts.items()}

    def fitness(theta: Array, share: float) -> Array:
        return relative_fitness(asked[share], theta, best[share], *parts[share])

    if not state.known:
        return Outcome(text={"Forecasts": "None: neither moments nor records of the server were known."})
    done = range(state.round - 1)
    psi = {i: fitness(state.average[i], trials[i].share) for i in done}
    rows = []
    for i in done:
        trial, runs = trials[i], psi[i]
        given = (trial.noise, trial.epsilon, round(trial.share * settings["n_records"]), trial.horizon)
        low, high = np.percentile(runs, (5, 95))
        told = [
            value
            for found in state.forecasts[:, i]
            for value in (*found[: HIGH + 1], runs.mean() / found[MEAN], np.mean((runs > found[LOW]) & (runs < found[HIGH])))
        ]
        rows.append((*given, trial.share, runs.mean(), low, high, state.forecasts[0, i, ZERO], *told))
    heads = ["noise", "epsilon", "records", "horizon", "share", "mean", "low", "high", "first"]
    each = [(name, one) for name in state.known for one in ("forecast", "from", "to", "achieved / forecast", "inside")]
    table = pandas.DataFrame(rows, columns=[*heads, *(f"{one}, {name}" for name, one in each)])
    table["box stops, %"] = [100 * state.forecasts[0, i, STOPPED] for i in done]
    table["noiseless"] = [state.forecasts[0, i, BIAS] for i in done]
    swept = [axis for axis in AXES if len(settings[AXES[axis]]) > 2]
    slopes = [slope_of(table, noise, axis) for axis in swept for noise in settings["noises"]]
    fits = pandas.DataFrame(slopes, columns=["noise", "in", "slope", "standard error", "points", "others"])
    return Outcome(
        metrics=metrics_of(state, table) | {f"slope{SHORT[noise]}": value for noise, _, value, *_ in slopes[::-1]},
        tables={
            "Slopes on log-log axes": fits.replace({"noise": NAMES}),
        },
        grids=tuple(beside(settings, state, table, name) for name in state.known),
        curves=(
            *(by_axis(settings, state, table, axis, noise) for axis in swept for noise in dict.fromkeys(table["noise"])),
            *by_question(settings, state, trials, fitness),
        ),
        coefficients=table,
    )


def metrics_of(state: ForecastTrialState, table: pandas.DataFrame) -> dict[str, float]:
    """Ends of achieved over forecast, and the share of runs inside, by estimate, the first one unnamed; none saturated."""
    found = {}
    for i, name in enumerate(state.known):
        valid, by = table[table[f"forecast, {name}"] < table["first"]], f", by {name}" * (i > 0)
        ratio = valid[f"achieved / forecast, {name}"]
        found[f"largest achieved over forecast{by}"] = ratio.max()
        found[f"least achieved over forecast{by}"] = ratio.min()
        found[f"runs in the interval{by}"] = valid[f"inside, {name}"].mean()
    return {key: float(value) for key, value in found.items()}


def beside(settings: Mapping[str, Any], state: ForecastTrialState, table: pandas.DataFrame, name: str) -> Grid:
    """A line for each combination: forecast with the interval of a run, achieved with 5% and 95% of runs."""
    rows = []
    for line in table.to_dict("records"):
        told = [short(line[f"{one}, {name}"]) for one in ("forecast", "from", "to", "achieved / forecast")]
        saturated = " saturated" * (line[f"forecast, {name}"] > line["first"])
        achieved = [short(line[one]) for one in ("mean", "low", "high")]
        key = (line["noise"], line["epsilon"], line["records"], line["horizon"])
        inside, stopped = 100 * line[f"inside, {name}"], line["box stops, %"]
        rows.append((*key, told[0] + saturated, *told[1:3], *achieved, told[3], f"{inside:.0f}%", f"{stopped:.1f}%"))
    columns = ["noise", "epsilon", "n", "T", "forecast", "from", "to", "achieved", "5%", "95%", "ratio"]
    title = ", ".join(filter(None, ("Forecast and achieved", settings["called"], f"by {name}")))
    note = (
        f"Relative fitness; {settings['repeats']} trainings, and how many of them lie inside the interval that was forecast. "
        "The ratio is achieved over forecast, means both. "
        "Box: the share of coordinates that it stops; from 1% on noise is cut, and the forecast is rather too high."
    )
    return Grid(title, (*columns, "inside", "box"), tuple(rows), note)


def short(value: float) -> str:
    """Three digits, with no zero in the exponent."""
    return f"{value:.3g}".replace("e-0", "e-")


def by_axis(settings: Mapping[str, Any], state: ForecastTrialState, table: pandas.DataFrame, axis: str, noise: str) -> Curve:
    """Achieved, forecast with the interval of a run, and Theorem 3 through the first point, at the first other settings."""
    x, others, name = COLUMNS[axis], [key for key in AXES if key != axis], state.known[0]
    at = table[table["noise"] == noise]
    at = at[(at[others] == at[others].iloc[0]).all(axis=1)]
    values = tuple(map(float, at[x]))
    columns = {key: tuple(map(float, at[f"{key}, {name}"])) for key in ("forecast", "from", "to")}
    theorem = np.array([theorem_3_printed(1.0, 1.0, n, [e] * 3) for n, e in zip(at["records"], at["epsilon"], strict=True)])
    series = [
        Series("achieved, mean", values, tuple(map(float, at["mean"]))),
        Series(f"forecast, {name}", values, columns["forecast"], "reference", columns["from"], columns["to"]),
    ]
    if axis != "horizon":
        fitted = theorem * (at["mean"].iloc[0] / theorem[0])
        series.append(Series("Theorem 3 through the first point", values, tuple(map(float, fitted)), "muted"))
    title = ", ".join(filter(None, (f"Relative fitness by {x}", settings["called"], noise)))
    note = f"The band holds 90 of 100 runs, by the forecast. {NAMES[noise]}."
    return Curve(title, x, "relative fitness", tuple(series), note=note, log="xy")


def by_question(settings: Mapping[str, Any], state: ForecastTrialState, trials: Any, fitness: Any) -> tuple[Curve, ...]:
    """Median fitness so far by question, with a band from the 25th to the 75th percentile of runs."""
    looks = looks_of([trial.horizon for trial in trials])
    chosen = [i for i, trial in enumerate(trials) if trial.noise == trials[0].noise and i < state.round - 1]
    series = []
    for i in chosen[:: max(-(-len(chosen) // BOXES), 1)]:
        trial = trials[i]
        at = [j for j, k in enumerate(looks) if k <= trial.horizon]
        boxes = np.array([np.percentile(fitness(state.path[j, i], trial.share), (25, 50, 75)) for j in at])
        low, middle, high = (tuple(map(float, column)) for column in boxes.T)
        name = f"epsilon {show(trial.epsilon)}, {show(100 * trial.share)}% of the records, T {trial.horizon}"
        series.append(Series(name, tuple(float(looks[j]) for j in at), middle, low=low, high=high))
    title = ", ".join(filter(None, ("Relative fitness by question", settings["called"])))
    note = f"Median of runs, and 25% to 75% of them. {NAMES[trials[0].noise]}."
    return (Curve(title, "question", "relative fitness", tuple(series), note=note, log="xy"),)
