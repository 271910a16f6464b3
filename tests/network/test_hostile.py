"""A hundred thousand hostile byte strings to a station and to a coordinator: no crash, no answer, nothing kept."""

import logging
import random
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import pytest
from hostile import BOMBS, mutated, spliced

from hedgerow.core.engine import Inbox
from hedgerow.engines.rails.rail import Arrived
from hedgerow.errors import HedgerowError, MessageRefused
from hedgerow.network.coordinator.boarding import read_board, read_hello
from hedgerow.store import last
from hedgerow.wire.envelope import Letter, digest_of, disclose, enclose
from station_house import PRIVATE, STUDY, House, key_material

AUTOMATIC = {"approval": "automatic", "programs": [{"name": "moments"}]}
EACH = 50_000
"""Strings to each side."""


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def house(tmp_path):
    """Two stations that have boarded and answered a study."""
    made = House(tmp_path, {"alpha": {"budget": {"epsilon": 8.0, "delta": 1e-6}}, "beta": {}}, **AUTOMATIC)
    made.board(PRIVATE, ("age", "dose"))
    built = made.built(PRIVATE, ("age", "dose"))
    last(built.listing.program(built.settings)(built.federation))
    return made


def to_alpha(house):
    """Genuine letters, and genuine ones that are none of this station's business."""
    mine, others = ([body for name, body in house.rail.sent if name == who] for who in ("alpha", "beta"))
    public_identity, hub = house.key_materials["alpha"].public_identity, house.hub.key_material
    revoked, stranger = house.key_materials["beta"], key_material("hub")
    return mine, [
        *others,
        enclose(revoked, public_identity, "ask", [b"x"], study=STUDY, number=1 << 40),
        enclose(stranger, public_identity, "ask", [b"x"], study=STUDY, number=1 << 40),
        enclose(key_material("delta"), public_identity, "hello", []),
        enclose(hub, key_material("alpha").public_identity, "hello", []),
        enclose(hub, public_identity, "ask", [b"x"], study=STUDY, number=1 << 40, answers=bytes(32)),
        *(body for name, body in house.rail.came if name == "alpha"),
    ]


def strings(mine, others, rng, n):
    """Hostile strings, most of them close to genuine ones; none is genuine."""
    known = set(mine)
    made = 0
    while made < n:
        way = rng.random()
        if way < 0.25:
            raw = rng.randbytes(rng.randrange(600))
        elif way < 0.3:
            raw = rng.choice(others)
        elif way < 0.9:
            raw = mutated(rng.choice([*mine, *others]), rng)
        else:
            raw = spliced(rng.choice(mine), rng.choice([*mine, *others]), rng)
        if raw not in known:
            made += 1
            yield raw


def state_of(station):
    return (
        len(station.journal.entries()),
        dict(station._last),
        [submission.status for submission in station.submissions.all()],
        station.account.spent(),
        len(station._minute),
    )


def grown(run, most):
    """Whether memory stays after a run what it was before, within so many bytes."""
    run(500)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run(5_000)
        return tracemalloc.get_traced_memory()[0] - before > most
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_station_answers_no_hostile_bytes_and_keeps_nothing_of_them(house):
    station, rng = house.stations["alpha"], random.Random(0)
    mine, others = to_alpha(house)
    before = state_of(station)

    def attack(n):
        for raw in strings(mine, others, rng, n):
            assert station.receive(raw) is None

    attack(EACH)
    assert not grown(attack, 200_000)
    assert state_of(station) == before
    for raw in mine * 20:  # genuine ones, again: the same answer, or none
        assert station.receive(raw) in (None, *(body for _, body in house.rail.came))
    assert state_of(station) == before


@pytest.mark.slow
def test_a_coordinator_takes_no_hostile_bytes_for_an_answer(house):
    rng, queue = random.Random(1), house.queue
    came = {name: [body for who, body in house.rail.came if who == name] for name in ("alpha", "beta")}
    forged = enclose(key_material("alpha"), house.hub.key_material.public_identity, "answer", [b"x"], study=STUDY, number=1)
    happened = []
    queue.watch = lambda what, *rest: happened.append(what)

    def attack(n):
        for raw in strings(came["alpha"], [*came["beta"], forged, *(body for _, body in house.rail.sent)], rng, n):
            house.rail.events.append(Arrived(rng.choice(["alpha", "beta", "nobody"]), raw))
            queue.wait(0.0)
            queue._catch_up()
        happened.clear()

    attack(EACH)
    assert not grown(attack, 200_000)
    assert (queue._sent, queue._silent) == ({}, {})
    for name in came:  # genuine ones, again, and each as the other's
        house.rail.events.extend(Arrived(other, body) for other in came for body in came[name])
    queue._catch_up()
    assert set(happened) == {"late", "forged"}


@pytest.mark.slow
def test_while_a_station_is_asked_hostile_bytes_are_no_answer(house):
    """A relay that sends anything but the answer, and the answer at last."""
    rng, alpha = random.Random(2), house.stations["alpha"]
    mine = [body for who, body in house.rail.came if who == "alpha"]

    def relay(raw):
        house.rail.events.extend(Arrived("alpha", body) for body in strings(mine, [raw], rng, 40))
        house.rail.events.extend(Arrived("alpha", body) for body in mine)
        return alpha.receive(raw)

    house.rail.stations["alpha"] = relay
    for _ in range(50):
        [letter] = house.ask("hello", [], names=["alpha"]).values()
        assert letter.kind == "hello"


@pytest.mark.slow
def test_a_hostile_coordinator_gets_codes_and_nothing_else(house):
    """Its letters are genuine: signed, sealed, numbered. What is in them is not."""
    station, rng, hub = house.stations["alpha"], random.Random(3), house.hub.key_material
    public_identity, number = house.key_materials["alpha"].public_identity, 1 << 50
    asked = [
        letter.parts
        for who, body in house.rail.sent
        if who == "alpha" and (letter := disclose(house.key_materials["alpha"], {"hub": hub.public_identity}, body)).parts
    ]
    known = [part for parts in asked for part in parts]
    kinds, answers = set(), 0
    for round in range(3_000):
        number += 1
        kind = rng.choice(["ask", "ask", "ask", "board", "end", "hello", "answer", "x"])
        parts = list(rng.choice(asked)) if rng.random() < 0.8 else [rng.choice(BOMBS)] * rng.choice([0, 1, 2, 2, 64])
        if parts:
            at = rng.randrange(len(parts))
            parts[at] = rng.choice([rng.choice(BOMBS), mutated(parts[at] or b"x", rng), rng.choice(known), rng.randbytes(50)])
        study = rng.choice([STUDY, STUDY, bytes(16), rng.randbytes(16)])
        if kind == "end" and study == STUDY:
            continue  # it may end its own study
        raw = enclose(hub, public_identity, kind, parts, study=study, number=number)
        reply = disclose(hub, house.hub.public_identities, station.receive(raw))
        kinds.add(reply.kind)
        assert reply.answers == digest_of(raw)
        if reply.kind == "refused":
            assert len(reply.parts) == 1
            assert len(reply.parts[0]) == 6
            assert reply.parts[0][:3] == b"HR-"
        elif reply.kind == "answer":
            answers += 1
        if round % 500 == 0:
            station.journal.verify()
    assert "refused" in kinds
    [(budget, spent, _)] = station.account.spent()
    assert spent <= budget.epsilon
    charges = [charge for _, charge in station.journal.charges() if charge.account == "all"]
    assert answers <= len(charges)
    assert not any(b"subprocess" in body for _, body in house.rail.came)


@pytest.mark.slow
def test_a_hostile_station_is_refused_and_harms_nobody(house):
    """Its letters are genuine: signed, sealed, to the letter that was asked. What is in them is not."""
    rng, network, heard = random.Random(4), house.network(life=1 << 20), []
    built = house.built(PRIVATE, ("age", "dose"), life=1 << 19)
    exchange = built.run.engine.exchange
    object.__setattr__(built.run.engine, "exchange", lambda outbox: heard.append(outbox) or exchange(outbox))
    last(built.listing.program(built.settings)(built.federation))
    genuine = [letter.parts for letter in house.opened("alpha", 3)]
    hub, codes = house.hub.key_material.public_identity, [*BOMBS, b"HR-213", b"HR-", b"HR-\xff\xff\xff"]

    def hostile(raw):
        letter = disclose(house.key_materials["alpha"], {"hub": hub}, raw)
        kind = rng.choice(["answer", "answer", "answer", "refused", "hello", "board", "x"])
        parts = list(rng.choice(genuine)) if rng.random() < 0.6 else [rng.choice(codes)]
        if parts and rng.random() < 0.8:
            parts[0] = mutated(parts[0] or b"x", rng)
        about = {"study": letter.study, "number": letter.number, "answers": letter.digest}
        return enclose(house.key_materials["alpha"], hub, kind, parts * rng.choice([0, 1, 1, 1, 1, 2]), **about)

    house.rail.stations = {"alpha": hostile}
    network.stations = {"alpha": ("alpha",)}
    network.__post_init__()
    outbox = replace(heard[-1], ids=("alpha",))
    for _ in range(3_000):
        try:
            found = network.exchange(outbox)
        except HedgerowError:
            continue
        assert isinstance(found, Inbox)
        if found.total is not None:
            assert found.total.shape == (found.layout.size,)


@pytest.mark.slow
def test_hostile_words_in_boarding_are_refused(house):
    rng, public_identity = random.Random(5), house.key_materials["alpha"].public_identity
    genuine = [letter.parts for letter in house.opened("alpha", 3)]
    hello = house.ask("hello", [], names=["alpha"])["alpha"].parts
    for _ in range(5_000):
        part = rng.choice([rng.choice(BOMBS), mutated(rng.choice([hello[0], *(parts[0] for parts in genuine)]), rng)])
        kind = rng.choice(["hello", "board", "refused", "x"])
        letter = Letter("alpha", "hub", kind, STUDY, 1, bytes(32), (part,) * rng.choice([0, 1, 1, 1, 2]), bytes(32))
        with suppress(MessageRefused):
            read_hello(letter)
        said = read_board(letter, ("alpha",), bytes(32), public_identity, 0.0)
        assert said.status in ("waiting", "refused")


def test_the_strings_are_many_and_close_to_genuine_ones(house):
    mine, others = to_alpha(house)
    made = list(strings(mine, others, random.Random(0), 400))
    assert len(set(made)) > 300
    assert sum(any(raw[:60] == one[:60] for one in [*mine, *others]) for raw in made) > 100
