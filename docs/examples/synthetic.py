import hedgerow as hr

women = hr.data.load("fair")
towns = hr.simulate(women, hr.data.iid(parties=10), seed=0)
columns = ["age", "yrs_married", "children", "religious", "educ", "occupation", "rate_marriage"]
made = hr.synth.tan(towns, target="rate_marriage", columns=columns, classes=5, epsilon=1.0, delta=1e-5)
people = made.sample(6366, seed=0)
print(people.to_pandas().head(4).round(1).to_string(index=False))

print(made.sample(500, where={"occupation": "2", "age": (30, 40)}, seed=0).to_pandas()["age"].agg(["min", "max"]).round(1).to_dict())
for name in ("children", "religious"):
    print(name, "real", round(women[name].mean(), 2), "made up", round(people[name].mean(), 2))
print(towns.ledger.to_frame()[["query", "bound", "noise"]].to_string())
print(people.source)
