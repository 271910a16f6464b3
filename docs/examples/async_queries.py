import hedgerow as hr
from hedgerow.learn.queries import Inputs, Steps, answers_for, async_queries, loss_of
from hedgerow.market import PilotEstimate, asynchronous
from hedgerow.privacy.accounting import epsilon

table = hr.data.load("hie").with_roles(features=["lncoins", "idp", "physlm", "disea"])
public, owned = table.split(0.1, seed=0)
federation = hr.simulate(owned, hr.data.iid(parties=6), seed=0)

loss, spec, steps = loss_of("linear"), Inputs.scaled(table.schema), Steps("algorithm-2", size=0.4, box=1.0)
owners = [f"party {i}" for i in range(1, 7)]
answers = answers_for(federation.schema, dict.fromkeys(owners, 2.0), 25, loss, spec, steps.box, neighbours="add-remove")
records = dict.fromkeys(owners, 3028)

known = PilotEstimate.of_records(loss, spec.rows(public.columns), spec.targets(public.columns), 1.0, "public rows")
forecast = asynchronous(known, steps, answers, records, every=4)
print(f"forecast: {forecast.bias:.4f} of the steps, {forecast.noise:.4f} of noise, {forecast.spread:.6f} of who answers when")
print(f"          {forecast.coins:.6f} of who answers when, if coins decided in each step")

told = {"loss": loss, "spec": spec, "steps": steps, "n_records": records}
model = hr.last(async_queries(federation, rounds=25, every=4, answers=answers, **told))
print(dict(zip(spec.features, model.average.round(2).tolist(), strict=True)))

charges = federation.ledger.charges("record")
spent = epsilon(charges, delta=1e-6, adjacency="add-remove", accountant="basic")
print(f"{len(federation.ledger)} questions, of which each owner answered {model.round}, and epsilon {spent:.2f}")
