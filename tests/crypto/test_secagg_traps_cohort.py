"""More traps of secure aggregation, of cohorts, models, shares and keys, each with a twin that falls into it."""

from contextlib import suppress

import numpy as np
import pytest
from secagg_driver import Play

from hedgerow.crypto import keys, shamir, streams
from hedgerow.crypto.keys import AgreementKey
from hedgerow.crypto.secagg import SecAgg, SecAggParty, letters, recovery
from hedgerow.crypto.secagg import epoch as epochs
from hedgerow.errors import CohortTooSmall, RoundRefused, SettingsInvalid


# ---- T9: the server does not choose a party's neighbours -------------------------------------------------------------
class Led(SecAggParty):
    """Takes the neighbours that it is told."""

    def _check_neighbours(self, name, members, size, place, neighbours):
        everybody = tuple(sorted(self.roster))
        return tuple(everybody[i] for i in neighbours.tolist()), letters.members_digest(everybody)


def surrounded(party):
    """Whether p0 lets the server choose its neighbours, with keys that they have signed."""
    play = Play(12, party=party, adversary="active", neighbours=4)

    def forge(step, id, letter):
        if (step, id) != ("shares", "p0"):
            return letter
        values = dict(zip(letters.NEIGHBOURS.kinds, letters.NEIGHBOURS.unpack(letter), strict=True))
        told = set(np.frombuffer(values["neighbours"], "<u4").tolist())
        chosen = [place for place in range(1, 12) if place not in told][:4]
        signed = {id: letters.KEY.unpack(answer) for step, id, _, answer in play.log if step == "keys"}
        order = sorted(play.ids)
        values["neighbours"] = np.array(chosen, "<u4").tobytes()
        values["publics"] = b"".join(signed[order[place]][1] for place in chosen)
        values["signatures"] = b"".join(signed[order[place]][2] for place in chosen)
        return letters.NEIGHBOURS.pack(**values)

    return "p0" in play.open(forge=forge)


def test_T9_neighbours_of_the_servers_choice_are_refused():
    assert not surrounded(SecAggParty)


def test_T9_a_twin_that_is_told_its_neighbours_is_caught():
    assert surrounded(Led)


def test_T9_keys_that_no_identity_of_the_roster_signed_are_refused():
    play = Play(5, adversary="active")
    stranger = AgreementKey.fresh().public

    def forge(step, id, letter):
        if step != "shares":
            return letter
        values = dict(zip(letters.NEIGHBOURS.kinds, letters.NEIGHBOURS.unpack(letter), strict=True))
        return letters.NEIGHBOURS.pack(**{**values, "publics": stranger + values["publics"][32:]})

    with pytest.raises(RoundRefused):
        play.open(forge=forge)
    assert {code for _, _, code in play.refused} == {"HR-244"}


# ---- T10: masks cancel only among those who were sent the same -------------------------------------------------------
def isolates():
    """Send p0 another model than the others, and ask each about its own: whether the total still comes out."""
    play = Play(5)
    rows = play.rows()
    other = letters.context(b"for p0", play.encoding(4).digest)

    def forge(step, id, letter):
        if (step, id) != ("contribution", "p0"):
            return letter
        values = dict(zip(letters.ROUND.kinds, letters.ROUND.unpack(letter), strict=True))
        return letters.ROUND.pack(**{**values, "context": other})

    total = play.total(rows, contexts={"p0": b"for p0"}, forge=forge)
    assert total.counted == tuple(play.ids)
    return (play.encoding(4).decode(total.total) == sum(rows.values())).all()


def test_T10_a_model_for_one_party_alone_spoils_the_total():
    assert not isolates()


def test_T10_a_twin_whose_masks_forget_the_model_is_caught(monkeypatch):
    real = letters.nonce
    monkeypatch.setattr(letters, "nonce", lambda bond, number, context, cohort: real(bond, number, b"", cohort))
    assert isolates()


def test_T10_a_round_about_another_model_than_was_sent_is_refused():
    play = Play(5)
    total = play.total(play.rows(), contexts={"p0": b"another"})
    assert total.counted == ("p1", "p2", "p3", "p4")
    assert play.refused == [("contribution", "p0", "HR-242")]


# ---- T11: one total of one question ----------------------------------------------------------------------------------
def difference_of_two_cohorts(once):
    """Ask all about a model, then all but p4: whether the difference is p4's row."""
    play = Play(5, once_per_context=once)
    rows = play.rows()
    try:
        whole, part = play.total(rows), play.total({id: rows[id] for id in play.ids[:4]})
    except RoundRefused:
        return False
    return ((whole.total - part.total).view(np.int64) == rows["p4"]).all()


def test_T11_a_second_total_of_the_same_question_is_refused():
    assert not difference_of_two_cohorts(once=True)


def test_T11_a_twin_that_answers_again_is_caught():
    assert difference_of_two_cohorts(once=False)


# ---- T13: what shares open is checked --------------------------------------------------------------------------------
def wrong_total(monkeypatch):
    """p0 shares another self-mask's seed than it uses and commits to: whether a wrong total is given."""
    play = Play(5)
    real, first = shamir.split, []

    def split(secrets, n, t):
        secrets = secrets.copy()
        if not first:
            secrets[0] ^= 1
        first.append(n)
        return real(secrets, n, t)

    monkeypatch.setattr(shamir, "split", split)
    rows = play.rows()
    try:
        total = play.total(rows)
    except RoundRefused:
        return False
    return (play.encoding(4).decode(total.total) != sum(rows.values())).any()


def test_T13_shares_that_open_another_secret_refuse_the_round(monkeypatch):
    assert not wrong_total(monkeypatch)


def test_T13_a_twin_without_commitments_is_caught(monkeypatch):
    monkeypatch.setattr(recovery, "check_commitments", lambda *_: None)
    assert wrong_total(monkeypatch)


@pytest.mark.parametrize("spoilt", [b"\0" * 35, b"\xff" * 35])
def test_T13_a_spoilt_share_refuses_the_round(spoilt):
    play = Play(3)

    def alter(step, id, answer):
        if step != "unmask":
            return answer
        name, number, raw = letters.OPENING.unpack(answer)
        return letters.OPENING.pack(epoch=name, round=number, shares=spoilt + raw[35:])

    with pytest.raises(RoundRefused, match="masks of round 1"):
        play.total(play.rows(), alter=alter)


def test_T13_an_altered_box_is_refused_by_its_receiver():
    play = Play(5)

    def alter(step, id, answer):
        if (step, id) != ("shares", "p1"):
            return answer
        values = dict(zip(letters.SHARES.kinds, letters.SHARES.unpack(answer), strict=True))
        return letters.SHARES.pack(**{**values, "boxes": bytes([values["boxes"][0] ^ 1]) + values["boxes"][1:]})

    total = play.drive(play.server.open(), alter=alter) and play.total(play.rows())
    assert total.counted == ("p1", "p2", "p3", "p4")


# ---- T21: points of low order ----------------------------------------------------------------------------------------
LOW_ORDER = [bytes(32), b"\1" + bytes(31), (2**255 - 20).to_bytes(32, "little")]


def takes_low_order(point):
    play = Play(4)

    def forge(step, id, letter):
        if (step, id) != ("shares", "p0"):
            return letter
        values = dict(zip(letters.NEIGHBOURS.kinds, letters.NEIGHBOURS.unpack(letter), strict=True))
        return letters.NEIGHBOURS.pack(**{**values, "publics": point + values["publics"][32:]})

    return "p0" in play.open(forge=forge)


@pytest.mark.parametrize("point", LOW_ORDER)
def test_T21_a_neighbours_key_of_low_order_is_refused(point):
    assert not takes_low_order(point)


def test_T21_a_twin_that_agrees_with_any_point_is_caught(monkeypatch):
    real = AgreementKey.agree
    monkeypatch.setattr(AgreementKey, "agree", lambda self, public: bytes(32) if public in LOW_ORDER else real(self, public))
    assert takes_low_order(LOW_ORDER[0])


@pytest.mark.parametrize("point", LOW_ORDER)
def test_T21_who_sends_a_key_of_low_order_is_no_member(point):
    play = Play(5)

    def alter(step, id, answer):
        name = letters.KEY.unpack(answer)[0] if step == "keys" else b""
        spoilt = (step, id) == ("keys", "p2")
        return letters.KEY.pack(epoch=name, public=point, signature=b"", standing=b"") if spoilt else answer

    assert play.open(alter=alter) == ("p0", "p1", "p3", "p4")


# ---- T22: two rows hide nothing --------------------------------------------------------------------------------------
class Small(SecAggParty):
    """Counts nobody."""

    def _check_enough(self, *given):
        pass


def answers_among_two(party):
    play = Play(3, party=party)
    play.open()

    def forge(step, id, letter):
        if step != "contribution":
            return letter
        values = dict(zip(letters.ROUND.kinds, letters.ROUND.unpack(letter), strict=True))
        return letters.ROUND.pack(**{**values, "cohort": letters.write_set(np.array([True, True, False]))})

    with suppress(RoundRefused):
        play.total(play.rows(), forge=forge)
    return any(step == "contribution" for step, *_ in play.log)


def test_T22_a_party_sends_no_row_to_a_cohort_of_two():
    assert not answers_among_two(SecAggParty)


def test_T22_a_twin_that_does_not_count_is_caught():
    assert answers_among_two(Small)


def test_T22_the_server_asks_no_cohort_of_two():
    play = Play(4)
    with pytest.raises(CohortTooSmall):
        play.total({id: row for id, row in play.rows().items() if id in ("p0", "p1")})
    with pytest.raises(SettingsInvalid):
        SecAgg(least=2)


# ---- T23: one key, one purpose ---------------------------------------------------------------------------------------
def keys_used_twice(monkeypatch):
    """Play two rounds with a dropout; which keys of parties seal two messages, or seal and mask."""
    sealing, masking = [], set()
    seal, mask = keys.seal, streams.add_streams

    def listen_seal(key, plaintext, associated):
        sealing.append(key)
        return seal(key, plaintext, associated)

    def listen_mask(row, used, signs, nonce):
        masking.update(used)
        return mask(row, used, signs, nonce)

    monkeypatch.setattr(keys, "seal", listen_seal)
    monkeypatch.setattr(streams, "add_streams", listen_mask)
    play = Play(4)
    for r in range(2):
        play.total(play.rows(seed=r))
    assert len(sealing) == 4 * (3 + 3)
    assert len(masking) > 4
    return {key for key in sealing if sealing.count(key) > 1} | (set(sealing) & masking)


def test_T23_no_key_seals_two_messages_or_both_seals_and_masks(monkeypatch):
    assert keys_used_twice(monkeypatch) == set()


def test_T23_a_twin_without_purposes_is_caught(monkeypatch):
    monkeypatch.setattr(epochs, "purpose", lambda pair, label, context: pair)
    assert keys_used_twice(monkeypatch)
