"""Mechanisms on whole numbers: counts in, counts out, at the cost of exactly that noise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from attack import FALSE_ALARM, chi_square_p_value, entropy
from hedgerow import l1, l2, linf
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound
from hedgerow.core.events import Event
from hedgerow.core.question import local
from hedgerow.errors import BudgetInvalid
from hedgerow.privacy.choice import TruncatedGeometric
from hedgerow.privacy.mechanisms import DiscreteGaussian, Geometric, Laplace
from helpers import federation

RECORD = linf(1.0, unit="record")


def vector(size):
    return Layout((("", (size,)),))


@local(additive=True)
def counts(broadcast, party, rng):
    """Records with x above zero, for each column."""
    return (party["x"] > 0).sum(0).astype(float)


@local(additive=True)
def thirds(broadcast, party, rng):
    """Of each record what is no whole number."""
    return party.w.sum() * broadcast


@local(additive=True, holds=24)
def fine(broadcast, party, rng, *, bounds=None):
    """What needs fine steps."""
    return party.w.sum()


def halves(broadcast, party, rng):
    """No sum over records, and no whole number."""
    return party.w.sum() / 2 + 0.25


@pytest.mark.parametrize("mechanism", [Geometric(2.0), DiscreteGaussian(4.0)], ids=str)
def test_counts_come_out_as_whole_numbers(mechanism):
    fed = federation().protect(mechanism=mechanism)
    released = fed.sum(counts, bound=linf(1.0, unit="record"))
    exact = federation().sum(counts)
    assert (released == np.rint(released)).all()
    assert (released != exact).any()


def test_geometric_noise_has_the_declared_law():
    r = math.exp(-1 / 2)
    drawn = Geometric(2.0)._draw(2.0, 50_000, entropy())
    assert chi_square_p_value(drawn, {k: (1 - r) / (1 + r) * r ** abs(k) for k in range(-60, 61)}) > FALSE_ALARM


def test_noise_of_a_count_is_the_multiplier_and_not_a_grid_of_it():
    [block] = Geometric(2.0)._plan(RECORD, vector(1))
    assert (block.step, block.scale) == (1.0, 2.0)
    [coarse] = Laplace(2.0)._plan(RECORD, vector(1))
    assert coarse.step < 1e-3


def test_geometric_states_its_pure_epsilon():
    assert Geometric(2.0).event(RECORD) == Event("pure", epsilon=0.5)
    assert Geometric(2.0, at="party").event(linf(1.0)) == Event("pure", epsilon=1.0)


def test_discrete_gaussian_states_a_multiplier_a_little_lower():
    event = DiscreteGaussian(4.0).event(RECORD)
    assert event.kind == "gaussian"
    assert event.noise_multiplier == pytest.approx(4.0 / (1 + 1 / 128), rel=1e-12)


def test_discrete_gaussian_of_less_than_three_steps_is_refused():
    with pytest.raises(BudgetInvalid, match="Geometric"):
        DiscreteGaussian(2.9).event(RECORD)
    DiscreteGaussian(2.9).event(linf(2.0, unit="record"))


@settings(max_examples=40)
@given(
    rest=hnp.arrays(np.int64, 5, elements=st.integers(-1000, 1000)),
    record=hnp.arrays(np.int64, 5, elements=st.integers(-2, 2)),
    norm=st.sampled_from([1, 2, math.inf]),
    law=st.sampled_from([Geometric(2.0), DiscreteGaussian(3.0)]),
)
def test_a_record_moves_counts_by_at_most_the_noise_scale_over_the_multiplier(rest, record, norm, law):
    size = np.linalg.norm(record.astype(float), ord=norm)
    bound = Bound(norm, max(size, 1.0), "record")
    [block] = law._plan(bound, vector(5))
    moved = block.round((rest + record)[None].astype(float)) - block.round(rest[None].astype(float))
    order = 1 if law.law == "geometric" else 2
    assert np.linalg.norm(moved[0], ord=order) <= block.scale / law.noise_multiplier * (1 + 1e-12)


@settings(max_examples=40)
@given(row=hnp.arrays(float, 4, elements=st.floats(-9, 9)), bound=st.sampled_from([l1(3.0), l2(3.0), linf(3.0)]))
def test_a_party_leaves_whole_numbers_inside_its_bound(row, bound):
    steps = Geometric(1.0).at_party(row[None], bound, vector(4), lambda i: entropy())
    assert steps.dtype.kind == "i"
    assert bound.size(steps.astype(float))[0, 0] <= 3.0


@pytest.mark.parametrize("mechanism", [Geometric(1.0), DiscreteGaussian(4.0), TruncatedGeometric(1.0, 0, 40)], ids=str)
def test_each_record_is_rounded_to_a_whole_number_before_it_is_added(mechanism):
    """Two thirds are one, and one third is nothing: no total has a rest, which a record could take away."""
    n = round(float(federation().sum(thirds, np.float64(1.0))))
    here, there, none = (
        federation().protect(mechanism=mechanism).sum(thirds, np.float64(one), bound=RECORD) for one in (2 / 3, 1.0, 1 / 3)
    )
    assert here == there
    assert isinstance(mechanism, TruncatedGeometric) or here - none == n


@pytest.mark.parametrize(
    ("ask", "bound", "why"),
    [
        (halves, RECORD, "no sum over records"),
        (fine, RECORD, "adds what is no whole number"),
        (counts, l2(0.9, unit="record"), "lets a record add 0.9 at most"),
    ],
)
@pytest.mark.parametrize("mechanism", [Geometric(1.0), DiscreteGaussian(4.0), TruncatedGeometric(1.0, 0, 40)], ids=str)
def test_what_records_cannot_add_in_whole_numbers_is_refused_before_anybody_is_asked(mechanism, ask, bound, why):
    """A total's rounding moves further than the bound: from 0.49 to 0.51 is a record of 0.02, and a step of one."""
    fed = federation().protect(mechanism=mechanism)
    with pytest.raises(BudgetInvalid, match=why):
        fed.sum(ask, bound=bound)
    assert not fed.ledger.entries


# ---- truncated ------------------------------------------------------------------------------------------------------
def test_truncated_geometric_stays_in_range_and_has_its_law():
    r, n, count = math.exp(-1 / 2), 10, 7
    mechanism = TruncatedGeometric(2.0, 0, n)
    noisy = np.full(50_000, count) + Geometric(2.0)._draw(2.0, 50_000, entropy())
    law = {k: (1 - r) / (1 + r) * r ** abs(k - count) for k in range(1, n)}
    law |= {0: r**count / (1 + r), n: r ** (n - count) / (1 + r)}
    assert sum(law.values()) == pytest.approx(1)
    assert chi_square_p_value(np.clip(noisy, 0, n), law) > FALSE_ALARM
    found = {mechanism.at_server(np.array([count]), RECORD, vector(1), entropy(seed))[0] for seed in range(200)}
    assert found <= set(range(n + 1))
    assert {0.0, 10.0} & found


def test_truncated_geometric_is_charged_like_the_geometric():
    assert TruncatedGeometric(2.0, 0, 10).event(RECORD) == Geometric(2.0).event(RECORD)
    fed = federation().protect(mechanism=TruncatedGeometric(2.0, 0, 40))
    released = fed.sum(counts, bound=RECORD)
    assert ((released >= 0) & (released <= 40) & (released == np.rint(released))).all()
    assert fed.ledger.entries[-1].mechanism == "TruncatedGeometric(2) in [0, 40] at the server"


@pytest.mark.parametrize(("low", "high"), [(3, 3), (5, 1), (0.5, 2), (0, math.inf)])
def test_a_range_of_counts_has_two_whole_ends(low, high):
    with pytest.raises(BudgetInvalid, match="HR-214"):
        TruncatedGeometric(1.0, low, high)


def test_small_noise_on_counts_keeps_most_of_them():
    """At epsilon 1 a count is exact with probability tanh(1/2): what integers buy over a fine grid."""
    hits = int((Geometric(1.0)._draw(1.0, 50_000, entropy()) == 0).sum())
    low, high = stats.binom.interval(1 - FALSE_ALARM, 50_000, math.tanh(0.5))
    assert low <= hits <= high
