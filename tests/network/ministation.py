"""The least that answers for a station: opens letters, lets a host answer, seals; no guard, no journal."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial

from railing import Authority, make_link, make_rail, save, serving, where_of
from virtual import Faults, VirtualRail

import hedgerow as hr
from hedgerow.core.federation import handle, inside
from hedgerow.core.party import Parties
from hedgerow.crypto.keys import AgreementKey, Identity
from hedgerow.engines.host import Host, code_of
from hedgerow.engines.message_queue import MessageQueue
from hedgerow.engines.network import Network
from hedgerow.errors import HedgerowError
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity, disclose, enclose
from hedgerow.wire.names import Names
from patience import PATIENCE

CLINIC = hr.data.load("breast_cancer").select(["mean_radius", "mean_texture", "malignant"]).take(range(300))
DESIGN = hr.stats.design_of(CLINIC.schema, "malignant ~ mean_radius + mean_texture", "binomial")
NAMES = Names(("hedgerow", "test_same_program"))
HOMES = {"alpha": ("party 1", "party 2"), "beta": ("party 3",), "gamma": ("party 4", "party 5")}


def federation(parties=5):
    return hr.simulate(CLINIC, hr.data.iid(parties=parties), seed=1)


def remote(held, engine):
    """A federation with the same channel, whose parties another engine reaches."""
    values = inside(held)
    return handle(values._replace(run=values.run.afresh(engine)))


def key_material(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


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


def machines(federation, homes, key_materials, *, seeded=True):
    """How each station is started: with the records of its parties."""
    held = hr.engines.records(federation)

    def machine(name):
        ids, of = homes[name], held.position
        pooled = held.pool([of[id] for id in ids])
        own = Parties(ids, dict(pooled.columns), [held.sizes[of[id]] for id in ids], pooled.w)
        return MiniStation(
            key_materials[name],
            key_materials["hub"].public_identity,
            Host(hr.InProcess(threads=1).hosting(own), names=NAMES, seeded=seeded),
        )

    return {name: partial(machine, name) for name in homes}


def network(rail, homes, key_materials, **settings):
    """The engine over a rail."""
    queue = MessageQueue(
        lambda: key_materials["hub"], lambda: {name: key_materials[name].public_identity for name in homes}, rail
    )
    return Network(queue, bytes(16), {name: tuple(ids) for name, ids in homes.items()}, **settings)


def at_stations(federation, homes, *, seed=0, faults=None, seeded=True, **settings):
    """The same federation, with its parties at ministations: homes is station -> ids."""
    key_materials = {name: key_material(name) for name in ("hub", *homes)}
    rail = VirtualRail(machines(federation, homes, key_materials, seeded=seeded), seed, faults or Faults())
    return network(rail, homes, key_materials, **settings), rail


@contextmanager
def over_sockets(federation, homes, kind, folder, **settings):
    """The same over a real rail, gRPC or sockets, each station in a thread."""
    key_materials = {name: key_material(name) for name in ("hub", *homes)}
    authority = Authority()
    save(authority.hub(), folder, "hub")
    for name in homes:
        save(authority.tls(name), folder, name)
    where = "127.0.0.1:0" if kind == "grpc" else str(private_folder(folder) / "rail")
    rail = make_rail(kind, where, folder)
    with ExitStack() as stack:
        stack.callback(rail.close)
        for name, start in machines(federation, homes, key_materials).items():
            stack.enter_context(serving(make_link(kind, where_of(rail), name, folder), start()))
        engine = network(rail, homes, key_materials, seconds=PATIENCE, **settings)
        assert engine.queue.wait(PATIENCE, lambda: engine.queue.alive() == homes.keys())
        yield engine


def private_folder(folder):
    found = folder / "sockets"
    found.mkdir(mode=0o700, exist_ok=True)
    return found
