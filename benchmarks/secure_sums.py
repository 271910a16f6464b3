"""Sums of which the server sees the total alone: what masks, shares and whole rounds cost a party and the server.

python benchmarks/secure_sums.py [--only masks shamir flower complete rounds sizes] [--flower PYTHON]

Every time is processor time of one thread. A party's is the median over the parties, the least of some repetitions; all
parties of a round run in this process, message by message, and every total is compared with the sum of the rows that are
in it, to the last bit. PYTHON is an interpreter that has `flwr` 1.42.0, in an environment of its own; without it Flower is left
out.

    masks      parameters times neighbours per second             beside the bare stream, and numpy's own generator
    shamir     shares of one secret for 1000 holders              beside Python's integers
    flower     30 parties, 100 000 numbers, 3 drop out            beside Flower's SecAgg+, on the same rows
    complete   100 parties that all share masks, 10 drop out      beside the goals
    rounds     2048 stores for 800 rounds, one in ten drops out   beside the thesis: 13 hours for each store
    sizes      100, 1000 and 10 000 stores                        SecAgg, pairwise masks, grouped ones, additive shares
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

import numpy as np

from hedgerow.core.arrays import Layout
from hedgerow.crypto.conversation import Contribution, Correspondent, Total
from hedgerow.crypto.fixedpoint import RingEncoding, most
from hedgerow.crypto.pairwise import PairwiseMasks, PairwiseParty, PairwiseServer
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server
from hedgerow.crypto.shamir import combine, split
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares
from hedgerow.crypto.streams import add_streams, keystream
from hedgerow.errors import RoundRefused

HOURS_OF_THE_THESIS = 13.0
"""Of each of 2048 stores in 800 rounds (van Aarle 2021, section 6.2.7), by an estimate; nobody may drop out there."""


def main() -> None:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), metavar="NAME", help=", ".join(JOBS))
    parser.add_argument("--flower", metavar="PYTHON", help="an interpreter that has flwr 1.42.0")
    options = parser.parse_args()
    for name in options.only:
        JOBS[name](options)


# ---- clocks ------------------------------------------------------------------------------------------------------------------
def least(job: Callable[[], object], repetitions: int = 15) -> float:
    """The least seconds of processor time of a job, after one turn that builds its tables."""
    job()
    found = []
    for _ in range(repetitions):
        began = time.process_time()
        job()
        found.append(time.process_time() - began)
    return min(found)


def judged(value: float, goal: float, unit: str, *, at_least: bool = False) -> str:
    """A number beside its goal."""
    met = value >= goal if at_least else value <= goal
    factor = value / goal if at_least else goal / value
    sign = "at least" if at_least else "at most"
    return f"{value:9.3g} {unit:6s} goal: {sign} {goal:g} {unit}: {'met' if met else 'MISSED'}, {factor:.1f} x"


@dataclass
class Clocks:
    """Seconds of one conversation: of the server, and of every party in every step."""

    server: float = 0.0
    parties: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def party(self, among: Collection[str] | None = None) -> float:
        """The median over parties, or over some."""
        return statistics.median(s for id, s in self.parties.items() if among is None or id in among)


def carried(
    conversation: Any,
    parties: Mapping[str, Correspondent],
    contributions: Mapping[str, Contribution],
    gone: Collection[str] = (),
    only: Collection[str] | None = None,
) -> tuple[Any, Clocks]:
    """Carry a conversation to its end by the clock.

    Parameters
    ----------
    gone : collection of str
        Who is lost before its row.
    only : collection of str, optional
        Whose rows are made at all; where it is given, the round may be refused for want of rows.
    """
    clocks, answers = Clocks(), None
    while True:
        began = time.process_time()
        try:
            step = next(conversation) if answers is None else conversation.send(answers)
        except StopIteration as end:
            clocks.server += time.process_time() - began
            return end.value, clocks
        except RoundRefused:
            if only is None:
                raise
            return None, clocks
        clocks.server += time.process_time() - began
        answers = {}
        for id, letter in step.letters.items():
            if step.contributes and (id in gone or (only is not None and id not in only)):
                continue
            given = contributions[id] if step.contributes else None
            began = time.process_time()
            answers[id] = parties[id].answer(step.name, letter, given)
            clocks.parties[id] += time.process_time() - began
        if step.contributes and only is not None:
            clocks.parties = defaultdict(float, {id: clocks.parties[id] for id in only})


class Stores:
    """Parties with a row each, and the total that a round of them must have."""

    def __init__(self, rows: np.ndarray, bits: int, reach: float) -> None:
        n, size = rows.shape
        self.ids = tuple(f"store-{i:05d}" for i in range(n))
        step = 2.0 ** np.ceil(np.log2(reach / most(bits, n)))
        self.encoding = RingEncoding(bits, n, ((size, float(step)),))
        layout = Layout((("", (size,)),))
        self.contributions = {
            id: Contribution(layout, row, self.encoding) for id, row in zip(self.ids, rows, strict=True)
        }  # fmt: skip

    def check(self, found: Total, n: int) -> None:
        """Refuse a total that is not exactly the sum of n rows."""
        expected = np.zeros_like(found.total)
        for id in found.counted:
            expected += self.encoding.encode(self.contributions[id].row)
        if len(found.counted) != n or not np.array_equal(expected, found.total):
            raise SystemExit(f"a total of {len(found.counted)} rows is wrong, or not of the {n} rows that it should hold")


def drawn(n: int, size: int, reach: float) -> np.ndarray:
    """Rows from a fixed seed, in [-reach, reach]."""
    return np.random.default_rng(7).normal(size=(n, size)).clip(-reach, reach)


# ---- primitives --------------------------------------------------------------------------------------------------------------
def masks(_: argparse.Namespace) -> None:
    """Masking alone."""
    n, size, nonce = 50, 100_000, bytes(16)
    keys, signs = [os.urandom(32) for _ in range(n)], [1, -1] * (n // 2)
    print(f"masks: a row of {size} numbers, {n} neighbours; thousand million numbers times neighbours per second")
    for bits, kind in ((16, np.uint16), (32, np.uint32), (64, np.uint64)):
        row = np.zeros(size, kind)
        rate = n * size / least(lambda row=row: add_streams(row, keys, signs, nonce)) / 1e9
        bare = size / least(lambda row=row: keystream(keys[0], nonce, row.nbytes)) / 1e9
        goal = judged(rate, 1.3, "G/s", at_least=True) if bits == 32 else f"{rate:9.3g} G/s"
        print(f"  uint{bits:<3d} {goal}   ({rate / bare:.2f} x a stream that is only made, by one call)")
        if bits == 32:
            ours = rate

    def numpy_way() -> None:
        np.add(total, np.random.RandomState(1).randint(0, 2**32 - 1, size, dtype=np.int64), out=total)

    total = np.zeros(size, np.int64)
    theirs = size / least(numpy_way) / 1e9
    print(f"  numpy's RandomState, Flower's choice and no cipher: {theirs:.3g} G/s; ours {ours / theirs:.0f} x")


def shamir(_: argparse.Namespace) -> None:
    """Sharing alone."""
    n, t = 1000, 667
    secret = np.frombuffer(os.urandom(32), np.uint8)[None]
    began = time.process_time()
    shares = split(secret, n, t)
    first = time.process_time() - began
    seconds = least(lambda: split(secret, n, t), 200)
    print(f"shamir: a secret of 32 bytes, {n} holders, any {t} of them")
    print(f"  split    {judged(1e3 * seconds, 1.5, 'ms')}   (the first time, with its table, {1e3 * first:.0f} ms)")
    xs = np.arange(n - t, n) + 1
    if not np.array_equal(combine(xs, shares[n - t :]), secret):
        raise SystemExit("shares open another secret")
    began = time.process_time()
    whole_numbers(int.from_bytes(secret.tobytes(), "big"), n, t)
    plain = time.process_time() - began
    print(f"  by Python's integers {1e3 * plain:.0f} ms, {plain / seconds:.0f} x ours")
    many = split(np.frombuffer(os.urandom(32 * n), np.uint8).reshape(n, 32), n, t)[n - t :]
    print(f"  {n} secrets of the same holders are opened in {1e3 * least(lambda: combine(xs, many), 3):.0f} ms")


def whole_numbers(secret: int, n: int, t: int) -> list[int]:
    """Shares over the prime 2^256 + 297, by Horner's rule."""
    p = 2**256 + 297
    coefficients = [int.from_bytes(os.urandom(40), "big") % p for _ in range(t - 1)] + [secret]
    found = []
    for x in range(1, n + 1):
        value = 0
        for coefficient in coefficients:
            value = (value * x + coefficient) % p
        found.append(value)
    return found


# ---- rounds of SecAgg --------------------------------------------------------------------------------------------------------
@dataclass
class Cost:
    """Seconds of a party that stays, and of the server: of a set-up, of the round after it, and of a later round."""

    set_up: tuple[float, float]
    first: tuple[float, float]
    later: tuple[float, float]

    def rounds(self, n: int, epoch: int) -> tuple[float, float]:
        """Seconds of n rounds in epochs of so many."""
        epochs = n / epoch
        party, server = (
            epochs * (a + b) + (n - epochs) * c for a, b, c in zip(self.set_up, self.first, self.later, strict=True)
        )
        return party, server


def secagg(stores: Stores, settings: SecAgg, gone: float, repetitions: int) -> Cost:
    """What SecAgg costs: the least of some epochs, of two rounds each where they have two."""
    ids, lost = stores.ids, round(gone * len(stores.ids))
    parties = {id: SecAggParty(id, settings) for id in ids}
    server = Server(settings, ids)
    found: list[list[tuple[float, float]]] = [[], [], []]
    for repetition in range(repetitions):
        _, clocks = carried(server.open(), parties, stores.contributions)
        found[0].append((clocks.party(), clocks.server))
        for r in range(min(2, settings.rounds_per_epoch)):
            absent = {ids[(i * len(ids) // max(1, lost) + r + repetition) % len(ids)] for i in range(lost)}
            total, clocks = carried(server.total(ids, stores.encoding), parties, stores.contributions, absent)
            stores.check(total, len(ids) - len(absent))
            found[1 + r].append((clocks.party(set(ids) - absent), clocks.server))
    found[2] = found[2] or found[1]
    set_up, first, later = ((min(a for a, _ in times), min(b for _, b in times)) for times in found)
    return Cost(set_up, first, later)


def flower(options: argparse.Namespace) -> None:
    """Beside Flower's SecAgg+."""
    n, size, gone = 30, 100_000, 3
    rows = drawn(n, size, 8.0)
    cost = secagg(Stores(rows, 32, 8.0), SecAgg(bits=32, rounds_per_epoch=1), gone / n, 4)
    party, server = cost.rounds(1, 1)
    k, t = SecAgg().degree(n)
    print(f"flower: {n} parties, {size} numbers, {gone} drop out; a set-up for each round; {t} of {k} neighbours open a mask")
    print(f"  ours       party {1e3 * party:7.2f} ms   server {1e3 * server:8.2f} ms   totals exact")
    long, long_server = secagg(Stores(rows, 32, 8.0), SecAgg(bits=32), gone / n, 2).rounds(16, 16)
    print(f"  in epochs  party {1e3 * long / 16:7.2f} ms   server {1e3 * long_server / 16:8.2f} ms   of 16 rounds, as is usual")
    peer = beside(options.flower, rows, t + 1, gone)
    if peer is None:
        return
    print(
        f"  Flower {peer['version']:6s} {1e3 * peer['client']:7.1f} ms   server {1e3 * peer['server']:8.1f} ms   "
        f"mean within {peer['error']:.1e}, of steps of {peer['step']:.1e}; {t + 1} of {n} shares open a mask"
    )
    print(f"  party      {judged(peer['client'] / party, 20, 'x', at_least=True)}")
    print(f"  server     {judged(peer['server'] / server, 200, 'x', at_least=True)}")


def beside(python: str | None, rows: np.ndarray, threshold: int, gone: int) -> dict[str, Any] | None:
    """Flower's seconds on the same rows."""
    if python is None:
        print("  Flower was left out: give --flower an interpreter that has it.")
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.npy")
        np.save(file, rows)
        script = Path(__file__).with_name("flower_secagg.py")
        command = [python, str(script), str(file), "--threshold", str(threshold), "--gone", str(gone)]
        answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        print(f"  Flower was left out, since it failed: {(answer.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    if not found["error"] <= found["step"]:
        raise SystemExit(f"Flower's mean is off by {found['error']}, more than one of its steps")
    return found


def complete(_: argparse.Namespace) -> None:
    """A hundred parties, each with all others for neighbours."""
    n, size, gone = 100, 100_000, 10
    cost = secagg(Stores(drawn(n, size, 8.0), 32, 8.0), SecAgg(neighbours=n - 1, bits=32, rounds_per_epoch=1), gone / n, 3)
    party, server = cost.rounds(1, 1)
    print(f"complete: {n} parties, all neighbours, {size} numbers, {gone} drop out; a set-up for each round; totals exact")
    print(f"  party      {judged(1e3 * party, 30, 'ms')}   (set-up {1e3 * cost.set_up[0]:.1f} ms)")
    print(f"  server     {judged(1e3 * server, 250, 'ms')}   (set-up {1e3 * cost.set_up[1]:.1f} ms)")


def rounds(_: argparse.Namespace) -> None:
    """The thesis' longest run."""
    n, size, wanted = 2048, 20, 800
    settings = SecAgg()
    k, t = settings.degree(n)
    cost = secagg(Stores(drawn(n, size, 8.0), 64, 8.0), settings, 0.1, 1)
    party, server = cost.rounds(wanted, settings.rounds_per_epoch)
    print(
        f"rounds: {n} stores, {size} numbers, {wanted} rounds, one store in ten drops out of each; {t} of {k} neighbours open"
    )
    print(f"  a store    {judged(party, 60, 's')}   for all rounds")
    times = HOURS_OF_THE_THESIS * 3600 / party
    print(f"             the thesis, on a machine of its own, for each store: {HOURS_OF_THE_THESIS:g} h, {times:.0f} x")
    print(
        f"             set-up {1e3 * cost.set_up[0]:.2f} ms every {settings.rounds_per_epoch} rounds, the round after it "
        f"{1e3 * cost.first[0]:.2f} ms, a later one {1e3 * cost.later[0]:.2f} ms"
    )
    print(f"  server     {server:9.3g} s      for all rounds and stores; measured on one set-up and two rounds, totals exact")


# ---- against the number of stores --------------------------------------------------------------------------------------------
def sizes(_: argparse.Namespace) -> None:
    """What a store pays for a round among more and more stores."""
    size, group, epoch, wanted = 20, 20, 16, (100, 1000, 10_000)
    print(f"sizes: {size} numbers of 64 bits; milliseconds of a store for a round, set-up included; SecAgg with a tenth lost")
    print(f"  stores   SecAgg, epochs of {epoch}      pairwise    in groups of {group}   3 aggregators")
    flat = {}
    for n in wanted:
        stores = Stores(drawn(n, size, 8.0), 64, 8.0)
        settings = SecAgg(rounds_per_epoch=epoch)
        graph = flat[n] = secagg(stores, settings, 0.1, 3 if n <= 100 else 1).rounds(epoch, epoch)[0] / epoch
        alone = masked_by_pairs(stores, PairwiseMasks(), 4)
        grouped = masked_by_pairs(stores, PairwiseMasks(group=group), n)
        shared = additive(stores)
        neighbours = f"{settings.degree(n)[0]} neighbours"
        print(f"  {n:6d} {1e3 * graph:8.2f} {neighbours:14s} {1e3 * alone:10.2f} {1e3 * grouped:16.2f} {1e3 * shared:16.3f}")
    print(f"  SecAgg, 10 000 beside fewer {judged(flat[wanted[-1]] / min(flat[n] for n in wanted[:-1]), 1.25, 'x')}")
    print("  All totals are exact. Pairwise masks in one group are timed at 4 stores of the round, which ends without a total.")


def masked_by_pairs(stores: Stores, settings: PairwiseMasks, measured: int) -> float:
    """A store's seconds for a round of pairwise masks; a sample of stores stands for all where all would take too long."""
    parties = {id: PairwiseParty(id, settings) for id in stores.ids}
    server = PairwiseServer(settings, stores.ids)
    only = None if measured >= len(stores.ids) else stores.ids[:measured]
    total, clocks = carried(server.total(stores.ids, stores.encoding), parties, stores.contributions, only=only)
    if total is not None:
        stores.check(total, len(stores.ids))
    return clocks.party()


def additive(stores: Stores) -> float:
    """A store's seconds for a later round of additive shares."""
    settings = AdditiveShares(aggregators=3)
    server = AdditiveServer(settings, stores.ids)
    parties = {id: AdditiveParty(id, settings, server.keys) for id in stores.ids}
    _, enrolled = carried(server.open(), parties, stores.contributions)
    found = []
    for _ in range(2):
        total, clocks = carried(server.total(stores.ids, stores.encoding), parties, stores.contributions)
        stores.check(total, len(stores.ids))
        found.append(clocks.party())
    return min(found) + enrolled.party() / settings.rounds


JOBS: dict[str, Callable[[argparse.Namespace], None]] = {
    "masks": masks,
    "shamir": shamir,
    "flower": flower,
    "complete": complete,
    "rounds": rounds,
    "sizes": sizes,
}

if __name__ == "__main__":
    main()
