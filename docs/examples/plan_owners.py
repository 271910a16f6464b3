from pathlib import Path

import make_loans

from hedgerow.cli.main import app
from hedgerow.study import load, run_study

make_loans.write()  # public_loans.csv for the plan, which reads no loan of an owner; loans.csv for the run
print("$ hedgerow plan loans_owners.toml --write-study planned.toml --write-guards guards")
app(["plan", "loans_owners.toml", "--write-study", "planned.toml", "--write-guards", "guards"], standalone_mode=False)

print("\n$ cat guards/mill.toml")
print(Path("guards/mill.toml").read_text(encoding="utf-8"))

study = load("planned.toml")
reached = dict(run_study(study, "run").report.metrics)["relative fitness"]
print(f"planned.toml forecasts {study.forecast.low:.4f} to {study.forecast.high:.4f}; a run of it reached {reached:.4f}")
