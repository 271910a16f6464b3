"""Sums in whole steps: what is added by columns is what each record adds alone, and close to the sum as it is without noise."""

from functools import partial

import numpy as np
import pytest
from clinic import SCHEMA
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.core.arrays import flatten
from hedgerow.core.bound import l2, linf
from hedgerow.core.party import Party
from hedgerow.core.records import record_by_record
from hedgerow.core.whole import bound_in, in_steps
from hedgerow.stats import whole
from hedgerow.stats.expressions import FUNCTIONS
from hedgerow.stats.hidden.sso import squares
from hedgerow.stats.hidden.terms import count, linear_terms, logistic_terms
from hedgerow.stats.linear.losses import LOSSES
from hedgerow.stats.linear.sums import kind_of, linear_sums
from hedgerow.stats.moments import deviations, scaled_deviations
from hedgerow.stats.penalty.columns import column_sums
from hedgerow.stats.quality.metrics import classified, squared_errors
from hedgerow.stats.quality.odds import events_by_column

KEYS = ("score", "gradient", "information", "curvature", "deviance", "loss", "inside", "pull", "gap", "y", "yy", "n")
RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (300, 5))
BETA = RNG.normal(size=5)


def party(x=X, shape=()):
    columns = {"X": x, "y": (np.arange(len(x)) % 3 == 0) * 1.0 + 1.0 * (shape != ()), "offset": np.linspace(-1, 1, len(x))}
    w = np.linspace(0, 1, len(x))
    return Party("p", {k: c.reshape(*shape, -1, *c.shape[1:]) for k, c in columns.items()}, w.reshape(*shape, -1))


def bounds(radius):
    return in_steps({key: l2(radius, "record") if kind_of(key).rows else linf(radius, "record") for key in KEYS})


def both(broadcast, one, radius, loss):
    """A sum by columns, and record by record."""
    ask = partial(linear_sums, loss=loss, keys=KEYS)
    return ask(broadcast, one, None, bounds=bounds(radius)), record_by_record(
        broadcast, one, None, ask=ask, bounds=bounds(radius)
    )


@pytest.mark.parametrize("shape", [(), (4,)], ids=["one party", "a stack"])
@pytest.mark.parametrize("loss", ["gaussian", "binomial", "hinge", "check", "huber"])
def test_columns_give_what_each_record_adds_alone(loss, shape):
    broadcast = {"beta": BETA, "width": np.array(0.3)}
    one = party(shape=shape)
    added, alone = both(broadcast, one, 64.0, loss)
    plain = linear_sums(broadcast, one, None, loss=loss, keys=KEYS)
    for key in KEYS:
        step = bound_in(bounds(64.0), key).step
        assert_array_equal(added[key] / step, np.rint(added[key] / step))
        assert np.abs(added[key] - alone[key]).max() <= 300 * step, key  # products round once or twice
        assert_allclose(added[key], plain[key], rtol=0, atol=150 * step)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 300, 2047, 5000])
def test_compiled_sums_are_those_of_numpy_to_the_last_bit(n, monkeypatch):
    if whole._sums is None:
        pytest.skip("there is no compiler")
    rng = np.random.default_rng(n)
    columns, v = rng.normal(size=(6, n)), rng.normal(size=n) * rng.choice([1e-9, 1.0], size=n)
    bound = in_steps(l2(100.0, "record"))
    compiled = [made(v, bound) for made in (whole.WholeRows(columns).sums, whole.WholeRows(columns).products)]
    monkeypatch.setattr(whole, "_sums", None)
    plain = [made(v, bound) for made in (whole.WholeRows(columns).sums, whole.WholeRows(columns).products)]
    for one, other in zip(compiled, plain, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "given",
    [
        (np.ones((2, 3)), np.ones(4), np.ones(2)),
        (np.ones((2, 3)), np.ones(3), np.ones(4)),
        (np.ones((2, 3), np.float32), np.ones(3), np.ones(2)),
        (np.ones((3, 2)).T, np.ones(3), np.ones(2)),
        (np.ones(3), np.ones(3), np.ones(1)),
    ],
)
def test_compiled_sums_refuse_other_shapes_and_kinds(given):
    if whole._sums is None:
        pytest.skip("there is no compiler")
    with pytest.raises((ValueError, BufferError)):
        whole._sums.rows(*given)


def test_records_that_are_too_long_are_shortened_and_others_stay():
    added, _ = both({"beta": BETA}, party(X * 100), 8.0, "binomial")
    for key in ("score", "information"):
        assert np.linalg.norm(added[key]) <= 300 * 8.0
        one = party(X[-1:] * 100)
        assert np.linalg.norm(both({"beta": BETA}, one, 8.0, "binomial")[0][key]) <= 8.0


def test_a_record_that_is_not_finite_adds_nothing():
    x = X.copy()
    x[3], x[5, 2], x[7] = np.nan, np.inf, 1e200
    added, _ = both({"beta": BETA}, party(x), 64.0, "gaussian")
    kept = np.setdiff1d(np.arange(300), [3, 5, 7])
    some = party()
    without = Party("p", {name: column[kept] for name, column in some.columns.items()}, some.w[kept])
    for key in ("score", "information", "deviance"):
        assert_array_equal(added[key], both({"beta": BETA}, without, 64.0, "gaussian")[0][key])


def test_several_points_at_once_are_asked_of_each_record():
    broadcast = {"beta": np.stack([BETA, -BETA])}
    ask = partial(linear_sums, loss="binomial", keys=("score", "n"))
    found = ask(broadcast, party(), None, bounds=in_steps({"score": l2(64.0, "record"), "n": l2(2.0, "record")}))
    assert_allclose(found["score"], ask(broadcast, party(), None)["score"], rtol=0, atol=1e-3)


@pytest.mark.parametrize("cross", [False, True])
def test_moments_by_columns_are_those_of_each_record_alone(cross):
    names = ("age", "visits", "pain")
    columns = SCHEMA.synthetic(200, np.random.default_rng(1))
    one, centre = Party("p", columns, np.linspace(0, 1, 200)), np.array([50.0, 3.0, 1.0])
    ask = partial(deviations, columns=names, cross=cross)
    limits = in_steps({"n": linf(1.0, "record"), "sum": l2(100.0, "record"), "squares": l2(1e4, "record")})
    alone, plain = record_by_record(centre, one, None, ask=ask, bounds=limits), ask(centre, one, None)
    for key, found in ask(centre, one, None, bounds=limits).items():
        step = limits[key].step
        assert np.abs(found - alone[key]).max() <= 200 * step
        assert_allclose(found, plain[key], rtol=0, atol=100 * step)


def test_means_by_columns_are_those_of_each_record_alone():
    columns = SCHEMA.synthetic(200, np.random.default_rng(1))
    one, frame = Party("p", columns, np.linspace(0, 1, 200)), np.array([[50.0, 3.0], [40.0, 60.0]])
    ask = partial(scaled_deviations, columns=("age", "visits"))
    limits = in_steps(dict.fromkeys(("n", "sum"), linf(1.0, "record")))
    alone = record_by_record(frame, one, None, ask=ask, bounds=limits)
    for key, found in ask(frame, one, None, bounds=limits).items():
        assert np.abs(found - alone[key]).max() <= 200 * limits[key].step
        assert_allclose(found, ask(frame, one, None)[key], rtol=0, atol=100 * limits[key].step)


@pytest.mark.parametrize("name", ["value", "slope", "curvature"])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_parts_of_a_loss_do_not_depend_on_how_many_records_there_are(loss, name):
    """For those with a bound at every point it must be so; for the others it is what is seen."""
    eta, y = np.linspace(-40, 40, 67), np.tile([0.0, 1.0], 34)[:67] + 0.5 * LOSSES[loss].positive
    together = LOSSES[loss].part(name, y, eta, 0.5)
    for n in (1, 2, 3, 4, 5, 8, 9, 33):
        for start in (0, 1, 7, 30):
            part = slice(start, start + n)
            assert_array_equal(LOSSES[loss].part(name, y[part].copy(), eta[part].copy(), 0.5), together[part])


@pytest.mark.parametrize("name", [*FUNCTIONS, "**"])
def test_functions_of_formulas_do_not_depend_on_how_many_records_there_are(name):
    """NumPy does not promise it: see docs/limitations.md."""
    x = np.random.default_rng(0).uniform(0.01, 30, 131)
    function = (lambda v: v**2.7) if name == "**" else FUNCTIONS[name]
    together = function(x)
    for n in (1, 2, 3, 4, 5, 7, 8, 9, 31, 64):
        for start in (0, 1, 3, 60):
            assert_array_equal(function(x[start : start + n].copy()), together[start : start + n])
            assert_array_equal(function(x[start : start + n]), together[start : start + n])


# ---- functions that say that their rows do not depend on each other -----------------------------------------------------
ROWWISE = {
    "squared_errors": (squared_errors, {"beta": BETA, "centre": np.array(0.3)}, {}),
    "classified": (classified, BETA, {"threshold": 0.5}),
    "linear_terms": (linear_terms, BETA, {}),
    "linear_terms withheld": (linear_terms, None, {}),
    "logistic_terms": (logistic_terms, BETA, {}),
    "logistic_terms withheld": (logistic_terms, None, {}),
    "count": (count, None, {}),
    "squares": (squares, None, {"columns": ("y", "offset")}),
    "column_sums": (column_sums, None, {}),
    "events_by_column": (events_by_column, None, {}),
    "linear_sums": (linear_sums, {"beta": np.stack([BETA, -BETA])}, {"loss": "binomial", "keys": ("deviance", "information")}),
    "linear_sums of counts": (linear_sums, {"beta": BETA * 0.1}, {"loss": "poisson", "keys": ("deviance", "score")}),
}


@pytest.mark.parametrize("name", ROWWISE)
def test_rows_of_stacked_records_have_the_bits_that_each_has_alone(name):
    function, broadcast, settings = ROWWISE[name]
    assert function.rowwise
    rng, n = np.random.default_rng(2), 70
    columns = {"X": rng.normal(size=(n, 5)), "y": (rng.uniform(size=n) < 0.5) * 1.0, "offset": rng.normal(size=n)}
    w = rng.uniform(size=n)

    def asked(part, stacked):
        some = {key: column[part][:, None] if stacked else column[part].copy() for key, column in columns.items()}
        return flatten(
            function(broadcast, Party("", some, w[part][:, None] if stacked else w[part]), None, **settings), int(stacked)
        )

    alone = np.stack([asked(slice(i, i + 1), stacked=False).ravel() for i in range(n)])
    for start, stop in ((0, 1), (0, 2), (1, 4), (0, 4), (3, 10), (0, 64), (0, n)):
        assert_array_equal(asked(slice(start, stop), stacked=True).reshape(stop - start, -1), alone[start:stop])
