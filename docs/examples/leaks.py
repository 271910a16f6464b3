"""What slopes tell of labels, beside what the model's own score tells: 2000 made-up people, one in ten of them positive."""

import numpy as np

from hedgerow.vertical.leaks import LabelDP, label_leak

rng = np.random.default_rng(0)
labels = (rng.random(2000) < 0.1).astype(int)
score = 2.5 * labels - 3 + rng.normal(size=2000)  # of a model that has learned something
chance = 1 / (1 + np.exp(-score))
last_layer = rng.normal(size=8)
batch = np.arange(2000) // 250

private = LabelDP(epsilon=1.0)
said = private.once({}, labels, rng.bytes)  # the label holder's party.state and stream in a real run

for name, used in {"labels as they are": labels, "labels said once": said}.items():
    slopes = (chance - used)[:, None] * last_layer  # dL/dz of each record
    print(name)
    for how in ("norm", "direction"):
        print("   ", label_leak(how, slopes, batch, labels, score, said=used))
print(private.promise)
print(f"Who reads every label that was said, and nothing else, has AUC {private.ceiling:.3f}.")
