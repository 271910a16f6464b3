"""Mode-specific normalisation and training by sampling: shapes, round trips, and what is drawn how often."""

import numpy as np
import pytest

from hedgerow.core.bound import l2
from hedgerow.core.party import Party
from hedgerow.core.whole import in_steps
from hedgerow.data import Column, Schema
from hedgerow.synth import Codes
from hedgerow.synth.gan.adversarial import Conditioner
from hedgerow.synth.gan.encoding import RowEncoding
from hedgerow.synth.gan.modes import equal_modes, level_counts_of, marginal_counts, mixture, modes_of

SCHEMA = Schema(
    (
        Column("age", "integer", low=18, high=90),
        Column("height", "number", low=1.0, high=2.5, optional=True),
        Column("sex", "category", levels=("f", "m"), optional=True),
        Column("ill", "binary"),
    )
)
ENCODING = RowEncoding(Codes.of(SCHEMA, bins=64), n_modes=4)


def records(n, rng):
    made = {"age": rng.integers(18, 91, n).astype(float), "height": rng.uniform(1.0, 2.5, n)}
    made["height"][rng.random(n) < 0.2] = np.nan
    return made | {"sex": rng.integers(-1, 2, n).astype(np.int16), "ill": rng.integers(0, 2, n).astype(float)}


def test_shapes_follow_from_the_schema():
    assert ENCODING.width == (1 + 4) + (1 + 4 + 1) + 3 + 2
    assert ENCODING.conditions == 3 + 2
    assert [block.mode for block in ENCODING.blocks] == [0, 1, -1, -1]


@pytest.mark.parametrize("rng", [None, 3])
def test_records_come_back(rng):
    made = records(300, np.random.default_rng(0))
    modes = modes_of(ENCODING, None)
    rows = ENCODING.encode(made, modes, None if rng is None else np.random.default_rng(rng))
    assert rows.shape == (300, ENCODING.width)
    assert np.abs(rows).max() <= 1
    found = ENCODING.decode(rows, modes)
    for name in ("age", "sex", "ill"):
        np.testing.assert_array_equal(found[name], made[name])
    if rng is None:  # a far mode that was drawn would cut it
        np.testing.assert_allclose(found["height"], made["height"], atol=1e-6)
    SCHEMA.admit(found)


def test_what_networks_make_is_lawful_whatever_it_is():
    found = ENCODING.decode(np.random.default_rng(1).normal(scale=50, size=(200, ENCODING.width)), modes_of(ENCODING, None))
    admitted = SCHEMA.admit(found)
    assert (admitted["age"] == np.rint(admitted["age"])).all()


def test_modes_are_found_in_a_histogram_and_those_of_hardly_any_record_are_dropped():
    rng, ends = np.random.default_rng(2), np.linspace(-10, 10, 65)
    two = np.histogram(np.concatenate([rng.normal(-4, 0.5, 3000), rng.normal(3, 1.5, 1000)]), ends)[0]
    found = mixture(ends, two.astype(float), 2)
    np.testing.assert_allclose(found[found[:, 1].argsort()], [[0.75, -4, 0.5], [0.25, 3, 1.5]], atol=0.1)
    spike = np.zeros(64)
    spike[10:20], spike[50] = 1000.0, 4.0
    weights = mixture(ends, spike, 10)[:, 0]
    assert weights.sum() == pytest.approx(1.0)
    assert ((weights == 0) | (weights >= 0.005)).all()


def test_public_modes_cover_the_range():
    modes = equal_modes(0.0, 10.0, 5)
    np.testing.assert_allclose(modes[:, 1], [1, 3, 5, 7, 9])
    np.testing.assert_allclose(4 * modes[:, 2] * 0.75, 1.0)  # alpha is 3/4 at the ends of a mode


@pytest.mark.parametrize("at", [0.0, 2.0, -1e9, 1e-30])
def test_a_number_that_is_declared_to_be_constant_has_modes_and_comes_back(at):
    schema = Schema((Column("c", "number", low=at, high=at), Column("k", "integer", low=3, high=3), Column("ill", "binary")))
    encoding = RowEncoding(Codes.of(schema, bins=8), n_modes=3)
    made = {"c": np.full(5, at), "k": np.full(5, 3.0), "ill": np.ones(5)}
    codes = encoding.codes.number(made)
    counts = np.concatenate([np.bincount(column, minlength=n) for column, n in zip(codes.T, encoding.codes.sizes, strict=True)])
    for modes in (modes_of(encoding, None), modes_of(encoding, counts.astype(float))):
        assert np.isfinite(modes).all()
        assert (modes[..., 2] > 0).all()
        rows = encoding.encode(made, modes, np.random.default_rng(0))
        assert np.isfinite(rows).all()
        for name, values in encoding.decode(rows, modes).items():
            np.testing.assert_array_equal(values, made[name])


def test_a_record_adds_one_to_each_column_and_no_more_than_the_bound():
    made = records(50, np.random.default_rng(3))
    codes = ENCODING.codes.number(made)
    count = lambda w, bounds=None: marginal_counts(  # noqa: E731
        None, Party("a", {"codes": codes}, w), None, sizes=ENCODING.codes.sizes, bounds=bounds
    )
    total = count(np.ones(50))
    assert [part.sum() for part in np.split(total, np.cumsum(ENCODING.codes.sizes)[:-1])] == [50] * 4
    bound = in_steps(l2(2.0, "record"))
    one = np.zeros(50)
    one[7] = 1.0
    assert np.linalg.norm(count(one, bound)) <= 2.0
    assert np.linalg.norm(count(5 * one, bound)) <= 2.0
    np.testing.assert_array_equal(count(np.ones(50), bound), total)


def test_conditions_are_drawn_by_log_counts_and_records_satisfy_them():
    rng = np.random.default_rng(4)
    made = records(400, rng)
    levels = ENCODING.levels(made)
    counts = np.array([1000.0, 10.0, 1.0, 50.0, 50.0])
    m, which = Conditioner.of(ENCODING, levels, counts).draw(20_000, rng)
    assert (m.sum(1) == 1).all()
    column, level = (m[:, 3:].sum(1) > 0).astype(int), m.argmax(1)
    np.testing.assert_array_equal(levels[which, column], np.where(column, level - 3, level))
    mass = np.log1p(counts)
    wanted = np.concatenate([mass[:3] / mass[:3].sum(), mass[3:] / mass[3:].sum()]) / 2
    np.testing.assert_allclose(m.mean(0), wanted, atol=5 * np.sqrt(0.25 / 20_000))


def test_a_level_that_a_party_has_no_record_of_is_not_drawn_there():
    rng = np.random.default_rng(5)
    made = records(60, rng)
    made["sex"][:] = 1
    m, _ = Conditioner.of(ENCODING, ENCODING.levels(made), level_counts_of(ENCODING, None)).draw(500, rng)
    np.testing.assert_array_equal(m[:, [0, 2]], 0.0)


def test_without_columns_of_levels_any_record_is_drawn():
    encoding = RowEncoding(Codes.of(SCHEMA, columns=["age"]), n_modes=2)
    m, which = Conditioner.of(encoding, np.zeros((9, 0), int), np.zeros(0)).draw(300, np.random.default_rng(6))
    assert m.shape == (300, 0)
    assert set(which) == set(range(9))
