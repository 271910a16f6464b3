"""Small runs of programs, from which their tests are made."""

from __future__ import annotations

from typing import Any

from hedgerow.core.declaration import Case
from hedgerow.data import load

HEART = {
    "clinic": ["age", "sex", "smoking", "high_blood_pressure"],
    "laboratory": ["ejection_fraction", "serum_creatinine", "death_event"],
    "label": "laboratory.death_event",
    "overlap": 0.9,
}


def heart(**settings: Any) -> Case:
    """Patients with heart failure: a clinic knows who they are, a laboratory what was measured."""
    return Case(load("heart_failure"), settings, parties=2, roles=HEART)


def visits(**settings: Any) -> Case:
    """Insured people: an insurer knows their contract, a practice their visits."""
    roles = {"insurer": ["lncoins", "idp", "lpi"], "practice": ["disea", "hlthg", "mdvis"], "label": "practice.mdvis"}
    return Case(load("hie").take(range(400)), settings, parties=2, roles=roles)
