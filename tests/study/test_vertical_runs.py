"""Studies of parties with different columns run end to end: aligned, carried out, reported; and every program of theirs."""

import json

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from hedgerow.errors import CannotWrite, StudyInvalid
from hedgerow.report import Report
from hedgerow.study import VERTICAL, load, parse, read_report, run_study, will_learn
from hedgerow.study.apart.opened import OpenedStudy
from hedgerow.study.apart.ready import build_apart
from hedgerow.study.keys import keys_of

ROLES = {
    "clinic": ["age", "sex", "smoking"],
    "laboratory": ["ejection_fraction", "serum_creatinine", "death_event"],
    "label": "laboratory.death_event",
    "overlap": 0.9,
}
FORMULA = "death_event ~ age + sex + ejection_fraction + serum_creatinine"


def study(program, **sections):
    found = {
        "name": "heart",
        "data": {"name": "heart_failure"},
        "roles": ROLES,
        "alignment": {"on": "nin"},
        "program": program,
    }
    return parse(found | sections)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    one = study({"name": "vertical_logistic_regression", "formula": FORMULA})
    return run_study(one, tmp_path_factory.mktemp("runs") / "heart", command="hedgerow run heart")


def test_a_logistic_regression_is_that_of_the_common_people_in_one_table(fitted):
    table = build_apart(study({"name": "vertical_logistic_regression", "formula": FORMULA})).pooled().to_pandas()
    x = sm.add_constant(table[["age", "sex", "ejection_fraction", "serum_creatinine"]])
    pooled = sm.Logit(table["death_event"], x).fit(disp=0, method="newton", tol=1e-10, maxiter=100)
    frame = fitted.outcome.coefficients
    assert len(table) == round(0.9 * 299)
    np.testing.assert_allclose((frame["coef"].to_numpy() - pooled.params) / pooled.bse, 0, atol=1e-6)
    np.testing.assert_allclose(frame["se"], pooled.bse, rtol=1e-5)
    assert fitted.outcome.metrics["largest difference from pooled, in se"] < 1e-6


def test_the_folder_is_that_of_any_run_and_the_page_says_who_saw_what(fitted):
    written = {path.name for path in fitted.folder.iterdir()}
    assert {"report.html", "result.json", "ledger.jsonl", "study.toml", "rounds.jsonl", "coefficients.csv"} <= written
    page = (fitted.folder / "report.html").read_text()
    assert "Who saw what" in page
    assert "Letters between roles" in page
    saw = dict(fitted.report.saw)
    assert list(saw) == ["clinic", "laboratory", "hub", "world"]
    assert any("secret order" in said for said in saw["hub"])
    assert read_report(fitted.folder).report == fitted.report
    assert dict(fitted.report.facts)["run"] == "finished"  # how many steps the fit took is among its own numbers
    assert Report.from_json(json.loads((fitted.folder / "result.json").read_text())) == fitted.report


def test_the_ledger_has_every_question_and_rows_have_no_epsilon(fitted):
    entries = [json.loads(line) for line in (fitted.folder / "ledger.jsonl").read_text().splitlines()]
    assert len(entries) == dict(fitted.report.facts)["questions asked"]
    assert "with a row for each record" in fitted.report.privacy
    assert not fitted.report.privacy_ok
    assert "which of its own people are common" in fitted.report.exposed


def test_the_resolved_study_runs_again_to_the_same_coefficients(fitted, tmp_path):
    assert "[partition]" not in (fitted.folder / "study.toml").read_text()
    again = run_study(load(fitted.folder / "study.toml"), tmp_path / "again")
    assert load(fitted.folder / "study.toml").digest == again_digest(fitted)
    np.testing.assert_allclose(again.outcome.coefficients["coef"], fitted.outcome.coefficients["coef"], rtol=1e-6)


def again_digest(fitted):
    return study({"name": "vertical_logistic_regression", "formula": FORMULA}).digest


def test_a_folder_that_holds_a_run_is_refused_and_no_run_is_resumed(fitted):
    one = load(fitted.folder / "study.toml")
    with pytest.raises(CannotWrite):
        run_study(one, fitted.folder)
    with pytest.raises(StudyInvalid, match="begin anew"):
        run_study(one, fitted.folder, resume=True)


def test_a_misspelt_setting_is_refused_before_anybody_is_asked(tmp_path):
    one = study({"name": "vertical_logistic_regression", "formla": FORMULA})
    with pytest.raises(StudyInvalid, match="Did you mean 'formula'"):
        run_study(one, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_program_that_needs_a_label_says_so_before_anybody_is_asked(tmp_path):
    roles = {key: value for key, value in ROLES.items() if key != "label"}
    one = study({"name": "vertical_boost", "trees": 1}, roles=roles)
    with pytest.raises(StudyInvalid, match=r"\[roles\] label"):
        run_study(one, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_guessable_ids_are_refused_unless_the_study_accepts_them(tmp_path):
    (tmp_path / "a.csv").write_text("nin,x\n" + "".join(f"{i},{i % 7}\n" for i in range(50)))
    (tmp_path / "b.csv").write_text("nin,y\n" + "".join(f"{i},{i % 5}\n" for i in range(50)))
    found = {
        "data": {"parties": {"a": str(tmp_path / "a.csv"), "b": str(tmp_path / "b.csv")}},
        "alignment": {"on": "nin", "by": "kkrt"},
        "program": {"name": "alignment"},
    }
    with pytest.raises(Exception, match=r"HR-(413|241|221)"):
        run_study(parse(found), tmp_path / "refused")
    found["alignment"]["small_domain"] = "accepted"
    assert run_study(parse(found), tmp_path / "accepted").outcome.metrics["people in common"] == 50


PRIVATE = {"budget": {"epsilon": 1.0, "delta": 1e-5, "unit": "record"}}
NOISY = {"protection": {"mechanism": {"noise_multiplier": 1.0, "at": "shares", "least": 2}}}


@pytest.mark.parametrize("sections", [PRIVATE, NOISY], ids=["budget", "mechanism"])
@pytest.mark.parametrize(
    "program",
    [
        {"name": "vertical_logistic_regression", "formula": FORMULA},
        {"name": "vertical_poisson_regression", "formula": FORMULA},
        {"name": "vertical_boost", "trees": 1},
        {"name": "splitnn", "epochs": 1},
    ],
    ids=lambda program: program["name"],
)
def test_a_program_that_shows_rows_is_refused_under_a_budget_or_noise_before_the_alignment(program, sections, tmp_path):
    with pytest.raises(StudyInvalid, match="shows rows of records") as error:
        run_study(study(program, **sections), tmp_path / "run")
    assert not error.value.asked
    assert not (tmp_path / "run").exists()


def test_what_a_hidden_join_would_not_keep_to_is_refused():
    one = study({"name": "hidden_join_means", "of": ["serum_creatinine"], "by": "sex"}, **PRIVATE)
    with pytest.raises(StudyInvalid, match="exact sums of a hidden join"):
        build_apart(one)


@pytest.mark.parametrize("given", [{"aggregation": "secagg"}, {"disclosure": 0.5}, {"clip": {"radius": 1.0}}])
def test_protection_of_parties_with_the_same_columns_is_refused(given):
    with pytest.raises(StudyInvalid, match=rf"protection\.{next(iter(given))}"):
        build_apart(study({"name": "vertical_correlation"}, protection=given))


def test_nobody_is_held_out_of_files(tmp_path):
    data = {"parties": {"a": str(tmp_path / "a.csv"), "b": str(tmp_path / "b.csv")}}
    found = {"data": data, "alignment": {"on": "nin"}, "program": {"name": "alignment"}, "evaluation": {"holdout": 0.2}}
    with pytest.raises(StudyInvalid, match=r"evaluation\.holdout: files hold whom they hold"):
        build_apart(parse(found))


SLOW = set(VERTICAL) - {"alignment", "vertical_correlation", "vertical_vif"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in VERTICAL])
def test_every_program_of_columns_apart_runs_on_its_case_and_says_beforehand_who_learns_what(name, tmp_path):
    case = VERTICAL[name].case()
    data = {"name": case.table.name, "records": len(case.table)}
    one = parse(
        {
            "name": name,
            "data": data,
            "roles": dict(case.roles),
            "alignment": {"on": "made up"},
            "program": {"name": name, **case.settings},
            "evaluation": {"holdout": 0.2},
        }
    )
    foreseen = will_learn(one)
    result = run_study(one, tmp_path / name)
    assert result.run.stopped == "finished"
    assert result.run.state.round >= 1
    saw = dict(result.report.saw)
    assert list(saw)[:-2] == list(foreseen)[:-2] == [key for key in case.roles if key not in ("label", "overlap")]
    assert all(foreseen[party] for party in saw if party not in ("hub", "world"))
    assert all(saw[party] for party in saw if party not in ("hub", "world"))
    assert result.report.traffic.rows


def test_every_key_of_every_program_of_columns_apart_is_described():
    for name, listed in VERTICAL.items():
        undescribed = [key for key, one in keys_of(listed).model_fields.items() if not one.description]
        assert not undescribed, (name, undescribed)


def test_a_simulation_knows_columns_in_the_aligned_order():
    built = build_apart(study({"name": "alignment"}))
    opened = OpenedStudy(built)
    opened.handle()
    ages, deaths = opened.column("clinic", "age"), opened.column("laboratory", "death_event")
    pooled = built.pooled().to_pandas()[["age", "death_event"]]
    found = pd.DataFrame({"age": ages, "death_event": deaths})
    pd.testing.assert_frame_equal(
        found.sort_values(["age", "death_event"]).reset_index(drop=True).astype(float),
        pooled.sort_values(["age", "death_event"]).reset_index(drop=True).astype(float),
    )
