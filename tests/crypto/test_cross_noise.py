"""Fixed point from public facts, what a record adds, and noise in shares: by one object, and caught where it is wrong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from cross_driver import FALSE_ALARM, World, entropy_of
from scipy.stats import chi2, kstest, norm
from test_cross_products import KINDS, world

from hedgerow.core.bound import Bound, l2
from hedgerow.crypto.cross import Bits, ColumnReach, Products
from hedgerow.crypto.cross import bits as in_bits
from hedgerow.crypto.cross.bits import choose, choose_private, grid, record_bound
from hedgerow.crypto.cross.noise import opened, share_of_noise
from hedgerow.crypto.cross.ring import ROOM, signed
from hedgerow.errors import BudgetInvalid, RangeExceeded
from hedgerow.privacy.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace, Skellam
from hedgerow.privacy.simulated_gaussian import SimulatedGaussian


def products(n=500, widths=(3, 4), largest=1.0, **more):
    reach = tuple(ColumnReach((largest,) * d) for d in widths)
    return Products(n, widths, more.pop("right", 0), reach, **more)


# ---- V5: bits of two and three factors ------------------------------------------------------------
CASES = {
    "gram": {},
    "right": {"right": 2, "right_reach": (ColumnReach((1.0, 5.0), 25.0),), "hub_reach": ColumnReach((1.0, 1.0))},
    "weighted": {"hub_reach": ColumnReach((0.25,)), "weighted": True},
}


@pytest.mark.parametrize("n", [10, 300, 68_754, 10**7])
@pytest.mark.parametrize("kind", CASES)
def test_v5_no_total_leaves_the_ring_whatever_columns_hold(kind, n):
    """The largest total that the reaches allow, in whole numbers after rounding up, is below 2^63."""
    asked = products(n, **CASES[kind])
    bits = choose(asked)
    x, w = math.ceil(2.0**bits.left), math.ceil(0.25 * 2.0**bits.weight) if kind == "weighted" else 1
    r = math.ceil(6.0 * 2.0**bits.right) if kind == "right" else x
    assert n * x * r * w < 2**ROOM
    assert min(in_bits._used(bits, asked)) >= in_bits.LEAST_FRACTION
    finest = bits.total == 2 * in_bits.MOST_FRACTION or n * x * r * w * 2**3 >= 2**ROOM
    assert finest or bits.left == in_bits.MOST_FRACTION or bits.weight == in_bits.MOST_FRACTION


def test_v5_at_its_limit_a_total_is_exact_and_one_bit_more_wraps():
    w = World({"a": np.ones((1000, 1)), "b": np.ones((1000, 1))})
    bits = choose(w.products)
    assert w.result().tolist() == [[1000.0] * 2] * 2
    w.bits = Bits(bits.left + 1)
    assert w.result().tolist() != [[1000.0] * 2] * 2


@pytest.mark.parametrize(
    "asked",
    [
        Products(10**6, (1,), 0, (ColumnReach(square=1e9),)),
        Products(10**6, (1,), 1, (ColumnReach(),), (ColumnReach(square=1e30),)),
        Products(10**6, (1,), 0, (ColumnReach(square=1e6),), (), ColumnReach((1e3,)), weighted=True),
    ],
)
def test_v5_reaches_without_room_are_refused_before_anybody_is_asked(asked):
    with pytest.raises(RangeExceeded, match="fraction bits in a ring of 64") as refused:
        choose(asked)
    assert refused.value.asked is False


def test_reaches_are_public_facts_that_make_sense():
    for wrong in (math.nan, -1.0, math.inf):
        with pytest.raises(RangeExceeded, match="a reach of"):
            ColumnReach((wrong,))
    with pytest.raises(RangeExceeded, match="a reach of 1 columns for 2"):
        ColumnReach((1.0,)).squares(2)
    with pytest.raises(RangeExceeded, match="without a largest value"):
        choose(Products(5, (1,), 0, (ColumnReach(),), (), ColumnReach(), weighted=True))
    ColumnReach(square=1.0).refuse(np.ones((5, 2)), "the town")
    with pytest.raises(RangeExceeded, match="the town: column 1 has a mean square of 4, over the declared 1"):
        ColumnReach(square=1.0).refuse(np.array([[1.0, 2.0]]), "the town")


def test_columns_are_cut_to_their_reach_and_what_is_not_finite_is_zero():
    cut = ColumnReach((1.0, 2.0)).cut(np.array([[3.0, -3.0], [np.nan, 1.0], [np.inf, 0.5]]))
    assert cut.tolist() == [[1.0, -2.0], [0.0, 1.0], [0.0, 0.5]]
    assert np.linalg.norm(ColumnReach().cut(np.array([[3.0, 4.0]]), 1.0)) <= 1.0


# ---- neighbours: what one record adds ------------------------------------------------------------
def distance(w, person):
    """By how many steps the total moves in l2 when one person's values are zeros, squared; and the bound of it."""
    terms, total = w.ask()
    before = signed(total)
    gone = World({k: v.copy() for k, v in w.left.items()}, {k: v.copy() for k, v in w.right.items()}, w.hub, w.weights)
    gone.bits = terms.bits
    for columns in (*gone.left.values(), *gone.right.values()):
        columns[person] = 0.0
    moved = [int(a) - int(b) for a, b in zip(before, signed(gone.ask()[1]), strict=True)]
    return sum(one * one for one in moved), record_bound(terms.asked, terms.bits)


def squared(bound):
    return (Fraction(bound.radius) / Fraction(bound.step)) ** 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_persons_values_move_the_total_by_no_more_than_the_bound(kind, seed):
    w = world((2, 1, 2), kind, n=12, seed=seed)
    for person in (0, 5, 11):
        moved, bound = distance(w, person)
        assert moved <= squared(bound)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_reached_by_a_person_at_all_ends(kind):
    w = world((2, 1, 2), kind, n=12)
    for columns in (*w.left.values(), *w.right.values()):
        columns[3] = np.abs(columns).max(0)
    if w.hub is not None:
        w.hub[3] = w.hub.max(0)
    if w.weights is not None:
        w.weights[3] = w.weights.max()
    moved, bound = distance(w, 3)
    assert moved <= squared(bound)
    assert moved >= squared(bound) * (1 - 1e-6)


def test_a_twin_that_forgets_a_factor_is_caught_by_a_neighbour():
    w = world((2, 1, 2), "gram", n=12)
    for columns in w.left.values():
        columns[3] = np.abs(columns).max(0)
    moved, bound = distance(w, 3)
    M = [m for reach in w.products.left_reach for m in reach.largest]
    forgets = l2(max(M) ** 2, unit="record", step=bound.step)  # the largest number of the result, not its length
    assert moved > squared(forgets)


def test_lengths_of_rows_bound_what_largest_values_overstate():
    """One of many levels: a row of length one, where the largest values alone would allow the root of their number."""
    n, levels = 60, 16
    onehot = np.eye(levels)[np.random.default_rng(0).integers(0, levels, n)]
    asked = Products(n, (levels, 1), 0, (ColumnReach((1.0,) * levels), ColumnReach((1.0,))), left_length=1.0)
    bits = Bits(20)
    bound = record_bound(asked, bits)
    assert bound.radius == pytest.approx(math.sqrt(3), rel=1e-4)  # x1^2, x1 x2, x2^2: each party's part has length one
    w = World({"a": onehot, "b": np.ones((n, 1))}, bits=bits)
    moved, _ = distance(w, 0)
    assert moved <= squared(bound)


@pytest.mark.parametrize("parties", [1, 2, 3])
@pytest.mark.parametrize("right", [False, True])
def test_lengths_hold_for_all_parties_together_though_each_cuts_its_own_part(parties, right):
    """Everybody's row is as long as its cut leaves it, whatever local functions return."""
    rng = np.random.default_rng(parties)
    none, hub = ColumnReach(), ColumnReach((9.0, 9.0))
    rows = none.cut(rng.normal(size=(40, parties, 2)).reshape(-1, 2) * 99, 1.0).reshape(40, parties, 2)
    rows[0] = (0.6, 0.8)  # all in one direction, so that parts on the right add up
    sides = {"right": 2, "right_reach": (none,) * parties, "hub_reach": hub, "right_length": 1.0} if right else {"right": 0}
    asked = Products(40, (2,) * parties, left_reach=(none,) * parties, left_length=1.0, **sides)
    bound = record_bound(asked, Bits(20, 20 if right else 0))
    x = rows.reshape(40, -1)
    r = rows.sum(1) + hub.cut(np.tile([6.0, 8.0], (40, 1)), 1.0) if right else x
    each = np.einsum("ni,nj->nij", x, r)
    moved = each.reshape(40, -1) if right else each[:, *np.triu_indices(2 * parties)]
    assert 0.8 * bound.radius <= np.linalg.norm(moved, axis=1).max() <= bound.radius


def test_a_length_is_no_longer_than_largest_values_allow():
    reach = {name: (ColumnReach((1.0,)), ColumnReach((0.5,))) for name in ("left_reach", "right_reach")}
    asked = Products(40, (1, 1), 1, **reach, left_length=1.0, right_length=1.0)
    assert record_bound(asked, Bits(20, 20)).radius == pytest.approx(math.sqrt(1.25) * 1.5, rel=1e-4)


def test_lengths_hold_after_rounding():
    rng = np.random.default_rng(2)
    for fraction in (8, 12):
        rows = rng.normal(size=(50, 6))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        asked = Products(50, (6,), 1, (ColumnReach(),), (ColumnReach(),), None, left_length=1.0, right_length=1.0)
        bound = record_bound(asked, Bits(fraction, fraction))
        x, r = np.rint(rows * 2.0**fraction), 2.0**fraction
        assert (((x * r) ** 2).sum(1) <= float(squared(bound))).all()


# ---- the grid of the ring is the grid of the noise ------------------------------------------------------------
@pytest.mark.parametrize(
    "mechanism",
    [Gaussian(2.0), Gaussian(0.01), Gaussian(500.0, at="shares", least=2), Laplace(3.0), SimulatedGaussian(1.0)],
    ids=str,
)
def test_noise_is_whole_steps_of_the_ring(mechanism):
    asked = products()
    bits, bound = choose_private(asked, mechanism)
    assert bound == record_bound(asked, bits)
    assert bound.unit == "record"
    assert bound.step == 2.0**-bits.total == grid(mechanism, bound, asked.layout)
    deviation = mechanism.noise_deviation(bound, asked.layout, 2)[""]
    assert deviation / bound.step < 2**46


@pytest.mark.parametrize(
    ("mechanism", "error", "says"),
    [
        (Skellam(2.0, at="shares", least=2), RangeExceeded, "its grid has steps of"),
        (Geometric(2.0), BudgetInvalid, "whole numbers"),
        (DiscreteGaussian(100.0), BudgetInvalid, "whole numbers"),
        (Gaussian(1.0, at="party"), BudgetInvalid, "only a share that is uniform"),
    ],
    ids=str,
)
def test_noise_on_another_grid_is_refused_before_anybody_is_asked(mechanism, error, says):
    with pytest.raises(error, match=says) as refused:
        choose_private(products(), mechanism)
    assert refused.value.asked is False


def test_noise_needs_declared_reaches():
    with pytest.raises(RangeExceeded, match="neither the largest values of columns nor the length"):
        choose_private(Products(100, (2, 1), 0, (ColumnReach(), ColumnReach())), Gaussian(1.0))


# ---- the law of what is released ------------------------------------------------------------
D = (40, 30)


def released(mechanism, seed="law", forgets=(), factor=1.0):
    """The noise of one release, in units of its declared standard deviation, shape (size,)."""
    rng = np.random.default_rng(0)
    w = World({"a": rng.uniform(-1, 1, (12, D[0])), "b": rng.uniform(-1, 1, (12, D[1]))}, seed=seed)
    bits, bound = choose_private(w.products, mechanism)
    w.bits, exact = bits, signed(World(w.left, bits=bits).ask()[1])
    layout = w.products.layout
    scaled = Bound(2, bound.radius * factor, "record", bound.step)
    if mechanism.at == "shares":
        for name in w.names:
            zeros = name in forgets
            draw = share_of_noise(mechanism, scaled, layout, entropy_of(f"{seed} noise {name}"))
            w.noise[name] = np.zeros(layout.size, np.int64) if zeros else draw()
    terms, total = w.ask()
    found = opened(terms, total, mechanism, scaled, entropy_of(f"{seed} noise hub"))
    assert (found == found.T).all()
    flat = found[np.triu_indices(sum(D))]
    return (flat - exact * bound.step) / mechanism.noise_deviation(bound, layout, 2)[""]


@pytest.mark.parametrize("mechanism", [Gaussian(1.5, at="shares", least=2), Gaussian(1.5)], ids=str)
def test_gaussian_noise_of_a_release_has_the_declared_law(mechanism):
    """2485 numbers, by Kolmogorov and Smirnov, with a false alarm in one of a billion."""
    assert kstest(released(mechanism), norm.cdf).pvalue > FALSE_ALARM


def variance_is_whole(noise):
    size = len(noise)
    return chi2.ppf(FALSE_ALARM, size) < (noise**2).sum() < chi2.isf(FALSE_ALARM, size)


def test_a_party_that_forgets_its_share_and_a_forgotten_bound_are_caught():
    mechanism = Gaussian(1.5, at="shares", least=2)
    assert variance_is_whole(released(mechanism))
    assert not variance_is_whole(released(mechanism, forgets=("b",)))
    assert not variance_is_whole(released(mechanism, factor=1 / 2))
    assert not variance_is_whole(released(Gaussian(1.5), factor=1 / 2))


def test_more_parties_than_the_mechanism_counts_on_add_more_noise():
    mechanism = Gaussian(1.5, at="shares", least=1)
    assert not variance_is_whole(released(mechanism) * math.sqrt(2))
    assert variance_is_whole(released(mechanism))  # in units of two parties' noise


def test_noise_of_too_few_parties_is_not_opened():
    with pytest.raises(BudgetInvalid, match="2 parties answered"):
        released(Gaussian(1.5, at="shares", least=3))


def test_the_hub_sees_the_noisy_total_alone_where_noise_is_in_shares():
    """The shares with noise add up to the release, to the last step; the exact total is nowhere."""
    rng = np.random.default_rng(0)
    w = World({"a": rng.uniform(-1, 1, (12, 3)), "b": rng.uniform(-1, 1, (12, 2))})
    w.noise = {"a": np.arange(15), "b": np.full(15, -7)}
    terms, total = w.ask()
    assert (signed(total) - w.exact(terms)).tolist() == list(range(-7, 8))
