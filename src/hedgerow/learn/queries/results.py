"""What gradient queries have to show: a model and its owners' epsilons; slopes of fitness, and what exact composition gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.data import Schema, Table
from hedgerow.report import Curve, Outcome, Series
from hedgerow.report.numerals import show

from .answers import answered
from .fitness import noiseless, optimum, pooled, relative_fitness
from .grid import Trial, looks_of, trials_of
from .keys import loss_of_keys, planned_answers, spec_of_keys
from .steps import Steps

if TYPE_CHECKING:
    import pandas

    from .program import QueryState
    from .trials import TrialState

Settings = Mapping[str, Any]

NAMES = {
    "laplace": "Laplace noise at the owners, epsilons added (the thesis)",
    "gaussian": "Gaussian noise at the owners, composed exactly",
    "server": "Gaussian noise at the server, composed exactly",
}
SHORT = {"laplace": "", "gaussian": ", Gaussian at the owners", "server": ", Gaussian at the server"}
AXES = {"epsilon": "epsilons", "share": "shares", "horizon": "horizons"}
FITNESS = "relative fitness"
"""Under which a simulated training tells what it achieved; a forecast names it so too."""
COLUMNS = {"epsilon": "epsilon", "share": "records", "horizon": "horizon"}
LEAST, MOST = 0.25, 0.1
"""Slopes are fitted where noise adds at least so much of the fitness without noise, and ends below so much of the first."""


# ---- one training ---------------------------------------------------------------------------------------------------
def watch(settings: Settings, state: QueryState, schema: Schema, test: Table | None) -> dict[str, float]:
    """f of the result on the server's table."""
    if test is None:
        return {}
    spec = spec_of_keys(schema, settings)
    w = np.ones(len(test)) if schema.weight is None else np.asarray(test[schema.weight])
    cost = loss_of_keys(schema, settings).cost(state.average, spec.rows(test.columns), spec.targets(test.columns), w)
    return {"test loss": float(cost)}


def model(federation: Federation, settings: Settings, state: QueryState, records: Parties | None = None) -> Outcome:
    """Coefficients, and epsilon by owner; in a simulation, which has the records, also the relative fitness."""
    import pandas

    spec, answers = spec_of_keys(federation.schema, settings), planned_answers(federation.schema, settings)
    kept = [f"component {i + 1}" for i in range(len(spec.projection))] or list(spec.features)
    frame = pandas.DataFrame(
        {"coefficient": state.average}, index=pandas.Index([*kept, *["constant"] * bool(spec.constant)], name="input")
    )
    tables = {"Coefficients": frame}
    if answers is not None:
        spent, noise = answers.spent(answered(federation.ledger.own, answers)), dict(answers.multipliers)
        rows = [(name, epsilon, spent[name], noise[name] * answers.bound.radius) for name, epsilon in answers.epsilons]
        columns = ["owner", "agreed epsilon", f"spent, {answers.neighbours}", "scale of the noise on a sum"]
        tables["Epsilon by owner"] = pandas.DataFrame(rows, columns=columns)
        if answers.weights:
            tables["Epsilon by owner"]["weight of both"] = [weight for _, weight in answers.weights]
    metrics = {} if records is None else {FITNESS: fitness_of(state.average, federation.schema, settings, records)}
    return Outcome(metrics, tables, arrays={"theta": state.theta, "average": state.average}, coefficients=frame)


def fitness_of(theta: np.ndarray, schema: Schema, settings: Settings, records: Parties) -> float:
    """Relative fitness of coefficients of shape (d,) on the records of all that take part, which a simulation has at hand."""
    out = set(settings.get("left_out") or ())
    there = records.pool(np.array([i for i, name in enumerate(records.ids) if name not in out])) if out else records
    loss, rows = loss_of_keys(schema, settings), pooled(there, spec_of_keys(schema, settings))
    return float(relative_fitness(loss, theta, optimum(loss, *rows, settings["box"]), *rows))


# ---- many trainings -------------------------------------------------------------------------------------------------
def trials(federation: Federation, settings: Settings, state: TrialState, records: Parties | None = None) -> Outcome:
    """Mean relative fitness of each combination, slopes on log-log axes, figures, and the gain of exact composition."""
    import pandas

    if records is None:
        return Outcome(text={"Trials": "Relative fitness is known to a simulation only."}, arrays={"average": state.average})
    loss, spec, box = loss_of_keys(federation.schema, settings), spec_of_keys(federation.schema, settings), settings["box"]
    found = trials_of(settings["noises"], settings["epsilons"], settings["shares"], settings["horizons"])
    steps = Steps(settings["rule"], settings["step"], box, settings["convexity"])
    parts = {share: pooled(records, spec, share) for share in settings["shares"]}
    best = {share: optimum(loss, *rows, box) for share, rows in parts.items()}
    least = {share: float(loss.cost(best[share], *rows)) for share, rows in parts.items()}

    def fitness(theta: np.ndarray, share: float) -> np.ndarray:
        return relative_fitness(loss, theta, best[share], *parts[share])

    rows = []
    for i, trial in enumerate(found):
        each = fitness(state.average[i], trial.share)
        quiet = fitness(noiseless(loss, steps, trial.horizon, *parts[trial.share]), trial.share)
        begun = fitness(np.zeros(spec.size), trial.share)
        n = round(trial.share * settings["n_records"])
        low, middle, high = np.percentile(each, (25, 50, 75))
        row = (trial.noise, trial.epsilon, n, trial.horizon, each.mean(), middle, low, high, float(quiet), float(begun))
        rows.append((*row, each.mean() * least[trial.share]))
    names = "noise epsilon records horizon mean median low high noiseless first excess"
    table = pandas.DataFrame(rows, columns=names.split())
    table["share"] = [trial.share for trial in found]
    swept = [axis for axis in AXES if len(settings[AXES[axis]]) > 2]
    slopes = [slope_of(table, noise, axis) for axis in swept for noise in settings["noises"]]
    fits = pandas.DataFrame(slopes, columns=["noise", "in", "slope", "standard error", "points", "others"])
    main = {f"slope{SHORT[noise]}": value for noise, _, value, *_ in reversed(slopes)}  # of the first axis
    lines = gains(table, settings["delta"])
    return Outcome(
        metrics=dict(reversed(main.items())) | ({"gain": lines[0][1]} if lines else {}),
        tables={
            "Slopes on log-log axes": fits.replace({"noise": NAMES}),
            "Relative fitness": table.drop(columns=["share"]).replace({"noise": NAMES}).rename(columns=_HEADS),
        },
        text={"What exact composition gains": "\n".join(line for line, _ in lines)} if lines else {},
        curves=(*by_round(state, found, fitness), *(by_axis(table, axis) for axis in swept)),
        coefficients=table,
    )


_HEADS = {
    "low": "25%",
    "high": "75%",
    "mean": "mean over repeats",
    "noiseless": "without noise",
    "first": "of the first iterate",
}


def slope_of(table: pandas.DataFrame, noise: str, axis: str) -> tuple[str, str, float, float, int, str]:
    """Fit the log of what noise adds to mean fitness by the log of an axis; of several fits the one with most points.

    Noise that adds less than `LEAST` is lost in what so many steps leave without noise; beyond `MOST` the box cuts it.
    """
    x, others = COLUMNS[axis], [name for name in AXES if name != axis]
    fits = [(math.nan, math.nan, 0, "")]
    for values, group in table[table["noise"] == noise].groupby(others, sort=True):
        added = group["mean"] - group["noiseless"]
        clear = (added > LEAST * group["noiseless"]) & (group["mean"] < MOST * group["first"])
        if clear.sum() < 3:
            continue
        a, b = np.log(group[x][clear].to_numpy(float)), np.log(added[clear].to_numpy(float))
        slope, intercept = np.polyfit(a, b, 1)
        left = np.square(b - slope * a - intercept).sum() / (len(a) - 2)
        told = ", ".join(f"{name} {show(value)}" for name, value in zip(others, values, strict=True))
        fits.append((float(slope), math.sqrt(left / np.square(a - a.mean()).sum()), len(a), told))
    return noise, x, *max(fits, key=lambda fit: fit[2])


def gains(table: pandas.DataFrame, delta: float) -> list[tuple[str, float]]:
    """One line for each kind of Gaussian noise: its excess loss beside the thesis's, at the epsilon nearest to 1."""
    lines = []
    n, horizon = table["records"].max(), min(table["horizon"], key=lambda t: abs(math.log(t / 100)))
    epsilon = min(table["epsilon"], key=lambda e: abs(math.log(e)))
    at = table[(table["records"] == n) & (table["horizon"] == horizon) & (table["epsilon"] == epsilon)]
    excess = dict(zip(at["noise"], at["excess"], strict=True))
    for noise in ("gaussian", "server"):
        if noise not in excess or "laplace" not in excess:
            continue
        gain = excess["laplace"] / excess[noise]
        line = (
            f"at epsilon {epsilon:g}, n {n}, T {horizon}: excess loss {excess[noise]:.2g} instead of {excess['laplace']:.2g}: "
            f"{gain:.0f} x ({NAMES[noise]}, delta {delta:g})"
        )
        lines.append((line, float(gain)))
    return lines


def by_round(state: TrialState, found: Sequence[Trial], fitness: Any) -> tuple[Curve, ...]:
    """Median fitness by question for the thesis's noise: one line for each combination, five at most."""
    looks = looks_of([trial.horizon for trial in found])
    chosen = [i for i, trial in enumerate(found) if trial.noise == found[0].noise]
    series = []
    for i in chosen[:: -(-len(chosen) // 5)]:
        trial = found[i]
        at = [j for j, k in enumerate(looks) if k <= trial.horizon and i < state.round]
        y = tuple(float(np.median(fitness(state.path[j, i], trial.share))) for j in at)
        name = f"epsilon {show(trial.epsilon)}, {show(100 * trial.share)}% of the records, T {trial.horizon}"
        series.append(Series(name, tuple(float(looks[j]) for j in at), y))
    note = f"Median over repeats. {NAMES[found[0].noise]}."
    return (Curve("Relative fitness by question", "question", "relative fitness", tuple(series), note=note, log="xy"),)


def by_axis(table: pandas.DataFrame, axis: str) -> Curve:
    """Mean fitness by epsilon, records or horizon, a line for each noise, at the first of the other settings."""
    x, series = COLUMNS[axis], []
    others = [name for name in AXES if name != axis]
    for values, group in table.groupby(["noise", *others], sort=False):
        told = [f"{name} {show(v)}" for name, v in zip(others, values[1:], strict=True) if table[name].nunique() > 1]
        series.append(Series(", ".join([NAMES[values[0]], *told]), _floats(group[x]), _floats(group["mean"])))
    first = table[(table["noise"] == table["noise"].iloc[0]) & (table[others] == table[others].iloc[0]).all(axis=1)]
    series.append(Series("without noise", _floats(first[x]), _floats(first["noiseless"]), "muted"))
    note = "Mean over repeats after the last round. A line of slope -2 falls by 100 where the axis grows tenfold."
    return Curve(f"Relative fitness by {x}", x, "relative fitness", tuple(series), note=note, log="xy")


def _floats(values: pandas.Series) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
