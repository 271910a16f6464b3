"""Regressions over columns that lie apart: the study `vertical-cardio`, 5 | 6 columns and the label, against pooled fits.

    python benchmarks/vertical.py [rows]         HEDGEROW_DATA names the folder of the data

Prints differences from the pooled fits, and rounds, bytes and processor time by role.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.data import Table, load

CLINIC = ("age", "gender", "height", "weight", "smoke")
LABORATORY = ("ap_hi", "ap_lo", "cholesterol", "gluc", "alco", "active")
LABEL = "cardio"
FORMULA = f"{LABEL} ~ " + " + ".join((*CLINIC, *LABORATORY))


def cardio(rows: int | None = None) -> Table:
    """Records with lawful blood pressures."""
    table = load("cardio")
    high, low = table["ap_hi"], table["ap_lo"]
    lawful = np.flatnonzero((high > 60) & (high < 250) & (low > 30) & (low < 160))
    return table.take(lawful if rows is None else lawful[:rows])


def apart(table: Table, seed: int = 0, missing: float = 0.0) -> dict[str, Table]:
    """The clinic's and the laboratory's tables, in orders of their own, each without a share of the people."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, columns in (("clinic", CLINIC), ("laboratory", (*LABORATORY, LABEL))):
        some = rng.permutation(len(table))[: round((1 - missing) * len(table))]
        part = table.select(["id", *columns]).take(some)
        found[name] = Table(dict(part.columns), part.schema, name)
    return found


def pooled(table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardised columns with a constant, the target, and what takes coefficients back to columns."""
    X = np.column_stack([np.ones(len(table)), *(np.asarray(table[name], float) for name in (*CLINIC, *LABORATORY))])
    mean, sd = X.mean(0), X.std(0)
    mean[0], sd[0] = 0.0, 1.0
    back = np.diag(1 / sd)
    back[0] -= mean / sd
    return (X - mean) / sd, np.asarray(table[LABEL], float), back


def logistic(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method in doubles: coefficients and their covariance."""
    b = np.zeros(X.shape[1])
    for _ in range(30):
        mu = 1 / (1 + np.exp(-X @ b))
        H = (X * (mu * (1 - mu))[:, None]).T @ X
        step = np.linalg.solve(H, X.T @ (y - mu))
        b = b + step
        if np.abs(step).max() < 1e-13:
            break
    return b, np.linalg.inv(H)


def least_squares(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their covariance."""
    b = np.linalg.lstsq(X, y, rcond=None)[0]
    return b, np.linalg.inv(X.T @ X) * ((y - X @ b) ** 2).sum() / (len(y) - X.shape[1])


def differences(fit: Any, table: Table, golden: Any) -> tuple[float, float]:
    """Largest difference of a coefficient in units of its column's standard deviation, and relative one of a standard error."""
    X, y, back = pooled(table)
    b, covariance = golden(X, y)
    se = np.sqrt(np.diag(back @ covariance @ back.T))
    order = ["Intercept", *CLINIC, *LABORATORY]
    place = [order.index(name.partition("[")[0]) for name in fit.names]
    unit = (1 / np.diag(back))[place]
    return float(np.abs((fit.coef_ - (back @ b)[place]) * unit).max()), float(np.abs(fit.se_ / se[place] - 1).max())


def told(traffic: Sequence[Any]) -> str:
    """Rounds, bytes and processor time by role."""
    by_role: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for one in traffic:
        for (sender, _), size in one.bytes.items():
            by_role[sender] += size
        seconds.update(one.seconds)
    sent = ", ".join(f"{role} {size / 1e6:.1f} MB" for role, size in sorted(by_role.items()))
    used = ", ".join(f"{role} {used:.2f} s" for role, used in sorted(seconds.items()))
    return f"{sum(one.rounds for one in traffic)} rounds; sent by {sent}; processor time of {used}"


def main() -> None:
    table = cardio(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    begun = time.process_time()
    both = hr.simulate(apart(table), on="id", seed=0).align(on="id", by=hr.vertical.KKRT(small_domain="accepted"))
    print(f"alignment of {both.n} people: {told(both.traffic)}; {time.process_time() - begun:.1f} s")
    for name, fit, golden in (
        ("linear", hr.vertical.linear_regression, least_squares),
        ("logistic", hr.vertical.logistic_regression, logistic),
    ):
        before, begun = len(both.traffic), time.process_time()
        found = fit(both, FORMULA)
        used = time.process_time() - begun
        b, se = differences(found, table, golden)
        print(
            f"{name}: b {b:.1e}, SE {se:.1e}, {found.rounds} openings or questions; {told(both.traffic[before:])}; {used:.1f} s"
        )
        print(f"  {found.method}")


if __name__ == "__main__":
    main()
