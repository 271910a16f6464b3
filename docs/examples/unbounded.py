import hedgerow as hr
from hedgerow.errors import UnboundedSum

table = hr.data.load("breast_cancer").declare(mean_radius=(None, None))  # takes the declared range away
hospitals = hr.simulate(table, partition=hr.data.iid(parties=5), seed=0).protect(mechanism=hr.Gaussian(1.1))

try:
    hr.stats.logistic_regression(hospitals, "malignant ~ mean_radius")
except UnboundedSum as refusal:
    print(refusal)
