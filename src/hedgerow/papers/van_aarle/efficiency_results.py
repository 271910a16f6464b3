"""Figures 6.3 and 6.4 of van Aarle's thesis, with his lines and ours, and what 800 iterations of 2048 stores come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from hedgerow.core.federation import Federation
from hedgerow.crypto.secagg.settings import COMPLETE
from hedgerow.report import Curve, Outcome, Series

from .efficiency import WAYS, EfficiencyState

Settings = Mapping[str, Any]

PLAIN, PER_STORE, PER_STORE_AT_SERVER = 0.02, 1 / 36, 1 / 3200
"""Seconds of one iteration in the thesis: of a store without protection, and for each store of a group; of its server for each
store."""

PUBLISHED, GROUPED = "published, one group", "published, groups of {}"
PRINTED = {"pairwise": "13 h", "grouped": "15 min"}
"""What the thesis prints for 800 iterations of 2048 stores, of which the second are in groups of 16."""

MEASURE = "hours of a store and the server"
"""Of all iterations, by SecAgg, or by the last way that was timed."""

BOTH = "one after the other, hours"


def outcome(federation: Federation, settings: Settings, state: EfficiencyState) -> Outcome:
    """Both figures, their numbers, the whole run, and every measurement."""
    iterations = settings["iterations"]
    store, server = frames(state, iterations)
    n = int(store.index[-1])
    whole = all_iterations(state, settings, n)
    main = "secagg" if state.of("secagg") else list(ways_of(state))[-1]
    metrics = {MEASURE: float(whole.loc[label_at(state, main, n), BOTH])}
    errors = [row["off by"] for way in WAYS for row in state.of(way) if row["off by"] == row["off by"]]
    metrics["largest relative error of a total"] = max(errors)
    return Outcome(
        metrics,
        tables={
            f"Iterations: {iterations} among {n} stores": whole,
            "Figure 6.3 in numbers: milliseconds of a store for one iteration": 1e3 * store,
            "Figure 6.4 in numbers: milliseconds of the server for one iteration": 1e3 * server,
            "Measurements: milliseconds of single questions": measurements(state),
        },
        arrays={"measurements": state.rows},
        curves=(figure_6_3(store, settings, state), figure_6_4(server, settings)),
    )


def ways_of(state: EfficiencyState) -> dict[str, str]:
    """Ways that were timed, with their titles."""
    return {way: one.title for way, one in WAYS.items() if state.of(way)}


# ---- seconds --------------------------------------------------------------------------------------------------------
def seconds(way: str, row: Mapping[str, float], side: str, iterations: int) -> float:
    """Of one side for one iteration, with its share of a set-up and of what is made once for all of them."""
    first, later, once = (row[f"{side} {which}"] for which in ("first", "later", "once"))
    every = min(WAYS[way].every, iterations)
    each = min(first, later) if every == 1 else (first + (every - 1) * later) / every
    return each + once / iterations


def of_a_store(state: EfficiencyState, way: str, row: Mapping[str, float], iterations: int) -> float:
    """Seconds of a store for one iteration: its gradient, and what protects it."""
    protecting = seconds(way, row, "store", iterations)
    gradient = next(open_row for open_row in state.of("plain") if open_row["stores"] == row["stores"])
    return protecting if way == "plain" else protecting + seconds("plain", gradient, "store", iterations)


def published_store(n: float) -> float:
    """The thesis' line of Figure 6.3."""
    return PLAIN + n * PER_STORE


def published_server(n: float) -> float:
    """The thesis' line of Figure 6.4."""
    return n * PER_STORE_AT_SERVER


def frames(state: EfficiencyState, iterations: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Seconds of a store, and of the server, for one iteration: a row for each number of stores, a column for each way."""
    places = sorted({int(row["stores"]) for row in state.of("plain")})
    found = [pd.DataFrame(index=pd.Index(places, name="stores")) for _ in range(2)]
    for frame, line in zip(found, (published_store, published_server), strict=True):
        frame[PUBLISHED] = [line(n) for n in places]
    for way, title in ways_of(state).items():
        rows = {int(row["stores"]): row for row in state.of(way)}
        for frame, of in zip(found, (of_a_store, _of_the_server), strict=True):
            frame[title] = [of(state, way, rows[n], iterations) if n in rows else float("nan") for n in places]
    return found[0], found[1]


def _of_the_server(state: EfficiencyState, way: str, row: Mapping[str, float], iterations: int) -> float:
    return seconds(way, row, "server", iterations)


# ---- a whole run ----------------------------------------------------------------------------------------------------
def label_at(state: EfficiencyState, way: str, n: int) -> str:
    """A way as the table names it: with the number of stores, where it was not timed among all."""
    timed_at = int(state.of(way)[-1]["stores"])
    return WAYS[way].title if timed_at == n else f"{WAYS[way].title}, timed among {timed_at}"


def all_iterations(state: EfficiencyState, settings: Settings, n: int) -> pd.DataFrame:
    """Seconds for all iterations among n stores: of a store, of the server, and both, since stores work at once.

    Where a way was timed among fewer, a store's seconds are taken as they are there and the server's in proportion.
    """
    iterations, group = settings["iterations"], settings["group"]
    as_printed = PRINTED if (n, iterations, group) == (2048, 800, 16) else {}
    rows: dict[str, tuple[float, float, str]] = {
        PUBLISHED: (published_store(n), published_server(n), as_printed.get("pairwise", "")),
        GROUPED.format(group): (
            published_store(group),
            published_server(n),
            as_printed.get("grouped", ""),
        ),
    }
    for way in ways_of(state):
        row = state.of(way)[-1]
        at_server = seconds(way, row, "server", iterations) * n / row["stores"]
        rows[label_at(state, way, n)] = (of_a_store(state, way, row, iterations), at_server, "")
    both = {name: (a * iterations, b * iterations) for name, (a, b, _) in rows.items()}
    table = {
        "a store, seconds": [a for a, _ in both.values()],
        "the server, seconds": [b for _, b in both.values()],
        BOTH: [(a + b) / 3600 for a, b in both.values()],
        "as printed": [printed for *_, printed in rows.values()],
    }
    return pd.DataFrame(table, index=pd.Index(list(rows), name="way"))


def measurements(state: EfficiencyState) -> pd.DataFrame:
    """Every measurement, in milliseconds: first and later questions, and what is made once for all."""
    rows = []
    for way, title in ways_of(state).items():
        for row in state.of(way):
            times = {
                f"{side} {which}": 1e3 * row[f"{side} {which}"]
                for side in ("store", "server")
                for which in ("first", "later", "once")
            }
            counts = {name: int(row[name]) for name in ("stores", "timed", "counted")}
            rows.append({"way": title, **counts, **times, "off by": row["off by"]})
    return pd.DataFrame(rows)


# ---- the figures ----------------------------------------------------------------------------------------------------
def figure_6_3(store: pd.DataFrame, settings: Settings, state: EfficiencyState) -> Curve:
    """Seconds of a store."""
    sampled = [int(row["stores"]) for row in state.of("pairwise") if row["counted"] == 0]
    note = (
        f"A store's gradient of {state.size} numbers and what hides it; the median over stores, processor time. Published: "
        f"{PLAIN:g} s, and one more for every 36 stores; without protection {PLAIN:g} s, constantly."
    )
    if sampled:
        note += f" Pairwise masks in one group: from {min(sampled)} stores on, {settings['few']} stores were timed."
    if settings["lost"] and any(state.of(way) for way in WAYS if WAYS[way].recovers and way != "plain"):
        note += f" A share of {settings['lost']:g} of the stores drops out where the protocol allows it."
    return _figure("Figure 6.3: a store", "seconds of a store", store, note)


def figure_6_4(server: pd.DataFrame, settings: Settings) -> Curve:
    """Seconds of the server."""
    note = (
        "All that the server does for one iteration. Published: one second for every 3200 stores. Set-ups are shared by the "
        f"iterations that they serve: {WAYS['secagg'].every} for SecAgg, all {settings['iterations']} for the keys of shares "
        f"and of a hidden model. Up to {COMPLETE} stores, SecAgg makes everybody a neighbour of everybody."
    )
    return _figure("Figure 6.4: the server", "seconds of the server", server, note)


def _figure(title: str, label: str, frame: pd.DataFrame, note: str) -> Curve:
    styles = {PUBLISHED: "reference", WAYS["plain"].title: "muted"}
    places = tuple(float(n) for n in frame.index)
    lines = []
    for name in frame.columns:
        kept = [(x, float(y)) for x, y in zip(places, frame[name], strict=True) if y == y]
        x, y = zip(*kept, strict=True)
        lines.append(Series(name, x, y, styles.get(name, "main")))  # type: ignore[arg-type]
    return Curve(title, "stores", label, tuple(lines), note=note, log="xy")
