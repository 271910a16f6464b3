"""A server that lies, with colluding parties: what `corrupt` promises holds, and beyond it an attack succeeds."""

from contextlib import suppress

import numpy as np
import pytest
from secagg_driver import Play

from hedgerow.crypto import keys, shamir, streams
from hedgerow.crypto.graph import neighbours_needed, stood
from hedgerow.crypto.secagg import SecAgg, letters
from hedgerow.errors import CohortTooSmall, HedgerowError, MessageRefused, SettingsInvalid

N, COLLUDERS = 10, 6
TARGET, TOLD_IT_ANSWERED, TOLD_IT_LEFT = 0, (0, 1), (2, 3)


# ---- two stories, one for each half of the honest neighbours -----------------------------------------------------------
def row_opened_by_two_stories(corrupt):
    """Tell half of the honest parties that p0 answered, and half that it left; colluders sign and open both."""
    play = Play(N, adversary="active", corrupt=corrupt)
    play.open()
    rows, book = play.rows(), play.book
    context = letters.context(b"model", play.encoding(4).digest)
    cohort = letters.write_set(np.ones(N, bool))
    asked = play.server._round_letters(book, 1, np.ones(N, bool), cohort, context)
    answers = {id: play.parties[id].answer("contribution", asked[id], play.contribution(rows[id])) for id in play.ids}
    story, shares = {}, {"b": {}, "e": {}}
    for told, secret in ((TOLD_IT_ANSWERED, "b"), (TOLD_IT_LEFT, "e")):
        alive = np.ones(N, bool)
        alive[TARGET] = secret == "b"
        story[secret] = letters.write_set(alive)
        opened_by_half(play, told, story[secret], cohort, shares[secret])
    for place in range(N - COLLUDERS, N):
        held = play.parties[play.ids[place]]._epoch.held[list(book.graph.neighbours[place]).index(TARGET)]
        shares["b"][place], shares["e"][place] = held[0], held[play.settings.rounds_per_epoch]
    if min(map(len, shares.values())) < book.threshold:
        return False
    secrets = {secret: put_together(book, found) for secret, found in shares.items()}
    row = np.frombuffer(letters.ROW.unpack(answers["p0"])[2], np.uint64).copy()
    nonce = letters.nonce(book.bond, 1, context, letters.read_set(cohort, N).digest)
    seeds = seeds_of(play, book, secrets["e"])
    streams.add_streams(row, [secrets["b"], *seeds], [-1] * N, nonce)  # its place is the first, so it added all of them
    return (row.view(np.int64) == rows["p0"]).all()


def opened_by_half(play, told, survivors, cohort, found):
    """Have these parties sign a set of survivors, add the colluders' signatures, and ask them to open."""
    book = play.book
    letter = letters.SURVIVORS.pack(epoch=book.name, round=1, survivors=survivors)
    statement = letters.survivors_statement(
        book.bond, 1, letters.read_set(cohort, N).digest, letters.read_set(survivors, N).digest
    )
    signed = {place: play.identities[play.ids[place]].sign(statement) for place in range(N - COLLUDERS, N)}
    for place in told:
        signed[place] = letters.AGREED.unpack(play.parties[play.ids[place]].answer("consistency", letter))[2]
    for place in set(told) - {TARGET}:
        near = book.graph.neighbours[place].tolist()
        by = [j for j, v in enumerate(near) if v in signed]
        letter = letters.UNMASK.pack(
            epoch=book.name,
            round=1,
            survivors=survivors,
            signers=np.array(by, "<u4").tobytes(),
            signatures=b"".join(signed[near[j]] for j in by),
        )
        with suppress(MessageRefused):
            opening = letters.OPENING.unpack(play.parties[play.ids[place]].answer("unmask", letter))[2]
            found[place] = np.frombuffer(opening, np.uint8).reshape(-1, shamir.SHARE_BYTES)[near.index(TARGET)]


def put_together(book, found):
    """The secret of the target that shares of these holders open."""
    near = book.graph.neighbours[TARGET].tolist()
    holders = sorted(found)[: book.threshold]
    shares = np.stack([shamir.unpack(found[place].tobytes(), 1) for place in holders])
    return shamir.combine(np.array([near.index(place) + 1 for place in holders]), shares)[0].tobytes()


def seeds_of(play, book, secret):
    size = 32 * (N - 1) + keys.TAG_BYTES
    seeds = keys.unseal(secret, book.lists[TARGET][:size], letters.list_label(book.bond, TARGET, 1))
    return [seeds[32 * j : 32 * j + 32] for j in range(N - 1)]


def test_T7_as_many_colluders_as_were_declared_cannot_have_both_halves_open():
    assert not row_opened_by_two_stories(corrupt=COLLUDERS / N)


def test_T7_more_colluders_than_were_declared_open_a_row_though_they_are_fewer_than_the_threshold():
    assert SecAgg(adversary="active").degree(N) == (9, 7)
    assert row_opened_by_two_stories(corrupt=0.05)


# ---- T9: whom the server asks ------------------------------------------------------------------------------------------
def recovered_by_asking_colluders_alone(corrupt):
    """Ask p0, and those of a roster of thirty who collude."""
    play = Play(30, adversary="active", corrupt=corrupt)
    rows = {id: row for id, row in play.rows().items() if id in ("p0", "p1", "p2")}
    total = play.total(rows).total
    return (total.view(np.int64) - rows["p1"] - rows["p2"] == rows["p0"]).all()


def test_T9_a_cohort_that_could_be_all_colluders_but_one_is_refused():
    with pytest.raises(CohortTooSmall, match="3 may collude"):
        recovered_by_asking_colluders_alone(corrupt=0.1)


def test_T9_where_fewer_are_declared_it_is_answered():
    assert recovered_by_asking_colluders_alone(corrupt=0.03)


def test_T9_a_party_refuses_such_an_epoch_whatever_the_server_wants(monkeypatch):
    play = Play(30, adversary="active", corrupt=0.1)
    play.server._degree = lambda n: (n - 1, 2)
    with pytest.raises(HedgerowError):
        play.total({id: row for id, row in play.rows().items() if id in ("p0", "p1", "p2")})
    assert {refusal for refusal in play.refused if refusal[0] == "shares"} == {("shares", f"p{i}", "HR-242") for i in range(3)}


@pytest.mark.parametrize("corrupt", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("n", [101, 1000])
def test_no_neighbourhood_holds_enough_colluders_for_two_stories(n, corrupt):
    k, t = neighbours_needed(n, corrupt, 0.1, 2.0**-40, active=True)
    bad, few = round(corrupt * n), stood(k, t, True)
    rng = np.random.default_rng(0)
    drawn = rng.hypergeometric(bad, n - 1 - bad, k, 100_000)
    assert drawn.max() < few == 2 * t - k
    assert k >= neighbours_needed(n, corrupt, 0.1)[0]


def test_thresholds_follow_what_is_declared():
    assert SecAgg(adversary="active", corrupt=0.3).degree(10) == (9, 7)
    assert SecAgg(adversary="active", corrupt=0.4).degree(10) == (9, 7)
    assert SecAgg(adversary="active", corrupt=0.6).degree(10) == (9, 8)
    assert SecAgg(corrupt=0.6).degree(10) == (9, 7)
    with pytest.raises(SettingsInvalid):
        SecAgg(adversary="active", corrupt=0.6, threshold=7).degree(10)
