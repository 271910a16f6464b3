import hedgerow as hr
from hedgerow.learn.queries import Inputs, Steps, answers_for, gradient_queries, loss_of
from hedgerow.privacy.accounting import epsilon

table = hr.data.load("hie").with_roles(features=["lncoins", "idp", "physlm", "disea"])
federation = hr.simulate(table, hr.data.iid(parties=3), seed=0)

loss, spec, steps = loss_of("linear", ridge=1.0), Inputs.scaled(table.schema), Steps("algorithm-2", size=0.5, box=1.0)
agreed = {"party 1": 0.5, "party 2": 1.0, "party 3": 4.0}  # epsilon of each owner over 30 questions
answers = answers_for(federation.schema, agreed, 30, loss, spec, steps.box)

model = hr.last(gradient_queries(federation, loss=loss, spec=spec, n_records=20_190, rounds=30, steps=steps, answers=answers))
print(dict(zip(spec.features, model.average.round(2).tolist(), strict=True)))
print("spent, for a record that is replaced:", answers.spent(len(federation.ledger)))
charges = federation.ledger.charges("record")
for accountant in ("basic", "tightest"):
    found = epsilon(charges, delta=1e-6, adjacency="add-remove", accountant=accountant)
    print(f"in the ledger, for a record that is there or not: {found:.2f} ({accountant})")
