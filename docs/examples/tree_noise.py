import hedgerow as hr
from hedgerow.learn import fedavg, linear
from hedgerow.privacy import Tree

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, hr.data.iid(parties=8), seed=0)
private = hospitals.protect(clip=hr.l2(0.5), mechanism=Tree(2.0, rounds=8, every=4))
states = list(fedavg(private, linear(30, 1), rounds=8, every=4, learning_rate=0.01))
print(["covered" if entry.cites else str(entry.event) for entry in private.ledger.entries])
