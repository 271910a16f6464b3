"""Five ways to add up

The same hundred noisy sums, added up by five accountants. `tightest` takes the least of those that hold.
"""

from collections import Counter

from hedgerow.core.events import Event, Sampling
from hedgerow.privacy.accounting import epsilon
from hedgerow.report import Curve, Series

charge, rounds = (Sampling(), (Event("gaussian", 20.0),)), (1, 2, 5, 10, 20, 50, 100)
lines = []
for accountant in ("basic", "advanced", "zcdp", "rdp", "pld"):
    spent = [epsilon(Counter({charge: n}), delta=1e-5, adjacency="add-remove", accountant=accountant) for n in rounds]
    lines.append(Series(accountant, rounds, tuple(spent)))
    print(f"{accountant:8} {spent[-1]:6.2f}")

picture = Curve("Epsilon of Gaussian sums with noise multiplier 20", "sums", "epsilon", tuple(lines), log="xy")
