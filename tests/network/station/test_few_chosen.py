"""A comparison in a formula that chooses a few records of a station is refused where sums are exact, hidden rows or not."""

import numpy as np
import pytest
from test_difference_attack import ACTIVE, FOUR, STRICT

from hedgerow.errors import HedgerowError
from station_house import House, records

LINE = """
name = "risk"
[data]
name = "heart"
target = "income"
features = ["age", "dose", "sick"]
[program]
name = "linear_regression"
formula = "FORMULA"
"""
NOISE = """
[protection.mechanism]
law = "gaussian"
noise_multiplier = 5.0
at = "party"
"""
COLUMNS = ("age", "dose", "sick", "income")
OLD = np.sort(records("alpha")["age"])[-2]


def asked(tmp_path, formula, protection="", names=("alpha",), offset="", **guard):
    """Codes in the first station's journal when a study has run."""
    guards = dict.fromkeys(names, {"disclosure": 1 / 3} | guard)
    house = House(tmp_path, guards, approval="automatic", programs=[{"name": "linear_regression"}])
    text = LINE.replace("FORMULA", formula) + (f'offset = "{offset}"\n' if offset else "") + protection
    assert {one["status"] for one in house.board(text, COLUMNS).values()} == {"approved"}
    built = house.built(text, COLUMNS)
    try:
        for _ in built.listing.program(built.settings)(built.federation):
            pass
    except HedgerowError:
        pass
    return {code for kind, code in house.codes(names[0]) if kind == "ask"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "offset"),
    [(f"income ~ I((age >= {OLD}) * dose)", ""), ("income ~ dose", f"1e9*(age<{OLD})"), (f"income ~ age + I(age < {OLD})", "")],
)
@pytest.mark.parametrize("hidden", [False, True], ids=["rows", "hidden"])
def test_two_records_are_not_chosen_by_a_comparison(tmp_path, formula, offset, hidden):
    names, guard = (FOUR, STRICT) if hidden else (("alpha",), {})
    codes = asked(tmp_path, formula, ACTIVE if hidden else "", names, offset, **guard)
    assert "HR-604" in codes
    assert "answered" not in codes or hidden  # keys and shares are letters too


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "how"),
    [
        ("income ~ age + I(age > 50)", {}),
        (f"income ~ I((age >= {OLD}) * dose)", {"protection": NOISE, "require": {"noise": "party"}}),
        (f"income ~ I((age >= {OLD}) * dose)", {"disclosure": float("inf")}),
    ],
    ids=["many", "noise", "allowed"],
)
def test_what_chooses_many_or_is_covered_or_allowed_is_answered(tmp_path, formula, how):
    assert asked(tmp_path, formula, **how) == {"asked", "answered"}


@pytest.mark.slow
def test_comparisons_that_say_nothing_push_no_pair_aside_at_a_station(tmp_path):
    ages = np.sort(records("alpha")["age"])
    low, high = next((a, b) for a, b in zip(np.unique(ages)[20:], np.unique(ages)[21:], strict=False) if (ages == a).sum() < 5)
    decoys = "+".join(f"(dose > -{i})" for i in range(1, 66))
    codes = asked(tmp_path, f"income ~ 0 + I({decoys}) + I(age >= {low}) + I(age + 0*dose >= {high})")
    assert "HR-604" in codes
    assert "answered" not in codes
