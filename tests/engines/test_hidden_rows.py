"""Totals through aggregations that hide rows: equal to plain ones on every engine, whoever drops out, and rows stay hidden."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import hedgerow as hr
from hedgerow.core.aggregation import Plain
from hedgerow.core.bound import l2, linf
from hedgerow.core.question import local
from hedgerow.crypto import AdditiveShares, PairwiseMasks, SecAgg
from hedgerow.crypto.pairwise import PairwiseServer
from hedgerow.crypto.secagg import recovery
from hedgerow.crypto.shares import AdditiveServer
from hedgerow.engines import InProcess, Loop
from hedgerow.errors import (
    CohortTooSmall,
    RangeExceeded,
    RoundRefused,
    SettingsInvalid,
    UnboundedSum,
    UnlawfulChannel,
)
from hedgerow.privacy import Gaussian, Skellam
from helpers import ENGINE_NAMES, ENGINES, federation, totals

BOUND = linf(8.0, "record")
HIDDEN = [SecAgg(), SecAgg(adversary="active"), PairwiseMasks(), PairwiseMasks(group=3), AdditiveShares()]
NAMES = ["secagg", "secagg active", "pairwise", "groups", "additive"]
hidden = pytest.mark.parametrize("aggregation", HIDDEN, ids=NAMES)


@local(stackable=True)
def one_each(broadcast, party, rng):
    """One for each party, in 200 numbers."""
    return np.ones((*party.w.shape[:-1], 200))


def one_of_each(broadcast, party, rng):
    """One for each party, which pooled records do not give."""
    return np.ones(())


@hidden
@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_hidden_totals_are_the_plain_ones_on_every_engine(aggregation, engine):
    plain = federation(engine).sum(totals)
    found = federation(engine).protect(aggregation=aggregation).sum(totals, bound=BOUND)
    for key, value in plain.items():
        assert_allclose(found[key], value, atol=1e-8)


@hidden
def test_the_server_sees_masked_rows_and_a_total(aggregation):
    fed = federation(recording=True).protect(aggregation=aggregation)
    released = fed.sum(one_each, bound=linf(1.0))
    rows = [seen for seen in hr.engines.view(fed, "server") if seen.kind == "masked row"]
    assert "row" not in {seen.kind for seen in hr.engines.view(fed, "server")}
    assert_allclose(released, 6.0)
    numbers = np.concatenate([row.values for row in rows]) if rows else np.zeros(0, np.uint64)
    if numbers.size:  # additive shares show the server sealed letters only
        assert numbers.size == 6 * 200
        assert stats.kstest(numbers / 2.0**64, "uniform").pvalue > 1e-6
    assert {seen.kind for seen in hr.engines.view(fed, "party 1")} == {"letter", "broadcast"}
    assert {seen.kind for seen in hr.engines.view(fed, "world")} == {"release"}


@hidden
def test_the_same_question_twice_looks_new(aggregation):
    fed = federation(recording=True).protect(aggregation=aggregation)
    for _ in range(2):
        fed.sum(one_each, bound=linf(1.0))
    rows = [seen.values for seen in hr.engines.view(fed, "server") if seen.kind == "masked row" and seen.source == "party 1"]
    if rows:
        assert stats.kstest((rows[1] - rows[0]) / 2.0**64, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("aggregation", [HIDDEN[0], HIDDEN[1], HIDDEN[4]], ids=[NAMES[0], NAMES[1], NAMES[4]])
@pytest.mark.parametrize("seed", range(4))
def test_whoever_leaves_is_in_the_total_or_not_and_never_half(aggregation, seed):
    engine = InProcess(dropout_rate=0.15)
    fed = federation(engine, seed=seed, n_parties=20).protect(aggregation=aggregation)
    for _ in range(3):
        before = fed.missing
        found = fed.sum(one_each, bound=linf(1.0))
        assert_allclose(found, 20 - (fed.missing - before))


def test_who_is_late_is_not_counted_either_way():
    found = [
        federation(InProcess(deadline=2.0), n_parties=20).protect(aggregation=aggregation).sum(one_of_each, bound=linf(1.0))
        for aggregation in (Plain(), SecAgg(), AdditiveShares())
    ]
    assert 14 < found[0] < 20
    assert_allclose(found, found[0])


def test_parties_that_leave_for_good_leave_in_the_first_question_alone():
    fed = federation(InProcess(dropout_rate=0.3, returns=False), n_parties=40)
    fed = fed.protect(aggregation=SecAgg(dropouts=0.3, corrupt=0.0))
    missing = []
    for _ in range(4):
        before = fed.missing
        fed.sum(one_each, bound=linf(1.0))
        missing.append(fed.missing - before)
    assert 0 < missing[0] <= missing[1] == missing[2] == missing[3] < 30


def test_a_group_that_loses_a_party_is_left_out_and_without_groups_the_round_is_refused():
    gone = InProcess(dropped=("party 1",))
    assert federation(gone).protect(aggregation=PairwiseMasks()).sum(one_each, bound=linf(1.0))[0] == 5  # before its key
    leaving = federation(InProcess(dropout_rate=0.4), n_parties=20).protect(aggregation=PairwiseMasks())
    with pytest.raises(RoundRefused, match="masks do not cancel"):
        leaving.sum(one_each, bound=linf(1.0))


# ---- protection together --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", [Skellam, Gaussian])
def test_shares_of_noise_make_the_whole_noise(law):
    fed = federation(n_parties=12).protect(clip=l2(50.0), mechanism=law(2.0, "shares", 12), aggregation=SecAgg())
    found = fed.sum(one_each)
    low, high = stats.chi2.interval(1 - 1e-6, 200)
    assert low < (((found - 12) / 100) ** 2).sum() < high
    assert fed.ledger.entries[0].event.noise_multiplier == 2.0


def listened(monkeypatch):
    """Totals, as rows that are counted, that the server takes the masks off: what it sees, whatever is released."""
    seen, real = [], recovery.recover

    def recover(book, number, cohort, alive, *rest):
        real(book, number, cohort, alive, *rest)
        seen.append(int(alive.sum()))

    monkeypatch.setattr("hedgerow.crypto.secagg.server.recover", recover)
    monkeypatch.setattr(PairwiseServer, "_sum", lambda self, groups, *rest: seen.extend(map(len, groups)))
    monkeypatch.setattr(AdditiveServer, "_sum", lambda self, boxes, *rest: seen.append(len(boxes)))
    return seen


@pytest.mark.parametrize("aggregation", [SecAgg(), PairwiseMasks(), AdditiveShares()], ids=str)
def test_nobody_sees_a_total_in_which_noise_is_not_whole(aggregation, monkeypatch):
    """Also not the server, which would see it before the release is refused."""
    seen = listened(monkeypatch)
    fed = federation(InProcess(dropped=("party 1",))).protect(
        clip=l2(1.0), mechanism=Skellam(1.0, "shares", 6), aggregation=aggregation
    )
    with pytest.raises(RoundRefused):
        fed.sum(one_each)
    assert (seen, len(fed.ledger)) == ([], 1)


def test_a_group_in_which_noise_would_not_be_whole_is_refused_before_anybody_is_asked():
    noise = {"clip": l2(1.0), "mechanism": Skellam(1.0, "shares", 6)}
    with pytest.raises(CohortTooSmall, match=r"a total of 3 [\s\S]*No party was asked"):
        federation(n_parties=12).protect(aggregation=PairwiseMasks(group=3), **noise).sum(one_each)
    federation(n_parties=12).protect(aggregation=PairwiseMasks(group=6), **noise).sum(one_each)
    with pytest.raises(CohortTooSmall, match="whole only with 6"):
        federation(n_parties=5).protect(aggregation=SecAgg(), **noise).sum(one_each)


@pytest.mark.parametrize("at", ["server", "party"])
def test_noise_elsewhere_goes_with_hidden_rows(at):
    fed = federation().protect(clip=l2(20.0), mechanism=Gaussian(0.001, at), aggregation=SecAgg())
    assert_allclose(fed.sum(one_each), 6.0, atol=1.0)


@local(additive=True)
def one_each_record(broadcast, party, rng):
    """Two hundred numbers, each the number of records."""
    return np.full(200, party.n)


def test_thirty_two_bits_are_enough_for_clipped_noise_and_refused_where_they_are_not():
    narrow = SecAgg(bits=32)
    fed = federation().protect(clip=l2(20.0), mechanism=Gaussian(1.0), aggregation=narrow)
    assert fed.sum(one_each).shape == (200,)
    wide = federation().protect(mechanism=Gaussian(1.0), aggregation=narrow)
    with pytest.raises(RangeExceeded, match=r"HR-243[\s\S]*No party was asked"):
        wide.sum(one_each_record, bound=l2(1e5, "record"))


# ---- refusals -------------------------------------------------------------------------------------------------------
def test_what_cannot_be_hidden_is_refused_before_anybody_is_asked():
    fed = federation(recording=True).protect(aggregation=SecAgg())
    with pytest.raises(UnboundedSum, match=r"HR-210[\s\S]*No party was asked"):
        fed.sum(totals)
    with pytest.raises(UnlawfulChannel):
        fed.gather(totals)
    with pytest.raises(UnlawfulChannel, match="spare"):
        fed.sample(size=3, spare=1).sum(totals, bound=BOUND)
    with pytest.raises(CohortTooSmall, match=r"HR-240[\s\S]*No party was asked"):
        fed.pick(["party 1", "party 2"]).sum(totals, bound=BOUND)
    assert (hr.engines.view(fed, "server"), len(fed.ledger)) == ([], 0)


def test_a_contribution_out_of_its_range_does_not_leave():
    fed = federation().protect(aggregation=SecAgg(records=1))
    with pytest.raises(RoundRefused, match="HR-243"):
        fed.sum(totals, bound=linf(1e-3, "record"))


def test_a_rate_whose_cohorts_may_be_too_small_is_refused_whoever_was_drawn():
    """Else the refusal, which no budget pays for, would tell whether somebody is in a small cohort."""
    noise = {"clip": l2(20.0), "mechanism": Gaussian(1.0), "aggregation": SecAgg()}
    refused = set()
    for seed in range(8):
        fed = federation(seed=seed, n_parties=20).protect(**noise)
        for _ in range(3):
            with pytest.raises(CohortTooSmall, match=r"fewer than 3[\s\S]*No party was asked") as refusal:
                fed.sample(rate=0.3).sum(one_each)
            refused.add(str(refusal.value))
    assert len(refused) == 1
    assert federation(n_parties=20).protect(**noise).sample(rate=0.95).sum(one_each).shape == (200,)
    open_sums = federation(n_parties=20).protect(aggregation=SecAgg(mode="simulated"))
    assert len(open_sums.sample(rate=0.5).sum(one_each, bound=linf(1.0))) == 200


def test_samples_and_cohorts_have_epochs_of_their_own():
    fed = federation(n_parties=20).protect(aggregation=SecAgg())
    for _ in range(3):
        assert fed.sample(size=8).sum(one_each, bound=linf(1.0))[0] == 8
    assert fed.sum(one_each, bound=linf(1.0))[0] == 20


def test_a_simulated_aggregation_has_the_total_and_the_bytes_and_shows_no_row():
    fed = federation(recording=True).protect(aggregation=SecAgg(mode="simulated"))
    assert_allclose(fed.sum(one_each, bound=linf(1.0)), 6.0)
    assert {seen.kind for seen in hr.engines.view(fed, "server")} == {"release"}
    assert fed.ledger.entries[0].aggregation == "SecAgg (simulated)"
    assert fed.ledger.entries[0].bytes_up > 200 * 8


def test_loop_and_fast_engine_count_the_same_parties():
    engines = (Loop(), InProcess())
    found = [federation(engine).protect(aggregation=SecAgg()).sum(one_each, bound=linf(1.0)) for engine in engines]
    assert_allclose(*found)


def test_more_than_an_epoch_of_questions():
    fed = federation().protect(aggregation=SecAgg(rounds_per_epoch=2))
    for _ in range(5):
        assert fed.sum(one_each, bound=linf(1.0))[0] == 6


def test_too_few_bits_for_so_many_records_are_refused_before_anybody_is_asked():
    """Once a count behind 16 bits came out as zero, and nothing said so."""
    fed = federation().protect(aggregation=SecAgg(bits=32))
    with pytest.raises(RangeExceeded, match=r"records=1\.04858e\+06[\s\S]*No party was asked"):
        fed.sum(totals, bound=BOUND)
    narrow = federation().protect(aggregation=SecAgg(bits=32, records=100))
    assert_allclose(narrow.sum(totals, bound=BOUND)["n"], federation().sum(totals)["n"], atol=1e-3)
    assert len(fed.ledger) == 0


def test_who_leaves_for_good_leaves_plain_questions_too():
    fed = federation(InProcess(dropout_rate=0.3, returns=False), n_parties=40)
    found = [fed.sum(one_each)[0] for _ in range(3)]
    assert 20 < found[1] == found[2] <= found[0] < 40


@pytest.mark.parametrize(
    "settings", [{"dropouts": "0.1"}, {"records": "one"}, {"neighbours": "many"}, {"rounds_per_epoch": True}], ids=str
)
def test_settings_of_another_type_are_refused(settings):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        SecAgg(**settings)


def test_parties_that_refuse_say_what_would_help():
    fed = federation().protect(aggregation=SecAgg(records=1))
    with pytest.raises(RoundRefused, match="more records to a party"):
        fed.sum(totals, bound=linf(1e-3, "record"))
