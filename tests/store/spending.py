"""Real processes that debit and release until a shared budget is spent; run as a script, forked and killed.

python spending.py LEDGER RELEASES together N     N processes at once, until all have stopped by themselves
python spending.py LEDGER RELEASES killed         one after the other, each killed at some point, until one stops
"""

import itertools
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from entries import entry

from hedgerow import Budget
from hedgerow.core import Ledger
from hedgerow.core.events import Event
from hedgerow.errors import BudgetExhausted
from hedgerow.store import LedgerBase

COST = Event("laplace", 10.0)
BUDGET = Budget(4.05, 1e-6, unit="record", accountant="basic")
AFFORDABLE = 40


def spend(ledger, released=lambda: None):
    """Debit and release until the budget is spent."""
    for number in itertools.count(1):
        try:
            ledger.debit(entry(number, event=COST))
        except BudgetExhausted:
            return
        released()


def forked(path, releases, start, pause):
    """A process that waits until it is told to begin, and spends; a pause after each release lets others have their turn."""
    child = os.fork()
    if child:
        return child
    try:
        ledger, sink = Ledger(BUDGET, LedgerBase(path)), os.open(releases, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.read(start, 1)
        spend(ledger, lambda: (os.write(sink, b"released\n"), os.fsync(sink), time.sleep(pause)))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(path, releases, how, n=1):
    spent, rng, longest = False, random.Random(0), 3 * seconds(path.with_name("scratch.sqlite"))
    while not spent:
        waits, starts = os.pipe()
        children = [forked(path, releases, waits, 0.02 * (how == "together")) for _ in range(int(n))]
        os.write(starts, b"g" * int(n))
        if how == "killed":
            time.sleep(rng.uniform(0, longest))
            longest *= 1.02
            os.kill(children[0], signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        os.close(waits), os.close(starts)
        spent = 0 in codes if how == "killed" else True
        print(len(releases.read_bytes().splitlines()) if releases.exists() else 0, *codes, flush=True)


def seconds(path):
    """How long a debit takes on this disk."""
    ledger = Ledger(record=LedgerBase(path))
    start = time.perf_counter()
    for number in range(1, 6):
        ledger.debit(entry(number))
    return (time.perf_counter() - start) / 5


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
