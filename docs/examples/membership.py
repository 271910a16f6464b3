"""Who was in the training? A threshold on the loss, and likelihood ratios by shadow models, on handwritten digits."""

import numpy as np

import hedgerow as hr
from hedgerow.attacks import TargetRates, confidences, lira
from hedgerow.learn import fedavg, mlp

digits, module = hr.data.load("digits"), mlp(64, [64], 10)
members = np.random.default_rng(0).random((32, len(digits))) < 0.1  # each of 32 models is trained on a tenth


def trained(inside):
    federation = hr.simulate(digits.take(inside), hr.data.iid(1), seed=0)
    return hr.last(fedavg(federation, module, rounds=1, epochs=80, batch_size=32, learning_rate=0.2))


said = np.array([confidences(trained(inside), module, digits) for inside in members])
attacked = range(10)  # each by means of the 31 others
ratios = [lira(said[k], np.delete(said, k, 0), np.delete(members, k, 0)) for k in attacked]
for name, scores in {"threshold": said[:10], "LiRA": ratios}.items():
    rates = TargetRates.of(scores, members[:10])
    print(f"{name}: AUC {rates.area.value:.2f}, true positives at 1 % false ones {rates.at(0.01).value:.0%}")
