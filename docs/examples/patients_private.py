import hedgerow as hr

declared = {"age": {"range": [18, 100]}, "systolic": {"range": [70, 230]}}
declared |= {"readmitted": {"kind": "binary"}, "smoker": {"kind": "binary"}}
table = hr.data.read("patients.csv", target="readmitted", declared=declared)
hospitals = hr.simulate(table, partition=hr.data.by_column("hospital"), seed=0)

protected = hospitals.protect(mechanism=hr.Gaussian(2.0)).within(hr.Budget(epsilon=4.0, delta=1e-5, unit="record"))
formula = "readmitted ~ I((age - 60) / 10) + I((systolic - 130) / 20) + smoker"
fit = hr.stats.logistic_regression(protected, formula, rounds=3)
print(fit.summary())

charges = protected.ledger.charges("record")
print("epsilon", round(hr.privacy.epsilon(charges, delta=1e-5, adjacency="add-remove"), 2))
