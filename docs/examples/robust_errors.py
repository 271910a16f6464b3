"""Robust errors and weights of a regression: unequal variances, wards, a survey."""

import numpy as np

import hedgerow as hr

table = hr.data.load("heart_failure")
rng = np.random.default_rng(0)
patients = table.to_pandas().assign(ward=rng.integers(0, 40, len(table)), stands_for=rng.integers(1, 6, len(table)) / 2)
table = hr.data.Table.from_frame(patients).declare(stands_for=(0, 5))
hospitals = hr.simulate(table, hr.data.iid(parties=4), seed=0)

formula = "serum_creatinine ~ I(age / 10) + anaemia"
for given in (
    {},
    {"errors": "HC3"},
    {"errors": "cluster", "cluster": "ward"},
    {"probability": "stands_for"},
):
    fit = hr.stats.linear_regression(hospitals, formula, **given)
    low, high = fit.conf_int()[1]
    print(f"{fit.errors:8}{fit.coef_[1]:.4f} ({low:.4f} to {high:.4f})")
print(fit.summary()[-210:])
