"""Diagnoses by ICD-9: three-digit codes, and the chapters to which they belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "?"

CODES = (
    *(f"{number:03d}" for number in range(1, 1000)),
    *(f"V{number:02d}" for number in range(1, 92)),
    *(f"E{number}" for number in range(800, 1000)),
    UNKNOWN,
)
"""Every code that the classification has room for, whether it occurs or not."""

_CHAPTERS = {  # first and last number
    "infections": (1, 139),
    "neoplasms": (140, 239),
    "endocrine": (240, 279),
    "blood": (280, 289),
    "mental": (290, 319),
    "nerves and senses": (320, 389),
    "circulation": (390, 459),
    "respiration": (460, 519),
    "digestion": (520, 579),
    "genitourinary": (580, 629),
    "pregnancy": (630, 679),
    "skin": (680, 709),
    "musculoskeletal": (710, 739),
    "congenital": (740, 759),
    "perinatal": (760, 779),
    "symptoms": (780, 799),
    "injury and poisoning": (800, 999),
}
GROUPS = ("diabetes", *_CHAPTERS, "supplementary", "external causes", "unknown")
"""The chapters, with diabetes (250) apart from the other endocrine diseases."""


def three_digits(codes: pd.Series) -> pd.Series:
    """Return codes without what follows the point, of three signs: `8` as `008`, `250.83` as `250`."""
    return codes.str.split(".").str[0].where(codes != UNKNOWN, UNKNOWN).map(lambda c: c if c[:1] in "VE?" else c.zfill(3))


def group_of(code: str) -> str:
    """Return the group of a three-digit code."""
    special = {"V": "supplementary", "E": "external causes", UNKNOWN: "unknown"}
    if code[:1] in special:
        return special[code[:1]]
    if code == "250":
        return "diabetes"
    return next(name for name, (first, last) in _CHAPTERS.items() if first <= int(code) <= last)
