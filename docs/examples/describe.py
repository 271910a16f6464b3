import hedgerow as hr

table = hr.data.read("patients.csv", target="readmitted").declare(age=(18, 100), systolic=(70, 230))
hospitals = hr.simulate(table, partition=hr.data.by_column("hospital"), seed=0)

print(hr.stats.moments(hospitals, ["age", "systolic"]).to_frame())
print(hr.stats.quantiles(hospitals, "age", q=[0.25, 0.5, 0.75], tol=0.5))
print(hr.stats.contingency(hospitals, "smoker", "readmitted"))
print(hr.stats.correlation(hospitals, ["age", "systolic"]))
