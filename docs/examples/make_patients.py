"""Write patients.csv: 3000 made-up patients of six hospitals, on which the tutorial works."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
n = 3000
hospital = rng.choice(
    ["Ashford", "Birchwood", "Crofton", "Dale", "Elmbridge", "Fenwick"], size=n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]
)
age = rng.normal(62, 14, n).clip(18, 100).round()
systolic = (100 + 0.5 * age + rng.normal(0, 15, n)).clip(70, 230).round()
smoker = rng.integers(0, 2, n)
log_odds = -6 + 0.04 * age + 0.015 * systolic + 0.6 * smoker
readmitted = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
columns = {"hospital": hospital, "age": age, "systolic": systolic, "smoker": smoker, "readmitted": readmitted}
pd.DataFrame(columns).to_csv("patients.csv", index=False)
