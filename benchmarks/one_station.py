"""A coordinator and one station in this process, with real keys, letters and a journal on a disk, on a rail that loses nothing.

`exponents.py` measures with it what a question costs a station: letters, rules, the journal and the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.core.toml import to_toml
from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.data import Table
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.engines.rails.rail import Arrived
from hedgerow.network.station.base import Base
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.station import Station
from hedgerow.store import last
from hedgerow.study import build_remote, parse
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity
from hedgerow.wire.values import pack, unpack

COLUMNS = {"age": {"kind": "number", "range": [20, 90]}, "sick": {"kind": "binary"}}
GUARD = {
    "approval": "automatic",
    "programs": [{"name": "fedavg"}],
    "disclosure": float("inf"),
    "budget": {"epsilon": 1e6, "delta": 1e-6, "unit": "party", "trust": "server"},
}
NOISE = {"clip": {"radius": 1.0}, "mechanism": {"law": "gaussian", "noise_multiplier": 5.0, "at": "party"}}
KEY = b"a single study.."


@dataclass
class Keys:
    """What a key folder gives."""

    key_material: KeyMaterial
    public_identities: dict[str, PublicIdentity] = field(default_factory=dict)
    roster: Roster | None = None

    @classmethod
    def of(cls, name: str) -> Keys:
        identity, agreement = Identity.fresh(), AgreementKey.fresh()
        return cls(KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement))


class Direct:
    """A rail to one station, on which every body arrives at once."""

    def __init__(self) -> None:
        self.receives: Callable[[bytes], bytes | None] | None = None
        self.events: deque[Arrived] = deque()
        self.time = 0.0

    def connected(self) -> frozenset[str]:
        return frozenset({"alpha"})

    def send(self, station: str, body: bytes) -> None:
        assert self.receives is not None
        back = self.receives(body)
        if back is not None:
            self.events.append(Arrived(station, back))

    def receive(self, seconds: float) -> Arrived | None:
        if self.events:
            return self.events.popleft()
        self.time += max(seconds, 0.05)
        return None

    def now(self) -> float:
        return self.time

    def close(self) -> None:
        pass


def study_of(questions: int) -> dict[str, Any]:
    """FedAvg of a linear model with noise at the party: one question in a round."""
    program = {"name": "fedavg", "model": "linear", "rounds": questions, "steps": 1}
    data = {"name": "heart", "target": "sick", "features": ["age"]}
    return {"name": "many", "data": data, "program": program, "protection": NOISE, "evaluation": {"holdout": 0}}


def asked(folder: Path, questions: int, records: int = 60) -> None:
    """Let a study board at a new station, and ask all of its questions."""
    hub, own, rail, rng = Keys.of("hub"), Keys.of("alpha"), Direct(), np.random.default_rng(0)
    hub.public_identities = {"alpha": own.key_material.public_identity}
    own.public_identities = {"hub": hub.key_material.public_identity}
    own.roster = Roster({"alpha": own.key_material.identity.public})
    about = {"name": "alpha", "coordinator": {"name": "hub", "rail": "socket", "path": "rail.sock"}, "guard": GUARD}
    config = parse_config(about | {"data": {"name": "heart", "source": "csv", "path": "heart.csv", "columns": COLUMNS}})
    columns = {"age": rng.uniform(20, 90, records), "sick": rng.integers(0, 2, records).astype(float)}
    held = local_data(config, Table(config.declared.admit(columns), config.declared), bytes(32))
    station = Station(config, held, own, Base(folder / "station.sqlite"), answered=folder / "answered")
    rail.receives = station.receive
    try:
        queue = MessageQueue(lambda: hub.key_material, lambda: hub.public_identities, rail, pause=1e6)
        study = parse(study_of(questions))
        told = {"coordinator": "hub", "stations": {"alpha": 1}, "schema": config.declared.columns, "version": "0.1.0"}
        parts = [to_toml(study.model_dump(mode="json")).encode(), pack(told)]
        (letter,) = queue.ask("board", {"alpha": parts}, study=KEY, number=1, seconds=60.0).values()
        said = unpack(letter.parts[0]) if letter.kind == "board" else {"status": letter.parts[0].decode()}
        assert said["status"] == "approved", said
        engine = Network(queue, KEY, {"alpha": held.ids}, seconds=60.0, life=1 << 20, roster=own.roster)
        built = build_remote(study, config.declared, engine)
        state = last(built.listing.program(built.settings)(built.federation))
        assert state.round == questions
    finally:
        station.close()
        station.base.close()
