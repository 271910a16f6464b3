from functools import partial

import hedgerow as hr


@hr.local(additive=True, stackable=True)
def partial_average(_, party, rng, *, column):
    """What runs at a data owner: the sum of a column, and its records."""
    return {"sum": (party.w * party[column]).sum(-1), "n": party.n}


table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, partition=hr.data.iid(parties=4), seed=0)
totals = hospitals.sum(partial(partial_average, column="mean_radius"), 0.0)
print(f"{totals['sum'] / totals['n']:.3f} over {totals['n']:.0f} records")
