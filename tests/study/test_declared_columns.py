"""Columns as a study file declares them: read so, refused with line and remedy, and held against what stations declare."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli.main import app
from hedgerow.core.toml import to_toml
from hedgerow.data import Column, Schema, Table
from hedgerow.engines import InProcess
from hedgerow.errors import FormulaInvalid, HedgerowError, MissingColumn, NotFinite, OutOfRange, SchemaInvalid, StudyInvalid
from hedgerow.stats import Derivation, derive
from hedgerow.study import load, parse
from hedgerow.study.build import build
from hedgerow.study.check import check
from hedgerow.study.published import published
from hedgerow.study.remote import schema_for

LINE, N = 31, 900
HEAD = '[data]\npath = "visits.csv"\n'
TAIL = """
[partition]
by = "iid"
parties = 3
[program]
name = "logistic_regression"
formula = "{formula}"
"""
COLUMNS = """
[data.columns.age]
kind = "integer"
range = [18, 110]
unit = "a"
[data.columns.bmi]
range = [10, 80]
[data.columns.education]
levels = { primary = 1, secondary = 2, tertiary = 3 }
[data.columns.sex]
levels = ["f", "m"]
[data.columns.smokes]
kind = "binary"
[data.columns.visit]
kind = "integer"
[data.columns.sick]
kind = "binary"
"""
FORMULA = "sick ~ age + bmi + C(education)"
TYPOS = {"age": "5O", "bmi": "27,5", "education": "4", "sex": "w", "smokes": "ture", "visit": "2024-03-01", "sick": "?"}


def records(n=N):
    rng = np.random.default_rng(7)
    age, bmi, education = rng.integers(18, 90, n), rng.normal(27, 4, n).round(1), rng.integers(1, 4, n)
    sick = (rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 15 - (bmi - 27) / 8))).astype(int)
    words = {"sex": rng.choice(["f", "m"], n), "smokes": rng.choice(["true", "false"], n)}
    return pd.DataFrame(
        {"age": age, "bmi": bmi, "education": education, **words, "visit": rng.integers(0, 900, n), "sick": sick}
    )


def study(folder, columns=COLUMNS, formula=FORMULA, data="", **typos):
    frame = records().astype(object)
    for name, value in typos.items():
        frame.loc[LINE - 2, name] = value
    frame.to_csv(folder / "visits.csv", index=False)
    (folder / "visits.toml").write_text(HEAD + data + columns + TAIL.format(formula=formula))
    return folder / "visits.toml"


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def nobody(monkeypatch):
    """An engine that is never asked."""
    monkeypatch.setattr(InProcess, "exchange", lambda *_: pytest.fail("a party was asked"))


# ---- typos, as a new user meets them ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("columns", "column"),
    [
        *(pytest.param(COLUMNS, name, id=f"declared {name}") for name in TYPOS),
        *(pytest.param("", name, id=f"undeclared {name}") for name in TYPOS if name not in ("education", "sex")),
    ],
)
@pytest.mark.usefixtures("nobody")
def test_a_run_with_a_typo_ends_with_line_column_and_remedy(tmp_path, columns, column):
    """A level more is a level, where nobody declares them; the run's notes tell how many there are."""
    typo = TYPOS[column]
    formula = FORMULA if columns else "sick ~ age + bmi + smokes + visit"
    ended = invoke("run", study(tmp_path, columns, formula, **{column: typo}), "--out", tmp_path / "out")
    assert isinstance(ended.exception, HedgerowError)
    said = str(ended.exception)
    assert f"column {column!r} has 1 of {N} values" in said
    assert f"first in line {LINE}: {typo!r}" in said
    assert "Mend the file" in said
    assert "[data.columns.NAME]" in said
    assert "No party was asked." in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("formula", "refused"),
    [
        ("sick ~ age + bmi", None),
        ("sick ~ .", "visit"),
        ("sick ~ age + log(1 + visit)", "visit"),
        ("sick ~ age + smokes", "smokes"),
    ],
)
@pytest.mark.usefixtures("nobody")
def test_columns_that_a_formula_does_not_read_need_not_be_readable(tmp_path, formula, refused):
    path = study(tmp_path, "", formula, visit="2024-03-01", smokes="ture")
    if refused is not None:
        with pytest.raises(HedgerowError, match=f"column '{refused}' has 1 of {N} values"):
            build(load(path))
        return
    built = build(load(path))
    assert set(built.schema.names) == {"age", "bmi", "education", "sex", "sick"}
    assert "Left out, since nothing reads them and nobody declares them: smokes, visit." in built.table.source


@pytest.mark.usefixtures("nobody")
def test_an_expression_without_a_finite_value_is_told_with_its_record(tmp_path):
    path = study(tmp_path, "", "sick ~ age + log(bmi) + sex:sqrt(age)", bmi="0")
    with pytest.raises(NotFinite) as caught:
        build(load(path))
    said = str(caught.value)
    assert f"log(bmi) of the formula has no finite value for 1 of {N} records, first in record {LINE - 1}" in said
    assert "sqrt" not in said
    assert "`na_values`" in said
    assert "No party was asked." in said
    missing = "[data.columns.bmi]\nna_values = [-9]\n"
    assert build(load(study(tmp_path, missing, "sick ~ log(bmi)", 'missing = "drop"\n', bmi="-9"))).schema["bmi"].optional


@pytest.mark.usefixtures("nobody")
def test_all_typos_are_told_at_once(tmp_path):
    with pytest.raises(HedgerowError) as caught:
        build(load(study(tmp_path, **TYPOS)))
    assert all(f"column {name!r} has 1 of {N} values" in str(caught.value) for name in TYPOS)


@pytest.mark.slow
def test_levels_that_are_read_off_are_in_the_notes(tmp_path):
    ended = invoke("run", study(tmp_path, "", "sick ~ age + sex"), "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.exception
    told = hr.study.read_report(tmp_path / "out").report
    assert any("Levels of sex (2) were read off the records" in note for note in told.notes)


# ---- what is declared -------------------------------------------------------------------------------------------------
def test_declared_columns_are_read_as_declared(tmp_path):
    built = build(load(study(tmp_path)))
    frame = records()
    schema = built.schema
    assert (schema["age"].kind, schema["age"].low, schema["age"].high, schema["age"].unit) == ("integer", 18, 110, "a")
    assert schema["education"].levels == ("primary", "secondary", "tertiary")
    assert_array_equal(built.table["education"], frame["education"] - 1)
    assert_array_equal(built.table["smokes"], frame["smokes"] == "true")
    words = {one.what for one in published(built, built.unspent)}
    assert "kinds, levels and ranges of columns" in words
    off = {one.what for one in published(build(load(study(tmp_path, ""), {"program.formula": "sick ~ age"})), built.unspent)}
    assert any("read off the file" in what for what in off)


def test_a_declared_study_is_written_and_read_again(tmp_path):
    derived = '[data.derived.log_bmi]\nas = "log(bmi)"\n[data.derived.old]\nas = "age >= 75"\nrange = [0, 1]\n'
    first = load(study(tmp_path, COLUMNS + derived, data='na_values = ["?", -9]\n'))
    again = parse(tomllib.loads(to_toml(first.model_dump(mode="json"))))
    assert again == first
    assert again.digest == first.digest


@pytest.mark.slow
def test_codes_are_categories_where_they_are_declared(tmp_path):
    with pytest.raises(FormulaInvalid, match=r"declares no levels[\s\S]*\[data\.columns\.education\] levels"):
        check(build(load(study(tmp_path, ""))))
    ended = invoke("run", study(tmp_path), "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.exception
    found = pd.read_csv(tmp_path / "out" / "coefficients.csv", index_col=0)["coef"]
    frame = records()
    frame["second"], frame["third"] = frame["education"] == 2, frame["education"] == 3
    fit = hr.stats.logistic_regression(
        hr.simulate(frame.drop(columns=["sex", "smokes"]), hr.data.iid(parties=3)), "sick ~ age + bmi + second + third"
    )
    assert_allclose(found, fit.coef_, rtol=1e-7)
    assert list(found.index)[-2:] == ["C(education)[T.secondary]", "C(education)[T.tertiary]"]


def test_missing_codes_are_declared(tmp_path):
    given = study(tmp_path, bmi="-9", age="?", data='na_values = ["?"]\n')
    with pytest.raises(OutOfRange, match=rf"'bmi' has 1 of {N} values outside[^\n]*line {LINE}: '-9'"):
        build(load(given, {"data.missing": "drop"}))
    built = build(load(given, {"data.missing": "drop", "data.columns.bmi.na_values": [-9]}))
    assert f"1 of {N} records" in built.table.source
    with pytest.raises(NotFinite, match=rf"'age' has 1 of {N} values missing or infinite, first in line {LINE}"):
        build(load(given))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[data.columns.age]\nknd = "integer"', "unknown key 'data.columns.age.knd'. Did you mean 'kind'"),
        ('[data.colums.age]\nkind = "integer"', "unknown key 'data.colums'. Did you mean 'columns'"),
        ('[data.derived.z]\nof = "log(age)"', "unknown key 'data.derived.z.of'"),
        ('[data.columns.age]\nkind = "integr"', "'integer'"),
        ("[data.columns.age]\nlevels = 3", "a list of words, or a table of word = code"),
        ('[data.columns.age]\nkind = "binary"\nrange = [0, 1]', "binary column 'age' declares a range"),
        ("[data.columns.age]\nrange = [0, 1]\nlow = 0", "Give range, or low and high"),
        ("[data.columns.age]\nrange = [110, 18]", "low <= high"),
        ("[data.ranges]\nage = [0, 1]\n[data.columns.age]\nrange = [0, 1]", "data.ranges and has a range in data.columns"),
    ],
)
def test_what_is_wrong_with_a_declaration_is_told(tmp_path, text, told):
    with pytest.raises(StudyInvalid) as caught:
        load(study(tmp_path, text))
    assert told in str(caught.value)


def test_semicolons_and_decimal_commas(tmp_path):
    path = study(tmp_path, data='separator = ";"\ndecimal = ","\n')
    records().to_csv(tmp_path / "visits.csv", index=False, sep=";", decimal=",")
    assert_array_equal(build(load(path)).table["bmi"], records()["bmi"])
    path.write_text(path.read_text().replace('separator = ";"\ndecimal = ","\n', ""))
    with pytest.raises(SchemaInvalid, match=r'separator = ";"'):
        build(load(path))


# ---- derived columns --------------------------------------------------------------------------------------------------
TABLE = Table.from_pandas(
    pd.DataFrame({"age": [20, 76, 75], "crea": [0.5, 1.0, 2.0], "sex": ["f", "m", "m"]}),
    declared={"age": {"kind": "integer", "range": [18, 110]}, "crea": {"range": [0.1, 20]}},
)


def test_a_derived_column_is_computed_and_its_range_follows():
    found = derive(TABLE, log_crea="np.log(crea)", old="age>=75", ratio=Derivation("age / crea", (0.0, 500.0), "a", clip=True))
    assert_array_equal(found["log_crea"], np.log(TABLE["crea"]))
    assert_array_equal(found["old"], [0, 1, 1])
    assert found.schema["log_crea"].absolute == pytest.approx(np.log(20))
    assert (found.schema["old"].kind, found.schema["old"].formula) == ("binary", "age >= 75")
    assert (found.schema["ratio"].high, found.schema["ratio"].unit) == (500, "a")
    twice = derive(found, twice="2 * log_crea")
    assert_allclose(twice["twice"], 2 * np.log(TABLE["crea"]))


def test_a_comparison_with_a_missing_value_is_missing():
    schema = TABLE.schema.allowing(missing=True)
    table = Table(schema.admit({"age": [20, np.nan, 80], "crea": [1, 1, 1], "sex": ["f", "m", "m"]}), schema)
    found = derive(table, old="age >= 75", other="age != 75")
    assert_array_equal(found["old"], [0, np.nan, 1])
    assert_array_equal(found["other"], [1, np.nan, 1])
    assert found.schema["old"].optional


@pytest.mark.parametrize(
    ("expression", "error", "told"),
    [
        ("log(age - 20)", NotFinite, "column 'x' has 1 of 3 values undefined"),
        ("log(agee)", MissingColumn, "Did you mean 'age'"),
        ("sex", SchemaInvalid, "'sex', which is no number"),
        ("__import__('os')", FormulaInvalid, "HR-310"),
        ("age.__class__", FormulaInvalid, "HR-310"),
        (Derivation("age * 2", (0.0, 100.0)), OutOfRange, "2 of 3 values outside its declared range"),
    ],
)
def test_what_cannot_be_derived_is_refused(expression, error, told):
    with pytest.raises(error) as caught:
        derive(TABLE, x=expression)
    assert told in str(caught.value)
    with pytest.raises(SchemaInvalid, match="is a column already"):
        derive(TABLE, age="crea")


@pytest.mark.slow
def test_a_study_derives_columns(tmp_path):
    derived = '[data.derived.log_bmi]\nas = "log(bmi)"\n[data.derived.old]\nas = "age >= 60"\n'
    given = study(tmp_path, COLUMNS + derived, "sick ~ log_bmi + old")
    ended = invoke(
        "run", given, "--out", tmp_path / "out", "--set", 'data.features=["log_bmi", "old"]', "--set", "data.target=sick"
    )
    assert ended.exit_code == 0, ended.exception
    found = pd.read_csv(tmp_path / "out" / "coefficients.csv", index_col=0)["coef"]
    frame = records().drop(columns=["sex", "smokes"])
    fit = hr.stats.logistic_regression(hr.simulate(frame, hr.data.iid(parties=3)), "sick ~ log(bmi) + I(age >= 60)")
    assert_allclose(found, fit.coef_, rtol=1e-7)


# ---- stations declare the same ----------------------------------------------------------------------------------------
HELD = Schema(
    (
        Column("age", "integer", low=18, high=110, unit="a"),
        Column("education", "category", levels=("primary", "secondary", "tertiary")),
        Column("bmi", "number", low=10, high=80),
        Column("log_bmi", "number", low=2.3, high=4.4, formula="log(bmi)"),
    )
)
SUBMITTED = """
[data]
name = "visits"
[data.columns.age]
kind = "integer"
range = [18, 110]
unit = "a"
[data.columns.education]
levels = { primary = 1, secondary = 2, tertiary = 3 }
[data.derived.log_bmi]
as = "np.log( bmi )"
[program]
name = "means"
"""


def submitted(old="", new=""):
    return parse(tomllib.loads(SUBMITTED.replace(old, new) if old else SUBMITTED))


def test_a_study_that_declares_what_stations_declare_goes_on():
    assert schema_for(submitted(), HELD).names == HELD.names


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('kind = "integer"', 'kind = "number"', "data.columns.age: kind is 'number', and the stations declare 'integer'"),
        ("[18, 110]", "[18, 120]", "data.columns.age: high is 120.0, and the stations declare 110"),
        ('"a"', '"mo"', "data.columns.age: unit is 'mo', and the stations declare 'a'"),
        ("tertiary = 3", "higher = 3", "data.columns.education: levels is ['primary', 'secondary', 'higher']"),
        (
            "np.log( bmi )",
            "log(bmi + 1)",
            "data.derived.log_bmi is log(bmi + 1), and at the stations it is computed as log(bmi)",
        ),
    ],
)
def test_a_study_that_declares_otherwise_is_told_the_difference(old, new, told):
    with pytest.raises(StudyInvalid) as caught:
        schema_for(submitted(old, new), HELD)
    assert told in str(caught.value)
