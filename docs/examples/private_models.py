import hedgerow as hr

test, people = hr.data.load("fair").split(0.25, 0)
formula = "I(affairs > 0) ~ rate_marriage + age + yrs_married + children + religious + educ"


def right(fit):
    return ((fit.predict(test) > 0.5) == (test["affairs"] > 0)).mean()


for epsilon in (None, 8.0, 1.0):
    towns = hr.simulate(people, hr.data.iid(parties=10), seed=0)
    delta = None if epsilon is None else 1e-5
    fit = hr.stats.private.logistic(towns, formula, epsilon=epsilon, delta=delta, bins=16)
    print(f"{'no noise' if epsilon is None else f'epsilon {epsilon:g}':10s} {right(fit):.3f} right of {len(fit.names)} columns")

asked = towns.ledger.to_frame()[["query", "bound", "noise"]].value_counts(sort=False)
print(asked.to_string())
print(f"epsilon {towns.ledger.epsilon(delta=1e-5, unit='record'):.6f} in all")
