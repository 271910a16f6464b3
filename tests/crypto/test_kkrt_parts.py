"""KKRT's parts: transfers, transposition, cuckoo hashing, codes and tags, matching."""

from __future__ import annotations

import hashlib
import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kkrt_driver import entropy_of

from hedgerow.crypto.psi.kkrt import base_ot, code
from hedgerow.crypto.psi.kkrt.base_ot import SeedChoice, SeedOffer, group, points_in
from hedgerow.crypto.psi.kkrt.bits import WIDTH, Columns, rows_of
from hedgerow.crypto.psi.kkrt.code import Code, Items
from hedgerow.crypto.psi.kkrt.cuckoo import FUNCTIONS, place, region_size
from hedgerow.crypto.psi.kkrt.matching import in_order, order_of, places
from hedgerow.crypto.streams import keystream
from hedgerow.errors import MessageRefused, MissingExtra

SESSION = b"s" * 32
SALT = b"salt" * 8
N = 24


# ---- base transfers -------------------------------------------------------------------------------------------------
def transferred(offer_class=SeedOffer):
    choices = np.frombuffer(entropy_of(3)(N), np.uint8) & 1
    offer = offer_class(entropy_of(1))
    points, chosen, key = SeedChoice(choices, entropy_of(2)).seeds(offer.letter, SESSION)
    pairs, same = offer.seeds(points, N, SESSION)
    return choices, offer.letter, points, chosen, pairs, (key, same)


def test_the_chooser_gets_the_seed_that_it_chose_and_both_the_key():
    choices, _, _, chosen, pairs, (key, same) = transferred()
    assert 0 < choices.sum() < N
    assert chosen == [pair[c] for pair, c in zip(pairs, choices, strict=True)]
    assert key == same
    assert len({*itertools.chain(*pairs), key}) == 2 * N + 1


def within_reach(choices, letter, points, chosen):
    """Seeds that a chooser can compute from what it knows: hashes of sums of its points, as if they were the products."""
    sodium, scalars = group(), entropy_of(2)
    found = set(chosen)
    for i in range(N):
        point = points[32 * i : 32 * (i + 1)]
        scalar = base_ot._scalar(scalars)
        shared = sodium.crypto_scalarmult_ed25519_noclamp(scalar, letter)
        plus, minus = sodium.crypto_core_ed25519_add(shared, letter), sodium.crypto_core_ed25519_sub(shared, letter)
        twice = sodium.crypto_core_ed25519_add(letter, letter)
        for guess in (shared, plus, minus, letter, point, twice):
            found.add(base_ot._hash(base_ot._prefix(SESSION, i, letter, point) + guess))
    return found


def test_the_chooser_never_gets_the_other_seed():
    choices, letter, points, chosen, pairs, _ = transferred()
    others = {pair[1 - c] for pair, c in zip(pairs, choices, strict=True)}
    assert others.isdisjoint(within_reach(choices, letter, points, chosen))


def test_a_twin_that_forgets_to_subtract_is_caught(monkeypatch):
    class Forgetful(SeedOffer):
        def seeds(self, points, n, session):
            sodium = group()
            with monkeypatch.context() as m:
                m.setattr(sodium, "crypto_core_ed25519_sub", lambda first, shared: first)
                return super().seeds(points, n, session)

    choices, letter, points, chosen, pairs, _ = transferred(Forgetful)
    others = {pair[1 - c] for pair, c in zip(pairs, choices, strict=True)}
    assert not others.isdisjoint(within_reach(choices, letter, points, chosen))


def test_sessions_and_indices_separate_seeds():
    offer = SeedOffer(entropy_of(1))
    points, _, _ = SeedChoice(np.zeros(2, np.uint8), entropy_of(2)).seeds(offer.letter, SESSION)
    here, there = offer.seeds(points, 2, SESSION), offer.seeds(points, 2, b"t" * 32)
    again = offer.seeds(points[:32] + points[:32] + points[64:], 2, SESSION)
    assert len({*itertools.chain(*here[0], *there[0])}) == 8
    assert again[0][0] != again[0][1]


SMALL = [bytes(32), b"\1" + bytes(31), bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")]
ORDER_8 = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")


@pytest.mark.parametrize("bad", [*SMALL, ORDER_8, b"\xff" * 32, b"\2" + bytes(31)])
def test_points_that_are_not_of_the_group_are_refused(bad):
    good = group().crypto_scalarmult_ed25519_base_noclamp(b"\5" + bytes(31))
    assert points_in(good, 1) == [good]
    with pytest.raises(MessageRefused, match="not a point"):
        points_in(good + bad, 2)


def test_a_point_with_a_part_of_small_order_is_refused():
    good = group().crypto_scalarmult_ed25519_base_noclamp(b"\5" + bytes(31))
    with pytest.raises(MessageRefused, match="not a point"):
        points_in(group().crypto_core_ed25519_add(good, ORDER_8), 1)


@pytest.mark.parametrize("n", [0, 31, 33])
def test_letters_of_another_length_are_refused(n):
    with pytest.raises(MessageRefused, match="for 1 points"):
        points_in(bytes(n), 1)


def test_without_pynacl_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nacl.bindings", None)
    with pytest.raises(MissingExtra, match=r"(?s)PyNaCl.*hedgerow\[hidden\].*X25519"):
        group()


# ---- bits -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [8, 64, 264])
def test_rows_are_the_columns_transposed(n, monkeypatch):
    monkeypatch.setattr("hedgerow.crypto.psi.kkrt.bits._PART", 16)
    columns = np.frombuffer(entropy_of(5)(WIDTH * n // 8), np.uint8).reshape(WIDTH, n // 8)
    expected = np.unpackbits(columns, axis=1, bitorder="little").T
    rows = rows_of(columns)
    assert rows.shape == (n, 8)
    assert (np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little") == expected).all()


def test_columns_are_streams_that_are_read_on():
    seeds = [hashlib.sha256(b"%d" % i).digest() for i in range(WIDTH)]
    columns = Columns(seeds)
    read = np.concatenate([columns.next(64), columns.next(128)], axis=1)
    assert all(row.tobytes() == keystream(seed, bytes(16), 24) for row, seed in zip(read, seeds, strict=True))


# ---- cuckoo ---------------------------------------------------------------------------------------------------------
@given(st.integers(0, 400), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_every_item_lies_in_one_of_its_bins(n, seed):
    size = region_size(n)
    bins = Items.of([b"%d" % i for i in range(n)], SALT).bins(size)
    assert bins.max(initial=0) < size
    table = place(bins, size, entropy_of(seed))
    assert sorted(table[table >= 0]) == list(range(n))
    for slot in np.flatnonzero(table >= 0):
        assert bins[slot // size, table[slot]] == slot % size


@pytest.mark.parametrize("n", [0, 1, 1000, 10**6])
def test_there_are_at_least_1_3_n_bins_in_words_of_64(n):
    assert region_size(n) % 64 == 0
    assert 1.3 * n <= FUNCTIONS * region_size(n) <= 1.3 * n + 9 * 64


def test_v7_equal_ids_do_not_fit_their_three_bins():
    bins = np.zeros((FUNCTIONS, 4), np.uint32)
    assert sorted(place(bins[:, :3], 64, entropy_of(0))[[0, 64, 128]]) == [0, 1, 2]
    assert place(bins, 64, entropy_of(0)) is None


# ---- codes and tags -------------------------------------------------------------------------------------------------
def tags_in_one_bin(twin=False):
    """Tags under each function of items whose bins coincide, as in one table without regions."""
    items, computed = Items.of([b"%d" % i for i in range(50)], SALT).words, Code(SALT)
    secret = np.frombuffer(entropy_of(8)(64), "<u8")
    tags = [computed.tags(computed.words(items, 0 if twin else f) & secret, np.arange(50)) for f in range(FUNCTIONS)]
    return [{row.tobytes() for row in one} for one in tags]


def test_t24_coinciding_bins_do_not_show_because_the_code_takes_the_function():
    first, second, third = tags_in_one_bin()
    assert not first & second
    assert not first & third
    assert not second & third


def test_t24_a_twin_without_the_functions_number_is_caught():
    first, second, third = tags_in_one_bin(twin=True)
    assert len(first & second & third) == 50


def test_t24_an_items_bins_never_coincide():
    size = region_size(200)
    bins = Items.of([b"%d" % i for i in range(200)], SALT).bins(size).astype(int)
    slots = bins + size * np.arange(FUNCTIONS)[:, None]
    assert all(len(set(column)) == FUNCTIONS for column in slots.T)
    assert any(len(set(column)) < FUNCTIONS for column in (bins[:, bins[0] == bins[1]]).T)  # without regions some would


def test_code_words_of_distinct_items_differ_in_128_bits_or_more():
    words = Code(SALT).words(Items.of([b"%d" % i for i in range(300)], SALT).words, 1)
    bits = np.unpackbits(words.view(np.uint8), axis=1).astype(np.int64)
    distance = bits.sum(1)[:, None] + bits.sum(1) - 2 * bits @ bits.T
    assert distance[np.triu_indices(300, 1)].min() >= 160  # mean 256, standard deviation 11.3: eight and a half of them


def test_code_words_by_hand():
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    keys = hashlib.shake_256(b"hedgerow kkrt code\0" + SALT).digest(80)
    (item,) = Items.of([b"id"], SALT).words
    assert item.tobytes() == hashlib.blake2b(b"id", digest_size=32, key=SALT).digest()[:16]
    tagged = bytes(a ^ b for a, b in zip(item.tobytes(), (3 << 64).to_bytes(16, "little"), strict=True))

    def aes(key, block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    word = b"".join(aes(keys[i : i + 16], tagged) for i in range(0, 64, 16))
    assert Code(SALT).words(item[None], 2).tobytes() == word
    state = (77).to_bytes(16, "little")
    for i in range(0, 64, 16):
        state = bytes(a ^ b for a, b in zip(state, word[i : i + 16], strict=True))
        state = bytes(a ^ b for a, b in zip(state, aes(keys[64:], state), strict=True))
    assert Code(SALT).tags(np.frombuffer(word, "<u8")[None], np.array([77])).tobytes() == state[:10]


def test_parts_of_a_long_list_are_joined(monkeypatch):
    ids, whole = [b"%d" % i for i in range(40)], Items.of([b"%d" % i for i in range(40)], SALT)
    rows = Code(SALT).words(whole.words, 0)
    tags = Code(SALT).tags(rows, np.arange(40))
    monkeypatch.setattr(code, "_PART", 7)
    parts = Items.of(ids, SALT)
    assert (parts.words == whole.words).all()
    assert (parts.hashes == whole.hashes).all()
    assert (Code(SALT).tags(rows, np.arange(40)) == tags).all()


# ---- matching -------------------------------------------------------------------------------------------------------
few = st.lists(
    st.binary(min_size=2, max_size=2).map(lambda b: bytes([b[0] % 3]) * 8 + bytes([b[1] % 3, b[0] % 2])), max_size=20
)


def table(tags, width=10):
    return np.frombuffer(b"".join(tags), np.uint8).reshape(-1, width)


@given(few, few)
@settings(max_examples=60, deadline=None)
def test_all_ten_bytes_are_compared(mine, listed):
    distinct = table(set(listed))
    distinct = distinct[order_of(distinct)]
    assert in_order(distinct)
    at = places(table(mine), distinct)
    assert [place >= 0 for place in at] == [tag in set(listed) for tag in mine]
    assert all(distinct[place].tobytes() == tag for place, tag in zip(at, mine, strict=True) if place >= 0)


@given(few)
@settings(max_examples=30, deadline=None)
def test_the_order_of_tags_forgets_where_they_came_from(tags):
    there, back = table(tags), table(tags[::-1])
    assert (there[order_of(there)] == back[order_of(back)]).all()
    assert in_order(there[order_of(there)]) == (len(set(tags)) == len(tags))


def test_a_list_out_of_order_is_seen():
    tags = table([bytes(9) + b"\2", bytes(9) + b"\1"])
    assert not in_order(tags)
    assert in_order(tags[::-1])
