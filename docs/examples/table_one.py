import hedgerow as hr

hospitals = hr.simulate(hr.data.load("heart_failure"), hr.data.iid(4), seed=0)
table = hr.stats.table_one(hospitals, ["age", "platelets", "sex", "diabetes"], group="death_event", medians=["age"])
print(table.to_frame().to_string())
