"""`hedgerow plan`: text that fits a terminal, JSON, a page, a study and guards; mistakes are told before a file is written."""

import io
import json
from importlib import import_module

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hedgerow.cli.main import app
from hedgerow.core.toml import read_toml, to_toml
from hedgerow.errors import CannotWrite, StudyInvalid
from hedgerow.market.plans.owners_plan import money

OWNERS = {
    "harbour": {"records": 40000, "epsilon": [0.2, 10.0], "cost": 1.0},
    "mill": {"records": 20000, "epsilon": [0.2, 10.0], "cost": 1.5},
    "chapel": {"records": 800, "epsilon": [0.05, 0.2], "cost": 9.0},
}
FILE = {
    "title": "Lending rates",
    "model": {"inputs": 10, "rounds": 100, "step": 3.0},
    "pilot": {"residual": 0.049, "amplification": 0.378, "bias": 7.5e-5},
    "value": {"per_fitness": 4e5},
    "owners": OWNERS,
}


@pytest.fixture(autouse=True)
def few_points_of_the_curve(monkeypatch):
    monkeypatch.setattr(import_module("hedgerow.market.plans.plan"), "FACTORS", (0.3, 1.0, 3.0))


@pytest.fixture
def owners(tmp_path):
    path = tmp_path / "owners.toml"
    path.write_text(to_toml(FILE))
    return path


def told(*arguments):
    found = CliRunner().invoke(app, ["plan", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.stdout


@pytest.mark.slow
def test_text_tells_whom_at_which_epsilon_at_what_price_and_what_is_not_seen(owners):
    text = told(owners)
    assert max(map(len, text.splitlines())) <= 140
    table = text[: text.index("Forecast")]
    assert max(map(len, table.splitlines())) <= 80
    flat = " ".join(text.split())
    assert "2 of 3 owners, 100 questions, gaussian noise at the owners, delta 1e-06, add-remove" in flat
    assert "Left out: chapel (from a price of" in flat
    for words in (
        "0.20 is 60 right guesses of 100",
        "in 90 of 100 runs between",
        "equal weights",
        "The learner pays",
        "Heterogeneity",
        "Truthfulness",
        "[party_budgets]",
    ):
        assert words in flat
    assert read_toml(text[text.index("[program]") :])["program"].keys() >= {"epsilons", "weights", "n_records", "left_out"}


@pytest.mark.slow
def test_json_has_every_number_of_the_text_and_more(owners):
    found = json.loads(told(owners, "--json"))
    assert [one["name"] for one in found["owners"]] == list(OWNERS)
    harbour, _, chapel = found["owners"]
    assert harbour["takes_part"]
    assert not chapel["takes_part"]
    assert harbour["surplus"] == pytest.approx(harbour["payment"] - harbour["cost"])
    assert found["fitness"]["low"] < found["fitness"]["expected"] < found["fitness"]["high"]
    assert found["deviation"] <= 1e-6
    assert found["payments"] == pytest.approx(sum(one["payment"] for one in found["owners"]))
    factors = [one["factor"] for one in found["curve"]]
    assert (factors[0], factors[-1]) == pytest.approx((0.3, 3.0))
    assert {"noise", "assumptions", "unseen", "known", "digest", "price", "wrote"} <= found.keys()


def test_without_costs_no_money_is_mentioned(tmp_path):
    path = tmp_path / "owners.toml"
    plain = {name: {key: value for key, value in one.items() if key != "cost"} for name, one in OWNERS.items()}
    path.write_text(to_toml({key: value for key, value in FILE.items() if key != "value"} | {"owners": plain}))
    text = told(path)
    assert "3 of 3 owners" in text
    assert not any(word in text for word in ("pay", "price", "cost", "currency"))


@pytest.mark.slow
def test_a_page_and_guards_are_written(owners, tmp_path):
    text = told(owners, "--out", tmp_path / "plan.html", "--write-guards", tmp_path / "guards")
    assert "Guards: 2 in" in " ".join(text.split())
    page = (tmp_path / "plan.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "harbour" in page
    assert sorted(one.name for one in (tmp_path / "guards").iterdir()) == ["harbour.toml", "mill.toml"]
    epsilon = read_toml((tmp_path / "guards" / "harbour.toml").read_bytes())["guard"]["budget"]["epsilon"]
    assert f"{epsilon!r}" in page


def test_a_study_is_written_from_a_study_alone(owners, tmp_path):
    with pytest.raises(StudyInvalid, match="needs a study"):
        told(owners, "--write-study", tmp_path / "study.toml", "--out", tmp_path / "plan.html")
    assert not (tmp_path / "plan.html").exists()


def test_no_file_that_is_read_is_written_and_no_guard_without_a_name(owners, tmp_path):
    before = owners.read_bytes()
    with pytest.raises(CannotWrite, match=r"--out .* is the file of owners"):
        told(owners, "--out", tmp_path / "other" / ".." / owners.name)
    with pytest.raises(CannotWrite, match=r"--write-question .* is what --out writes, too"):
        told(owners, "--out", tmp_path / "x", "--write-question", tmp_path / "x")
    assert owners.read_bytes() == before
    base = {"data": {"path": "rows.csv", "target": "y"}, "program": {"name": "gradient_queries", "n_records": 5}}
    (tmp_path / "base.toml").write_text(to_toml(base))
    (tmp_path / "owners.csv").write_text("owner,records,epsilon_low,epsilon_high\nSt. Anna,50,1,2\n")
    file = {"study": "base.toml", "pilot": {"data": "public.csv"}, "owners": "owners.csv"}
    owners.write_text(to_toml(file))
    for name in ("base.toml", "rows.csv", "owners.csv"):
        with pytest.raises(CannotWrite, match=r"is (the|a file)"):
            told(owners, "--write-study", tmp_path / name)
    (tmp_path / "owners.csv").write_text("owner,records,epsilon_low,epsilon_high\nSt/Anna,50,1,2\n")
    with pytest.raises(CannotWrite, match="no name of a file"):
        told(owners, "--out", tmp_path / "plan.html", "--write-guards", tmp_path / "guards")
    assert not (tmp_path / "plan.html").exists()


def test_an_owner_that_holds_no_records_of_the_study_is_told_before_it_is_written(owners, tmp_path):
    (tmp_path / "rows.csv").write_text("at,a,y\n" + "Anna,0.1,0.2\nBerg,0.3,0.1\n" * 5)
    data = {"path": "rows.csv", "target": "y", "features": ["a"], "ranges": {"a": [0, 1], "y": [0, 1]}}
    program = {"name": "gradient_queries", "n_records": 10, "rounds": 5}
    base = {"data": data, "partition": {"by": "by_column", "column": "at"}, "program": program}
    (tmp_path / "base.toml").write_text(to_toml(base))
    numbers = {"residual": 0.02, "amplification": 0.4, "bias": 1e-4}
    for name in ("Berg", "Dorf"):
        two = {one: {"records": 5, "epsilon": 2.0} for one in ("Anna", name)}
        owners.write_text(to_toml({"study": "base.toml", "pilot": numbers, "owners": two}))
        if name == "Berg":
            told(owners, "--write-study", tmp_path / "study.toml")
            continue
        with pytest.raises(StudyInvalid, match=r"'Dorf' are no party[\s\S]*Parties: Anna, Berg"):
            told(owners, "--write-study", tmp_path / "study.toml")


def test_an_option_in_brackets_is_told(owners):
    assert "pilot.epsilon" in CliRunner().invoke(app, ["plan", "--help"]).stdout


def test_the_study_of_the_private_question_is_written_to_be_submitted(tmp_path):
    base = {
        "data": {"name": "hie", "target": "mdvis", "features": ["physlm"], "ranges": {"physlm": [0, 1], "mdvis": [0, 80]}},
        "program": {"name": "gradient_queries", "n_records": 5, "rounds": 5, "box": 2.0, "ridge": 0.1},
        "budget": {"epsilon": 5.0, "delta": 1e-6, "unit": "record", "ledger": "owners.sqlite"},
    }
    (tmp_path / "base.toml").write_text(to_toml(base))
    path = tmp_path / "owners.toml"
    owners = {"alpha": {"records": 60, "epsilon": 2.0}, "beta": {"records": 40, "epsilon": 1.0}}
    path.write_text(to_toml({"study": "base.toml", "pilot": {"epsilon": 0.1}, "owners": owners}))
    said = told(path, "--write-question", tmp_path / "question.toml")
    assert "submit it with --stations alpha,beta" in " ".join(said.split())
    program = read_toml((tmp_path / "question.toml").read_text())["program"]
    expected = {"name": "pilot_moments", "epsilon": 0.1, "noise_at": "party", "n_records": 100, "box": 2.0, "ridge": 0.1}
    assert expected.items() <= program.items()
    assert not (tmp_path / "owners.sqlite").exists()


@pytest.mark.parametrize("width", range(20, 60, 3))
def test_a_number_of_thousands_stays_on_its_line(width, monkeypatch):
    terminal = io.StringIO()
    command = import_module("hedgerow.cli.plan")
    monkeypatch.setattr(command, "console", Console(width=width, file=terminal))
    command._say(f"Payments {money(1_234_567.5)} in all. A unit of relative fitness is worth {money(30_000)} to the learner.")
    assert all(money(sum_) in terminal.getvalue() for sum_ in (1_234_567.5, 30_000))
    assert max(map(len, terminal.getvalue().splitlines())) <= width
