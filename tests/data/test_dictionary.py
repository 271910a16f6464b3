"""The dictionary: what it refuses, what its digest is of, and the schema that follows."""

from __future__ import annotations

import math
import warnings

import pytest

import hedgerow as hr
from dictionaries import TEXT
from hedgerow.data import Column, Dictionary, Schema, Table
from hedgerow.errors import FormulaInvalid, HedgerowWarning, MissingColumn, MissingData, SchemaInvalid


@pytest.fixture
def dictionary():
    return Dictionary.from_toml(TEXT)


def edited(old, new):
    assert TEXT.count(old) == 1
    return Dictionary.from_toml(TEXT.replace(old, new))


def test_a_schema_follows_with_derived_columns_at_the_end(dictionary):
    schema = dictionary.schema()
    assert schema.names[-2:] == ("elderly", "log_creatinine")
    assert schema["sex"].levels == ("female", "male")
    assert schema["sex"].optional
    assert (schema["age"].low, schema["age"].high, schema["age"].unit) == (18, 110, "a")
    assert not schema["death"].optional
    assert schema.in_role("event") == ("death",)
    assert schema.in_role("time") == ("followup",)
    assert schema["patient"] == Column("patient", "integer", "id", optional=True)  # numbers that tell apart, without words
    assert (schema["log_creatinine"].low, schema["log_creatinine"].high) == pytest.approx((math.log(0.2), math.log(20)))
    assert schema["elderly"].kind == "binary"
    assert schema["elderly"].formula == "age >= 75"
    assert dictionary.schema(["log_creatinine"]).names == ("serum_creatinine", "log_creatinine")
    assert dictionary.label == "heart-failure@1.2.0"
    with pytest.raises(MissingColumn, match="'sexe' is not in dictionary heart-failure"):
        dictionary.schema(["sexe"])


def test_a_declaration_knows_codes_and_marks(dictionary):
    sex = dictionary.declared("sex")
    assert sex.codes == {"0": "female", "1": "male"}
    assert sex.told_kind == "category"
    assert dictionary.declared("ejection_fraction").na_values == ("999",)


def test_written_and_read_again_it_is_the_same(dictionary):
    again = Dictionary.from_toml(dictionary.to_toml())
    assert again == dictionary
    assert again.digest == dictionary.digest


def test_the_digest_is_of_the_meaning_and_not_of_the_file():
    head, *parts = TEXT.strip().replace("[columns.age]\n", "\0").split("\n[")
    whole = Dictionary.from_toml(TEXT)
    tables = [f"[{part}".replace("\0", "[columns.age]\n") for part in parts]
    other = "\n\n# another order\n".join([*reversed(tables), head.replace("\0", "[columns.age]\n")])
    other = other.replace("range = [18, 110]", "range   = [18.0, 110.0]").replace("age >= 75", "(age>=75)")
    other = other.replace('["", "NA", "-9"]', '[-9, "NA", ""]')
    assert other != TEXT
    assert Dictionary.from_toml(other).digest == whole.digest
    assert len(whole.digest) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range = [18, 110]", "range = [18, 120]"),
        ('{ female = "0", male = "1" }', '{ male = "1", female = "0" }'),  # another reference
        ('{ female = "0", male = "1" }', '{ female = "1", male = "0" }'),
        ('na_values = ["999"]', 'na_values = ["998"]'),
        ('outside = "missing"', 'outside = "clip"'),
        ("least = 5", "least = 10"),
        ('role = "time"', 'role = "feature"'),
        ('unit = "mg/dL"', 'unit = "g/dL"'),
        ("age >= 75", "age > 75"),
        ('version = "1.2.0"', 'version = "1.2.1"'),
        ("digits = 1", "digits = 2"),
        ("required = true", "required = false"),
        ("Age at admission", "Age"),
    ],
)
def test_whatever_changes_the_meaning_changes_the_digest(dictionary, old, new):
    assert edited(old, new).digest != dictionary.digest


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("__import__('os').system('x')", "is not a function"),
        ("age.__class__", "is not arithmetic on columns"),
        ("log(secret)", "'secret', which is not declared"),
        ("patient + 1", "whose role is id"),
        ("sex * 2", "which is no number"),
        ("[a for a in age]", "is not arithmetic"),
        ("elderly + other", "'other', which is not in the table"),
    ],
)
def test_expressions_are_refused_before_data_are_opened(expression, said):
    with pytest.raises(SchemaInvalid) as caught:
        Dictionary.from_toml(TEXT + f'[derived.other]\nas = "{expression}"\n')
    assert said in str(caught.value)


def test_derived_columns_may_stand_in_any_order():
    text = TEXT + '[derived.a]\nas = "b + 1"\n[derived.b]\nas = "age / 10"\n'
    assert Dictionary.from_toml(text).schema(["a"]).names == ("age", "b", "a")


def test_all_problems_are_told_at_once():
    text = TEXT.replace("range = [18, 110]", "rnage = [18, 110]").replace('role = "time"', 'role = "tme"')
    with pytest.raises(SchemaInvalid) as caught:
        Dictionary.from_toml(text.replace('version = "1.2.0"', 'version = "1.2"'))
    said = str(caught.value)
    assert "3 problems" in said
    assert "Did you mean 'range'?" in said
    assert "Did you mean 'time'" in said
    assert '"1.2.0"' in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{ female = "0", male = "1" }', '{ female = "0", male = "0" }', "a code of its own"),
        ("range = [18, 110]", "range = [110, 18]", "smaller number first"),
        ('kind = "integer"\nrange = [18, 110]', "range = [18, 110]", "has no kind"),
        ('levels = { no = "0", yes = "1" }', 'levels = ["no", "yes", "?"]', "declares 3 levels"),
        ('levels = { female = "0", male = "1" }', 'kind = "category"', "has no levels"),
        ('levels = { female = "0", male = "1" }', f"levels = {[str(i) for i in range(51)]}", "51 levels; 50 are the most"),
        ('range = [5, 90]\nunit = "%"', 'unit = "%"', "outside = 'missing' and no range"),
        ('na_values = ["999"]', 'na_values = "999"', "give a list"),
        ('as = "age >= 75"', "", "as is missing"),
    ],
)
def test_contradictions_are_refused(old, new, said):
    with pytest.raises(SchemaInvalid) as caught:
        edited(old, new)
    assert said in str(caught.value)


def test_more_than_fifty_levels_need_a_word():
    assert (
        len(edited('levels = { female = "0", male = "1" }', f"levels = {list(range(60))}\nmany = true").schema()["sex"].levels)
        == 60
    )


def test_units_are_doubted_and_kept():
    with pytest.warns(HedgerowWarning, match="age: unit 'years'. UCUM writes 'a'"):
        assert edited('unit = "a"', 'unit = "years"').schema()["age"].unit == "years"
    with pytest.warns(HedgerowWarning, match="Did you mean 'mg/dL'"):
        edited('unit = "mg/dL"', 'unit = "mg/dl"')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edited('unit = "mg/dL"', 'unit = "{packs}"')


def test_no_study_uses_a_dictionary_with_a_todo(tmp_path):
    path = tmp_path / "dictionary.toml"
    path.write_text(TEXT.replace("range = [18, 110]", 'todo = "range?"'))
    found = Dictionary.read(path)
    assert found.todo == {"age": "range?"}
    for use in (found.schema, found.completed, lambda: Dictionary.read(path, complete=True)):
        with pytest.raises(SchemaInvalid, match="1 columns have a todo"):
            use()
    with pytest.raises(MissingData):
        Dictionary.read(tmp_path / "other.toml")
    with pytest.raises(SchemaInvalid, match="no TOML"):
        Dictionary.from_toml("[dictionary")


def test_an_id_is_in_no_model_and_no_statistic(dictionary):
    schema = Schema((*dictionary.schema(["age", "patient", "death"]).columns,))
    assert schema.features == ("age",)
    with pytest.raises(SchemaInvalid, match="role 'id' and cannot be a feature"):
        schema.with_roles(features=["patient"])
    columns = {"age": [50.0, 60.0, 70.0, 80.0], "patient": [0.0, 1.0, 1.0, 2.0], "death": [0.0, 1.0, 0.0, 1.0]}
    federation = hr.simulate(Table(schema.admit(columns), schema), hr.data.iid(2))
    with pytest.raises(FormulaInvalid, match="role 'id'"):
        hr.stats.linear_regression(federation, formula="age ~ patient")
    with pytest.raises(SchemaInvalid, match="role 'id'"):
        hr.stats.means(federation, ["patient"])
