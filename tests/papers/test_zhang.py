"""Zhang's constants hold and are loose; Gong's relevance is released without a charge."""

import itertools
import math

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.papers.haug.zhang import (
    functional_mechanism,
    printed_constant,
    relevance_regression,
    scaled_bound,
)
from hedgerow.stats.private import UnitRows
from hedgerow.stats.private.second_moments import unit_moments
from hedgerow.stats.private.solving import TAYLOR

TABLE = hr.data.load("diabetes")
FORMULA = "progression ~ bmi + bp + s1 + s5"


def last(program, **settings):
    federation = hr.simulate(TABLE, hr.data.iid(parties=3), seed=0)
    *_, state = program(federation, formula=FORMULA, **settings)
    return federation, state


def corners(d):
    return np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=d)))


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("labels", [False, True])
def test_the_printed_constants_are_never_exceeded_and_never_reached(d, labels):
    found = 0.0
    for x in corners(d) / math.sqrt(d):
        for y in (0.0, 1.0) if labels else (-1.0, 1.0):
            party = Party("p", {"X": x[None], "y": np.array([y])}, np.ones(1))
            found = max(found, np.abs(unit_moments(None, party, None, parts=TAYLOR[labels], labels=labels)).sum())
    exact = d / 8 + math.sqrt(d) / 2 if labels else d + 2 * math.sqrt(d)
    assert found == pytest.approx(exact)
    assert printed_constant(d, labels=labels) > 2 * exact


def test_columns_that_are_scaled_have_a_bound_that_is_reached_and_never_exceeded():
    rows = UnitRows.of(FORMULA, TABLE.schema, length="fixed")
    scale = np.array([1.0, 0.5, 1.0, 0.25, 0.1])
    bound, longest = scaled_bound(TAYLOR[False], rows, scale), 0.0
    rng = np.random.default_rng(0)
    for x in [scale / np.linalg.norm(scale), *rng.normal(size=(200, 5))]:
        party = Party("p", {"X": x[None] / np.linalg.norm(x), "y": np.array([1.0])}, np.ones(1))
        sent = unit_moments({"scale": scale}, party, None, parts=TAYLOR[False], labels=False)
        longest = max(longest, np.abs(sent).sum())
    assert longest == pytest.approx(bound.radius)


def test_printed_constants_add_more_noise_at_the_same_epsilon():
    def error(constants):
        return [np.linalg.norm(last(functional_mechanism, epsilon=e, constants=constants)[1].coef - exact) for e in (1e3, 1e4)]

    exact = last(functional_mechanism, epsilon=1e9, constants="exact")[1].coef
    assert all(more > less for more, less in zip(error("printed"), error("exact"), strict=True))


def test_the_ledger_has_the_functional_mechanism_at_epsilon_and_relevance_as_not_private():
    proved, _ = last(functional_mechanism, epsilon=0.7)
    assert proved.ledger.epsilon(delta=1e-12, unit="record") == pytest.approx(0.7, rel=1e-6)
    federation, state = last(relevance_regression, epsilon=0.7)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == math.inf
    assert [entry.event.kind for entry in federation.ledger.entries] == ["nonprivate", "laplace"]
    assert (state.relevance >= 0).all()
    assert "no finite epsilon" in relevance_regression.declared[0].claim({"epsilon": 0.7})


def test_where_noise_is_small_relevance_changes_nothing():
    plain, weighted = (last(one, epsilon=1e8)[1].coef for one in (functional_mechanism, relevance_regression))
    np.testing.assert_allclose(weighted, plain, atol=5e-3)


def test_the_quotient_of_printed_and_exact_constants_has_no_largest_value():
    blocks = 10.0
    quotients = [printed_constant(d, labels=True) / (blocks / 8 + math.sqrt(blocks) / 2) for d in (10, 100, 1000)]
    assert 10 < quotients[0] < quotients[1] / 40 < quotients[2] / 3000
