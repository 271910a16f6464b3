"""Alignment by masks on curve25519 against Python's sets; refusals; a network that lies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psi_driver import ANY, Tape, aligned, common_ids

from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi import X25519
from hedgerow.crypto.psi.ids import IdRules
from hedgerow.crypto.psi.star import NOBODY, PIVOT
from hedgerow.errors import AlignmentRefused, IdsInvalid, KeyInvalid, MessageRefused, SettingsInvalid

some_ids = st.lists(st.text(min_size=1, max_size=4).map(str.encode), unique=True, max_size=12)
small_ids = st.lists(st.sampled_from([b"%d" % i for i in range(12)]), unique=True, max_size=12)


def people(*numbers):
    return [b"person %d" % i for i in numbers]


@settings(max_examples=12, deadline=None)
@given(st.one_of(st.tuples(some_ids, some_ids), st.tuples(small_ids, small_ids)))
def test_two_parties_learn_the_intersection_in_one_order(pair):
    lists = dict(zip(("tax", "town"), pair, strict=True))
    got = aligned(lists)
    common = common_ids(lists, got)
    assert set(common["tax"]) == set(pair[0]) & set(pair[1])
    assert common["tax"] == common["town"]
    assert got["tax"][0] == len(common["tax"]) == got["town"][0]


@settings(max_examples=6, deadline=None)
@given(st.lists(small_ids, min_size=3, max_size=5))
def test_several_parties_learn_the_intersection_in_one_order(many):
    lists = {f"party {i}": ids for i, ids in enumerate(many)}
    common = common_ids(lists, aligned(lists))
    assert set(common["party 0"]) == set.intersection(*map(set, many))
    assert len({tuple(ids) for ids in common.values()}) == 1


@pytest.mark.parametrize(
    "pair", [([], [b"a"]), ([b"a"], []), ([], []), ([b"a", b"b"], [b"b", b"a"]), ([b"a"], [b"b"]), ([b"\0"], [b"\0\0"])]
)
def test_edges(pair):
    lists = dict(zip(("tax", "town"), pair, strict=True))
    assert set(common_ids(lists, aligned(lists))["town"]) == set(pair[0]) & set(pair[1])


def test_sizes_are_told_and_rows_are_positions_in_the_own_list():
    lists = {"tax": people(*range(9)), "town": people(*range(3, 20))}
    got = aligned(lists)
    assert got["tax"][1].sizes == {"tax": 9, "town": 17}
    assert sorted(got["tax"][1].rows) == list(range(3, 9))
    assert sorted(got["town"][1].rows) == list(range(6))
    assert got["tax"][1].rows.dtype.kind == "i"


def test_one_sided_only_one_party_learns_who():
    lists = {"tax": people(*range(9)), "town": people(*range(3, 20))}
    got = aligned(lists, told=PIVOT, pivot="town")
    assert sorted(got["town"][1].rows) == list(range(6))
    assert got["tax"][0] == 6
    assert got["tax"][1].rows.size == 0


def test_v21_of_the_cardinality_nobody_learns_who():
    lists = {"tax": people(*range(9)), "town": people(*range(3, 20))}
    tape = Tape()
    got = aligned(lists, told=NOBODY, tape=tape)
    assert all(count == 6 and rows.rows.size == 0 for count, rows in got.values())
    # what the pivot is sent has as many bytes as lists and tags have, and the number; no position comes to anybody
    assert len(tape.pipe("town", "tax")) == 17 * 32 + 9 * 12
    assert len(tape.pipe("tax", "town")) == 9 * 32 + 4


def test_v11_too_few_in_common_are_refused_everywhere_before_anybody_knows_who():
    lists = {"tax": people(*range(9)), "town": people(*range(3, 20))}
    tape = Tape()
    by = X25519(least=7, small_domain="accepted")
    ended = {}

    def watched(name):
        try:
            yield from by.peer(name, ("tax", "town"), lists[name])
        except AlignmentRefused as error:
            ended[name] = error

    meet({name: watched(name) for name in lists}, tape.carried)
    assert {name: error.code for name, error in ended.items()} == {"tax": "HR-246", "town": "HR-246"}
    assert len(tape.pipe("tax", "town")) == 9 * 32 + 4
    assert len(tape.pipe("town", "tax")) == 17 * 32 + 9 * 12


@pytest.mark.parametrize(("most", "ratio"), [(16, 100.0), (100, 1.5)])
def test_v13_long_or_unequal_lists_are_refused_before_a_point_is_sent(most, ratio):
    tape = Tape()
    with pytest.raises(AlignmentRefused):
        aligned({"tax": people(*range(9)), "town": people(*range(17))}, IdRules(3, most, ratio), tape=tape)
    assert max(len(letter) for *_, letter in tape.letters) < 150


def test_other_settings_meet_with_a_refusal():
    lists = {"tax": people(*range(9)), "town": people(*range(9))}
    by = {"tax": X25519(least=4), "town": X25519(least=5)}
    with pytest.raises(MessageRefused, match="other settings"):
        meet({name: by[name].peer(name, tuple(lists), ids) for name, ids in lists.items()})


def test_v8_normal_form_is_part_of_the_salt():
    lists = {"tax": people(*range(9)), "town": people(*range(9))}
    by = {"tax": X25519(least=4), "town": X25519(least=4, normal="exact")}
    with pytest.raises(MessageRefused, match="other settings"):
        meet({name: by[name].peer(name, tuple(lists), ids) for name, ids in lists.items()})


def test_v9_the_common_order_is_another_each_time_and_not_that_of_ids():
    lists = {"tax": people(*range(40)), "town": people(*range(39, -1, -1))}
    orders = {tuple(common_ids(lists, aligned(lists))["tax"]) for _ in range(3)}
    assert len(orders) == 3
    assert tuple(sorted(lists["tax"])) not in orders


def test_a_simulation_repeats_itself():
    from hedgerow.core.randomness import keystream

    lists = {"tax": people(*range(20)), "town": people(*range(5, 25))}
    first, second = (common_ids(lists, _with_keys(lists, keystream)) for _ in range(2))
    assert first == second


def _with_keys(lists, keystream):
    by, names = X25519(least=3), tuple(lists)
    peers = {name: by.peer(name, names, ids, entropy=keystream(bytes([i]) * 32)) for i, (name, ids) in enumerate(lists.items())}
    return {name: (len(rows.rows), rows) for name, rows in meet(peers).items()}


def test_v7_duplicates_are_refused_at_home():
    with pytest.raises(IdsInvalid, match="2 of 5") as caught:
        X25519().read(["a", "A", "b", "B ", "c"])
    assert caught.value.code == "HR-413"


@pytest.mark.parametrize("names", [("tax",), ("tax", "tax"), ("tax", "hub"), ("town", "bank"), ("tax", "")])
def test_names(names):
    with pytest.raises(KeyInvalid):
        next(X25519().peer("tax", names, [b"a"]))


@pytest.mark.parametrize(
    "wrong", [{"least": 2}, {"ratio": 0.5}, {"most": 0}, {"normal": "soundex"}, {"topology": "tree"}, {"least": 2.5}]
)
def test_settings(wrong):
    with pytest.raises(SettingsInvalid):
        X25519(**wrong)


def twisted(lists, change):
    """Carry an alignment out over a network that changes letters: `change(sender, number, letter)`."""
    by, names, counts = X25519(least=3), tuple(lists), {}

    def peer(name):
        side = by.peer(name, names, lists[name])
        letters = next(side)
        while True:
            came = yield letters
            for sender, letter in came.items():
                counts[sender, name] = counts.get((sender, name), -1) + 1
                came[sender] = change(sender, counts[sender, name], letter)
            try:
                letters = side.send(came)
            except StopIteration as end:
                return end.value

    return meet({name: peer(name) for name in lists})


SAME = {"tax": people(*range(9)), "town": people(*range(12))}


@pytest.mark.parametrize(
    "point",
    [
        bytes(32),
        b"\1" + bytes(31),
        (2**255 - 20).to_bytes(32, "little"),
        b"\xff" * 32,
        (2**255 - 18).to_bytes(32, "little"),
        b"\2" + bytes(31),
    ],
    ids=["zero", "one", "minus one", "all ones", "one above p", "on the twist"],
)
def test_t20_t21_points_off_the_curve_or_of_small_order_are_refused(point):
    with pytest.raises(MessageRefused, match="no point"):
        twisted(SAME, lambda sender, i, letter: point + letter[32:] if i == 2 and sender == "town" else letter)


@pytest.mark.parametrize(
    "change",
    [
        lambda s, i, x: x[:32] + x[:32] + x[64:] if i == 2 else x,
        lambda s, i, x: x[:-1] if i == 0 else x,
        lambda s, i, x: x[:-33] + bytes(33) if i == 1 else x,
        lambda s, i, x: x[:12] + x[:12] + x[24:] if (s, i) == ("town", 3) else x,
        lambda s, i, x: b"\xff\xff\xff\x7f" + x[4:] if (s, i) == ("town", 4) else x,
        lambda s, i, x: b"\xff\xff\xff\x7f" + x[4:] if (s, i) == ("tax", 3) else x,
        lambda s, i, x: x + bytes(1 << 13) if (s, i) == ("town", 2) else x,
    ],
    ids=["a point twice", "short hello", "another coin", "a tag twice", "a position", "the number", "too long"],
)
def test_what_no_honest_party_sends_is_refused(change):
    with pytest.raises(MessageRefused):
        twisted(SAME, change)


def test_a_party_that_falls_silent_is_not_waited_for_without_end():
    with pytest.raises(MessageRefused, match="any more"):
        twisted(SAME, lambda sender, i, letter: b"" if i >= 2 and sender == "town" else letter)


def test_the_own_list_is_not_changed_and_any_rules_are_lawful():
    lists = {"tax": tuple(people(1, 2)), "town": tuple(people(2, 3))}
    assert common_ids(lists, aligned(lists, ANY))["tax"] == people(2)
    assert np.array_equal(aligned(lists)["tax"][1].rows, [1])
