"""The pages on plans and forecasts say numbers that can be computed again."""

import re
from importlib import import_module
from math import exp
from pathlib import Path

import pytest

from hedgerow.study.plans.owners_file import OwnersFile, load_owners

DOCS = Path(__file__).parents[2] / "docs"
PLAN = (DOCS / "plan.md").read_text(encoding="utf-8")


def test_what_an_epsilon_promises_is_what_the_table_says():
    table = PLAN.partition("| epsilon | odds change")[2].partition("\n\n")[0]
    rows = [[float(number) for number in re.findall(r"[\d.]+", line)] for line in table.splitlines()[2:]]
    assert len(rows) == 6
    for epsilon, odds, belief, advantage in rows:
        for said, right, digits in (
            (odds, exp(epsilon), 1 if epsilon < 3 else 0),
            (belief, 100 / (1 + exp(-epsilon)), 1 if epsilon < 10 else 3),
            (advantage, (exp(epsilon) - 1) / (exp(epsilon) + 1), 2 if epsilon < 10 else 4),
        ):
            assert said == pytest.approx(round(right, digits), abs=1e-9)


def test_each_half_of_the_plan_page_is_marked_and_led_to():
    halves = ["## For the lawyer", "## For the statistician"]
    assert [line for line in PLAN.splitlines() if line in halves] == halves
    assert all(f"(#{half[3:].lower().replace(' ', '-')})" in PLAN for half in halves)


def test_each_key_of_an_owners_file_is_on_the_page_and_in_no_other_words(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    shown = import_module("hooks").on_page_markdown(PLAN)
    for heading, path in (("Top level", ()), ("`[pilot]`", ("pilot",)), ("`[owners.NAME]`", ("owners",))):
        table = shown.partition(f"### {heading}\n")[2].partition("\n### ")[0]
        section = OwnersFile
        for key in path:
            kinds = (section.model_fields[key].annotation, *getattr(section.model_fields[key].annotation, "__args__", ()))
            section = next(kind for kind in kinds if hasattr(kind, "model_fields"))
        said = set(re.findall(r"(?m)^\| `(\w+)` \|", table))
        assert said == set(section.model_fields) - {"digest"}, heading


def test_the_example_of_owners_is_a_file_of_owners():
    found = load_owners(DOCS / "examples" / "loans_owners.toml")
    assert set(found.owners) == {"harbour", "mill", "orchard", "chapel"}
    assert found.study.endswith("loans.toml")
