import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.engines import Acting, InProcess

forge = Acting(Liars(("party 1", "party 2"), (ScaledRows(1000.0, kind="forge"),)))
federation = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=20), engine=InProcess(acts=forge))


def rows(broadcast, party, rng):
    """The number of records."""
    return party.w.sum(keepdims=True)


print("no bound:", federation.sum(rows))
print("with a clip:", federation.protect(clip=hr.l2(50.0)).sum(rows))
