"""Neighbouring worlds, run: what enters the noise moves by no more than the ledger was charged for, on every engine."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import AdditiveShares, Gaussian, SecAgg, l2
from hedgerow.core.question import local
from hedgerow.engines import InProcess, Loop, Processes
from hedgerow.privacy.mechanisms import Noise
from hedgerow.testing.wired import Wired
from hedgerow.testing.worlds import FUNCTIONS, WAYS, apart, asked, fails_at_a_point, mishaps, neighbours, sides
from helpers import Hiding, federation, totals

ENGINES = {"loop": Loop(), "one thread": InProcess(threads=1), "two threads": InProcess(threads=2), "bytes": Wired()}
LAWS = {
    "server": ("gaussian", "laplace"),
    "shares": ("skellam", "laplace"),
    "party": ("gaussian",),
    "aggregators": ("gaussian", "laplace"),
}
SEEDS = range(2)
ROUNDED = 1 + 1e-9

CASES = [
    (unit, way, position, law)
    for unit in ("record", "party")
    for way in WAYS
    for position, laws in LAWS.items()
    for law in laws
    if (unit, way) != ("party", "records")  # refused: no distance is known for it
]


def moved(engine, unit, way, position, law, *, verb="sum", worlds=neighbours, **how):
    """Distances over what is paid for, for all neighbours, functions and seeds."""
    noise = Noise(law, 1.0, position, 2 if position == "shares" else 0)
    behind = (
        {"aggregation": Hiding(aggregators=2 * (position == "aggregators"))} if position in ("shares", "aggregators") else {}
    )
    how = behind | how
    for pair in worlds(unit, way, position):
        for function in FUNCTIONS[unit]:
            for seed in SEEDS:
                both = [
                    asked(world, engine, unit, way, noise, verb=verb, function=function, seed=seed, **how)
                    for world in (pair.one, pair.other)
                ]
                assert both[0].paid == both[1].paid
                yield pair.change, apart(*both, law) / both[0].paid if verb != "each" else 0.0


@pytest.mark.parametrize(("unit", "way", "position", "law"), CASES, ids=[" ".join(case) for case in CASES])
def test_neighbours_are_as_near_as_was_paid(unit, way, position, law):
    found = list(moved(InProcess(threads=1), unit, way, position, law))
    farthest = max(found, key=lambda one: one[1])
    assert farthest[1] <= ROUNDED, farthest
    assert farthest[1] > 0.3, "nothing moved, so nothing was tried"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["record", "party"])
@pytest.mark.parametrize("way", ["all", "poisson", "fixed"])
def test_neighbours_are_as_near_on_every_engine(engine, unit, way):
    found = list(moved(ENGINES[engine], unit, way, "server", "gaussian"))
    assert 0.3 < max(length for _, length in found) <= ROUNDED


@pytest.mark.parametrize("unit", ["record", "party"])
@pytest.mark.parametrize("way", ["all", "poisson", "fixed", "given", "part", "dealt"])
def test_rows_with_their_own_noise_are_as_near_as_was_paid(unit, way):
    found = list(moved(InProcess(threads=1), unit, way, "party", "gaussian", verb="gather"))
    assert 0.3 < max(length for _, length in found) <= ROUNDED


@pytest.mark.parametrize("unit", ["record", "party"])
@pytest.mark.parametrize("mode", ["real", "simulated"])
def test_what_enters_the_noise_of_aggregators_is_as_near_as_was_paid(unit, mode):
    found = list(moved(InProcess(threads=1), unit, "all", "aggregators", "gaussian", aggregation=AdditiveShares(mode=mode)))
    assert 0.3 < max(length for _, length in found) <= ROUNDED


@pytest.mark.parametrize("unit", ["record", "party"])
@pytest.mark.parametrize("position", ["server", "shares"])
def test_neighbours_are_as_near_behind_masks(unit, position):
    """A party whose function fails answers zeros there as well: that it refused would tell of its records."""
    found = list(moved(InProcess(threads=1), unit, "all", position, "gaussian", aggregation=SecAgg()))
    assert 0.3 < max(length for _, length in found) <= ROUNDED


@pytest.mark.parametrize("unit", ["record", "party"])
def test_what_parties_keep_is_paid_for_when_it_leaves(unit):
    for pair in neighbours(unit):
        for world in (pair.one, pair.other):
            one = asked(world, InProcess(threads=1), unit, "all", Noise("gaussian", 1.0), verb="each")
            assert (one.steps, one.paid, one.released) == ((), 0.0, ())


def test_all_engines_see_the_same_steps():
    for unit in ("record", "party"):
        (pair, *_) = neighbours(unit)
        for function in FUNCTIONS[unit]:
            found = [
                asked(pair.one, engine, unit, "all", Noise("gaussian", 1.0), function=function) for engine in ENGINES.values()
            ]
            for one in found[1:]:
                np.testing.assert_array_equal(one.steps[0][0], found[0].steps[0][0])


@pytest.mark.slow
def test_the_ledger_does_not_tell_how_many_came_to_a_poisson_cohort():
    """Through secure aggregation a party sends more where more were asked; the ledger has what is expected."""
    fed = federation(n_parties=30).protect(clip=l2(1.0), mechanism=Gaussian(1.0), aggregation=SecAgg())
    cohorts = [fed.sample(rate=0.8) for _ in range(4)]
    for cohort in cohorts:
        cohort.sum(totals)
    assert len({len(cohort.members) for cohort in cohorts}) > 1
    assert len({entry.bytes_up for entry in fed.ledger.entries}) == 1


# ---- records that go wrong ------------------------------------------------------------------------------------------
def lengths(mishap, engine, **changed):
    """Distances over what is paid for, by law."""
    for law in mishap.laws:
        noise = Noise(law, mishap.noise_multiplier)
        ask = {"function": mishap.function, "bound": mishap.bound} | changed
        both = [asked(world, engine, "record", "all", noise, **ask) for world in (mishap.worlds.one, mishap.worlds.other)]
        assert both[0].paid == both[1].paid
        yield apart(*both, law) / both[0].paid


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_record_that_goes_wrong_takes_no_other_with_it(engine):
    found = {f"{mishap} {k}": far for mishap in mishaps() for k, far in enumerate(lengths(mishap, ENGINES[engine]))}
    assert {name: far for name, far in found.items() if not far <= ROUNDED} == {}
    assert max(found.values()) > 0.3


@local(stackable=True)
def all_at_once(broadcast, party, rng):
    """A twin: no sum over records, so that a party is asked about all of them at once."""
    return fails_at_a_point(broadcast, party, rng)


@local(additive=True, stackable=True, rowwise=True)
def sides_of_many(broadcast, party, rng):
    """A twin: it says that its rows do not depend on each other."""
    return sides(broadcast, party, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("honest", "twin"), [(fails_at_a_point, all_at_once), (sides, sides_of_many)])
def test_functions_that_are_asked_about_many_records_are_caught(honest, twin):
    those = [mishap for mishap in mishaps() if mishap.function is honest]
    assert max(far for mishap in those for far in lengths(mishap, Loop())) <= ROUNDED
    caught = [max(lengths(replace(mishap, laws=("gaussian",)), Loop(), function=twin)) for mishap in those]
    assert max(caught) > 2


@pytest.mark.slow
def test_neighbours_are_as_near_in_processes():
    with Processes(2) as engine:
        for unit in ("record", "party"):
            for way in ("all", "fixed"):
                found = list(moved(engine, unit, way, "server", "gaussian"))
                assert 0.3 < max(length for _, length in found) <= ROUNDED
