"""Rows as whole numbers of a field: within their bound to the last step; refused where nothing can be proved."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import hedgerow as hr
from hedgerow.compression import RandomK
from hedgerow.core.arrays import Layout
from hedgerow.core.bound import Bound, l1, l2, linf
from hedgerow.core.release import Release
from hedgerow.crypto.field_encoding import LONGEST_L2, field_encoding_for, within
from hedgerow.crypto.proved_rows import FIELD, RowClaim, proved_rows
from hedgerow.errors import RangeExceeded, UnboundedSum, UnlawfulChannel
from hedgerow.privacy import Gaussian, Geometric, Laplace, Skellam

TEN = Layout((("", (10,)),))


def encoding(bound=None, layout=TEN, parties=5, mechanism=None, compression=None, clip=True, **more):
    release = Release(bound if clip else None, bound, mechanism, compression)
    return field_encoding_for(release, layout, parties=parties, aggregators=2, **more)


def length(steps, norm):
    whole = [abs(int(v)) for v in steps]
    return {"l1": sum(whole), "l2": sum(v * v for v in whole), "linf": max(whole, default=0)}[norm]


# ---- within the bound, to the last step
@settings(max_examples=150, deadline=None)
@given(
    seed=some.integers(0, 2**32 - 1),
    norm=some.sampled_from([1, 2, math.inf]),
    radius=some.sampled_from([1.0, 0.3, 50.0, 1e-6, 12345.678]),
    scale=some.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_clipped_row_is_within_what_is_proved_of_it_and_hardly_moved(seed, norm, radius, scale):
    rng = np.random.default_rng(seed)
    bound, d = Bound(norm, radius), int(rng.integers(1, 200))
    layout = Layout((("", (d,)),))
    row = rng.standard_normal(d).astype(rng.choice([np.float32, np.float64]))
    [row] = bound.clip((row * scale * radius * 3)[None])
    made = encoding(bound, layout)
    [part] = made.parts
    steps = made.encode(row)
    assert length(steps, part.claim.norm) <= part.claim.most
    assert np.abs(steps * part.step - row).max(initial=0) <= (2 + 1e-3 * np.abs(row).max(initial=0) / part.step) * part.step


@settings(max_examples=80, deadline=None)
@given(
    seed=some.integers(0, 2**32 - 1),
    law=some.sampled_from([Gaussian, Skellam, Laplace]),
    multiplier=some.sampled_from([0.01, 0.5, 4.0]),
    norm=some.sampled_from([1, 2, math.inf]),
)
def test_what_a_mechanism_rounds_is_within_what_is_proved_and_is_not_moved_at_all(seed, law, multiplier, norm):
    """Neighbours differ as they did without proofs: the encoding changes no step of a row that the mechanism made."""
    rng = np.random.default_rng(seed)
    bound, d = Bound(norm, 0.7), int(rng.integers(1, 100))
    layout = Layout((("", (d,)),))
    mechanism = law(multiplier)
    rows = rng.standard_normal((1, d)).astype(rng.choice([np.float32, np.float64])) * 10.0 ** rng.integers(-3, 4)
    made = encoding(bound, layout, mechanism=mechanism)
    steps = mechanism.at_party(rows, bound, layout, lambda k: bytes)[0]
    assert (made.encode(steps) == steps).all()


@given(
    some.lists(some.integers(-(2**30), 2**30), min_size=1, max_size=6),
    some.integers(1, 2**62),
    some.sampled_from(["l1", "l2", "linf"]),
)
def test_lengths_are_those_of_whole_numbers(row, most, norm):
    claim = RowClaim(norm, len(row), most)
    assert within(np.array(row, np.int64), claim) == (length(row, norm) <= most)


def test_a_row_of_records_beyond_what_is_proved_stays_at_the_end_number_by_number():
    """Where noise pays for a record: one more moves each number by no more than it did."""
    bound = Bound(2, 1.0, "record")
    made = encoding(bound, clip=False, mechanism=Gaussian(1.0), records=3)
    [part] = made.parts
    assert (part.claim.norm, part.radius) == ("linf", 3.0)
    [step] = {step for _, _, step in Gaussian(1.0).grid(bound, TEN)}
    rows = [np.full(10, int(n / step)) for n in (1, 3, 4, -9)]
    ends = [made.encode(row) for row in rows]
    assert [end[0] * step for end in ends] == [1, 3, 3, -3]


def test_a_row_that_is_declared_and_longer_does_not_leave():
    declared = encoding(l2(1.0), clip=False)
    for row in (np.full(10, 1.0), np.full(10, np.nan), np.full(10, np.inf)):
        with pytest.raises(RangeExceeded, match="HR-243"):
            declared.encode(row)
    with pytest.raises(RangeExceeded):
        declared.encode(np.zeros(9))
    with pytest.raises(RangeExceeded):
        encoding(linf(1.0)).encode(np.full(10, 1.01))


def test_what_a_mechanism_makes_of_nothing_finite_leaves_as_zeros():
    made = encoding(l2(1.0), mechanism=Gaussian(1.0))
    assert not made.encode(np.full(10, np.nan)).any()


@pytest.mark.parametrize("radius", [1.0, 50.0, 1000.0, 2.0**20])
def test_counts_stay_whole_numbers(radius):
    counts = np.array([0, 1, 7, 3, 0, 0, 0, 0, 0, 20.0])
    for bound in (l1(radius), linf(radius)):
        made = encoding(bound)
        total = FIELD.of(made.encode(counts * (radius >= 50)))
        assert (made.decode(total) == counts * (radius >= 50)).all()


def test_a_total_is_decoded_around_zero():
    made = encoding(l2(1.0))
    rows = np.array([np.linspace(-0.2, 0.2, 10), np.full(10, -0.3)])
    total = FIELD.sum(np.stack([FIELD.of(made.encode(row)) for row in rows]), axis=0)
    np.testing.assert_allclose(made.decode(total), rows.sum(0), atol=2e-6)


def test_several_bounds_have_a_proof_each():
    layout = Layout((("a", (4,)), ("b", (2, 3))))
    made = encoding({"a": l2(1.0), "b": l1(5)}, layout)
    assert [(part.claim.norm, part.claim.size) for part in made.parts] == [("l2", 4), ("l1", 6)]
    assert made.said == "l2 of at most 1; l1 of at most 5"
    assert len(made.proved.proofs) == 2


# ---- what is the same at both ends
def test_the_words_of_a_proof_have_every_parameter():
    base = encoding(l2(1.0))
    others = [
        encoding(l2(1.0 + 2**-20)),
        encoding(l1(1.0)),
        encoding(linf(1.0)),
        encoding(l2(1.0), Layout((("", (11,)),))),
        field_encoding_for(Release(l2(1.0), l2(1.0)), TEN, parties=5, aggregators=3),
    ]
    words = {one.proof for one in (base, *others)}
    assert len(words) == len(others) + 1
    assert len({one.digest for one in (base, *others, encoding(l2(1.0), parties=6), encoding(l2(2.0)))}) == len(others) + 3
    assert base.proof == proved_rows(base.proved.claims, 2).words


def test_a_forged_row_has_the_same_words_and_no_bound():
    made = encoding(l2(1.0))
    free, row = made.forged(np.full(10, 1e6))
    assert (free.proof, free.digest) == (made.proof, made.digest)
    assert np.linalg.norm(free.encode(row) * made.parts[0].step) > 1e6


# ---- refusals
def test_a_bound_of_too_many_steps_is_refused_before_anybody_is_asked():
    assert encoding(l2(1.0), mechanism=Gaussian(2.0**-11)).parts[0].claim.most <= LONGEST_L2**2
    with pytest.raises(RangeExceeded, match=r"HR-243[\s\S]*No party was asked"):
        encoding(l2(1.0), mechanism=Gaussian(2.0**-13))
    with pytest.raises(RangeExceeded, match=r"records=1e\+06[\s\S]*No party was asked"):
        encoding(l2(1.0, "record"), clip=False, records=1e6)
    assert encoding(l2(1.0, "record"), clip=False, records=1000).said == "l2 of at most 1000"
    for bound in (linf(1.0, "record"), l1(1.0, "record")):
        with pytest.raises(RangeExceeded, match="No party was asked"):
            encoding(bound, clip=False, records=2.0**45)


def test_totals_and_noise_of_aggregators_have_room():
    wide = linf(1.0, "record")
    with pytest.raises(RangeExceeded, match="no room"):
        encoding(wide, clip=False, records=2.0**40, parties=10)
    noisy = Gaussian(1.0).added_by(2)
    assert encoding(l2(1.0), mechanism=noisy).spare == 0
    at = hr.Gaussian(1.0, at="aggregators").added_by(2)
    assert encoding(l2(1.0), mechanism=at).spare >= 8 * 2 * 4096


@pytest.mark.parametrize("at", ["shares", "party"])
def test_noise_that_parties_add_is_refused(at):
    with pytest.raises(UnlawfulChannel, match=r"HR-211.*and so nothing"):
        encoding(l2(1.0), mechanism=Gaussian(1.0, at, 5 if at == "shares" else 0))


def test_without_a_bound_or_range_nothing_can_be_proved():
    with pytest.raises(UnboundedSum, match="HR-210"):
        encoding(None)
    assert encoding(None, largest=100.0).said == "linf of at most 100"


def test_a_code_that_may_be_longer_than_the_clip_is_refused_and_one_that_is_clipped_is_not():
    layout = Layout((("", (200,)),))
    with pytest.raises(UnlawfulChannel, match="nothing is proved"):
        encoding(l2(1.0), layout, compression=RandomK(0.5))
    assert encoding(l2(1.0), layout, compression=RandomK(0.5, error_feedback=True))
    assert encoding(l2(1.0), layout, compression=RandomK(0.5), mechanism=Gaussian(1.0))


def test_counts_with_noise_on_whole_numbers():
    made = encoding(l1(50), mechanism=Geometric(1.0))
    assert (made.parts[0].claim.most, made.parts[0].step) == (50, 1.0)


def test_sums_that_could_wrap_around_the_field_are_refused():
    with pytest.raises(RangeExceeded, match="wrap around"):
        proved_rows((RowClaim("l1", 1 << 20, 2**43),), 2)


@pytest.mark.parametrize("bound", [l2(1.0), l1(1.0), linf(1.0)])
def test_a_bound_of_less_than_one_step_is_refused_for_what_it_is(bound):
    """Of so much noise the grid is coarser than the bound: more noise, or a narrower range, would not help."""
    release = Release(bound, bound, Gaussian(1e5))
    with pytest.raises(RangeExceeded, match="less than one step of") as refusal:
        field_encoding_for(release, Layout((("a", (100,)),)), parties=10, aggregators=2)
    assert "less noise" in refusal.value.remedy


@pytest.mark.parametrize("bound", [l2(1.0, "record"), l1(1.0, "record"), linf(1.0, "record")])
def test_behind_noise_a_bound_per_record_is_proved_number_by_number(bound):
    """A party of fifty records may say fifty in every number; without noise its row as a whole has the bound."""
    layout = Layout((("cells", (100,)),))
    how = {"parties": 10, "aggregators": 2, "records": 50}
    assert field_encoding_for(Release(None, bound, Gaussian(1.0)), layout, **how).said == "linf of at most 50"
    norm = str(bound).partition("(")[0]
    assert field_encoding_for(Release(None, bound), layout, **how).said == f"{norm} of at most 50"
