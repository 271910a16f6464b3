"""Over whom exact totals are: sets that may follow each other, and how a server of many keeps to them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from secagg_driver import Play

from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.crypto.secagg import SecAggParty
from hedgerow.crypto.standing import PartySet, ServerStanding, StandingSet, StandingSets, may_follow
from hedgerow.errors import CohortChanged, RoundRefused
from hedgerow.store import Answered

ORDER = b"o" * 32


def of(members, n=24):
    flags = np.zeros(n, bool)
    flags[list(members)] = True
    return PartySet.of(ORDER, flags)


@pytest.mark.parametrize(
    ("found", "lawful"),
    [
        (range(16), True),
        (range(13), True),  # three are left out together
        (range(12), True),
        (range(15), False),  # the difference is one party
        (range(14), False),  # or two, of whom one knows the other
        (range(11), False),  # fewer than three quarters
        (range(17), False),  # somebody joins
        ([*range(12), 20, 21, 22, 23], False),
    ],
)
def test_which_set_may_follow(found, lawful):
    assert may_follow(of(found), of(range(16)), 16, 3) == lawful


def test_a_set_over_other_names_is_another_set():
    assert not may_follow(PartySet(b"p" * 32, of(range(16)).places), of(range(16)), 16, 3)


def totals(tries, n, least):
    """The sets of which totals come off: those that every member lets be, each of them keeping its own."""
    parties, found = [StandingSet() for _ in range(n)], []
    for members in tries:
        one = of(members, n)
        try:
            for i in members:
                parties[i].refuse_other(one, least)
        except CohortChanged:
            continue
        for i in members:
            parties[i].keep(one, least)
        found.append(one)
    return found


def smallest_difference(sets, n):
    """The fewest parties that a combination of totals is about: atoms of the sets, found by who is in which."""
    membership = np.array([one.flags[:n] for one in sets]).T
    kinds, sizes = np.unique(membership[membership.any(axis=1)], axis=0, return_counts=True)
    alone = [
        np.linalg.matrix_rank(np.vstack([kinds.T, np.eye(len(kinds))[i]])) == np.linalg.matrix_rank(kinds.T)
        for i in range(len(kinds))
    ]
    return min((int(size) for size, known in zip(sizes, alone, strict=True) if known), default=n)


SETS = st.lists(st.sets(st.integers(0, 15), min_size=3, max_size=16).map(sorted), min_size=2, max_size=12)


@settings(max_examples=150, deadline=None)
@given(SETS, st.lists(st.sets(st.integers(0, 15), max_size=5), max_size=12))
def test_no_totals_add_up_to_fewer_than_least_parties(tries, removed):
    tries += [sorted(set(range(16)) - gone) for gone in removed]
    found = totals(tries, 16, 3)
    assert not found or smallest_difference(found, 16) >= 3


def test_a_twin_that_lets_one_party_be_left_out_is_caught(monkeypatch):
    tries = [range(16), range(15), range(16)]
    assert smallest_difference(totals(tries, 16, 3), 16) == 16
    monkeypatch.setattr("hedgerow.crypto.standing.may_follow", lambda found, last, first, least: found.within(last))
    assert smallest_difference(totals(tries, 16, 3), 16) == 1


def test_a_chain_that_forgets_the_first_set_would_part_it_in_pieces(monkeypatch):
    tries = [range(16), range(8), [*range(8, 15)]]
    assert len(totals(tries, 16, 3)) == 1
    law = lambda found, last, first, least: found == last or (found.within(last) and len(last) - len(found) >= least)  # noqa: E731
    monkeypatch.setattr("hedgerow.crypto.standing.may_follow", law)
    assert smallest_difference(totals(tries, 16, 3), 16) == 1


def test_a_party_remembers_after_a_restart_and_a_process_writes_a_set_once(tmp_path):
    path = tmp_path / "answered.journal"
    with Answered(path) as answered:
        sets = StandingSets(answered)
        for name in ("a", "b"):
            sets.of(name).keep(of(range(16)), 3)
        sets.of("a").keep(of(range(12)), 3)
        assert len(answered) == 2 + 3
        assert sets.taken() == of(range(12))
        assert sets.taken() is None
    with Answered(path) as answered:
        again = StandingSets(answered).of("a")
        assert again.report() != b""
        with pytest.raises(CohortChanged):
            again.refuse_other(of(range(16)), 3)
        again.refuse_other(of(range(12)), 3)
        StandingSets(answered).of("b").refuse_other(of(range(16)), 3)


def test_a_server_asks_those_that_most_report_and_ignores_what_is_no_report():
    names = [f"p{i:02}" for i in range(24)]
    server = ServerStanding(names)
    found = StandingSet()
    found.keep(server.set_of(names[:16]), 3)
    server.hear([found.report(), found.report(), b"what", b""])
    everybody = np.ones(24, bool)
    assert server.part(names, everybody).sum() == 16
    with pytest.raises(RoundRefused):
        server.settled(names, np.arange(24) < 15, 3)


class Steady(Play):
    """A federation whose totals are exact; parties keep their sets, over as many epochs as there are."""

    def __init__(self, n, **how):
        self.sets = StandingSets()
        super().__init__(n, party=self.party, **how)

    def party(self, id, settings, roster, identity):
        return SecAggParty(id, settings, roster, identity, standing=self.sets.of(id))

    def contribution(self, row, context=b"model"):
        return type(given := super().contribution(row, context))(
            given.layout, given.row, given.encoding, given.context, steady=True
        )

    def total(self, rows, lost, steady=True):
        encoding = RingEncoding(self.settings.bits, len(self.ids), ((4, 1.0),), whole=True)
        given = {id: self.contribution(row) for id, row in rows.items()}
        return self.drive(self.server.total(list(rows), encoding, b"model", steady=steady), given, lost=lost)


def losing(*gone):
    return lambda step, id: "answer" if step == "contribution" and id in gone else False


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ["curious", "active"])
def test_many_parties_go_on_when_some_drop_out_and_no_difference_is_of_fewer_than_least(adversary):
    play = Steady(90, adversary=adversary, rounds_per_epoch=2)
    rows, counted = play.rows(), []
    for gone in ([], ["p3"], [], ["p3", "p7", "p8", "p9"], [], ["p50"]):
        found = play.total(rows, losing(*gone))
        counted.append(frozenset(found.counted))
        want = sum(rows[id] for id in found.counted)
        assert (play.encoding(4).decode(found.total) == want).all()
    assert [len(one) for one in counted] == [90, 87, 87, 84, 84, 81]
    assert all(later <= earlier for earlier, later in pairwise(counted))
    assert play.refused == []


@pytest.mark.slow
def test_few_parties_wait_for_one_that_is_missing_and_a_new_server_learns_whom_it_may_ask():
    play = Steady(7)
    rows = play.rows()
    first = play.total(rows, losing("p6"))
    assert first.counted == tuple(play.ids[:6])
    play.server = type(play.server)(play.settings, play.ids)
    assert play.total(rows, losing()).counted == tuple(play.ids[:6])
    with pytest.raises(RoundRefused):
        play.total(rows, losing("p0"))
    assert play.total(rows, losing()).counted == tuple(play.ids[:6])
    assert play.refused == []


# ---- a roster that has grown -----------------------------------------------------------------------------------------
def over(names, members, answered):
    """A party's sets over these names, and the set of these members."""
    party = StandingSets(answered).of("b")
    party.over(tuple(names))
    return party, ServerStanding(list(names)).set_of(members)


def test_the_same_parties_are_the_same_set_on_a_roster_that_has_grown():
    answered = Answered(None)
    party, four = over("bdfh", "bdfh", answered)
    party.keep(four, 2)
    party, same = over("abcdefgh", "bdfh", answered)
    assert same != four
    party.refuse_other(same, 2)
    party.keep(same, 2)
    assert party.report() == over("abcdefgh", "bdfh", answered)[0].report()
    for others in ("bdf", "abdfh", "abdf", "aceg"):  # one is left out, or somebody joins
        with pytest.raises(CohortChanged):
            party.refuse_other(over("abcdefgh", others, answered)[1], 2)
    party, same = over("bcdfhi", "bdfh", answered)  # two have left the roster that were not in the set
    party.refuse_other(same, 2)
    party, _ = over("abcdfg", "bdf", answered)
    with pytest.raises(CohortChanged, match="names are others"):  # one that was in it has left
        party.refuse_other(over("abcdfg", "bdf", answered)[1], 2)
    party.over(())
    with pytest.raises(CohortChanged):
        party.refuse_other(same, 2)


def test_a_set_that_became_smaller_on_the_grown_roster_stays_so():
    answered = Answered(None)
    party, whole = over("bdfhjlnp", "bdfhjlnp", answered)
    party.keep(whole, 2)
    party, part = over("abcdefghijklmnop", "bdfhjl", answered)
    party.keep(part, 2)
    again, _ = over("bcdefghijklmnopq", "bdfhjl", answered)
    again.refuse_other(over("bcdefghijklmnopq", "bdfhjl", answered)[1], 2)
    with pytest.raises(CohortChanged):
        again.refuse_other(over("bcdefghijklmnopq", "bdfhjlnp", answered)[1], 2)
