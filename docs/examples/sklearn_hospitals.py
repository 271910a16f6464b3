import hedgerow as hr
from hedgerow.sklearn import FederatedLogisticRegression

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, partition=hr.data.iid(parties=5), seed=0)

model = FederatedLogisticRegression("malignant ~ mean_radius + mean_texture").fit(hospitals)
new = table.to_pandas().head(3)
print(model.coef_.round(3), model.intercept_.round(3))
print(model.predict_proba(new).round(3))
print("accuracy at the hospitals", round(model.score(hospitals), 3))
print(model.fit_.conf_int().round(3)[1])

plain = model.to_sklearn()
print(plain, (plain.predict(new[["mean_radius", "mean_texture"]]) == model.predict(new)).all())
