"""Forecasts beside runs, prefixes beside all sets: ratios, and nothing that fails.

    HEDGEROW_DATA=... python benchmarks/market.py           both; about a minute of one core
    python benchmarks/market.py --only prefix               without the data

forecast   Three owners of lending records answer gradient queries. The estimate is of 10 000 records that belong to no owner.
           Mean relative fitness of `--runs` trainings over what was forecast, and the share of runs inside the interval.
           A forecast that is saturated is worse than coefficients of zero: there the box decides.
prefix     Excess of the best first owners over the least of all sets, 300 random instances of 2 to 10 owners; and seconds of
           all sets over seconds of the sort.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from time import process_time
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.learn.queries import (
    Inputs,
    QueryLoss,
    Steps,
    answers_for,
    inputs,
    loss_of,
    optimum,
    query_trials,
    relative_fitness,
)
from hedgerow.learn.queries.answers import NoiseLaw
from hedgerow.market import PilotEstimate, best_prefix, equal_excess, forecast

PUBLIC, HORIZON, DELTA = 10_000, 100, 1e-6
SETTINGS: list[tuple[NoiseLaw, float]] = [
    ("laplace", 1.0),
    ("laplace", 3.0),
    ("laplace", 10.0),
    ("gaussian", 1.0),
    ("gaussian", 10.0),
]
SHARES = (1.0, 0.25)
"""Of the owners' records."""


@dataclass(frozen=True)
class Lending:
    """Records of owners and of nobody, made into inputs by the public constants of the bundled study `wu-queries`."""

    owners: hr.data.Table
    public: hr.data.Table
    spec: Inputs
    steps: Steps
    loss: QueryLoss

    @classmethod
    def read(cls) -> Lending:
        program = tomllib.loads((files("hedgerow.papers.wu") / "wu-queries.toml").read_text(encoding="utf-8"))["program"]
        table = hr.data.load("lending_club_119987")
        order = np.random.default_rng(0).permutation(len(table))
        spec = Inputs(
            table.schema.features,
            str(table.schema.target),
            tuple(program["centre"]),
            tuple(program["spread"]),
            tuple(map(tuple, program["projection"])),
            radius=program["radius"],
            target_centre=program["target_centre"],
            target_spread=program["target_spread"],
        )
        steps = Steps(size=program["step"], box=program["box"])
        return cls(table.take(order[PUBLIC:]), table.take(order[:PUBLIC]), spec, steps, loss_of("linear"))

    def rows(self, table: hr.data.Table, share: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, targets and weights of a share of the records."""
        made = inputs(table.columns, spec=self.spec)
        kept = made["lot"] < share
        return made["queried x"][kept], made["queried y"][kept], np.ones(kept.sum())


def forecasts(runs: int) -> None:
    """Print the excess of runs beside what was forecast."""
    lending = Lending.read()
    loss, steps = lending.loss, lending.steps
    x, y, _ = lending.rows(lending.public)
    estimate = PilotEstimate.of_records(loss, x, y, steps.box, f"{PUBLIC} public records")
    owners = hr.simulate(lending.owners, hr.data.iid(parties=3), seed=0)
    print(f"forecast: {len(lending.owners)} records, {HORIZON} questions, {runs} runs; relative fitness")
    print("noise     epsilon  records  forecast  achieved  ratio  inside")
    for noise, epsilon in SETTINGS:
        told: dict[str, Any] = {
            "loss": loss,
            "spec": lending.spec,
            "n_records": len(lending.owners),
            "step": steps.size,
            "delta": DELTA,
        }
        grid: dict[str, Any] = {
            "noises": [noise],
            "epsilons": [epsilon],
            "shares": list(SHARES),
            "horizons": [HORIZON],
            "repeats": runs,
        }
        reached = hr.last(query_trials(owners, **told, **grid)).average
        agreed = dict.fromkeys(("party 1", "party 2", "party 3"), epsilon)
        answers = answers_for(owners.schema, agreed, HORIZON, loss, lending.spec, steps.box, law=noise, delta=DELTA)
        for share, theta in zip(SHARES, reached, strict=True):
            rows = lending.rows(lending.owners, share)
            psi = relative_fitness(loss, theta, optimum(loss, *rows, steps.box), *rows)
            n = len(rows[1])
            said = forecast(estimate, steps, HORIZON, answers, [n / 3] * 3, sample=False)
            inside = np.mean((psi >= said.low) & (psi <= said.high))
            line = f"{noise:9} {epsilon:7g} {n:8} {said.relative_fitness:9.3g} {psi.mean():9.3g}"
            print(f"{line} {psi.mean() / said.relative_fitness:6.2f} {100 * inside:5.0f} %", "saturated" * said.saturated)


def made_owners(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Records and variances of noise of n owners."""
    return rng.lognormal(7, 1.5, n), rng.lognormal(0, 2, n)


def all_sets(records: np.ndarray, variances: np.ndarray, sampling: float) -> float:
    """The least excess of equal weights over every set of owners."""
    members = np.array(list(product((False, True), repeat=len(records)))[1:])
    return min(equal_excess(records[m], variances[m], sampling, 1.0) for m in members)


def prefixes() -> None:
    """Print how far the best prefix is from the best of all sets."""
    rng, worst, seconds = np.random.default_rng(1), 0.0, np.zeros(2)
    for _ in range(300):
        records, variances = made_owners(int(rng.integers(2, 11)), rng)
        sampling = float(rng.choice([0.0, 1e-3, 1.0, 30.0]))
        begun = process_time()
        least = all_sets(records, variances, sampling)
        between = process_time()
        sorted_one = best_prefix(records, variances, sampling, 1.0).excess
        seconds += between - begun, process_time() - between
        worst = max(worst, abs(sorted_one / least - 1))
    print(
        f"prefix: 300 instances; largest |prefix / best of all sets - 1| {worst:.1e}; "
        f"all sets take {seconds[0] / seconds[1]:.0f} x the time of the sort"
    )


PARTS: dict[str, Callable[[int], None]] = {"forecast": forecasts, "prefix": lambda _: prefixes()}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, default=50)
    asked = parser.parse_args()
    for name in asked.only:
        PARTS[name](asked.runs)


if __name__ == "__main__":
    main()
