"""A study of visits to doctors, offers of its three owners, and files of them."""

from hedgerow.core.toml import to_toml

BASE = {
    "title": "Visits",
    "data": {"name": "hie", "target": "mdvis", "features": ["lncoins", "physlm", "disea"], "records": 3000},
    "partition": {"by": "iid", "parties": 3},
    "program": {
        "name": "gradient_queries",
        "n_records": 3000,
        "rounds": 8,
        "step": 0.5,
        "box": 1.0,
        "radius": 2.0,
        "noise": "gaussian",
        "ridge": 0.1,
    },
    "evaluation": {"on": "none"},
    "baselines": False,
}
OWNERS = {f"party {k}": {"records": 1000, "epsilon": [0.2, 30.0], "cost": cost} for k, cost in ((1, 0.1), (2, 0.3), (3, 1.0))}


def written(folder, pilot=None, base=BASE, value=3000.0, **changes):
    (folder / "base.toml").write_text(to_toml(base))
    path = folder / "owners.toml"
    numbers = {"residual": 0.02, "curvature": [0.3, 0.5, 0.9], "best": [0.2, 0.1, -0.1]}
    given = {"title": "Visits", "study": "base.toml", "pilot": pilot or numbers, "owners": OWNERS}
    path.write_text(to_toml(given | ({"value": {"per_fitness": value}} if value else {}) | changes))
    return path


def shared(folder):
    return BASE | {"budget": {"epsilon": 40.0, "delta": 1e-6, "unit": "record", "ledger": "owners.sqlite"}}


def grid(report, title):
    return next(one for one in report.tables if one.title == title)


def free(owners):
    return {name: {key: value for key, value in one.items() if key != "cost"} for name, one in owners.items()}
