"""What a replay of van Aarle's thesis has to show: his numbers, ours, and those of the pooled records, row by row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.report import Outcome

from .pooled import Pooled, pooled_fits
from .published import ORIGINS, TABLES, Printed, agrees
from .replay import FIGURES, METHODS, ReplayState

Settings = Mapping[str, Any]

MEASURE = "largest error against the pooled fit"
"""Over coefficients, their standard errors and all figures of exact fits; relative where the pooled number is above 1."""
_FEDERATED = " (thesis)"
OTHER_DATA = (*ORIGINS, "TWOC-150", "TWOC-5000")
"""Sets whose records cannot be those of the thesis, so that its numbers cannot come again."""


def outcome(federation: Federation, settings: Settings, state: ReplayState, records: Parties | None) -> Outcome:
    """One table for each table of the thesis that the run belongs to, and the largest error against the pooled fit."""
    pooled = None if records is None else pooled_fits(records, federation, settings)
    n = min(settings["fitted"] or federation.size, federation.size)
    names = variables(settings["formula"])
    ended = state.round == len(settings["methods"])
    numbers = settings["tables"] if ended else []
    tables = {TABLES[number].title: table(number, settings, state, pooled, n) for number in numbers}
    metrics = {} if pooled is None else {MEASURE: largest_error(state, pooled)}
    exact = "exact" if "exact" in state.betas else "firth"
    fits = None
    if exact in state.betas:
        fits = pd.DataFrame(
            {"coef": state.betas[exact], "se": state.errors[exact]}, index=pd.Index(["constant", *names], name="term")
        )
    arrays = {f"beta {method}": np.asarray(beta) for method, beta in state.betas.items()}
    return Outcome(metrics, tables=tables | ran(state), arrays=arrays, coefficients=fits)


def variables(formula: str) -> list[str]:
    """The terms of a formula."""
    return [term.strip() for term in formula.partition("~")[2].split("+")]


def ran(state: ReplayState) -> dict[str, pd.DataFrame]:
    """Every method's figures, for the run's own page."""
    index = pd.Index([f"{name}: {METHODS[name]}" for name in state.figures], name="method")
    found = {"Of the stores that were fitted": state.figures, "Of the others": state.others}
    return {
        title: pd.DataFrame([*rows.values()], index=index, columns=list(FIGURES)).dropna(axis=1, how="all")
        for title, rows in found.items()
        if rows
    }


def relative(ours: Any, theirs: Any) -> np.ndarray:
    """How far numbers are apart: relative above 1, absolute below; zero where both have no value."""
    ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    apart = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
    one_only = np.isnan(ours) != np.isnan(theirs)
    return np.where(one_only, np.inf, np.nan_to_num(apart, nan=0.0))


def largest_error(state: ReplayState, pooled: Pooled) -> float:
    """Of everything that has an exact answer."""
    apart = [0.0]
    for method in (name for name in pooled.betas if name in state.betas):
        apart.append(float(relative(state.betas[method], pooled.betas[method]).max()))
        apart.append(float(relative(state.errors[method], pooled.errors[method]).max()))
        for ours, theirs in ((state.figures, pooled.figures), (state.others, pooled.others)):
            if method in theirs and method in ours:
                apart.append(float(relative(ours[method][2:], theirs[method][2:]).max()))
    return max(apart)


# ---- the tables -----------------------------------------------------------------------------------------------------
def table(number: str, settings: Settings, state: ReplayState, pooled: Pooled | None, n: int) -> pd.DataFrame:
    """One table of the thesis for one data set."""
    printed = TABLES[number]
    build = {"coefficients": coefficients, "odds ratios": odds_ratios, "figures": figures}[printed.kind]
    rows = build(printed, settings, state, pooled, n)
    if printed.kind == "coefficients" and settings["called"] in ORIGINS:
        for row, origin in zip(rows, ORIGINS[settings["called"]], strict=True):
            row |= {"origin": origin}
    frame = pd.DataFrame(rows, dtype=object)
    frame.insert(0, "data set", settings["called"])
    if "origin" in frame:
        frame.insert(2, "origin", frame.pop("origin"))
    if settings["called"] in OTHER_DATA:
        frame["as printed"] = ""
    frame["remark"] = settings["remark"]
    return frame


def number_of(text: str) -> float | None:
    """A printed number, or none."""
    return float(text) if text else None


def beside(printed: Printed, line: tuple[str, ...], ours: Mapping[str, float | None], k: int) -> dict[str, Any]:
    """His central and federated numbers, and ours by the same programs; `k` rates follow his numbers."""
    row: dict[str, Any] = {"central (thesis)": number_of(line[0]) if line else None}
    for i, (his, mine) in enumerate(printed.programs.items()):
        row[f"{his}{_FEDERATED}"] = number_of(line[1 + i]) if line else None
        if k:
            row[f"h of {his}{_FEDERATED}"] = number_of(line[1 + len(printed.programs) + i]) if line else None
        row[f"{his}, ours"] = ours.get(mine)
        if k:
            row[f"h of {his}, ours"] = ours.get(f"{mine} rate")
    return row


def compared(row: dict[str, Any], line: tuple[str, ...], exact: float, pooled: float | None) -> dict[str, Any]:
    """Exact and pooled, their difference, and whether the pooled number is the one that the thesis prints."""
    row |= {"exact": finite(exact), "pooled": None if pooled is None else finite(pooled)}
    row["exact against pooled"] = None if pooled is None else float(relative(exact, pooled))
    row["as printed"] = ""
    if line and line[0] and pooled is not None and math.isfinite(pooled):
        row["as printed"] = "yes" if agrees(line[0], pooled) else "no"
    return row


def finite(value: float) -> float | None:
    """A number, or none where there is no number."""
    return None if math.isnan(value) else float(value)


def coefficients(
    printed: Printed, settings: Settings, state: ReplayState, pooled: Pooled | None, n: int
) -> list[dict[str, Any]]:
    """A row for each variable, with the 95 % interval of the exact fit."""
    lines, rows = printed.of(settings["called"]), []
    beta, se = state.betas["exact"], state.errors["exact"]
    reach = float(stdtrit(n - len(beta), 0.975) if settings["family"] == "gaussian" else ndtri(0.975))
    for j, name in enumerate(variables(settings["formula"]), start=1):
        line = lines.get(name, ())
        ours = {method: finite(float(value[j])) for method, value in state.betas.items() if not method.endswith("_alone")}
        row = compared(
            {"variable": name} | beside(printed, line, ours, 0),
            line,
            float(beta[j]),
            None if pooled is None else float(pooled.betas["exact"][j]),
        )
        rows.append(row | {"low": float(beta[j] - reach * se[j]), "high": float(beta[j] + reach * se[j])})
    return rows


def odds_ratios(
    printed: Printed, settings: Settings, state: ReplayState, pooled: Pooled | None, n: int
) -> list[dict[str, Any]]:
    """Two rows for each variable: by itself and adjusted for the others."""
    lines, rows = printed.of(settings["called"]), []
    for j, name in enumerate(variables(settings["formula"])):
        for kind, exact, mine, i in (("OR", "exact_alone", "v2_alone", j), ("AOR", "exact", "v2", j + 1)):
            line, other = (lines.get(f"{name}, {one}", ()) for one in (kind, "AOR" if kind == "OR" else "OR"))
            beta, se = float(state.betas[exact][i]), float(state.errors[exact][i])
            ratio = None if pooled is None else math.exp(pooled.betas[exact][i])
            row = compared(
                {"variable": f"{name}, {kind}"} | beside(printed, line, {"v2": math.exp(state.betas[mine][i])}, 0),
                line,
                math.exp(beta),
                ratio,
            )
            if row["as printed"] == "no" and other and ratio is not None and agrees(other[0], ratio):
                row["as printed"] = f"under {'AOR' if kind == 'OR' else 'OR'}"
            reach = float(ndtri(0.975)) * se
            rows.append(row | {"low": math.exp(beta - reach), "high": math.exp(beta + reach)})
    return rows


def figures(printed: Printed, settings: Settings, state: ReplayState, pooled: Pooled | None, n: int) -> list[dict[str, Any]]:
    """A row for each measure that the thesis prints."""
    found = state.others if printed.on_others else state.figures
    theirs = {} if pooled is None else pooled.others if printed.on_others else pooled.figures
    exact = "firth" if "firth" in found else "exact"
    rates, rows = len(next(iter(printed.rows.values()))) > 1 + len(printed.programs), []
    for measure, line in printed.of(settings["called"]).items():
        i = FIGURES.index(measure)
        ours = {method: finite(float(row[i])) for method, row in found.items()}
        ours |= {f"{method} rate": finite(float(row[0])) for method, row in found.items()}
        value = float(theirs[exact][i]) if exact in theirs else None
        rows.append(compared({"measure": measure} | beside(printed, line, ours, rates), line, float(found[exact][i]), value))
    return rows
