"""Over which parties aggregators give exact totals, what a server makes of it, and parties that were restarted."""

import pytest
from hidden_rounds import contributions_of, encoded_sum, encoding_of, rows_of
from hypothesis import given
from hypothesis import strategies as some

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares, Aggregator, TotalsGiven
from hedgerow.crypto.shares.given import may_succeed
from hedgerow.errors import CannotWrite, CohortChanged, LimitExceeded, RoundRefused
from hedgerow.store import Answered

IDS = tuple(f"store {i}" for i in range(8))
STUDY = b"a study as it was approved......"


class Owned:
    """Parties and aggregators of one study, each with its owner."""

    def __init__(self, n=6, journals=None, rosters=None, **how):
        self.settings, self.ids = AdditiveShares(3), IDS[:n]
        self.keys = [AgreementKey.fresh() for _ in range(3)]
        self.publics = [key.public for key in self.keys]
        self.journals = journals or [None] * 3
        self.identities = {id: Identity.fresh() for id in self.ids}
        self.roster = Roster({id: one.public for id, one in self.identities.items()})
        self.rosters, self.how = rosters or [self.roster] * 3, how
        self.begin()
        self.parties = {id: self.party(id) for id in self.ids}

    def begin(self):
        """Aggregators on what they kept, and a server that remembers nothing."""
        self.aggregators = [
            Aggregator(key, self.publics, roster=roster, study=STUDY, given=TotalsGiven(journal), **self.how)
            for key, roster, journal in zip(self.keys, self.rosters, self.journals, strict=True)
        ]
        self.server = AdditiveServer(self.settings, self.ids, self.aggregators, self.roster, STUDY)

    def party(self, id, **how):
        about = {"roster": self.roster, "identity": self.identities[id], "study": STUDY} | how
        return AdditiveParty(id, self.settings, self.publics, **about)

    def ask(self, ids=None, drops=(), steady=True, size=3):
        ids = self.ids if ids is None else ids
        encoding = encoding_of(size, len(ids))
        rows = rows_of(ids, encoding)
        given = {id: vars(one) | {"steady": steady} for id, one in contributions_of(rows, encoding).items()}
        given = {id: type(contributions_of(rows, encoding)[id])(**one) for id, one in given.items()}
        conversation = self.server.total(tuple(ids), encoding, b"model and question", steady=steady)
        found = drive(conversation, self.parties, given, drops=lambda step, id: step == "contribution" and id in drops)
        assert (found.total == encoded_sum(rows, found.counted, encoding)).all()
        return found.counted


# ---- the rule --------------------------------------------------------------------------------------------------------
SETS = some.lists(some.frozensets(some.integers(0, 11), min_size=3), min_size=2, max_size=6)


@given(SETS, some.integers(3, 5))
def test_every_set_that_is_given_differs_from_an_earlier_one_by_nobody_or_by_many(sets, least):
    given_, totals = [], TotalsGiven()
    for found in sets:
        ids = {str(one) for one in found}
        try:
            totals.keep(1, len(ids), 3, sorted(ids), least)
        except CohortChanged:
            continue
        given_.append(ids)
    for i, one in enumerate(given_):
        for other in given_[i:]:
            assert other <= one
            assert one == other or len(one - other) >= least


def test_sets_outlive_the_process_and_what_is_told_comes_first(tmp_path):
    told = []
    with Answered(tmp_path / "given") as journal:
        totals = TotalsGiven(journal, lambda *total: told.append(total))
        totals.keep(1, 3, 18, ["a", "b", "c"], 3)
        totals.keep(2, 3, 18, [], 3)
        assert [one[:4] for one in told] == [(1, 3, 18, True), (2, 3, 18, False)]
    with Answered(tmp_path / "given") as journal:
        again = TotalsGiven(journal)
        assert again.last == {"a", "b", "c"}
        with pytest.raises(CohortChanged, match="HR-245"):
            again.refuse_other(["a", "b", "c", "d"], 3)


def test_what_cannot_be_told_is_not_given():
    def full(*total):
        raise CannotWrite("the disk is full.")

    totals = TotalsGiven(told=full)
    with pytest.raises(CannotWrite):
        totals.keep(1, 3, 18, ["a", "b", "c"], 3)
    assert totals.last is None


# ---- servers that keep to it -----------------------------------------------------------------------------------------
def test_exact_totals_are_over_the_same_parties_and_wait_for_who_is_missing():
    owned = Owned()
    assert owned.ask() == IDS[:6]
    with pytest.raises(RoundRefused, match="1 of the 6 parties of this study's exact totals are missing"):
        owned.ask(drops=IDS[5:6])
    assert owned.ask() == IDS[:6]
    assert owned.ask(drops=IDS[3:6]) == IDS[:3]  # three at once may leave, for good
    assert owned.ask() == IDS[:3]


def test_a_server_that_was_restarted_learns_from_the_aggregators_of_whom_totals_are(tmp_path):
    journals = [Answered(tmp_path / str(k)) for k in range(3)]
    owned = Owned(journals=journals)
    assert owned.ask(drops=IDS[5:6]) == IDS[:5]
    owned.begin()
    assert owned.ask() == IDS[:5]  # who was missed in the first total stays out
    for journal in journals:
        journal.close()


def test_totals_whose_difference_noise_covers_are_over_whoever_answers():
    owned = Owned()
    assert owned.ask(steady=False) == IDS[:6]
    assert owned.ask(steady=False, drops=IDS[5:6]) == IDS[:5]
    assert owned.ask(steady=False) == IDS[:6]


def test_a_party_decides_whether_its_total_is_exact_and_no_server():
    """Shares of an exact total are other streams than those of one that noise covers."""
    owned = Owned()
    owned.ask()
    for one in owned.aggregators:
        answer = one.answer
        one.answer = lambda step, letter, answer=answer: answer(step, softened(step, letter))
    with pytest.raises(RoundRefused):
        owned.ask(drops=IDS[5:6])


def softened(step, letter):
    """A letter to an aggregator that calls an exact total another."""
    from hedgerow.crypto.shares.letters import AGREE, COLLECT

    form = {"collect": COLLECT, "agree": AGREE}.get(step)
    return letter if form is None else form.pack(**dict(zip(form.kinds, form.unpack(letter), strict=True)) | {"steady": 0})


def test_may_succeed_is_what_both_sides_go_by():
    whole = frozenset(IDS)
    assert may_succeed(whole, None, 3)
    assert may_succeed(whole, whole, 3)
    assert may_succeed(whole - set(IDS[:3]), whole, 3)
    assert not may_succeed(whole - set(IDS[:2]), whole, 3)
    assert not may_succeed(whole | {"another"}, whole, 3)


# ---- keys and studies ------------------------------------------------------------------------------------------------
def test_shares_for_another_study_are_no_shares_of_this_one():
    owned = Owned()
    owned.parties[IDS[0]] = owned.party(IDS[0], study=b"another study, approved somewhere")
    assert owned.ask() == IDS[1:6]


def test_a_party_that_was_restarted_is_counted_again_in_the_next_total():
    owned = Owned()
    owned.ask(steady=False)
    owned.parties[IDS[2]] = owned.party(IDS[2])
    assert owned.ask(steady=False) == (*IDS[:2], *IDS[3:6])
    assert owned.ask(steady=False) == IDS[:6]


def test_an_aggregator_with_another_roster_is_named_and_parties_are_not_enrolled_twice():
    other = Roster({id: Identity.fresh().public for id in IDS[:6]})
    owned = Owned(rosters=[None, None, other])
    for _ in range(3):
        with pytest.raises(RoundRefused, match="took the key of none of 6 parties"):
            owned.ask()


def test_one_party_whose_key_an_aggregator_refuses_hurts_no_other_round():
    owned = Owned()
    owned.server.roster = None
    stranger = Identity.fresh()
    owned.parties[IDS[0]] = owned.party(IDS[0], identity=stranger)
    for _ in range(3):
        assert owned.ask() == IDS[1:6]


def test_an_aggregator_refuses_a_total_that_is_longer_than_it_holds():
    owned = Owned(longest=10)
    assert owned.ask(size=10) == IDS[:6]
    with pytest.raises(RoundRefused, match=LimitExceeded.code):
        owned.ask(size=11)
