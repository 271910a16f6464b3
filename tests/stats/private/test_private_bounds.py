"""Every bound of a private model is reached, and nothing exceeds it; twins with a mistake are caught."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core import Party, l1, l2, linf
from hedgerow.core.whole import in_steps, step_of
from hedgerow.stats import private
from hedgerow.stats.private.bounded import NAMES
from hedgerow.stats.private.bounded_sums import BoundedSums
from hedgerow.stats.private.rows import unit_rows
from hedgerow.stats.private.sums import class_score, gram, score

LOSSES = {
    "logistic": private.BoundedLoss("logistic"),
    "huber": private.BoundedLoss("huber", 0.3),
    "svm": private.BoundedLoss("svm", 0.5),
    "quantile": private.BoundedLoss("quantile", 0.1, 0.8),
}
FAR = 1e4


def party(X, y=0.0, w=1.0):
    X = np.atleast_2d(X)
    return Party("a", {"X": X, "y": np.full(len(X), float(y))}, np.full(len(X), float(w)))


def directions(d, rng, n=20):
    """Rows of length one: corners of the cube, axes, and some in between."""
    corners = np.array([[(-1.0) ** (i >> j & 1) for j in range(d)] for i in range(2**d)])
    rows = np.concatenate([corners, np.eye(d), rng.normal(size=(n, d))])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def slopes(name, x, coef, y):
    loss = LOSSES[name]
    broadcast = {"coef": coef, "width": np.array(loss.width)}
    return score(broadcast, party(x, y), None, loss=NAMES[name], **({} if loss.share is None else {"shape": loss.share}))


def length_of(contribution, bound):
    return np.linalg.norm(np.ravel(contribution), ord=bound.norm)


# ---- brute force ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_score_is_as_long_as_its_bound_and_never_longer(name, d):
    rng = np.random.default_rng(d)
    targets = (0.0, 1.0) if LOSSES[name].loss.binary else (-1.0, 0.0, 1.0)
    found = [
        np.linalg.norm(slopes(name, x, size * z, y))
        for x, z, y, size in product(directions(d, rng, 4), directions(d, rng, 4), targets, (0.0, 1.0, FAR))
    ]
    assert max(found) == pytest.approx(LOSSES[name].slope, rel=1e-6)
    assert max(found) <= LOSSES[name].slope * (1 + 1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_no_curvature_is_above_its_bound(name):
    one, step = LOSSES[name], 1e-6
    eta = np.linspace(-3, 3, 60_001)
    reached = 0.0
    for y in (0.0, 1.0):
        slope = one.loss.part("slope", np.full_like(eta, y), eta, one.width)
        slope_after = one.loss.part("slope", np.full_like(eta, y), eta + step, one.width)
        reached = max(reached, float(((slope_after - slope) / step).max()))
    assert reached == pytest.approx(one.curvature, rel=1e-4)


@pytest.mark.parametrize("d", [1, 3, 8])
def test_products_of_a_row_are_as_long_as_one(d):
    for x in directions(d, np.random.default_rng(0)):
        assert np.linalg.norm(gram(None, party(x), None)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_score_of_classes_is_root_two_long_at_most_and_reaches_it(classes):
    rng, longest = np.random.default_rng(classes), 0.0
    for x in directions(2, rng, 4):
        for y in range(classes):
            for k in range(classes):
                coef = np.zeros((classes, 2))
                coef[k] = FAR * x
                for at in (coef, rng.normal(size=coef.shape), np.zeros_like(coef)):
                    longest = max(longest, float(np.linalg.norm(class_score({"coef": at}, party(x, y), None))))
    bound = private.BoundedLoss("multinomial", classes=classes).slope
    assert longest == pytest.approx(bound, rel=1e-9)
    assert longest <= bound * (1 + 1e-12)


def test_half_of_the_products_is_above_every_information_of_classes():
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.dirichlet(np.full(4, 0.3))
        information = np.diag(p) - np.outer(p, p)
        assert np.linalg.eigvalsh((np.eye(4) - 1 / 4) / 2 - information)[0] >= -1e-12


def binned(formula="malignant ~ mean_radius + mean_texture", **settings):
    table = hr.data.load("breast_cancer").take(range(50))
    rows = private.UnitRows.of(formula, table.schema, bins=4, **settings)
    return table, rows, rows.rows(table.columns, len(table))


def test_pure_noise_has_bounds_by_absolute_values_that_are_reached():
    table, rows, X = binned()
    federation = hr.simulate(table, hr.data.iid(parties=2), seed=0).protect(mechanism=hr.privacy.Laplace(1.0))
    sums = BoundedSums({"gram": federation, "score": federation}, rows, LOSSES["logistic"])
    products = [gram(None, party(x), None, upper=True) for x in X]
    assert max(np.abs(p).sum() for p in products) == pytest.approx(sums.gram_bound.radius, rel=1e-12)
    certain = [slopes("logistic", x, FAR * x, 0.0) for x in X]
    assert max(np.abs(s).sum() for s in certain) == pytest.approx(sums.score_bound.radius, rel=1e-9)
    classes = BoundedSums(sums.handles, rows, private.BoundedLoss("multinomial", classes=3))
    coef = np.stack([np.zeros(rows.size), FAR * X[0], np.zeros(rows.size)])
    wrong = class_score({"coef": coef}, party(X[0], 2), None)
    assert np.abs(wrong).sum() == pytest.approx(classes.score_bound.radius, rel=1e-9)


def test_a_heavy_record_makes_every_bound_heavier():
    table = hr.data.load("breast_cancer").take(range(50)).declare(mean_radius=(0, 30))
    rows = private.UnitRows.of("malignant ~ mean_texture", table.schema, weights="mean_radius")
    federation = hr.simulate(table, hr.data.iid(parties=2), seed=0)
    sums = BoundedSums(dict.fromkeys(("gram", "score", "count"), federation), rows, LOSSES["logistic"])
    assert (sums.gram_bound.radius, sums.score_bound.radius, sums.count_bound.radius) == (30, 30, 30)
    assert np.linalg.norm(gram(None, party([0.6, 0.8], w=30), None)) == pytest.approx(30)


# ---- held at the party ----------------------------------------------------------------------------------------------
ASKED = {
    "gram": (lambda X, y, w, bounds: gram(None, _party(X, y, w), None, bounds=bounds), l2(1.0, "record")),
    "upper": (lambda X, y, w, bounds: gram(None, _party(X, y, w), None, upper=True, bounds=bounds), l1(2.5, "record")),
    "score": (
        lambda X, y, w, bounds: score(
            {"coef": np.array([3.0, -2.0, 0.5, 1.0]), "width": np.array(0.0)},
            _party(X, y, w),
            None,
            loss="binomial",
            bounds=bounds,
        ),
        l2(1.0, "record"),
    ),
    "score l1": (
        lambda X, y, w, bounds: score(
            {"coef": np.array([3.0, -2.0, 0.5, 1.0]), "width": np.array(0.0)},
            _party(X, y, w),
            None,
            loss="binomial",
            bounds=bounds,
        ),
        l1(2.0, "record"),
    ),
    "classes": (
        lambda X, y, w, bounds: class_score({"coef": COEF}, _party(X, 2 * y, w), None, bounds=bounds),
        l2(math.sqrt(2), "record"),
    ),
    "classes l1": (
        lambda X, y, w, bounds: class_score({"coef": COEF}, _party(X, 2 * y, w), None, bounds=bounds),
        l1(4.0, "record"),
    ),
}
COEF = np.random.default_rng(5).normal(size=(3, 4))


def _party(X, y, w):
    return Party("a", {"X": X, "y": y}, w)


def records(n=40):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.random(n) < 0.5).astype(float), np.ones(n)


def exact(contribution, bound):
    """Length of a contribution in rational numbers, squared for l2, beside the bound's."""
    numbers = [Fraction(float(x)) for x in np.ravel(contribution)]
    if bound.norm == 1:
        return sum(map(abs, numbers)), Fraction(bound.radius)
    return sum(x * x for x in numbers), Fraction(bound.radius) ** 2


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("size", [1.0, 3.7])
def test_no_record_is_beyond_its_bound_whatever_its_row(name, size):
    """Unnormalised rows are too long as they are, and shortened where noise is scaled to rows of length one."""
    ask, bound = ASKED[name]
    held, (X, y, w) = in_steps(bound), records()
    step = step_of(held)
    over = 0
    for i in range(len(X)):
        found = ask(size * X[i : i + 1], y[i : i + 1], w[i : i + 1], held)
        length, limit = exact(found, held)
        assert length <= limit
        assert (np.rint(found / step) * step == found).all()
        if name == "gram":
            assert length >= limit * Fraction(99, 100)
        over += length_of(ask(size * X[i : i + 1], y[i : i + 1], w[i : i + 1], None), bound) > bound.radius * (1 + 1e-9)
    assert (over > 0) == (size > 1), "the twin that leaves rows as they are exceeds the bound"


@pytest.mark.parametrize("name", ASKED)
def test_one_record_more_moves_a_held_sum_by_its_own_row_to_the_last_bit(name):
    ask, bound = ASKED[name]
    held, (X, y, w) = in_steps(bound), records()
    for n in (1, 2, 7, 16, 39):
        before, after = ask(X[:n], y[:n], w[:n], held), ask(X[: n + 1], y[: n + 1], w[: n + 1], held)
        own = ask(X[n : n + 1], y[n : n + 1], w[n : n + 1], held)
        assert (after - before == own).all()


@pytest.mark.parametrize("name", ASKED)
def test_a_held_sum_is_the_sum(name):
    ask, bound = ASKED[name]
    X, y, w = records()
    np.testing.assert_allclose(ask(X, y, w, in_steps(bound)), ask(X, y, w, None), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ASKED)
def test_a_row_that_is_not_finite_adds_nothing(name):
    ask, bound = ASKED[name]
    X, y, w = records(5)
    broken = X.copy()
    broken[2] = np.nan
    kept = [0, 1, 3, 4]
    assert (ask(broken, y, w, in_steps(bound)) == ask(X[kept], y[kept], w[kept], in_steps(bound))).all()


def test_blocks_of_many_records_add_up_to_the_same_bits(monkeypatch):
    X, y, w = records(40)
    whole = {name: ask(X, y, w, in_steps(bound)) for name, (ask, bound) in ASKED.items()}
    monkeypatch.setattr("hedgerow.stats.private.sums.records_at_once", lambda d: 7)
    for name, (ask, bound) in ASKED.items():
        assert (ask(X, y, w, in_steps(bound)) == whole[name]).all()


# ---- twins ----------------------------------------------------------------------------------------------------------
def test_a_bound_of_single_numbers_is_too_small_for_rows_that_are_bounded_by_length():
    """A twin declares the largest number of a row as if it were its length: noise would be sqrt(d) too small."""
    x = np.full(4, 0.5)
    products = gram(None, party(x), None)
    twin = linf(0.25, "record")
    assert length_of(products, twin) <= twin.radius
    assert np.linalg.norm(products) > 3.9 * twin.radius
    table, rows, _ = binned()
    federation = hr.simulate(table, hr.data.iid(parties=2), seed=0).protect(mechanism=hr.privacy.Gaussian(1.0))
    sums = BoundedSums({"gram": federation, "score": federation}, rows, LOSSES["logistic"])
    assert (sums.gram_bound.norm, sums.gram_bound.radius) == (2, 1.0)
    assert sums.gram_noise() == pytest.approx(1.0, rel=1e-3)


def test_the_noise_of_products_is_symmetric_and_half_as_large_off_the_diagonal():
    """A twin that mirrors one triangle throws away half of the answers: its noise has twice the variance."""
    table = hr.data.load("breast_cancer").take(range(60))
    rows = private.UnitRows.of("malignant ~ mean_radius + mean_texture + mean_area", table.schema, bins=16)
    federation = hr.simulate(table, hr.data.iid(parties=2), seed=0).prepare(unit_rows, spec=rows)
    exactly = BoundedSums({"gram": federation, "score": federation}, rows, LOSSES["logistic"]).gram()
    noisy = federation.protect(mechanism=hr.privacy.Gaussian(3.0))
    sums = BoundedSums({"gram": noisy, "score": noisy}, rows, LOSSES["logistic"])
    found = sums.gram()
    assert (found == found.T).all()
    off = (found - exactly)[np.triu_indices(rows.size, 1)]
    spread = 5 / math.sqrt(2 * len(off))
    assert off.std() == pytest.approx(3.0 / math.sqrt(2), rel=spread)
    asked = np.asarray(noisy.sum(gram, bound=sums.gram_bound))
    mirrored = (asked - exactly)[np.triu_indices(rows.size, 1)]
    assert mirrored.std() > 3.0 * (1 - spread) > 3.0 / math.sqrt(2) * (1 + spread)
