"""Small comparisons that several tests share."""

from hedgerow.study import parse

DIGITS = {
    "name": "digits",
    "data": {"name": "digits"},
    "partition": {"by": "shards", "parties": 6, "shards_per_party": 2},
    "program": {"name": "fedavg", "rounds": 3, "learning_rate": 0.5},
    "evaluation": {"holdout": 0.2},
}
"""FedAvg over six parties with few labels each."""

TABLE = {
    "rows": [{"name": "IID", "set": {"partition.by": "iid"}}, {"name": "few labels"}],
    "columns": [{"name": "FedAvg"}, {"name": "FedProx mu=1", "set": {"program.name": "fedprox", "program.mu": 1.0}}],
    "measure": "test accuracy",
    "target": 0.8,
    "published": {"IID": {"FedAvg": 0.9}},
    "source": "Table 1 of nowhere",
    "differs": "The records.",
    "quick": {"program.rounds": 2},
}
"""Two by two runs of it."""


def study(**changes):
    """The study of `DIGITS`; a section given replaces or adds keys, a section that is None is left out."""
    made = {key: dict(value) if isinstance(value, dict) else value for key, value in DIGITS.items()}
    for section, values in changes.items():
        made[section] = made.get(section, {}) | values if isinstance(values, dict) and section != "partition" else values
    return parse(made)


def compared(**changes):
    """The study with the comparison of `TABLE`, some of whose keys are changed."""
    return study(comparison={**TABLE, **changes})
