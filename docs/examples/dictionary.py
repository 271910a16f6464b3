from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow as hr

rng = np.random.default_rng(0)


def patients(n, **names):
    ages = rng.integers(40, 95, n)
    columns = {
        "patient": [f"P{i}" for i in range(n)],
        "age": ages,
        "sex": rng.integers(0, 2, n),
        "ejection_fraction": rng.integers(15, 70, n),
        "serum_creatinine": rng.uniform(0.5, 4, n).round(1),
        "followup": rng.integers(4, 285, n),
        "death": rng.binomial(1, (ages - 30) / 80),
    }
    return pd.DataFrame(columns).rename(columns=names)


patients(200).to_csv("north.csv", index=False)
names = {"age": "ALTER", "sex": "GESCHL", "ejection_fraction": "EF", "serum_creatinine": "KREA"}
south = patients(120, **names, followup="TAGE", death="TOD", patient="PID")
south["GESCHL"] = np.where(south["GESCHL"] == 0, "w", "m")
south["KREA"] = (south["KREA"] * 88.42).round(2)
south.loc[:2, "EF"] = 999
south["ALTER"] = south["ALTER"].astype(str)
south.loc[6, "ALTER"] = "6O"
south.to_csv("south.csv", sep=";", decimal=",", index=False)

here = Path(__file__).parent
dictionary = hr.data.Dictionary.read(here / "heart.toml", complete=True)
print(dictionary.label, dictionary.digest[:16])

spelt = hr.data.LocalColumns.read(here / "south_columns.toml")
found = hr.data.check_file(dictionary, "south.csv", spelt)
for row in found.rows():
    print("at south:", " | ".join(row))
print("a study is told:", " ".join(found.public()))

south.loc[6, "ALTER"] = "60"
south.to_csv("south.csv", sep=";", decimal=",", index=False)
tables = {
    "north": hr.data.read("north.csv", dictionary=dictionary, target="death"),
    "south": hr.data.read("south.csv", dictionary=dictionary, local=spelt, target="death"),
}
hospitals = hr.simulate(tables)
print(hr.stats.logistic_regression(hospitals, "death ~ age + sex + ejection_fraction + log_creatinine").summary())
