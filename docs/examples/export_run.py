from pathlib import Path

import pandas

from hedgerow import sklearn
from hedgerow.cli.main import app
from hedgerow.study import parse, run_study

study = {
    "name": "tumours",
    "data": {"name": "breast_cancer"},
    "partition": {"by": "iid", "parties": 5},
    "program": {"name": "logistic_regression", "formula": "malignant ~ mean_radius + mean_texture", "rounds": 4},
    "protection": {"mechanism": {"noise_multiplier": 3.0}},
    "budget": {"epsilon": 4.0, "delta": 1e-5, "unit": "record"},
    "baselines": False,
}
run_study(parse(study), Path("tumours"))

for command in ("tumours --to sklearn", "tumours --to model-card --output card.md"):
    print(f"$ hedgerow export {command}")
    app(["export", *command.split()], standalone_mode=False)

new = pandas.DataFrame({"mean_radius": [20.0, 9.0], "mean_texture": [25.0, 12.0]})
print(sklearn.load("tumours/export/model.sklearn.json").predict(new))
card = Path("card.md").read_text()
print(card.partition("## Privacy\n\n")[2].partition("| noise")[0])
