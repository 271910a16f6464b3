"""One tree of four clinics

A regression tree of depth three from sums of histograms: each leaf with the mean of its records. What leaves a clinic are
counts and totals by bin.
"""

from pathlib import Path

from hedgerow.study import load, run_study

result = run_study(load("diabetes-tree"), Path("tree-of-clinics"))
report = result.report
print(result.outcome.text["The tree"])
picture = result.outcome.tables["Nodes"]
