"""Alignment of three parties or more as a ring: right, and the pivot sees no number but that of all."""

from __future__ import annotations

import secrets
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psi_driver import Tape, aligned, common_ids
from scipy.stats import kstest

from hedgerow.crypto.peers import meet
from hedgerow.crypto.psi import X25519, ring, star
from hedgerow.crypto.psi.agrawal import Squares
from hedgerow.crypto.psi.star import NOBODY, PIVOT
from hedgerow.crypto.psi.veil import Veil, third_of
from hedgerow.crypto.streams import fresh
from hedgerow.errors import AlignmentRefused, MessageRefused

small_ids = st.lists(st.sampled_from([b"%d" % i for i in range(9)]), unique=True, max_size=9)


def random_rows(n):
    return np.frombuffer(secrets.token_bytes(12 * n), np.uint8).reshape(-1, 12)


# ---- veils ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000])
def test_a_veil_gives_each_tag_its_value(n):
    tags, values = random_rows(n), random_rows(n)
    veil = Veil.over(tags, values, b"salt", fresh)
    assert np.array_equal(veil.values(tags, b"salt"), values)
    assert len(veil.table) == 3 * third_of(n)


def test_a_veil_is_uniform_and_so_are_values_of_other_tags():
    veil = Veil.over(random_rows(1000), random_rows(1000), b"salt", fresh)
    others = veil.values(random_rows(1000), b"salt")
    for found in (veil.table, others):
        assert kstest((found.ravel() + 0.5) / 256, "uniform").pvalue > 1e-6
    assert len(np.unique(others, axis=0)) >= 990  # two strange tags may fall on the same three cells


def test_equal_values_do_not_show_where_tags_are():
    """The twin whose values are all zero is seen: tags of the veil have zeros, others do not."""
    tags = random_rows(100)
    veil = Veil.over(tags, np.zeros((100, 12), np.uint8), b"salt", fresh)
    assert not veil.values(tags, b"salt").any()
    assert veil.values(random_rows(100), b"salt").any(axis=1).all()


# ---- alignments -----------------------------------------------------------------------------------------------------
@settings(max_examples=8, deadline=None)
@given(st.lists(small_ids, min_size=3, max_size=5))
def test_everybody_learns_the_intersection_in_one_order(many):
    lists = {f"party {i}": ids for i, ids in enumerate(many)}
    got = aligned(lists, topology="ring")
    common = common_ids(lists, got)
    assert set(common["party 0"]) == set.intersection(*map(set, many))
    assert len({tuple(ids) for ids in common.values()}) == 1
    assert {count for count, _ in got.values()} == {len(common["party 0"])}


def people(*numbers):
    return [b"person %d" % i for i in numbers]


THREE = {"a": people(*range(20)), "b": people(*range(5, 35)), "c": people(*range(10, 40))}


def test_over_squares_and_of_two_parties():
    few = {name: ids[:4] for name, ids in THREE.items()} | {"c": people(5, 6, 7, 8)}
    few["a"] = people(5, 1, 2, 3)
    assert common_ids(few, aligned(few, topology="ring", group=Squares()))["c"] == people(5)
    two = {"a": people(1, 2), "b": people(2, 3)}
    assert common_ids(two, aligned(two, topology="ring"))["b"] == people(2)


def test_only_the_pivot_is_told_or_nobody():
    got = aligned(THREE, topology="ring", told=PIVOT, pivot="b")
    assert sorted(got["b"][1].rows) == list(range(5, 15))
    assert got["a"][1].rows.size == got["c"][1].rows.size == 0
    assert {count for count, _ in got.values()} == {10}
    got = aligned(THREE, topology="ring", told=NOBODY)
    assert [(count, rows.rows.size) for count, rows in got.values()] == [(10, 0)] * 3


def test_v11_too_few_are_refused():
    by = X25519(least=11, topology="ring")
    with pytest.raises(AlignmentRefused):
        meet({name: by.peer(name, tuple(THREE), ids) for name, ids in THREE.items()})


def sums_at_the_pivot(monkeypatch, lists):
    """What is left over at the pivot for each of its answers, before it counts, in its own list's order."""
    seen = []
    honest = Veil.values

    def watched(veil, tags, salt):
        seen.append(honest(veil, tags, salt))
        return seen[-1]

    with monkeypatch.context() as patched:
        patched.setattr(ring.Veil, "values", watched)
        got = aligned(lists, topology="ring")
    return got, seen


def test_partial_intersections_do_not_show(monkeypatch):
    """Ten people are in all three lists, five in two. What the pivot has for the five and the others is uniform."""
    left = []
    for _ in range(6):
        _, (one, other) = sums_at_the_pivot(monkeypatch, THREE)
        total = one ^ other
        assert (~total.any(axis=1)).sum() == 10
        left.append(total[total.any(axis=1)])
        assert len(np.unique(one, axis=0)) == len(one)
    words = np.concatenate(left).ravel()
    assert kstest((words + 0.5) / 256, "uniform").pvalue > 1e-6


def test_twin_without_shares_shows_partial_intersections(monkeypatch):
    monkeypatch.setattr(ring, "_shares", lambda side, keys: np.zeros((len(side.ids), 12), np.uint8))
    seen = []
    for _ in range(8):  # one time in forty a strange id falls on cells that hold nothing, which looks like a match here
        with suppress(MessageRefused):
            _, (one, other) = sums_at_the_pivot(monkeypatch, THREE)
            seen.append(sorted([(~one.any(axis=1)).sum(), (~other.any(axis=1)).sum()]))
    assert seen.count([10, 15]) >= 5  # with each of the others


def test_shares_of_four_parties_are_random_while_one_is_missing(monkeypatch):
    drawn = {}
    honest = ring._shares

    def watched(side, keys):
        drawn[side.me] = dict(zip(side.ids, honest(side, keys), strict=True))
        return honest(side, keys)

    monkeypatch.setattr(ring, "_shares", watched)
    lists = {name: people(*range(n)) for name, n in [("a", 5), ("b", 6), ("c", 7), ("d", 8)]}
    aligned(lists, topology="ring")
    assert set(drawn) == {"b", "c", "d"}  # the pivot has no share, and no key
    for id in lists["a"]:
        b, c, d = (drawn[name][id] for name in "bcd")
        assert not (b ^ c ^ d).any()
        assert all(pair.any() for pair in (b ^ c, b ^ d, c ^ d, b, c, d))


def test_lengths_do_not_depend_on_partial_intersections():
    shapes = set()
    for other in (range(5, 35), [*range(10, 20), *range(50, 70)]):
        tape = Tape()
        aligned(THREE | {"b": people(*other)}, topology="ring", tape=tape)
        shapes.add(tuple((sender, to, len(letter)) for sender, to, letter in tape.letters))
    assert len(shapes) == 1


def test_the_star_shows_them_to_the_pivot_and_says_so(monkeypatch):
    seen = []
    honest = star.matches
    monkeypatch.setattr(star, "matches", lambda one, other: seen.append(len(honest(one, other)[0])) or honest(one, other))
    aligned(THREE)
    assert sorted(seen) == [10, 15]
    assert "how many people of its list each of the others has" in X25519().shows["pivot"]
    assert "pivot" not in X25519(topology="ring").shows


def test_a_pivot_that_sends_other_tags_is_refused():
    tags = random_rows(5)
    assert ring._found(tags[[3, 1]], tags).tolist() == [3, 1]
    with pytest.raises(MessageRefused):
        ring._found(random_rows(1), tags)
