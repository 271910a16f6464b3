"""Four of twenty parties send the opposite of what they learned, three times as long."""

import hedgerow as hr
from hedgerow.attacks.acts.liars import Liars
from hedgerow.attacks.acts.rows import ScaledRows
from hedgerow.engines import InProcess
from hedgerow.engines.acting import Acting
from hedgerow.learn.robust import FLTrust

train, test = hr.data.load("digits").split(0.7, seed=0)
root, test = test.split(0.1, seed=0)  # the server's own records, and no test records
net = hr.learn.mlp(64, [16], 10)
liars = Acting(Liars(("party 1", "party 2", "party 3", "party 4"), (ScaledRows(-3.0),)))


def accuracy(rule, acts, expect=0.2):
    parties = hr.simulate(train, hr.data.iid(20), seed=0, engine=InProcess(acts=acts))
    settings = {"rounds": 20, "steps": 5, "learning_rate": 0.1, "rule": rule}
    settings |= {} if rule == "mean" else {"expect": expect}
    state = hr.last(hr.learn.fedavg(parties, net, **settings))
    return 100 * hr.learn.evaluate_on(test, net, state)["accuracy"]


for name in ("mean", "median", "multi-krum", "geometric-median", FLTrust(root)):
    print(f"{getattr(name, 'name', name):17} nobody lies {accuracy(name, None):3.0f}   four lie {accuracy(name, liars):3.0f}")
groups = {"name": "groups", "groups": 9, "of": "median"}
print(f"{'9 groups':17} nobody lies {accuracy(groups, None):3.0f}   four lie {accuracy(groups, liars):3.0f}")
