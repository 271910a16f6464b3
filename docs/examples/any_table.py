import duckdb
import numpy as np
import polars as pl

import hedgerow as hr

clinic = hr.data.load("breast_cancer").to_pandas()[["mean_radius", "mean_texture", "malignant"]]
tables = {
    "pandas": clinic,
    "polars": pl.DataFrame(clinic.to_dict("list")),
    "lazy polars": pl.LazyFrame(clinic.to_dict("list")),
    "duckdb": duckdb.sql("select * from clinic"),
    "(X, y)": (clinic[["mean_radius", "mean_texture"]], clinic["malignant"]),
}
fits = {}
for name, table in tables.items():
    hospitals = hr.simulate(table, hr.data.iid(parties=4), seed=0)
    fits[name] = hr.stats.logistic_regression(hospitals, "malignant ~ mean_radius + mean_texture")
    print(name.ljust(12), fits[name].coef_.round(4), np.array_equal(fits[name].coef_, fits["pandas"].coef_))

new = pl.DataFrame({"mean_radius": [12.0, 20.0], "mean_texture": [17.0, 25.0]})
print(fits["duckdb"].predict(new).round(3))

parts = [clinic[:200], pl.DataFrame(clinic[200:].to_dict("list"))]
together = hr.simulate({"north": parts[0], "south": parts[1]})
print(together)
