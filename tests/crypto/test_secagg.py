import numpy as np
import pytest
from secagg_driver import Play, names

from hedgerow.crypto.conversation import drive
from hedgerow.crypto.fixedpoint import RingEncoding
from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.crypto.secagg import Gateway, SecAgg, SecAggParty, Server
from hedgerow.errors import CohortTooSmall, KeyInvalid, RangeExceeded, RoundRefused, SettingsInvalid


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("adversary", ["curious", "active"])
def test_the_total_is_the_sum_of_the_rows_that_came(bits, adversary):
    play = Play(7, bits=bits, adversary=adversary)
    rows = play.rows()
    total = play.total(rows, lost=lambda step, id: step == "contribution" and id == "p3" and "letter")
    assert total.counted == ("p0", "p1", "p2", "p4", "p5", "p6")
    assert (play.encoding(4).decode(total.total) == sum(rows[id] for id in total.counted)).all()
    assert list(total.masked) == list(total.counted)


def test_a_sparse_graph_gives_the_same_total():
    play = Play(40, neighbours=8, threshold=5)
    rows = play.rows()
    gone = {"p3", "p17"}
    total = play.total(rows, lost=lambda step, id: step == "unmask" and id in gone and "letter")
    assert (play.encoding(4).decode(total.total) == sum(rows.values())).all()
    assert play.book.graph.k == 8


def test_the_driver_of_the_package_drives_it_too():
    settings, ids = SecAgg(), names(4)
    play = Play(4, settings)
    server, parties = Server(settings, ids), {id: SecAggParty(id, settings) for id in ids}
    rows = play.rows()
    given = {id: play.contribution(row) for id, row in rows.items()}
    total = drive(server.total(ids, play.encoding(4), b"model"), parties, given)
    assert (play.encoding(4).decode(total.total) == sum(rows.values())).all()


def test_one_set_up_serves_as_many_rounds_as_were_agreed_and_then_another_follows():
    play = Play(4, rounds_per_epoch=2)
    for r in range(5):
        play.total(play.rows(seed=r))
    assert [step for step, id, *_ in play.log if id == "p0" and step in ("keys", "contribution")] == (
        ["keys", "contribution", "contribution"] * 2 + ["keys", "contribution"]
    )


def test_who_dropped_out_of_a_round_is_in_the_next():
    play = Play(5)
    lost = {1: "letter", 2: "answer"}
    for r in range(3):
        rows = play.rows(seed=r)
        total = play.total(rows, lost=lambda step, id, r=r: step == "contribution" and id == "p1" and lost.get(r))
        assert ("p1" in total.counted) == (r == 0)
        assert (play.encoding(4).decode(total.total) == sum(rows[id] for id in total.counted)).all()
    assert sum(step == "keys" for step, *_ in play.log) == 5


def test_who_missed_the_set_up_waits_for_the_next_epoch():
    play = Play(5, rounds_per_epoch=1)
    ready = play.open(lost=lambda step, id: id == "p2" and step == "shares" and "answer")
    assert ready == ("p0", "p1", "p3", "p4")
    assert play.total(play.rows()).counted == ready
    assert play.total(play.rows(seed=1)).counted == tuple(play.ids)


def test_another_cohort_than_was_set_up_has_an_epoch_of_its_own():
    play = Play(9, rounds_per_epoch=8)
    few, others = play.ids[:4], play.ids[4:]
    rows = play.rows()
    for cohort in (few, others):
        total = play.total({id: rows[id] for id in cohort})
        assert (play.encoding(4).decode(total.total) == sum(rows[id] for id in cohort)).all()
        assert play.book.ids == tuple(cohort)


def test_too_few_rows_or_openings_refuse_the_round_and_later_ones_work():
    play = Play(5, rounds_per_epoch=8)
    rows = play.rows()
    for gone in ("contribution", "unmask"):
        with pytest.raises(RoundRefused, match="HR-241"):
            play.total(rows, lost=lambda step, id, gone=gone: step == gone and id in play.ids[:3] and "letter")
    assert (play.encoding(4).decode(play.total(rows).total) == sum(rows.values())).all()


def test_rows_at_the_end_of_the_range_are_added_exactly():
    play = Play(4)
    most = play.encoding(3).most
    rows = {id: np.array([most - 1, 1 - most, i]) for i, id in enumerate(play.ids)}
    assert play.encoding(3).decode(play.total(rows).total).tolist() == [4 * (most - 1), -4 * (most - 1), 6]


def test_real_numbers_are_added_to_the_step_of_their_encoding():
    play = Play(4)
    rows = {id: np.array([0.5 * i, -0.25]) for i, id in enumerate(play.ids)}
    encoding = RingEncoding(64, 4, ((2, 2.0**-20),))
    given = {id: play.contribution(row) for id, row in rows.items()}
    given = {id: type(one)(one.layout, one.row, encoding, one.context) for id, one in given.items()}
    total = play.drive(play.server.total(play.ids, encoding, b"model"), given)
    assert encoding.decode(total.total).tolist() == [3.0, -1.0]


def test_nobody_is_asked_what_cannot_be_protected():
    play = Play(6)
    rows = play.rows()
    with pytest.raises(CohortTooSmall, match="No party was asked"):
        play.total({id: rows[id] for id in play.ids[:2]})
    with pytest.raises(RangeExceeded, match="No party was asked"):
        play.drive(play.server.total(play.ids, RingEncoding(64, 5, ((4, 1.0),)), b""))
    with pytest.raises(SettingsInvalid, match="32 bits"):
        play.drive(play.server.total(play.ids, RingEncoding(32, 6, ((4, 1.0),)), b""))
    for ids in (["p0", "p1", "stranger"], ["p0", "p1", "p1"]):
        with pytest.raises(KeyInvalid, match="No party was asked"):
            play.drive(play.server.total(ids, play.encoding(4), b""))
    assert play.log == []


@pytest.mark.parametrize(
    "changes",
    [
        {"least": 2},
        {"threshold": 1},
        {"neighbours": 10, "threshold": 5},
        {"neighbours": 10, "threshold": 11},
        {"neighbours": 9, "threshold": 6, "adversary": "active"},
        {"neighbours": 1},
        {"adversary": "trusted"},
        {"rounds_per_epoch": 0},
        {"rounds_per_epoch": 257},
        {"bits": 48},
        {"corrupt": -0.1},
        {"corrupt": 0.6, "dropouts": 0.5},
    ],
)
def test_settings_that_protect_nothing_are_refused(changes):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        SecAgg(**changes)


def test_the_degree_follows_the_number_of_parties():
    assert SecAgg().degree(4) == (3, 2)
    assert SecAgg().degree(100) == (99, 50)
    assert SecAgg(adversary="active").degree(100) == (99, 67)
    assert SecAgg().degree(70_000)[0] < 50
    assert SecAgg(neighbours=99, threshold=67).degree(100) == (99, 67)
    with pytest.raises(SettingsInvalid):
        SecAgg(neighbours=99).degree(101)
    with pytest.raises(CohortTooSmall):
        SecAgg(threshold=4).degree(4)


def test_every_setting_changes_the_digest():
    digests = {SecAgg().digest, SecAgg(least=4).digest, SecAgg(bits=32).digest, SecAgg(once_per_context=True).digest}
    assert len(digests) == 4


def test_mixed_settings_or_rosters_are_refused_at_the_first_letter():
    play = Play(5)
    play.parties["p1"] = SecAggParty("p1", SecAgg(rounds_per_epoch=3, least=4))
    assert play.open() == ("p0", "p2", "p3", "p4")
    assert play.refused == [("keys", "p1", "HR-242")]
    active = Play(5, adversary="active")
    other = Roster({**active.roster, "stranger": Identity.fresh().public})
    active.parties["p1"] = SecAggParty("p1", active.settings, other, active.identities["p1"])
    assert "p1" not in active.open()


def test_against_a_server_that_lies_there_must_be_identities():
    identity = Identity.fresh()
    settings = SecAgg(adversary="active")
    with pytest.raises(SettingsInvalid):
        SecAggParty("p0", settings)
    with pytest.raises(SettingsInvalid):
        Server(settings, names(4))
    with pytest.raises(KeyInvalid):
        SecAggParty("p0", settings, Roster({"p0": Identity.fresh().public}), identity)
    with pytest.raises(KeyInvalid):
        Server(settings, names(4), Roster({"p0": identity.public}))


def test_a_row_out_of_range_is_refused_by_its_party_and_the_others_are_added():
    play = Play(5)
    encoding = RingEncoding(64, 5, ((2, 2.0**-40),))
    given = {id: play.contribution(np.array([1.0, 2.0])) for id in play.ids}
    given = {
        id: type(one)(one.layout, one.row * (1e9 if id == "p4" else 1), encoding, one.context) for id, one in given.items()
    }
    total = play.drive(play.server.total(play.ids, encoding, b"model"), given)
    assert encoding.decode(total.total).tolist() == [4.0, 8.0]
    assert play.refused == [("contribution", "p4", "HR-243")]


def test_parties_of_one_gateway_agree_once_for_each_pair(monkeypatch):
    agreed, agree = [], AgreementKey.agree
    monkeypatch.setattr(AgreementKey, "agree", lambda self, public: agreed.append(public) or agree(self, public))
    play, gateway = Play(6), Gateway()
    play.parties = {id: SecAggParty(id, play.settings, gateway=gateway if id != "p5" else None) for id in play.ids}
    rows = play.rows()
    assert (play.encoding(4).decode(play.total(rows).total) == sum(rows.values())).all()
    probes, inside, outside = 6, 5 * 4 // 2, 2 * 5
    assert len(agreed) == probes + inside + outside
    assert len(gateway._waiting) == 5  # the stranger's, who agrees for itself


@pytest.mark.slow
def test_hundreds_of_parties_share_masks_with_a_few():
    play = Play(120, rounds_per_epoch=1)
    rows = play.rows(20)
    gone = set(play.ids[::10])
    total = play.total(rows, lost=lambda step, id: step == "contribution" and id in gone and "answer")
    assert set(total.counted) == set(play.ids) - gone
    assert (play.encoding(20).decode(total.total) == sum(rows[id] for id in total.counted)).all()
    assert play.book.graph.k == 36
