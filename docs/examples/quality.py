import hedgerow as hr
from hedgerow.stats import leave_one_site_out, logistic_regression, net_benefit, prediction_quality, quality_by_site

hospitals = hr.simulate(hr.data.load("heart_failure"), hr.data.iid(parties=4), seed=0)
formula = "death_event ~ age + ejection_fraction + serum_creatinine"
fit = logistic_regression(hospitals, formula)

found = prediction_quality(hospitals, fit)
print((found.to_frame().round(3) + 0.0).to_string())
print(found.curve.to_frame().round(2).to_string())
print(net_benefit(hospitals, fit, [0.2, 0.4, 0.6]).to_frame().round(3).to_string())

elsewhere = leave_one_site_out(hospitals, formula)
print((elsewhere.quality.to_frame().round(3) + 0.0).to_string())
print(elsewhere.quality.line.summary())
print(quality_by_site(hospitals, fit).summary())
