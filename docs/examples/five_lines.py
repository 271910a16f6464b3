import hedgerow as hr

hospitals = hr.simulate(hr.data.load("breast_cancer"), partition=hr.data.iid(parties=5), seed=0)
fit = hr.stats.logistic_regression(hospitals, "malignant ~ mean_radius + mean_texture + mean_smoothness")
print(fit.summary())
