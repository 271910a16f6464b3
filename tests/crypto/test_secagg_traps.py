"""Traps of secure aggregation, each with a twin that falls into it: the same check passes on ours and fails on the twin."""

import copy
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from secagg_driver import Play, both_given_out, looks_uniform

from hedgerow.crypto import streams
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server, letters, recovery
from hedgerow.crypto.secagg.epoch import Epoch
from hedgerow.errors import MessageRefused, RoundRefused, SettingsInvalid
from hedgerow.store import Answered

SIZE = 4096


def repeated_seeds(monkeypatch, rounds):
    """A twin whose pairwise seeds are those of the session, not of the round."""
    real = streams.keystream

    def keystream(key, nonce, n):
        return real(key, nonce, 32) * rounds if n == 32 * rounds else real(key, nonce, n)

    monkeypatch.setattr(streams, "keystream", keystream)


# ---- T1: masks of two rounds are not the same ------------------------------------------------------------------------
def difference_of_two_rounds(play):
    rows = dict.fromkeys(play.ids, np.full(SIZE, 7))
    for _ in range(2):
        play.total(rows)
    return play.row_of("p0", 2) - play.row_of("p0", 1)


def test_T1_two_rounds_of_one_row_differ_by_uniform_numbers():
    assert looks_uniform(difference_of_two_rounds(Play(4)))


def test_T1_a_twin_that_keeps_its_seeds_is_caught(monkeypatch):
    repeated_seeds(monkeypatch, 3)
    monkeypatch.setattr(letters, "nonce", lambda *_: bytes(16))
    begin = Epoch.begin

    def keep_own(self, *given):
        own = self.own[0]
        begin(self, *given)
        self.own = [own] * 3

    monkeypatch.setattr(Epoch, "begin", keep_own)
    monkeypatch.setattr(recovery, "recover", lambda *_: None)
    monkeypatch.setattr("hedgerow.crypto.secagg.server.recover", lambda *_: None)
    assert not looks_uniform(difference_of_two_rounds(Play(4)))


# ---- T3: masks are integers of the ring and cancel exactly -----------------------------------------------------------
def exact(play):
    most = play.encoding(3).most
    rows = {id: np.array([most - i, 1 - most, i]) for i, id in enumerate(play.ids)}
    return (play.encoding(3).decode(play.total(rows).total) == sum(rows.values())).all()


def test_T3_totals_are_exact_at_the_end_of_the_range():
    assert exact(Play(4))


def test_T3_a_twin_with_floating_point_masks_is_caught(monkeypatch):
    add = streams.add_streams

    def add_floats(row, keys, signs, nonce):
        masks = np.zeros_like(row)
        add(masks, keys, signs, nonce)
        row[:] = (row.view(np.int64).astype(float) + masks.view(np.int64).astype(float) / 16).astype(np.int64).view(np.uint64)

    monkeypatch.setattr(streams, "add_streams", add_floats)
    assert not exact(Play(4))


# ---- T4: every number has a mask of its own --------------------------------------------------------------------------
def differences_within_a_row():
    play = Play(4)
    play.total(dict.fromkeys(play.ids, np.full(SIZE, 7)))
    return np.diff(play.row_of("p0"))


def test_T4_numbers_of_a_masked_row_differ_by_uniform_numbers():
    assert looks_uniform(differences_within_a_row())


def test_T4_a_twin_with_one_mask_for_a_row_is_caught(monkeypatch):
    add = streams.add_streams

    def add_one(row, keys, signs, nonce):
        one = np.zeros(1, row.dtype)
        add(one, keys, signs, nonce)
        row += one

    monkeypatch.setattr(streams, "add_streams", add_one)
    assert not looks_uniform(differences_within_a_row())


# ---- T6: never both secrets of a party -------------------------------------------------------------------------------
def ask_to_open(play, party, survivors):
    """Ask a party, once more, to open round 1 with this set of survivors."""
    flags = np.array([id in survivors for id in play.book.ids])
    letter = letters.UNMASK.pack(epoch=play.book.name, round=1, survivors=letters.write_set(flags), signers=b"", signatures=b"")
    answer = play.parties[party].answer("unmask", letter)
    play.log.append(("unmask", party, letter, answer))
    return letters.OPENING.unpack(answer)[2]


class Obliging(SecAggParty):
    """Opens a round as often as it is asked."""

    def _round(self, name, number):
        self._epoch.round.closed = False
        self.journal = Answered()
        return super()._round(name, number)


def opens_twice(play):
    play.total(play.rows())
    with suppress(MessageRefused):
        ask_to_open(play, "p0", {"p0", "p2", "p3", "p4"})
    return both_given_out(play, play.book)


def test_T6_a_round_is_opened_once():
    assert opens_twice(Play(5)) == set()


def test_T6_a_twin_that_opens_twice_is_caught():
    assert opens_twice(Play(5, party=Obliging)) == {(1, "p1")}


def opens_again_after_a_restart(tmp_path, journal):
    """A party is stored before it opens a round, opens it, is killed, and goes on from what was stored."""
    play = Play(5)
    play.parties["p0"].journal = journal(tmp_path)
    stored = {}

    def store(step, id, letter):
        if (step, id) == ("unmask", "p0"):
            stored["epoch"] = copy.deepcopy(play.parties["p0"]._epoch)
        return letter

    play.total(play.rows(), forge=store)
    if play.parties["p0"].journal.path:
        play.parties["p0"].journal.close()
    play.parties["p0"] = SecAggParty("p0", play.settings, journal=journal(tmp_path))
    play.parties["p0"]._epoch = stored["epoch"]
    with suppress(MessageRefused):
        ask_to_open(play, "p0", {"p0", "p2", "p3", "p4"})
    if play.parties["p0"].journal.path:
        play.parties["p0"].journal.close()
    return both_given_out(play, play.book)


def test_T6_a_round_is_opened_once_also_after_a_restart(tmp_path):
    assert opens_again_after_a_restart(tmp_path, lambda folder: Answered(Path(folder) / "p0.journal")) == set()


def test_T6_a_twin_without_a_journal_on_disk_is_caught(tmp_path):
    assert opens_again_after_a_restart(tmp_path, lambda folder: Answered(None)) == {(1, "p1")}


def test_T6_a_row_and_a_key_are_given_once_also_after_a_restart(tmp_path):
    play = Play(4)
    play.parties["p0"].journal = Answered(tmp_path / "p0.journal")
    play.open()
    stored = copy.deepcopy(play.parties["p0"]._epoch)
    play.total(play.rows())
    sent = {step: letter for step, id, letter, _ in play.log if id == "p0"}
    play.parties["p0"].journal.close()
    again = SecAggParty("p0", play.settings, journal=Answered(tmp_path / "p0.journal"))
    again._epoch = stored
    for step in ("keys", "contribution"):
        with pytest.raises(MessageRefused, match="before"):
            again.answer(step, sent[step], play.contribution(np.arange(4)))
    again.journal.close()


@pytest.mark.parametrize("changes", [{"threshold": 1}, {"neighbours": 4, "threshold": 2}])
def test_T6_a_threshold_that_two_halves_reach_is_refused(changes):
    with pytest.raises(SettingsInvalid):
        SecAgg(**changes)


def test_T6_survivors_outside_the_cohort_are_refused():
    play = Play(6)
    play.open()
    rows = play.rows()
    given = {id: rows[id] for id in play.ids[:5]}

    def forge(step, id, letter):
        if step != "unmask":
            return letter
        name, number, *_ = letters.UNMASK.unpack(letter)
        everybody = letters.write_set(np.ones(6, bool))
        return letters.UNMASK.pack(epoch=name, round=number, survivors=everybody, signers=b"", signatures=b"")

    with pytest.raises(RoundRefused):
        play.total(given, forge=forge)
    assert {code for step, _, code in play.refused if step == "unmask"} == {"HR-242"}


# ---- T7: nobody is told of other survivors than the others are -------------------------------------------------------
class Trusting(SecAggParty):
    """Asks for nobody's signature."""

    def _check_agreement(self, *given):
        pass


def tell_two_stories(party, split):
    """Tell some parties that p6 dropped out, and the others that it did not."""
    play = Play(7, party=party, adversary="active")

    def forge(step, id, letter):
        form = {"consistency": letters.SURVIVORS, "unmask": letters.UNMASK}.get(step)
        if form is None or id in play.ids[split:]:
            return letter
        name, number, raw, *rest = form.unpack(letter)
        flags = letters.read_set(raw, 7).flags.copy()
        flags[6] = False
        names = list(form.kinds)[3:]
        return form.pack(epoch=name, round=number, survivors=letters.write_set(flags), **dict(zip(names, rest, strict=True)))

    keep = Server._agree

    def agree(self, book, number, raw, survivors, alive):
        """A server that hands on every signature, whatever it signs."""
        real, self.roster = self.roster, AnySignature()
        opening = yield from keep(self, book, number, raw, survivors, alive)
        self.roster = real
        return opening

    play.server._agree = agree.__get__(play.server)
    with pytest.raises(RoundRefused):
        play.total(play.rows(), forge=forge)
    return both_given_out(play, play.book)


class AnySignature:
    def verify(self, *given):
        pass


@pytest.mark.parametrize("split", [1, 3, 5, 6])
def test_T7_two_stories_about_a_survivor_open_at_most_one_secret(split):
    assert tell_two_stories(SecAggParty, split) == set()


def test_T7_a_twin_that_checks_no_signature_is_caught():
    assert tell_two_stories(Trusting, 3) == {(1, "p6")}


# ---- T8: a repaired dropout opens nothing of other rounds ------------------------------------------------------------
def row_opened_by_another_round(monkeypatch):
    """p1 drops out of round 2; strip its row of round 1 with what the server learns from that. Returns what is left."""
    play = Play(5)
    opened = {}
    real = recovery._secrets

    def listen(book, targets, cohort, shares):
        found = real(book, targets, cohort, shares)
        opened[book.used] = {v: found[i].tobytes() for i, v in enumerate(targets.tolist())}
        return found

    monkeypatch.setattr(recovery, "_secrets", listen)
    rows = play.rows(SIZE)
    play.total(rows)
    play.total(rows, lost=lambda step, id: step == "contribution" and id == "p1" and "letter")
    book, cohort = play.book, letters.read_set(letters.write_set(np.ones(5, bool)), 5)
    context = letters.context(b"model", play.encoding(SIZE).digest)
    nonce = letters.nonce(book.bond, 1, context, cohort.digest)
    seeds = recovery._seeds(book, 2, 1, opened[2][1], np.ones(5, bool))
    row = play.row_of("p1", 1).copy()
    streams.add_streams(row, [opened[1][1], *(seed for seed, _ in seeds)], [-1, *(sign for _, sign in seeds)], nonce)
    return row, rows["p1"]


def test_T8_opening_a_dropout_leaves_its_other_rounds_masked(monkeypatch):
    left, row = row_opened_by_another_round(monkeypatch)
    assert looks_uniform(left - row.astype(np.uint64))


def test_T8_a_twin_with_keys_of_the_session_is_caught(monkeypatch):
    repeated_seeds(monkeypatch, 3)
    left, row = row_opened_by_another_round(monkeypatch)
    assert not looks_uniform(left - row.astype(np.uint64))
