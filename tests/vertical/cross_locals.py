"""Columns of parties that lie apart, for tests of their products; other processes can import them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.core.question import travels
from hedgerow.crypto.psi import AlignedRows

COLUMNS = {"tax": ["pay", "rent"], "town": ["age"], "school": ["marks", "absent"], "clinic": []}
PEOPLE = 60


@travels
@dataclass(frozen=True)
class Listed:
    """People in the order of the lists, which are the same: an alignment for tests of what comes after it."""

    least: int = 10
    name: str = "as listed"

    @property
    def shows(self):
        return {}

    def read(self, values):
        return [str(value).encode() for value in values]

    def peer(self, me, names, ids, *, entropy=None):
        yield {}
        return AlignedRows(np.arange(len(ids)), {})


def tables(names, n=PEOPLE, seed=0):
    """A table for each party over the same people, and all columns side by side."""
    rng = np.random.default_rng(seed)
    made = {
        name: pd.DataFrame(
            {"nin": np.arange(n), **{c: rng.uniform(-1, 1, n) for c in COLUMNS[name]}, "other": rng.uniform(size=n)}
        )
        for name in names
    }
    return made, np.concatenate([made[name][COLUMNS[name]].to_numpy() for name in names], 1)


@hr.local
def own(broadcast, party, rng):
    """A party's columns."""
    return np.array([party[name] for name in COLUMNS[party.id]]).reshape(-1, len(party["other"])).T


@hr.local
def ages(broadcast, party, rng):
    """What the town has on the right, in two columns, times the broadcast; the others have nothing."""
    n = len(party["other"])
    if party.id != "town":
        return np.zeros((n, 0))
    return np.stack([party["age"], np.ones(n)], 1) * (1.0 if broadcast is None else broadcast)


@hr.local
def uneven(broadcast, party, rng):
    """Right rows of one column here and two there."""
    return np.ones((len(party["other"]), 1 if party.id == "tax" else 2))


@hr.local
def predictor(broadcast, party, rng):
    """A linear predictor."""
    return own(None, party, rng).sum(1)


@hr.local
def long(broadcast, party, rng):
    """Columns ten times as long as declared; at the town, not a number for one person."""
    found = 10.0 * own(None, party, rng)
    if party.id == "town":
        found[3] = np.nan
    return found


@hr.local
def failing(broadcast, party, rng):
    """What fails for somebody among the people."""
    if party.id == "town" and party["age"].max() <= 1:  # of no made-up person either
        raise ValueError("somebody is too young")
    return own(None, party, rng)


@hr.local
def ragged(broadcast, party, rng):
    """As many columns as people decide."""
    return np.ones((len(party["other"]), 1 + int(party["other"][0] > 0.5)))


@hr.local
def nearly_alike(broadcast, party, rng):
    """A column of the town that is other than the rest for as many people as the broadcast says."""
    found = np.zeros((len(party["other"]), 2 if party.id == "town" else 0))
    if party.id == "town":
        found[:, 0] = party["age"]
        found[:, 1] = float(broadcast[1])
        found[: int(broadcast[0]), 1] += 1.0
    return found
