import hedgerow as hr

table = hr.data.load("heart_failure")
clinics = hr.simulate(table, partition=hr.data.iid(parties=3), seed=0)

# coxph(Surv(time, death_event) ~ age + anaemia + strata(clinic))
cox = hr.stats.cox(clinics, "time + death_event ~ age + anaemia")
print(cox.hazard_ratios().round(3))

# survdiff(Surv(time, death_event) ~ anaemia + strata(clinic))
groups = {"time": "time", "event": "death_event", "group": "anaemia"}
print(hr.stats.log_rank(clinics, **groups))

# glm(death_event ~ age + ejection_fraction, family = binomial)
formula = "death_event ~ age + ejection_fraction"
fit = hr.stats.logistic_regression(clinics, formula)

# coeftest(lm(...), vcov = vcovHC(., type = "HC3"))
line = "serum_sodium ~ age + serum_creatinine"
robust = hr.stats.linear_regression(clinics, line, errors="HC3")
print(robust.to_frame()[["coef", "se", "p"]].round(4))

# lmer(serum_sodium ~ age + (1 | clinic))
mixed = hr.stats.mixed_linear(clinics, "serum_sodium ~ age + (1 | site)")
print(mixed.to_frame()[["coef", "se"]].round(4))

# rma(yi, vi, method = "REML", test = "knha") of each clinic's own estimate,
# of which none leaves it
meta = hr.stats.meta_analysis(clinics, formula, ["ejection_fraction"])
print(meta["ejection_fraction"].sentence)

# tableone, and xtable of the fit
who = hr.stats.table_one(clinics, ["age", "sex"], "death_event")
print(who.to_frame().to_string())
words = {"age": "Age, years", "ejection_fraction": "Ejection fraction, %"}
print(fit.to_latex(labels=words))
