import hedgerow as hr

table = hr.data.load("breast_cancer")
studies = hr.simulate(table, partition=hr.data.iid(parties=3), seed=0)

print(hr.stats.means(studies, ["mean_radius", "mean_texture"]))
print(hr.stats.quantiles(studies, "mean_radius", q=[0.25, 0.5, 0.75], tol=0.1))
formula = "malignant ~ mean_radius + mean_texture"
fit = hr.stats.logistic_regression(studies, formula)
print(fit.odds_ratios().map(lambda value: f"{value:.3g}"))

# ds.glmSLMA, then rma() of the studies' estimates: here from sums,
# and no study's own estimate leaves it
meta = hr.stats.meta_analysis(studies, formula, ["mean_radius"])
print(meta["mean_radius"].sentence)

# ds.glm with a factor for the study, whose level stays in each study
within = hr.stats.within_sites(studies, formula, "binomial")
print(within.to_frame()[["coef", "se"]].round(4))

# dsSurvival: ds.coxph.SLMA; one fit with a baseline of each clinic's own
hearts = hr.data.load("heart_failure")
clinics = hr.simulate(hearts, partition=hr.data.iid(parties=3), seed=0)
cox = hr.stats.cox(clinics, "time + death_event ~ age + ejection_fraction")
print(cox.hazard_ratios().round(3))
