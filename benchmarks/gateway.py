"""A gateway: thousands of personal stores at one station, each with its own guard and ledger, answering over sealed letters.

python benchmarks/gateway.py [--stores 5000] [--rounds 8]

A round is everything: the question is packed, sealed, opened, held against what was announced and against every store's
policy and budget, charged in the journal on disk, computed, sealed, and opened again; coordinator and station share one
process and no network. Printed beside it: the same question to the same stores in one process, with no station between. The
goal is 2 s a round.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.core import Parties
from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.data import Schema, Table
from hedgerow.engines import MessageQueue, Network
from hedgerow.engines.rails.rail import Arrived
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.station import Station
from hedgerow.study import build_remote, parse
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity
from hedgerow.wire.values import pack, unpack

GOAL = 2.0
COLUMNS = {
    "store": {"kind": "integer", "range": [0, 1e9]},
    "age": {"kind": "number", "range": [20, 90]},
    "dose": {"kind": "number", "range": [0, 1]},
    "sick": {"kind": "binary", "role": "target"},
}
LOGISTIC = {"program": {"name": "logistic_regression", "formula": "sick ~ age + dose", "max_rounds": 50, "tol": 1e-300}}
MEANS = {"program": {"name": "moments", "columns": ["age", "dose"]}}
CASES: dict[str, dict[str, Any]] = {
    "means": MEANS,
    "logistic regression": LOGISTIC,
    "noise at each store, budgets": MEANS
    | {"protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 20.0, "at": "party"}}},
    "secure aggregation": LOGISTIC | {"protection": {"aggregation": {"by": "secagg", "records": 2}}},
}


def key_material(name: str) -> KeyMaterial:
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


@dataclass
class Keys:
    """What a key folder gives."""

    key_material: KeyMaterial
    public_identities: Mapping[str, PublicIdentity] = field(default_factory=dict)


class Direct:
    """A rail without a network."""

    def __init__(self, station: Station) -> None:
        self.station, self.came = station, deque[Arrived]()

    def connected(self) -> frozenset[str]:
        return frozenset({"gateway"})

    def send(self, station: str, body: bytes) -> None:
        if (back := self.station.receive(body)) is not None:
            self.came.append(Arrived("gateway", back))

    def receive(self, seconds: float) -> Arrived | None:
        return self.came.popleft() if self.came else None

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        pass


def records(stores: int) -> dict[str, np.ndarray]:
    """Two records for each store."""
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(20, 90, 2 * stores), rng.uniform(0, 1, 2 * stores)
    sick = (rng.random(2 * stores) < 1 / (1 + np.exp(-(age - 55) / 20 + dose))).astype(float)
    return {"store": np.repeat(np.arange(stores), 2).astype(float), "age": age, "dose": dose, "sick": sick}


def gateway(folder: Path, columns: Mapping[str, np.ndarray], mine: Keys, *, budgets: bool) -> Station:
    """The station."""
    budget = {"budget": {"epsilon": 50.0, "delta": 1e-6}, "study_budget": {"epsilon": 40.0, "delta": 1e-6}}
    about = {"name": "gateway", "coordinator": {"name": "hub", "rail": "socket", "path": "rail.sock"}}
    data = {"name": "wards", "source": "csv", "path": "x.csv", "columns": COLUMNS}
    guard = {"approval": "automatic", "programs": [{"name": name} for name in ("moments", "logistic_regression")]}
    config = parse_config(about | {"data": data, "stores": {"by": "store"}, "guard": guard | (budget if budgets else {})})
    whole = hr.data.Schema((hr.data.Column("store", "integer", low=0, high=1e9), *config.declared.columns))
    held = local_data(config, Table(whole.admit(columns), whole), bytes(32))
    return Station(config, held, mine, Base(folder / "station.sqlite"), answered=folder / "answered")


def measure(name: str, study: dict[str, Any], stores: int, rounds: int) -> None:
    """One line of the table."""
    columns = records(stores)
    hub, theirs = Keys(key_material("hub")), Keys(key_material("gateway"), {})
    hub.public_identities, theirs.public_identities = (
        {"gateway": theirs.key_material.public_identity},
        {"hub": hub.key_material.public_identity},
    )
    with tempfile.TemporaryDirectory() as folder:
        station = gateway(Path(folder), columns, theirs, budgets="budgets" in name)
        post = MessageQueue(lambda: hub.key_material, lambda: hub.public_identities, Direct(station))
        asked = parse({"name": "bench", "data": {"name": "wards", "target": "sick"}, **study})
        schema, key = station.held.schema, bytes(16)[:-1] + b"1"
        parties = {"gateway": tuple(station.held.ids)}
        network = Network(post, key, parties, seconds=600.0, life=2)
        board(post, key, asked, schema, stores)
        apart = timed(build_remote(asked, schema, network), rounds)
        station.base.close()
        station.close()
    inside = timed(build_remote(asked, schema, in_process(columns, schema, stores)), rounds)
    later = statistics.median(apart[1:] or apart)
    ratio = later / statistics.median(inside[1:] or inside)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    goal = "" if later <= GOAL else "  ABOVE THE GOAL"
    print(
        f"{name:<30} first {apart[0]:7.2f} s   later {later:7.3f} s   {ratio:5.1f}x without a station   {memory:5.0f} MB{goal}",
        flush=True,
    )


def board(post: MessageQueue, key: bytes, study: Any, schema: Schema, stores: int) -> None:
    """Let the gateway approve."""
    from hedgerow.study.changes import to_toml

    told = {"coordinator": "hub", "stations": {"gateway": stores}, "schema": schema.columns, "version": hr.__version__}
    parts = [to_toml(study.model_dump(mode="json")).encode(), pack(told)]
    letter = post.ask("board", {"gateway": parts}, study=key, number=1, seconds=600.0)["gateway"]
    said = unpack(letter.parts[0]) if letter.kind == "board" else {"status": letter.parts[0].decode()}
    if said["status"] != "approved":
        raise SystemExit(f"the gateway refused: {said}")


def in_process(columns: Mapping[str, np.ndarray], schema: Schema, stores: int) -> Any:
    """The same stores with no station between."""
    return hr.InProcess(threads=1).hosting(Parties([str(i) for i in range(stores)], schema.admit(columns), [2] * stores))


def timed(built: Any, rounds: int) -> list[float]:
    """Seconds of each question."""
    seconds: list[float] = []
    engine = built.run.engine
    genuine = engine.exchange
    began = time.perf_counter()

    def exchange(outbox: Any) -> Any:
        nonlocal began
        if outbox.step is None or outbox.step.contributes:
            seconds.append(0.0)
        found = genuine(outbox)
        if seconds:
            seconds[-1] += time.perf_counter() - began
        began = time.perf_counter()
        return found

    engine.exchange = exchange
    for _ in built.listing.program(built.settings)(built.federation):
        if len(seconds) > rounds:
            break
    return seconds


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stores", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    print(f"{options.stores} stores of two records behind one gateway; goal {GOAL:g} s a round")
    run = partial(measure, stores=options.stores, rounds=options.rounds)
    for name, study in CASES.items():
        run(name, study)


if __name__ == "__main__":
    main()
