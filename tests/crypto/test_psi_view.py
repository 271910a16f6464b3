"""What a party receives depends on its own list, the sizes and the result alone: a simulator, and twins that it catches.

The simulator writes what came to a party without the other's list: random points of the curve for masked ids, random tags for
what is not common, and, where the protocol tells, positions that are uniform among the lawful ones. Statistics that an observer
could look at are compared between real runs and simulated ones; of a twin, at least one differs.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
import pytest
from psi_driver import Tape, aligned
from scipy.stats import kstest, spearmanr

from hedgerow.crypto.psi import curve, star
from hedgerow.crypto.psi.curve import on_curve, points_of
from hedgerow.crypto.psi.star import NOBODY

N_TAX, N_TOWN, COMMON = 30, 40, 10


def lists(others=0):
    """Ten people are common; `others` chooses who else is in the town's list."""
    tax = [b"person %03d" % i for i in range(N_TAX)]
    town = tax[:COMMON] + [b"%d elsewhere %03d" % (others, i) for i in range(N_TOWN - COMMON)]
    return {"tax": tax, "town": town}


def view(recipient, sender, others=0, **settings):
    """The parts of what came to one party: points, tags, and the numbers behind them."""
    tape = Tape()
    aligned(lists(others), tape=tape, **settings)
    raw = tape.pipe(sender, recipient)
    n = len(lists()[sender])
    rest = raw[32 * n :]
    tags = rest[: 12 * N_TAX] if sender == "town" else b""
    return raw[: 32 * n], tags, np.frombuffer(rest[len(tags) :], "<u4")


def split(raw, size):
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def looks_random(points):
    """Whether points are distinct, on the curve, and as uniform as random ones: false alarms once in 10^6."""
    found = [int.from_bytes(point, "little") for point in split(points, 32)]
    return (
        len(set(found)) == len(found)
        and all(map(on_curve, found))
        and kstest(np.array([u / curve.FIELD for u in found]), "uniform").pvalue > 1e-6
    )


def test_the_simulator_passes_its_own_look():
    assert looks_random(points_of([secrets.token_bytes(16) for _ in range(40)], b""))


@pytest.mark.parametrize(("recipient", "sender"), [("tax", "town"), ("town", "tax")])
def test_lengths_do_not_depend_on_who_is_not_common(recipient, sender):
    shapes = {tuple(map(len, view(recipient, sender, others))) for others in range(3)}
    assert len(shapes) == 1


@pytest.mark.parametrize(("recipient", "sender"), [("tax", "town"), ("town", "tax")])
def test_points_look_like_the_simulators(recipient, sender):
    points = view(recipient, sender)[0]
    assert looks_random(points)
    # drawn anew in each run: nothing of one is in the other
    assert not set(split(points, 32)) & set(split(view(recipient, sender)[0], 32))


def test_pooled_over_runs_points_and_tags_are_uniform():
    found = [view("tax", "town") for _ in range(8)]
    assert looks_random(b"".join(points for points, _, _ in found))
    words = np.frombuffer(b"".join(tags for _, tags, _ in found), np.uint8)
    assert kstest((words + 0.5) / 256, "uniform").pvalue > 1e-6
    assert len(set(split(b"".join(tags for _, tags, _ in found), 12))) == 8 * N_TAX


def ranks_of_positions(runs):
    """The places that the pivot is told, and where these ids stand in its list: independent, if lists are shuffled."""
    told, stand = [], []
    for _ in range(runs):
        tape = Tape()
        got = aligned(lists(), tape=tape)
        sent = np.frombuffer(tape.pipe("tax", "town")[32 * N_TAX :], "<u4")  # number, places of answers, places at the town
        told += list(sent[-COMMON:])
        stand += list(got["town"][1].rows)
    return spearmanr(told, stand)


def test_the_place_of_a_point_tells_nothing_of_its_row():
    assert ranks_of_positions(8).pvalue > 1e-6


def test_v21_answers_in_their_own_order_keep_it_secret_who_is_common():
    """Of the cardinality, the pivot holds its own tags in a secret order, so that no place of its list is linked."""
    points, tags, numbers = view("tax", "town", told=NOBODY)
    assert (len(points), len(tags), numbers.size) == (32 * N_TOWN, 12 * N_TAX, 0)


def places_of_common_answers(run):
    """Where, among the answers, the tags of the ids stand that the pivot sent first: a pivot that knew the order would see."""
    found = []
    for _ in range(run):
        tape = Tape()
        aligned(lists(), tape=tape)
        sent = np.frombuffer(tape.pipe("tax", "town")[32 * N_TAX :], "<u4")
        back = np.frombuffer(tape.pipe("town", "tax")[32 * N_TOWN + 12 * N_TAX :], "<u4")
        found += list(zip(sent[1 : 1 + COMMON], back, strict=True))
    return np.array(found)


def test_answers_stand_in_an_order_that_is_independent_of_the_pivots():
    answers, own = places_of_common_answers(8).T
    assert spearmanr(answers, own).pvalue > 1e-6


def test_v14_no_letter_has_an_id_or_what_can_be_made_of_it():
    """Neither ids, nor their hashes to the curve under the salt, nor plain digests travel; nobody is asked to send ids back."""
    salts, tape = [], Tape()
    honest = curve.points_of

    def watched(ids, salt):
        salts.append(salt)
        return honest(ids, salt)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(curve, "points_of", watched)
        aligned(lists(), tape=tape)
    everything = b"".join(letter for *_, letter in tape.letters)
    (salt,) = set(salts)
    for id in {*lists()["tax"], *lists()["town"]}:
        made = (id, points_of([id], salt), hashlib.sha256(id).digest()[:12], hashlib.sha512(salt + id).digest()[:12])
        assert not any(what in everything for what in made)


def test_of_three_parties_those_who_answer_hear_from_the_pivot_alone():
    """The third gets the pivot's points, the number, and its own positions; of the other one only the first letters."""
    held = lists() | {"bank": [b"person %03d" % i for i in range(50)]}
    tape = Tape()
    got = aligned(held, tape=tape)
    assert {name: count for name, (count, _) in got.items()} == dict.fromkeys(held, COMMON)
    assert tape.pipe("town", "bank") == b"" == tape.pipe("bank", "town")
    assert len(tape.pipe("tax", "bank")) == 32 * N_TAX + 4 + 4 * COMMON
    assert len(tape.pipe("tax", "town")) == 32 * N_TAX + 4 + 4 * COMMON + 4 * COMMON  # and, being first, places to turn back
    seeds = [letter for by, to, letter in tape.letters if (by, to) == ("town", "bank")][1]
    assert len(seeds) > max(len(letter) for by, to, letter in tape.letters[6:12] if "tax" in (by, to))  # the pivot has none


# ---- twins ----------------------------------------------------------------------------------------------------------
def test_twin_hash_as_u_is_seen_by_the_look(monkeypatch):
    monkeypatch.setattr(curve, "on_curve", lambda u: True)
    from test_psi_curve import twin_points

    monkeypatch.setattr(curve, "points_of", twin_points)
    monkeypatch.setattr(curve, "check", lambda raw: None)
    assert not looks_random(view("tax", "town")[0])


def test_twin_unshuffled_list_is_seen(monkeypatch):
    monkeypatch.setattr(star, "permutation", lambda n, entropy: np.arange(n))
    assert ranks_of_positions(8).pvalue < 1e-6


def test_twin_tags_in_order_are_seen(monkeypatch):
    honest, calls = star.permutation, []

    def twin(n, entropy):
        calls.append(n)
        return np.arange(n) if len(calls) % 3 == 0 else honest(n, entropy)  # the third is that of the answers

    monkeypatch.setattr(star, "permutation", twin)
    answers, own = places_of_common_answers(8).T
    assert spearmanr(answers, own).pvalue < 1e-6


def test_twin_one_key_in_all_runs_is_seen(monkeypatch):
    monkeypatch.setattr(curve.Scalar, "fresh", classmethod(lambda cls, entropy: cls(b"\7" * 32)))
    import hedgerow.crypto.psi.opening as opening

    honest = opening.digest
    monkeypatch.setattr(opening, "digest", lambda label, *parts: bytes(32) if label.endswith("salt") else honest(label, *parts))
    first, second = (set(split(view("tax", "town")[0], 32)) for _ in range(2))
    assert first & second
