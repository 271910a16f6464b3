from functools import partial

import hedgerow as hr

table = hr.data.load("digits")
parties = hr.simulate(table, partition=hr.data.shards(parties=60), seed=0)

protected = parties.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.5)).within(hr.Budget(epsilon=4.0, delta=1e-3))
train = partial(hr.learn.fedavg, module=hr.learn.linear(64, 10), rounds=20, rate=0.5, learning_rate=0.5)
run = hr.drive(train, protected)
print(run.stopped, "after", run.state.round, "rounds:", run.reason)
