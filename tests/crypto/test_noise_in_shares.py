"""A row with a share of noise becomes part of no total in which the noise is not whole, whatever the server wants."""

from dataclasses import replace

import numpy as np
import pytest
from hidden_rounds import contributions_of, encoded_sum, encoding_of, rows_of
from secagg_driver import Play

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.pairwise import PairwiseMasks, PairwiseParty, PairwiseServer
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares
from hedgerow.errors import CohortTooSmall, RoundRefused

IDS = tuple(f"p{i}" for i in range(8))
WHOLE = 6
"""Of so many parties the shares make the whole noise."""


def secagg():
    settings = SecAgg()
    return Server(settings, IDS), {id: SecAggParty(id, settings) for id in IDS}


def secagg_active():
    play = Play(8, adversary="active")
    return play.server, play.parties


def pairwise():
    return PairwiseServer(PairwiseMasks(), IDS), {id: PairwiseParty(id, PairwiseMasks()) for id in IDS}


def groups():
    settings = PairwiseMasks(group=4)
    return PairwiseServer(settings, IDS), {id: PairwiseParty(id, settings) for id in IDS}


def additive():
    server = AdditiveServer(AdditiveShares(), IDS)
    return server, {id: AdditiveParty(id, AdditiveShares(), server.keys) for id in IDS}


PROTOCOLS = pytest.mark.parametrize("both", [secagg, secagg_active, pairwise, additive])


def total_of(both, n, wanted, told, lost=()):
    """Ask n parties that want so many in a total, by a server that is told to want so many; some are lost at one step."""
    server, parties = both()
    encoding = encoding_of(4, 8)
    rows, refused = rows_of(IDS, encoding), {}
    given = {id: replace(one, least=wanted) for id, one in contributions_of(rows, encoding).items()}
    drops = lambda step, id: (step, id) in lost  # noqa: E731
    total = drive(server.total(IDS[:n], encoding, b"model and question", told), parties, given, drops=drops, refused=refused)
    assert len(total.counted) >= wanted
    assert (total.total == encoded_sum(rows, total.counted, encoding)).all()
    return total, refused


@PROTOCOLS
def test_enough_parties_give_their_total(both):
    total, refused = total_of(both, 8, WHOLE, WHOLE)
    assert (len(total.counted), refused) == (8, {})


@PROTOCOLS
def test_a_cohort_in_which_noise_is_not_whole_is_refused_before_anybody_is_asked(both):
    with pytest.raises(CohortTooSmall):
        total_of(both, 5, WHOLE, WHOLE)


@PROTOCOLS
def test_a_server_that_wants_fewer_gets_no_total_of_a_small_cohort(both):
    with pytest.raises(RoundRefused):
        total_of(both, 5, WHOLE, 0)


@pytest.mark.parametrize("both", [secagg, secagg_active, additive])
@pytest.mark.parametrize("told", [0, WHOLE])
def test_a_server_gets_no_total_of_those_who_are_left(both, told):
    lost = {("contribution", id) for id in IDS[:3]}
    with pytest.raises(RoundRefused):
        total_of(both, 8, WHOLE, told, lost)


def test_a_server_gets_no_total_of_a_group():
    for told in (0, WHOLE):
        with pytest.raises(RoundRefused):
            total_of(groups, 8, WHOLE, told)


@pytest.mark.parametrize("both", [secagg, additive])
def test_a_twin_whose_parties_forget_the_noise_gives_a_total_of_five(both):
    lost = {("contribution", id) for id in IDS[:3]}
    total, _ = total_of(both, 8, 0, 0, lost)
    assert len(total.counted) == 5


def test_an_aggregator_that_is_told_of_a_smaller_set_makes_other_streams():
    """Two of the three aggregators are in league with the server: the third, that opens no letters, still adds only noise."""
    server, parties = additive()
    encoding = encoding_of(64, 8)
    rows = rows_of(IDS, encoding)
    given = {id: replace(one, least=WHOLE) for id, one in contributions_of(rows, encoding).items()}
    collector = server.aggregators[-1]
    opened, collector._opened = collector._opened, lambda secret, box, found: opened(secret, box, replace(found, least=WHOLE))
    total = drive(server.total(IDS[:5], encoding, b"model and question", 0), parties, given)
    assert not (total.total == encoded_sum(rows, IDS[:5], encoding)).any()
    assert np.unique(total.total >> np.uint64(56)).size > 20
