"""Private training until a budget is spent

FedAvg over a hundred parties with two digits each. Every party's update is clipped, the total is noised, and the budget of
epsilon 8 a party ends the run.
"""

from pathlib import Path

from hedgerow.study import load, run_study

report = run_study(load("digits-fedavg"), Path("private-digits")).report
print(report.privacy)
