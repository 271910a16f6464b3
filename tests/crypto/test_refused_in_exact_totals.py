"""A refused row among exact totals of one study: what docs/verified-clips.md says of the first total and of later ones."""

from dataclasses import replace

import pytest
from hidden_rounds import contributions_of
from verified_rounds import IDS, HonestBits, Lying, encoding_of, rows_of, watched

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.shares import AdditiveShares, ProvingParty, VerifiedServer
from hedgerow.errors import RoundRefused


class LaterALiar(Lying):
    """Honest in its first round."""

    factor = 1

    def _row(self, encoding, row):
        found = super()._row(encoding, row)
        self.factor = 100
        return found


def owned(n=6, kinds=None):
    """A server, aggregators and parties of one study, whose parties have owners."""
    settings, study, kinds = AdditiveShares(2, verified=True), bytes(range(32)), kinds or {}
    server = VerifiedServer(settings, IDS[:n], watched(study=study), study=study)
    return server, {id: kinds.get(i, ProvingParty)(id, settings, server.keys, study=study) for i, id in enumerate(IDS[:n])}


def exact(server, parties):
    """An exact total."""
    encoding = encoding_of()
    rows = rows_of(parties, encoding)
    given = {id: replace(one, steady=True) for id, one in contributions_of(rows, encoding).items()}
    return drive(server.total(tuple(parties), encoding, b"model and question", steady=True), parties, given)


def test_who_is_refused_in_the_first_exact_total_is_in_none():
    server, parties = owned(kinds={2: HonestBits})
    first = exact(server, parties)
    assert (len(first.counted), first.refused) == (5, 1)
    second = exact(server, parties)
    assert (second.counted, second.refused) == (first.counted, 0)  # it is asked no more


def test_one_who_is_refused_later_leaves_no_total_of_the_others():
    server, parties = owned(kinds={2: LaterALiar})
    assert exact(server, parties).refused == 0
    for _ in range(2):
        with pytest.raises(RoundRefused, match="exact totals were refused"):
            exact(server, parties)


def test_least_who_are_refused_at_once_are_left_out_for_good():
    server, parties = owned(8, kinds=dict.fromkeys((1, 2, 3), LaterALiar))
    assert exact(server, parties).refused == 0
    assert [(len(one.counted), one.refused) for one in (exact(server, parties), exact(server, parties))] == [(5, 3), (5, 0)]
