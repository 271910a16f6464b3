"""Parties that send wrong shares: they stop nobody, and no total is wrong."""

from contextlib import suppress

import numpy as np
import pytest
from secagg_driver import Play

from hedgerow.crypto import shamir
from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.secagg import letters, recovery
from hedgerow.errors import MessageRefused, RoundRefused


def spoiling(liars, how):
    """Change every share that these parties send."""

    def alter(step, id, answer):
        if step != "unmask" or id not in liars:
            return answer
        name, number, raw = letters.OPENING.unpack(answer)
        spoilt = b"".join(how(raw[i : i + 35]) for i in range(0, len(raw), 35))
        return letters.OPENING.pack(epoch=name, round=number, shares=spoilt)

    return alter


def plus_one(raw):
    return shamir.pack((shamir.unpack(raw, 1) + 1) % shamir.P)


LIES = [plus_one, lambda raw: bytes(35), lambda raw: b"\xff" * 35]
lies = pytest.mark.parametrize("how", LIES, ids=["plus one", "zeros", "no share"])


def total_is_right(play, rows, left=(), **hooks):
    total = play.total(rows, lost=lambda step, id: step == "contribution" and id in left and "letter", **hooks)
    assert set(total.counted) == set(rows) - set(left)
    return (play.encoding(4).decode(total.total) == sum(rows[id] for id in total.counted)).all()


@lies
@pytest.mark.parametrize("liar", ["p0", "p3", "p6"])
@pytest.mark.parametrize("changes", [{}, {"neighbours": 6}, {"adversary": "active"}], ids=str)
def test_one_party_with_wrong_shares_stops_no_round(how, liar, changes):
    play = Play(8, **changes)
    for left in ((), ("p5",)):
        assert total_is_right(play, play.rows(), left, alter=spoiling({liar}, how))
    assert not play.book.doubted.any()


def test_a_twin_that_tries_the_first_shares_only_is_stopped_in_every_round(monkeypatch):
    def stop(*given):
        raise MessageRefused("as before")

    monkeypatch.setattr(recovery, "_repaired", stop)
    play = Play(9)
    for _ in range(3):
        with pytest.raises(RoundRefused):
            play.total(play.rows(), alter=spoiling({"p3"}, plus_one))


@lies
@pytest.mark.parametrize("liars", [2, 3, 5, 8])
def test_several_are_out_voted_or_the_round_is_void(how, liars):
    play = Play(9)
    with suppress(RoundRefused):
        assert total_is_right(play, play.rows(), alter=spoiling(set(play.ids[:liars]), how))


def test_who_shares_another_secret_than_it_uses_is_asked_no_more_in_the_epoch(monkeypatch):
    play, real, first = Play(6), shamir.split, []

    def split(secrets, n, t):
        secrets = secrets.copy()
        if not first:
            secrets[: play.settings.rounds_per_epoch] ^= 1
        first.append(n)
        return real(secrets, n, t)

    monkeypatch.setattr(shamir, "split", split)
    with pytest.raises(RoundRefused, match="shares of p0 "):
        play.total(play.rows())
    total = play.total(play.rows())
    assert total.counted == tuple(play.ids[1:])
    assert (play.encoding(4).decode(total.total) == sum(play.rows()[id] for id in total.counted)).all()


def test_too_few_shares_doubt_nobody():
    play = Play(6)
    with pytest.raises(RoundRefused, match="fewer than 3 shares"):
        play.total(play.rows(), lost=lambda step, id: step == "unmask" and id not in ("p0", "p1") and "answer")
    assert np.flatnonzero(play.book.doubted).size == 0
    assert total_is_right(play, play.rows())


def test_an_epoch_in_which_nobody_can_answer_is_followed_by_another():
    """One party says another key than it has: its boxes open nowhere, and all others refuse the round."""
    play = Play(5)

    def alter(step, id, answer):
        if (step, id) != ("keys", "p2"):
            return answer
        name, public = letters.KEY.unpack(answer)[0], AgreementKey.fresh().public
        return letters.KEY.pack(epoch=name, public=public, signature=b"", standing=b"")

    with pytest.raises(RoundRefused):
        play.total(play.rows(), alter=alter)
    assert total_is_right(play, play.rows())
