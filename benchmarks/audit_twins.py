"""How often an audit finds out broken trainings, and how often it calls right code red.

    python benchmarks/audit_twins.py --seeds 20

Each of `tests/attacks/broken_training.py` is trained for 6 rounds of 300 numbers, at epsilon 2 with 400 canaries and at
epsilon 8 with 100, and audited at level 1e-3: 20 seeds of each twin, 40 of right code. Two columns say why a twin is red: by
what follows chance, and by what a canary's record adds when it is asked about alone, which follows none. The parts that are red
by chance are counted behind. Estimates are medians, lower bounds of epsilon the largest of all runs. Below is the power that
the audit of right code states.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attacks"))

from broken_training import BROKEN, RATE, RECORDS, ROUNDS, audited_law

from hedgerow.attacks.audits.one_run import OneRunBound, one_run_bounds, refutes
from hedgerow.core.events import Event, Sampling
from hedgerow.privacy.accounting import epsilon
from hedgerow.privacy.accounting.trade_off import TradeOff, trade_off_of
from hedgerow.study.audits.running import Scores

DELTA = 1e-5
CANARIES = {2.0: 400, 8.0: 100}
NOISE = {2.0: 2.785, 8.0: 1.01}
"""Noise multipliers by the epsilon that they are accounted with, rounded."""


def main(seeds: int, epsilons: list[float]) -> None:
    logging.disable(logging.WARNING)
    for wanted, z in ((each, NOISE[each]) for each in epsilons):
        charges = [(Sampling("records", RATE), (Event("gaussian", z),))] * ROUNDS
        accounted = epsilon(charges, delta=DELTA, adjacency="add-remove")
        mechanism = trade_off_of(charges, "add-remove")
        print(f"epsilon {wanted:g}: noise multiplier {z}, accounted {accounted:.3f} at delta {DELTA:g}")
        print(
            f"{'':16}{'runs':>5}{'red':>5}{'by chance':>11}{'alone':>7}{'mu/mu':>7}{'noise':>7}{'length':>7}"
            f"{'f-DP':>7}{'any':>9}{'beyond':>8}  parts"
        )
        for name in BROKEN:
            _row(name, seeds * (2 if name == "right" else 1), z, CANARIES[wanted], mechanism)
        for canaries in sorted({100, CANARIES[wanted]}):
            law, _, evidence = audited_law("right", 0, z=z, canaries=canaries)
            powers = {name: law.power.against(*fault) for name, fault in FAULTS.items()}
            powers["realised batch"] = law.power.by_scaling(RATE * RECORDS / statistics.mean(evidence.law.took_part))
            seen = "; ".join(f"{name} {power:.3f}" for name, power in powers.items())
            print(f"{canaries} canaries would see: {seen}", flush=True)
        print(flush=True)


FAULTS = {"half noise": (0.5, 1.0), "no clip": (1.0, 4.0), "two layers": (1.0, 2**0.5)}
"""Noise and length of twins; records without a clip are some four times as long as the bound."""


def _row(name: str, runs: int, z: float, canaries: int, mechanism: TradeOff) -> None:
    laws, bounds = [], []
    for seed in range(runs):
        law, scores, _ = audited_law(name, 100 + seed, z=z, canaries=canaries)
        laws.append(law)
        bounds.append(_bounds(scores))
    red = [{part.name for part in law.parts if part.light == "red"} for law in laws]
    found = statistics.median(law.mu / law.accounted for law in laws), statistics.median(law.noise for law in laws)
    print(f"{name:16}{runs:5}{sum(law.light == 'red' for law in laws):5}{sum(law.by_chance for law in laws):11}", end="")
    print(f"{sum('alone' in one for one in red):7}", end="")
    print("".join(f"{value:7.2f}" for value in (*found, statistics.median(law.length for law in laws))), end="")
    beyond = sum(refutes(one.canaries, one.guesses, one.right, mechanism, 2e-4) for one in bounds)
    most = max(one.of_family for one in bounds), max(one.any_mechanism for one in bounds)
    counted = Counter(part for one in red for part in one if part != "alone")
    print(f"{most[0]:7.2f}{most[1]:9.2f}{beyond:8}  {dict(counted)}", flush=True)


def _bounds(scores: Scores) -> OneRunBound:
    return one_run_bounds(scores.members, scores.others, DELTA)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="*", choices=list(NOISE), default=list(NOISE))
    given = parser.parse_args()
    main(given.seeds, given.epsilon)
