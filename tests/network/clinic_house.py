"""Three made-up clinics, their guards, and the studies that schedules ask of them; what takes long to make is made once."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from hedgerow.crypto.keys import AgreementKey, Identity, Roster
from hedgerow.data import Table
from hedgerow.network.station.config import parse_config
from hedgerow.network.station.local_data import local_data
from hedgerow.network.station.signatures import rehearsed
from hedgerow.stats.formula import read_formula
from hedgerow.wire.envelope import KeyMaterial, PublicIdentity

NAMES = ("alpha", "beta", "gamma")
HUB = "hub"
COLUMNS = {
    "systolic": {"kind": "number", "range": [60, 260]},
    "cotinine": {"kind": "number", "range": [0, 1]},
    "diabetes": {"kind": "binary"},
}
DATA = {"name": "cardiology", "target": "diabetes", "features": ["systolic", "cotinine"]}
LOGISTIC = {
    "name": "risk",
    "data": DATA,
    "program": {"name": "logistic_regression", "formula": "diabetes ~ systolic + cotinine"},
}
COUNTS = {
    "name": "cases",
    "data": {"name": "cardiology", "features": ["diabetes"]},
    "program": {"name": "counts", "columns": ["diabetes"]},
    "protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 5.0, "at": "party"}},
}
TRAINING = {
    "name": "drift",
    "data": DATA,
    "program": {"name": "scaffold", "model": "linear", "rounds": 2, "steps": 1},
    "evaluation": {"holdout": 0},
}
STUDIES = {
    "plain": LOGISTIC,
    "secret": LOGISTIC | {"protection": {"aggregation": {"by": "secagg"}}},
    "private": COUNTS,
    "stateful": TRAINING,
}
READABLE = re.compile(rb"HR-\d{3}|systolic|cotinine|diabetes|cardiology|logistic|score_and_inf|hedgerow|level_counts")
"""Words of studies, columns and refusals, none of which is ever to be seen on a rail."""

LIMITS = {
    "question_seconds": 20.0,
    "retry_seconds": 1.0,
    "retry_most_seconds": 30.0,
    "away_minutes": 0.5,
    "gather_seconds": 10.0,
    "approval_hours": 100.0,
}


def key_material(name):
    identity, agreement = Identity.fresh(), AgreementKey.fresh()
    return KeyMaterial(PublicIdentity(name, identity.public, agreement.public), identity, agreement)


@dataclass
class Keys:
    """What a key folder gives."""

    key_material: KeyMaterial
    public_identities: dict = field(default_factory=dict)
    roster: Roster | None = None


@cache
def records(name, n=40):
    rng = np.random.default_rng(sum(name.encode()))
    systolic, cotinine = rng.uniform(90, 200, n), rng.uniform(0, 1, n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(systolic - 145) / 40 + cotinine))
    return {"systolic": systolic, "cotinine": cotinine, "diabetes": ill.astype(float)}


@cache
def station_config(name, guard):
    about = {"name": name, "coordinator": {"name": HUB, "rail": "socket", "path": "rail.sock"}}
    data = {"name": "cardiology", "source": "csv", "path": "x.csv", "columns": COLUMNS}
    programs = [{"name": one} for one in ("logistic_regression", "counts", "scaffold")]
    return parse_config(
        about | {"data": data, "guard": {"programs": programs, "disclosure": float("inf")} | ast.literal_eval(guard)}
    )


@cache
def held_by(name):
    config = station_config(name, "{}")
    return local_data(config, Table(config.declared.admit(records(name)), config.declared), bytes(32))


@cache
def _read(formula, schema, aside, classes):
    return read_formula(formula, schema, aside, classes=classes)


def read_once(formula, schema, aside=(), *, classes=False):
    """A formula takes milliseconds to read, and a thousand schedules have the same."""
    return _read(formula, schema, tuple(aside), classes)


_REHEARSALS = {}


def rehearsed_once(built, rounds=None):
    """What a study asks is the same at every station and in every schedule."""
    key = built.digest, built.schema, tuple(built.federation.names), rounds
    if key not in _REHEARSALS:
        _REHEARSALS[key] = rehearsed(built, rounds)
    return _REHEARSALS[key]
