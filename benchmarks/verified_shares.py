"""Verified shares: what a proof of a row's bound costs a party and an aggregator, beside shares without one.

python benchmarks/verified_shares.py [--numbers 1000 10000 100000] [--parties 16] [--aggregators 2] [--only l2 counts]

Every time is processor time of one thread, the least of some rounds. All sides run in this process, letter by letter, and the
total of every round is compared with the sum of its rows, in whole steps.

    l2        rows of normal numbers, clipped: a proof of their length     beside additive shares without a proof, and the goals
    counts    whole numbers, before noise: one-hot rows, and l1 bounds     beside the same
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from dataclasses import dataclass

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound, l1, l2
from hedgerow.core.release import Release
from hedgerow.crypto.conversation import Contribution
from hedgerow.crypto.field_encoding import field_encoding_for
from hedgerow.crypto.fixedpoint import encoding_for
from hedgerow.crypto.shares import AdditiveServer, AdditiveShares, VerifiedServer
from hedgerow.crypto.shares.making import aggregators_of, party_of
from hedgerow.privacy import Geometric

ROUNDS = 4
GOALS = {100_000: {"party ms": 150.0, "aggregator ms": 90.0, "more bytes %": 6.0}, 1_000: {"aggregator ms": 10.0}}
"""Of a row of so many numbers; that of 1000 among those of other parties."""


def main() -> None:
    """Print a table for each kind of row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--parties", type=int, default=16)
    parser.add_argument("--aggregators", type=int, default=2, choices=(2, 3))
    parser.add_argument("--only", nargs="+", choices=("l2", "counts"), default=["l2", "counts"])
    options = parser.parse_args()
    if "l2" in options.only:
        for size in options.numbers:
            rng = np.random.default_rng(size)
            rows = rng.standard_normal((options.parties, size))
            compare(f"l2(1), {size:,} numbers", l2(1.0), l2(1.0).clip(rows), options.aggregators, GOALS.get(size, {}))
    if "counts" in options.only:
        rng = np.random.default_rng(0)
        one_hot = np.eye(1000, dtype=np.int64)[rng.integers(0, 1000, options.parties)]
        compare("one-hot rows of 1,000 levels", l1(1.0), one_hot, options.aggregators, {})
        counts = rng.multinomial(50, np.full(100, 0.01), options.parties)
        compare("100 counts of 50 records", l1(50.0), counts, options.aggregators, {})


@dataclass
class Cost:
    """What one row costs."""

    party: float = np.inf
    aggregator: float = np.inf
    sent: int = 0
    told: int = 0


def compare(title: str, bound: Bound, rows: np.ndarray, aggregators: int, goals: dict[str, float]) -> None:
    """Print what rows of a bound cost with proofs and without."""
    plain, proved = (cost_of(bound, rows, AdditiveShares(aggregators, verified=verified)) for verified in (False, True))
    more = 100 * (proved.sent / plain.sent - 1)
    print(f"\n{title}; {len(rows)} parties, {aggregators} aggregators")
    print(f"  {'':24}{'proved':>12}{'without':>12}{'ratio':>9}")
    for name, a, b in (
        ("party ms", 1e3 * proved.party, 1e3 * plain.party),
        ("aggregator ms", 1e3 * proved.aggregator, 1e3 * plain.aggregator),
    ):
        print(f"  {name:24}{a:12.2f}{b:12.3f}{a / b:9.0f}{judged(a, goals.get(name))}")
    print(f"  {'bytes of a row':24}{proved.sent:12,}{plain.sent:12,}{proved.sent / plain.sent:9.2f}", end="")
    print(f"   {more:+.1f} %{judged(more, goals.get('more bytes %'))}")
    print(f"  {'told of a row':24}{proved.told:12,}{plain.told:12,}")


def judged(value: float, goal: float | None) -> str:
    """A number beside its goal."""
    return "" if goal is None else f"   goal: at most {goal:g}: {'met' if value <= goal else 'MISSED'}"


def cost_of(bound: Bound, rows: np.ndarray, settings: AdditiveShares) -> Cost:
    """Carry some rounds out by the clock; of the dearest aggregator, for each of the rows."""
    n = len(rows)
    ids, layout = tuple(f"store-{i:04d}" for i in range(n)), Layout.of({"row": rows[0]})
    release = Release(bound, bound, Geometric(1.0)) if rows.dtype.kind == "i" else Release(bound)
    how = {"aggregators": settings.aggregators} if settings.verified else {}
    encoding = (field_encoding_for if settings.verified else encoding_for)(release, layout, parties=n, **how)
    given = {id: Contribution(layout, row, encoding) for id, row in zip(ids, rows, strict=True)}
    links = [Timed(one) for one in aggregators_of(settings)]
    server = (VerifiedServer if settings.verified else AdditiveServer)(settings, ids, links)
    parties = {id: party_of(id, settings, server.keys) for id in ids}
    found = Cost()
    for _ in range(ROUNDS):
        for one in links:
            one.spent, one.told = 0.0, 0
        took: dict[str, float] = defaultdict(float)
        conversation, answers = server.total(ids, encoding), None
        while True:
            try:
                step = next(conversation) if answers is None else conversation.send(answers)
            except StopIteration as end:
                total = end.value
                break
            answers = {}
            for id, letter in step.letters.items():
                began = time.process_time()
                answers[id] = parties[id].answer(step.name, letter, given[id] if step.contributes else None)
                if step.contributes:
                    took[id] += time.process_time() - began
                    found.sent = len(answers[id])
        exact = np.sum([encoding.encode(row).astype(np.int64) for row in rows], axis=0)
        assert total.counted == ids
        assert np.array_equal(encoding.decode(total.total), exact * (1.0 if encoding.whole else step_of(encoding)))
        found.party = min(found.party, *took.values())
        found.aggregator = min(found.aggregator, max(one.spent for one in links) / n)
        found.told = sum(one.told for one in links) // n // len(links)
    return found


def step_of(encoding: object) -> np.ndarray | float:
    """The step of every number of an encoding of one bound."""
    parts = getattr(encoding, "parts", None)
    return parts[0].step if parts else encoding.steps[0][1]


class Timed:
    """An aggregator by the clock, but for enrolment, which is done once in many rounds."""

    def __init__(self, one: object) -> None:
        self.one, self.public, self.spent, self.told = one, one.public, 0.0, 0

    def answer(self, step: str, letter: bytes) -> bytes:
        began = time.process_time()
        answer = self.one.answer(step, letter)
        self.spent += (time.process_time() - began) * (step not in ("enrol", "offer", "settle"))
        self.told += len(answer) * (step == "tell")
        return answer


if __name__ == "__main__":
    main()
