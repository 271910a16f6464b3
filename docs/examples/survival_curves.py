import hedgerow as hr
from hedgerow.stats import median_survival, survival_counts, survival_plot

hospitals = hr.simulate(hr.data.load("heart_failure"), hr.data.iid(4), seed=0)
found = survival_counts(hospitals, "time", "death_event", times=range(15, 286, 15), group="high_blood_pressure")
print(found[found["time"].isin([60, 180, 240])].iloc[:, :9].round(3).to_string(index=False))
print(median_survival(found, "high_blood_pressure", share=0.75))
survival_plot(found, "high_blood_pressure", unit="days").save("survival.svg")
