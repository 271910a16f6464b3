"""Who has which labels?

A Dirichlet distribution with a small alpha leaves each party few of the ten digits. The shaded table is that of every report.
"""

import hedgerow as hr
from hedgerow.report import Heat

table = hr.data.load("digits")
partition = hr.data.dirichlet_labels(parties=8, alpha=0.2)(table, seed=3)
digits = [table["digit"][records] for records in partition.indices]
counts = tuple(tuple(int((held == label).sum()) for label in range(10)) for held in digits)
print(sum(map(sum, counts)), "records at", len(counts), "parties")

picture = Heat("Records by party and digit", tuple(partition.names), tuple(map(str, range(10))), counts)
