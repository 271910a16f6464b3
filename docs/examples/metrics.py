import hedgerow as hr
from hedgerow.stats import binary_metrics, calibration, logistic_regression, odds_ratio_table, roc

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, hr.data.iid(5), seed=0)
formula = "malignant ~ mean_texture + I(100 * mean_smoothness) + I(mean_radius > 14)"

print(odds_ratio_table(hospitals, formula).map(lambda value: f"{value:.3g}").to_string())

fit = logistic_regression(hospitals, formula)
found = binary_metrics(hospitals, fit)
print(f"log-loss {found.log_loss:.3f}  accuracy {found.accuracy:.3f}  recall {found.recall:.3f}")

curve = roc(hospitals, fit)
low, high = curve.conf_int()
print(f"AUC {curve.auc:.3f} ({low:.3f} to {high:.3f}) of {curve.bins} bins; questions: {curve.rounds}")
print(f"calibration error {calibration(hospitals, fit).error:.3f}")
