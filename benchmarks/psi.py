"""Alignment of two lists of ids, half of them common: KKRT and X25519 of ours beside OpenMined's PSI.

    python benchmarks/psi.py [--ids 1000000] [--slow-ids 20000] [--peer-python PYTHON]

Every protocol runs in a process of its own, on one core, both parties in turn, and its result is compared with that of `set`.
Seconds are processor time of both parties together, from the ids as bytes to the positions of the common ones; bringing ids
into the normal form is not in them. KKRT runs at `--ids`; X25519 and OpenMined's protocol run at `--slow-ids` and are scaled
by the number of ids, in which both are linear. PYTHON is an interpreter that has `openmined_psi` 2.0.6, in an environment of
its own; without it OpenMined is left out. In its protocol (P-256, raw set) one side learns the result, in ours both do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

GOALS = {"kkrt": 40.0, "x25519": 1.5}
"""So many times less processor time than OpenMined's."""

MEMORY = 800
"""Goal for KKRT with a million ids on each side: MB of both parties together."""

OPENMINED = """
import json, resource, sys, time
import private_set_intersection.python as psi

n = int(sys.argv[1])
a, b = [f"{i:09d}" for i in range(n)], [f"{i:09d}" for i in range(n // 2, n // 2 + n)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
setup = server.CreateSetupMessage(1e-9, n, b, psi.DataStructure.RAW)
request = client.CreateRequest(a)
response = server.ProcessRequest(request)
found = client.GetIntersection(setup, response)
seconds = time.process_time() - began
assert sorted(found) == list(range(n // 2, n)), "wrong intersection"
sizes = [len(message.SerializeToString()) for message in (setup, request, response)]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"n": n, "seconds": seconds, "bytes": sum(sizes), "letter": max(sizes), "before": before, "peak": peak}))
"""


def main() -> None:
    """Print a line for each protocol."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=int, default=1_000_000, help="of each party, for KKRT")
    parser.add_argument("--slow-ids", type=int, default=20_000, help="of each party, for X25519 and OpenMined's protocol")
    parser.add_argument("--peer-python", metavar="PYTHON", help="an interpreter that has openmined_psi 2.0.6")
    parser.add_argument("--part", choices=("kkrt", "x25519"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(aligned(options.part, options.ids)))
        return
    found = {name: ours(name, n) for name, n in (("kkrt", options.ids), ("x25519", options.slow_ids))}
    if options.peer_python:
        found["openmined"] = child([options.peer_python, "-c", OPENMINED, str(options.slow_ids)])
    report(found, options.ids)


def report(found: dict[str, dict[str, Any]], n: int) -> None:
    """Print what was measured, what n ids would take, and ratios."""
    reference = found.get("openmined")
    print(f"{'':10s}  ids each  us a pair {f's at {n}':>13s}  bytes a pair  largest letter  peak MB")
    for name, got in found.items():
        each = 1e6 * got["seconds"] / got["n"]
        scaled = "" if got["n"] == n else " scaled"
        print(
            f"{name:10s} {got['n']:9d} {each:10.2f} {each * n / 1e6:13.1f} {got['bytes'] / got['n']:13.1f} "
            f"{got['letter']:15,d} {got['peak'] / 1024:8.0f}{scaled}"
        )
        if reference is not None and name in GOALS:
            ratio = reference["seconds"] / reference["n"] / (got["seconds"] / got["n"])
            print(f"{'':10s} {ratio:.1f} x less than OpenMined; goal: {GOALS[name]:g} x: {met(ratio >= GOALS[name])}")
    got = found["kkrt"]
    print(
        f"KKRT holds {got['peak'] / 1024:.0f} MB at most for both parties, of which {got['before'] / 1024:.0f} MB before it "
        f"began (interpreter and ids); goal at 1000000: {MEMORY} MB: {met(got['peak'] / 1024 <= MEMORY)}"
    )


def met(yes: bool) -> str:
    """Say whether a goal was met."""
    return "met" if yes else "MISSED"


def ours(name: str, n: int) -> dict[str, Any]:
    """Measure a protocol of ours in another process."""
    return child([sys.executable, str(Path(__file__).resolve()), "--part", name, "--ids", str(n)])


def child(command: list[str]) -> dict[str, Any]:
    """Run a process and return what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def aligned(name: str, n: int) -> dict[str, Any]:
    """Align two lists of n ids in this process."""
    import resource

    from hedgerow.crypto.peers import meet
    from hedgerow.crypto.psi import KKRT, X25519

    by = {"kkrt": KKRT, "x25519": X25519}[name](small_domain="accepted")
    lists = {"a": [b"%09d" % i for i in range(n)], "b": [b"%09d" % i for i in range(n // 2, n // 2 + n)]}
    sizes: list[int] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    peers = {name: by.peer(name, ("a", "b"), ids) for name, ids in lists.items()}
    results = meet(peers, lambda sender, recipient, letter: sizes.append(len(letter)))
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    a, b = ([lists[name][row] for row in results[name].rows] for name in ("a", "b"))
    if a != b or set(a) != set(lists["a"]) & set(lists["b"]):
        raise SystemExit(f"{name} found a wrong intersection")
    return {"n": n, "seconds": seconds, "bytes": sum(sizes), "letter": max(sizes), "before": before, "peak": peak}


if __name__ == "__main__":
    main()
