"""Ragged parties with a logistic target, and their gradients by hand."""

import numpy as np

import hedgerow as hr
from helpers import party_of, run_of

SCHEMA = hr.data.Schema((hr.data.Column("x", "number", shape=(4,)), hr.data.Column("label", "binary", role="target")))


def clinics(parties=6, records=90):
    """A federation of parties of different sizes, on `InProcess`."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(records, 4))
    label = (x @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=records) * 0.3 > 0).astype(float)
    table = hr.data.Table(SCHEMA.admit({"x": x, "label": label}), SCHEMA)
    return hr.simulate(table, hr.data.dirichlet_quantity(parties=parties, alpha=2.0, min_records=3), seed=0)


def gradient(w, x, y):
    """Mean gradient of the log-loss; w holds four slopes and the intercept."""
    error = 1 / (1 + np.exp(-(x @ w[:4] + w[4]))) - y
    return np.append(x.T @ error, error.sum()) / len(y)


def descent(fed, name, round, w, *, learning_rate, epochs, batch_size, added=lambda v: 0.0):
    """Local SGD of one party as a numpy loop, with its own shuffles; returns where it ends and its steps."""
    party = party_of(fed, name)
    rng, v, n, steps = run_of(fed).streams.stream(round, name, "local"), w.copy(), len(party["x"]), 0
    for order in [rng.permutation(n) for _ in range(epochs)]:
        for start in range(0, n, batch_size or n):
            batch = order[start : start + (batch_size or n)]
            v = v - learning_rate * (gradient(v, party["x"][batch], party["label"][batch]) + added(v))
            steps += 1
    return v, steps, n, gradient(w, party["x"], party["label"])


def flat(state):
    """Slopes and intercept of a linear module's state."""
    return np.append(state.weights["1.weight"].ravel(), state.weights["1.bias"])
