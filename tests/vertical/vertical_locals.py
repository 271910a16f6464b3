"""Local functions of tests on aligned parties, which other processes can import."""

import numpy as np

import hedgerow as hr

OWN = ("salary", "age", "dose")


@hr.local
def numbers(broadcast, party, rng):
    """The sum of a party's own numbers, for each person."""
    return sum(np.asarray(party[name], float) for name in OWN if name in party.columns)[:, None]


@hr.local
def salaries(broadcast, party, rng):
    """What people earn, in float32."""
    return np.asarray(party["salary"], np.float32)


@hr.local
def ages(broadcast, party, rng):
    """How old people are, in float32, at each party's own scale."""
    return np.asarray(party["age"] if "age" in party.columns else party["salary"], np.float32)


@hr.local
def remember(broadcast, party, rng):
    """Keep a product of what came with what is here."""
    here = np.asarray(party["age"] if "age" in party.columns else party["salary"], float)
    party.state["seen"] = np.append(party.state.get("seen", np.zeros(0)), here @ party.received)


@hr.local
def told(broadcast, party, rng):
    """What a party remembers, as rows: for a test alone."""
    return np.broadcast_to(party.state.get("seen", np.zeros(1))[-1:], (len(party.w), 1)).copy()


@hr.local
def one_row(broadcast, party, rng):
    """One row too few."""
    return np.zeros((1, 1))


@hr.local
def patterned(broadcast, party, rng):
    """A linear predictor of whatever columns a party has."""
    parts = [np.asarray(party[name], float) * weight[0] for name, weight in broadcast.items() if name in party.columns]
    return sum(parts)[:, None]


@hr.local
def three_times(broadcast, party, rng):
    """Three columns of rows."""
    return np.ones((len(party.w), 3))


@hr.local
def scaled(broadcast, party, rng):
    """A party's own numbers, brought to about one."""
    return numbers(broadcast, party, rng) / 100
