from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

import hedgerow as hr

FEW, MORE = ["rate_marriage", "yrs_married", "religious"], ["age", "children", "educ"]
women = hr.stats.derive(hr.data.load("fair"), affair="affairs > 0").with_roles(target="affair")
test, women = women.split(0.25, 0)
towns = hr.simulate(women, hr.data.iid(parties=10), seed=0).within(hr.Budget(3.0, 1e-5, unit="record"))

# 1. A table of made-up women, for a third of the budget.
made = hr.synth.tan(towns, columns=[*FEW, *MORE, "affair"], bins=8, epsilon=1.0, delta=1e-5).sample(5000, seed=0)
print(made.source)

# 2. Models are tuned on it by cross-validation, at the server. Nobody is asked.
frame, scores = made.to_pandas(), {}
for columns in (FEW, FEW + MORE):
    for bins in (2, 4, 8):
        binned = KBinsDiscretizer(bins, strategy="uniform", encode="onehot-dense")
        model = make_pipeline(binned, LogisticRegression(max_iter=1000))
        scores[tuple(columns), bins] = cross_val_score(model, frame[columns], frame["affair"], cv=5).mean()
        print(f"{len(columns)} columns, {bins} bins: {scores[tuple(columns), bins]:.3f} right of made-up women")
columns, bins = max(scores, key=scores.get)

# 3. The best one is trained on the real women, where they are, for the rest of the budget.
fit = hr.stats.private.logistic(towns, f"affair ~ {' + '.join(columns)}", bins=bins, epsilon=2.7, delta=1e-5)
right = ((fit.predict(test) > 0.5) == (test["affair"] > 0.5)).mean()
print(f"{len(columns)} columns, {bins} bins, trained on real women: {right:.3f} right of {len(test)} held out")
print(f"epsilon {towns.ledger.epsilon(delta=1e-5, unit='record'):.3f} in all")
