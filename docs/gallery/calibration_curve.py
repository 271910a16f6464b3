"""Are probabilities right?

Events that came true beside those that a model predicts, in bins of the probability that hold ten of both or more, by sums over
four hospitals.
"""

import hedgerow as hr
from hedgerow.report import Curve, Series

hospitals = asked = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=4), seed=0)
fit = hr.stats.logistic_regression(hospitals, "malignant ~ mean_texture + mean_smoothness")
found = hr.stats.calibration(hospitals, fit, bins=8)
predicted, occurred = found.expected / found.n, found.events / found.n
print(f"{found.n.sum():.0f} records in {len(found.n)} of 8 bins")

low, high = map(tuple, found.conf_int().T)
bins = Series("bins", tuple(predicted), tuple(occurred), low=low, high=high)
perfect = Series("perfect", (0.0, 1.0), (0.0, 1.0), style="reference")
picture = Curve("Calibration", "predicted probability", "share of events", (bins, perfect))
