import numpy as np
from sklearn.naive_bayes import GaussianNB

import hedgerow as hr
from hedgerow.learn.teachers import Learner


@hr.travels
def bayes(X, y, rng, *, classes, smoothing=1e-3):
    """Rows (n, d) and classes 0 .. C-1 of shape (n,); the prediction gives scores (q, C), also of a class without a record."""
    model = GaussianNB(var_smoothing=smoothing).fit(X, y)

    def scores(new):
        found = np.full((len(new), classes), -1.0)
        found[:, model.classes_] = model.predict_proba(new)
        return found

    return scores


table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table.take(range(400)), hr.data.iid(parties=4), seed=0)
frame = table.to_pandas().drop(columns="malignant")  # the public pool has no labels

labels = hr.learn.pate(hospitals, inputs=frame[400:500], teacher=Learner(bayes, (("smoothing", 1e-2),)), shards=5)
student = labels.student(graph=5, model="logistic")
print(labels)
print(f"{student}: {student.accuracy(table.take(range(500, 569))):.3f} right, of 69 held out")
