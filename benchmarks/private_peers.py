"""What `private_models.py` runs in a peer's own environment: interpret's DP-EBM, or diffprivlib's models.

    PYTHON benchmarks/private_peers.py FOLDER

PYTHON has interpret-core and pandas, or diffprivlib 0.6.6. FOLDER holds `data.npz` and `asked.json`; scores of the test rows
are written there, and a line of JSON is printed for each fit. No label of the test rows is in the folder.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Fit = Callable[[float, int], np.ndarray]
"""Epsilon and seed to scores of the test rows."""


def main() -> None:
    """Fit every model of this environment at every epsilon with every seed."""
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    with np.load(folder / "data.npz") as data:
        held = dict(data)
    count = 0
    for name, differs, fit in models(asked, held):
        for epsilon in asked["epsilons"]:
            for seed in range(asked["seeds"]):
                began = time.process_time()
                scores = fit(epsilon, seed)
                seconds = time.process_time() - began
                path, count = folder / f"{count}.npy", count + 1
                np.save(path, np.asarray(scores, np.float64))
                told = {"model": name, "differs": differs, "epsilon": epsilon, "seconds": seconds, "scores": path.name}
                print(json.dumps(told), flush=True)


def models(asked: dict[str, Any], held: dict[str, np.ndarray]) -> Iterator[tuple[str, str, Fit]]:
    """The models of whichever peer is installed here: name, in what it differs, and how it is fitted."""
    try:
        from interpret.privacy import DPExplainableBoostingClassifier
    except ImportError:
        yield from of_diffprivlib(held)
        return
    import pandas

    def table(part: str) -> Any:
        levels = asked["levels"]
        columns = {name: held[f"{part} {name}"] for name in asked["columns"]}
        words = {name: np.array(levels[name])[columns[name].astype(int)] for name in levels}
        return pandas.DataFrame(columns | words)

    train, test = table("train"), table("test")

    def boosting(epsilon: float, seed: int) -> np.ndarray:
        model = DPExplainableBoostingClassifier(
            feature_names=asked["columns"],
            feature_types=["nominal" if name in asked["levels"] else "continuous" for name in asked["columns"]],
            privacy_bounds={k: asked["ranges"][name] for k, name in enumerate(asked["columns"]) if name in asked["ranges"]},
            epsilon=epsilon,
            delta=asked["delta"],
            random_state=seed,
            n_jobs=1,
        )
        return np.asarray(model.fit(train, held["y"].astype(int)).predict_proba(test)[:, 1] - 0.5)

    yield (
        "interpret's DP-EBM, defaults",
        "add-remove; its number of records and the levels that occur are not charged; 300 rounds, 32 bins of equal mass",
        boosting,
    )


def of_diffprivlib(held: dict[str, np.ndarray]) -> Iterator[tuple[str, str, Fit]]:
    """Logistic regression on the same rows, and on rows of its own length; naive Bayes."""
    from diffprivlib.models import GaussianNB, LogisticRegression

    y = held["y"].astype(int)

    def logistic(rows: str, norm: float, intercept: bool) -> Fit:
        def fit(epsilon: float, seed: int) -> np.ndarray:
            model = LogisticRegression(epsilon=epsilon, data_norm=norm, fit_intercept=intercept, random_state=seed)
            return np.asarray(model.fit(held[f"train {rows}"], y).decision_function(held[f"test {rows}"]))

        return fit

    def bayes(epsilon: float, seed: int) -> np.ndarray:
        model = GaussianNB(epsilon=epsilon, bounds=(0.0, 1.0), random_state=seed).fit(held["train own"], y)
        both = model.predict_joint_log_proba(held["test own"])
        return np.asarray(both[:, 1] - both[:, 0])

    pure = "delta 0; replace-one, its number of records is public; objective perturbation (Chaudhuri 2011)"
    yield "diffprivlib's logistic, our binned rows", f"{pure}; data_norm 1", logistic("bins", 1.0, False)
    yield "diffprivlib's logistic, our rows", f"{pure}; data_norm 1", logistic("unit", 1.0, False)
    norm = float(held["norm"])
    yield "diffprivlib's logistic, as documented", f"{pure}; data_norm {norm:.3g}", logistic("own", norm, True)
    yield "diffprivlib's naive Bayes", "delta 0; replace-one, its number of records is public; columns in [0, 1]", bayes


if __name__ == "__main__":
    main()
