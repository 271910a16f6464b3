import hedgerow as hr

table = hr.data.load("diabetes").declare(bmi=(15, 50))
one = hr.simulate(table, partition=hr.data.iid(parties=1), seed=0)
budget = hr.Budget(epsilon=1.0, delta=1e-9, unit="record")
private = one.protect(mechanism=hr.Laplace(2.0)).within(budget)

print(f"{hr.stats.means(private, ['bmi'])['bmi']:.3f}")
print(private.ledger.entries[0].event)
spent = hr.privacy.epsilon(
    private.ledger.charges("record"),
    delta=1e-9,
    adjacency="add-remove",
    accountant="basic",
)
print(f"epsilon {spent:.3f}")
