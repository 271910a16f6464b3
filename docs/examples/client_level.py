import hedgerow as hr
from hedgerow.data import shards
from hedgerow.learn import evaluate_on, linear
from hedgerow.learn.private import dp_fedavg

test, train = hr.data.load("digits").split(0.2, seed=0)
federation = hr.simulate(train, shards(parties=100), seed=0)
private = federation.protect(mechanism=hr.Gaussian(2.0)).within(hr.Budget(8.0, 1e-3))

model = linear(64, 10)
settings = {"rate": 0.5, "epochs": 5, "batch_size": 20, "learning_rate": 2.0, "quantile": 0.2}
state = hr.last(dp_fedavg(private, model, rounds=40, **settings))
print(f"clip {state.clip:.2f}, accuracy {evaluate_on(test, model, state.weights)['accuracy']:.2f}")
