import hedgerow as hr
from hedgerow.learn.queries import Inputs, Steps, length_of, loss_of
from hedgerow.market import KnownLoss, OwnerOffer, PilotEstimate, SumNoise

public, _ = hr.data.load("hie").with_roles(target="mdvis", features=["lncoins", "idp", "physlm", "disea"]).split(0.1, seed=0)
loss, spec, steps = (
    loss_of("linear", ridge=0.1),
    Inputs.scaled(public.schema, radius=2.0),
    Steps("algorithm-2", size=1.0, box=1.0),
)
estimate = PilotEstimate.of_records(loss, spec.rows(public.columns), spec.targets(public.columns), steps.box, "public records")
noise = SumNoise("gaussian", 50, length_of(loss, spec, steps.box, norm=2), "add-remove", delta=1e-6)

offers = {
    "harbour": OwnerOffer(12_000, epsilon=(0.2, 10.0), cost=1.0),
    "mill": OwnerOffer(9_000, epsilon=(0.2, 10.0), cost=0.5),
    "chapel": OwnerOffer(200, epsilon=(0.05, 0.2), cost=9.0),
}
plan = hr.plan(offers, KnownLoss.of(estimate, steps, 50), noise, value=20_000.0, title="Visits, three owners")

print(plan.sentence())
for one in plan.coalition:
    print(f"{one.name}: epsilon {one.epsilon:g}, weight {one.weight:g}, paid {one.payment:.2f}, its cost {one.cost:.2f}")
assert plan.deviation <= 1e-6  # what the best other epsilon, or none, would gain anybody
