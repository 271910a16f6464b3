"""A histogram with noise

Visits to a doctor at twenty parties, exactly and with noise for epsilon 1/2 a record. The noise is the same for every bin, so
that small bins suffer most.
"""

import hedgerow as hr
from hedgerow.report import Curve, Series

table, edges = hr.data.load("hie"), list(range(21))
exact = hr.stats.histogram(hr.simulate(table, hr.data.iid(parties=20), seed=0), "mdvis", edges)

asked = hr.simulate(table, hr.data.iid(parties=20), seed=0)
asked = asked.protect(mechanism=hr.privacy.Geometric(2.0)).within(hr.Budget(epsilon=0.5, delta=1e-9, unit="record"))
noisy = hr.stats.histogram(asked, "mdvis", edges)
print("largest error", int((noisy["count"] - exact["count"]).abs().max()), "of", int(exact["count"].sum()), "records")

visits = tuple(edges[:-1])
lines = (Series("with noise", visits, tuple(noisy["count"])), Series("exact", visits, tuple(exact["count"]), style="reference"))
picture = Curve("People by visits in a year", "visits", "people", lines)
