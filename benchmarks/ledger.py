"""What a question costs a ledger with a budget, and a station's accounts, after how many questions: processor time and memory.

    debits      milliseconds for one more question, once so many were asked
    mechanisms  the same after so many different mechanisms
    accounts    memory of a station's accounts

Each number stands beside its ratio to the first of its kind. Nothing here is written to a disk: `Ledger` in memory, no journal.

    python benchmarks/ledger.py
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from hedgerow import Budget
from hedgerow.core.events import Event, Sampling
from hedgerow.core.ledger import Entry, Ledger
from hedgerow.network.station.accounts import Account

QUESTIONS = (100, 300, 1000, 3000, 10_000)
DIFFERENT = (500, 600, 1000)
MEMORY = (1000, 2000, 5000, 10_000)
LAST = 50
"""Questions over which a time is taken."""

Make = Callable[[int], Entry]


def entry(number: int, noise_multiplier: float, sampling: Sampling | None = None, unit: str = "party") -> Entry:
    """One question for a noisy sum; a sampled cohort of its own each."""
    cohort = 0 if sampling is None else number
    asked = (number, cohort, "sum", "m:f", 10.0, 1, "x", 4.0, 0.0, "l2(1)", "none", "none", "Gaussian", "plain", unit)
    return Entry(*asked, Event("gaussian", noise_multiplier), sampling or Sampling(), "seeded")  # type: ignore[arg-type]


def debits(make: Make, marks: tuple[int, ...], budget: Budget) -> list[float]:
    """Milliseconds of processor time for a question at each mark."""
    ledger, times = Ledger(budget), []
    for mark in marks:
        began = 0.0
        for number in range(len(ledger) + 1, mark + 1):
            if number == mark - LAST + 1:
                began = time.process_time()
            ledger.debit(make(number))
        times.append((time.process_time() - began) / LAST * 1e3)
    return times


def accounts(marks: tuple[int, ...]) -> list[float]:
    """Megabytes that a station's accounts hold after so many questions to three parties."""
    everybody, sizes = np.arange(3), []
    tracemalloc.start()
    account = Account((Budget(1e6, 1e-5, unit="record"),), np.zeros(3, np.int64), "nobody")
    number = 0
    for mark in marks:
        while number < mark:
            number += 1
            account.add(everybody, entry(number, 60.0, unit="record"), ("life", number))
        sizes.append(tracemalloc.get_traced_memory()[0] / 1e6)
    tracemalloc.stop()
    return sizes


def table(title: str, marks: tuple[int, ...], values: list[float], unit: str) -> None:
    print(title)
    for mark, value in zip(marks, values, strict=True):
        print(f"  {mark:>6}  {value:9.3f} {unit}  {value / values[0]:6.2f}x")


def main() -> None:
    budget, sampled = Budget(40.0, 1e-5), Sampling("poisson", 0.01)
    table("debits, everybody is asked", QUESTIONS, debits(lambda n: entry(n, 60.0), QUESTIONS, budget), "ms")
    table("debits, sampled cohorts", QUESTIONS, debits(lambda n: entry(n, 2.0, sampled), QUESTIONS, budget), "ms")
    different = debits(lambda n: entry(n, 60.0 + n / 100, sampled), DIFFERENT, budget)
    table("different mechanisms, each new, sampled", DIFFERENT, different, "ms")
    again = [debits(lambda n, k=k: entry(n, 60.0 + n % k / 100), (3 * k,), budget)[0] for k in DIFFERENT]
    table("different mechanisms, over and over", DIFFERENT, again, "ms")
    table("a station's accounts", MEMORY, accounts(MEMORY), "MB")


if __name__ == "__main__":
    main()
