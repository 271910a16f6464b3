"""PrivFL's rounds at 20 coefficients: what it costs a party and the server that neither model nor gradient is seen.

    python benchmarks/hidden_model.py [--bits 2048 3072] [--parties 10]

Processor time of one thread: a party's is the median over parties, the server's is its time for a round over the number of
parties, both the least of some rounds. The masks go through SecAgg, whose steps are in the times; keys, tables and
SecAgg's set-up are made once and given apart. Beside it stands the same computation term by term: a power for each element of
a party's matrix, a full-length random power and a decryption for each coefficient. Results are compared with the plain
gradient: "off by" is the largest difference, and what the steps of the fixed point allow.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

import numpy as np

from hedgerow.core.arrays import Layout, flatten
from hedgerow.crypto.conversation import Contribution
from hedgerow.crypto.integers import library
from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.privfl import Cubic, LinearGradientGrid, PrivFL, PrivFLParty, PrivFLServer
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server
from secure_sums import carried, judged

SIZE, RECORDS, ROUNDS, GOAL = 20, 5, 4, 60.0


def main() -> None:
    """Print times and ratios for each length of key."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, nargs="+", default=[2048, 3072], help="lengths of Paillier keys")
    parser.add_argument("--parties", type=int, default=10)
    options = parser.parse_args()
    print(f"{SIZE} coefficients, {options.parties} parties, arithmetic by {'gmpy2' if library() else 'Python alone'}")
    for bits in options.bits:
        began = time.process_time()
        key = PaillierKey.fresh(bits)
        print(f"a key of {bits} bits, made in {time.process_time() - began:.1f} s")
        goal = GOAL if bits == 2048 else None
        party, server = linear(key, options.parties, goal)
        naive_party, naive_server = term_by_term(key)
        print(
            f"  term by term      party {1e3 * naive_party:7.1f} ms, {naive_party / party:.1f} x   "
            f"server {1e3 * naive_server:7.1f} ms, {naive_server / server:.1f} x"
        )
        cubic(key, options.parties)


def linear(key: PaillierKey, n: int, goal: float | None) -> tuple[float, float]:
    """Least squares, or the logistic loss with a sigmoid of degree 1."""
    rng = np.random.default_rng(3)
    rows, targets = rng.uniform(-1, 1, (n, RECORDS, SIZE)), rng.uniform(-1, 1, (n, RECORDS))
    grid = LinearGradientGrid(SIZE, n, terms=float(RECORDS), target=float(RECORDS), model=4.0)
    terms = [{"A": X.T @ X, "b": X.T @ y} for X, y in zip(rows, targets, strict=True)]
    theta = grid.on_grid(rng.uniform(-2, 2, SIZE))
    expected = sum(one["A"] @ theta - one["b"] for one in terms)
    step = n * (np.abs(theta).sum() + 1) * 2.0 ** -(grid.terms_bits + 1)
    return timed("linear", key, grid, terms, theta, expected, step, goal)


def cubic(key: PaillierKey, n: int) -> tuple[float, float]:
    """The logistic loss with a sigmoid of degree 3: one more trip."""
    rng = np.random.default_rng(4)
    rows, targets = rng.uniform(-0.5, 0.5, (n, RECORDS, SIZE)), rng.integers(0, 2, (n, RECORDS)).astype(float)
    grid = Cubic(SIZE, n, RECORDS, row=float(0.5 * SIZE**0.5), reach=8.0)
    theta = grid.on_grid(rng.uniform(-0.5, 0.5, SIZE))
    c0, c1, c3 = grid.coefficients
    z = rows @ theta
    expected = np.einsum("nri,nr->i", rows, c0 + c1 * z + c3 * z**3 - targets)
    terms = [{"X": X, "y": y, "w": np.ones(RECORDS)} for X, y in zip(rows, targets, strict=True)]
    steepest = abs(c1) + 3 * abs(c3) * grid.reach**2
    step = n * RECORDS * 0.5 * steepest * 2.0**-grid.predictor_bits
    return timed(f"cubic, {RECORDS} records", key, grid, terms, theta, expected, step, None)


def timed(
    name: str, key: PaillierKey, grid: Any, terms: list[Any], theta: Any, expected: Any, step: float, goal: float | None
) -> tuple[float, float]:
    """Seconds of a party and of the server for a party, in a later round."""
    ids = tuple(f"party-{i:03d}" for i in range(len(terms)))
    settings, masks = PrivFL(bits=key.public.bits), SecAgg(rounds_per_epoch=ROUNDS + 1)
    parties = {id: PrivFLParty(id, settings, SecAggParty(id, masks)) for id in ids}
    server = PrivFLServer(settings, ids, Server(masks, ids), key)
    given = {id: Contribution(Layout.of(one), flatten(one), grid, b"") for id, one in zip(ids, terms, strict=True)}
    _, opened = carried(server.open(), parties, {})
    found = []
    for _ in range(ROUNDS):
        total, clocks = carried(server.total(ids, theta, grid), parties, given)
        error = float(np.abs(grid.decode(total.total) - expected).max())
        if set(total.counted) != set(ids) or not error <= step:
            raise SystemExit(f"a gradient of {len(total.counted)} parties is off by {error:.2g}, more than {step:.2g}")
        found.append((clocks.party(), clocks.server / len(ids)))
    first, later = found[0], found[1:]
    party, serving = min(a for a, _ in later), min(b for _, b in later)
    if goal is None:
        print(f"  {name:17s} party {1e3 * party:7.1f} ms   server {1e3 * serving:7.1f} ms   off by {error:.1e} of {step:.1e}")
    else:
        print(f"  {name}, party     {judged(1e3 * party, goal, 'ms')}   checking the key {1e3 * opened.party():.0f} ms, once")
        print(f"  {name}, server    {judged(1e3 * serving, goal, 'ms')}   off by {error:.1e} of {step:.1e}")
    print(
        f"    the first round, with SecAgg's set-up and tables: party {1e3 * first[0]:.1f} ms, server {1e3 * first[1]:.1f} ms"
    )
    return party, serving


def term_by_term(key: PaillierKey) -> tuple[float, float]:
    """Seconds of one party and of the server for it, with textbook operations and coefficients of 40 bits."""
    public, rng = key.public, np.random.default_rng(5)
    A = rng.integers(-(2**39), 2**39, (SIZE, SIZE)).tolist()
    units = [int.from_bytes(os.urandom(public.bits // 8), "big") % public.n for _ in range(SIZE)]
    model = [public.encrypt(j) for j in range(SIZE)]
    began = time.process_time()
    replies = []
    for row, unit in zip(A, units, strict=True):
        found = public.encrypt(0, unit)
        for coefficient, c in zip(row, model, strict=True):
            found = public.add(found, public.multiply(c, coefficient))
        replies.append(found)
    party, seconds = time.process_time() - began, []
    for reply, row in zip(replies, A, strict=True):
        began = time.process_time()
        plain = key.decrypt(reply)
        seconds.append(time.process_time() - began)
        if plain != sum(coefficient * j for j, coefficient in enumerate(row)):
            raise SystemExit("a product of an encrypted vector is wrong")
    return party, SIZE * statistics.median(seconds)


if __name__ == "__main__":
    main()
