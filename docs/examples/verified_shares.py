import hedgerow as hr
from hedgerow.attacks import Liars, ScaledRows
from hedgerow.engines import Acting, InProcess

forge = Acting(Liars(("party 3", "party 7"), (ScaledRows(1000.0, kind="forge"),)))
hospitals = hr.simulate(hr.data.load("breast_cancer"), hr.data.iid(parties=20), seed=0, engine=InProcess(acts=forge))
for verified in (False, True):
    shares = hr.AdditiveShares(aggregators=2, verified=verified, records=40)
    mean = hr.stats.means(hospitals.protect(aggregation=shares), ["mean_radius"])["mean_radius"]
    print("with proofs:   " if verified else "without proofs:", f"{mean:.2f}")
print(hospitals.judged[-1])
