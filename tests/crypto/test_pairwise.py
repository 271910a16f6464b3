"""Pairwise masks: exact totals, dropouts, what the server sees, what a party refuses, and twins that leave a rule out."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hidden_rounds import Altered, contributions_of, encoded_sum, encoding_of, flipped, looks_uniform, rows_of

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.keys import AgreementKey, Identity, Roster, derive
from hedgerow.crypto.pairwise import GROUP, KEY, KEYS, PairwiseMasks, PairwiseParty, PairwiseServer, divided, terms
from hedgerow.errors import CohortTooSmall, KeyInvalid, MessageRefused, RangeExceeded, RoundRefused, SettingsInvalid
from hedgerow.store import Answered

IDS = tuple(f"store {i}" for i in range(9))


def ring(n=5, kind=PairwiseParty, settings=None, **options):
    settings = settings or PairwiseMasks()
    ids = IDS[:n]
    return PairwiseServer(settings, ids), {id: kind(id, settings, **options) for id in ids}


def ask(server, parties, *, size=3, rows=None, bits=64, drops=lambda step, party: False, refused=None):
    encoding = encoding_of(size, len(parties), bits)
    rows = rows_of(parties, encoding) if rows is None else rows
    given = contributions_of(rows, encoding)
    found = drive(server.total(tuple(parties), encoding, b"model and question"), parties, given, drops=drops, refused=refused)
    assert (found.total == encoded_sum(rows, found.counted, encoding)).all()
    return found


def letters(n=4, made=None):
    """Walk a round by hand up to the letters of the groups."""
    server, parties = made or ring(n)
    encoding = encoding_of(3, n)
    given = contributions_of(rows_of(parties, encoding), encoding)
    conversation = server.total(tuple(parties), encoding, b"model and question")
    first = next(conversation)
    second = conversation.send({id: parties[id].answer("keys", letter) for id, letter in first.letters.items()})
    return parties, given, first.letters, second.letters


def rewritten(letter, **changes):
    fields = dict(zip(GROUP.kinds, GROUP.unpack(letter), strict=True))
    return GROUP.pack(**(fields | changes))


# ---- totals and dropouts
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("group", [None, 3, 4])
def test_the_total_is_exact(bits, group):
    found = ask(*ring(9, settings=PairwiseMasks(group)), bits=bits)
    assert found.counted == IDS


def test_decoded_totals_are_those_of_the_rows():
    server, parties = ring()
    encoding = encoding_of(4, 5)
    rows = {id: np.round(np.arange(4) * i / 3, 3) for i, id in enumerate(parties)}
    found = drive(server.total(IDS[:5], encoding), parties, contributions_of(rows, encoding, b""))
    np.testing.assert_allclose(encoding.decode(found.total), sum(rows.values()), atol=5 * 2.0**-20)


def test_a_party_lost_before_the_groups_are_made_costs_nothing():
    found = ask(*ring(), drops=lambda step, party: step == "keys" and party == IDS[1])
    assert found.counted == (IDS[0], *IDS[2:5])


def test_without_groups_a_party_lost_after_the_keys_voids_the_round():
    server, parties = ring()
    with pytest.raises(RoundRefused, match="HR-241"):
        ask(server, parties, drops=lambda step, party: step == "contribution" and party == IDS[1])
    assert ask(server, parties).counted == IDS[:5]  # and the next round is none the worse


def test_groups_fall_alone():
    server, parties = ring(9, settings=PairwiseMasks(3))
    found = ask(server, parties, drops=lambda step, party: step == "contribution" and party == IDS[4])
    assert len(found.counted) == 6
    assert IDS[4] not in found.counted
    assert len(found.masked) == 8


@pytest.mark.slow
def test_whatever_is_lost_the_total_is_exact_or_refused():
    rng, ends = random.Random(5), Counter()
    for _ in range(500):
        n, group = rng.randint(3, 9), rng.choice([None, 3, 4])
        lost = {(step, id) for step in ("keys", "contribution") for id in IDS[:n] if rng.random() < rng.choice([0.02, 0.3])}
        try:
            found = ask(*ring(n, settings=PairwiseMasks(group)), size=2, drops=lambda step, id: (step, id) in lost)
        except RoundRefused:
            ends["refused"] += 1
        else:
            assert not any(("contribution", id) in lost or ("keys", id) in lost for id in found.counted)
            ends["all" if len(found.counted) == n else "some"] += 1
    assert min(ends["refused"], ends["all"], ends["some"]) > 20


def test_groups_are_public_balanced_and_change_from_round_to_round():
    groups = divided(IDS, 4, b"salt")
    assert sorted(map(len, groups)) == [4, 5]
    assert sorted(id for group in groups for id in group) == sorted(IDS)
    assert groups == divided(IDS[::-1], 4, b"salt")
    assert groups != divided(IDS, 4, b"other")
    assert list(map(len, divided(IDS[:3], 4, b"salt"))) == [3]


# ---- what the server sees (T1, T3, T4)
class LastingKey(PairwiseParty):
    """The thesis' mistake: one key for ever, and masks made from nothing else."""

    key = None

    def _fresh(self):
        self.key = self.key or AgreementKey.fresh()
        return self.key

    def _seed(self, secret, first, second, group):
        return derive(secret, "pairwise")


class OneMask(PairwiseParty):
    """OpenFL 1.9's mistake: one number masks all coordinates."""

    def _mask(self, row, seeds, signs):
        one = np.zeros(1, row.dtype)
        super()._mask(one, seeds, signs)
        row += one


def rounds_hide_what_stayed_the_same(kind):
    server, parties = ring(3, kind)
    encoding = encoding_of(2000, 3)
    rows = rows_of(parties, encoding)
    first, second = (ask(server, parties, size=2000, rows=rows).masked[IDS[0]] for _ in range(2))
    assert looks_uniform(first - second)


def coordinates_hide_how_they_differ(kind):
    server, parties = ring(3, kind)
    masked = ask(server, parties, size=2000, rows=dict.fromkeys(parties, np.zeros(2000))).masked[IDS[0]]
    assert looks_uniform(np.diff(masked))


def test_T1_two_rounds_of_the_same_row_differ_by_uniform_numbers():
    rounds_hide_what_stayed_the_same(PairwiseParty)


def test_T1_goes_red_on_a_lasting_key():
    with pytest.raises(AssertionError):
        rounds_hide_what_stayed_the_same(LastingKey)


def test_T4_coordinates_of_a_masked_row_differ_by_uniform_numbers():
    coordinates_hide_how_they_differ(PairwiseParty)


def test_T4_goes_red_on_one_mask_for_all_coordinates():
    with pytest.raises(AssertionError):
        coordinates_hide_how_they_differ(OneMask)


def test_T3_masked_rows_are_whole_numbers_of_the_ring():
    found = ask(*ring(3), bits=32)
    assert {row.dtype for row in found.masked.values()} == {np.dtype(np.uint32)}


def test_all_others_of_a_group_together_know_the_row_of_the_last():
    server, parties = ring(4)
    encoding = encoding_of(3, 4)
    rows = rows_of(parties, encoding)
    total = ask(server, parties, rows=rows).total
    others = encoded_sum(rows, IDS[1:4], encoding)
    assert (total - others == encoding.encode(rows[IDS[0]])).all()  # the assumption, as its page states it


# ---- small cohorts (T22)
def test_T22_settings_below_three_are_refused():
    with pytest.raises(SettingsInvalid, match="HR-511"):
        PairwiseMasks(least=2)
    with pytest.raises(SettingsInvalid, match="below least"):
        PairwiseMasks(group=4, least=5)


def test_T22_a_cohort_below_the_minimum_is_refused_before_anybody_is_asked():
    server, _ = ring(5)
    with pytest.raises(CohortTooSmall) as refusal:
        next(server.total(IDS[:2], encoding_of(3, 2)))
    assert not refusal.value.asked


def two_are_refused(kind):
    parties = {id: kind(id, PairwiseMasks()) for id in IDS[:2]}
    encoding = encoding_of(3, 2)
    given = contributions_of(rows_of(parties, encoding), encoding)
    _, _, _, sample = letters(3)
    keys = KEYS.pack(session=bytes(32), round=1)
    publics = b"".join(KEY.unpack(parties[id].answer("keys", keys))[2] for id in IDS[:2])
    agreed = terms(encoding, given[IDS[0]].context)
    letter = rewritten(sample[IDS[0]], session=bytes(32), round=1, ids=list(IDS[:2]), keys=publics, terms=agreed)
    with pytest.raises(MessageRefused, match="group of 2"):
        parties[IDS[0]].answer("contribution", letter, given[IDS[0]])


class Careless(PairwiseParty):
    """A party without rules of its own."""

    def _check(self, *given):
        pass


def test_T22_a_party_refuses_a_group_of_two_whatever_the_server_wants():
    two_are_refused(PairwiseParty)


def test_T22_goes_red_on_a_party_that_does_not_look():
    with pytest.raises(pytest.fail.Exception):
        two_are_refused(Careless)


# ---- one answer to a round
def test_a_round_is_answered_once():
    parties, given, keys, groups = letters()
    party = parties[IDS[0]]
    party.answer("contribution", groups[IDS[0]], given[IDS[0]])
    for step, letter in (("contribution", groups[IDS[0]]), ("keys", keys[IDS[0]])):
        with pytest.raises(MessageRefused, match="HR-242"):
            party.answer(step, letter, given[IDS[0]])


def test_an_earlier_round_is_over_once_a_later_one_began():
    server, parties = ring(3)
    early = KEYS.pack(session=server._session, round=1)
    ask(server, parties)
    ask(server, parties)
    with pytest.raises(MessageRefused, match="begun before"):
        parties[IDS[0]].answer("keys", early)


def test_a_round_is_answered_once_also_by_a_party_that_was_restarted(tmp_path):
    letter = KEYS.pack(session=bytes(32), round=1)
    with Answered(tmp_path / "journal") as journal:
        PairwiseParty(IDS[0], PairwiseMasks(), journal=journal).answer("keys", letter)
    with Answered(tmp_path / "journal") as journal, pytest.raises(MessageRefused, match="HR-242"):
        PairwiseParty(IDS[0], PairwiseMasks(), journal=journal).answer("keys", letter)


def test_a_refusal_changes_nothing():
    parties, given, _, groups = letters()
    party = parties[IDS[0]]
    too_large = replace(given[IDS[0]], row=np.full(3, 1e30))
    for bad, contribution in ((b"", given[IDS[0]]), (groups[IDS[0]][:-1], given[IDS[0]]), (groups[IDS[0]], None)):
        with pytest.raises(MessageRefused):
            party.answer("contribution", bad, contribution)
    with pytest.raises(RangeExceeded):
        party.answer("contribution", groups[IDS[0]], too_large)
    party.answer("contribution", groups[IDS[0]], given[IDS[0]])


# ---- letters that were made up
def test_strangers_doubles_and_weak_keys_are_refused():
    parties, given, _, groups = letters()
    me, letter = IDS[0], groups[IDS[0]]
    keys = GROUP.unpack(letter)[4]
    for changes, error in (
        ({"ids": [me, me, *IDS[2:4]]}, MessageRefused),
        ({"ids": [*IDS[1:4], "store 8"]}, MessageRefused),  # without the party itself
        ({"ids": [*IDS[:3][::-1], IDS[3]]}, MessageRefused),  # out of order
        ({"keys": keys[:32] * 2 + keys[64:]}, MessageRefused),
        ({"keys": keys[:-1]}, MessageRefused),
        ({"keys": keys[32:64] + keys[:32] + keys[64:]}, MessageRefused),  # another key for the party itself
        ({"keys": keys[:32] + bytes(32) + keys[64:]}, KeyInvalid),  # T21: a point of low order
        ({"round": 2}, MessageRefused),
        ({"terms": bytes(32)}, MessageRefused),
    ):
        with pytest.raises(error):
            parties[me].answer("contribution", rewritten(letter, **changes), given[me])
    parties[me].known = set(IDS[:3])
    with pytest.raises(KeyInvalid, match="unknown"):
        parties[me].answer("contribution", letter, given[me])


def test_T21_who_sends_a_key_of_low_order_loses_no_group():
    server, parties = ring()
    altered = {id: Altered(one) for id, one in parties.items()}
    head = lambda raw: dict(zip(("session", "round"), KEY.unpack(raw), strict=False))  # noqa: E731
    altered[IDS[1]].reply = lambda step, raw: KEY.pack(**head(raw), public=bytes(32), signature=b"") if step == "keys" else raw
    assert ask(server, altered).counted == (IDS[0], *IDS[2:5])


def test_more_parties_than_fixed_point_has_room_for_are_not_asked():
    server, parties = ring()
    with pytest.raises(RangeExceeded, match="No party was asked"):
        next(server.total(tuple(parties), encoding_of(3, 4), b""))


def test_a_server_asks_members_only_and_each_once():
    server, _ = ring(4)
    for ids in ((*IDS[:4], "stranger"), (*IDS[:4], IDS[0])):
        with pytest.raises(KeyInvalid, match="No party was asked"):
            next(server.total(ids, encoding_of(3, 5)))


def test_T10_a_party_with_another_model_or_encoding_does_not_answer():
    server, parties = ring(4)
    parties[IDS[1]] = Altered(parties[IDS[1]], given=lambda c: c and replace(c, context=b"another model"))
    refused = {}
    with pytest.raises(RoundRefused):
        ask(server, parties, refused=refused)
    assert refused == {IDS[1]: "HR-242"}


def test_T10_masks_do_not_cancel_among_parties_that_were_told_different_terms():
    server, parties = ring(4)
    encoding = encoding_of(3, 4)
    rows = rows_of(parties, encoding)
    given = contributions_of(rows, encoding)
    other = replace(given[IDS[1]], context=b"another model")

    def told(step, letter):
        return letter if step == "keys" else rewritten(letter, terms=terms(encoding, other.context))

    parties[IDS[1]] = Altered(parties[IDS[1]], letter=told, given=lambda c: c and other)
    seen = []
    server._rows = lambda *args: seen.append(PairwiseServer._rows(server, *args)) or seen[0]
    with pytest.raises(RoundRefused):
        drive(server.total(tuple(parties), encoding, b"model and question"), parties, given)
    garbage = np.sum(list(seen[0].values()), axis=0, dtype=np.uint64)  # what a server that does not look would count
    assert (garbage[:3] != encoded_sum(rows, IDS[:4], encoding)).all()


@pytest.mark.slow
@pytest.mark.parametrize("step", ["keys", "contribution"])
def test_bits_that_change_on_the_way_to_a_party_never_give_a_wrong_total(step):
    rng, lengths = random.Random(1), set()
    for _ in range(60):
        server, parties = ring(4)
        bit = rng.randrange(1 << 16)
        parties[IDS[1]] = Altered(parties[IDS[1]], letter=lambda s, raw: flipped(raw, bit) if s == step else raw)
        try:
            lengths.add(len(ask(server, parties).counted))  # which compares the total
        except RoundRefused:
            lengths.add(0)
    assert lengths <= {0, 3}  # never four: a changed letter is not answered as if it were whole


# ---- rosters
def signed_ring(n=4):
    identities = {id: Identity.fresh() for id in IDS[:n]}
    roster = Roster({id: identity.public for id, identity in identities.items()})
    settings = PairwiseMasks()
    parties = {id: PairwiseParty(id, settings, roster=roster, identity=identities[id]) for id in identities}
    return PairwiseServer(settings, IDS[:n], roster), parties


def test_with_a_roster_totals_are_the_same():
    assert ask(*signed_ring()).counted == IDS[:4]


def test_a_server_that_puts_a_key_of_its_own_in_is_found_by_the_roster_alone():
    own = AgreementKey.fresh().public

    def meddling(step, letter):
        if step == "keys":
            return letter
        keys = GROUP.unpack(letter)[4]
        return rewritten(letter, keys=keys[:32] + own + keys[64:])

    server, parties = signed_ring()
    parties[IDS[0]], refused = Altered(parties[IDS[0]], letter=meddling), {}
    with pytest.raises(RoundRefused):
        ask(server, parties, refused=refused)
    assert refused == {IDS[0]: "HR-244"}
    server, parties = ring(4)
    parties[IDS[0]], refused = Altered(parties[IDS[0]], letter=meddling), {}
    with pytest.raises(RoundRefused):
        ask(server, parties, refused=refused)
    assert refused == {}  # the assumption without a roster: the server passes keys on unchanged


def test_what_a_party_did_not_sign_counts_as_lost():
    for step, counted in (("keys", 3), ("contribution", 0)):
        server, parties = signed_ring()
        parties[IDS[1]] = Altered(parties[IDS[1]], answer=lambda s, raw: flipped(raw, 8 * len(raw) - 800) if s == step else raw)
        try:
            assert len(ask(server, parties).counted) == counted
        except RoundRefused:
            assert counted == 0


def test_a_roster_needs_an_identity():
    with pytest.raises(KeyInvalid):
        PairwiseParty(IDS[0], PairwiseMasks(), roster=Roster({IDS[0]: Identity.fresh().public}))


# ---- bytes
@pytest.mark.slow
def test_made_up_bytes_are_refused_with_a_code():
    rng = random.Random(3)
    parties, given, keys, groups = letters(made=signed_ring())
    me = IDS[0]
    for _ in range(3000):
        raw = bytearray(rng.choice([keys[me], groups[me], rng.randbytes(rng.randrange(90))]))
        for _ in range(rng.randrange(1, 4)):
            if raw:
                raw[rng.randrange(len(raw))] = rng.randrange(256)
        raw = bytes(raw[: rng.choice([None, None, rng.randrange(1 + len(raw))])])
        if raw not in (keys[me], groups[me]):
            with pytest.raises((MessageRefused, KeyInvalid)):
                parties[me].answer("contribution", raw, given[me])
    parties[me].answer("contribution", groups[me], given[me])
