"""Compression in a channel: on every engine, with what waits, with noise, refused where it is not lawful, and counted."""

from functools import partial

import numpy as np
import pytest
from codes import EVERY, LINEAR
from scipy.stats import chi2

import hedgerow as hr
from hedgerow import Gaussian, InProcess, Laplace, Loop, l1, l2, linf, local
from hedgerow.compression import Quantised, RandomK, Rotated, Sketched, TopK
from hedgerow.core.answer import answer
from hedgerow.core.federation import inside
from hedgerow.core.release import Release
from hedgerow.errors import SlotFilled, UnlawfulChannel
from helpers import ENGINE_NAMES, ENGINES, Hiding, federation, kept_by, outbox, parties, run_of, totals

every = pytest.mark.parametrize("compression", EVERY, ids=str)
not_linear = pytest.mark.parametrize("compression", [one for one in EVERY if not one.linear], ids=str)
linear = pytest.mark.parametrize("compression", LINEAR, ids=str)


@local(stackable=True)
def waves(broadcast, party, rng):
    """A long contribution that differs from party to party and round to round."""
    sums = (party.w[..., None] * party["x"]).sum(-2)
    return {"update": np.sin((sums[..., None] + broadcast[0]) * np.arange(1, 101)), "n": party.n}


def steady(broadcast, party, rng):
    """One large number and many small ones: the small ones must wait. It cannot be stacked."""
    return np.append(10.0, np.linspace(0.1, 1.0, 99)) * len(party.w)


def contributions(function, *broadcasts):
    held = parties()
    return [[function(np.array([b] * 5), party, None) for party in held] for b in broadcasts]


def rounds(compression, engine, n=3, **slots):
    fed = federation(engine).protect(compression=compression, **slots)
    return [fed.sum(waves, np.full(5, float(i)))["update"] for i in range(n)]


@every
@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_releases_the_same(compression, engine):
    for one, other in zip(rounds(compression, Loop()), rounds(compression, engine), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-9)


@pytest.mark.parametrize(
    ("compression", "at"), [(one, "server") for one in EVERY] + [(one, "party") for one in LINEAR], ids=str
)
def test_every_engine_releases_the_same_with_noise(compression, at):
    slots = {"clip": {"update": l2(3.0), "n": linf(10.0)}, "mechanism": Gaussian(0.1, at=at)}
    expected = rounds(compression, Loop(), **slots)
    for engine in (InProcess(threads=1), InProcess(threads=2)):
        for one, other in zip(expected, rounds(compression, engine, **slots), strict=True):
            np.testing.assert_allclose(other, one, atol=1e-9)


@pytest.mark.parametrize("compression", [Quantised(12), Rotated(12), TopK(1.0), RandomK(1.0)], ids=str)
def test_a_fine_code_releases_nearly_the_total(compression):
    exact = rounds(None, Loop())
    for one, other in zip(exact, rounds(compression, Loop()), strict=True):
        np.testing.assert_allclose(other, one, atol=6 * 1.2 / 2**10)


# ---- error feedback -------------------------------------------------------------------------------------------------
def waiting(fed):
    """What each party keeps, after its last answer was counted."""
    states = kept_by(fed)
    return {name: next(value for key, value in state.items() if "lost" in key) for name, state in states.items()}


@pytest.mark.parametrize("compression", [TopK(0.02), RandomK(0.02, error_feedback=True)], ids=str)
@pytest.mark.parametrize("clip", [None, {"update": l2(4.0), "n": linf(30.0)}], ids=["plain", "clipped"])
@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_what_was_sent_and_what_waits_is_what_was_contributed(compression, clip, engine):
    fed = federation(engine).protect(compression=compression, clip=clip)
    released = sum(fed.sum(waves, np.full(5, float(i)))["update"].ravel() for i in range(5))
    given = [[each["update"].ravel() for each in one] for one in contributions(waves, 0.0, 1.0, 2.0, 3.0, 4.0)]
    if clip is not None:
        given = [list(clip["update"].clip(np.array(one))) for one in given]
    kept = sum(value[:300].astype(float) for value in waiting(fed).values())
    np.testing.assert_allclose(released + kept, np.sum(given, axis=(0, 1)), atol=1e-4)
    assert np.abs(kept).max() > 0.5


@pytest.mark.parametrize("compression", [TopK(0.02), RandomK(0.02, error_feedback=True)], ids=str)
def test_a_clip_holds_for_what_is_sent_also_when_much_waits(compression):
    """After many rounds more waits than the clip lets pass: it is shortened, and the rest goes on waiting."""
    fed = federation(InProcess(threads=1), recording=True)
    fed = fed.protect(compression=compression, clip={"update": l2(0.5), "n": linf(30.0)})
    released = sum(fed.sum(waves, np.zeros(5))["update"].ravel() for _ in range(40))
    sent = np.stack([seen.values[:-1] for seen in hr.engines.view(fed, "server") if seen.kind == "row"])
    assert 0.499 < np.linalg.norm(sent, axis=-1).max() <= 0.5 * (1 + 1e-9)
    given = l2(0.5).clip(np.array([one["update"].ravel() for one in contributions(waves, 0.0)[0]])).sum(0)
    kept = sum(value[:300].astype(float) for value in waiting(fed).values())
    np.testing.assert_allclose(released + kept, 40 * given, atol=1e-4)


def test_one_party_may_be_stacked_too():
    alone, stacked = ([], [])
    for rows, together in ((alone, False), (stacked, True)):
        held, counted = parties(), {}
        for number in (1, 2):
            box = outbox(waves, np.zeros(5), Release(compression=TopK(0.02)), number, counted=dict(counted))
            rows.append(answer(box, held, np.array([2]), together=together)[1])
            counted["party 3"] = number
    np.testing.assert_array_equal(stacked, alone)
    assert (alone[0] != alone[1]).any()


def test_small_numbers_wait_until_they_are_the_largest():
    """By hand: with one coordinate a round, the large one goes first, and each small one goes once it has grown past it."""
    fed, x = federation(InProcess(threads=1)).protect(compression=TopK(0.01)), contributions(steady, 0.0)[0]
    lost, sent = [np.zeros(100, np.float32) for _ in x], set()
    for _ in range(150):
        expected = np.zeros(100)
        for i, one in enumerate(x):
            wanted = one + lost[i]
            best = np.argmax(np.abs(wanted))
            expected[best] += wanted[best]
            lost[i] = wanted.astype(np.float32)
            lost[i][best] = 0.0
            sent.add(best)
        np.testing.assert_allclose(fed.sum(steady), expected, rtol=1e-6)
    assert 0 in sent
    assert len(sent) > 30


def test_without_error_feedback_small_numbers_never_come():
    fed = federation().protect(compression=TopK(0.01, error_feedback=False))
    assert all(np.count_nonzero(fed.sum(steady)) == 1 for _ in range(150))


@pytest.mark.parametrize("engine", [Loop(), InProcess(threads=1)], ids=["loop", "inprocess"])
def test_what_waits_is_committed_only_when_its_round_was_counted(engine):
    fed = federation(engine).protect(compression=TopK(0.02))
    fed.sum(waves, np.zeros(5))
    before = waiting(fed)
    fed.sum(waves, np.ones(5))
    run_of(fed).counted["party 1"] = 1  # its second answer came too late
    after = waiting(fed)
    np.testing.assert_array_equal(after["party 1"], before["party 1"])
    assert all((after[name] != before[name]).any() for name in before if name != "party 1")


def test_a_party_that_drops_out_keeps_what_waited():
    fed = federation(InProcess(threads=1)).protect(compression=TopK(0.02))
    fed.sum(waves, np.zeros(5))
    before = waiting(fed)
    run_of(fed).engine.dropped = ("party 3",)
    total = fed.sum(waves, np.ones(5))["update"].ravel()
    after = waiting(fed)
    np.testing.assert_array_equal(after["party 3"], before["party 3"])
    given = contributions(waves, 1.0)[0]
    there = [i for i in range(6) if i != 2]
    moved = sum(given[i]["update"].ravel() + (before[f"party {i + 1}"] - after[f"party {i + 1}"])[:300] for i in there)
    np.testing.assert_allclose(total, moved, atol=1e-5)


def test_a_party_that_comes_later_starts_with_nothing_waiting():
    fed = federation(InProcess(threads=1, dropped=("party 4",))).protect(compression=TopK(0.02))
    fed.sum(waves, np.zeros(5))
    assert "party 4" not in waiting(fed)
    run_of(fed).engine.dropped = ()
    fed.sum(waves, np.zeros(5))
    fresh = federation(Loop()).protect(compression=TopK(0.02))
    fresh.sum(waves, np.zeros(5))
    np.testing.assert_allclose(waiting(fed)["party 4"], waiting(fresh)["party 4"], atol=1e-6)
    assert (waiting(fed)["party 3"] != waiting(fresh)["party 3"]).any()


def test_what_waits_belongs_to_its_question():
    fed = federation(InProcess(threads=1)).protect(compression=TopK(0.02))
    fed.sum(waves, np.zeros(5))
    before = waiting(fed)
    fed.sum(steady, np.zeros(5))
    np.testing.assert_array_equal(waiting(fed)["party 2"], before["party 2"])


# ---- noise ----------------------------------------------------------------------------------------------------------
@every
def test_a_compressed_release_is_charged_as_any_other(compression):
    ledgers = []
    for slots in ({}, {"compression": compression}):
        fed = federation(n_parties=20).protect(clip=l2(1.0), mechanism=Gaussian(2.0), **slots)
        for i in range(3):
            fed.sample(rate=0.5).sum(waves, np.full(5, float(i)))
        ledgers.append(fed.ledger)
    assert ledgers[0].charges("party") == ledgers[1].charges("party")
    assert [entry.compression for entry in ledgers[1].entries] == [str(compression)] * 3


@every
@pytest.mark.parametrize("bound", [l2(2.0), l1(2.0), linf(2.0)], ids=["l2", "l1", "linf"])
def test_no_code_that_leaves_is_beyond_the_bound(compression, bound):
    fed = federation(recording=True).protect(clip=bound, mechanism=Gaussian(0.5), compression=compression)
    for i in range(4):
        fed.sum(waves, np.full(5, float(i)))
    seen = [view for view in hr.engines.view(fed, "server") if view.kind == "row"]
    layout = seen[0].layout
    (block,) = inside(fed).channel.mechanism._plan(bound, layout)
    lengths = [float(bound.size(view.values[None].astype(float) * block.step)[0, 0]) for view in seen]
    assert len(lengths) == 24
    assert all(view.values.shape == (layout.size,) for view in seen)
    assert 0.1 < max(lengths) <= 2.0 * (1 + 1e-12)


@pytest.mark.parametrize("compression", [TopK(0.02), Quantised(4), Rotated(4)], ids=str)
def test_noise_at_the_server_falls_on_every_coordinate(compression):
    """Sums of nothing: all 4096 coordinates of the release have the declared variance; one false alarm in a million."""
    low, high = chi2.interval(1 - 1e-6, 4096)
    fed = federation(seed=5).protect(clip=l2(3.0), mechanism=Gaussian(2.0), compression=compression)
    assert low < (fed.sum(nothing) ** 2).sum() / 6.0**2 < high


def nothing(broadcast, party, rng):
    return np.zeros(4096)


@linear
@pytest.mark.parametrize("mechanism", [Gaussian(0.01, at="party"), Laplace(0.01, at="party")], ids=str)
def test_linear_codes_are_noised_at_the_party_and_charged(compression, mechanism):
    fed = federation().protect(clip=l1(50.0), mechanism=mechanism, compression=compression)
    assert fed.sum(waves, np.zeros(5))["update"].shape == (3, 100)
    assert fed.ledger.entries[0].event.kind == mechanism.law


# ---- refusals -------------------------------------------------------------------------------------------------------
@not_linear
@pytest.mark.parametrize(
    "slots", [{"clip": l2(1.0), "mechanism": Gaussian(1.0, at="party")}, {"aggregation": Hiding()}], ids=["noise", "hidden"]
)
@pytest.mark.parametrize("first", [True, False], ids=["compression first", "compression last"])
def test_what_noise_at_the_party_or_masks_would_fill_is_refused(compression, slots, first):
    fed = federation(recording=True)
    given = [{"compression": compression}, slots]
    before, after = given if first else given[::-1]
    before = fed.protect(**before)
    with pytest.raises(UnlawfulChannel, match=r"HR-211[\s\S]*does not survive[\s\S]*No party was asked"):
        before.protect(**after)
    assert (hr.engines.view(fed, "server"), len(fed.ledger)) == ([], 0)


@linear
def test_linear_compressions_are_lawful_where_rows_are_hidden(compression):
    assert inside(federation().protect(compression=compression, aggregation=Hiding())).channel.compression == compression


@every
def test_a_bound_per_record_does_not_hold_for_a_code(compression):
    """A record can change which coordinates are largest, and the scale of all levels: its noise would have no scale."""
    fed = federation(recording=True).protect(mechanism=Gaussian(1.0), compression=compression)
    with pytest.raises(UnlawfulChannel, match="bounded per record"):
        fed.sum(totals, bound=l2(1.0, unit="record"))
    assert (hr.engines.view(fed, "server"), len(fed.ledger)) == ([], 0)


@pytest.mark.parametrize("wrong", ["top_k", 8, Gaussian(1.0)], ids=str)
def test_what_is_no_compression_is_refused(wrong):
    with pytest.raises(UnlawfulChannel, match="is no compression"):
        federation().protect(compression=wrong)


def test_the_slot_is_filled_once():
    fed = federation().protect(compression=TopK(0.1))
    assert inside(fed.protect(compression=TopK(0.1))).channel == inside(fed).channel
    with pytest.raises(SlotFilled, match="HR-212"):
        fed.protect(compression=TopK(0.2))


# ---- bytes ----------------------------------------------------------------------------------------------------------
BITS = {
    None: 301 * 32,
    Quantised(4): 300 * 4 + 32 + 32,
    Rotated(4): 512 * 4 + 32 + 32,
    TopK(0.1): 30 * (32 + 9) + 32,
    RandomK(0.1): 30 * 32 + 32,
    Sketched(3, 20): 60 * 32 + 32,
}


@pytest.mark.parametrize("compression", BITS, ids=str)
def test_the_ledger_counts_the_bytes_of_a_party(compression):
    fed = federation().protect(compression=compression)
    fed.sum(waves, np.zeros(5))
    fed.gather(waves, np.zeros(5))
    fed.each(keep, np.zeros(5))
    assert [entry.bytes_up for entry in fed.ledger.entries] == [BITS[compression] / 8] * 2 + [0.0]
    assert [entry.bytes_down for entry in fed.ledger.entries] == [20.0] * 3
    assert [entry.numbers for entry in fed.ledger.entries] == [301, 301, 0]


def keep(broadcast, party, rng):
    party.state["kept"] = broadcast


def test_gathered_rows_are_decoded():
    found = federation().protect(compression=TopK(1.0)).gather(partial(waves), np.zeros(5))
    given = contributions(waves, 0.0)[0]
    for row, one in zip(found.values(), given, strict=True):
        np.testing.assert_allclose(row["update"], one["update"])
