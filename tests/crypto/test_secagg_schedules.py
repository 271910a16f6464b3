"""Random schedules of dropouts: at every step, of letters and of answers, round after round."""

import os
import random
from collections import Counter

import pytest
from secagg_driver import Play, both_given_out, given_out

from hedgerow.crypto.secagg import SecAgg, letters, recovery
from hedgerow.errors import RoundRefused

EACH = 2 * int(os.environ.get("HEDGEROW_SCHEDULES", "250"))
"""Schedules of each federation: four thousand in all, sixteen thousand by `./scripts/test all`; a broken twin needs forty."""

FEDERATIONS = [
    *[(SecAgg(rounds_per_epoch=40), range(4, 10))] * 4,
    (SecAgg(rounds_per_epoch=12, threshold=3, bits=32), [4, 5, 6]),
    *[(SecAgg(rounds_per_epoch=40, neighbours=4, bits=16), [7, 8, 9])] * 2,
    (SecAgg(rounds_per_epoch=40, least=5, neighbours=6), [7, 8, 9]),
]


def losing(rng, rates):
    """A schedule: each party loses a letter or an answer at each step, at a rate of that step."""
    drawn = {}

    def lost(step, id):
        if (step, id) not in drawn:
            drawn[step, id] = rng.random() < rates[step] and rng.choice(["letter", "answer"])
        return drawn[step, id]

    return lost


def schedules(n_schedules, seed, settings, sizes):
    """Play schedules; count outcomes. Whatever happens, a total is right, a refusal has a cause, and no party is laid open."""
    rng, outcomes = random.Random(seed), Counter()
    play, rows = None, None
    for i in range(n_schedules):
        if i % 100 == 0:
            play = Play(rng.choice(sizes), settings)
            rows = play.rows(2, seed=i)
        steps = ("keys", "shares", "contribution", "consistency", "unmask")
        rates = {step: rng.choice([0, 0, 0.1, 0.25, 0.5]) for step in steps}
        if rng.random() < 0.02:
            play.server._book = None
        play.log.clear()
        outcomes[outcome(play, rows, losing(rng, rates))] += 1
    return outcomes


def outcome(play, rows, lost):
    before = play.book
    try:
        total = play.total(rows, lost=lost)
    except RoundRefused:
        kind = "refused" if play.book is None or not holds(play) else "refused without a cause"
    else:
        right = (play.encoding(2).decode(total.total) == sum(rows[id] for id in total.counted)).all()
        came = tuple(sorted(id for step, id, *_ in play.log if step == "contribution"))
        kind = "right" if right and total.counted == came and holds(play) else "wrong"
    for book in filter(None, {before, play.book}):
        assert not both_given_out(play, book)
    return kind


def holds(play):
    """Whether enough rows and openings came for a total, counted from the log by the rule itself."""
    book, rows, opened = play.book, set(), set()
    rounds = [entry for entry in play.log if entry[0] == "contribution"]
    if not rounds:
        return False
    cohort = letters.read_set(letters.ROUND.unpack(rounds[0][2])[2], len(book.ids)).flags
    for step, id, *_ in play.log:
        rows |= {book.places[id]} if step == "contribution" else set()
        opened |= {book.places[id]} if step == "unmask" else set()
    near = [set(row) for row in book.graph.neighbours.tolist()]
    return len(rows) >= play.settings.least and all(
        len(near[v] & opened) >= book.threshold for v in range(len(book.ids)) if cohort[v]
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_thousands_of_schedules_of_dropouts_give_the_survivors_sum_or_a_refusal(part):
    outcomes = schedules(EACH, part, *FEDERATIONS[part])
    assert set(outcomes) == {"right", "refused"}
    assert min(outcomes.values()) > EACH / 12.5


@pytest.mark.slow
def test_schedules_against_a_server_that_may_lie():
    outcomes = schedules(200, 11, SecAgg(rounds_per_epoch=40, adversary="active"), [4, 5, 6])
    assert set(outcomes) == {"right", "refused"}


def test_a_server_that_forgets_one_mask_fails_the_same_count(monkeypatch):
    seeds = recovery._seeds
    monkeypatch.setattr(recovery, "_seeds", lambda *given: seeds(*given)[1:])
    outcomes = schedules(40, 3, SecAgg(rounds_per_epoch=40), [5, 6])
    assert outcomes["wrong"] > 0


def test_a_server_that_says_both_of_one_party_fails_the_same_count():
    play = Play(5)

    def forge(step, id, letter):
        if step != "unmask":
            return letter
        name, number, raw, *_ = letters.UNMASK.unpack(letter)
        flags = letters.read_set(raw, 5).flags.copy()
        flags[1] &= id in ("p0", "p1")
        return letters.UNMASK.pack(epoch=name, round=number, survivors=letters.write_set(flags), signers=b"", signatures=b"")

    with pytest.raises(RoundRefused):
        play.total(play.rows(), forge=forge)
    assert both_given_out(play, play.book) == {(1, "p1")}
    assert given_out(play, play.book)[1, "p1"] == {"b": {"p0"}, "e": {"p2", "p3", "p4"}}
