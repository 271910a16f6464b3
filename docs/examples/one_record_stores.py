import numpy as np

import hedgerow as hr
from hedgerow.stats import logistic_regression, standardise
from hedgerow.stats.losses.descent import gradient_descent
from hedgerow.stats.quality.metrics import binary_metrics

table = hr.data.load("breast_cancer")
stores = standardise(hr.simulate(table, hr.data.stores(), seed=0))  # 569 stores of one record
formula = "malignant ~ mean_texture + mean_smoothness + mean_symmetry"

before = len(stores.ledger)
*_, walked = gradient_descent(stores, formula=formula, family="binomial", learning_rate=0.1, rounds=800)
print("descent", walked.beta.round(4), len(stores.ledger) - before, "questions")

fit = logistic_regression(stores, formula)
print("Newton ", fit.coef_.round(4), fit.rounds, "questions")
print("apart by", float(np.abs(walked.beta - fit.coef_).max().round(4)))
print(fit.odds_ratios().round(3).to_string())
print("log-loss", round(binary_metrics(stores, fit).log_loss, 4))
