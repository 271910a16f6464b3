"""Odds ratios of five hospitals

A logistic regression by sums, as a study with its report, and again with columns in units of their standard deviation, so that
the coefficients may be compared. Shown is the logarithm of each odds ratio with its interval: what one standard deviation more
adds to the log odds of a malignant tumour.
"""

from pathlib import Path

import hedgerow as hr
from hedgerow.study import load, run_study

report = run_study(load("breast-cancer-glm"), Path("five-hospitals")).report
print(report.privacy)

hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=5), seed=0)
columns = ["mean_radius", "mean_texture", "mean_smoothness"]
fit = hr.stats.logistic_regression(hr.stats.standardise(hospitals, columns), f"malignant ~ {' + '.join(columns)}")
print(fit.odds_ratios().round(1))
picture = fit.plot()
