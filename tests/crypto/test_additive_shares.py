"""Additive shares: exact totals, dropouts, what each observer sees, what is refused, and twins that leave a rule out."""

import random
from collections import Counter
from contextlib import suppress
from copy import copy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hidden_rounds import Altered, contributions_of, encoded_sum, encoding_of, flipped, looks_uniform, rows_of

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.keys import AgreementKey, Identity, Roster, derive
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares, Aggregator
from hedgerow.crypto.shares.derived import share_key
from hedgerow.crypto.shares.letters import AGREE, ASK, COLLECT, ENROL, KEY, ROW, SUM, TOTAL
from hedgerow.crypto.shares.round_task import RoundTask
from hedgerow.crypto.streams import mask_bytes
from hedgerow.errors import CohortTooSmall, HedgerowError, KeyInvalid, MessageRefused, RoundRefused, SettingsInvalid
from hedgerow.store import Answered

IDS = tuple(f"store {i}" for i in range(8))


class Watched(Aggregator):
    """An aggregator that tells what it saw: the letters, and its own share of every row."""

    def answer(self, step, letter):
        self.letters = [*getattr(self, "letters", []), (step, letter)]
        reply = super().answer(step, letter)
        if step == "agree":
            self.agreed = self._round
        return reply

    def _opened(self, secret, box, found):
        row = super()._opened(secret, box, found)
        self.opened = [*getattr(self, "opened", []), row]
        return row

    def share(self, place):
        """What this aggregator added for one party in the last round."""
        if self._opens:
            return np.frombuffer(self.opened[place], "<u8")
        key = share_key(self._bonds[place], self.agreed.purpose)
        return np.frombuffer(mask_bytes(key, bytes(16), self.agreed.total.nbytes), "<u8")


def watched(k=3, least=3, roster=None, journals=None):
    keys = [AgreementKey.fresh() for _ in range(k)]
    publics = [key.public for key in keys]
    journals = journals or [None] * k
    return [Watched(key, publics, least=least, roster=roster, journal=j) for key, j in zip(keys, journals, strict=True)]


def shared(n=5, k=3, kind=AdditiveParty, aggregators=None, **options):
    settings = AdditiveShares(k, **options)
    server = AdditiveServer(settings, IDS[:n], aggregators or watched(k))
    return server, {id: kind(id, settings, server.keys) for id in IDS[:n]}


def ask(server, parties, *, size=3, rows=None, bits=64, drops=lambda step, party: False, refused=None):
    encoding = encoding_of(size, len(parties), bits)
    rows = rows_of(parties, encoding) if rows is None else rows
    given = contributions_of(rows, encoding)
    found = drive(server.total(tuple(parties), encoding, b"model and question"), parties, given, drops=drops, refused=refused)
    assert (found.total == encoded_sum(rows, found.counted, encoding)).all()
    return found


def rewritten(form, letter, **changes):
    return form.pack(**(dict(zip(form.kinds, form.unpack(letter), strict=True)) | changes))


def letter_of(aggregator, step):
    return [letter for name, letter in aggregator.letters if name == step][-1]


# ---- totals and dropouts
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_total_is_exact(bits, k):
    assert ask(*shared(k=k), bits=bits).counted == IDS[:5]


def test_an_epoch_serves_many_rounds_and_newcomers():
    server, parties = shared(6)
    asked = []
    for n in (4, 4, 6):
        ask(server, dict(list(parties.items())[:n]), drops=lambda step, party: asked.append((step, party)))
    assert Counter(asked) == Counter(
        {("enrol", id): 1 for id in IDS[:6]} | {("contribution", id): 3 if id in IDS[:4] else 1 for id in IDS[:6]}
    )


def test_open_enrols_everybody_beforehand():
    server, parties = shared()
    assert drive(server.open(), parties) == IDS[:5]
    assert ask(server, parties, drops=lambda step, party: step == "enrol").counted == IDS[:5]


def test_an_epoch_ends_after_its_rounds():
    server, parties = shared(rounds=2)
    epochs = {ask(server, parties) and server._epoch for _ in range(5)}
    assert len(epochs) == 3


def test_corrections_come_in_parts_where_they_are_many(monkeypatch):
    monkeypatch.setattr("hedgerow.crypto.shares.server.PART", 100)
    server, parties = shared()
    assert ask(server, parties).counted == IDS[:5]
    assert [step for step, _ in server.aggregators[-1].letters].count("collect") == 3


@pytest.mark.slow
def test_whatever_is_lost_the_total_is_that_of_the_others_or_refused():
    rng, ends = random.Random(5), Counter()
    server, parties = shared(6, rounds=5)
    for _ in range(500):
        lost = {(step, id) for step in ("enrol", "contribution") for id in IDS[:6] if rng.random() < rng.choice([0.05, 0.6])}
        try:
            found = ask(server, parties, size=2, drops=lambda step, id: (step, id) in lost)
        except RoundRefused:
            ends["refused"] += 1
        else:
            assert not any(("contribution", id) in lost for id in found.counted)
            ends["all" if len(found.counted) == 6 else "some"] += 1
    assert min(ends["refused"], ends["all"], ends["some"]) > 20


class Lost(Watched):
    at = ""

    def answer(self, step, letter):
        if step == self.at:
            raise ConnectionError("gone")
        return super().answer(step, letter)


@pytest.mark.parametrize("step", ["enrol", "collect", "agree", "total"])
def test_a_round_without_an_aggregator_is_refused_and_the_next_one_begins_anew(step):
    aggregators = watched()
    aggregators[2].__class__ = Lost
    server, parties = shared(aggregators=aggregators)
    aggregators[2].at = step
    with pytest.raises(RoundRefused, match=f"HR-241.*{step}"):
        ask(server, parties)
    aggregators[2].at = ""
    assert ask(server, parties).counted == IDS[:5]


# ---- who sees what (T1, T4)
class OneMask(AdditiveParty):
    """One number of each stream for all coordinates."""

    def _split(self, row, shares):
        one = np.zeros(1, row.dtype)
        super()._split(one, shares)
        row += one


def partial_views_are_uniform(kind=AdditiveParty, k=3):
    """Whatever k - 1 aggregators hold of one row, given the row itself; returns what all of them make of it."""
    aggregators = watched(k)
    server, parties = shared(3, k, kind, aggregators)
    encoding = encoding_of(2000, 3)
    rows = rows_of(parties, encoding) | {IDS[0]: np.full(2000, 0.25)}
    ask(server, parties, size=2000, rows=rows)
    shares, row = [one.share(0) for one in aggregators], encoding.encode(rows[IDS[0]])
    for group in combinations(shares, k - 1):
        for share in group:
            assert looks_uniform(share)
            assert looks_uniform(np.diff(share))
        assert looks_uniform(np.sum(group, axis=0, dtype=row.dtype) - row)
    return np.sum(shares, axis=0, dtype=row.dtype), row


@pytest.mark.parametrize("k", [2, 3])
def test_all_aggregators_but_one_see_noise_and_all_of_them_the_row(k):
    together, row = partial_views_are_uniform(k=k)
    assert (together == row).all()  # the assumption, as its page states it


def test_T4_goes_red_on_one_mask_for_all_coordinates():
    with pytest.raises(AssertionError):
        partial_views_are_uniform(OneMask)


def rounds_hide_what_stayed_the_same():
    aggregators = watched()
    server, parties = shared(3, aggregators=aggregators)
    rows = rows_of(parties, encoding_of(2000, 3))
    first, second = (ask(server, parties, size=2000, rows=rows).masked[IDS[0]] for _ in range(2))
    opened = [np.frombuffer(row, "<u8") for row in aggregators[-1].opened]
    assert looks_uniform(first - second)  # what the server sees
    assert looks_uniform(opened[0] - opened[3])  # what the aggregator that opens sees


def test_T1_two_rounds_of_the_same_row_differ_by_uniform_numbers():
    rounds_hide_what_stayed_the_same()


def test_T1_goes_red_on_keys_that_last_from_round_to_round(monkeypatch):
    lasting = lambda secret, purpose: derive(secret, "additive share")  # noqa: E731
    monkeypatch.setattr("hedgerow.crypto.shares.party.share_key", lasting)
    monkeypatch.setattr("hedgerow.crypto.shares.aggregator.share_key", lasting)
    with pytest.raises(AssertionError):
        rounds_hide_what_stayed_the_same()


def test_the_shares_of_a_round_read_in_another_ring_are_other_streams():
    server, parties = shared()
    aggregator = server.aggregators[0]
    ask(server, parties, bits=64, size=2)
    sums = []
    for bits, size in ((64, 2), (16, 8)):
        letter = rewritten(AGREE, letter_of(aggregator, "agree"), round=2, bits=bits, size=size)
        again = copy(aggregator)
        again.answer("agree", letter)
        again._among = [None] * 3  # as if the others were in league with the server
        _, _, total = SUM.unpack(again.answer("total", rewritten(TOTAL, letter_of(aggregator, "total"), round=2)))
        sums.append(np.frombuffer(total, np.uint16))
    assert (sums[0] != sums[1]).all()


# ---- small sets (T22)
def test_T22_settings_below_three_are_refused():
    for settings in ({"least": 2}, {"aggregators": 1}, {"rounds": 0}):
        with pytest.raises(SettingsInvalid, match="HR-511"):
            AdditiveShares(**settings)
    with pytest.raises(SettingsInvalid):
        Aggregator(AgreementKey.fresh(), [], least=2)


def test_T22_a_cohort_below_the_minimum_is_refused_before_anybody_is_asked():
    server, _ = shared()
    with pytest.raises(CohortTooSmall, match="No party was asked"):
        next(server.total(IDS[:2], encoding_of(3, 2)))


def an_aggregator_refuses_a_set_of_two(kind):
    aggregators = watched()
    for one in aggregators:
        one.__class__ = kind
    server, parties = shared(aggregators=aggregators)
    ask(server, parties)
    two = rewritten(AGREE, letter_of(aggregators[0], "agree"), round=2, places=b"\3")
    with pytest.raises(MessageRefused, match="needs 3"):
        aggregators[0].answer("agree", two)


def test_T22_an_aggregator_refuses_a_set_of_two_whatever_the_server_wants():
    an_aggregator_refuses_a_set_of_two(Watched)


def test_T22_goes_red_on_an_aggregator_without_a_minimum():
    class Careless(Watched):
        least = property(lambda self: 0, lambda self, value: None)

    with pytest.raises(pytest.fail.Exception):
        an_aggregator_refuses_a_set_of_two(Careless)


# ---- aggregators agree on the set, once
def test_a_round_has_one_set_and_one_total():
    server, parties = shared()
    ask(server, parties)
    for one in server.aggregators:
        agreed = letter_of(one, "agree")
        for step, letter in (
            ("agree", agreed),
            ("agree", rewritten(AGREE, agreed, places=b"\x0f")),
            ("total", letter_of(one, "total")),
        ):
            with pytest.raises(MessageRefused, match="HR-242"):
                one.answer(step, letter)


def test_a_set_that_differs_between_aggregators_gives_no_total():
    server, parties = shared()
    tell = server.aggregators[0].answer
    server.aggregators[0].answer = lambda step, letter: tell(
        step, rewritten(AGREE, letter, places=b"\x0f") if step == "agree" else letter
    )
    with pytest.raises(RoundRefused, match="'total': HR-242"):
        ask(server, parties)


def test_aggregators_that_were_told_of_different_keys_give_no_total():
    server, parties = shared()
    tell, own = server.aggregators[0].answer, AgreementKey.fresh().public

    def meddling(step, letter):
        if step == "enrol":
            letter = rewritten(ENROL, letter, publics=own + ENROL.unpack(letter)[3][32:])
        return tell(step, letter)

    server.aggregators[0].answer = meddling
    with pytest.raises(RoundRefused, match="'total': HR-242"):
        ask(server, parties)


def test_the_set_is_that_of_the_sound_corrections():
    server, parties = shared()
    last = server.aggregators[-1]
    tell = last.answer
    last.answer = lambda step, letter: tell(step, rewritten(AGREE, letter, places=b"\x0f") if step == "agree" else letter)
    with pytest.raises(RoundRefused, match="'agree': HR-242"):
        ask(server, parties)


def test_corrections_are_taken_once():
    server, parties = shared()
    ask(server, parties)
    last = server.aggregators[-1]
    letter = letter_of(last, "collect")
    with pytest.raises(MessageRefused, match="is over"):
        last.answer("collect", letter)
    last.answer("collect", rewritten(COLLECT, letter, round=2))  # none opens: they were sealed for round 1
    assert not last._round.sound.any()
    with pytest.raises(MessageRefused):
        server.aggregators[0].answer("collect", rewritten(COLLECT, letter, round=2))


def test_a_party_is_enrolled_once_in_an_epoch_and_an_epoch_is_served_once(tmp_path):
    with Answered(tmp_path / "journal") as journal:
        aggregators = watched(journals=[journal, None, None])
        server, parties = shared(aggregators=aggregators)
        drive(server.open(), parties)
        letter = letter_of(aggregators[0], "enrol")
        for again in (letter, rewritten(ENROL, letter, before=5)):
            with pytest.raises(MessageRefused, match="twice"):
                aggregators[0].answer("enrol", again)
        drive(server.open(), parties)
        with pytest.raises(MessageRefused, match="served before"):
            aggregators[0].answer("enrol", letter)
    with Answered(tmp_path / "journal") as journal:
        publics = [one.public for one in aggregators]
        restarted = Aggregator(aggregators[0]._key, publics, journal=journal)
        with pytest.raises(MessageRefused, match="served before"):
            restarted.answer("enrol", letter)


def test_T21_a_key_of_low_order_is_not_enrolled_and_hurts_nobody_else():
    server, parties = shared()
    parties[IDS[1]] = Altered(
        parties[IDS[1]],
        answer=lambda step, raw: rewritten(KEY, raw, public=bytes(32)) if step == "enrol" else raw,
    )
    assert ask(server, parties).counted == (IDS[0], *IDS[2:5])


def test_an_aggregator_that_answers_nonsense_voids_the_round_and_the_next_is_answered():
    for step in ("enrol", "collect", "agree", "total"):
        server, parties = shared()
        real = server.aggregators[-1].answer
        server.aggregators[-1].answer = lambda at, letter, real=real, step=step: b"?" if at == step else real(at, letter)
        with pytest.raises(RoundRefused, match="aggregator's answer"):
            ask(server, parties)
        server.aggregators[-1].answer = real
        assert ask(server, parties).counted == IDS[:5]


# ---- parties
def test_a_round_is_answered_once_and_in_order():
    server, parties = shared()
    asked = []
    me = parties[IDS[0]]
    parties[IDS[0]] = Altered(me, letter=lambda step, letter: asked.append(letter) or letter)
    ask(server, parties)
    ask(server, parties)
    given = contributions_of(rows_of(IDS[:1], encoding_of(3, 5)), encoding_of(3, 5))[IDS[0]]
    for letter in asked[1:]:
        with pytest.raises(MessageRefused, match="over here"):
            me.answer("contribution", letter, given)
    with pytest.raises(MessageRefused, match="beyond its end"):
        me.answer("contribution", rewritten(ASK, asked[-1], round=5000), given)
    with pytest.raises(MessageRefused, match="not in the epoch"):
        me.answer("contribution", rewritten(ASK, asked[-1], epoch=bytes(32), round=3), given)
    me.answer("contribution", rewritten(ASK, asked[-1], round=3), given)


def test_a_party_makes_one_key_for_an_epoch_also_after_a_restart(tmp_path):
    server, _ = shared()
    letter = next(server.open()).letters[IDS[0]]
    with Answered(tmp_path / "journal") as journal:
        party = AdditiveParty(IDS[0], server.settings, server.keys, journal=journal)
        assert party.answer("enrol", letter) == party.answer("enrol", letter)
        party.answer("enrol", next(server.open()).letters[IDS[0]])
        with pytest.raises(MessageRefused, match="left"):
            party.answer("enrol", letter)
    with Answered(tmp_path / "journal") as journal, pytest.raises(MessageRefused):
        AdditiveParty(IDS[0], server.settings, server.keys, journal=journal).answer("enrol", letter)


def test_a_party_takes_only_the_aggregators_that_it_pinned():
    server, parties = shared()
    other = AdditiveServer(server.settings, IDS[:5])
    refused = {}
    assert drive(other.open(), parties, refused=refused) == ()
    assert set(refused.values()) == {"HR-244"}
    for keys in (server.keys[:2], (server.keys[0],) * 3):
        with pytest.raises(KeyInvalid):
            AdditiveParty(IDS[0], server.settings, keys)


def test_T10_a_party_with_another_model_does_not_answer():
    server, parties = shared()
    parties[IDS[1]] = Altered(parties[IDS[1]], given=lambda c: c and replace(c, context=b"another model"))
    refused = {}
    assert IDS[1] not in ask(server, parties, refused=refused).counted
    assert refused == {IDS[1]: "HR-242"}


def test_T10_a_share_for_other_terms_is_left_out():
    server, parties = shared()
    encoding = encoding_of(3, 5)
    other = b"another model"

    def told(step, letter):
        return letter if step == "enrol" else rewritten(ASK, letter, terms=RoundTask(encoding.digest, other).terms)

    parties[IDS[1]] = Altered(parties[IDS[1]], letter=told, given=lambda c: c and replace(c, context=other))
    assert ask(server, parties).counted == (IDS[0], *IDS[2:5])


def test_a_correction_of_an_earlier_round_is_left_out():
    server, parties = shared()
    kept = []

    def replayed(step, raw):
        if step == "contribution":
            kept.append(raw)
            _, round, *_ = ROW.unpack(raw)
            return rewritten(ROW, kept[0], round=round)
        return raw

    parties[IDS[1]] = Altered(parties[IDS[1]], answer=replayed)
    assert ask(server, parties).counted == IDS[:5]
    assert ask(server, parties).counted == (IDS[0], *IDS[2:5])


def test_a_row_that_was_altered_is_left_out_whichever_bit_it_was():
    server, parties = shared()
    ask(server, parties)
    inner = parties[IDS[1]]
    for bit in range(0, 1500, 151):
        parties[IDS[1]] = Altered(inner, answer=lambda step, raw: flipped(raw, bit) if step == "contribution" else raw)
        assert ask(server, parties).counted == (IDS[0], *IDS[2:5])


# ---- rosters
def test_with_a_roster_only_signed_keys_are_enrolled():
    identities = {id: Identity.fresh() for id in IDS[:4]}
    roster = Roster({id: identity.public for id, identity in identities.items()})
    settings = AdditiveShares()
    server = AdditiveServer(settings, IDS[:5], watched(roster=roster), roster)
    parties = {id: AdditiveParty(id, settings, server.keys, roster=roster, identity=identities[id]) for id in IDS[:4]}
    parties[IDS[4]] = AdditiveParty(IDS[4], settings, server.keys)  # T9: made up by the server
    assert ask(server, parties).counted == IDS[:4]
    server.roster = None  # a server that does not look finds aggregators that do
    server._begin()
    with pytest.raises(RoundRefused):
        ask(server, parties)


def test_a_party_that_signs_by_an_older_roster_is_named_where_too_few_are_left():
    identities = {id: Identity.fresh() for id in IDS[:4]}
    roster = Roster({id: identity.public for id, identity in identities.items()})
    older = Roster({id: identities[id].public for id in IDS[:3]})
    settings = AdditiveShares()
    server = AdditiveServer(settings, IDS[:4], watched(roster=roster), roster)

    def party(id, roster):
        return AdditiveParty(id, settings, server.keys, roster=roster, identity=identities[id])

    parties = {id: party(id, older if id in IDS[:2] else roster) for id in IDS[:4]}
    with pytest.raises(RoundRefused, match=f"2 of 4 parties .* Signatures of {IDS[0]}, {IDS[1]} do not hold") as caught:
        ask(server, parties)
    assert "hedgerow keys welcome" in caught.value.remedy
    parties |= {id: party(id, roster) for id in IDS[:2]}  # they have taken in the latest
    assert set(ask(server, parties).counted) == set(IDS[:4])


# ---- bytes
@pytest.mark.slow
def test_made_up_bytes_crash_no_aggregator_and_do_not_outlast_an_epoch():
    rng = random.Random(3)
    server, parties = shared()
    ask(server, parties)
    ask(server, parties)
    for one in server.aggregators:
        steps = list(one.letters)
        for _ in range(1500):
            step, raw = rng.choice(steps)
            raw = bytearray(raw)
            for _ in range(rng.randrange(1, 4)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            with suppress(HedgerowError):  # some are lawful: another epoch, a later round
                Aggregator.answer(
                    one, rng.choice([step, step, "total"]), bytes(raw[: rng.choice([None, rng.randrange(len(raw))])])
                )
    drive(server.open(), parties)
    assert ask(server, parties).counted == IDS[:5]


def test_what_is_cut_short_or_of_another_step_changes_nothing():
    server, parties = shared()
    ask(server, parties)
    for one in server.aggregators:
        before = (one._epoch, one._last, one._members, one._round, list(one._bonds))
        for _, letter in list(one.letters):
            for step, raw in (
                ("enrol", letter[:-1]),
                ("collect", letter + b"0"),
                ("agree", b""),
                ("total", letter),
                ("x", letter),
            ):
                with pytest.raises(MessageRefused):
                    one.answer(step, raw)
        assert before == (one._epoch, one._last, one._members, one._round, list(one._bonds))
