"""A ROC curve without scores

The curve of a model over four hospitals, from counts by bin of its score: no score and no record leaves a hospital.
"""

import hedgerow as hr
from hedgerow.report import Curve, Series

hospitals = asked = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=4), seed=0)
fit = hr.stats.logistic_regression(hospitals, "malignant ~ mean_texture + mean_smoothness")
roc = hr.stats.roc(hospitals, fit)
print(f"area {roc.auc:.3f}, standard error {roc.standard_error():.3f}")

curve = Series("model", tuple(roc.false_positive_rate), tuple(roc.true_positive_rate))
chance = Series("chance", (0.0, 1.0), (0.0, 1.0), style="reference")
picture = Curve("ROC curve", "false positive rate", "true positive rate", (curve, chance))
