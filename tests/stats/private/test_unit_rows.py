"""Unit rows: never longer than one, whatever the record; the same for one record as for many."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hedgerow.core.question import Preparation
from hedgerow.data import Column
from hedgerow.data.entry import binary, category, declare, integer, number
from hedgerow.errors import FormulaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.stats.private.rows import UnitRows, unit_rows

SCHEMA = declare(
    number("age", 18, 90),
    integer("visits", 0, 5),
    number("income", 0, 100_000),
    category("site", "north south west"),
    binary("smoker"),
    binary("ill", role="target"),
)


def corners() -> dict[str, np.ndarray]:
    """Every record at an end of every range."""
    cells = itertools.product((18.0, 90.0), (0, 5), (0.0, 100_000.0), (0, 1, 2), (0.0, 1.0), (0.0, 1.0))
    return dict(zip(SCHEMA.names, map(np.array, zip(*cells, strict=True)), strict=True))


@pytest.mark.parametrize("formula", ["ill ~ .", "ill ~ age*site + visits", "ill ~ age + I(age**2) - 1"])
@pytest.mark.parametrize("length", ["unit", "fixed"])
def test_rows_reach_length_one_and_never_exceed_it(formula, length):
    rows = unit_rows(corners(), spec=UnitRows.of(formula, SCHEMA, length=length))["X"]
    longest = np.linalg.norm(rows, axis=1)
    assert longest.max() == pytest.approx(1.0, abs=1e-15) or (length == "fixed" and longest.max() <= 1.0)
    assert longest.max() <= 1.0 + 1e-15


def test_with_bins_all_rows_have_the_same_length():
    spec = UnitRows.of("ill ~ .", SCHEMA, bins=8, log=("income",))
    rows = unit_rows(corners(), spec=spec)["X"]
    assert spec.same_length
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-15)
    assert ((rows > 0).sum(1) == len(spec.blocks)).all()


def test_logarithmic_bins_are_narrow_where_values_are_small():
    spec = UnitRows.of("ill ~ income", SCHEMA, bins=8, log=("income",))
    cuts = np.array(next(block.cuts for block in spec.blocks if block.cuts))
    assert (np.diff(cuts) > 0).all()
    assert cuts[0] < 10 < 20_000 < cuts[-1]


def test_a_record_has_the_same_bits_alone():
    spec, columns = UnitRows.of("ill ~ .", SCHEMA), corners()
    together = unit_rows(columns, spec=spec)["X"]
    assert spec.is_arithmetic
    for i in range(0, len(together), 7):
        alone = unit_rows({name: values[i : i + 1] for name, values in columns.items()}, spec=spec)["X"]
        assert (alone[0] == together[i]).all()


def test_numeric_targets_are_scaled_to_their_range():
    spec = UnitRows.of("income ~ age", SCHEMA)
    y = unit_rows(corners(), spec=spec)["y"]
    assert set(y) == {-1.0, 1.0}
    assert (spec.middle, spec.half) == (50_000.0, 50_000.0)


def test_a_share_is_a_number_and_not_a_label():
    schema = declare(number("age", 18, 90), number("share", 0, 1, role="target"))
    spec = UnitRows.of("share ~ age", schema)
    assert spec.numeric
    assert spec.targets({"share": np.array([0.0, 0.25, 1.0])}).tolist() == [-1.0, -0.5, 1.0]
    assert not UnitRows.of("ill ~ age", SCHEMA).numeric
    assert not UnitRows.of("I(visits > 2) ~ age", SCHEMA).numeric


@pytest.mark.parametrize("bins", [None, 4])
def test_a_category_of_one_level_adds_nothing_to_the_constant(bins):
    schema = declare(number("age", 18, 90), category("ward", "only"), binary("ill", role="target"))
    assert UnitRows.of("ill ~ age + ward", schema, bins=bins).names == UnitRows.of("ill ~ age", schema, bins=bins).names
    assert UnitRows.of("ill ~ ward - 1", schema, bins=bins).names == ("ward[only]",)
    with pytest.raises(FormulaInvalid, match="single level"):
        UnitRows.of("ward ~ age", schema, classes=True)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"formula": "ill ~ age", "bins": 1}, SettingsInvalid),
        ({"formula": "ill ~ age", "length": "two"}, SettingsInvalid),
        ({"formula": "ill ~ age", "log": ("age",)}, SettingsInvalid),
        ({"formula": "ill ~ age:smoker", "bins": 8}, FormulaInvalid),
        ({"formula": "ill ~ age:site", "bins": 8}, FormulaInvalid),
    ],
)
def test_what_has_no_bound_or_no_bins_is_refused(settings, error):
    with pytest.raises(error):
        UnitRows.of(settings.pop("formula"), SCHEMA, **settings)


def test_a_column_without_a_range_is_refused():
    with pytest.raises(UnboundedSum, match="weight"):
        UnitRows.of("ill ~ weight", declare(Column("weight", "number"), binary("ill", role="target")))


def test_one_name_on_a_logarithmic_scale_is_a_plain_str_too():
    named = UnitRows.of("ill ~ income", SCHEMA, bins=8, log="income")
    assert named == UnitRows.of("ill ~ income", SCHEMA, bins=8, log=("income",))
    assert named != UnitRows.of("ill ~ income", SCHEMA, bins=8)


@pytest.mark.parametrize("formula", ["ill ~ log1p(income)", "ill ~ I(exp(age / 90) ** 2.5) + I(2 * log(age) - age)"])
def test_functions_of_many_records_have_the_bits_of_each_by_itself(formula):
    rng = np.random.default_rng(0)
    people = {**{name: rng.integers(0, 2, 37) for name in SCHEMA.names}, "age": rng.uniform(18, 90, 37)}
    people["income"] = rng.uniform(0, 100_000, 37)
    spec = UnitRows.of(formula, SCHEMA)
    assert not spec.is_arithmetic
    together = unit_rows(people, spec=spec)
    alone = [unit_rows({name: column[i : i + 1] for name, column in people.items()}, spec=spec) for i in range(37)]
    plain = [spec.rows({name: column[i : i + 1] for name, column in people.items()}, 1) for i in range(37)]
    for name, values in together.items():
        np.testing.assert_array_equal(values, np.concatenate([one[name] for one in alone]))
    np.testing.assert_array_equal(together["X"], np.concatenate(plain))


def test_behind_noise_functions_are_prepared_in_one_call_and_exact_sums_are_left_as_they_are():
    spec = UnitRows.of("ill ~ log1p(income)", SCHEMA)
    assert Preparation(unit_rows, (("spec", spec),)).elementwise
    assert not Preparation(unit_rows, (("spec", replace(spec, held=False)),)).elementwise
