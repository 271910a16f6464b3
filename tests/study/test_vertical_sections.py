"""`[roles]`, `[alignment]` and `[data.parties]`: what is read, and what is refused before anybody is asked."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from hedgerow.errors import HedgerowError, StudyInvalid
from hedgerow.study import VERTICAL, bundled, check_study, load, parse, run_study, will_learn
from hedgerow.study.apart.at_stations import built_at_stations
from hedgerow.study.apart.ready import build_apart, refuse_sections
from hedgerow.study.apart.tables import catalogued, refuse_columns, tables_apart
from hedgerow.study.build import build
from hedgerow.study.keys import settings_of

CLINIC, LABORATORY = ["age", "sex"], ["ejection_fraction", "serum_creatinine", "death_event"]


def heart(**sections):
    found = {
        "data": {"name": "heart_failure"},
        "roles": {"clinic": CLINIC, "laboratory": LABORATORY, "label": "laboratory.death_event"},
        "alignment": {"on": "nin"},
        "program": {"name": "alignment"},
    }
    return {key: value for key, value in (found | sections).items() if value is not None}


def refused(found, *words):
    with pytest.raises(StudyInvalid) as error:
        refuse_sections(parse(found))
    for word in words:
        assert word in str(error.value)
    return str(error.value)


def test_defaults_of_an_alignment_are_those_of_the_protocol():
    alignment = parse(heart()).alignment
    assert (alignment.normal, alignment.by, alignment.least, alignment.small_domain) == (
        "nfkc-casefold",
        "x25519",
        10,
        "refused",
    )


def test_unknown_keys_are_refused_with_the_nearest_all_at_once():
    with pytest.raises(StudyInvalid) as error:
        parse(heart(alignment={"on": "nin", "lest": 3, "topolgy": "ring"}, roles={"clinic": CLINIC, "lable": "clinic.age"}))
    for near in ("'least'", "'topology'", "'label'"):
        assert f"Did you mean {near}" in str(error.value)


@pytest.mark.parametrize("by", ["rsa", "X25519"])
def test_a_protocol_that_is_not_known_is_refused(by):
    with pytest.raises(StudyInvalid, match=r"alignment\.by"):
        parse(heart(alignment={"on": "nin", "by": by}))


@pytest.mark.parametrize("name", ["hub", "world"])
def test_a_party_bears_no_name_of_another_role(name):
    with pytest.raises(StudyInvalid, match="the name of another role"):
        parse(heart(roles={name: ["age"], "clinic": ["sex"]}))
    with pytest.raises(StudyInvalid, match="the name of another role"):
        parse(heart(data={"parties": {name: "a.csv", "b": "b.csv"}}, roles=None))


def test_a_study_apart_has_alignment_roles_and_a_program_for_it():
    said = refused(heart(alignment=None, program={"name": "logistic_regression"}), "alignment is missing", "same columns")
    assert "2 problem(s)" in said
    refused(heart(roles=None), "roles are missing")
    refused(heart(roles={"clinic": CLINIC}), "two are the fewest")


def test_a_program_of_columns_apart_is_refused_where_no_roles_are():
    study = parse({"data": {"name": "heart_failure"}, "program": {"name": next(iter(VERTICAL))}})
    with pytest.raises(StudyInvalid, match="alignment is missing"):
        build(study)


def test_a_column_has_one_holder_and_the_label_is_held():
    refused(heart(roles={"clinic": CLINIC, "laboratory": [*LABORATORY, "age"]}), "'age' is at clinic and at laboratory")
    refused(heart(roles={"clinic": CLINIC, "laboratory": LABORATORY, "label": "lab.death"}), "no party 'lab'", "laboratory")
    refused(heart(roles={"clinic": CLINIC, "laboratory": LABORATORY, "label": "clinic.death_event"}), "clinic has no column")
    refused(heart(roles={"clinic": CLINIC, "laboratory": LABORATORY, "label": "clinic"}), "not of the form party.column")


def test_sections_of_parties_with_the_same_columns_are_refused_together():
    said = refused(
        heart(
            partition={"by": "iid", "parties": 3},
            engine={"dropout_rate": 0.1},
            data={"name": "heart_failure", "target": "death_event"},
            evaluation={"on": "parties"},
        )
    )
    for key in ("partition", "engine.dropout_rate", "data.target", "evaluation"):
        assert key in said


def test_kkrt_is_for_two_parties():
    three = {"clinic": ["age"], "ward": ["sex"], "laboratory": LABORATORY}
    refused(heart(roles=three, alignment={"on": "nin", "by": "kkrt"}), "'kkrt' is for two parties, and there are 3")


def test_unknown_columns_are_refused_before_data_are_read(tmp_path):
    study = parse(heart(roles={"clinic": ["agee"], "laboratory": ["sex", "death_event[0]"]}))
    with pytest.raises(StudyInvalid) as error:
        build_apart(study)
    assert "Did you mean 'age'" in str(error.value)
    assert "0 axes" in str(error.value)


def test_a_set_is_cut_by_columns_with_the_declared_overlap():
    held, whole, _ = tables_apart(parse(heart(roles={"clinic": CLINIC, "laboratory": LABORATORY, "overlap": 0.8})))
    clinic, laboratory = held["clinic"], held["laboratory"]
    assert clinic.table.schema.names == tuple(CLINIC)
    common = np.intersect1d(clinic.ids, laboratory.ids)
    assert len(common) == round(0.8 * len(whole))
    assert len(np.union1d(clinic.ids, laboratory.ids)) == len(whole)
    assert clinic.ids[:20].tolist() != laboratory.ids[:20].tolist()
    np.testing.assert_array_equal(clinic.table["age"], whole["age"][clinic.persons])


def test_the_cut_repeats_itself_by_the_seed():
    one, two, other = (tables_apart(parse(heart(seed=seed)))[0]["clinic"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.ids, two.ids)
    assert one.ids.tolist() != other.ids.tolist()


def test_parties_keep_records_by_their_own_columns():
    roles = {"clinic": CLINIC, "laboratory": LABORATORY, "keep": {"age": (50, 60), "ejection_fraction": (30, 80)}}
    built = build_apart(parse(heart(roles=roles)))
    assert built.held["clinic"].table["age"].min() >= 50
    assert built.held["clinic"].table["age"].max() <= 60
    assert built.held["laboratory"].table["ejection_fraction"].min() >= 30
    pooled = built.pooled()
    whole = built.whole
    expected = (whole["age"] >= 50) & (whole["age"] <= 60) & (whole["ejection_fraction"] >= 30)
    assert len(pooled) == expected.sum()


def test_a_part_of_an_array_is_a_column():
    study = parse(
        {
            "data": {"name": "digits", "records": 50},
            "roles": {"left": ["image[0:32]"], "right": ["image[32:]", "digit"], "label": "right.digit"},
            "alignment": {"on": "person"},
            "program": {"name": "alignment"},
        }
    )
    held, whole, _ = tables_apart(study)
    left, right = held["left"], held["right"]
    assert (left.table.schema["image[0:32]"].shape, right.table.schema["image[32:]"].shape) == ((32,), (32,))
    np.testing.assert_array_equal(left.table["image[0:32]"], whole["image"][left.persons][:, :32])


FILES = """
[data.parties]
tax = "tax.csv"
town = "town.csv"
[data.columns.salary]
range = [0, 100000]
[roles]
label = "tax.salary"
[alignment]
on = "nin"
least = 3
[program]
name = "alignment"
"""


def files(tmp_path, tax="nin,salary\n007Á,1000\n008b,2000\n009c,1500\n", town="nin,age\n008b,30\n 007á,40\n"):
    (tmp_path / "tax.csv").write_text(tax, encoding="utf-8")
    (tmp_path / "town.csv").write_text(town, encoding="utf-8")
    (tmp_path / "wages.toml").write_text(FILES, encoding="utf-8")
    return load(tmp_path / "wages.toml")


def test_a_file_for_each_party_is_read_with_its_ids_as_they_are_written(tmp_path):
    built = build_apart(files(tmp_path))
    assert built.held["tax"].ids.tolist() == ["007Á", "008b", "009c"]
    assert built.schemas["tax"].names == ("salary",)
    assert (built.schemas["tax"]["salary"].low, built.schemas["tax"]["salary"].high) == (0, 100_000)
    assert built.whole is None


def test_the_pooled_yardstick_joins_ids_in_the_form_of_the_alignment(tmp_path):
    pooled = build_apart(files(tmp_path)).pooled()  # 007Á is 007á at the other party
    assert sorted(zip(pooled["salary"], pooled["age"], strict=True)) == [(1000, 40), (2000, 30)]
    exact = files(tmp_path).model_copy(update={"alignment": files(tmp_path).alignment.model_copy(update={"normal": "exact"})})
    assert len(build_apart(exact).pooled()) == 1


def test_what_files_lack_is_said_of_all_of_them(tmp_path):
    study = files(tmp_path, tax="nim,salary\n1,2\n", town="nun,age\n1,2\n")
    with pytest.raises(StudyInvalid) as error:
        build_apart(study)
    assert "tax: no column 'nin'" in str(error.value)
    assert "town: no column 'nin'" in str(error.value)


def test_a_study_file_of_parties_with_the_same_columns_keeps_its_digest():
    assert load("breast-cancer-glm").digest == DIGEST


DIGEST = "4a7e45f3badd3cde"


def test_the_studies_on_the_page_are_lawful_and_that_of_files_passes_its_check(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "study.md").read_text(encoding="utf-8")
    section = page.partition("## Different columns of the same people")[2].partition("\n## ")[0]
    first, second = re.findall(r"```toml\n(.*?)```", section, flags=re.DOTALL)
    study = parse(tomllib.loads(first))
    refuse_sections(study)
    refuse_columns(study, catalogued(study))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tax.csv").write_text("nin,salary\n" + "".join(f"p{i},{1000 + i * i}\n" for i in range(20)))
    (tmp_path / "town.csv").write_text("nin,age,hours\n" + "".join(f"P{i},{20 + i},{30 + i % 7}\n" for i in range(20)))
    assert check_study(parse(tomllib.loads(second)))["columns"] == {"tax": ("salary",), "town": ("age", "hours")}


@pytest.mark.parametrize("name", [name for name in bundled() if load(name).apart])
def test_every_bundled_study_of_columns_apart_is_lawful_as_far_as_its_data_do_not_decide(name):
    for changes in ({}, load(name).quick):
        study = load(name, changes)
        settings_of(refuse_sections(study), study.program.model_extra)
        refuse_columns(study, catalogued(study))
        assert set(will_learn(study)) == {*study.roles.columns, "hub", "world"}


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("death_event ~ age:ejection_fraction", "HR-310"),
        ("death_event ~ age + smokes", "HR-403"),
        ("serum_creatinine ~ log(age - 39)", "HR-210"),
    ],
)
def test_what_columns_refuse_is_refused_before_anybody_is_asked(formula, code, tmp_path):
    name = "vertical_logistic_regression" if formula.startswith("death") else "vertical_linear_regression"
    study = parse(heart(program={"name": name, "formula": formula}))
    for refused_by in (check_study, lambda one: run_study(one, tmp_path / "run")):
        with pytest.raises(HedgerowError) as error:
            refused_by(study)
        assert (error.value.code, error.value.asked) == (code, False)
    assert not (tmp_path / "run").exists()


def test_nobody_is_held_out_at_stations():
    schemas = build_apart(parse(heart())).schemas
    built_at_stations(parse(heart()), schemas)
    with pytest.raises(StudyInvalid, match=r"evaluation\.holdout choose records of a simulation"):
        built_at_stations(parse(heart(evaluation={"holdout": 0.2})), schemas)
