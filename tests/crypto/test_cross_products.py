"""Products of columns that lie apart: equal to whole numbers to the last bit, and to numpy, for two parties and more."""

from __future__ import annotations

import numpy as np
import pytest
from cross_driver import World

from hedgerow.crypto.cross import Bits, PadMemory, hub_peer, party_peer
from hedgerow.crypto.cross import letters as in_pieces
from hedgerow.crypto.cross.letters import _HEAD
from hedgerow.crypto.cross.ring import signed
from hedgerow.crypto.peers import HUB, meet
from hedgerow.errors import ContributionInvalid, KeyInvalid, MessageRefused, RangeExceeded, SettingsInvalid

WIDTHS = [(2, 3), (1, 2, 2), (2, 0, 3, 1)]


def world(widths=(2, 3), kind="gram", n=40, c=2, seed=0, **more):
    rng = np.random.default_rng(seed)
    left = {f"p{i}": rng.uniform(-1, 1, (n, d)) for i, d in enumerate(widths)}
    if kind == "gram":
        return World(left, **more)
    if kind == "weighted":
        return World(left, weights=rng.uniform(0, 0.25, n), **more)
    right = {name: rng.uniform(-1, 1, (n, c)) for name in list(left)[: {"own": 1, "several": len(widths)}.get(kind, 0)]}
    hub = rng.uniform(0, 1, (n, c)) if kind in ("hub", "several") else None
    return World(left, right, hub, **more)


KINDS = ["gram", "own", "hub", "several", "weighted"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_the_total_is_that_of_whole_numbers_to_the_last_bit(widths, kind):
    w = world(widths, kind)
    terms, total = w.ask()
    assert signed(total).tolist() == w.exact(terms).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_the_total_is_right_modulo_two_to_the_64_where_it_wraps(widths, kind):
    """Words as large as the ring has them: forty bits more than a total has room for."""
    w = world(widths, kind, bits=Bits(50, 50 if kind not in ("gram", "weighted") else 0, 50 if kind == "weighted" else 0))
    terms, total = w.ask()
    assert total.tolist() == [int(one) % 2**64 for one in w.exact(terms)]


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_numpy(kind):
    w = world((2, 1, 2), kind, n=200)
    X = np.concatenate(list(w.left.values()), 1)
    if kind == "gram":
        expected = X.T @ X
    elif kind == "weighted":
        expected = (X * w.weights[:, None]).T @ X
    else:
        expected = X.T @ (sum(w.right.values()) + (0 if w.hub is None else w.hub))
    assert np.allclose(w.result(), expected, rtol=0, atol=2e-4)


def test_columns_in_powers_of_two_are_not_rounded():
    rng = np.random.default_rng(1)
    w = World({"a": rng.integers(-8, 9, (50, 2)) / 8, "b": rng.integers(0, 2, (50, 1)).astype(float)})
    X = np.concatenate(list(w.left.values()), 1)
    assert (w.result() == X.T @ X).all()


def test_letters_in_pieces_change_nothing(monkeypatch):
    whole = world(kind="weighted").result()
    monkeypatch.setattr(in_pieces, "LONGEST", 100)
    assert (world(kind="weighted").result() == whole).all()


def test_the_hub_sees_rows_in_its_order_alone():
    w = world(kind="hub")
    table = np.arange(w.n)[w.order]
    assert sorted(table) == list(range(w.n))
    assert not (table == np.arange(w.n)).all()
    terms, peers = w.peers()
    peers[HUB] = hub_peer(terms, w.hub, lambda k: bytes(k))  # in the parties' order: a hub that were told it
    assert signed(meet(peers)[HUB]).tolist() != w.exact(terms).tolist()


# ---- what is sent ---------------------------------------------------------------------------------------------------
def words_sent(w):
    """Words that were sent, each letter's head and seeds left out."""
    return sum(len(raw) for raw in w.between()) / 8


def test_bytes_are_no_more_than_those_of_the_note():
    """Section 4.2 of the note, in words a person, of 5 | 7 columns: 39 for a Gram matrix, 5 - 2 for X'r, 38 for X'wX."""
    n, small = 2000, 600
    w = world((5, 7), n=n)
    w.ask()
    assert words_sent(w) <= 12 * n + small  # each column once
    w.ask()
    assert words_sent(w) <= small  # the same columns are not opened again
    w = world((5, 7), "hub", n=n, c=1)
    w.ask()
    first = words_sent(w)
    w.ask()
    assert first <= 15 * n + small
    assert words_sent(w) <= 3 * n + small
    w = world((5, 7), "weighted", n=n)
    w.ask()
    w.ask()
    assert words_sent(w) <= 20 * n + small


def test_an_opening_is_remembered_by_all_and_the_oldest_is_forgotten():
    w = world()
    first = dict(w.left)
    sizes = []
    for step in [0, 0, 1, 2, 3, 4, 0]:
        w.left = {name: one + step / 4 for name, one in first.items()}
        w.result()
        sizes.append(max(len(raw) for raw in w.between("p0", "p1")) > 300)
    assert sizes == [True, False, True, True, True, True, True]


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_what_does_not_belong_to_the_terms_is_refused():
    w = world(kind="own")
    terms, _ = w.ask()
    memory, pairs = PadMemory(bytes(32)), w.pairs("p0")
    good = (w.left["p0"], w.right["p0"], None, pairs, memory, lambda k: bytes(k))
    next(party_peer(terms, "p0", *good))
    for place, wrong, error in [
        (0, w.left["p1"], ContributionInvalid),
        (1, None, SettingsInvalid),
        (1, w.right["p0"][:3], ContributionInvalid),
        (3, {}, KeyInvalid),
        (3, {"p1": b"short"}, KeyInvalid),
    ]:
        with pytest.raises(error):
            next(party_peer(terms, "p0", *good[:place], wrong, *good[place + 1 :]))
    t = world(kind="hub").terms()
    with pytest.raises(SettingsInvalid, match="no order"):
        next(party_peer(t, "p0", w.left["p0"], None, np.zeros(w.n, int), pairs, memory, lambda k: bytes(k)))
    with pytest.raises(SettingsInvalid, match="announced otherwise"):
        next(hub_peer(terms, np.zeros((w.n, 2)), lambda k: bytes(k)))


def test_a_column_beyond_the_ring_is_refused_at_its_party():
    w = world(bits=Bits(50))
    w.left["p1"] = w.left["p1"] * 2.0**20
    with pytest.raises(RangeExceeded, match="a word has room"):
        w.ask()


def test_peers_of_different_questions_refuse_one_another():
    w, other = world(kind="hub"), world(kind="hub")
    other.study = b"another study"
    _, peers = w.peers()
    peers["p1"] = other.peers()[1]["p1"]
    with pytest.raises(MessageRefused, match="answers another question"):
        meet(peers)


@pytest.mark.parametrize("kind", KINDS)
def test_a_letter_with_a_wrong_length_or_that_is_missing_is_refused(kind):
    """Every letter of every round in turn, cut by its last byte or left out."""

    def altered(at, how):
        _, peers = world((1, 2), kind, n=12, c=1).peers()
        count, wrote, inbox = 0, {name: next(one) for name, one in peers.items()}, {}
        while wrote:
            inbox = {name: {} for name in wrote}
            for sender, out in wrote.items():
                for to, raw in out.items():
                    if count != at:
                        inbox[to][sender] = raw
                    elif how == "cut":
                        inbox[to][sender] = raw[:-1]
                    count += 1
            after = {}
            for name in wrote:
                try:
                    after[name] = peers[name].send(inbox[name])
                except StopIteration:
                    continue
            wrote = after
        return count

    n_letters = altered(-1, "whole")
    assert n_letters > 10
    for at in range(n_letters):
        for how in ("cut", "missing"):
            with pytest.raises(MessageRefused):
                altered(at, how)


def test_an_opening_that_a_party_does_not_remember_is_refused():
    w = world()
    w.ask()
    w.memories["p1"] = PadMemory(bytes(32))
    with pytest.raises(MessageRefused, match="does not remember"):
        w.ask()


def test_a_letter_of_another_kind_of_opening_is_refused():
    w = world()
    _, peers = w.peers()
    one = peers["p0"]
    wrote = {name: next(peer) for name, peer in peers.items()}
    letter = bytearray(wrote["p1"]["p0"])
    letter[_HEAD.size + 32 + 16 + 16] = 0  # says that its columns are known
    with pytest.raises(MessageRefused):
        one.send({"p1": bytes(letter), HUB: wrote[HUB]["p0"]})
