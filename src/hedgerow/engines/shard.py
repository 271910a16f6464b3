"""A shard: some of a simulation's parties, in another process, and what that process is told about them.

    host        columns arrive, and the parties keep nothing yet
    roster      the parties get identities, for protocols whose servers may lie
    question    the parties answer
    states      what they keep is committed and goes to the server's process, for a checkpoint
    propose     one party keeps something new
    restore     checkpointed states take the place of all others
    drop        the parties are forgotten

A process may hold shards of several simulations, by number.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.core.apart import PartiesApart
from hedgerow.core.arrays import Array
from hedgerow.core.party import Parties
from hedgerow.crypto.keys import Identity, Roster
from hedgerow.crypto.schemes import Credentials
from hedgerow.errors import HedgerowError, PartyDeclined
from hedgerow.wire.names import Names
from hedgerow.wire.values import pack, unpack

from .host import Host
from .inprocess import InProcess
from .shared import SharedParties

log = logging.getLogger("hedgerow")

WEIGHTS, ROWS = "weights", "rows"

Reply = tuple[str, bytes | memoryview]
"""How it went, and what came of it: "done", "keeps" where the parties keep something, "refused"."""


class Importable(Names):
    """Every marked function and class that can be imported: who asks here is the program that started this process."""

    def function(self, name: str) -> Callable[..., Any]:
        return Names((name.split(":")[0],)).function(name)

    def traveller(self, name: str) -> type:
        return Names((name.split(":")[0],)).traveller(name)


class Shards:
    """What one process hosts.

    Parameters
    ----------
    threads : int
        Of the process.
    """

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._hosts: dict[int, Host] = {}

    def told(self, number: int, kind: str, bodies: Sequence[Any]) -> Reply:
        """Do what the server's process asks about one simulation."""
        try:
            made = getattr(self, f"_{kind}")(number, *bodies)
        except Exception as error:
            cause = error.__cause__ or error
            log.warning("a shard could not answer %r: %s", kind, error, exc_info=None if _expected(cause) else cause)
            return "refused", refusal(error)
        keeps = number in self._hosts and bool(self._hosts[number].engine.held.states)
        return "keeps" if keeps else "done", made

    def host(self, number: int, about: str, common: Mapping[str, Array], own: Mapping[str, Array]) -> None:
        """Take parties in; see `parcels`."""
        engine = InProcess(threads=self.threads, collapse=json.loads(about)["collapse"])
        self._hosts[number] = Host(
            engine.hosting(parties_in(about, common, own)), names=Importable(), seeded=True, nameless=True
        )

    def _roster(self, number: int, roster: Any) -> bytes:
        told = unpack(roster)
        own = {id: Identity.from_bytes(private) for id, private in told["own"].items()}
        self._hosts[number].own = Credentials(Roster(told["public"]), own.__getitem__)
        return b""

    def drop(self, number: int) -> None:
        """Forget parties."""
        self._hosts.pop(number, None)

    def _question(self, number: int, common: Any, own: Any) -> bytes:
        return self._hosts[number].answer(common, own)

    def _states(self, number: int, counted: Any) -> bytes:
        kept = self._hosts[number].engine.held.states.committed(unpack(counted))
        return pack({id: dict(state) for id, state in kept.items()})

    def _propose(self, number: int, what: Any) -> bytes:
        self._hosts[number].engine.held.states.propose(*unpack(what))
        return b""

    def _restore(self, number: int, states: Any) -> bytes:
        self._hosts[number].engine.held.states.restore(unpack(states))
        return b""


def _expected(error: BaseException) -> bool:
    """Whether an error says enough without where it happened."""
    return isinstance(error, HedgerowError)


def refusal(error: Exception) -> bytes:
    """What the server's process learns of a failure: codes; the sentence stays in the log of the shard's process."""
    code = error.code if isinstance(error, HedgerowError) else PartyDeclined.code
    return json.dumps({"code": code, "codes": getattr(error, "codes", {})}).encode()


def split(sizes: Array, shards: int) -> list[int]:
    """Where shards begin and end, so that all hold about as many records: n + 1 positions for n shards, at most one a party."""
    n = min(shards, len(sizes))
    ends = np.cumsum(sizes)
    found = [0]
    for k in range(1, n):
        middle = int(np.searchsorted(ends - sizes / 2, ends[-1] * k / n))
        found.append(min(max(middle, found[-1] + 1), len(sizes) - (n - k)))
    return [*found, len(sizes)]


def parcels(held: Parties, begin: int, end: int, *, collapse: bool) -> tuple[str, dict[str, Array]]:
    """What a shard needs to hold the parties from one position to another: words, and arrays of its own."""
    part = slice(int(held.offsets[begin]), int(held.offsets[end]))
    if isinstance(held, PartiesApart):
        ids = held.ids[begin:end]
        own = {f"/{k}/{name}": column for k, id in enumerate(ids) for name, column in held.tables[id].items()}
        return json.dumps({"ids": ids, "apart": True, "collapse": collapse}), own
    about = {"ids": held.ids[begin:end], "sizes": held.sizes[begin:end].tolist(), "collapse": collapse}
    if isinstance(held, SharedParties):
        return json.dumps(about), {WEIGHTS: held.w[part], ROWS: held.rows[part]}
    return json.dumps(about), {WEIGHTS: held.w[part]} | {f"/{name}": column[part] for name, column in held.columns.items()}


def common_to(held: Parties) -> dict[str, Array]:
    """What all shards share: the records that several parties hold by turns."""
    return {f"/{name}": column for name, column in held.columns.items()} if isinstance(held, SharedParties) else {}


def parties_in(about: str, common: Mapping[str, Array], own: Mapping[str, Array]) -> Parties:
    """The parties of a shard."""
    said = json.loads(about)
    if said.get("apart"):
        tables = {
            id: {name.removeprefix(f"/{k}/"): own[name] for name in own if name.startswith(f"/{k}/")}
            for k, id in enumerate(said["ids"])
        }
        return PartiesApart(tables)
    columns = {name.removeprefix("/"): column for name, column in {**common, **own}.items() if name.startswith("/")}
    if ROWS not in own:
        return Parties(said["ids"], columns, said["sizes"], own[WEIGHTS])
    held = SharedParties(said["ids"], columns, said["sizes"], own[ROWS])
    held.w = own[WEIGHTS]
    return held
