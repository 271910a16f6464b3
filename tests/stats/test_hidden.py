"""Gradients from terms that need no model, and descent by them."""

from functools import partial

import numpy as np
import pytest
from clinic import ENGINE_NAMES, ENGINES, clinic, federation

import hedgerow as hr
from hedgerow.core import Party
from hedgerow.core.arrays import Layout, flatten
from hedgerow.core.conversation import Contribution
from hedgerow.core.federation import inside
from hedgerow.crypto.conversation import drive
from hedgerow.crypto.privfl import CUBIC, PrivFL, PrivFLParty, PrivFLServer
from hedgerow.crypto.secagg import SecAgg, SecAggParty, Server
from hedgerow.errors import NotConverged, SettingsInvalid
from hedgerow.stats import linear_regression, standardise
from hedgerow.stats.design import Design, design
from hedgerow.stats.hidden.descent import hidden_gradient_descent
from hedgerow.stats.hidden.terms import cubic_rows, gradient_bound, grid_of, linear_terms, logistic_terms, terms_of

FORMULA = {"gaussian": "pain ~ age + dose", "binomial": "ill ~ age + dose"}
CASES = [("gaussian", 1), ("binomial", 1), ("binomial", 3)]


def prepared(family, n=50, **kwargs):
    table = clinic(n)
    spec = Design.of(FORMULA[family], table.schema, **kwargs)
    return spec, Party("p", design(table.columns, spec=spec), np.ones(n))


def polynomial(family, degree):
    c0, c1, c3 = {1: (0.5, 0.25, 0.0), 3: CUBIC}[degree]
    return (lambda z: z) if family == "gaussian" else (lambda z: c0 + c1 * z + c3 * z**3)


@pytest.mark.parametrize(("family", "local"), [("gaussian", linear_terms), ("binomial", logistic_terms)])
def test_terms_without_the_model_give_its_gradient(family, local):
    _, party = prepared(family, offset="exposure")
    party.w[:10] = 3.0
    theta = np.array([0.3, -0.01, 0.2])
    terms = local(None, party, None)
    np.testing.assert_allclose(terms["A"] @ theta - terms["b"], local(theta, party, None), rtol=1e-10)


@pytest.mark.parametrize(("family", "degree"), CASES)
def test_the_gradient_is_that_of_the_polynomial(family, degree):
    _, party = prepared(family)
    theta = np.array([0.3, -0.01, 0.2])
    by_hand = party["X"].T @ (polynomial(family, degree)(party["X"] @ theta) - party["y"])
    np.testing.assert_allclose(terms_of(family, degree)(theta, party, None), by_hand, rtol=1e-10)


def test_rows_are_what_a_cubic_keeps_without_the_model():
    _, party = prepared("binomial")
    assert set(cubic_rows(None, party, None)) == {"X", "y", "w"}


@pytest.mark.parametrize(("family", "degree"), CASES)
def test_one_record_moves_the_gradient_at_most_by_its_bound(family, degree):
    spec, party = prepared(family, 300)
    theta = np.array([0.3, -0.02, 0.4])
    bound = gradient_bound(spec, family, degree, theta)
    residual = polynomial(family, degree)(party["X"] @ theta) - party["y"]
    assert np.linalg.norm(party["X"] * residual[:, None], axis=1).max() <= bound.radius


@pytest.mark.parametrize(("family", "degree"), CASES)
def test_declared_limits_hold_every_party(family, degree):
    table = clinic(300)
    spec = Design.of(FORMULA[family], table.schema).to_unit()
    party = Party("p", design(table.columns, spec=spec), np.ones(300))
    grid = grid_of(spec, family, degree, parties=8, records=300, largest=4.0)
    kept = terms_of(family, degree)(None, party, None)
    encode = grid.encode_rows if degree == 3 else grid.encode_terms
    encode(Layout.of(kept), flatten(kept))  # refuses what is beyond a limit


def test_without_declared_ranges_there_are_no_steps():
    spec = Design.of("pain ~ open", clinic().schema)
    assert grid_of(spec, "gaussian", 1, parties=3, records=1, largest=8.0) is None
    assert gradient_bound(spec, "gaussian", 1, np.ones(2)) is None


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
@pytest.mark.parametrize(("family", "degree"), CASES)
def test_descent_equals_a_pooled_loop(family, degree, engine):
    fed = standardise(federation(engine=engine), ["age", "dose"])
    *_, state = hidden_gradient_descent(fed, FORMULA[family], family=family, degree=degree, learning_rate=0.2, rounds=7)
    frame = clinic().to_pandas()
    plain = frame[["age", "dose"]].to_numpy(dtype=float)
    X = np.column_stack([np.ones(300), (plain - plain.mean(0)) / plain.std(0, ddof=1)])
    y, theta = frame["pain" if family == "gaussian" else "ill"].to_numpy(dtype=float), np.zeros(3)
    for _ in range(7):
        theta = theta - 0.2 / 300 * X.T @ (polynomial(family, degree)(X @ theta) - y)
    np.testing.assert_allclose(state.theta, theta, rtol=1e-10, atol=1e-12)
    assert state.n == 300
    assert len(state.theta) == 3


def test_linear_descent_ends_at_the_exact_fit():
    fed = standardise(federation(), ["age", "dose"])
    *_, state = hidden_gradient_descent(fed, FORMULA["gaussian"], learning_rate=0.9, rounds=60)
    np.testing.assert_allclose(state.theta, linear_regression(fed, FORMULA["gaussian"]).coef_, atol=1e-8)


def test_a_state_continues_where_it_was():
    run = partial(hidden_gradient_descent, formula=FORMULA["binomial"], family="binomial", learning_rate=0.2)
    fed = standardise(federation(), ["age", "dose"])
    *_, half = run(fed, rounds=3)
    *_, resumed = run(fed, rounds=6, start=half)
    *_, whole = run(fed, rounds=6)
    np.testing.assert_array_equal(resumed.theta, whole.theta)


def test_too_large_a_rate_is_said_to_diverge():
    with pytest.raises(NotConverged, match=r"learning rate below 1e\+60"):
        list(hidden_gradient_descent(federation(), FORMULA["gaussian"], learning_rate=1e60, rounds=4))


def test_impossible_settings_are_refused_before_anybody_is_asked():
    fed = federation()
    for wrong in ({"degree": 3}, {"degree": 2}, {"rounds": 0}, {"learning_rate": 0.0}, {"records": -1.0}):
        with pytest.raises(SettingsInvalid):
            list(hidden_gradient_descent(fed, FORMULA["gaussian"], **wrong))
    assert len(fed.ledger) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("family", "degree"), CASES)
def test_descent_on_an_encrypted_model_equals_the_plain_one_to_the_step(family, degree):
    fed = federation(clinic(24), n_parties=4)
    fed = standardise(fed, ["age", "dose"] + ["pain"] * (family == "gaussian"))
    spec = Design.of(FORMULA[family], fed.schema)
    held = fed.prepare(design, spec=spec)
    parties = {party.id: party for party in hr.engines.records(fed).prepared(inside(held).view, together=False)}
    grid = grid_of(spec, family, degree, parties=4, records=max(len(p.w) for p in parties.values()), largest=1.0)
    settings = PrivFL(bits=512, insecure=True)
    sides = {id: PrivFLParty(id, settings, SecAggParty(id, SecAgg())) for id in parties}
    server = PrivFLServer(settings, tuple(parties), Server(SecAgg(), tuple(parties)))
    drive(server.open(), sides)
    theta = np.zeros(spec.size)
    for _ in range(3):
        made = {id: terms_of(family, degree)(None, party, None) for id, party in parties.items()}  # the model is withheld
        given = {id: Contribution(Layout.of(kept), flatten(kept), grid) for id, kept in made.items()}
        found = drive(server.total(tuple(parties), grid.on_grid(theta), grid), sides, given)
        theta = theta - 0.3 / 24 * grid.decode(found.total)
    run = hidden_gradient_descent(fed, FORMULA[family], family=family, degree=degree, learning_rate=0.3, rounds=3)
    step = 2.0**-grid.predictor_bits if degree == 3 else 2.0 ** -min(grid.terms_bits, grid.model_bits)
    np.testing.assert_allclose(theta, list(run)[-1].theta, atol=4 * step)


def test_a_family_without_such_terms_is_refused():
    fed = federation()
    with pytest.raises(SettingsInvalid, match="poisson"):
        next(hidden_gradient_descent(fed, "pain ~ age", family="poisson"))
    assert len(fed.ledger) == 0
