"""Tables whose columns stay in files: the numbers of a table in memory, and no more memory than some blocks."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.later import Later
from hedgerow.core.question import elementwise, local, travels
from hedgerow.data import Column, Schema, Table, convert, in_order
from hedgerow.errors import CannotWrite, MissingColumn, MissingData, NotFinite, OutOfRange, SchemaInvalid

N = 9_000
RNG = np.random.default_rng(2)
SCHEMA = Schema(
    (
        Column("age", "integer", low=18, high=110),
        Column("bmi", "number", low=10, high=60),
        Column("site", "category", levels=("north", "south", "west")),
        Column("smokes", "binary"),
        Column("died", "binary", role="target"),
    )
)
VALUES = {
    "age": RNG.integers(18, 90, N),
    "bmi": RNG.normal(27, 3, N).clip(10, 60),
    "site": RNG.integers(0, 3, N).astype(np.int16),
    "smokes": RNG.integers(0, 2, N),
    "died": RNG.integers(0, 2, N),
}
TABLE = Table(SCHEMA.admit(VALUES), SCHEMA, name="clinic", source="Made up.")
FORMULA = "died ~ log(age) + bmi:C(site) + smokes"


@pytest.fixture
def filed(tmp_path):
    TABLE.to_files(tmp_path / "clinic")
    return Table.from_files(tmp_path / "clinic")


def parties(table, n=4, **options):
    return hr.simulate(table, in_order(parties=n), **options)


def test_a_table_in_files_is_the_table_that_was_written(filed, tmp_path):
    assert (filed.schema, filed.name, filed.source, len(filed)) == (SCHEMA, "clinic", "Made up.", N)
    for name in SCHEMA.names:
        assert isinstance(filed.columns[name], Later)
        assert filed[name].dtype == TABLE[name].dtype
        np.testing.assert_array_equal(filed[name], TABLE[name])
    assert np.load(tmp_path / "clinic" / "3.npy").dtype == np.int8
    some = filed.take([5, -1, 3])
    np.testing.assert_array_equal(some["bmi"], TABLE["bmi"][[5, -1, 3]])
    assert filed.to_pandas().equals(TABLE.to_pandas())


@pytest.mark.parametrize("engine", [hr.Loop, hr.InProcess], ids=["loop", "in process"])
@pytest.mark.parametrize("noise", [None, hr.Gaussian(1.0)], ids=["exact", "noise"])
def test_sums_are_those_of_a_table_in_memory(filed, engine, noise):
    def asked(table):
        federation = parties(table, engine=engine(), disclosure=float("inf"))
        federation = federation if noise is None else federation.protect(mechanism=noise)
        return hr.stats.moments(federation, ["age", "bmi"]), hr.stats.means(federation, ["bmi", "smokes"])

    (expected, means), (found, others) = asked(TABLE), asked(filed)
    assert found.mean.tobytes() == expected.mean.tobytes()
    assert found.variance.tobytes() == expected.variance.tobytes()
    assert means.equals(others)


@pytest.mark.slow
@pytest.mark.parametrize("formula", [FORMULA, "died ~ age + bmi + C(site)"], ids=["logarithm", "arithmetic"])
def test_regressions_are_those_of_a_table_in_memory(filed, formula):
    fits = [hr.stats.logistic_regression(parties(table), formula) for table in (TABLE, filed)]
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-12)
    np.testing.assert_allclose(fits[0].se_, fits[1].se_, rtol=1e-12)
    assert fits[0].rounds == fits[1].rounds
    hidden = [
        hr.stats.linear_regression(parties(t).protect(aggregation=hr.SecAgg()), "bmi ~ age + smokes") for t in (TABLE, filed)
    ]
    np.testing.assert_allclose(hidden[0].coef_, hidden[1].coef_, rtol=1e-12)


@pytest.mark.slow
def test_noise_and_fit_behind_a_bound_per_record_have_the_bits_of_a_table_in_memory(filed):
    def fit(table):
        noisy = parties(table).protect(mechanism=hr.Gaussian(0.5))
        return hr.stats.linear_regression(noisy, "bmi ~ age + smokes")

    assert fit(filed).coef_.tobytes() == fit(TABLE).coef_.tobytes()


def test_other_splits_and_weights_work_too(filed):
    for split in (hr.data.iid(parties=3), hr.data.by_column("site")):
        found, expected = (hr.stats.moments(hr.simulate(table, split, seed=1), ["bmi"]) for table in (filed, TABLE))
        assert found.mean.tobytes() == expected.mean.tobytes()
    heavy = [parties(table.with_roles(weight="smokes")) for table in (filed, TABLE)]
    assert hr.stats.moments(heavy[0], ["bmi"]).mean == hr.stats.moments(heavy[1], ["bmi"]).mean
    several = hr.simulate({"a": filed.take(slice(0, 50)), "b": filed.take(slice(50, 90))})
    assert several.size == 2


def test_ranges_are_declared_and_clipped_as_records_are_read(filed):
    with pytest.raises(OutOfRange, match="bmi"):
        filed.declare(bmi=(26, 28))
    clipped = filed.declare(clip=True, bmi=(26, 28))
    np.testing.assert_array_equal(clipped["bmi"], TABLE["bmi"].clip(26, 28))
    assert isinstance(clipped.columns["bmi"], Later)
    assert clipped.columns["bmi"][3] == TABLE["bmi"][3].clip(26, 28)


@pytest.mark.slow
def test_no_copy_of_all_records_is_made(tmp_path):
    n, names = 400_000, ("x0", "x1", "x2", "x3")
    schema = Schema(tuple(Column(name, "number", low=-9, high=9) for name in names))
    part = np.stack([np.linspace(-1, 1, n // 4) ** i for i in (1, 2, 3, 4)], -1)
    convert([part] * 4, tmp_path / "long", schema, single=True)
    federation = parties(Table.from_files(tmp_path / "long"), disclosure=float("inf"))
    short = parties(Table.from_files(tmp_path / "long").take(slice(0, 8000)), disclosure=float("inf"))

    def ask(of):
        hr.stats.correlation(of)
        hr.stats.linear_regression(of, "x0 ~ x1 + x2 + x3")

    ask(short)
    tracemalloc.start()
    ask(federation)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n  # one column in double precision


@pytest.mark.parametrize("high", [0.1, 0.3, 1 / 3])
def test_numbers_in_32_bits_stay_within_their_range(tmp_path, high):
    schema = Schema((Column("x", "number", low=-high, high=high),))
    Table(schema.admit({"x": [-high, 0.05, high]}), schema).to_files(tmp_path / "t", single=True)
    found = Table.from_files(tmp_path / "t")["x"]
    assert abs(found).max() <= high
    np.testing.assert_allclose(found, [-high, 0.05, high], rtol=1e-7)


def test_parts_of_any_library_are_converted(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    frame = TABLE.to_pandas()
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "clinic.parquet", row_group_size=1000)
    convert(tmp_path / "clinic.parquet", tmp_path / "one", SCHEMA)
    convert((frame[i : i + 700] for i in range(0, N, 700)), tmp_path / "two", SCHEMA)
    for name in ("one", "two"):
        table = Table.from_files(tmp_path / name)
        assert all(np.array_equal(table[column], TABLE[column]) for column in SCHEMA.names)


def test_what_does_not_fit_is_refused(tmp_path):
    good, pd = TABLE.to_pandas()[:20], pytest.importorskip("pandas")
    wrong = good.assign(age=good["age"].where(good.index != 7, 200))
    for part, error, said in (
        (wrong, OutOfRange, "part 2: column 'age' has 1 of 20 values .*first in record 8"),
        (good.drop(columns="bmi"), MissingColumn, "part 2 has no column 'bmi'"),
        (good.assign(bmi=np.where(good.index == 3, np.nan, good["bmi"])), NotFinite, "part 2: column 'bmi'"),
        (pd.Series([1]), SchemaInvalid, "is no table|are no table"),
    ):
        with pytest.raises(error, match=said):
            convert([good, part], tmp_path / said[:3] / error.__name__, SCHEMA)
    with pytest.raises(MissingData):
        convert(tmp_path / "no.parquet", tmp_path / "no", SCHEMA)


def test_folders_that_are_damaged_or_taken_are_refused(tmp_path):
    folder = tmp_path / "clinic"
    TABLE.to_files(folder)
    with pytest.raises(CannotWrite, match="not empty"):
        TABLE.to_files(folder)
    with pytest.raises(MissingData, match=r"table\.json"):
        Table.from_files(tmp_path)
    bmi = folder / "1.npy"
    values = np.load(bmi)
    values[5] = 99
    np.save(bmi, values)
    with pytest.raises(OutOfRange, match="bmi"):
        Table.from_files(folder)
    np.save(bmi, values[:-1])
    with pytest.raises(SchemaInvalid, match="shape \\(8999,\\) for column 'bmi'"):
        Table.from_files(folder)
    np.save(bmi, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(SchemaInvalid, match="cannot be read"):
        Table.from_files(folder)
    about = json.loads((folder / "table.json").read_text()) | {"form": "another"}
    (folder / "table.json").write_text(json.dumps(about))
    with pytest.raises(SchemaInvalid, match="another"):
        Table.from_files(folder)


def test_arrays_of_records_keep_their_type(tmp_path):
    schema = Schema((Column("image", "integer", shape=(2, 3), low=0, high=255), Column("y", "binary")))
    images = RNG.integers(0, 256, (50, 2, 3)).astype(np.uint8)
    table = Table(schema.admit({"image": images, "y": np.arange(50) % 2}), schema)
    table.to_files(tmp_path / "images")
    found = Table.from_files(tmp_path / "images")
    assert found["image"].dtype == np.uint8
    np.testing.assert_array_equal(found.columns["image"][[4, 2]], images[[4, 2]])
    empty = table.take([])
    empty.to_files(tmp_path / "empty")
    assert len(Table.from_files(tmp_path / "empty")) == 0


def test_later_stands_where_an_array_does():
    held = np.arange(12.0).reshape(6, 2)
    later = Later(lambda rows: held[rows], 6, (2,), float)
    np.testing.assert_array_equal(later[1:4][1:], held[2:4])
    np.testing.assert_array_equal(later[::2], held[::2])
    np.testing.assert_array_equal(later[1:5][[True, False, True, False]], held[[1, 3]])
    np.testing.assert_array_equal(later[1:, 1], held[1:, 1])
    np.testing.assert_array_equal(later[np.array([[0, 1], [5, -1]])], held[[[0, 1], [5, 5]]])
    assert later[2, 1] == held[2, 1]
    np.testing.assert_array_equal(1 - later[:3] * 2 + held[:3], 1 - held[:3])
    assert later.sum() == held.sum()
    assert (later.nbytes, later.ndim, len(later[4:2])) == (96, 2, 0)
    with pytest.raises(IndexError):
        later[6]


@local(additive=True)
def total_of_roots(broadcast, party, rng):
    return {"sum": (party.w * party["root"]).sum()}


@travels
@elementwise
def roots(columns):
    """A preparation that fails for some records."""
    if (columns["bmi"] == SPECIAL).any():
        raise ValueError("this one cannot be prepared")
    return {"root": np.sqrt(columns["bmi"])}


SPECIAL = float(VALUES["bmi"][4321])


def test_behind_noise_a_record_that_cannot_be_prepared_takes_away_itself_alone(filed):
    few, found = slice(4200, 4400), []
    for table in (TABLE.take(few), filed.take(few)):
        noisy = parties(table, n=1).protect(mechanism=hr.Gaussian(1e-6)).prepare(roots)
        found.append(float(noisy.sum(total_of_roots, bound=hr.l2(8.0, "record"))["sum"]))
    assert found[0] == found[1]
    assert found[1] == pytest.approx(np.sqrt(np.delete(VALUES["bmi"][few], 121)).sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "first", "then"),
    [
        ("integer", np.array([[1, 2]], np.uint8), np.array([[300, 400]])),
        ("integer", np.array([[1, 2]], np.int32), np.array([[1, 2**40]])),
        ("number", np.array([[1, 2]], np.float32), np.array([[1e-300, 1e300]])),
        ("number", np.array([[1, 2]], np.float16), np.array([[0.1, 1e5]], np.float32)),
    ],
    ids=["bytes", "short", "single", "half"],
)
def test_arrays_of_a_wider_type_than_the_first_parts_are_refused(tmp_path, kind, first, then):
    schema = Schema((Column("x", kind, shape=(2,)),))
    pandas = pytest.importorskip("pandas")
    one, other = (pandas.DataFrame({"x": list(values)}) for values in (first, then))
    with pytest.raises(SchemaInvalid, match=f"part 2 has arrays of {then.dtype} in column 'x'"):
        convert([one, other], tmp_path / "wide", schema)
    convert([other, one], tmp_path / "narrow", schema)
    held = Table.from_files(tmp_path / "narrow")["x"]
    np.testing.assert_array_equal(held, np.concatenate([then, first]))


@pytest.mark.parametrize("key", [[True], [False] * 5, [True] * 3, np.ones((2, 1), bool), [0.5]], ids=str)
def test_a_key_that_numpy_refuses_is_refused(key):
    values = np.arange(8.0).reshape(4, 2)
    later = Later(lambda rows: values[rows], 4, (2,), values.dtype)
    for one in (values, later):
        with pytest.raises(IndexError):
            one[key]


@pytest.mark.parametrize("key", [[True, False, True, False], np.eye(4, 2) > 0, [], [3, -1], True], ids=str)
def test_a_key_that_numpy_takes_gives_the_same(key):
    values = np.arange(8.0).reshape(4, 2)
    later = Later(lambda rows: values[rows], 4, (2,), values.dtype)
    np.testing.assert_array_equal(later[key], values[key])
