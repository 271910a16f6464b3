import hedgerow as hr

table = hr.data.load("heart_failure")
clinics = hr.simulate(table, partition=hr.data.iid(parties=3), seed=0)
fit = hr.stats.cox(clinics, "time + death_event ~ age + anaemia + ejection_fraction")

labels = {"age": "Age, per year", "anaemia": "Anaemia", "ejection_fraction": "Ejection fraction, per point"}
print(fit.to_latex(labels=labels, caption="Deaths after heart failure", label="tab:deaths"))
print(fit.to_html(labels=labels).count("<tr>"), "rows of HTML")
fit.to_csv("deaths.csv")
