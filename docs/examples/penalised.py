import hedgerow as hr
from hedgerow.stats import cross_validated

table = hr.data.load("diabetes")
hospitals = hr.simulate(table, hr.data.iid(5), seed=0)

path = cross_validated(hospitals, "progression ~ .", standardised=True)  # a lasso
print("questions", path.rounds, " penalties", len(path.penalties))
for penalty in (path.best, path.one_se):
    row = path.to_frame().loc[penalty]
    print(f"penalty {penalty:6.3f}  squared error {row['deviance']:.0f} ± {row['se']:.0f}  selected {row['selected']:.0f}")

frame = path.fit(path.one_se).to_frame()
print(frame[frame["coef"] != 0].round(2).to_string())
