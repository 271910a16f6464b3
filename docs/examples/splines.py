"""A curve instead of a line: a restricted cubic spline of age, its test, and its values with a band."""

import hedgerow as hr

hospitals = hr.simulate(hr.data.load("heart_failure"), hr.data.iid(parties=4), seed=0)

knots = hr.stats.knots_of(hospitals, "age", n=4, step=5)
fit = hr.stats.logistic_regression(hospitals, f"death_event ~ rcs(age, {list(knots)}) + log(serum_creatinine)")
print(fit.to_frame().round(3)[["coef", "se", "p"]])

statistic, constraints, p = fit.curvature("age")
print(f"curvature: {statistic:.2f} on {constraints}, p = {p:.3f}")

curve = fit.curve("age", at=[45, 55, 75, 85], reference=65, ratio=True)
line = curve.series[0]
for age, ratio, low, high in zip(line.x, line.y, line.low, line.high, strict=True):
    print(f"{age:.0f} against 65: odds ratio {ratio:.2f} ({low:.2f} to {high:.2f})")
fit.plot_curve("age", reference=65, ratio=True).save("age.svg")
