"""Verified shares in channels: totals equal plain ones, forged rows change nothing, and what is refused beforehand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.compression import RandomK
from hedgerow.core.bound import l1, l2, linf
from hedgerow.core.federation import inside
from hedgerow.core.question import local
from hedgerow.crypto import AdditiveShares, PrivFL
from hedgerow.engines import Acting, InProcess, Loop
from hedgerow.errors import CohortTooSmall, RangeExceeded, RoundRefused, SettingsInvalid, UnboundedSum, UnlawfulChannel
from hedgerow.privacy import Gaussian, Geometric, Laplace, Skellam
from helpers import ENGINE_NAMES, ENGINES, federation, totals

VERIFIED = [AdditiveShares(aggregators=k, verified=True) for k in (2, 3)]
both = pytest.mark.parametrize("aggregation", VERIFIED, ids=["two", "three"])
NUMBERS = 300


@local(stackable=True)
def direction(broadcast, party, rng):
    """A row of length 1, by the number of records."""
    n = party.w.sum(-1, keepdims=True)
    row = np.sin(np.arange(1.0, NUMBERS + 1) * (1 + n))
    return row / np.linalg.norm(row, axis=-1, keepdims=True)


@local(additive=True)
def ones(broadcast, party, rng):
    """Five counts of one for each party."""
    return np.ones(5)


def acting(factor, parties=3, engine=InProcess, **how):
    names = tuple(f"party {i + 1}" for i in range(parties))
    return engine(acts=Acting(Liars(names, (ScaledRows(factor, kind="forge"),))), **how)


def honest(fed, without=()):
    return np.sum([row for id, row in fed.gather(direction).items() if id not in without], axis=0)


@both
@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_totals_of_proved_rows_are_the_plain_ones_on_every_engine(aggregation, engine):
    plain = federation(engine).sum(totals)
    fed = federation(engine).protect(aggregation=hr.AdditiveShares(aggregators=2, verified=True, records=100))
    for key, value in fed.sum(totals, bound=linf(8.0, "record")).items():
        assert_allclose(value, plain[key], atol=1e-4)
    clipped = federation(engine).protect(clip=l2(1.0), aggregation=aggregation).sum(direction)
    assert_allclose(clipped, honest(federation(engine)), atol=1e-5)


@both
@pytest.mark.parametrize("engine", [InProcess, Loop])
@pytest.mark.parametrize("factor", [1000.0, -1000.0, 1.001, 1e30])
def test_forged_rows_change_nothing_to_the_unit(aggregation, engine, factor):
    fed = federation(acting(factor, engine=engine), n_parties=8).protect(clip=l2(1.0), aggregation=aggregation)
    left = [f"party {i}" for i in range(4, 9)]
    others = federation(n_parties=8).protect(clip=l2(1.0), aggregation=aggregation).pick(left).sum(direction)
    assert (fed.sum(direction) == others).all()
    assert [str(one) for one in fed.judged] == ["refused: 3 of 8"]
    assert fed.missing == 0  # they came


def test_rows_that_were_not_proved_are_the_liars_alone_while_they_lie():
    fed = federation(acting(1000.0), n_parties=8).protect(clip=l2(1.0), aggregation=VERIFIED[0])
    for n in range(3):
        fed.sum(direction)
        assert (fed.judged[n].refused, fed.judged[n].came, fed.judged[n].question) == (3, 8, n + 1)
    assert fed.judged[0].proved == "l2 of at most 1"
    assert list(fed.ledger.to_frame()["rows"]) == ["refused: 3 of 8"] * 3
    assert "rows" not in federation().ledger.to_frame()
    assert "3 questions, 9 of 24 rows refused)" in repr(fed)


def test_a_bound_of_as_many_records_as_nobody_has_is_warned_of():
    loose = federation().protect(aggregation=VERIFIED[0])
    with pytest.warns(hr.errors.HedgerowWarning, match="1,048,576 records"):
        loose.sum(totals, bound=linf(8.0, "record"))
    federation().protect(aggregation=hr.AdditiveShares(aggregators=2, verified=True, records=100)).sum(
        totals, bound=linf(8.0, "record")
    )
    federation().protect(clip=l2(1.0), aggregation=VERIFIED[0]).sum(direction)


def test_a_remedy_fits_what_was_refused():
    with pytest.raises(UnboundedSum) as unbounded:
        federation().protect(aggregation=VERIFIED[0]).sum(direction)
    assert "largest=1e6 of the aggregation" in unbounded.value.remedy
    for multiplier, remedy in ((1e5, "Add less noise"), (1e-5, "Add more noise")):
        noisy = federation().protect(clip=l2(1.0), mechanism=Gaussian(multiplier, at="aggregators"), aggregation=VERIFIED[0])
        with pytest.raises(RangeExceeded) as caught:
            noisy.sum(direction)
        assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("law", "clip", "numbers"),
    [(Gaussian, l2(1.0), direction), (Skellam, l2(1.0), direction), (Laplace, l1(5.0), ones), (Geometric, l1(5.0), ones)],
)
@pytest.mark.parametrize("at", ["server", "aggregators"])
def test_noise_is_added_after_the_proof(law, clip, numbers, at):
    z = 1e-3 if law is not Geometric else 0.05
    protection = {"clip": clip, "mechanism": law(z, at), "aggregation": VERIFIED[0]}
    fed, plain = federation(n_parties=6).protect(**protection), federation(n_parties=6).protect(clip=clip).sum(numbers)
    found = fed.sum(numbers)
    assert np.abs(found - plain).max() > 0 or law is Geometric
    assert_allclose(found, plain, atol=0.2 if law is not Geometric else 6.0)
    unverified = federation(n_parties=6).protect(**protection | {"aggregation": AdditiveShares(aggregators=2)})
    unverified.sum(numbers)
    assert fed.ledger.entries[0].event == unverified.ledger.entries[0].event


def test_a_party_that_drops_out_is_no_refused_one():
    fed = federation(acting(1000.0, dropped=("party 8",)), n_parties=8).protect(clip=l2(1.0), aggregation=VERIFIED[0])
    fed.sum(direction)
    assert (str(fed.judged[0]), fed.missing) == ("refused: 3 of 7", 1)


def test_too_few_proved_rows_give_no_total():
    fed = federation(acting(1000.0, parties=4)).protect(clip=l2(1.0), aggregation=VERIFIED[0])
    with pytest.raises(RoundRefused, match="4 of 6 rows were refused"):
        fed.sum(direction)


def test_a_simulation_by_name_refuses_too_long_rows_and_says_that_nothing_was_proved():
    simulated = AdditiveShares(aggregators=2, verified=True, mode="simulated")
    fed = federation(acting(1000.0), n_parties=8).protect(clip=l2(1.0), aggregation=simulated)
    assert_allclose(fed.sum(direction), honest(federation(n_parties=8), ("party 1", "party 2", "party 3")), atol=1e-5)
    assert [(str(one), one.proved) for one in fed.judged] == [("refused: 3 of 8", "")]
    assert "no row was proved" in fed.protection.shows
    assert not inside(fed).channel.aggregation.verified
    assert inside(federation().protect(aggregation=VERIFIED[0])).channel.aggregation.verified


def test_letters_are_as_long_as_the_ledger_says():
    fed = federation(InProcess(), recording=True).protect(clip=l2(1.0), aggregation=VERIFIED[0])
    fed.sum(direction)
    said = fed.ledger.entries[0].bytes_up
    assert 8 * NUMBERS < said < 60_000
    assert fed.ledger.entries[0].aggregation == "additive-share (2 aggregators, verified)"


# ---- refused before anybody is asked
@pytest.mark.parametrize("at", ["shares", "party"])
def test_noise_that_parties_add_is_refused_when_a_channel_is_made(at):
    noise = {"mechanism": Gaussian(1.0, at, 5 if at == "shares" else 0)}
    hidden = federation().protect(clip=l2(1.0), aggregation=VERIFIED[0])
    said = r"and so nothing[\s\S]*No party was asked"
    with pytest.raises(UnlawfulChannel, match=said):
        hidden.protect(**noise)
    with pytest.raises(UnlawfulChannel, match=said):
        federation().protect(clip=l2(1.0), aggregation=VERIFIED[0], **noise)


def test_what_cannot_be_proved_is_refused_before_anybody_is_asked():
    fed = federation(recording=True).protect(aggregation=VERIFIED[0])
    with pytest.raises(UnboundedSum, match=r"HR-210[\s\S]*No party was asked"):
        fed.sum(totals)
    with pytest.raises(RangeExceeded, match=r"HR-243[\s\S]*No party was asked"):
        fed.sum(totals, bound=l2(1.0, "record"))
    with pytest.raises(CohortTooSmall):
        fed.pick(["party 1", "party 2"]).sum(totals, bound=linf(8.0, "record"))
    with pytest.raises(UnlawfulChannel, match="nothing is proved"):
        fed.protect(clip=l2(1.0), compression=RandomK(0.5)).sum(direction)
    with pytest.raises(RangeExceeded, match="HR-243"):
        fed.protect(clip=l2(1.0), mechanism=Gaussian(2.0**-14)).sum(direction)
    assert (hr.engines.view(fed, "server"), len(fed.ledger)) == ([], 0)


@pytest.mark.parametrize("settings", [{"bits": 32}, {"aggregators": 4}, {"verified": "yes"}])
def test_settings_that_prove_nothing_are_refused(settings):
    with pytest.raises(SettingsInvalid, match="HR-511"):
        AdditiveShares(**{"verified": True} | settings)


def test_masks_of_a_hidden_model_are_not_proved():
    with pytest.raises(SettingsInvalid, match="uniform"):
        PrivFL(masks=VERIFIED[0])
