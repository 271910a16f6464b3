"""Which algorithm where labels are skewed?

Ten parties with unequal labels train a small network by three algorithms. The loop over states is the caller's, and so is the
curve.
"""

import hedgerow as hr
from hedgerow.report import Curve, Series

train, test = hr.data.load("digits").split(0.8, seed=0)
net = hr.learn.mlp(64, [32], 10)
lines = []
for algorithm in (hr.learn.fedavg, hr.learn.scaffold, hr.learn.fednova):
    federation = hr.simulate(train, hr.data.dirichlet_labels(parties=10, alpha=0.1), seed=0)
    scores = [
        hr.learn.evaluate_on(test, net, state.weights)["accuracy"]
        for state in algorithm(federation, net, rounds=20, epochs=2, batch_size=20, learning_rate=0.3)
    ]
    lines.append(Series(algorithm.__name__, tuple(range(1, 21)), tuple(scores)))
    print(f"{algorithm.__name__:8} {max(scores):.1f}")

picture = Curve("Accuracy on test images", "round", "accuracy", tuple(lines))
