import hedgerow as hr

patients = hr.data.load("diabetes")
columns = {"clinic": ["age", "sex", "bmi", "bp", "progression"], "laboratory": ["s1", "s2", "s5", "s6"]}
apart = hr.data.columns_by_name(columns, on="patient", overlap=0.9)

tables = apart(patients, seed=0)  # yours: {"clinic": frame, "laboratory": frame}, each with a column "patient"
both = hr.simulate(tables, on="patient", seed=0).align(on="patient", by=hr.vertical.X25519(least=10))
print(both)

print(hr.vertical.means(both, "s5", by="sex"))
fit = hr.vertical.linear_regression(both, "progression ~ age + sex + bmi + bp + s5 + s6")
print(fit.summary())

for who, sentences in both.saw.items():
    for sentence in sentences:
        print(f"{who:<10} {sentence}")
