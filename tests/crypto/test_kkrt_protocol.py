"""KKRT against sets, against twins that are broken, and what each side gets to see."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kkrt_driver import NAMES, carried, common, deal, entropy_of, lax

from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi.kkrt import KKRT, protocol
from hedgerow.crypto.psi.kkrt.code import Code
from hedgerow.crypto.psi.kkrt.cuckoo import place
from hedgerow.errors import AlignmentRefused, IdsInvalid, MessageRefused, SettingsInvalid

LAX = lax()


@pytest.fixture
def dealt(monkeypatch):
    deal(monkeypatch)


def numbered(start, stop):
    return [b"person %d" % i for i in range(start, stop)]


def check(alice, bob, **options):
    lists = {"alice": list(alice), "bob": list(bob)}
    found = carried(lists, LAX, **options)
    in_common = common(lists, found)
    assert set(in_common["alice"]) == set(alice) & set(bob)
    assert in_common["alice"] == in_common["bob"]
    assert len(in_common["alice"]) == len(set(in_common["alice"]))
    return found


# ---- golden: what `set` says ----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("alice", "bob"),
    [
        ([], []),
        ([], [b"a"]),
        ([b"a"], []),
        ([b""], [b"\0"]),
        (numbered(0, 40), numbered(0, 40)[::-1]),
        (numbered(0, 30), numbered(30, 90)),
        (numbered(0, 900), numbered(450, 2000)),
        (["José".encode(), "名".encode()], ["名".encode(), unicodedata.normalize("NFD", "José").encode()]),
    ],
)
def test_the_intersection_is_that_of_sets_with_real_transfers(alice, bob):
    check(alice, bob)


ids = st.sets(
    st.one_of(st.binary(max_size=3), st.text(max_size=3).map(str.encode), st.sampled_from(numbered(0, 9))), max_size=60
)


@pytest.mark.slow
@given(ids, ids, ids, st.integers(0, 99))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_intersection_is_that_of_sets(dealt, shared, alice, bob, seed):
    check(shared | alice, shared | bob, seed=seed)


def test_parts_of_bins_tags_and_names_are_joined(dealt, monkeypatch):
    whole = check(numbered(0, 700), numbered(300, 1100))
    for name, size in {"BINS_IN_LETTER": 128, "TAGS_IN_LETTER": 97, "NAMES_IN_LETTER": 41, "_PART": 13}.items():
        monkeypatch.setattr(protocol, name, size)
    parts = check(numbered(0, 700), numbered(300, 1100))
    assert len(parts.letters) > len(whole.letters) + 30
    assert {name: rows.tolist() for name, rows in parts.rows.items()} == {n: rows.tolist() for n, rows in whole.rows.items()}


def test_v8_forms_of_one_name_meet_in_the_normal_form(dealt):
    names = ["José", " ANA\u00a0", "Straße"]
    other = [unicodedata.normalize("NFD", "JOSÉ"), "ana", "STRASSE"]
    assert len(check(LAX.read(names), LAX.read(other)).rows["alice"]) == 3


def test_one_side_learns_and_the_other_gets_no_rows(dealt):
    lists = {"alice": numbered(0, 50), "bob": numbered(20, 60)}
    for learner in NAMES:
        found = carried(lists, KKRT(learns=learner, small_domain="accepted"))
        (other,) = set(NAMES) - {learner}
        assert set(common(lists, found)[learner]) == set(numbered(20, 50))
        assert found.rows[other].shape == (0,)


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_v7_sixty_four_equal_ids_are_refused_before_a_letter_is_written():
    with pytest.raises(IdsInvalid, match="63 of 65 ids"):
        LAX.peer("alice", NAMES, [b"same"] * 64 + [b"other"])
    with pytest.raises(IdsInvalid, match="63 of 65 ids"):
        LAX.read(["same"] * 64 + ["other"])


def test_v7_a_failed_placement_is_repeated_and_nobody_is_told(dealt, monkeypatch):
    lists = {"alice": numbered(0, 50), "bob": numbered(20, 90)}
    straight, tries = carried(lists), []

    def fails_twice(bins, size, entropy):
        tries.append(bins.copy())
        return None if len(tries) < 3 else place(bins, size, entropy)

    monkeypatch.setattr(protocol, "place", fails_twice)
    repeated = carried(lists)
    assert len(tries) == 3
    assert (tries[0] != tries[2]).any()  # a fresh salt gives other bins
    assert [(a, b, len(c)) for a, b, c in repeated.letters] == [(a, b, len(c)) for a, b, c in straight.letters]
    assert set(repeated.rows["bob"]) == set(straight.rows["bob"])


@pytest.mark.parametrize("learns", [None, "alice", "bob"])
def test_too_few_in_common_are_refused_at_both_and_the_sender_sees_no_name(dealt, learns):
    by = KKRT(least=10, learns=learns, small_domain="accepted")
    lists = {"alice": numbered(0, 40), "bob": numbered(31, 80)}
    peers = {name: by.peer(name, NAMES, ids, entropy=entropy_of(i)) for i, (name, ids) in enumerate(lists.items())}
    refused, last = {}, {}

    def watched(name):
        try:
            return (yield from peers[name])
        except AlignmentRefused as error:
            refused[name] = str(error)

    meet({name: watched(name) for name in NAMES}, lambda sender, recipient, letter: last.update({recipient: letter}))
    assert set(refused) == set(NAMES)
    assert all("fewer than 10" in reason for reason in refused.values())
    sender = "bob" if learns in (None, "alice") else "alice"
    assert len(last[sender]) < 20


@pytest.mark.parametrize(("n", "m"), [(5, 50), (11, 1200)])
def test_v13_lists_that_are_short_or_of_very_different_length_are_refused(dealt, n, m):
    with pytest.raises(AlignmentRefused):
        carried({"alice": numbered(0, n), "bob": numbered(0, m)}, KKRT(least=10, small_domain="accepted"))


def test_parties_under_different_settings_are_refused(dealt):
    peers = {name: KKRT(least=least).peer(name, NAMES, numbered(0, 20)) for name, least in zip(NAMES, (10, 11), strict=True)}
    with pytest.raises(MessageRefused, match="other settings"):
        meet(peers)


@pytest.mark.parametrize("wrong", [{"least": 2}, {"most": 2 * 10**9}, {"ratio": 0.5}, {"small_domain": "maybe"}])
def test_settings_that_are_not_lawful_are_refused(wrong):
    with pytest.raises(SettingsInvalid):
        KKRT(**wrong)


@pytest.mark.parametrize(("me", "names"), [("alice", ("alice",)), ("alice", ("alice", "bob", "carol")), ("eve", NAMES)])
def test_two_parties_align_and_no_more(me, names):
    with pytest.raises(SettingsInvalid, match="aligns two parties"):
        LAX.peer(me, names, [])


def mangled(change, at):
    """Carry a run out in which the letter number `at` was changed on its way."""
    lists, count = {"alice": numbered(0, 40), "bob": numbered(20, 90)}, [0]
    peers = {name: LAX.peer(name, NAMES, ids, entropy=entropy_of(i)) for i, (name, ids) in enumerate(lists.items())}

    def on_the_way(name):
        letters = next(peers[name])
        while True:
            for recipient in letters:
                if count[0] == at:
                    letters = {recipient: change(letters[recipient])}
                count[0] += 1
            try:
                letters = peers[name].send((yield letters))
            except StopIteration as end:
                return end.value

    return meet({name: on_the_way(name) for name in NAMES})


@pytest.mark.parametrize("at", [0, 1, 2, *range(4, 12)])  # 3 is the points, which the dealer does not need
def test_a_letter_that_was_cut_is_refused(dealt, at):
    count = len(carried({"alice": numbered(0, 40), "bob": numbered(20, 90)}).letters)
    assert count == 12
    with pytest.raises(MessageRefused):
        mangled(lambda letter: letter[:-1], at)


def test_names_of_strangers_are_refused(dealt):
    with pytest.raises(MessageRefused, match="no record here"):
        mangled(lambda letter: letter[:-1] + bytes([letter[-1] ^ 1]), 11)
    with pytest.raises(MessageRefused, match="not in order"):
        mangled(lambda letter: letter[16:32] + letter[:16] + letter[32:], 11)


# ---- twins ----------------------------------------------------------------------------------------------------------
def test_t24_a_twin_with_short_tags_is_caught(dealt, monkeypatch):
    whole, lists = Code.tags, {"alice": numbered(0, 200), "bob": numbered(200, 400)}
    by = lax(learns="alice")

    def short(self, rows, bins):
        tags = whole(self, rows, bins)
        tags[:, 1:] = 0
        return tags

    assert len(carried(lists, by).rows["alice"]) == 0
    monkeypatch.setattr(Code, "tags", short)
    monkeypatch.setattr(protocol, "in_order", lambda tags: True)
    assert len(carried(lists, by).rows["alice"]) > 20


# ---- what each side sees --------------------------------------------------------------------------------------------
def test_letters_have_sizes_that_follow_from_the_lengths_of_lists_and_the_result(dealt):
    def sizes(alice, bob, by):
        return [(a, b, len(c)) for a, b, c in carried({"alice": alice, "bob": bob}, by).letters]

    one = lax(learns="alice")
    assert sizes(numbered(0, 60), numbered(0, 80), one) == sizes(numbered(500, 560), numbered(900, 980), one)
    names = (numbered(0, 60), numbered(10, 90)), (numbered(500, 560), [*numbered(0, 30), *numbered(510, 560)])
    assert sizes(*names[0], LAX) == sizes(*names[1], LAX)


def test_what_arrives_looks_uniform(dealt):
    """Each of the bits of the matrix and of the tags is one in half of the cases; false alarm below 1e-8 by six deviations."""
    found = carried({"alice": numbered(0, 600), "bob": numbered(0, 700)})
    size = protocol.region_size(600)
    matrix = np.concatenate([np.frombuffer(c, np.uint8).reshape(-1, 64) for c in found.to("bob") if len(c) == 64 * size])
    tags = np.concatenate([np.frombuffer(c, np.uint8).reshape(-1, 10) for c in found.to("alice") if len(c) == 7000])
    assert len(matrix) == 3 * size
    assert len(tags) == 2100
    for rows in (matrix, tags[:, [*range(7), 8, 9]]):  # sorted by the byte at 7
        bits = np.unpackbits(rows, axis=1).astype(float)
        assert np.abs(bits.mean(0) - 0.5).max() < 6 * 0.5 / len(rows) ** 0.5
        assert np.abs(bits.mean() - 0.5) < 6 * 0.5 / bits.size**0.5
        neighbours = (bits[1:] == bits[:-1]).mean()
        assert np.abs(neighbours - 0.5) < 6 * 0.5 / bits[1:].size ** 0.5


def test_the_matrix_hides_which_bins_are_empty(dealt):
    found = carried({"alice": [], "bob": numbered(0, 700)}, LAX)
    matrix = np.concatenate([np.frombuffer(c, np.uint8) for c in found.to("bob") if len(c) == 64 * protocol.region_size(0)])
    bits = np.unpackbits(matrix)
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / len(bits) ** 0.5


@pytest.mark.slow
def test_two_runs_over_the_same_lists_share_no_letter():
    lists = {"alice": numbered(0, 12), "bob": numbered(4, 20)}
    first, second = ({c for _, _, c in carried(lists, seed=seed).letters} for seed in (1, 2))
    assert len(first & second) == 1  # that there are enough, and how many


def placed(monkeypatch, receiver, sender):
    """The function by which each id of the receiver was placed, and the names that it sent back."""
    tables = []
    monkeypatch.setattr(protocol, "place", lambda *given: tables.append(place(*given)) or tables[-1])
    found = carried({"alice": receiver, "bob": sender})
    size = protocol.region_size(len(receiver))
    return {receiver[item]: slot // size for slot, item in enumerate(tables[-1]) if item >= 0}, found.to("bob")[-1]


def test_v14_what_is_sent_back_is_no_id_and_does_not_tell_where_an_item_was_placed(dealt, monkeypatch):
    shared, sender = numbered(0, 100), numbered(0, 400)
    first, names = placed(monkeypatch, shared + numbered(1000, 1200), sender)
    second, same = placed(monkeypatch, shared + numbered(2000, 2200), sender)
    # A twin that sends the tags that matched tells the list in which they stand, which other ids of the receiver decide.
    assert [first[id] for id in shared] != [second[id] for id in shared]
    assert names == same
    assert len(names) == 16 * len(shared)
    assert not any(id in names for id in shared)
