"""A small double of an aligned handle, with nothing between the parties; and an alignment of lists that are alike already."""

import copy
from dataclasses import dataclass

import numpy as np

from hedgerow.core.party import Party
from hedgerow.core.question import travels
from hedgerow.core.randomness import Streams
from hedgerow.crypto.psi import AlignedRows


@travels
@dataclass(frozen=True)
class AsHeld:
    """People in the order of the lists, which are the same: for tests of what comes after an alignment."""

    least: int = 10
    name: str = "as held"

    @property
    def shows(self):
        return {}

    def read(self, values):
        return [str(value).encode() for value in values]

    def peer(self, me, names, ids, *, entropy=None):
        yield {}
        return AlignedRows(np.arange(len(ids)), {})


class Double:
    def __init__(self, tables, seed=0):
        self.tables, self.seed, self.questions = tables, seed, 0
        self.schemas = {name: table.schema for name, table in tables.items()}
        self.states = {name: {} for name in tables}
        self.sent = []

    names = property(lambda self: tuple(self.tables))
    n = property(lambda self: len(next(iter(self.tables.values()))))

    def party(self, name, state=None, received=None):
        table = self.tables[name]
        found = Party(
            name, {c: table[c] for c in table.schema.names}, np.ones(self.n), self.states[name] if state is None else state
        )
        found.received = received
        return found

    def rng(self, name, purpose):
        return Streams(self.seed).stream(self.questions, name, purpose)

    def each(self, local, broadcast=None, *, parties=None):
        self.questions += 1
        for name in parties or self.names:
            state = dict(self.states[name])
            local(broadcast, self.party(name, state), self.rng(name, "local"))
            self.states[name] = state

    def send(self, local, broadcast=None, *, parties, to, then, hidden=False):
        self.questions += 1
        states = {name: dict(self.states[name]) for name in self.names}
        rows = [
            local(broadcast, self.party(name, states[name]), self.rng(name, "local")) for name in self.names if name in parties
        ]
        total = copy.copy(rows[0])
        for row in rows[1:]:
            total = total + row
        for name in [to] if isinstance(to, str) else to:
            then(broadcast, self.party(name, states[name], total), self.rng(name, "then"))
        self.sent.append((tuple(parties), to, total))
        self.states = states

    def total(self, local, broadcast=None, *, party):
        return local(broadcast, self.party(party), None)
