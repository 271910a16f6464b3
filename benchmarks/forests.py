"""A hundred trees over a hundred parties: seconds, questions and accuracy of forests, boosting and ID3 on Adult, without noise.

The records of Adult (32 561, 13 features) are dealt to 100 parties in one process. Every line is seconds of the clock and of
the processor, questions to the parties, and accuracy on the public test records.

    HEDGEROW_DATA=folder python benchmarks/forests.py [parties]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import hedgerow as hr

WIDE = ["capital_gain", "capital_loss"]
RUNS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "random forest, 100 trees, depth 6": (hr.trees.random_forest, {"trees": 100, "depth": 6}),
    "boosting, 50 trees, depth 3": (hr.trees.boosted_trees, {"trees": 50, "depth": 3}),
    "ID3, depth 3": (hr.trees.id3, {"depth": 3}),
    "CART, depth 6": (hr.trees.decision_tree, {"depth": 6}),
}


def main(parties: int = 100) -> None:
    """Grow each, and print a line."""
    table = hr.data.load("adult")
    truth = table.test[table.schema.target]
    for name, (grow, settings) in RUNS.items():
        federation = hr.simulate(table, hr.data.iid(parties=parties), seed=0)
        clock, processor = time.perf_counter(), time.process_time()
        model = grow(federation, log=WIDE, **settings)
        seconds = time.perf_counter() - clock, time.process_time() - processor
        right = (model.predict(table.test) == truth).mean()
        print(f"{name:36}{seconds[0]:7.1f} s {seconds[1]:7.1f} s {len(federation.ledger):5} questions {right:8.2%}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
