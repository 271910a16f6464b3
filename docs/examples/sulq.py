import hedgerow as hr
from hedgerow.privacy.sulq import Sulq, everybody


def smokes(columns):
    return columns["smoker"]


def older(columns, *, than):
    return columns["age"] > than


levels = ["Ashford", "Birchwood", "Crofton", "Dale", "Elmbridge", "Fenwick"]
declared = {"hospital": {"levels": levels}, "smoker": {"kind": "binary"}, "readmitted": {"kind": "binary"}}
table = hr.data.read("patients.csv", declared=declared)
hospitals = hr.simulate(table, hr.data.by_column("hospital"), seed=0)
sulq = Sulq.within(hospitals, epsilon=1.0, delta=1e-5, queries=3)
n = sulq.count(everybody)
print(f"{n:.0f} patients, {sulq.count(smokes) / n:.1%} smoke, {sulq.count(older, than=65) / n:.1%} are older than 65")
print(sulq.left, "questions left")
