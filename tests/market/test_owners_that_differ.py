"""One question to each owner: what shifts where owners differ, and what chance makes where they do not."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import SettingsInvalid, UnlawfulChannel
from hedgerow.learn.queries import Inputs, QueryLoss
from hedgerow.market import ask_owners
from hedgerow.privacy import Gaussian

SPEC = Inputs(("a", "b"), "t", (0.0, 0.0), (1.0, 1.0), radius=1.0)
SQUARED = QueryLoss("squared")
SIZES = [3000, 1000, 1000]


def federation(differ, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    x = rng.uniform(-0.7, 0.7, (n, 2))
    own = np.repeat(np.arange(3), SIZES)
    slope = np.where(own == 0, 0.8 if differ else 0.4, 0.4)
    t = np.clip(slope * x[:, 0] - 0.3 * x[:, 1] + rng.normal(scale=0.2, size=n), -1, 1)
    columns = [hr.data.Column(name, "number", low=-1, high=1) for name in "ab"]
    schema = hr.data.Schema((*columns, hr.data.Column("t", "number", "target", low=-1, high=1)))
    table = hr.data.Table({"a": x[:, 0], "b": x[:, 1], "t": t}, schema)
    return hr.simulate(table, hr.data.of_sizes(sizes=SIZES, shuffled=False), seed=seed)


def asked(fed, **more):
    return ask_owners(fed, loss=SQUARED, spec=SPEC, records=SIZES, **more)


def alone(found):
    return {next(iter(found.owners)): 1.0}


def test_without_noise_a_shift_is_the_excess_of_the_owner_alone_on_everybodys_records():
    found = asked(federation(differ=True), epsilon=None)
    gram = sum(state.gram for state in found.owners.values())
    score = sum(state.score for state in found.owners.values())
    first = next(iter(found.owners.values()))
    apart = np.linalg.solve(first.gram, first.score) - np.linalg.solve(gram, score)
    assert found.shift(alone(found)) == pytest.approx(apart @ gram @ apart / 5000)
    assert found.shift(dict.fromkeys(found.owners, 2.0)) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.slow
def test_owners_of_one_population_shift_as_chance_makes_them_and_others_much_more():
    """25 draws of one population: shifts are near exponential, so that their mean is known to about 20 %."""
    pairs = [
        (found.shift(alone(found)), found.by_chance(alone(found))) for found in (asked(federation(False, i)) for i in range(25))
    ]
    shifts, chances = np.array(pairs).T
    assert shifts.mean() == pytest.approx(chances.mean(), rel=0.6)
    apart = asked(federation(differ=True), epsilon=1.0)
    assert apart.shift(alone(apart)) > 5 * apart.by_chance(alone(apart))


def test_the_question_costs_what_it_was_given():
    fed = federation(differ=True)
    asked(fed, epsilon=0.5)
    assert fed.ledger.epsilon(delta=1e-6) == pytest.approx(0.5, rel=1e-3)
    assert [entry.mechanism.endswith("at the party") for entry in fed.ledger.since(0)] == [True]


def test_owners_that_hide_their_rows_and_wrong_numbers_are_refused():
    with pytest.raises(SettingsInvalid, match="2 numbers"):
        ask_owners(federation(True), loss=SQUARED, spec=SPEC, records=[1, 2])
    with pytest.raises(UnlawfulChannel):
        asked(federation(True).protect(mechanism=Gaussian(5.0)), epsilon=None)
    found = asked(federation(True), epsilon=None)
    with pytest.raises(SettingsInvalid, match="some above zero"):
        found.shift({"nobody": 1.0})
