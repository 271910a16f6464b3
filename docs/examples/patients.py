import hedgerow as hr

table = hr.data.read("patients.csv", target="readmitted").declare(age=(18, 100), systolic=(70, 230))
hospitals = hr.simulate(table, partition=hr.data.by_column("hospital"), seed=0)

fit = hr.stats.logistic_regression(hospitals, "readmitted ~ I((age - 60) / 10) + I((systolic - 130) / 20) + smoker")
print(fit.summary())
print(fit.to_frame())  # a pandas DataFrame

for entry in hospitals.ledger.entries:
    print(entry.round, entry.query, entry.numbers, "numbers from each of", entry.parties, "parties:", entry.event)
