"""Whom each channel limits, as docs/secure-aggregation.md says: its table is made again, forged rows go as far as it says."""

from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.core.arrays import Layout
from hedgerow.core.federation import inside
from hedgerow.core.release import Release
from hedgerow.crypto.conversation import Contribution, drive
from hedgerow.crypto.fixedpoint import RingEncoding, encoding_for
from hedgerow.crypto.shares import AdditiveParty, AdditiveServer, AdditiveShares
from hedgerow.crypto.shares.letters import SUM
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import Acting, InProcess

PAGE = Path(__file__).parents[2] / "docs" / "secure-aggregation.md"
SCHEMA = Schema((Column("age", "number", low=0, high=1),))
TABLE = Table(SCHEMA.admit(SCHEMA.synthetic(80, np.random.default_rng(0))), SCHEMA)
PARTIES, NUMBERS = 8, 1000
CLIP = {"clip": hr.l2(1.0)}
TWO = hr.AdditiveShares(aggregators=2)
SEEN = {
    "rows that the server sees": CLIP,
    "rows that the server sees, noise at the server": CLIP | {"mechanism": hr.Gaussian(0.001)},
}
HIDDEN = {
    "`secagg`": CLIP | {"aggregation": hr.SecAgg()},
    "`pairwise`": CLIP | {"aggregation": hr.PairwiseMasks()},
    "`additive`": CLIP | {"aggregation": TWO},
}
PROVED = {"`additive`, `verified = true`": CLIP | {"aggregation": hr.AdditiveShares(aggregators=2, verified=True)}}
NOISY = {
    "`secagg`, noise at the server": CLIP | {"aggregation": hr.SecAgg(), "mechanism": hr.Gaussian(0.5)},
    "`additive`, noise at the server": CLIP | {"aggregation": TWO, "mechanism": hr.Gaussian(0.5)},
}
CHANNELS = SEEN | {"noise at the parties": CLIP | {"mechanism": hr.Gaussian(0.001, at="party")}} | HIDDEN | PROVED | NOISY
LIE, FORGED = ScaledRows(1000.0), ScaledRows(1000.0, kind="forge")
LONGEST = ScaledRows(1e30, kind="forge")


def direction(broadcast, party, rng):
    """A row of length 1."""
    row = np.random.default_rng(int(party["age"].astype(float).sum() * 1e6)).standard_normal(NUMBERS)
    return row / np.linalg.norm(row)


def ages(broadcast, party, rng):
    """The sum of the ages of a party's records."""
    return (party["age"].astype(float) * party.w).sum(keepdims=True)


def asked(protection, *acts, of=direction, parties=1, **question):
    """A total, and who was said to have sent too much."""
    liars = Liars(tuple(f"party {i + 1}" for i in range(parties)), acts)
    federation = hr.simulate(TABLE, iid(PARTIES), seed=1, engine=InProcess(acts=Acting(liars) if acts else None))
    federation = federation.protect(**protection) if protection else federation
    return np.asarray(federation.sum(of, **question)), dict(inside(federation).run.overlong)


def moved(protection, *acts, **more):
    """How far a total moves when parties act, in length."""
    return float(np.linalg.norm(asked(protection, *acts, **more)[0] - asked(protection, **more)[0]))


def printed():
    """The page's table of what one party's row moves: channel -> (lie, forged, the longest)."""
    rows = PAGE.read_text("utf-8").partition("| channel | a lie × 1000 |")[2].partition("\n\n")[0].splitlines()[2:]
    return {
        cells[0]: [float(cell) for cell in cells[1:]] for cells in ([c.strip() for c in r.strip("|").split("|")] for r in rows)
    }


def test_the_table_has_each_channel():
    assert list(printed()) == list(CHANNELS)


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_table_is_what_happens(channel):
    found = [moved(CHANNELS[channel], act) for act in (LIE, FORGED, LONGEST)]
    assert found == pytest.approx(printed()[channel], rel=0.02, abs=0.01)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_lie_moves_a_total_by_two_bounds_at_most(channel):
    assert moved(CHANNELS[channel], ScaledRows(-1e6)) <= 2.01


@pytest.mark.parametrize("channel", SEEN)
@pytest.mark.parametrize("factor", [-1.0, 1.01, 1e3, -1e30])
def test_where_rows_are_seen_forged_ones_move_a_total_by_two_bounds_at_most(channel, factor):
    total, named = asked(SEEN[channel], ScaledRows(factor, kind="forge"))
    assert np.linalg.norm(total - asked(SEEN[channel])[0]) <= 2.01
    assert named == ({} if factor == -1 else {"party 1": 1})


@pytest.mark.parametrize("factor", [-1.0, 1.01, 1e3, -1e30])
def test_where_rows_are_proved_forged_ones_move_a_total_by_two_bounds_at_most_and_nobody_is_named(factor):
    [protection] = PROVED.values()
    total, named = asked(protection, ScaledRows(factor, kind="forge"))
    assert np.linalg.norm(total - asked(protection)[0]) <= 2.01
    assert named == {}


@pytest.mark.parametrize("channel", HIDDEN | NOISY)
def test_behind_hidden_rows_one_forged_row_moves_a_total_by_far_more_than_all_bounds(channel):
    total, named = asked(CHANNELS[channel], FORGED)
    assert np.linalg.norm(total - asked(CHANNELS[channel])[0]) > 10 * PARTIES
    assert named == {}


@pytest.mark.parametrize("f", [1, 3])
def test_liars_together_move_a_total_by_two_bounds_each(f):
    assert 1 < moved(CLIP, ScaledRows(-1.0, kind="forge"), parties=f) <= 2.01 * f


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("parties", [3, 8, 1000, 1023, 1024])
@pytest.mark.parametrize("radius", [1.0, 0.9999, 7.77])
def test_the_ring_reaches_n_to_4n_bounds(bits, parties, radius):
    clip = hr.l2(radius)
    encoding = encoding_for(Release(clip=clip, bounds=clip), Layout.of(np.zeros(3)), parties=parties, bits=bits)
    reach = 2.0 ** (bits - 1) * encoding.steps[0][1]
    assert parties * radius <= reach <= 4 * parties * radius


@pytest.mark.parametrize(("records", "most"), [(10, 4 * PARTIES * 10), (2.0**20, 4 * PARTIES * 2**20)])
def test_under_bounds_per_record_the_ring_reaches_that_times_the_records(records, most):
    bound = hr.l2(1.0, unit="record")
    for aggregation in (hr.SecAgg(records=records), hr.AdditiveShares(aggregators=2, records=records)):
        found = moved({"aggregation": aggregation}, LONGEST, of=ages, bound=bound)
        assert most / 8 <= found <= most


def test_under_bounds_per_record_nobody_holds_a_row_that_is_seen():
    bound = hr.l2(1.0, unit="record")
    for protection in ({}, {"mechanism": hr.Gaussian(0.001)}):
        assert moved(protection, FORGED, of=ages, bound=bound) > 1000


def test_a_party_whose_program_is_as_it_is_sends_nothing_beyond_the_range_of_hidden_rows():
    protection = {"aggregation": hr.SecAgg(largest=100.0)}
    own, honest = asked({}, ScaledRows(0.0), of=ages)[0], asked({}, of=ages)[0]
    assert asked(protection, ScaledRows(1e6), of=ages)[0] == pytest.approx(own)  # it refused, and is missing
    assert abs(asked(protection, ScaledRows(1e6, kind="forge"), of=ages)[0] - honest) > 100


@pytest.mark.parametrize("channel", ["rows that the server sees", *HIDDEN])
def test_a_curious_server_sees_the_row_of_a_party_in_the_plain_channel_alone(channel):
    row = hr.simulate(TABLE, iid(PARTIES), seed=1).gather(direction)["party 1"]
    watched = hr.engines.watch(hr.simulate(TABLE, iid(PARTIES), seed=1)).protect(**CHANNELS[channel])
    watched.sum(direction)
    seen = [one for one in hr.engines.view(watched, "server") if one.source == "party 1" and np.size(one.values) == NUMBERS]
    assert [one.kind for one in seen] == ["row" if channel in SEEN else "masked row"]
    values = seen[0].values.view(np.int64) if seen[0].values.dtype == np.uint64 else seen[0].values
    alike = np.corrcoef(values.astype(float), row)[0, 1]  # a row in whole steps would have one as well
    assert alike == pytest.approx(1.0) if channel in SEEN else abs(alike) < 0.2


def test_one_bad_aggregator_moves_a_total_as_it_likes_and_nobody_can_tell():
    ids = tuple(f"party {i}" for i in range(5))
    server = AdditiveServer(AdditiveShares(aggregators=2), ids)
    parties = {id: AdditiveParty(id, server.settings, server.keys) for id in ids}
    encoding = RingEncoding(64, 5, ((3, 2.0**-20),))
    given = {id: Contribution(Layout.of(np.zeros(3)), np.ones(3), encoding, b"question") for id in ids}
    bad = server.aggregators[0]
    honest = bad.answer

    def answer(step, letter):
        told = honest(step, letter)
        if step != "total":
            return told
        epoch, round, share = SUM.unpack(told)
        return SUM.pack(epoch=epoch, round=round, total=(np.frombuffer(share, np.uint64) + np.uint64(7 << 20)).tobytes())

    bad.answer = answer
    found = drive(server.total(ids, encoding, b"question"), parties, given)
    assert encoding.decode(found.total).tolist() == [12.0, 12.0, 12.0]
    assert found.counted == ids
