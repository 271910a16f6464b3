import hedgerow as hr

hospitals = hr.simulate(hr.data.load("insurance"), hr.data.iid(4), seed=0)
score = "smoker ~ age + bmi + children + C(sex)"

print(hr.stats.ipw(hospitals, "charges", score).summary())
print()
for name, found in (
    ("overlap weights", hr.stats.overlap_weights(hospitals, "charges", score)),
    ("doubly robust", hr.stats.aipw(hospitals, "charges ~ age + bmi + children", score)),
):
    low, high = found.conf_int()
    print(f"{name:16s} {found.effect:8.0f}   {low:.0f} to {high:.0f}")
