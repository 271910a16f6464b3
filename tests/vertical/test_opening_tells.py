"""What an opening at the hub tells, as docs/vertical.md says it: values of columns that take few, of people without names."""

import itertools

import numpy as np
import pandas as pd
from vertical_locals import patterned

import hedgerow as hr
from hedgerow.vertical import X25519

WEIGHTS = {"gender": 0.31, "smokes": -0.77, "gluc": 0.113, "height": 0.0173, "active": -0.57}
LEVELS = {"gender": (0, 1), "smokes": (0, 1), "gluc": (1, 2, 3), "height": tuple(range(150, 200)), "active": (0, 1)}


def test_one_opening_with_known_coefficients_is_a_table_of_unnamed_people():
    """1200 combinations of five columns have as many predictors, so each person's values follow; never whose they are."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({name: rng.choice(levels, 90) for name, levels in LEVELS.items()})
    people["nin"] = [f"person-{n}" for n in rng.integers(1 << 60, size=90)]
    tables = {"clinic": people[["nin", "gender", "smokes", "height"]], "town": people[["nin", "gluc", "active"]][::-1]}
    both = hr.simulate(tables, on="nin", seed=0).align(on="nin", by=X25519(least=10))
    opened = both.sum(patterned, {name: np.array([weight]) for name, weight in WEIGHTS.items()})[:, 0]

    combinations = np.array(list(itertools.product(*LEVELS.values())), float)
    predictors = combinations @ np.array(list(WEIGHTS.values()))
    found = combinations[np.abs(opened[:, None] - predictors).argmin(1)]
    truth = people[list(LEVELS)].to_numpy(float)
    assert sorted(map(tuple, found)) == sorted(map(tuple, truth))
    assert (found == truth).all(1).mean() < 0.5  # in an order that the hub does not know
