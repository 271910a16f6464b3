"""A coordinator that makes the values held look many: by names of columns, by parties that nobody knows, and by folds."""

from dataclasses import replace

import numpy as np
import pytest
from test_hostile_coordinator import first_question

from hedgerow.core.disclosure import width
from hedgerow.crypto import PairwiseMasks
from hedgerow.data import Column, Schema, Table
from hedgerow.network.station.disclosed import AskedNumbers
from hedgerow.network.station.local_data import local_data
from hedgerow.study.disclosed import columns_of
from station_house import LOGISTIC, STUDY, House, config_of, parse_text, records

FOUR = ("alpha", "beta", "gamma", "delta")
STRICT = {"require": {"hidden_rows": True, "adversary": "active"}, "least_cohort": 3, "disclosure": 1 / 3}
ACTIVE = '[protection.aggregation]\nby = "secagg"\nadversary = "active"\n'
MORE = [f"x{k}" for k in range(24)]
NUMBERS = tuple(Column(name, "number", low=0, high=1) for name in ("age", "dose", "sick", *MORE))
WIDE = Schema((*NUMBERS, Column("town", "category", levels=("a", "b", "c", "d"))))
PATH = """
name = "path"
[data]
name = "heart"
target = "age"
features = ["dose"]
[program]
name = "penalty_path"
formula = "age ~ dose"
n_penalties = 2
"""


def house(tmp_path, n=60, names=("alpha",), **guard):
    allowed = [{"name": name} for name in ("logistic_regression", "penalty_path", "histogram")]
    of = House(tmp_path, dict.fromkeys(names, {"disclosure": 1 / 3} | guard), approval="automatic", programs=allowed)
    for name in names:
        config = of.configs[name]
        table = Table(config.declared.admit(records(name, n)), config.declared)
        of.start(name, local_data(config, table, bytes(32)))
    return of


def refusal(of, text, columns, **told):
    of.board(text, columns, **told)
    found = of.stations["alpha"].submissions.get(STUDY.hex())
    return found.code, found.because


# ---- columns ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("formula", "n"),
    [
        ("sick ~ age + dose", 3),
        (f"sick ~ age + I(dose + 0*({'+'.join(MORE)}))", 3),
        (f"sick ~ age + dose:{':'.join(MORE[:8])}", 3),
        (f"I(sick + 0*({'+'.join(MORE)})) ~ age", 2),
        ("sick ~ age * dose", 3),
        ("sick ~ town * dose", 3),
        ("sick ~ . - x0", 27),
        ("sick ~ age + dose" + " " * 500, 3),
        (f"sick ~ age + I(dose + 0*({'+'.join(MORE * 6)}))", 3),
    ],
)
def test_a_formula_reads_no_more_columns_than_its_design_has(formula, n):
    study = parse_text(LOGISTIC.replace("sick ~ age + dose", formula))
    assert width(WIDE, columns_of(study, WIDE)) == n


@pytest.mark.slow
def test_a_formula_of_six_hundred_terms_reads_all_its_columns():
    names = [f"c{k}" for k in range(601)]
    study = parse_text(LOGISTIC.replace("sick ~ age + dose", f"c0 ~ {' + '.join(names[1:])}"))
    schema = Schema((*(Column(name, "number", low=0, high=1) for name in names), *NUMBERS))
    assert columns_of(study, schema) == frozenset(names)


def test_a_program_that_names_its_target_alone_reads_one_column(tmp_path):
    text = """
name = "h"
[data]
name = "heart"
target = "age"
features = ["dose", "income", "sick"]
[program]
name = "histogram"
column = "age"
edges = EDGES
""".replace("EDGES", str(np.linspace(20, 90, 41).round(6).tolist()))
    code, why = refusal(house(tmp_path), text, ("age", "dose", "income", "sick"))
    assert code == "HR-216"
    assert "holds 60 values" in why


# ---- parties ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("more", [{"zeta": 1000}, {"beta": 1000}], ids=["unknown", "many"])
def test_a_study_counts_no_more_parties_than_the_roster_names(tmp_path, more):
    of = house(tmp_path, 8, FOUR, **STRICT)
    assert refusal(of, LOGISTIC + ACTIVE, ("age", "dose", "sick"))[0] == "HR-216"
    of = house(tmp_path / "more", 8, FOUR, **STRICT)
    code, why = refusal(of, LOGISTIC + ACTIVE, ("age", "dose", "sick"), stations=dict.fromkeys(FOUR, 1) | more)
    assert code == "HR-242"
    assert "the roster here names" in why


def test_a_question_is_about_no_more_parties_than_the_study(tmp_path):
    of = house(tmp_path, 60, FOUR, **STRICT)
    of.board(LOGISTIC + ACTIVE)
    seen = first_question(of, LOGISTIC + ACTIVE, ("age", "dose", "sick"))
    guard = config_of("alpha").guard
    found = AskedNumbers.of(guard, replace(seen, asked=1004), "secagg", 3, None, 4)
    assert found.parties == 4


def test_values_of_one_group_of_masks_count_and_not_those_of_all(tmp_path):
    """The server sees the total of each group: 90 values of three stations, and not 360 of twelve."""
    names, masks = tuple(f"s{k:02d}" for k in range(12)), '\n[protection.aggregation]\nby = "pairwise"\n'
    found = {}
    for extra in ("", "group = 3\n"):
        path = tmp_path / f"of {extra}"
        guards = {name: {"disclosure": 1 / 3, "require": {"hidden_rows": True}} for name in names}
        of = House(path, guards, approval="automatic", programs=[{"name": "logistic_regression"}])
        for name in names[:2]:
            table = Table(of.configs[name].declared.admit(records(name, 10)), of.configs[name].declared)
            of.start(name, local_data(of.configs[name], table, bytes(32)))
        of.board(LOGISTIC + masks + extra, stations=dict.fromkeys(names, 1))
        found[extra] = of.stations["s00"].submissions.get(STUDY.hex())
    assert found[""].status == "approved"
    assert found["group = 3\n"].code == "HR-216"
    assert "together hold 90 values" in found["group = 3\n"].because


def test_a_question_counts_the_values_of_a_group(tmp_path):
    of = house(tmp_path, 60, FOUR, **STRICT)
    of.board(LOGISTIC + ACTIVE)
    seen = first_question(of, LOGISTIC + ACTIVE, ("age", "dose", "sick"))
    guard = config_of("alpha").guard
    asked = [AskedNumbers.of(guard, seen, "pairwise masks", 3, None, 4, PairwiseMasks(group=n).together) for n in (None, 3)]
    assert [one.parties for one in asked] == [4, 3]
    assert asked[1].hidden == pytest.approx(asked[0].hidden * 4 / 3)


# ---- folds ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("n", "folds", "code"), [(20, "folds = 90", "HR-511"), (60, "folds = 13", "HR-604"), (20, "", "HR-604")]
)
@pytest.mark.parametrize("hidden", ["", ACTIVE], ids=["rows", "hidden"])
def test_a_fold_has_at_least_five_records_of_a_station(tmp_path, n, folds, code, hidden):
    of = house(tmp_path, n, FOUR, **STRICT if hidden else {"disclosure": 50.0})
    assert refusal(of, PATH + folds + "\n" + hidden, ("age", "dose"))[0] == code


def test_a_path_of_few_folds_is_approved(tmp_path):
    of = house(tmp_path, 60, FOUR, **STRICT)
    assert {one["status"] for one in of.board(PATH + ACTIVE, ("age", "dose")).values()} == {"approved"}
