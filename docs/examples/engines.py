import hedgerow as hr

table, formula = hr.data.load("breast_cancer"), "malignant ~ mean_radius + mean_texture"
hospitals = hr.simulate(table, partition=hr.data.iid(parties=8), seed=0)

fast = hr.stats.logistic_regression(hospitals, formula)
reference = hr.stats.logistic_regression(hr.engines.on(hospitals, hr.Loop()), formula)
assert abs(fast.coef_ - reference.coef_).max() < 1e-10

six = hr.engines.on(hospitals, hr.InProcess(dropped=["party 2", "party 5"]))  # two of eight never answer
print(hr.stats.logistic_regression(six, formula).n_records, "records answered")

late = hr.engines.on(
    hospitals, hr.InProcess(deadline=2.0, latency=(1.0, 0.5))
)  # answers after 2 simulated seconds do not count
print(hr.stats.moments(late, ["mean_radius"]).to_frame())
