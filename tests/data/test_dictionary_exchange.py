"""Dictionaries of others: Table Schema both ways, REDCap, and drafts from files."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest

from dictionaries import FAULTS, TEXT, local_file
from hedgerow.data import Dictionary
from hedgerow.data.dictionary.drafting import around, draft, drafted_words
from hedgerow.data.dictionary.redcap import columns_of, from_redcap
from hedgerow.data.dictionary.table_schema import from_table_schema, read_table_schema, to_table_schema
from hedgerow.errors import MissingData, SchemaInvalid

HEAD = [
    *("Variable / Field Name", "Form Name", "Section Header", "Field Type", "Field Label"),
    *("Choices, Calculations, OR Slider Labels", "Field Note", "Text Validation Type OR Show Slider Number"),
    *("Text Validation Min", "Text Validation Max", "Identifier?", "Branching Logic (Show field only if...)"),
    *("Required Field?", "Custom Alignment", "Question Number (surveys only)", "Matrix Group Name", "Matrix Ranking?"),
    "Field Annotation",
]


def redcap(*rows):
    """The CSV of REDCap: name, type, label, choices, validation, min, max, identifier."""
    places = [0, 3, 4, 5, 7, 8, 9, 10]
    file = io.StringIO()
    out = csv.writer(file)
    out.writerow(HEAD)
    for row in rows:
        words = [""] * 18
        for place, word in zip(places, row, strict=False):
            words[place] = word
        out.writerow(words)
    return file.getvalue()


FOUR = redcap(
    ("record_id", "text", "Record", "", "", "", "", "y"),
    ("age", "text", "Age", "", "integer", "18", "110"),
    ("sex", "radio", "Sex", "0, female | 1, male"),
    ("notes", "notes", "Notes"),
)


def test_four_rows_of_redcap(tmp_path):
    path = tmp_path / "Project_DataDictionary.csv"
    path.write_text("\ufeff" + FOUR, encoding="utf-8")
    found = from_redcap(path)
    assert (found.columns["age"].kind, found.columns["age"].range) == ("integer", (18, 110))
    assert (found.columns["sex"].levels, found.columns["sex"].codes) == (("female", "male"), ("0", "1"))
    assert [name for name, one in found.columns.items() if one.role == "id"] == ["record_id"]
    assert list(found.todo) == ["notes"]
    assert found.label == "Project_DataDictionary@0.1.0"
    with pytest.raises(MissingData):
        from_redcap(tmp_path / "none.csv")


def test_other_fields_of_redcap():
    found = columns_of(
        redcap(
            ("race", "checkbox", "<b>Race</b>", "1, White | A2, Other, or mixed"),
            ("smokes", "yesno", "Smokes?"),
            ("pain", "slider", "Pain", "none | some | all"),
            ("bmi", "calc", "BMI", "round([kg] / [m]^2, 1)"),
            ("temp", "text", "Temperature", "", "number_1dp", "30"),
            ("born", "text", "Born", "", "date_dmy"),
            ("intro", "descriptive", "Welcome"),
            ("stage", "dropdown", "Stage", "1, other | 2, other | 9, unknown"),
        ),
        "d.csv",
    )
    assert list(found) == ["race___1", "race___a2", "smokes", "pain", "bmi", "temp", "born", "stage"]
    assert found["race___a2"] == {"kind": "binary", "levels": {"no": "0", "yes": "1"}, "label": "Race: Other, or mixed"}
    assert found["pain"]["range"] == [0, 100]
    assert "calc" in found["bmi"]["todo"]
    assert "date_dmy" in found["born"]["todo"]
    assert found["temp"] == {"kind": "number", "digits": 1, "todo": "range: from what it means", "label": "Temperature"}
    assert found["stage"]["levels"] == {"other (1)": "1", "other (2)": "2", "unknown": "9"}
    with pytest.raises(SchemaInvalid, match="no data dictionary of REDCap"):
        columns_of("a,b\n1,2\n", "d.csv")


@pytest.mark.parametrize(
    "more",
    [
        "",
        'description = "for a test"\ndecimal = ","\n',
    ],
)
def test_a_table_schema_exported_and_read_again_is_the_same_dictionary(tmp_path, more):
    text = TEXT.replace("least = 5\n", f"least = 10\n{more}")
    text += '[columns.group]\nlevels = ["a", "b"]\nrole = "treatment"\nconcept = "OMOP:1"\nmany = true\nrequired = true\n'
    text += '[columns.dead]\nkind = "binary"\nlevels = ["alive", "dead"]\n[columns.place]\nrole = "cluster"\n'
    text += '[columns.x]\nkind = "number"\ntodo = "range?"\n[columns.note]\nrole = "ignore"\n'
    known = Dictionary.from_toml(text)
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(to_table_schema(known)))
    again = read_table_schema(path)
    assert again == known
    assert again.digest == known.digest
    fields = {one["name"]: one for one in to_table_schema(known)["fields"]}
    assert fields["sex"]["categories"] == [{"value": "0", "label": "female"}, {"value": "1", "label": "male"}]
    assert fields["age"] | {"constraints": {"minimum": 18, "maximum": 110}} == fields["age"]


def test_of_a_schema_of_others_what_is_not_told_is_a_todo():
    found = from_table_schema(
        {
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
                {"name": "bmi", "type": "number", "missingValues": ["", "?"]},
                {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
                {"name": "born", "type": "date"},
                {"name": "alive", "type": "boolean"},
            ],
            "missingValues": [""],
            "primaryKey": "id",
        }
    )
    assert found.columns["id"].role == "id"
    assert found.columns["age"].required
    assert found.columns["bmi"].na_values == ("?",)
    assert found.columns["sex"].levels == ("f", "m")
    assert found.columns["alive"].kind == "binary"
    assert list(found.todo) == ["bmi", "born"]
    with pytest.raises(SchemaInvalid, match="no Table Schema"):
        from_table_schema({"columns": []})


def test_a_draft_leaves_every_decision_to_a_person(tmp_path):
    path = local_file(tmp_path / "local.csv", FAULTS)
    found = draft(path)
    assert found.decimal == ","
    assert all(one.range is None for one in found.columns.values())
    assert {name: one.kind for name, one in found.columns.items()} == {
        "PID": None,
        "ALTER": "integer",
        "GESCHL": "category",
        "EF": "number",
        "KREA": "number",
        "RAUCHER": "binary",
        "TAGE": "integer",
        "TOD": "binary",
    }
    assert set(found.todo) == set(found.columns)
    assert "999" in found.todo["EF"]
    assert "-9" in found.todo["KREA"]
    assert "'ja'" in found.todo["RAUCHER"]
    assert Dictionary.from_toml(drafted_words(found)).digest == found.digest
    with pytest.raises(SchemaInvalid, match="have a todo"):
        found.schema()


def test_a_round_guess_tells_no_extreme():
    assert around(40.2, 94.7) == (0, 100)
    assert around(-3.1, 230) == (-5, 500)
    for low, high in ((18, 91), (22, 97), (60, 100)):
        assert around(low, high) == (0, 100)


def test_zeros_and_ones_are_binary_in_a_draft_however_they_are_spelt(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n0,0;1\n1,0;2\n;1\n")
    found = draft(tmp_path / "a.csv")
    assert [found.columns[name].kind for name in "ab"] == ["binary", "integer"]


def test_a_draft_of_a_parquet_file(tmp_path):
    frame = pd.DataFrame(
        {
            "age": [60, 70, 80] * 40,
            "when": ["2024-01-02"] * 120,
            "none": [None] * 120,
            "ok": [True, False] * 60,
            "size": ["?", "s", "l"] * 40,
        }
    )
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    found = draft(path)
    assert [(name, one.kind, one.role) for name, one in found.columns.items()] == [
        ("age", "integer", "feature"),
        ("when", None, "ignore"),
        ("none", None, "ignore"),
        ("ok", "binary", "feature"),
        ("size", "category", "feature"),
    ]
    assert (found.columns["size"].levels, found.columns["size"].na_values) == (("l", "s"), ("?",))
    assert "does ? stand for a missing value" in found.todo["size"]


@pytest.mark.parametrize(
    "field",
    [
        {"name": "a", "type": "integer", "constraints": [1]},
        {"name": "a", "type": "integer", "constraints": {"minimum": "low", "maximum": 2}},
        {"name": "a", "type": "string", "categories": [{"label": "x"}]},
        {"name": "a", "type": "boolean", "falseValues": 5, "trueValues": 6},
        {"name": "a", "missingValues": 5},
    ],
)
def test_a_damaged_table_schema_is_refused_with_the_field(field):
    with pytest.raises(SchemaInvalid, match="field 'a' of the Table Schema"):
        from_table_schema({"fields": [field]})
