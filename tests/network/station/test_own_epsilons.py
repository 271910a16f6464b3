"""Gradient queries at stations that agreed on epsilons of their own: what a guard makes of the station's own noise."""

import pytest

from station_house import House

OWNERS = {"alpha": 0.5, "beta": 1.53, "gamma": 2.98}
QUERIES = """
name = "queries"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "gradient_queries"
rounds = 3
n_records = 180
model = "logistic"
neighbours = "add-remove"
epsilons = { alpha = 0.5, beta = 1.53, gamma = 2.98 }
"""


@pytest.mark.slow
def test_the_noise_that_a_guard_wants_is_compared_with_the_station_s_own(tmp_path):
    """Multipliers are 6 at alpha and 1.007 at gamma; what gamma adds says nothing of alpha's noise."""
    wants = {"approval": "automatic", "programs": [{"name": "gradient_queries"}]}
    wants |= {"require": {"noise": "party", "noise_multiplier": 1.5}}
    said = House(tmp_path, dict.fromkeys(OWNERS, wants)).board(QUERIES)
    assert {name: one["status"] for name, one in said.items()} == {"alpha": "approved", "beta": "approved", "gamma": "refused"}
    assert said["gamma"]["code"] == "HR-606"


def test_a_study_that_would_have_a_station_add_less_noise_than_it_agreed_on_is_refused_before_a_question(tmp_path):
    """The coordinator writes names as it likes; what counts is what they make of this station's noise."""
    budget = {"epsilon": 0.5, "delta": 1e-6, "accountant": "basic"}
    house = House(tmp_path, {"alpha": {"budget": budget}}, approval="automatic", programs=[{"name": "gradient_queries"}])
    swapped = house.board(QUERIES.replace("alpha = 0.5, beta = 1.53, gamma = 2.98", "alpha = 2.98, gamma = 0.5"))["alpha"]
    assert (swapped["status"], swapped["code"]) == ("refused", "HR-213")
    nameless = house.board(QUERIES.replace("alpha = 0.5", "alfa = 0.5"), study=b"another study...")["alpha"]
    assert (nameless["status"], nameless["code"]) == ("refused", "HR-214")
