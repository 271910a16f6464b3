"""One question of second moments: its ball is reached and never left, and twins that are wrong are caught by name."""

import math
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.bound import Bound
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import Table
from hedgerow.data.entry import binary, declare, number
from hedgerow.stats.private import sufficient_moments
from hedgerow.stats.private.second_moments import MomentParts, unit_moments
from hedgerow.stats.private.solving import TAYLOR, parts_of
from hedgerow.testing.neighbours import hearing

SIZES = (1, 2, 3, 5, 8)
LINEAR, LOGISTIC = TAYLOR[False], TAYLOR[True]
WHOLE_POLYNOMIAL = MomentParts(1.0, 2.0, 1.0, by_coefficient=True)


def corners(d: int, labels: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length one with every sign, beside each end of the target."""
    signs = np.array(list(product((-1.0, 1.0), repeat=d + 1)))
    return signs[:, :d] / math.sqrt(d), (signs[:, d] + 1) / 2 if labels else signs[:, d]


def contributions(X: np.ndarray, y: np.ndarray, parts: MomentParts, labels: bool, bound: Bound | None = None) -> np.ndarray:
    """What each record adds by itself: as the program asks it, stacked parties of one record."""
    party = Party("p", {"X": X[:, None], "y": y[:, None]}, np.ones((len(X), 1)))
    return unit_moments(None, party, None, parts=parts, labels=labels, bounds=None if bound is None else in_steps(bound))


def largest(parts: MomentParts, d: int, labels: bool, norm: int) -> float:
    """Length of the longest contribution of a corner."""
    return float(np.linalg.norm(contributions(*corners(d, labels), parts, labels), ord=norm, axis=1).max())


@pytest.mark.parametrize(
    ("parts", "labels", "expected"),
    [
        (WHOLE_POLYNOMIAL, False, [(1 + math.sqrt(d)) ** 2 for d in SIZES]),
        (WHOLE_POLYNOMIAL, False, [4, 5.828, 7.464, 10.472, 14.657]),
        (LINEAR, False, [d + 2 * math.sqrt(d) for d in SIZES]),
        (LOGISTIC, True, [0.625, 0.957, 1.241, 1.743, 2.414]),
    ],
)
def test_l1_constants_of_the_functional_mechanism_are_reached_at_corners(parts, labels, expected):
    for d, value in zip(SIZES, expected, strict=True):
        assert parts.bound(1, d).radius == pytest.approx(value, abs=5e-4)
        assert largest(parts, d, labels, 1) == pytest.approx(parts.bound(1, d).radius, rel=1e-12)


def test_l2_constants_of_coefficients_are_reached_and_those_of_the_note():
    for parts, labels in ((LINEAR, False), (LOGISTIC, True), (WHOLE_POLYNOMIAL, False)):
        for d in SIZES:
            assert largest(parts, d, labels, 2) == pytest.approx(parts.bound(2, d).radius, rel=1e-12)
    assert LOGISTIC.bound(2, 8).radius == pytest.approx(0.5285, abs=5e-5)
    assert LOGISTIC.bound(2, 10**9).radius == pytest.approx(0.530, abs=5e-4)
    assert WHOLE_POLYNOMIAL.bound(2, 10**9).radius == pytest.approx(2.646, abs=5e-4)


@pytest.mark.parametrize("method", ["ssp", "adassp", "dpme"])
def test_isometric_parts_share_a_ball_of_radius_one_that_every_row_of_length_one_reaches(method):
    parts = parts_of(method, labels=False, pure=False)
    assert parts.bound(2, 5).radius == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    lengths = np.linalg.norm(contributions(X, rng.choice([-1.0, 1.0], 50), parts, False), axis=1)
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-12)
    inside = np.linalg.norm(contributions(0.7 * X, rng.uniform(-1, 1, 50), parts, False), axis=1)
    assert (inside < 1).all()


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("parts", [LINEAR, LOGISTIC, WHOLE_POLYNOMIAL])
def test_no_row_within_its_blocks_exceeds_a_bound(parts, norm):
    rng = np.random.default_rng(norm)
    for blocks, d in ((3, 3), (3, 9), (1, 4)):  # in each block one column differs from zero
        X = np.zeros((2000, d))
        for block in range(blocks):
            at = block * (d // blocks) + rng.integers(d // blocks, size=2000)
            X[np.arange(2000), at] = rng.uniform(-1, 1, 2000)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
        y = rng.choice([0.0, 1.0], 2000)
        found = np.linalg.norm(contributions(X, y, parts, True), ord=norm, axis=1)
        assert found.max() <= parts.bound(norm, blocks).radius * (1 + 1e-12)
        assert found.max() > 0.95 * parts.bound(norm, blocks).radius


# ---- behind noise ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("norm", "by_coefficient"), [(1, True), (2, True), (2, False)])
def test_behind_noise_no_record_leaves_the_ball_whatever_its_row(norm, by_coefficient):
    parts, d = MomentParts(0.6, 0.7, 0.3, by_coefficient=by_coefficient), 4
    bound = in_steps(parts.bound(norm, d))
    rng = np.random.default_rng(1)
    X = np.concatenate(
        [corners(d, False)[0][:6], 40 * rng.normal(size=(6, d)), np.full((2, d), np.nan), np.full((1, d), 1e200)]
    )
    y = rng.choice([-1.0, 1.0], len(X)) * np.where(np.arange(len(X)) % 5 == 4, np.inf, 1.0)
    found = contributions(X, y, parts, False, bound)
    assert bound.step is not None
    steps = found / bound.step
    assert (steps == np.rint(steps)).all()
    assert (np.linalg.norm(steps, ord=norm, axis=1) <= bound.radius / bound.step).all()
    assert (found[-3:] == 0).all()
    plain = contributions(X[:4], y[:4], parts, False)
    np.testing.assert_allclose(found[:4], plain, atol=2e-5)


def test_one_record_more_changes_no_bit_of_the_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y, parts = rng.uniform(-1, 1, 300), parts_of("ssp", labels=False, pure=False)
    bound = in_steps(parts.bound(2, 5))
    whole = unit_moments(None, Party("p", {"X": X, "y": y}, np.ones(300)), None, parts=parts, labels=False, bounds=bound)
    rest = unit_moments(None, Party("p", {"X": X[1:], "y": y[1:]}, np.ones(299)), None, parts=parts, labels=False, bounds=bound)
    one = contributions(X[:1], y[:1], parts, False, bound)[0]
    assert (whole == rest + one).all()


def test_parts_are_read_back_as_they_were_added_up():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 3)), rng.uniform(-1, 1, 20)
    for parts in (LINEAR, WHOLE_POLYNOMIAL, MomentParts(0.6, 0.7, 0.3), MomentParts(0.0, 1.0)):
        total = unit_moments(None, Party("p", {"X": X, "y": y}, np.ones(20)), None, parts=parts, labels=False)
        assert total.shape == (parts.size(3),)
        found = parts.read(total, 3)
        np.testing.assert_allclose(found.gram, X.T @ X if parts.gram else 0, atol=1e-12)
        np.testing.assert_allclose(found.score, X.T @ y, atol=1e-12)
        assert found.square == pytest.approx(y @ y if parts.square else 0)


# ---- twins that are wrong, by name ----------------------------------------------------------------------------------
def test_twin_linf_declared_and_l2_data():
    """Zhang's bound is for |x_j| <= 1; rows of length one need d + 2 sqrt(d), and rows of the cube leave that ball."""
    d = 5
    X, y = corners(d, False)
    cube = np.abs(contributions(X * math.sqrt(d), y, LINEAR, False)).sum(1).max()
    assert cube == pytest.approx(d * d + 2 * d)
    assert cube > 2 * LINEAR.bound(1, d).radius
    held = contributions(X * math.sqrt(d), y, LINEAR, False, LINEAR.bound(1, d))  # behind noise it is held all the same
    assert np.abs(held).sum(1).max() <= LINEAR.bound(1, d).radius


def test_twin_unnormalised_rows():
    """Rows that nobody divided by their length exceed the ball of radius one by the square of their length."""
    parts = parts_of("ssp", labels=True, pure=False)
    x = np.ones((1, 14))
    assert np.linalg.norm(contributions(x, np.ones(1), parts, True)) > 9 * parts.bound(2, 14).radius


def test_twin_unsymmetrised_noise():
    """Noise of a coefficient 2 x_j x_k is halved on the entry; the twin that leaves it whole is twice off."""
    d, rng = 40, np.random.default_rng(4)
    noise = rng.normal(size=LINEAR.size(d))
    gram = LINEAR.read(noise, d).gram
    off, diagonal = gram[~np.eye(d, dtype=bool)], np.diag(gram)
    assert off.std() == pytest.approx(0.5, rel=0.1)
    assert diagonal.std() == pytest.approx(1.0, rel=0.3)
    isometric = MomentParts(1.0, 1.0)
    averaged = isometric.read(rng.normal(size=isometric.size(d)), d).gram
    assert (averaged == averaged.T).all()
    assert averaged[~np.eye(d, dtype=bool)].std() == pytest.approx(math.sqrt(0.5), rel=0.1)


def test_twin_replace_one_constants():
    """Under add-remove, twice the constant is a waste; under replace-one, the constant itself is a lie for labels."""
    for d in SIZES:
        found = contributions(*corners(d, True), LOGISTIC, True)
        replaced = max(np.abs(one - found).sum(1).max() for one in found)
        assert LOGISTIC.bound(1, d).radius < replaced <= 2 * LOGISTIC.bound(1, d).radius
        removed = np.abs(found).sum(1).max()
        assert removed <= LOGISTIC.bound(1, d).radius * (1 + 1e-12)
    assert LOGISTIC.bound(1, 2).radius == pytest.approx(0.957, abs=5e-4)
    pair = contributions(*corners(2, True), LOGISTIC, True)
    assert max(np.abs(one - pair).sum(1).max() for one in pair) == pytest.approx(1.414, abs=5e-4)


# ---- the sum that a program asks ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("target", "constants"), [("t", [3, 4.828, 6.464, 9.472, 13.657]), ("ill", [0.625, 0.957, 1.241, 1.743, 2.414])]
)
@pytest.mark.parametrize("length", ["fixed", "unit"])
def test_what_the_program_asks_reaches_its_bound_at_the_ends_of_declared_ranges(target, constants, length):
    for d, constant in zip(SIZES, constants, strict=True):
        names = [f"c{i}" for i in range(d)]
        schema = declare(*(number(name, -2, 7) for name in names), number("t", 0, 50, role="target"), binary("ill"))
        ends = np.array(list(product((-2.0, 7.0), repeat=d)))
        ends = np.repeat(ends, 2, axis=0)
        columns = {name: ends[:, i] for i, name in enumerate(names)}
        columns |= {"t": np.tile([0.0, 50.0], len(ends) // 2), "ill": np.tile([0.0, 1.0], len(ends) // 2)}
        fed = hr.simulate(Table(columns, schema), hr.data.iid(parties=1), seed=0)
        formula = f"{target} ~ {' + '.join(names)} - 1"
        with hearing() as heard:
            for _ in sufficient_moments(fed, formula=formula, method="functional", epsilon=1.0, rows=length):
                pass
        [asked] = heard
        made = asked.preparations[-1].function(columns, **dict(asked.preparations[-1].settings))
        party = Party("p", {"X": made["X"][:, None], "y": made["y"][:, None]}, np.ones((len(ends), 1)))
        found = np.abs(asked.local(asked.broadcast, party, None)).sum(1)
        assert asked.bound.norm == 1
        assert asked.bound.radius == pytest.approx(constant, abs=5e-4)
        assert found.max() == pytest.approx(asked.bound.radius, rel=1e-12)
