"""One report with every section, small enough to read."""

from __future__ import annotations

import math

import pytest

from hedgerow.report import Comparison, Curve, Grid, Heat, Report, Series

ROUNDS = (1.0, 2.0, 3.0, 4.0)


@pytest.fixture
def report() -> Report:
    return Report(
        title="Digits across five parties",
        study="digits-fedavg",
        description="FedAvg on digits that stay where they are.",
        privacy="Every party is protected with ε = 7.2 at δ = 10⁻⁵.",
        privacy_ok=True,
        facts=(("parties", 5), ("records", 1437)),
        metrics=(("accuracy", 0.9361), ("ε spent", 7.2)),
        curves=(
            Curve(
                "Accuracy by round",
                "round",
                "accuracy",
                (
                    Series("FedAvg", ROUNDS, (0.2, 0.6, math.inf, 0.9)),
                    Series("pooled", (0.0,), (0.95,), "reference"),
                    Series("party 3", ROUNDS, (0.1, 0.4, 0.5, 0.6), "muted"),
                ),
            ),
            Curve("Privacy spent", "round", "ε", (Series("ledger", ROUNDS, (1.0, 3.0, 5.0, 7.2)),), line=8.0),
        ),
        heat=Heat("How labels are spread", ("a", "b"), ("0", "1"), ((5, 0), (2, 9)), "Most parties hold few digits."),
        comparison=Comparison(
            "accuracy",
            True,
            (("federated", 0.9361, ""), ("centralised", 0.968, "pooled"), ("local only", 0.71, "median")),
            "Together is better than alone.",
            (("local only", 0.4, 0.86),),
        ),
        parties=Grid("Per party", ("party", "records"), (("a", 5), ("b", 11))),
        left=Grid("What left each party", ("query", "times"), (("learn.fedavg:local_sgd", 15),)),
        tables=(Grid("Coefficients", ("", "coef", "p"), (("age", 0.0412, 4.7e-6), ("bmi", -1.5, 0.0091))),),
        text=(("Summary", "converged in 6 rounds"),),
        notes=("Accuracy is measured on held-out digits.",),
        warnings=("Scores are released without noise.",),
        provenance=(("seed", 20240), ("command", "hedgerow run digits-fedavg")),
    )
