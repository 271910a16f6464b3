"""Made-up patients in three forms: a data frame, and FHIR R4 resources as a server, a bundle or a bulk export has them.

The resources are written from the specification: panels with components, several observations of which the last counts,
statuses, units, references of every kind, and entries that must not count.
"""

from __future__ import annotations

import json
import uuid
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

LOINC, SNOMED, UCUM = "http://loinc.org", "http://snomed.info/sct", "http://unitsofmeasure.org"
PANEL, SYSTOLIC, DIASTOLIC, WEIGHT, SMOKING = "85354-9", "8480-6", "8462-4", "29463-7", "72166-2"
DIABETES, HYPERTENSION, NEVER, CURRENT = "44054006", "38341003", "266919005", "77176002"
AT = date(2026, 1, 1)

PLAIN: dict[str, dict[str, Any]] = {
    "age": {"kind": "integer", "range": [0, 120], "unit": "years"},
    "sex": {"levels": ["female", "male"]},
    "sbp": {"kind": "number", "range": [60, 260], "unit": "mm[Hg]"},
    "smokes": {"levels": ["never", "current"]},
    "diabetes": {"kind": "binary"},
}
MAPPED: dict[str, dict[str, Any]] = {
    "age": {**PLAIN["age"], "from": "Patient.birthDate", "as": "age", "at": AT.isoformat()},
    "sex": {**PLAIN["sex"], "from": "Patient.gender"},
    "sbp": {**PLAIN["sbp"], "from": "Observation", "code": f"{LOINC}|{SYSTOLIC}", "value": "last"},
    "smokes": {
        **PLAIN["smokes"],
        "from": "Observation",
        "code": f"{LOINC}|{SMOKING}",
        "value": "last",
        "codes": {f"{SNOMED}|{NEVER}": "never", f"{SNOMED}|{CURRENT}": "current"},
    },
    "diabetes": {"kind": "binary", "from": "Condition", "code": f"{SNOMED}|{DIABETES}"},
}
"""The same columns as `PLAIN`, out of FHIR resources."""


def patients(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """Records whose diabetes depends on age, sex and pressure."""
    rng = np.random.default_rng(seed)
    born = [AT - timedelta(days=int(days)) for days in rng.integers(20 * 365, 90 * 365, n)]
    age = np.array([AT.year - day.year - ((AT.month, AT.day) < (day.month, day.day)) for day in born])
    male, smokes = rng.random(n) < 0.5, rng.random(n) < 0.3
    sbp = np.clip(rng.normal(110 + 0.4 * age, 15, n), 70, 250)  # all digits: what is read must equal this to the bit
    eta = 0.05 * (age - 55) + 0.02 * (sbp - 130) + 0.4 * male
    ill = rng.random(n) < 1 / (1 + np.exp(-eta))
    return pd.DataFrame(
        {
            "born": born,
            "age": age,
            "sex": np.where(male, "male", "female"),
            "sbp": sbp,
            "smokes": np.where(smokes, "current", "never"),
            "diabetes": ill.astype(int),
        }
    )


def concept(system: str, *codes: str) -> dict[str, Any]:
    """A CodeableConcept."""
    return {"coding": [{"system": system, "code": code} for code in codes]}


def status(word: str) -> dict[str, Any]:
    """A status that is a CodeableConcept."""
    return concept("http://terminology.hl7.org/CodeSystem/condition-clinical", word)


def quantity(value: float, unit: str = "mm[Hg]", **more: Any) -> dict[str, Any]:
    """A Quantity in a UCUM unit."""
    return {"value": value, "unit": unit, "system": UCUM, "code": unit, **more}


def observation(subject: str, code: str, when: str, state: str = "final", **value: Any) -> dict[str, Any]:
    """An Observation."""
    return {
        "resourceType": "Observation",
        "status": state,
        "code": concept(LOINC, code),
        "subject": {"reference": subject},
        "effectiveDateTime": when,
        **value,
    }


def pressure(subject: str, systolic: float, when: str, state: str = "final") -> dict[str, Any]:
    """A blood pressure panel, whose values are in its components."""
    parts = ((SYSTOLIC, systolic), (DIASTOLIC, systolic / 2))
    component = [{"code": concept(LOINC, code), "valueQuantity": quantity(value)} for code, value in parts]
    return observation(subject, PANEL, when, state, component=component)


def condition(subject: str, code: str, clinical: str = "active", verified: str = "confirmed", **more: Any) -> dict[str, Any]:
    """A Condition."""
    return {
        "resourceType": "Condition",
        "clinicalStatus": status(clinical),
        "verificationStatus": status(verified),
        "code": concept(SNOMED, code),
        "subject": {"reference": subject},
        **more,
    }


def resources(record: Any, subject: str) -> list[dict[str, Any]]:
    """What a hospital has written about one patient, with much that must not count."""
    smoking = {"valueCodeableConcept": concept(SNOMED, CURRENT if record.smokes == "current" else NEVER)}
    found = [
        pressure(subject, record.sbp + 9, "2024-03"),
        pressure(subject, record.sbp, "2025-06-01T09:30:00+02:00"),
        pressure(subject, record.sbp + 50, "2025-12-24", "entered-in-error"),
        pressure(subject, record.sbp - 5, "2025-06-01T08:30:00+02:00"),
        observation(subject, WEIGHT, "2025-07-01", valueQuantity=quantity(70.5, "kg")),
        observation(subject, SMOKING, "2025-01-01", **smoking),
        condition(subject, HYPERTENSION),
        condition(subject, DIABETES, verified="entered-in-error"),
        condition(subject, DIABETES, verified="refuted"),
    ]
    return found + [condition(subject, DIABETES, "resolved")] * record.diabetes


def person(record: Any, **more: Any) -> dict[str, Any]:
    """A Patient."""
    return {"resourceType": "Patient", "gender": record.sex, "birthDate": record.born.isoformat(), **more}


def bundle(entries: list[dict[str, Any]], kind: str = "collection", **more: Any) -> dict[str, Any]:
    """A Bundle of resources, or of entries that are written out."""
    return {
        "resourceType": "Bundle",
        "type": kind,
        "entry": [e if "resource" in e else {"resource": e} for e in entries],
        **more,
    }


def one_bundle(frame: pd.DataFrame) -> dict[str, Any]:
    """A transaction bundle, whose patients have no id yet and are known by urn:uuid."""
    entries: list[dict[str, Any]] = []
    for number, record in enumerate(frame.itertuples()):
        name = f"urn:uuid:{uuid.UUID(int=number)}"
        said = [{"resource": resource} for resource in resources(record, name)]
        entries += [*said[:3], {"fullUrl": name, "resource": person(record)}, *said[3:]]
    return bundle(entries, "transaction")


def bulk_export(frame: pd.DataFrame) -> dict[str, str]:
    """Newline-delimited files by kind of resource, with relative references."""
    lines: dict[str, list[str]] = {"Condition": [], "Observation": [], "Patient": []}
    for number, record in enumerate(frame.itertuples()):
        lines["Patient"].append(json.dumps(person(record, id=f"p{number}")))
        for count, resource in enumerate(resources(record, f"Patient/p{number}")):
            lines[resource["resourceType"]].append(json.dumps({"id": f"r{number}-{count}", **resource}))
    return {f"{kind}.ndjson": "\n".join(found) + "\n" for kind, found in lines.items()}


def section(source: str, **more: Any) -> dict[str, Any]:
    """A `[data]` section of these patients."""
    return {"name": "wards", "source": source, "columns": MAPPED if source == "fhir" else PLAIN, **more}
