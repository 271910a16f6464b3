"""What peers see of one another: uniform words, and the traps V3, V6 and V22 of vertical learning."""

from __future__ import annotations

import numpy as np
import pytest
from cross_driver import FALSE_ALARM, World, chi_square

from hedgerow.crypto.cross import PadMemory, party
from hedgerow.crypto.cross.letters import _HEAD
from hedgerow.crypto.cross.pads import pad_of
from hedgerow.crypto.cross.ring import encode, product, uniform
from hedgerow.crypto.keys import derive
from hedgerow.crypto.peers import HUB, meet
from hedgerow.crypto.sealing import PairSecrets

N = 600


def telling(kind="gram", widths=(3, 2), n=N, **more):
    """Columns, rows and weights that are the same number for everybody: as far from uniform as can be."""
    left = {f"p{i}": np.ones((n, d)) for i, d in enumerate(widths)}
    if kind == "weighted":
        return World(left, weights=np.full(n, 0.25), **more)
    right = {"p0": np.ones((n, 4))} if kind != "gram" else {}
    return World(left, right, np.ones((n, 4)) if kind != "gram" else None, **more)


def test_the_test_of_uniform_bytes_sees_columns():
    assert chi_square(encode(np.ones((N, 3)), 20).tobytes()) < FALSE_ALARM
    assert chi_square(uniform(b"k" * 32, N, 3).tobytes()) > FALSE_ALARM


@pytest.mark.parametrize("widths", [(3, 2), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("kind", ["gram", "right", "weighted"])
def test_what_a_party_receives_is_uniform(kind, widths):
    """Every byte behind a letter's head, of each sender; a false alarm in one of a billion tests, of which there are 39."""
    w = telling(kind, widths)
    w.ask()
    for me in w.names:
        for sender in (*w.names, HUB):
            came = b"".join(raw[_HEAD.size :] for raw in w.between(sender, me) if len(raw) > 1000)
            assert not came or chi_square(came) > FALSE_ALARM
        assert not any(w.between(HUB, me)[0].endswith(one.tobytes()) for one in w.left.values())


@pytest.mark.parametrize("kind", ["gram", "right", "weighted"])
def test_what_a_party_receives_does_not_depend_on_the_columns_of_others(kind):
    """Each letter has the length that it has for any columns, and nothing in common with that for other columns."""
    one, other = telling(kind, seed="one"), telling(kind, seed="other")
    other.left["p1"] = -one.left["p1"] / 3
    one.ask()
    other.ask()
    assert [len(raw) for raw in one.between(to="p0")] == [len(raw) for raw in other.between(to="p0")]
    for a, b in zip(one.between("p1", "p0"), other.between("p1", "p0"), strict=True):
        if len(a) > 1000:
            tail = len(a) - len(a) % 8
            difference = np.frombuffer(a[-tail:], "<u8") - np.frombuffer(b[-tail:], "<u8")
            assert chi_square(difference.tobytes()) > FALSE_ALARM


# ---- V3: the hub reads letters between parties ------------------------------------------------------------------------------
def test_v3_an_opening_with_its_seed_is_the_columns_so_letters_between_parties_are_sealed():
    w = telling()
    terms, _ = w.ask()
    opening = next(raw for raw in w.between("p0", "p1") if len(raw) > 8 * N)
    D = np.frombuffer(opening[-8 * 3 * N :], "<u8").reshape(N, 3)
    seed = w.between("p0", HUB)[0][_HEAD.size + 32 :][:32]
    assert (D + pad_of(seed, N, 3) == encode(w.left["p0"], terms.bits.left)).all()  # what a hub would read
    box = PairSecrets("p0", {"p1": bytes(range(32))}).sealed(opening, "p1", b"s" * 32, 0)
    assert chi_square(box[-8 * 3 * N :]) > FALSE_ALARM
    sealed = np.frombuffer(box[-8 * 3 * N - 16 : -16], "<u8").reshape(N, 3)
    assert not (sealed + pad_of(seed, N, 3) == encode(w.left["p0"], terms.bits.left)).any()


# ---- V6: a pad for other columns, or of another question --------------------------------------------------------------------
def opened(w, sender="p0", to="p1", width=3):
    raw = next(raw for raw in w.between(sender, to) if len(raw) > 8 * N)
    return np.frombuffer(raw[-8 * width * N :], "<u8").reshape(N, width)


@pytest.mark.parametrize("changed", ["columns", "study", "question"])
def test_v6_openings_of_other_columns_studies_and_questions_differ_uniformly(changed):
    """Also where a party was set back to its earlier state, and does not know that it opened something before."""
    one, other = telling(), telling()
    if changed == "columns":
        other.left["p0"] = other.left["p0"] / 2
    elif changed == "study":
        other.study = b"another study"
    else:
        other.questions = 7
    one.ask()
    other.ask()
    assert one.memories["p0"].secret == other.memories["p0"].secret
    assert chi_square((opened(one) - opened(other)).tobytes()) > FALSE_ALARM


def test_v6_a_twin_whose_pads_do_not_know_their_columns_gives_the_columns_away(monkeypatch):
    def pad(self, columns, study, question, about):
        self.own[b"one"] = (b"i" * 16, b"s" * 32)
        return b"i" * 16, b"s" * 32, True

    monkeypatch.setattr(PadMemory, "pad", pad)
    one, other = telling(), telling()
    other.left["p0"] = other.left["p0"] / 2
    one.ask()
    other.ask()
    difference = (opened(one) - opened(other)).tobytes()
    assert chi_square(difference) < FALSE_ALARM  # X - X'


@pytest.mark.parametrize("about", [None, (b"another threshold", b"right")])
def test_v6_whether_columns_of_another_description_are_the_same_is_not_told(about):
    """That nobody is between two thresholds would show in a letter that is not sent."""
    w = telling()
    w.ask()
    first, w.about = opened(w), about
    w.ask()
    assert chi_square((first - opened(w)).tobytes()) > FALSE_ALARM


def test_v6_pads_of_the_hubs_rows_are_fresh_in_every_question():
    w = telling("right")
    w.ask()
    first = b"".join(raw[-8 * 4 * N :] for raw in w.between("p0", "p1")[1:2])
    w.ask()
    again = b"".join(raw[-8 * 4 * N :] for raw in w.between("p0", "p1")[1:2])
    assert len(first) == len(again) == 8 * 4 * N
    assert chi_square((np.frombuffer(first, "<u8") - np.frombuffer(again, "<u8")).tobytes()) > FALSE_ALARM


# ---- V22: the dealer opens bare shares --------------------------------------------------------------------------------------
PEOPLE = 24


def secret_column():
    return np.random.default_rng(3).integers(0, 2, (PEOPLE, 1)).astype(float)


def read_by_the_hub(w):
    """What a hub makes of the share of p1: x' b, if the share is bare, with the pad b that it dealt to p1; and b in steps of x.

    The share for the column of p0 is D' b, and A' b follows from the seeds that the hub knows.
    """
    terms, _ = w.ask()
    share = np.frombuffer(w.between("p1", HUB)[-1][_HEAD.size :], "<u8")[:1]
    b = uniform(derive(w.drawn[1], "hedgerow cross again"), PEOPLE, 1)
    A = pad_of(w.between("p0", HUB)[0][_HEAD.size + 32 :][:32], PEOPLE, 1)
    return int((share + product(A, b)[0])[0]), [int(one) << terms.bits.left & (1 << 64) - 1 for one in b[:, 0]]


def bits_of(told, b):
    """All columns of zeros and ones with x' b = told modulo 2^64, by meeting in the middle."""

    def half(w):
        sums = np.zeros(1, np.uint64)
        for one in w:
            sums = np.concatenate([sums, sums + np.uint64(one)])
        return sums

    first, second = half(b[: PEOPLE // 2]), half(b[PEOPLE // 2 :])
    place = np.argsort(second)
    wanted = np.uint64(told) - first
    at = np.searchsorted(second[place], wanted)
    at[at == len(second)] = 0
    hits = np.flatnonzero(second[place][at] == wanted)
    return [[int(m) >> i & 1 for i in range(12)] + [int(place[at[m]]) >> i & 1 for i in range(12)] for m in hits]


def attacked():
    return World({"p0": secret_column(), "p1": np.ones((PEOPLE, 1))}, hub=np.linspace(0, 1, PEOPLE)[:, None])


def test_v22_a_hub_reads_24_people_from_a_bare_share(monkeypatch):
    monkeypatch.setattr(party, "add_streams", lambda row, keys, signs, nonce: None)  # a twin that forgets the masks
    found = bits_of(*read_by_the_hub(attacked()))
    assert found == [secret_column()[:, 0].astype(int).tolist()]


def test_v22_masks_of_the_parties_leave_the_hub_nothing_to_read():
    assert bits_of(*read_by_the_hub(attacked())) == []


@pytest.mark.parametrize("widths", [(30, 30), (20, 20, 20)], ids=str)
def test_v22_what_the_hub_receives_less_what_it_dealt_is_uniform(widths):
    """Shares of all parties but the last, and differences of shares of two questions about the same columns."""
    w = telling("gram", widths, n=30)
    views = []
    for _ in range(2):
        w.ask()
        views.append({name: np.frombuffer(w.between(name, HUB)[-1][_HEAD.size :], "<u8") for name in w.names})
    for name in w.names:
        assert chi_square(views[0][name].tobytes()) > FALSE_ALARM
        assert chi_square((views[0][name] - views[1][name]).tobytes()) > FALSE_ALARM
    total = sum(views[0].values())
    if len(widths) == 3:  # two of three say nothing either
        assert chi_square((total - views[0]["p2"]).tobytes()) > FALSE_ALARM


def test_v22_a_party_that_is_set_back_masks_its_share_anew():
    """Masks are bound to nonces of all parties, so that no question's number, state or total brings one back."""
    first, again = telling("gram", (30, 30), n=30), telling("gram", (30, 30), n=30)
    first.ask()
    again.questions, again.seed = 0, first.seed
    nonce = {}

    def other(name):
        stream = uniform(name.encode().ljust(32, b"n"), 4).tobytes()
        return lambda k: nonce.setdefault(name, stream[:k])

    _terms, peers = again.peers()
    for name in again.names:
        memory = PadMemory(first.memories[name].secret)
        peers[name] = party.party_peer(
            again.terms(), name, again.left[name], None, None, again.pairs(name), memory, other(name)
        )
    meet(peers, lambda *letter: again.letters.append(letter))
    one, two = (np.frombuffer(w.between("p0", HUB)[-1][_HEAD.size :], "<u8") for w in (first, again))
    assert first.terms().digest == again.terms().digest
    assert chi_square((one - two).tobytes()) > FALSE_ALARM
