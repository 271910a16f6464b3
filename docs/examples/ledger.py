import json

import hedgerow as hr
from hedgerow.errors import BudgetExhausted

hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
budget = hr.Budget(epsilon=1.0, delta=1e-4, unit="record")
protected = hospitals.protect(mechanism=hr.Gaussian(6.0)).within(budget)

for _ in range(10):
    try:
        print(hr.stats.counts(protected, ["malignant"])["count"].round().tolist())
    except BudgetExhausted as refusal:
        print(refusal.reason)  # nobody was asked
        break

print(json.dumps(protected.ledger.entries[-1].to_json(), indent=1))
print("spent", round(budget.spent(protected.ledger.charges("record")), 3))
