"""What local frequencies show: the recovered table, and how the error falls with epsilon and with parties, beside theory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Array
from hedgerow.core.federation import Federation
from hedgerow.core.party import Parties
from hedgerow.privacy.local import Reports
from hedgerow.report import Curve, Outcome, Series

from .columns import levels_of
from .oracles import oracle_of

if TYPE_CHECKING:
    import pandas

    from .frequencies import FrequencyState

SHOWN = 25
"""At most so many levels are shown, the most frequent ones."""

NAMES = {
    "k-ary": "k-ary randomised response",
    "symmetric": "symmetric unary encoding",
    "optimised": "optimised unary encoding",
    "rappor": "RAPPOR",
    "sketch": "count-mean sketch",
    "hadamard": "Hadamard sketch",
}


def outcome(
    federation: Federation, settings: Mapping[str, Any], state: FrequencyState, records: Parties | None = None
) -> Outcome:
    """Compare every question's estimates with what only a simulation knows: the parties' own counts."""
    import pandas

    levels = np.array(levels_of(federation.schema[settings["column"]]))
    n = state.parties.astype(int)
    true = None if records is None else [exact(records, settings["column"], len(levels), few) for few in n]
    basis = true if true is not None else [np.maximum(row, 0) for row in state.counts]
    deviations = [oracle(settings, e).deviation(row) for e, row in zip(state.epsilons, basis, strict=True)]
    theory = [root_mean_square(d) / int(few) for d, few in zip(deviations, n, strict=True)]
    recovered = recovered_table(levels, n[0], state.counts[0], deviations[0], None if true is None else true[0])
    if true is None:
        return Outcome({"theory's error": theory[0]}, tables={"Recovered frequencies": recovered}, coefficients=recovered)
    errors = [root_mean_square(row - t) / int(few) for row, t, few in zip(state.counts, true, n, strict=True)]
    trials = pandas.DataFrame({"epsilon": state.epsilons, "parties": n, "error of shares": errors, "theory": theory})
    return Outcome(
        {"error of shares": errors[0], "theory's error": theory[0], "error over theory": errors[0] / theory[0]},
        tables={"Recovered frequencies": recovered, "Error of shares": trials},
        curves=curves(settings, state, true, errors, theory),
        coefficients=recovered,
    )


def exact(records: Parties, column: str, levels: int, parties: int) -> Array:
    """How many of the first parties hold each level; one that holds several records counts as shares of one."""
    sizes = records.sizes[:parties]
    owner = np.repeat(np.arange(parties), sizes)
    codes = records.columns[column][: len(owner)]
    w = np.where(codes >= 0, records.w[: len(owner)], 0.0)  # NaN, or -1 of a category, where it is missing
    total = np.bincount(owner, weights=w, minlength=parties)
    share = w / np.where(total > 0, total, 1.0)[owner]
    return np.bincount(np.where(codes >= 0, codes, 0).astype(int), weights=share, minlength=levels)


def oracle(settings: Mapping[str, Any], epsilon: float, name: str | None = None) -> Reports:
    """The mechanism of a study's settings, or of another oracle with the same ones."""
    sizes = {key: settings[key] for key in ("hashes", "width", "bits", "cohorts")}
    return oracle_of(name or settings["oracle"], float(epsilon), **sizes)


def root_mean_square(values: Array) -> float:
    """Over levels."""
    return float(math.sqrt(np.mean(np.asarray(values) ** 2)))


def recovered_table(levels: Array, n: int, counts: Array, deviations: Array, true: Array | None) -> pandas.DataFrame:
    """True and estimated shares of the most frequent levels, with the standard error that theory gives."""
    import pandas

    order = np.argsort(-(counts if true is None else true), kind="stable")[:SHOWN]
    columns: dict[str, Any] = {} if true is None else {"true share": true[order] / n}
    columns |= {"estimated": counts[order] / n, "standard error": deviations[order] / n}
    if true is not None:
        columns["off by standard errors"] = (counts - true)[order] / np.maximum(deviations[order], 1e-300)
    return pandas.DataFrame(columns, index=pandas.Index(levels[order], name="level"))


def curves(
    settings: Mapping[str, Any], state: FrequencyState, true: Sequence[Array], errors: Sequence[float], theory: Sequence[float]
) -> tuple[Curve, ...]:
    """The error against epsilon and against parties, with theory's line and, muted, those of the other oracles."""
    full = state.parties == state.parties[0]
    first = state.epsilons == state.epsilons[0]
    made = []
    for which, at, label, title in (
        (full, state.epsilons, "epsilon", "Error against epsilon"),
        (first, state.parties, "parties", "Error against the number of parties"),
    ):
        rounds = [int(i) for i in np.flatnonzero(which)[np.argsort(at[which], kind="stable")]]
        if len(set(at[rounds])) < 2:
            continue
        x = tuple(float(at[i]) for i in rounds)
        lines = [
            Series(NAMES[settings["oracle"]], x, tuple(float(errors[i]) for i in rounds)),
            Series("theory", x, tuple(float(theory[i]) for i in rounds), "reference"),
        ]
        for name in NAMES:
            if name != settings["oracle"]:
                y = tuple(
                    root_mean_square(oracle(settings, state.epsilons[i], name).deviation(true[i])) / float(state.parties[i])
                    for i in rounds
                )
                lines.append(Series(f"{NAMES[name]}, theory", x, y, "muted"))
        note = "Root mean square over levels of the difference between estimated and true shares."
        made.append(Curve(title, label, "error of shares", tuple(lines), note=note, log="xy"))
    return tuple(made)
