"""Tables of every library give what pandas gives: the same table, the same fit to the bit, the same refusals."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.data import Table
from hedgerow.errors import ColumnsDiffer, ColumnUndeclared, EmptyParty, MissingColumn, NotFinite, OutOfRange, SchemaInvalid

N = 60
RNG = np.random.default_rng(4)
GOOD = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "bmi": RNG.normal(27, 4, N).round(2),
        "site": RNG.choice(["north", "south", "west"], N),
        "smokes": RNG.random(N) < 0.4,
        "died": RNG.integers(0, 2, N),
    }
)
FORMULA = "died ~ age + bmi + C(site) + smokes"
SPLIT = hr.data.iid(parties=3)


def polars_of(frame, **types):
    pl = pytest.importorskip("polars")
    columns = {name: [None if value is pd.NA or value != value else value for value in frame[name].tolist()] for name in frame}
    return pl.DataFrame(columns, strict=False).cast({name: getattr(pl, kind) for name, kind in types.items()})


def lazy_of(frame):
    return polars_of(frame).lazy()


def arrow_of(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)


def duckdb_of(frame):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    return connection.from_arrow(arrow_of(frame))


def datasets_of(frame):
    return pytest.importorskip("datasets").Dataset.from_pandas(frame, preserve_index=False)


KINDS = [
    pytest.param(kind, id=kind.__name__.removesuffix("_of"), marks=[pytest.mark.slow] if kind is datasets_of else [])
    for kind in (polars_of, lazy_of, arrow_of, duckdb_of, datasets_of)
]
every_kind = pytest.mark.parametrize("kind", KINDS)


def fitted(data, formula=FORMULA, **options):
    return hr.stats.logistic_regression(hr.simulate(data, SPLIT, seed=1), formula, **options)


def same_table(one, other):
    assert one.schema == other.schema
    for name in one.columns:
        np.testing.assert_array_equal(one[name], other[name])
        assert one[name].dtype == other[name].dtype


@every_kind
def test_the_fit_is_that_of_pandas_to_the_bit(kind):
    expected, found = fitted(GOOD), fitted(kind(GOOD))
    assert hr.data.infer(kind(GOOD), target="died") == hr.data.infer(GOOD, target="died")
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.se_.tobytes() == expected.se_.tobytes()
    assert expected.predict(kind(GOOD)).tobytes() == expected.predict(GOOD).tobytes()


def test_the_fit_of_arrays_is_that_of_pandas_to_the_bit():
    numbers = GOOD[["age", "bmi", "smokes"]]
    X, y = numbers.to_numpy(float), GOOD["died"].to_numpy()
    expected = fitted(numbers.set_axis(["x0", "x1", "x2"], axis=1).assign(y=y), "y ~ x0 + x1 + x2")
    found = fitted((X, y), "y ~ .")
    assert found.coef_.tobytes() == expected.coef_.tobytes()
    assert found.predict(X).tobytes() == expected.predict((X, y)).tobytes()
    same_table(Table.from_frame((X, y), names=["a", "b", "c"]), Table.from_frame((pd.DataFrame(X, columns=[*"abc"]), y)))


@every_kind
def test_gaps_and_nullable_types_are_those_of_pandas(kind):
    gaps = GOOD.astype({"age": "Int64", "smokes": "boolean"})
    gaps.loc[3, ["age", "smokes"]] = pd.NA
    gaps.loc[5, "bmi"] = np.nan
    gaps.loc[7, "site"] = None
    table = Table.from_frame(kind(gaps), target="died", missing="drop")
    same_table(table, Table.from_frame(gaps, target="died", missing="drop"))
    assert [column.kind for column in table.schema] == ["integer", "number", "category", "binary", "binary"]
    with pytest.raises(NotFinite, match=r"column 'age' has 1 of 60 values missing or infinite, first in record 4"):
        Table.from_frame(kind(gaps))
    with pytest.raises(NotFinite):
        fitted(GOOD).predict(kind(gaps))


@every_kind
def test_a_typo_is_refused_with_record_column_and_remedy(kind):
    typo = GOOD.astype({"age": str})
    typo.loc[9, "age"] = "5O"
    for refused, declared in ((ColumnUndeclared, {}), (SchemaInvalid, {"age": {"kind": "integer"}})):
        with pytest.raises(refused, match=r"column 'age' has 1 of 60 values") as caught:
            Table.from_frame(kind(typo), declared=declared)
        assert "first in record 10" in str(caught.value)
        assert "Write 50: '5O' holds a letter" in str(caught.value)


@every_kind
def test_new_records_are_held_to_the_declaration(kind):
    fit = fitted(Table.from_frame(GOOD, declared={"age": {"kind": "integer", "range": [18, 90]}}))
    with pytest.raises(OutOfRange, match="'east'"):
        fit.predict(kind(GOOD.replace({"site": {"west": "east"}})))
    with pytest.raises(OutOfRange, match="age"):
        fit.predict(kind(GOOD.assign(age=200)))
    with pytest.raises(MissingColumn, match="'bmi'"):
        fit.predict(kind(GOOD.drop(columns="bmi")))


@every_kind
def test_dates_are_refused(kind):
    dated = GOOD.assign(seen=datetime.datetime(2024, 3, 1))
    for frame in (dated, kind(dated)):
        with pytest.raises(ColumnUndeclared, match=r"column 'seen' holds dates or times"):
            Table.from_frame(frame)
    assert "seen" in Table.from_frame(kind(dated), declared={"seen": {"role": "ignore"}}).schema


def test_levels_that_a_type_declares_are_kept():
    declared = pd.CategoricalDtype(["west", "south", "north", "east"])
    held = GOOD.assign(site=GOOD["site"].astype(declared))
    expected = Table.from_frame(held)
    assert expected.schema["site"].levels == ("east", "north", "south", "west")
    same_table(Table.from_frame(arrow_of(held)), expected)
    pl = pytest.importorskip("polars")
    same_table(Table.from_frame(polars_of(GOOD).cast({"site": pl.Enum(["west", "south", "north", "east"])})), expected)
    same_table(Table.from_frame(polars_of(GOOD, site="Categorical")), Table.from_frame(GOOD))


def test_a_gap_in_a_dictionary_of_arrow_is_a_gap():
    held = GOOD.assign(site=GOOD["site"].astype("category"))
    held.loc[2, "site"] = None
    same_table(Table.from_frame(arrow_of(held), missing="drop"), Table.from_frame(held, missing="drop"))


@pytest.mark.slow
def test_labels_of_a_data_set_are_levels():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"x": datasets.Value("float32"), "label": datasets.ClassLabel(names=["no", "yes"])})
    held = datasets.Dataset.from_dict({"x": [1.0, 2.0, 3.0], "label": [0, 1, 1]}, features=features)
    table = Table.from_frame(held.select([2, 0]), target="label")
    assert table.schema["label"].levels == ("no", "yes")
    assert table["label"].tolist() == [1, 0]
    with pytest.raises(SchemaInvalid, match=r"hold the splits train.*\n.*\['train'\]"):
        hr.simulate(datasets.DatasetDict({"train": held}), SPLIT)
    with pytest.raises(SchemaInvalid, match="streaming"):
        hr.simulate(held.to_iterable_dataset(), SPLIT)


def test_decimal_numbers_are_numbers_and_lists_of_one_length_an_array():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"price": ["1.25", "2.50"], "ids": [[1, 2, 3], [4, 5, 6]], "at": [[0.5, 1.0], [2.0, 3.0]]})
    frame = frame.with_columns(pl.col("price").cast(pl.Decimal(10, 2)), pl.col("at").cast(pl.Array(pl.Float32, 2)))
    for one in (frame, frame.to_arrow(), frame.to_pandas()):
        table = Table.from_frame(one)
        assert table["price"].tolist() == [1.25, 2.5]
        assert table["ids"].tolist() == [[1, 2, 3], [4, 5, 6]]
        assert (table.schema["ids"].kind, table.schema["ids"].shape) == ("integer", (3,))
        assert (table["at"].dtype, table["at"].shape) == (np.float32, (2, 2))
    with pytest.raises(SchemaInvalid, match=r"'ids' holds lists of 2 different lengths"):
        Table.from_frame(pl.DataFrame({"ids": [[1], [2, 3]]}))
    with pytest.raises(SchemaInvalid, match=r"'pair' holds Struct"):
        Table.from_frame(pl.DataFrame({"pair": [{"a": 1}, {"a": 2}]}))


def test_parties_may_bring_tables_of_different_libraries():
    parts = {"north": GOOD[:20], "south": arrow_of(GOOD[20:45]), "west": polars_of(GOOD[45:])}
    together = hr.simulate(parts, seed=1)
    assert list(together.names) == ["north", "south", "west"]
    expected = hr.stats.logistic_regression(hr.simulate({"north": GOOD[:20], "south": GOOD[20:45], "west": GOOD[45:]}), FORMULA)
    assert hr.stats.logistic_regression(together, FORMULA).coef_.tobytes() == expected.coef_.tobytes()
    assert list(hr.simulate(list(parts.values())).names) == ["party 1", "party 2", "party 3"]
    X = GOOD[["age", "bmi"]].to_numpy()
    arrays = hr.simulate([(X[:30], GOOD["died"][:30]), (X[30:], GOOD["died"][30:])])
    assert (arrays.schema.names, arrays.schema.target) == (("x0", "x1", "died"), "died")
    with pytest.raises(ColumnsDiffer, match="south holds age"):
        hr.simulate({"north": GOOD[:20], "south": arrow_of(GOOD[["age"]])})
    with pytest.raises(EmptyParty):
        hr.simulate([])


@pytest.mark.parametrize("data", [None, 3, "patients.csv", object(), np.arange(3), (1, 2, 3), np.array(3), pd.Series([1])])
def test_what_is_no_table_is_refused_with_a_remedy(data):
    for use in (lambda: hr.simulate(data, SPLIT), lambda: hr.simulate({"a": data}), lambda: Table.from_frame(data)):
        with pytest.raises(SchemaInvalid) as caught:
            use()
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ((np.ones((3, 2)), [1, 2]), r"y has shape \(2,\), and X holds 3 records"),
        ((np.ones((3, 2)), np.ones((3, 2))), r"y has shape \(3, 2\)"),
        ((GOOD, GOOD["died"]), "y is called 'died'"),
        ((np.ones((2, 1), complex), [0, 1]), "X holds complex128"),
        ({"age": [1, 2, 3]}, r"age: .*builtins\.(list|int)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(data, said):
    with pytest.raises(SchemaInvalid, match=said):
        hr.simulate(data, SPLIT)
    with pytest.raises(SchemaInvalid, match="3 names for 2 columns"):
        Table.from_frame(np.ones((3, 2)), names=["a", "b", "c"])
