import hedgerow as hr

clinics = hr.simulate(hr.data.load("hie"), hr.data.iid(4), seed=0)
score = "idp ~ physlm + disea + hlthf + hlthp"

print(hr.stats.ipw(clinics, "mdvis", score).summary())
print()
for name, found in (
    ("overlap weights", hr.stats.overlap_weights(clinics, "mdvis", score)),
    ("doubly robust", hr.stats.aipw(clinics, "mdvis ~ physlm + disea", score)),
):
    low, high = found.conf_int()
    print(f"{name:16s} {found.effect:8.2f}   {low:.2f} to {high:.2f}")
