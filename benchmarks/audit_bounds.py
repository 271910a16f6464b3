"""Bounds from one run beside a peer's on the same counts and scores, and the time of both as a ratio.

    python benchmarks/audit_bounds.py [PATH/jax_privacy/auditing.py]

The peer is `auditing` of jax-privacy 2.0, one file of numpy, scipy and dp-accounting, which is loaded by its path. Without a
path our bounds are printed alone. Scores are those of an ideal Gaussian mechanism; both use the level 0.05. The peer tries all
thresholds and divides the level over them, as it does by default; ours tries five numbers of guesses, of "in" alone or of "in"
and "out". Bounds are medians of ten runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import util
from typing import Any

import numpy as np

from hedgerow.attacks import GaussianFamily, least_epsilon, least_leak, one_run_bounds
from hedgerow.privacy.accounting import gaussian_epsilon

COUNTS = ((1000, 100, 90), (1000, 100, 100), (1000, 1000, 600), (5000, 200, 195), (10000, 1000, 900))
DELTA, RUNS = 1e-5, 10


def main() -> None:
    peer = loaded(sys.argv[1]) if len(sys.argv) > 1 else None
    print(
        "canaries guesses right   any mechanism  its epsilon of a Gaussian"
        + "   peer's two, and its time over ours" * (peer is not None)
    )
    for m, r, v in COUNTS:
        ours, seconds = timed(lambda: (least_epsilon(m, r, v, DELTA), GaussianFamily().epsilon(least_leak(m, r, v), DELTA)))  # noqa: B023
        line = f"{m:8d} {r:7d} {v:5d}   {ours[0]:13.6f}  {ours[1]:25.6f}"
        if peer is not None:
            theirs, its = timed(
                lambda: [one(0.0, m, r, v, 0.05, DELTA) for one in (peer._epsilon_one_run, peer._epsilon_one_run_fdp)]  # noqa: B023
            )
            line += f"   {theirs[0]:.6f} {theirs[1]:.6f}, {its / seconds:.1f}"
        print(line)
    print(
        "\nmu    epsilon  canaries   in alone: any, Gaussian   in and out: any, Gaussian"
        + "   peer: any, Gaussian, time over ours" * (peer is not None)
    )
    for mu in (0.5, 1.0, 2.0):
        for m in (200, 1000, 4000):
            print(row(peer, mu, m))


def row(peer: Any, mu: float, m: int) -> str:
    rng = np.random.default_rng(0)
    found, spent = [], np.zeros(2)
    for _ in range(RUNS):
        inside = rng.random(m) < 0.5
        scores = mu * inside + rng.standard_normal(m)
        one = scores[inside], scores[~inside]
        top = one_run_bounds(*one, DELTA, ends="top")
        both, seconds = timed(lambda: one_run_bounds(*one, DELTA))  # noqa: B023
        line = [top.any_mechanism, top.of_family, both.any_mechanism, both.of_family]
        if peer is not None:
            auditor = peer.CanaryScoreAuditor(*one)
            theirs, its = timed(lambda: [auditor.epsilon_one_run(0.05, DELTA), auditor.epsilon_one_run_fdp(0.05, DELTA)])  # noqa: B023
            line += theirs
            spent += np.array([seconds, its])
        found.append(line)
    a, b, c, d, *rest = np.median(found, axis=0)
    told = f"{mu:3.1f}  {gaussian_epsilon(1 / mu, DELTA):8.2f}  {m:8d}   {a:13.2f} {b:9.2f}   {c:15.2f} {d:9.2f}"
    return told + (f"   {rest[0]:.2f} {rest[1]:.2f}, {spent[1] / spent[0]:.0f}" if rest else "")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """The answer, and the seconds of processor time."""
    began = time.process_time()
    return work(), time.process_time() - began


def loaded(path: str) -> Any:
    """A module by the path of its file."""
    spec = util.spec_from_file_location("peer_auditing", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"no module at {path}")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
