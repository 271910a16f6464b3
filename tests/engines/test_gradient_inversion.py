"""One record's score is its features times a number: whoever sees it has the record. One attack, on every view of a server.

score        = (y - mean) (1, x)                    x = the others over the first, y = whether the first is above zero
information  = mean (1 - mean) (1, x) (1, x)'       its first row gives x again, by which the attack knows it is right
"""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.crypto import AdditiveShares, HiddenModel, PairwiseMasks, SecAgg, privfl, streams
from hedgerow.crypto.privfl import masks
from hedgerow.data import Column, Schema, Table, iid
from hedgerow.engines import InProcess, simulate
from hedgerow.stats import logistic_regression
from hedgerow.stats.hidden.descent import hidden_gradient_descent

SCHEMA = Schema(
    (
        Column("u", "number", low=-1, high=1),
        Column("v", "number", low=-1, high=1),
        Column("ill", "binary", role="target"),
    )
)
N, SIZE, FORMULA = 12, 3, "ill ~ u + v"
PRIVFL = HiddenModel(privfl.PrivFL(512, insecure=True), SecAgg(records=1))


def stores(aggregation=None):
    """One record to a store, seen by the server."""
    table = Table(SCHEMA.admit(SCHEMA.synthetic(N, np.random.default_rng(7))), SCHEMA)
    fed = simulate(table, iid(N), seed=2, engine=InProcess(threads=1), record_views=True)
    return fed if aggregation is None else fed.protect(aggregation=aggregation)


def invert(view, size, *, downhill=False):
    """Return party -> (x, y) as far as the rows of a view tell, by scale-free ratios: steps of fixed point do not matter."""
    found = {}
    for seen in view:
        if seen.kind not in ("row", "masked row") or np.size(seen.values) < size:
            continue
        row = np.asarray(seen.values)
        row = (row.view(np.int64) if row.dtype == np.uint64 else row).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            x, again = row[1:size] / row[0], row[size + 1 : 2 * size] / row[size : size + 1]
        if np.isfinite(x).all() and (row.size == size or np.allclose(x, again, atol=1e-6)):
            found.setdefault(seen.source, (*x, float((row[0] > 0) != downhill)))
    return found


def recovered(fed, found):
    """How many stores' records an attack has found, each under its store's name."""
    columns = np.column_stack([hr.engines.records(fed).columns[name] for name in ("u", "v", "ill")])
    truth = dict(zip(fed.names, columns, strict=True))
    return sum(np.allclose(record, truth[store], atol=1e-4) for store, record in found.items())


def by_newton(aggregation=None):
    fed = stores(aggregation)
    logistic_regression(fed, FORMULA)
    return recovered(fed, invert(hr.engines.view(fed, "server"), SIZE))


def by_descent(aggregation=None):
    fed = stores(aggregation)
    list(hidden_gradient_descent(fed, FORMULA, family="binomial", rounds=2, records=1, largest=2.0))
    return recovered(fed, invert(hr.engines.view(fed, "server"), SIZE, downhill=True))


@pytest.mark.slow
def test_plain_sums_give_every_record_away():
    assert by_newton() == N
    assert by_descent() == N


@pytest.mark.slow
@pytest.mark.parametrize(
    "aggregation",
    [SecAgg(records=1), SecAgg(records=1, adversary="active"), PairwiseMasks(records=1), AdditiveShares(records=1)],
    ids=lambda a: a.name,
)
def test_hidden_rows_give_no_record_away(aggregation):
    assert by_newton(aggregation) == 0


def test_a_hidden_models_server_gets_no_record_either():
    assert by_descent(PRIVFL) == 0


def test_without_masks_the_same_views_give_every_record_away(monkeypatch):
    monkeypatch.setattr(streams, "add_streams", lambda row, *_: None)
    assert by_newton(SecAgg(records=1)) == N


def test_without_masks_a_hidden_models_server_gets_every_record(monkeypatch):
    monkeypatch.setattr(masks.Limbs, "fresh", lambda self: np.zeros(self.count, np.uint64))
    assert by_descent(PRIVFL) == N
