"""The least that answers for a station: opens letters, lets a host answer, seals; no guard, no journal."""

from __future__ import annotations

from functools import partial

from virtual import Faults, VirtualRail

import hedgerow as hr
from hedgerow.core.party import Parties
from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.engines.host import Host, code_of
from hedgerow.engines.network import Network
from hedgerow.engines.post import Post
from hedgerow.errors import HedgerowError
from hedgerow.wire.envelope import Card, Seat, disclose, enclose


def seat(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return Seat(Card(name, identity.public, agreement.public), identity, agreement)


class MiniStation:
    def __init__(self, mine, hub, host):
        self.mine, self.hub, self.host, self.answered, self.last = mine, hub, host, {}, 0

    def __call__(self, raw):
        try:
            letter = disclose(self.mine, {self.hub.name: self.hub}, raw)
        except HedgerowError:
            return None
        if letter.digest in self.answered or letter.number <= self.last:
            return self.answered.get(letter.digest)
        try:
            kind, parts = "answer", [self.host.answer(*letter.parts)]
        except HedgerowError as error:
            kind, parts = "refused", [code_of(error).encode()]
        about = {"study": letter.study, "number": letter.number, "answers": letter.digest}
        self.answered = {letter.digest: enclose(self.mine, self.hub, kind, parts, **about)}
        self.last = letter.number
        return self.answered[letter.digest]


def at_stations(federation, homes, *, seed=0, faults=None, seeded=True, **settings):
    """The same federation, with its parties at ministations: homes is station -> ids."""
    held = federation.engine.held
    seats = {name: seat(name) for name in ("hub", *homes)}

    def machine(name):
        ids, of = homes[name], held.position
        columns = {key: held.pool([of[id] for id in ids]).columns[key] for key in held.columns}
        own = Parties(ids, columns, [held.sizes[of[id]] for id in ids], held.pool([of[id] for id in ids]).w)
        return MiniStation(seats[name], seats["hub"].card, Host(hr.InProcess(threads=1).hosting(own), seeded=seeded))

    rail = VirtualRail({name: partial(machine, name) for name in homes}, seed, faults or Faults())
    post = Post(lambda: seats["hub"], lambda: {name: seats[name].card for name in homes}, rail)
    engine = Network(post, bytes(16), {name: tuple(ids) for name, ids in homes.items()}, **settings)
    return engine, rail
