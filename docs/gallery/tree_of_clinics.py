"""One tree of four clinics

A regression tree of depth three from sums of histograms. What leaves a clinic are counts and totals by bin.
"""

from pathlib import Path

from hedgerow.study import load, run_study

report = run_study(load("diabetes-tree"), Path("tree-of-clinics")).report
print(report.title)
