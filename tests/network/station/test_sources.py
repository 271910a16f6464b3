"""A station's data: declared, read as declared, and the same from every kind of source."""

import bz2
import gzip
import json
import lzma
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import wards
from numpy.testing import assert_array_equal

import hedgerow as hr
from hedgerow.errors import ConfigInvalid, MissingColumn, NotFinite, OutOfRange, SchemaInvalid, SourceUnreadable
from hedgerow.network.station.data_section import open_table, parse_data, schema_of
from hedgerow.stats import logistic_regression
from hedgerow.study.dictionaries import with_dictionary

FORMULA = "diabetes ~ age + sex + sbp + smokes"
CSV = {"name": "ages", "source": "csv", "path": "ages.csv"}


@pytest.fixture(scope="module")
def frame():
    return wards.patients()


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The same patients as CSV, Parquet, one bundle and a bulk export."""
    path = tmp_path_factory.mktemp("station")
    whole = frame.drop(columns="born")
    whole.to_csv(path / "wards.csv", index=False)
    whole.assign(note="not declared").to_parquet(path / "wards.parquet")
    (path / "bundle.json").write_text(json.dumps(wards.one_bundle(frame)))
    for name, text in wards.bulk_export(frame).items():
        (path / name).write_text(text)
    return path


SOURCES = {
    "csv": {"path": "wards.csv"},
    "parquet": {"path": "wards.parquet"},
    "bundle": {"path": "bundle.json"},
    "bulk export": {"path": ["*.ndjson"]},
}


def opened(folder, name):
    kind = name if name in ("csv", "parquet") else "fhir"
    return open_table(parse_data(wards.section(kind, **SOURCES[name])), folder)


def equal(one, other):
    return one.schema == other.schema and all(one[name].tobytes() == other[name].tobytes() for name in one.columns)


def ages(tmp_path, text, **column):
    (tmp_path / "ages.csv").write_text(text)
    return open_table(parse_data(CSV | {"columns": {"age": column}}), tmp_path)


# ---- the same records in every form ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SOURCES)
def test_every_form_gives_the_same_table_to_the_bit(name, folder, frame):
    found = opened(folder, name)
    assert equal(found, opened(folder, "csv"))
    np.testing.assert_array_equal(found["sbp"], frame["sbp"])
    np.testing.assert_array_equal(found["diabetes"], frame["diabetes"])


def test_a_bundle_and_a_parquet_file_give_the_regression_of_one_csv(frame, tmp_path):
    first, second = frame[:170], frame[170:]
    (tmp_path / "a.json").write_text(json.dumps(wards.one_bundle(first)))
    second.to_parquet(tmp_path / "b.parquet")
    frame.to_csv(tmp_path / "all.csv", index=False)
    stations = {
        "a": open_table(parse_data(wards.section("fhir", path="a.json")), tmp_path),
        "b": open_table(parse_data(wards.section("parquet", path="b.parquet")), tmp_path),
    }
    pooled = {"all": open_table(parse_data(wards.section("csv", path="all.csv")), tmp_path)}
    found, whole = (logistic_regression(hr.simulate(tables), FORMULA) for tables in (stations, pooled))
    np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    design = frame.assign(male=frame["sex"] == "male", current=frame["smokes"] == "current")
    columns = sm.add_constant(design[["age", "male", "sbp", "current"]].astype(float))
    expected = sm.Logit(frame["diabetes"], columns).fit(disp=0, method="newton", tol=1e-10, maxiter=100)
    np.testing.assert_allclose(np.sort(found.coef_), np.sort(expected.params), rtol=1e-6)


# ---- declarations ---------------------------------------------------------------------------------------------------
def test_the_schema_is_known_before_there_is_a_file():
    schema = schema_of(
        parse_data(CSV | {"columns": {"age": {"kind": "integer", "range": [18, 90]}, "sex": {"levels": ["f", "m"]}}})
    )
    assert (schema["age"].low, schema["age"].high) == (18, 90)
    assert (schema["sex"].kind, schema["sex"].levels) == ("category", ("f", "m"))


def test_a_level_that_is_not_declared_is_refused(tmp_path):
    with pytest.raises(OutOfRange, match=r"HR-405[\s\S]*first in line 3[\s\S]*station.toml") as caught:
        ages(tmp_path, "age\nold\nx\n", levels=["old", "young"])
    assert "'x'" not in str(caught.value)  # a log may be read by others than the owner of the records


def test_a_value_outside_is_refused_or_clipped(tmp_path):
    with pytest.raises(OutOfRange, match="outside its declared range"):
        ages(tmp_path, "age\n30\n130\n", range=[0, 120])
    assert ages(tmp_path, "age\n30\n130\n", range=[0, 120], clip=True)["age"].tolist() == [30, 120]


def test_missing_values_are_refused_or_kept(tmp_path):
    with pytest.raises(NotFinite, match="HR-404"):
        ages(tmp_path, "age\n30\nNA\n\n40\n")
    found = ages(tmp_path, "age,x\n30,1\nNA,1\ninf,1\n40,1\n", missing="drop")
    assert_array_equal(found["age"], [30, np.nan, np.nan, 40])
    assert "2 of 4 records lack a value" in found.source
    assert found.schema["age"].optional


def test_words_stay_as_they_are_spelt(tmp_path):
    found = ages(tmp_path, "age\n01\nNA\n1\n", levels=["1", "01", "NA"])
    assert found["age"].tolist() == [1, 2, 0]


def test_a_column_may_have_another_name_in_the_source(tmp_path):
    assert ages(tmp_path, "alter\n30\n", **{"from": "alter"})["age"].tolist() == [30]
    with pytest.raises(MissingColumn, match=r"'alters'[\s\S]*'alter'"):
        ages(tmp_path, "alter\n30\n", **{"from": "alters"})


@pytest.mark.parametrize(
    "text", ["age,b\n30,1\n40,1,7\n", "age,b\n30,1,9\n40,1,7\n", 'age,b\n"30,1\n40,2\n', "age,age\n1,2\n", ""]
)
def test_lines_that_do_not_fit_the_header_are_refused(tmp_path, text):
    with pytest.raises(SourceUnreadable, match="HR-614"):
        ages(tmp_path, text)


def test_a_line_that_is_too_short_misses_values(tmp_path):
    assert ages(tmp_path, "b,age\n1,30\n1\n", missing="drop")["age"].tolist() == pytest.approx([30, np.nan], nan_ok=True)


def test_blank_lines_and_the_mark_of_an_encoding_are_left_out(tmp_path):
    assert ages(tmp_path, "\ufeffage,b\n\n30,1\n \t\n40,2\n\n")["age"].tolist() == [30, 40]
    assert_array_equal(ages(tmp_path, 'age\n\n30\n""\n', missing="drop")["age"], [30, np.nan])


def test_a_quoted_value_may_hold_anything_and_ends_with_its_quote(tmp_path):
    words = ["a,b", 'a"b', "a\nb"]
    assert ages(tmp_path, 'age\n"a,b"\n"a""b"\n"a\nb"\n', levels=words)["age"].tolist() == [0, 1, 2]
    with pytest.raises(SourceUnreadable, match="HR-614"):
        ages(tmp_path, 'age\n"a"b\n', levels=["ab"])


@pytest.mark.parametrize(("suffix", "packed"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_a_file_may_be_compressed_and_a_spoilt_one_is_refused(tmp_path, suffix, packed):
    section, path = CSV | {"path": f"ages.csv.{suffix}", "columns": {"age": {}}}, tmp_path / f"ages.csv.{suffix}"
    path.write_bytes(packed(b"age\n30\n40\n"))
    assert open_table(parse_data(section), tmp_path)["age"].tolist() == [30, 40]
    for spoilt in (path.read_bytes()[:-12], b"age\n30\n", path.read_bytes()[:20] + b"?" + path.read_bytes()[21:]):
        path.write_bytes(spoilt)
        with pytest.raises(SourceUnreadable, match="HR-614"):
            open_table(parse_data(section), tmp_path)
        path.write_bytes(packed(b"age\n30\n40\n"))


def test_true_and_false_are_binary(tmp_path):
    assert ages(tmp_path, "age\nTrue\nfalse\n1\n", kind="binary")["age"].tolist() == [1, 0, 1]


def test_a_missing_parquet_column_is_named(tmp_path):
    pd.DataFrame({"alter": [1]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(MissingColumn, match="'age'"):
        open_table(parse_data({"name": "x", "source": "parquet", "path": "x.parquet", "columns": {"age": {}}}), tmp_path)


@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_a_file_that_is_not_there_or_broken_is_said_in_words(source, tmp_path):
    section = parse_data({"name": "x", "source": source, "path": f"x.{source}", "columns": {"age": {}}})
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*not there"):
        open_table(section, tmp_path)
    (tmp_path / f"x.{source}").write_bytes(b"\xff\xfe\x00\x01" * 9)
    with pytest.raises(SourceUnreadable, match=r"HR-614[\s\S]*cannot be read"):
        open_table(section, tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": {"age": {"rang": [0, 1]}}}, r"unknown key 'columns.age.rang'. Did you mean 'range'"),
        ({"columns": {"age": {"frm": "x"}}}, r"unknown key 'columns.age.frm'"),
        ({"columns": {"age": {"kind": "category"}}}, "declares no levels"),
        ({"columns": {"age": {"range": [3, 1]}}}, "columns.age"),
        ({"columns": {"age": {"range": [0, 1], "low": 0}}}, "give range, or low and high"),
        ({"columns": {"age": {"as": "age"}}}, "as are for source 'fhir'"),
        ({"columns": {}}, "columns"),
        ({"query": "SELECT 1"}, "query says nothing to source 'csv'"),
        ({"path": ["a.csv", "b.csv"]}, "reads one file"),
        ({"path": None}, "needs one of path, and has none"),
        ({"source": "sql", "path": None, "url": "sqlite:///x"}, "needs a query"),
        ({"sourc": "csv"}, "Did you mean 'source'"),
    ],
)
def test_a_wrong_section_is_refused_with_all_its_problems(change, said):
    with pytest.raises(ConfigInvalid, match=rf"HR-601[\s\S]*{said}"):
        parse_data({**CSV, "columns": {"age": {}}, **change})


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@host/db", "mysql://host/db?password=s3cret"])
def test_a_password_in_the_file_is_refused_and_not_repeated(url):
    with pytest.raises(ConfigInvalid, match="url_env") as caught:
        parse_data({"name": "x", "source": "sql", "url": url, "query": "SELECT 1", "columns": {"age": {}}})
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
PAGE = EXAMPLES.with_name("sources.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
def test_every_section_of_the_page_is_one(text):
    section = tomllib.loads(text)["data"]
    with_dictionary(section, EXAMPLES)
    schema_of(parse_data(section))


def test_numbers_that_are_words_are_refused(tmp_path):
    with pytest.raises(SchemaInvalid, match="declare it a category"):
        ages(tmp_path, "age\nold\n")
