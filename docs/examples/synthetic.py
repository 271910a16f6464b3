import hedgerow as hr

women = hr.stats.derive(hr.data.load("fair"), affair="affairs > 0").with_roles(target="affair")
towns = hr.simulate(women, hr.data.iid(parties=10), seed=0)
columns = ["rate_marriage", "age", "yrs_married", "children", "religious", "affair"]
made = hr.synth.tan(towns, columns=columns, bins=8, epsilon=1.0, delta=1e-5)

people = made.sample(len(women), seed=0)
print(people.to_pandas().head(3).round(1).to_string(index=False))
for name in ("yrs_married", "religious", "affair"):
    print(f"{name:12s} real {women[name].mean():5.2f}  made up {people[name].mean():5.2f}")
for who, table in (("real", women), ("made up", people)):
    print(f"correlation of age and years, {who}: {table.to_pandas()['age'].corr(table.to_pandas()['yrs_married']):.2f}")

thirties = made.sample(500, where={"affair": 1, "age": (30, 40)}, seed=0)
print(f"{len(thirties)} between {thirties['age'].min():.1f} and {thirties['age'].max():.1f}")
print(towns.ledger.to_frame()[["query", "bound", "noise"]].to_string())
print(people.source)
