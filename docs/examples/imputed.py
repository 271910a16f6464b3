from dataclasses import replace

import numpy as np

import hedgerow as hr

whole = hr.data.load("diabetes")
rng = np.random.default_rng(0)
columns = dict(whole.columns)
columns["bmi"] = np.where(rng.random(len(whole)) < columns["progression"] / 600, np.nan, columns["bmi"])
table = replace(whole, columns=columns, schema=whole.schema.allowing(missing=True))

clinics = hr.simulate(table, hr.data.iid(4), seed=0)
imputed = hr.stats.impute(clinics, ["bmi", "bp", "s5", "progression"], copies=20)
fit = imputed.linear_regression("progression ~ bmi + bp")

print(fit.to_frame()[["coef", "se", "df", "missing share"]].round(2).to_string())
print("complete cases", hr.stats.linear_regression(clinics, "progression ~ bmi + bp").coef_.round(2))
print(
    "nothing missing",
    hr.stats.linear_regression(hr.simulate(whole, hr.data.iid(4), seed=0), "progression ~ bmi + bp").coef_.round(2),
)
