"""Alignment of two lists of ids, half of them common: KKRT and X25519 of ours beside OpenMined's PSI.

    python benchmarks/psi.py [--ids 1000000] [--slow-ids 20000] [--peer-python PYTHON]

Every protocol runs in a process of its own, on one core, both parties in turn, and its result is compared with that of `set`.
Seconds are processor time of both parties together, from the ids as bytes to the positions of the common ones; bringing ids
into the normal form is not in them. KKRT runs at `--ids`; X25519 and OpenMined's protocol run at `--slow-ids` and are scaled
by the number of ids, in which both are linear. KKRT runs once more with a process for each party and a socket between them;
time and memory are then sums of both. PYTHON is an interpreter that has `openmined_psi` 2.0.6, in an environment of its own;
without it OpenMined is left out. In its protocol (P-256, raw set) one side learns the result, in ours both do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when numpy is imported

PARTIES = ("a", "b")
GOALS = {"kkrt": 40.0, "by socket": 40.0, "x25519": 1.5}
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
    parser.add_argument("--part", choices=("kkrt", "x25519", *PARTIES), help=argparse.SUPPRESS)
    parser.add_argument("--socket", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        found = speaking(options.part, options.ids, options.socket) if options.socket else aligned(options.part, options.ids)
        print(json.dumps(found))
        return
    found = {"kkrt": ours("kkrt", options.ids), "by socket": by_socket(options.ids), "x25519": ours("x25519", options.slow_ids)}
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


def by_socket(n: int) -> dict[str, Any]:
    """Measure KKRT with a process for each party: processor time and memory are sums over both."""
    ends = socket.socketpair()
    command = [sys.executable, str(Path(__file__).resolve()), "--ids", str(n)]
    both = [
        subprocess.Popen(
            [*command, "--part", party, "--socket", str(end.fileno())],
            pass_fds=[end.fileno()],
            stdout=subprocess.PIPE,
            text=True,
        )
        for party, end in zip(PARTIES, ends, strict=True)
    ]
    for end in ends:
        end.close()
    said = [child.communicate()[0] for child in both]
    if any(child.returncode for child in both):
        raise SystemExit("a party over the socket failed")
    told = [json.loads(text) for text in said]
    if told[0]["common"] != told[1]["common"]:
        raise SystemExit("the parties over the socket found different people")
    summed = {key: sum(one[key] for one in told) for key in ("seconds", "bytes", "before", "peak")}
    return {"n": n, "letter": max(one["letter"] for one in told), **summed}


def speaking(me: str, n: int, number: int) -> dict[str, Any]:
    """One party of KKRT over a socket: in each round a length and a letter, or the length -1 for silence."""
    from hedgerow.crypto.psi import KKRT

    def received(size: int) -> bytes:
        letter, at = memoryview(bytearray(size)), 0
        while at < size:
            at += end.recv_into(letter[at:])
        return bytes(letter)

    (other,) = set(PARTIES) - {me}
    first = 0 if me == PARTIES[0] else n // 2
    ids = [b"%09d" % i for i in range(first, first + n)]
    end, sizes = socket.socket(fileno=number), [0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    peer = KKRT(small_domain="accepted").peer(me, PARTIES, ids)
    letters = next(peer)
    while True:
        letter = letters.get(other)
        end.sendall(struct.pack("<q", -1 if letter is None else len(letter)))
        end.sendall(letter or b"")
        sizes.append(len(letter or b""))
        (size,) = struct.unpack("<q", received(8))
        try:
            letters = peer.send({} if size < 0 else {other: received(size)})
        except StopIteration as stop:
            rows = stop.value.rows
            break
    seconds = time.process_time() - began
    common = hashlib.sha256(b"".join(ids[row] for row in rows)).hexdigest()
    if {ids[row] for row in rows} != {b"%09d" % i for i in range(n // 2, n)}:
        raise SystemExit("wrong intersection")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"common": common, "seconds": seconds, "bytes": sum(sizes), "letter": max(sizes), "before": before, "peak": peak}


def aligned(name: str, n: int) -> dict[str, Any]:
    """Align two lists of n ids in this process."""
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
