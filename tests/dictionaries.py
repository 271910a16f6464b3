"""A dictionary, and a party's file that spells it in its own way, for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd

TEXT = """
[dictionary]
name = "heart-failure"
version = "1.2.0"
na_values = ["", "NA", "-9"]            # of every column
least = 5
[columns.age]
kind = "integer"
range = [18, 110]
unit = "a"
label = "Age at admission"
[columns.sex]
levels = { female = "0", male = "1" }
[columns.ejection_fraction]
kind = "number"
range = [5, 90]
unit = "%"
outside = "missing"
na_values = ["999"]
[columns.serum_creatinine]
kind = "number"
range = [0.2, 20]
unit = "mg/dL"
digits = 1
[columns.smoking]
kind = "binary"
levels = { no = "0", yes = "1" }
[columns.followup]
kind = "integer"
range = [0, 400]
unit = "d"
role = "time"
[columns.death]
kind = "binary"
role = "event"
required = true
[columns.patient]
role = "id"
[derived.elderly]
as = "age >= 75"
[derived.log_creatinine]
as = "log(serum_creatinine)"
range = "computed"
"""

LOCAL = {
    "dictionary": "heart-failure@1.2.0",
    "separator": ";",
    "decimal": ",",
    "columns": {
        "age": "ALTER",
        "sex": {"from": "GESCHL", "codes": {"w": "female", "m": "male", "M": "male"}},
        "ejection_fraction": "EF",
        "serum_creatinine": {"from": "KREA", "convert": "x / 88.42"},
        "smoking": "RAUCHER",
        "followup": "TAGE",
        "death": "TOD",
        "patient": "PID",
    },
}
FAULTS = {  # column, record from 0, what stands there
    ("EF", 17): "27,5",  # a number, by this file's decimal sign
    ("EF", 18): "<30",
    **{("EF", place): "999" for place in (3, 9, 40, 41, 42, 90)},
    **{("KREA", place): "-9" for place in range(20, 32)},
    ("GESCHL", 5): "d",
    ("ALTER", 6): "6O",
    ("RAUCHER", 7): "ja",
    ("ALTER", 8): "165",
}


def records(n: int = 299, seed: int = 0) -> dict[str, np.ndarray]:
    """Values in the dictionary's own units."""
    rng = np.random.default_rng(seed)
    return {
        "patient": np.arange(n) // 2 + 1000,
        "age": rng.integers(40, 95, n),
        "sex": rng.integers(0, 2, n),
        "ejection_fraction": rng.integers(15, 80, n),
        "serum_creatinine": rng.uniform(0.5, 9, n).round(1),
        "smoking": rng.integers(0, 2, n),
        "followup": rng.integers(4, 285, n),
        "death": rng.integers(0, 2, n),
    }


def local_file(path, faults=(), n: int = 299):
    """A file with semicolons, decimal commas, blanks and codes of its own."""
    known = records(n)
    frame = pd.DataFrame(
        {
            "PID": [f"P{one}" for one in known["patient"]],
            "ALTER": [f" {one} " for one in known["age"]],
            "GESCHL": ["wm"[one] if place % 9 else "wM"[one] for place, one in enumerate(known["sex"])],
            "EF": known["ejection_fraction"].astype(str),
            "KREA": [f"{one * 88.42:.4f}".replace(".", ",") for one in known["serum_creatinine"]],
            "RAUCHER": known["smoking"].astype(str),
            "TAGE": known["followup"].astype(str),
            "TOD": known["death"].astype(str),
        }
    )
    for (column, place), word in dict(faults).items():
        frame.loc[place, column] = word
    frame.to_csv(path, sep=";", index=False)
    return path
