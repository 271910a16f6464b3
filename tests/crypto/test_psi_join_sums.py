"""Sums over a hidden join: the note's toy, small groups refused, what comes to whom, and lies."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psi_driver import Tape

from hedgerow.crypto.paillier import PaillierKey
from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi import join_sums as room
from hedgerow.crypto.psi.join_sums import JoinSums
from hedgerow.errors import AlignmentRefused, MessageRefused, RangeExceeded, SettingsInvalid

KEY = PaillierKey.fresh(512, insecure=True)
NAMES = ("town", "tax")


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    monkeypatch.setattr(room.PaillierKey, "fresh", classmethod(lambda cls, bits, insecure: KEY))


class AnySubset(JoinSums):
    """Lists so short that sums tell who they are of; for arithmetic alone."""

    def lawful(self, common, size, columns=1):
        return common >= self.least and size - common >= self.least


def vars_of(by):
    return {field.name: getattr(by, field.name) for field in dataclasses.fields(by)}


def joined(groups, values, least=3, tape=None, ambiguous=True, **more):
    """`groups`: group by id; `values`: value by id; what both learn."""
    by = JoinSums(least=least, bits=512, insecure=True, ratio=1000, small_domain="accepted", **more)
    if not ambiguous:
        by = AnySubset(**vars_of(by))
    town = by.counts("town", NAMES, by.read(list(groups)), list(groups.values()))
    tax = by.sums("tax", NAMES, by.read(list(values)), np.array(list(values.values())))
    got = meet({"town": town, "tax": tax}, tape and tape.carried)
    return got["town"], got["tax"]


def toy(x=range(500, 510)):
    """The note's, section 6, with ten people in group x, of whom nobody is common."""
    groups = {**dict.fromkeys(range(60), "f"), **dict.fromkeys(range(60, 100), "m"), **dict.fromkeys(x, "x")}
    return groups, {i: 20000 + 100 * i for i in range(30, 200)}


def test_the_notes_toy():
    counts, sums = joined(*toy(), least=10)
    assert counts == {"f": 30, "m": 40, "x": None}
    assert sums == [(733_500,), (1_118_000,), None]


def test_v11_groups_that_are_not_told_are_not_few_people_together():
    """Who alone of group x is common would be the total, which another question tells, less the two other groups."""
    counts, sums = joined(*toy(x=[199, *range(500, 509)]), least=10)
    assert counts == {"f": None, "m": 40, "x": None}
    assert sums == [None, (1_118_000,), None]


def test_v11_a_level_for_each_person_reads_no_list():
    """With a count for each person, the groups' owner would read the list that the join hides."""
    tape = Tape()
    with pytest.raises(AlignmentRefused):
        joined({i: f"person {i}" for i in range(48)}, dict.fromkeys(range(24, 90), 1), least=10, tape=tape, value_bits=1)
    assert not any(letter for sender, _, letter in tape.letters if sender == "town"), "it is refused before anything leaves"


def test_v11_small_groups_stay_at_home_with_the_next_smallest():
    groups, values = toy(x=[150])
    assert joined(groups, values, least=10) == ({"f": 30, "m": None, "x": None}, [(733_500,), None, None])
    sizes = room._GROUPS
    with pytest.MonkeyPatch.context() as patch:
        told = []
        patch.setattr(
            room,
            "_GROUPS",
            type(
                "Watched",
                (),
                {"most": sizes.most, "unpack": sizes.unpack, "pack": lambda self, **got: told.append(got) or sizes.pack(**got)},
            )(),
        )
        joined(groups, values, least=10)
    assert told == [{"sizes": [60, 0, 0]}]


@given(st.lists(st.integers(0, 40), max_size=6))
def test_v11_people_who_are_not_listed_are_none_or_many(sizes):
    kept = JoinSums(least=5).listed(sizes)
    left = sum(n for n, one in zip(sizes, kept, strict=True) if not one)
    assert all(n >= 5 for n, one in zip(sizes, kept, strict=True) if one)
    assert left == 0 or left >= 5 or not any(kept)


@pytest.mark.parametrize(("made_up", "match"), [(0, "a group of 1"), (9, "asks for 48 groups")])
def test_v11_the_owner_of_values_answers_no_group_of_few_people(monkeypatch, made_up, match):
    """A groups' owner that keeps to no rule: a group for each person, alone or among made-up ids."""
    monkeypatch.setattr(JoinSums, "listed", lambda self, sizes: [True] * len(sizes))
    honest = JoinSums._most_groups
    groups = {i: f"person {i}" for i in range(48)}
    groups |= {1000 + 48 * j + i: f"person {i}" for i in range(48) for j in range(made_up)}
    values = dict.fromkeys(range(24, 90), 1)
    by = JoinSums(least=10, bits=512, insecure=True, ratio=1000, small_domain="accepted", value_bits=1)
    asks = dataclasses.replace(by)
    monkeypatch.setattr(JoinSums, "_most_groups", lambda self, begun: 100 if self is asks else honest(self, begun))
    town = asks.counts("town", NAMES, by.read(list(groups)), list(groups.values()))
    tax, tape = by.sums("tax", NAMES, by.read(list(values)), np.array(list(values.values()))), Tape()
    with pytest.raises(MessageRefused, match=match):
        meet({"town": town, "tax": tax}, tape.carried)


def test_v11_more_groups_than_the_shorter_list_has_people_for_are_refused_at_home():
    groups = {i: f"group {i % 48}" for i in range(480)}
    with pytest.raises(AlignmentRefused, match="48 groups"):
        joined(groups, dict.fromkeys(range(24, 90), 1), least=10, value_bits=1)


@given(st.lists(st.integers(0, 40), max_size=6), st.integers(0, 60), st.sampled_from([1, 20]))
def test_v11_what_is_left_of_the_total_is_nobody_or_lawful_or_everybody(common, others, value_bits):
    by = JoinSums(least=5, value_bits=value_bits)
    size = sum(common) + others
    told = by.told(common, size)
    left = sum(n for n, one in zip(common, told, strict=True) if not one)
    assert all(by.lawful(n, size) for n, one in zip(common, told, strict=True) if one)
    assert left == 0 or by.lawful(left, size) or not any(told)


@settings(max_examples=10, deadline=None)
@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from(["a", "b"]), min_size=3, max_size=20),
    st.dictionaries(st.integers(0, 30), st.integers(0, 2**40), min_size=3, max_size=20),
)
def test_sums_are_those_of_the_join(groups, values):
    by = AnySubset(least=3)
    people = {label: [i for i in groups if groups[i] == label] for label in sorted(set(groups.values()))}
    kept = by.listed([len(found) for found in people.values()])
    listed = [len(found) for found, one in zip(people.values(), kept, strict=True) if one]
    if not listed or len(listed) > min(sum(listed), len(values)) // 3:
        with pytest.raises(AlignmentRefused):
            joined(groups, values, ambiguous=False, value_bits=41)
        return
    counts, sums = joined(groups, values, ambiguous=False, value_bits=41)
    common = {
        label: [i for i in found if one and i in values] for (label, found), one in zip(people.items(), kept, strict=True)
    }
    told = by.told([len(found) for found in common.values()], len(values))
    for found, one, count, total in zip(common.values(), told, counts.values(), sums, strict=True):
        assert count == (len(found) if one else None)
        assert total == ((sum(values[i] for i in found),) if one else None)


def test_several_values_share_a_ciphertext_and_keep_apart():
    groups, values = toy()
    many = {i: [value, 2**63, 0] for i, value in values.items()}
    by = AnySubset(least=10, bits=512, insecure=True, small_domain="accepted", value_bits=64)
    town = by.counts("town", NAMES, by.read(list(groups)), list(groups.values()))
    tax = by.sums("tax", NAMES, by.read(list(many)), np.array(list(many.values()), np.uint64))
    assert meet({"town": town, "tax": tax})["tax"] == [(733_500, 30 * 2**63, 0), (1_118_000, 40 * 2**63, 0), None]


def test_v11_a_group_with_all_of_the_values_owners_people_but_few_is_refused():
    groups = dict.fromkeys(range(60), "all")
    assert joined(groups, dict.fromkeys(range(62), 5), value_bits=3) == ({"all": None}, [None])  # two are left out
    assert joined(groups, dict.fromkeys(range(65), 5), value_bits=3) == ({"all": 60}, [(300,)])


def test_v11_people_whom_their_sum_would_tell_are_refused():
    """Twelve of twenty: with values of 20 bits one subset has the sum, and with values of one bit thousands have it."""
    rng = np.random.default_rng(0)
    groups = dict.fromkeys(range(12), "g")
    values = {i: int(v) for i, v in enumerate(rng.integers(0, 2**20, 20))}
    drawn = np.array(list(values.values()))
    total, subsets = drawn[:12].sum(), np.array(list(itertools.combinations(range(20), 12)))
    assert (drawn[subsets].sum(1) == total).sum() == 1  # the owner of values finds the twelve
    assert joined(groups, values) == ({"g": None}, [None])
    bits = {i: value % 2 for i, value in values.items()}
    drawn = drawn % 2
    assert (drawn[subsets].sum(1) == drawn[:12].sum()).sum() > 2**10
    assert joined(groups, bits, value_bits=1) == ({"g": 12}, [(int(drawn[:12].sum()),)])


def test_groups_are_those_of_the_labels():
    groups, values = toy()
    by = JoinSums(least=10, bits=512, insecure=True, small_domain="accepted")
    town = by.counts("town", NAMES, by.read(list(groups)), list(groups.values()), labels=["m", "none", "f", "x"])
    tax = by.sums("tax", NAMES, by.read(list(values)), np.array(list(values.values())))
    got = meet({"town": town, "tax": tax})
    assert list(got["town"].items()) == [("m", 40), ("none", None), ("f", 30), ("x", None)]
    assert got["tax"] == [(1_118_000,), None, (733_500,), None]
    with pytest.raises(RangeExceeded):
        next(by.counts("town", NAMES, [b"a"], ["z"], labels=["m"]))


def test_nothing_comes_for_a_refused_group():
    tape = Tape()
    joined(*toy(), least=10, tape=tape)
    box = KEY.public.ciphertext_bytes
    assert tape.letters[-1][:2] == ("town", "tax")
    assert len(tape.letters[-1][2]) == 3 + 2 * box


def test_v21_answers_for_a_group_come_in_another_order_than_it_was_sent(monkeypatch):
    drawn = []
    honest = room.permutation

    def watched(n, entropy):
        drawn.append(honest(n, entropy))
        return drawn[-1]

    monkeypatch.setattr(room, "permutation", watched)
    joined(*toy(), least=10)
    sizes = [len(order) for order in drawn]
    assert sorted(sizes) == sorted([60, 40, 10, 170, 60, 40, 10])  # the groups, the values, and the groups once more
    orders = [tuple(order) for order in drawn if len(order) == 60]
    assert len(set(orders)) == 2


def test_a_sum_is_drawn_anew_so_that_no_product_of_boxes_is_what_comes():
    tape = Tape()
    joined(*toy(), least=10, tape=tape)
    last = tape.letters[-1][2][3:]
    box = KEY.public.ciphertext_bytes
    sent = KEY.public.unpack(last, 2)
    assert sent[0] != sent[1]
    assert KEY.decrypt(sent[0]) == 733_500
    raw = tape.pipe("tax", "town")
    begun = len(raw) - (60 + 40 + 10) * 12 - 170 * (32 + box)
    boxes = KEY.public.unpack(raw[begun + 170 * 32 : begun + 170 * (32 + box)], 170)
    values = {KEY.decrypt(c): c for c in boxes}
    product = 1
    for i in range(30, 60):
        product = KEY.public.add(product, values[20000 + 100 * i])
    assert KEY.decrypt(product) == 733_500
    assert product != sent[0]


def test_what_comes_has_the_same_lengths_whoever_else_is_in_the_lists():
    shapes = set()
    for others in (1000, 5000):
        groups, values = toy()
        moved = {(i if i >= 30 else i + others): g for i, g in groups.items()}
        tape = Tape()
        joined(moved, values, least=10, tape=tape)
        shapes.add(tuple(len(letter) for *_, letter in tape.letters))
    assert len(shapes) == 1


@pytest.mark.parametrize("values", [[1.5] * 4, [-1] * 4, [1] * 3, [[1] * 6] * 4, [2**20] * 4])
def test_values_that_do_not_fit_are_refused_at_home(values):
    by = JoinSums(bits=512, insecure=True)
    with pytest.raises(RangeExceeded):
        next(by.sums("tax", NAMES, [b"a", b"b", b"c", b"d"], np.array(values)))


@pytest.mark.parametrize("wrong", [{"least": 2}, {"bits": 1024}, {"bits": 2048.0}, {"normal": "x"}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingsInvalid):
        JoinSums(**wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda s, i, x: bytes(len(x)) if (s, i) == ("tax", 2) else x,
        lambda s, i, x: b"\2" + x[1:] if (s, i) == ("town", 5) else x,
        lambda s, i, x: b"\xff\xff\xff\xff" + x[4:] if (s, i) == ("town", 2) else x,
        lambda s, i, x: x[:3] + bytes(len(x) - 3) if (s, i) == ("town", 5) else x,
    ],
    ids=["the key", "flags", "the groups", "sums"],
)
def test_what_no_honest_party_sends_is_refused_in_a_join(change):
    groups, values = toy()
    by = JoinSums(least=10, bits=512, insecure=True, small_domain="accepted")
    town = by.counts("town", NAMES, by.read(list(groups)), list(groups.values()))
    tax = by.sums("tax", NAMES, by.read(list(values)), np.array(list(values.values())))
    counts = {}

    def over(side):
        letters = next(side)
        while True:
            came = yield letters
            for sender, letter in came.items():
                counts[sender] = counts.get(sender, -1) + 1
                came[sender] = change(sender, counts[sender], letter)
            try:
                letters = side.send(came)
            except StopIteration as end:
                return end.value

    with pytest.raises(MessageRefused):
        meet({"town": over(town), "tax": over(tax)})
