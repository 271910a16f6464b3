import hedgerow as hr
from hedgerow.errors import Separated
from hedgerow.stats import logistic_regression

table = hr.data.load("breast_cancer").take(slice(0, 40))
hospitals = hr.simulate(table, hr.data.iid(4), seed=0)
formula = "malignant ~ worst_radius + worst_texture + worst_smoothness"

try:
    logistic_regression(hospitals, formula)
except Separated as refusal:
    print(refusal.code, refusal.reason.replace(": ", ":\n"))

fit = logistic_regression(hospitals, formula, firth=True)
print(fit.to_frame()[["coef", "se", "p"]].map(lambda value: f"{value:.3g}").to_string())
