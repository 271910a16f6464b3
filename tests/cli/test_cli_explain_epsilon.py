"""`hedgerow privacy explain`: sentences, tables, page, object; of a study what it loses."""

import json
import re

import pytest
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.errors import BudgetInvalid
from hedgerow.market.epsilon.meaning import meaning

STUDY = """
[data]
name = "breast_cancer"
features = ["mean_radius"]
[partition]
by = "iid"
parties = 2
[program]
name = "gradient_queries"
model = "logistic"
n_records = 400
rounds = 5
epsilons = { "party 1" = 0.5, "party 2" = 0.5 }
[evaluation]
on = "none"
holdout = 0.3
"""


def ended(*arguments, width="160"):
    return CliRunner().invoke(app, ["privacy", "explain", *map(str, arguments)], env={"COLUMNS": width})


def said(*arguments):
    found = ended(*arguments)
    assert found.exit_code == 0, found.exception
    return re.sub(r"\s+", " ", found.output)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.study.accuracy.POINTS", 2)
    (tmp_path / "tumours.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path / "tumours.toml"


def test_a_planned_study_has_its_own_forecast(tmp_path):
    found = '[forecast]\nmeasure = "relative fitness"\nexpected = 0.02\nlow = 0.01\nhigh = 0.05\nsource = "By a plan."\n'
    (tmp_path / "planned.toml").write_text(STUDY.replace("holdout = 0.3", "") + found, encoding="utf-8")
    told = said("--study", tmp_path / "planned.toml")
    assert "planned expects a relative fitness of 0.02, in 90 of 100 runs between 0.01 and 0.05. By a plan." in told


def test_one_epsilon_in_words_and_numbers():
    told = said("--epsilon", 1)
    for sentence in meaning(1.0).sentences:
        assert sentence in told
    assert "│ 50 % │ 73.1 % │ 26.9 % │ 50 % │ 73.1 % │" in told
    assert "│ advantage │ 46.2 % │" in told
    assert "│ there or not │ 0.5481 │" in told
    assert "Gaussian" not in told


def test_with_delta_gaussian_noise_stands_beside_the_bound():
    told = said("--epsilon", 1, "--delta", 1e-5)
    assert "│ advantage │ 46.2 % │ 10.7 % │" in told
    assert "has multiplier 3.731" in told


def test_several_epsilons_are_a_table():
    told = said("-e", 0.1, "-e", 1, "-e", 10, "-e", 1)
    assert "│ 1 │ 2.718 │ 2.67 % │ 23.2 % │ 73.1 % │ 73.1 │" in told
    assert "│ 10 │ 0.9999 │ 1 │ 3.3219 │ 0 │" in told
    assert told.count("│ 1 │") == 2 + 1  # once in each table, and one bit of ten
    assert "Whoever" not in told


def test_neighbours_priors_and_values():
    told = said("-e", 1, "--adjacency", "replace-one", "--prior", 0.2, "--values", 4)
    assert "that one given person has one datum rather than another" in told
    assert "│ 20 % │ 40.5 % │" in told
    assert re.search(r"a value, one of 4 │ 0\.92\d+ │ 2 │", told)


def test_page_and_object(tmp_path):
    page = tmp_path / "page.html"
    found = ended("-e", 1, "-d", 1e-5, "--json", "--out", page)
    told = json.loads(found.stdout)
    assert told["meanings"][0]["advantage"] == pytest.approx(0.462123, abs=5e-7)
    assert told["meanings"][0]["presence"]["bits"] == pytest.approx(0.548064, abs=5e-7)
    assert (told["study"], told["cost"]) == (None, None)
    written = page.read_text(encoding="utf-8")
    assert written.count("<svg") >= 5
    assert "What epsilon 1 means" in written


def test_a_study_says_its_epsilon_and_what_it_loses(study, tmp_path):
    page = tmp_path / "page.html"
    told = said("--study", study, "--out", page)
    assert "by a factor of at most 1.649" in told
    assert "What tumours loses at epsilon 0.5:" in told
    assert "replace-one neighbours; known from" in told
    assert "that one given person has one datum rather than another" in told
    assert "epsilon of every owner" in page.read_text(encoding="utf-8")


def test_a_study_at_other_epsilons(study):
    told = json.loads(ended("--study", study, "-e", 2, "-e", 4, "--json").stdout)
    assert [m["epsilon"] for m in told["meanings"]] == [2, 4]
    assert [row[0].partition(",")[0] for row in told["cost"]["tables"][0]["rows"]] == ["2", "4"]


@pytest.mark.parametrize("epsilons", [(1,), (0.1, 1, 10)])
def test_eighty_columns_are_enough(epsilons):
    out = ended(*(part for e in epsilons for part in ("-e", e)), "-d", 1e-6, width="80").output
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((), "no epsilon"),
        (("--study", "breast-cancer-glm"), "no epsilon"),
        (("-e", -1), "epsilon -1"),
        (("-e", "inf"), "epsilon inf"),
        (("-e", 1, "-d", 1), "delta 1"),
        (("-e", 1, "--adjacency", "swap"), "swap"),
        (("-e", 1, "--prior", 1.5), "1.5"),
        (("-e", 1, "--values", 1), "1"),
    ],
    ids=str,
)
def test_refuses_with_value_and_remedy(arguments, word):
    found = ended(*arguments).exception
    assert isinstance(found, BudgetInvalid)
    assert word in str(found)
    assert found.remedy
