import numpy as np

import hedgerow as hr
from hedgerow.stats import cox, log_rank, piecewise_exponential, schoenfeld

table = hr.data.load("heart_failure")
hospitals = hr.simulate(table, hr.data.iid(4), seed=0).protect(aggregation=hr.SecAgg())

fit = cox(hospitals, "time + death_event ~ age + ejection_fraction + serum_creatinine", most=100)
print(fit.summary())

print()
print(schoenfeld(hospitals, fit, "log").round(3).to_string())

print()
print(log_rank(hospitals, time="time", event="death_event", group="high_blood_pressure", most=100))

print()
common = piecewise_exponential(hospitals, fit.spec.formula, cuts=[30, 90, 180])
print(np.round(common.hazard_ratios(), 4).to_string())
print(common.baseline(table.take([0]))[["events", "time at risk", "hazard", "low", "high"]].round(5).to_string())
