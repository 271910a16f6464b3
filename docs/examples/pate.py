import hedgerow as hr

women = hr.stats.derive(hr.data.load("fair"), affair="affairs > 0").with_roles(target="affair")
women = women.select(["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "affair"])
public, women = women.split(0.3, 0)
test, public = public.split(0.5, 0)
towns = hr.simulate(women, hr.data.iid(parties=10), seed=0)

teachers = {"party 1": "forest", "party 2": {"name": "tree", "depth": 3}, "others": "logistic"}
labels = hr.learn.pate(towns, inputs=public, teacher=teachers, shards=10, asked=500, epsilon=2.0, delta=1e-5)
print(f"{labels.teachers} teachers, noise of {labels.sigma:.1f} in each count")

student = labels.student(graph=10, model="logistic")
print(f"always no       {1 - test['affair'].mean():.3f} right")
print(f"labels as voted {(labels.labels == public['affair'][labels.asked]).mean():.3f} right")
print(f"after spreading {(student.pool == public['affair']).mean():.3f} right, of all {len(public)}")
print(f"student         {student.accuracy(test):.3f} right, of {len(test)} held out")
print(towns.ledger.to_frame()[["query", "bound", "noise"]].to_string())

direct = hr.simulate(women, hr.data.iid(parties=10), seed=0)
formula = "affair ~ rate_marriage + age + yrs_married + children + religious + educ"
fit = hr.stats.private.logistic(direct, formula, epsilon=2.0, delta=1e-5)
right = ((fit.predict(test) > 0.5) == (test["affair"] > 0.5)).mean()
print(f"direct          {right:.3f} right, by private logistic regression")
