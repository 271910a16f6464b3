"""A lasso whose penalty is cross-validated

Five hospitals fit all penalties and folds together: the mean squared error of records that a fold left out, with one standard
error on both sides.
"""

import hedgerow as hr
from hedgerow.report import Curve, Series

hospitals = asked = hr.simulate(hr.data.load("diabetes"), hr.data.iid(parties=5), seed=0)
path = hr.stats.cross_validated(hospitals, "progression ~ .", standardised=True)
frame = path.to_frame()
print(f"questions: {path.rounds}; columns selected: {frame['selected'][path.one_se]:.0f}")

error, spread = frame["deviance"], frame["se"]
line = Series("left out", tuple(frame.index), tuple(error), low=tuple(error - spread), high=tuple(error + spread))
picture = Curve("Cross-validated squared error", "penalty", "squared error", (line,), log="x")
