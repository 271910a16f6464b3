from collections import Counter

from hedgerow.core.events import Event, Sampling
from hedgerow.privacy import accounting

delta = 1e-5
z = accounting.calibrate(1.0, delta, rounds=100, sampling="all")
print(f"100 rounds at epsilon 1 take a noise multiplier of {z:.2f}.")

charge = Sampling(), (Event("gaussian", z),)
for accountant in ("basic", "advanced", "zcdp", "rdp", "pld", "tightest"):
    spent = accounting.epsilon(Counter({charge: 100}), delta=delta, adjacency="add-remove", accountant=accountant)
    print(f"{accountant:9s} {spent:6.3f}")

print(
    accounting.rounds_left(charge, epsilon=2.0, delta=delta, spent=[charge] * 100, adjacency="add-remove"),
    "more up to epsilon 2",
)
print(accounting.group(1.0, 1e-5, 3), "for three units together")

best = accounting.selection([charge] * 100, mean_runs=10, delta=delta, adjacency="add-remove")
print(f"the best of about 10 such runs: {best:.2f}")
