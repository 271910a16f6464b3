"""The ring: fixed point, exact products of matrices, letters in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.crypto.cross import letters, ring
from hedgerow.crypto.cross.letters import exchange
from hedgerow.crypto.cross.ring import decode, encode, product, signed, uniform, words_of
from hedgerow.crypto.peers import meet
from hedgerow.errors import ContributionInvalid, MessageRefused, RangeExceeded

WORDS = st.integers(0, 2**64 - 1)


def slow(a, b):
    """The product modulo 2^64 in Python's whole numbers."""
    return [
        [sum(int(x) * int(y) for x, y in zip(a[:, i], b[:, j], strict=True)) % 2**64 for j in range(b.shape[1])]
        for i in range(a.shape[1])
    ]


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(0, 9), st.integers(0, 3), st.integers(0, 3))
def test_products_are_those_of_whole_numbers_modulo_two_to_the_64(data, n, p, q):
    draw = lambda k: np.array(data.draw(st.lists(WORDS, min_size=n * k, max_size=n * k)), np.uint64).reshape(n, k)  # noqa: E731
    a, b = draw(p), draw(q)
    assert product(a, b).tolist() == slow(a, b)


@pytest.mark.parametrize("n", [1, 5, 6, 7, 40])
def test_products_do_not_depend_on_blocks_of_rows(n, monkeypatch):
    a, b = uniform(b"a" * 32, n, 3), uniform(b"b" * 32, n, 2)
    monkeypatch.setattr(ring, "_BLOCK", 6)
    assert product(a, b).tolist() == slow(a, b)


def test_a_block_of_the_largest_words_is_exact():
    n = ring._BLOCK + 3
    top = np.full((n, 1), 2**64 - 1, np.uint64)  # minus one: every limb is at its largest
    assert product(top, top).tolist() == [[n]]


def test_columns_of_a_product_may_be_a_transposed_view():
    a = uniform(b"c" * 32, 3, 8)
    assert product(a.T, a.T).tolist() == slow(a.T, a.T)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.integers(0, 30))
def test_numbers_come_back_to_half_a_step(numbers, fraction):
    assert np.abs(decode(encode(np.array(numbers), fraction), fraction) - numbers).max() <= 2.0 ** -(fraction + 1)


def test_whole_numbers_have_their_sign_in_the_ring():
    assert signed(encode(np.array([-1.0, 0.0, 3.0]), 0)).tolist() == [-1, 0, 3]
    assert encode(np.array([-1.0]), 0).tolist() == [2**64 - 1]


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(RangeExceeded, match="and a word has room"):
        encode(np.array([2.0**32]), 30)
    with pytest.raises(ContributionInvalid, match="not finite"):
        encode(np.array([1.0, np.nan]), 30)
    with pytest.raises(MessageRefused, match="7 bytes of 'town'"):
        words_of(b"1234567", (1, 1), "town")


# ---- letters --------------------------------------------------------------------------------------------------------
def peer(me, out, everyone, lawful):
    return (yield from exchange(me, out, everyone, lawful))


@pytest.mark.parametrize("sizes", [(0, 0), (3, 8), (9, 25), (16, 17)])
def test_letters_of_any_length_come_in_pieces(sizes, monkeypatch):
    monkeypatch.setattr(letters, "LONGEST", 8)
    out = {"a": {"b": b"x" * sizes[0], "c": b"y"}, "b": {"a": b"z" * sizes[1]}, "c": {}}
    lawful = {who: {o: (len(out[o].get(who, b"")),) for o in out if o != who} for who in out}
    found = meet({who: peer(who, out[who], "abc", lawful[who]) for who in out})
    assert found["a"] == {"b": out["b"]["a"], "c": b""}
    assert found["b"] == {"a": out["a"]["b"], "c": b""}
    assert found["c"] == {"a": b"y", "b": b""}


def drive(came, lawful=(4,)):
    """One peer that is sent these letters, one round after the other."""
    one = exchange("a", {}, ("a", "b"), {"b": lawful})
    next(one)
    for letter in came:
        one.send(letter)


@pytest.mark.parametrize(
    ("came", "says"),
    [
        ([{}], "no letter came from 'b'"),
        ([{"b": b"short"}], "one of 5 bytes"),
        ([{"b": letters._HEAD.pack(1, 5) + b"12345"}], "5 bytes in 1 rounds, where 4 bytes were due"),
        ([{"b": letters._HEAD.pack(0, 4) + b"1234"}], "in 0 rounds"),
        ([{"b": letters._HEAD.pack(1 << 20, 4) + b"1234"}], "in 1048576 rounds"),
        ([{"b": letters._HEAD.pack(1, 4) + b"123"}], "has 3 bytes and announced 4"),
        ([{"b": letters._HEAD.pack(1, 4) + b"1234", "c": b""}], "'c' are missing or were not due"),
        ([{"b": letters._HEAD.pack(2, 4) + b"1234"}, {"b": b""}], "'b' are missing or were not due"),
    ],
)
def test_letters_that_are_not_as_announced_are_refused(came, says):
    with pytest.raises(MessageRefused, match=says):
        drive(came)
