"""Odds ratios of five hospitals

A logistic regression by sums, as a study with its report: coefficients with standard errors, beside what each hospital
would have found alone.
"""

from pathlib import Path

from hedgerow.study import load, run_study

report = run_study(load("breast-cancer-glm"), Path("five-hospitals")).report
print(report.privacy)
