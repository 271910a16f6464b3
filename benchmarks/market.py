"""Forecasts beside runs, plans beside a sort, prefixes beside all sets: ratios, and nothing that fails.

    HEDGEROW_DATA=... python benchmarks/market.py           all three; about a minute of one core
    python benchmarks/market.py --only prefix plan          without the data

forecast   Three owners of lending records answer gradient queries. The estimate is of 10 000 records that belong to no owner.
           Mean relative fitness of `--runs` trainings over what was forecast, and the share of runs inside the interval.
           A forecast that is saturated is worse than coefficients of zero: there the box decides.
plan       Seconds of a plan of 1000 owners over those of sorting 1000 owners by noise per record, least of five.
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
from hedgerow.market import KnownLoss, OwnerOffer, PilotEstimate, SumNoise, best_prefix, equal_excess, forecast, plan

PUBLIC, HORIZON, DELTA, OWNERS, VALUE = 10_000, 100, 1e-6, 1000, 4e8
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


def plans() -> None:
    """Print what a plan of 1000 owners costs beside sorting them."""
    rng = np.random.default_rng(2)
    records, _ = made_owners(OWNERS, rng)
    least = rng.uniform(0.05, 0.5, OWNERS)
    most, cost = least + rng.uniform(0.5, 5.0, OWNERS), rng.lognormal(0, 1, OWNERS)
    offers = {
        f"owner {i}": OwnerOffer(max(int(n), 1), (float(low), float(high)), float(c))
        for i, (n, low, high, c) in enumerate(zip(records, least, most, cost, strict=True))
    }
    known = KnownLoss.of_numbers(10, amplification=0.378, bias=7.5e-5, sampling=0.49, least=0.049)
    noise = SumNoise("gaussian", HORIZON, radius=8.3, delta=DELTA)
    a = noise.variance(most)
    planned = least_of_five(lambda: plan(offers, known, noise, value=VALUE))
    sort = least_of_five(lambda: np.argsort(a / records))
    found = plan(offers, known, noise, value=VALUE)
    gained = found.deviation
    print(f"plan: {OWNERS} owners in {planned:.2f} s, {planned / sort:.0f} x their sort; {len(found.coalition)} take part, and")
    print(f"      nobody gains more than {gained:.1e} by another epsilon")


def least_of_five(run: Callable[[], object]) -> float:
    """Seconds of processor time."""
    taken = []
    for _ in range(5):
        begun = process_time()
        run()
        taken.append(process_time() - begun)
    return max(min(taken), 1e-6)


PARTS: dict[str, Callable[[int], None]] = {"forecast": forecasts, "plan": lambda _: plans(), "prefix": lambda _: prefixes()}


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
