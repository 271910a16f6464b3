"""How few records may a party have? Its exact sums at Newton's own path, solved for the records; and the rule against it."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares
from scipy.special import expit

import hedgerow as hr
from hedgerow.core.disclosure import MOST
from hedgerow.data import Table
from hedgerow.engines import told, view
from hedgerow.errors import DisclosureExceeded

COLUMNS = ["a", "b", "c", "d"]
FORMULA = f"ill ~ {' + '.join(COLUMNS)}"
ROUNDS, P = 4, 5


def frame(n=200):
    rng = np.random.default_rng(4)
    found = pd.DataFrame(rng.normal(size=(n, 4)), columns=COLUMNS)
    return found.assign(ill=rng.random(n) < expit(0.8 * found["a"] - 0.5 * found["b"] - 0.3))


def parted(small, **how):
    """A party of a few records beside one that has many."""
    whole = frame()
    return hr.simulate({"small": whole[:small], "large": whole[small:]}, **how)


def fitted(federation):
    hr.stats.logistic_regression(federation, FORMULA)


def seen_of_small(federation):
    """What the server saw: the points that it asked at, and the small party's score and information there."""
    points = [one.values["beta"] for one in view(federation, "small") if one.kind == "broadcast"]
    rows = [one for one in view(federation, "server") if one.kind == "row" and one.source == "small"]
    sums = [one.layout.unflatten(one.values) for one in rows]
    return points[:ROUNDS], sums[:ROUNDS]


def told_of(X, y, points):
    """The same of records that are guessed."""
    parts = []
    for beta in points:
        mu = expit(X @ beta)
        parts += [X.T @ (y - mu), ((X * (mu * (1 - mu))[:, None]).T @ X)[np.triu_indices(P)]]
    return np.concatenate(parts)


def solved(points, sums, n, tries=20):
    """Records whose sums are those that were seen."""
    goal = np.concatenate([part for one in sums for part in (one["score"], one["information"][np.triu_indices(P)])])
    events = round(float(sums[0]["score"][0] + (n * expit(0.0))))  # at coefficients of zero
    y, rng = (np.arange(n) < events).astype(float), np.random.default_rng(0)

    def rows(guess):
        return np.column_stack([np.ones(n), guess.reshape(n, P - 1)])

    best = None
    for _ in range(tries):
        begin = rng.normal(size=n * (P - 1))
        found = least_squares(lambda guess: told_of(rows(guess), y, points) - goal, begin, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        best = found if best is None or found.cost < best.cost else best
        if best.cost < 1e-20:
            break
    return rows(best.x)


def distance(found, small):
    """Of each record of the small party to the nearest that was found, in standard deviations."""
    held = frame()[COLUMNS].to_numpy()[:small]
    return np.array([np.abs(found[:, 1:] - one).max(1).min() for one in held])


@pytest.mark.parametrize("n", [3, 5, pytest.param(8, marks=pytest.mark.slow)])
def test_without_the_rule_four_rounds_of_a_regression_give_back_every_record_of_a_small_party(n):
    federation = parted(n, record_views=True)
    fitted(federation)
    assert told(federation).ratio > 1
    assert distance(solved(*seen_of_small(federation), n), n).max() < 1e-5


@pytest.mark.parametrize("n", [3, 5, 8, 12])
def test_the_rule_refuses_the_regression_before_any_party_is_asked(n):
    federation = parted(n, record_views=True, disclosure=MOST)
    with pytest.raises(DisclosureExceeded, match=f"holds {5 * n} values") as refused:
        fitted(federation)
    assert not refused.value.asked
    assert len(federation.ledger) == 0
    assert seen_of_small(federation) == ([], [])


@pytest.mark.parametrize("blank", ["feature", "weight"])
def test_records_that_answer_nothing_make_room_for_no_question(blank):
    """140 records without values, or without weight, beside five: those five were asked as much as without them."""
    whole = frame()
    padded = pd.DataFrame(np.nan, index=range(140), columns=COLUMNS).assign(ill=0.0)
    declared = {"ill": {"kind": "binary"}}
    small = whole[:5].assign(w=1.0)
    if blank == "weight":
        padded = whole[5:145].copy()
        declared |= {"w": {"kind": "integer", "low": 0, "high": 1, "role": "weight"}}
    padded = padded.assign(w=0.0 if blank == "weight" else 1.0)
    parts = {"small": pd.concat([small, padded]), "large": whole[5:].assign(w=1.0)}
    if blank == "feature":
        parts = {name: part.drop(columns="w") for name, part in parts.items()}
    tables = {
        name: Table.from_pandas(part.reset_index(drop=True), declared=declared, missing="drop") for name, part in parts.items()
    }
    federation = hr.simulate(tables, disclosure=MOST)
    with pytest.raises(DisclosureExceeded):
        hr.stats.logistic_regression(federation, FORMULA)
