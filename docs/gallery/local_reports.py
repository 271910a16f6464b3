"""Shares from people who trust nobody

Each of 6366 people says something noisy about her occupation, and nobody holds the truth. The error of the shares falls
as epsilon grows.
"""

import numpy as np

import hedgerow as hr
from hedgerow.report import Curve, Series

table = hr.data.load("fair")
people = asked = hr.simulate(table, hr.data.stores(), seed=0)
budgets = (0.5, 1.0, 2.0, 4.0)
state = hr.last(hr.stats.frequencies(people, "occupation", epsilon=budgets[0], epsilons=budgets[1:]))

truth = np.bincount(table["occupation"], minlength=state.counts.shape[1]) / len(table)
errors = [float(np.sqrt(np.mean((counts / len(table) - truth) ** 2))) for counts in state.counts]
print(f"{state.counts.shape[1]} occupations, {state.round} rounds of reports")

picture = Curve(
    "Error of the shares of occupations",
    "epsilon",
    "root mean squared error",
    (Series("optimised unary encoding", budgets, tuple(errors)),),
    log="x",
)
