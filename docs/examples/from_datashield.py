import hedgerow as hr

table = hr.data.load("breast_cancer")
studies = hr.simulate(table, partition=hr.data.iid(parties=3), seed=0)

print(hr.stats.means(studies, ["mean_radius", "mean_texture"]))
print(hr.stats.quantiles(studies, "mean_radius", q=[0.25, 0.5, 0.75], tol=0.1))
formula = "malignant ~ mean_radius + mean_texture"
fit = hr.stats.logistic_regression(studies, formula)
print(fit.odds_ratios().map(lambda value: f"{value:.3g}"))
