"""Acts below programs: the same bits without one, lies through a party's own clip, forged rows held where they are seen."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.attacks.acts.liars import Liars
from hedgerow.attacks.acts.rows import Alie, FreeRider, InnerProduct, MinMax, ScaledRows, Sybils, hidden_z
from hedgerow.core.federation import inside
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess, Loop
from hedgerow.engines.acting import Acting

SCHEMA = Schema((Column("age", "number", low=0, high=1),))
TABLE = Table(SCHEMA.admit(SCHEMA.synthetic(200, np.random.default_rng(0))), SCHEMA)
LIARS = ("party 1", "party 2")


def total(broadcast, party, rng):
    return (party["age"].astype(float) * party.w).sum(keepdims=True)


total.travels = True


def federation(*acts, engine=InProcess, parties=LIARS, **protection):
    acting = Acting(Liars(parties, acts)) if acts else None
    made = hr.simulate(TABLE, iid(20), seed=1, engine=engine(acts=acting))
    return made.protect(**protection) if protection else made


def summed(*acts, **more):
    return float(federation(*acts, **more).sum(total)[0])


def own(name):
    return float(federation().gather(total)[name][0])


FLIP = ScaledRows(-4.0)
CLIP = {"clip": hr.l2(10.0)}


@pytest.mark.parametrize("engine", [InProcess, Loop])
@pytest.mark.parametrize("protection", [{}, CLIP, CLIP | {"mechanism": hr.Gaussian(0.1)}])
def test_nobody_who_acts_leaves_every_bit_as_it_was(engine, protection):
    nobody = summed(FLIP, engine=engine, parties=(), **protection)
    assert nobody == summed(engine=engine, **protection)


@pytest.mark.parametrize("engine", [InProcess, Loop])
@pytest.mark.parametrize("protection", [{}, CLIP, CLIP | {"mechanism": hr.Gaussian(0.1)}])
def test_liars_without_an_act_leave_every_bit_as_it_was(engine, protection):
    made = hr.simulate(TABLE, iid(20), seed=1, engine=engine(acts=Acting(Liars(LIARS, ()))))
    found = (made.protect(**protection) if protection else made).sum(total)
    assert float(found[0]) == summed(engine=engine, **protection)


@pytest.mark.parametrize("engine", [InProcess, Loop])
def test_honest_rows_have_the_bits_that_they_have_without_liars(engine):
    honest, lied = federation(engine=engine).gather(total), federation(FLIP, engine=engine).gather(total)
    assert {name for name in honest if honest[name] != lied[name]} == set(LIARS)


def test_a_lie_is_clipped_as_an_honest_row_is():
    honest = summed(**CLIP)
    lied = summed(ScaledRows(1e6), **CLIP)
    assert lied == pytest.approx(honest - own(LIARS[0]) - own(LIARS[1]) + 20, abs=1e-9)


def test_a_lie_behind_secure_aggregation_is_the_lie_before_it():
    hidden = summed(FLIP, clip=hr.l2(10.0), aggregation=hr.SecAgg(records=1))
    assert hidden == pytest.approx(summed(FLIP, **CLIP), abs=1e-5)


def test_a_lie_behind_noise_is_noised():
    found = summed(FLIP, clip=hr.l2(10.0), mechanism=hr.Gaussian(0.1))
    assert found != summed(FLIP, **CLIP)
    assert found == pytest.approx(summed(FLIP, **CLIP), abs=6.0)


@pytest.mark.parametrize("protection", [CLIP, CLIP | {"mechanism": hr.Gaussian(0.001)}])
def test_forged_rows_that_are_seen_count_as_zeros_and_are_named(protection):
    made = federation(ScaledRows(1e6, kind="forge"), **protection)
    found = float(made.sum(total)[0])
    assert found == pytest.approx(summed(**CLIP) - own(LIARS[0]) - own(LIARS[1]), abs=0.1)
    assert dict(inside(made).run.overlong) == dict.fromkeys(LIARS, 1)


def test_forged_rows_within_the_bound_move_a_total_by_the_bound_against_an_absent_party_and_by_twice_it_against_an_honest_row():
    longest = {"clip": hr.l2(own(LIARS[0]))}
    honest, turned = (summed(*acts, parties=LIARS[:1], **longest) for acts in ((), (ScaledRows(-1.0, kind="forge"),)))
    absent = summed(ScaledRows(0.0, kind="forge"), parties=LIARS[:1], **longest)
    assert honest - turned == pytest.approx(2 * own(LIARS[0]), rel=1e-9)
    assert absent - turned == pytest.approx(own(LIARS[0]), rel=1e-9)


def test_a_row_turned_around_and_longer_than_its_bound_counts_as_zeros():
    longest = {"clip": hr.l2(own(LIARS[0]))}
    beyond = summed(ScaledRows(-1.01, kind="forge"), parties=LIARS[:1], **longest)
    assert beyond == summed(ScaledRows(0.0, kind="forge"), parties=LIARS[:1], **longest)


def test_forged_rows_that_nobody_sees_move_a_total_as_far_as_the_ring_allows():
    honest = summed(**CLIP)
    forged = summed(ScaledRows(1e6, kind="forge"), clip=hr.l2(10.0), aggregation=hr.SecAgg(records=1))
    assert abs(forged - honest) > 10 * 20


def test_forged_rows_without_a_bound_are_added_up():
    assert summed(ScaledRows(1e6, kind="forge")) > 1e6


def test_the_ledger_names_the_honest_function():
    made = federation(FLIP)
    made.sum(total)
    assert made.ledger.entries[-1].query.endswith(":total")


def test_acts_on_a_schedule():
    liars = Liars(LIARS, (FLIP,), from_round=2, every=2, until=4)
    made = hr.simulate(TABLE, iid(20), seed=1, engine=InProcess(acts=Acting(liars)))
    honest = summed()
    assert [float(made.sum(total)[0]) == honest for _ in range(5)] == [True, False, True, False, True]


def test_a_measurement_aside_is_answered_honestly():
    assert float(federation(FLIP).aside().sum(total)[0]) == summed()


def test_parties_that_left_do_not_lie():
    made = hr.simulate(TABLE, iid(20), seed=1, engine=InProcess(acts=Acting(Liars(LIARS, (FLIP,))), dropped=LIARS))
    assert float(made.sum(total)[0]) == pytest.approx(summed() - own(LIARS[0]) - own(LIARS[1]))


ROWS = np.random.default_rng(3).normal(size=(16, 5))


class Scene:
    rng = np.random.default_rng(0)
    asked = 20
    released = np.ones(5)


def test_alie_is_its_box():
    assert hidden_z(20, 4) == pytest.approx(0.157, abs=5e-4)
    found = Alie().rows(ROWS[:4], ROWS, Scene)
    assert np.allclose(found, ROWS.mean(0) - hidden_z(20, 4) * ROWS.std(0))


def test_the_inner_product_is_turned():
    assert np.allclose(InnerProduct(0.5).rows(ROWS[:4], ROWS, Scene), -0.5 * ROWS.mean(0))


def test_min_max_goes_as_far_as_the_largest_distance_and_no_further():
    found = MinMax().rows(ROWS[:4], ROWS, Scene)[0]
    largest = max(np.linalg.norm(a - b) for a in ROWS for b in ROWS)
    reached = np.linalg.norm(ROWS - found, axis=1).max()
    assert reached == pytest.approx(largest, rel=1e-6)
    assert reached <= largest * (1 + 1e-12)


def test_free_riders_and_sybils():
    assert not FreeRider().rows(ROWS[:4], ROWS, Scene).any()
    assert FreeRider(noise=1.0).rows(ROWS[:4], ROWS, Scene).std() > 0.3
    assert np.array_equal(Sybils().rows(ROWS[:4], ROWS, Scene), np.repeat(ROWS[:1], 4, 0))


def test_sybils_send_one_row():
    rows = federation(Sybils()).gather(total)
    assert rows["party 1"] == rows["party 2"] == own("party 1")
