"""Tables of two parties that know different things about some of the same people."""

import numpy as np
import pandas as pd

PEOPLE = 120


def tables(n=PEOPLE, seed=0):
    """Two frames with 2n/3 people each, half of them common, in other orders; and the pooled frame of the common ones."""
    rng = np.random.default_rng(seed)
    everybody = pd.DataFrame(
        {
            "nin": [f"{rng.integers(1 << 60):018d}{i:04d}X" for i in range(n)],
            "age": rng.integers(20, 65, n),
            "gender": np.where(rng.integers(0, 2, n), "f", "m"),
            "dose": rng.normal(size=n).round(3),
        }
    )
    everybody["salary"] = (20 + everybody["age"] / 2 - 4.0 * (everybody["gender"] == "f") + rng.integers(0, 8, n)).round(1)
    tax = everybody[["nin", "salary"]].iloc[: 2 * n // 3]
    town = everybody[["nin", "age", "gender", "dose"]].iloc[n // 3 :].iloc[::-1]
    return {"tax": tax.reset_index(drop=True), "town": town.reset_index(drop=True)}, everybody.iloc[n // 3 : 2 * n // 3]
