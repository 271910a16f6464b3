"""Messages that nobody sent: cut, altered, replayed, out of order, too long, of other types, or plain noise."""

import copy
import random
from collections import Counter
from contextlib import suppress

import msgpack
import numpy as np
import pytest
from secagg_driver import Play

from hedgerow.crypto.secagg import letters
from hedgerow.errors import HedgerowError, RoundRefused

STEPS = ("keys", "shares", "contribution", "consistency", "unmask")
ODD = [
    None,
    True,
    -1,
    0,
    1,
    2**63,
    1.5,
    float("nan"),
    "",
    "x",
    "\0" * 40,
    b"",
    b"\0",
    bytes(32),
    b"\xff" * 70,
    [],
    [1],
    {},
    {"a": 1},
]


def mutated(rng, message, corpus):
    """One of ten ways to spoil a message."""
    way = rng.randrange(10)
    if way == 0:
        return message[: rng.randrange(len(message))]
    if way == 1:
        return message + rng.randbytes(rng.randrange(1, 9))
    if way == 2:
        return rng.randbytes(rng.randrange(200))
    if way == 3:
        other = rng.choice(corpus)
        return message[: rng.randrange(len(message))] + other[rng.randrange(len(other)) :]
    if way in (4, 5):
        raw = bytearray(message)
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            raw[rng.randrange(min(len(raw), 120))] ^= 1 << rng.randrange(8)
        return bytes(raw)
    if way == 6:
        return rng.choice(corpus)
    if way == 7:
        return bytes([rng.choice([0xDC, 0xDD, 0xDE, 0xDF, 0xC6, 0xDB, 0xC9])]) + b"\xff" * rng.randrange(6) + message
    parts = msgpack.unpackb(message)
    if way == 8:
        parts[rng.randrange(len(parts))] = rng.choice(ODD)
    else:
        i = rng.randrange(len(parts))
        parts = rng.choice([parts[:i] + parts[i + 1 :], [*parts, rng.choice(ODD)], parts[::-1], [parts], {1: parts}])
    return msgpack.packb(parts)


def state(party):
    """Everything that a party remembers, in comparable form."""
    epoch = party._epoch
    kept = None
    if epoch is not None:
        now = epoch.round
        kept = (
            *(epoch.name, epoch.bond, epoch.last, tuple(epoch.seeds), tuple(epoch.own), epoch.boxes, epoch.inbox),
            None if epoch.held is None else epoch.held.tobytes(),
            None if now is None else (now.number, now.cohort.digest, now.closed, now.agreed and now.agreed.digest),
        )
    return id(party._pending), dict(party.journal._known), kept


def moments(play):
    """A party's states in the course of an epoch, each with what restores it; and every letter that was sent."""
    found = {}

    def keep(step, id, letter):
        if id == "p0":
            party = play.parties[id]
            found[step, len(found)] = party._pending, copy.deepcopy(party._epoch), dict(party.journal._known)
        return letter

    for r in range(2):
        play.total(play.rows(seed=r), forge=keep)
    return list(found.values()), [letter for _, id, letter, _ in play.log if id in ("p0", "p1")]


def restore(party, moment):
    party._pending, party._epoch = moment[0], copy.deepcopy(moment[1])
    party.journal._known = dict(moment[2])


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["curious", "active"])
def test_thirty_thousand_spoilt_letters_move_no_party(adversary):
    rng, seen = random.Random(1), Counter()
    play = Play(4, adversary=adversary)
    stored, corpus = moments(play)
    party, given = play.parties["p0"], play.contribution(np.arange(4))
    genuine, corpus = corpus, [*corpus, b"\x90", msgpack.packb([1, "secagg", b""])]
    by_step = {step: [letter for s, id, letter, _ in play.log if s == step and id in ("p0", "p1")] for step in STEPS}
    for _ in range(100):
        moment = rng.choice(stored)
        restore(party, moment)
        before = state(party)
        for _ in range(300):
            step = rng.choice(STEPS)
            letter = mutated(rng, rng.choice(by_step[step] or genuine), corpus)
            try:
                party.answer(step, letter, rng.choice([given, given, None]))
            except HedgerowError as error:
                seen[error.code] += 1
            else:  # another lawful letter, such as one with another cohort
                seen["answered"] += 1
                restore(party, moment)
        assert state(party) == before
    assert seen["HR-242"] > 29_000
    assert seen["answered"] < 900
    assert set(seen) <= {"HR-242", "HR-244", "answered"}


@pytest.mark.slow
def test_forty_thousand_spoilt_answers_move_no_server():
    rng = random.Random(2)
    play = Play(5, adversary="active", rounds_per_epoch=200)
    rows = play.rows()
    play.total(rows)
    book, server = play.book, play.server
    sent = {step: {id: answer for s, id, _, answer in play.log if s == step} for step in STEPS}
    corpus = [answer for answers in sent.values() for answer in answers.values()] + [b"\x90"]
    cohort, asked = np.ones(5, bool), dict.fromkeys(play.ids)
    shares = dict(book.boxes), dict(book.lists), dict(book.commitments)
    for _ in range(2000):
        spoilt = {
            step: {id: mutated(rng, answer, corpus) for id, answer in answers.items()} | {"stranger": b"\x90"}
            for step, answers in sent.items()
        }
        assert set(server._publics(book.name, tuple(play.ids), spoilt["keys"])) <= set(play.ids)
        for place in range(5):
            server._enter(book, place, spoilt["shares"][book.ids[place]])
        book.boxes, book.lists, book.commitments = map(dict, shares)
        assert set(server._rows(book, 1, spoilt["contribution"], asked, play.encoding(4))) <= set(range(5))
        assert set(server._openings(book, 1, spoilt["unmask"], cohort, set(asked))) <= set(range(5))
    total = play.total(rows)
    assert (play.encoding(4).decode(total.total) == sum(rows.values())).all()


@pytest.mark.slow
def test_conversations_with_spoilt_answers_end_in_a_total_or_a_refusal():
    rng, ends = random.Random(3), Counter()
    play = Play(6, rounds_per_epoch=30)
    rows, corpus = play.rows(), [b"\x90"]
    for _ in range(400):
        play.log.clear()
        spoils = rng.choice(STEPS)

        def alter(step, id, answer, spoils=spoils):
            corpus.append(answer)
            del corpus[:-200]
            return mutated(rng, answer, corpus) if step == spoils and rng.random() < 0.3 else answer

        try:
            total = play.total(rows, alter=alter)
        except RoundRefused:
            ends["refused"] += 1
            continue
        ends["total"] += 1
        if spoils != "contribution":  # a row that is altered in form is a row
            assert (play.encoding(4).decode(total.total) == sum(rows[id] for id in total.counted)).all()
    assert min(ends["total"], ends["refused"]) > 20


def test_letters_of_another_party_or_an_earlier_round_are_refused():
    play = Play(4, rounds_per_epoch=4)
    for r in range(2):
        play.total(play.rows(seed=r))
    before, given = state(play.parties["p0"]), play.contribution(np.arange(4))
    refused = 0
    for step, _, letter, _ in list(play.log):
        for as_step in STEPS:
            with pytest.raises(HedgerowError, match=r"HR-24[24]"):
                play.parties["p0"].answer(as_step, letter, given)
            refused += 1
        assert state(play.parties["p0"]) == before, step
    assert refused == 5 * len(play.log)


@pytest.mark.parametrize("step", [*STEPS, "nothing", "", None, 3])
@pytest.mark.parametrize(
    "letter", [b"", b"\xc1", b"\x93\x01", bytes(10**6), "text", None, bytearray(9), b"\xdd\xff\xff\xff\xff"]
)
def test_what_is_no_letter_is_refused(step, letter):
    play = Play(3)
    with pytest.raises(HedgerowError, match="HR-242"):
        play.parties["p0"].answer(step, letter)


def test_a_box_that_comes_twice_is_taken_once_and_another_is_refused():
    play = Play(4, rounds_per_epoch=4)
    lost = {"p1"}

    def forge(step, id, letter):
        if step == "contribution" and id == "p1" and not lost:
            values = dict(zip(letters.ROUND.kinds, letters.ROUND.unpack(letter), strict=True))
            assert values["inbox"]
            letter = letters.ROUND.pack(**{**values, "inbox": values["inbox"][::-1]})
        return letter

    rows = play.rows()
    assert play.total(rows, lost=lambda step, id: step == "contribution" and id in lost and "answer").counted == (
        "p0",
        "p2",
        "p3",
    )
    lost.clear()
    with suppress(RoundRefused):
        play.total(rows, forge=forge)
    assert play.refused[-1] == ("contribution", "p1", "HR-242")
    assert play.total(rows).counted == tuple(play.ids)
