"""Firth's logistic regression equals a pooled reference, and a published rule for tables of two by two."""

import numpy as np
import pytest
from clinic import clinic, federation
from hiding import Hiding

from hedgerow import Gaussian, data
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import Separated, UnlawfulChannel
from hedgerow.stats import Design, FirthState, design, logistic_regression
from hedgerow.stats.firth import firth
from hedgerow.store import load_checkpoint, save_checkpoint


def pooled(X, y, w):
    """Maximise the penalised likelihood by plain steps, halved while it falls."""

    def penalised(b):
        p = 1 / (1 + np.exp(-X @ b))
        information = (X * (w * p * (1 - p))[:, None]).T @ X
        return (w * (y * (X @ b) - np.logaddexp(0, X @ b))).sum() + np.linalg.slogdet(information)[1] / 2

    b = np.zeros(X.shape[1])
    for _ in range(5000):
        p = 1 / (1 + np.exp(-X @ b))
        inverse = np.linalg.inv((X * (w * p * (1 - p))[:, None]).T @ X)
        leverage = p * (1 - p) * np.einsum("ij,jk,ik->i", X, inverse, X)
        step = inverse @ (X.T @ (w * (y - p + leverage * (0.5 - p))))
        share = 1.0
        while penalised(b + share * step) < penalised(b) - 1e-10:
            share /= 2
        b = b + share * step
        if np.abs(step * np.sqrt(1 / np.diag(inverse))).max() < 1e-11:
            return b, inverse
    raise AssertionError("the reference does not converge")


def rows(table, formula, weights=None):
    spec = Design.of(formula, table.schema, weights=weights)
    return design(table.columns, spec=spec)


@pytest.mark.parametrize("weights", [None, "copies"])
def test_the_clinic_is_that_of_the_pooled_records(weights):
    made = rows(clinic(), "ill ~ age + stage + dose")
    w = np.ones(300) if weights is None else np.asarray(clinic()["copies"], float)
    b, inverse = pooled(made["X"], made["y"], w)
    fit = logistic_regression(federation(), "ill ~ age + stage + dose", weights=weights, firth=True)
    np.testing.assert_allclose(fit.coef_, b, rtol=1e-7)
    np.testing.assert_allclose(fit.covariance, inverse, rtol=1e-7)
    assert "Firth's penalised likelihood" in fit.summary()


def test_tables_of_two_by_two_get_half_a_record_in_each_cell():
    """Of a saturated model Jeffreys' prior adds one half to every cell: the log odds ratio of Haldane and Anscombe."""
    cells = {(0, 0): 12, (0, 1): 0, (1, 0): 5, (1, 1): 9}
    x, y = (np.concatenate([np.full(n, key[i], float) for key, n in cells.items()]) for i in (0, 1))
    table = Table({"x": x, "y": y}, Schema((Column("x", "binary"), Column("y", "binary", role="target"))))
    fit = logistic_regression(federation(table, n_parties=3), "y ~ x", firth=True)
    np.testing.assert_allclose(fit.coef_, [np.log(0.5 / 12.5), np.log(9.5 / 5.5) - np.log(0.5 / 12.5)], rtol=1e-7)


@pytest.mark.slow
def test_cancers_that_all_thirty_columns_separate_are_finite():
    table = data.load("breast_cancer")
    with pytest.raises(Separated, match="firth=True"):
        logistic_regression(federation(table), "malignant ~ .")
    fit = logistic_regression(federation(table), "malignant ~ .", firth=True)
    made = rows(table, "malignant ~ .")
    b, inverse = pooled(made["X"], made["y"], np.ones(len(table)))
    np.testing.assert_allclose(fit.coef_ / fit.se_, b / np.sqrt(np.diag(inverse)), atol=1e-6)
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(inverse)), rtol=1e-6)
    assert fit.rounds < 100


@pytest.mark.parametrize("separated", [False, True])
def test_hidden_sums_give_the_same_fit(separated):
    table = clinic()
    if separated:
        table = Table({**table.columns, "ill": (np.asarray(table["age"]) > 50).astype(float)}, table.schema)
    plain = logistic_regression(federation(table), "ill ~ age + dose", firth=True)
    hidden = logistic_regression(federation(table).protect(aggregation=Hiding()), "ill ~ age + dose", firth=True)
    np.testing.assert_allclose(hidden.coef_, plain.coef_, atol=1e-5 * plain.se_.max())


def test_a_fit_resumes_from_every_state(tmp_path):
    spec = Design.of("ill ~ age + dose", federation().schema)
    states = list(firth(federation(), spec))
    for state in states[:-1]:
        save_checkpoint(tmp_path / "state", state, federation(), "test")
        start = load_checkpoint(tmp_path / "state", FirthState, "test").state
        *_, found = firth(federation(), spec, start=start)
        np.testing.assert_allclose(found.newton.beta, states[-1].newton.beta, rtol=1e-12)


def test_noise_is_refused_before_any_party_is_asked():
    fed = federation().protect(mechanism=Gaussian(1.0))
    with pytest.raises(UnlawfulChannel, match="inverts the information"):
        logistic_regression(fed, "ill ~ age", firth=True)
    assert len(fed.ledger) == 0
