import make_loans

import hedgerow as hr
from hedgerow.learn.queries import Inputs, Steps, answers_for, gradient_queries, loss_of, optimum, pooled, relative_fitness
from hedgerow.market import PilotEstimate, best_weights, forecast, propagate, variances

make_loans.write()  # loans.csv of four lenders, and public_loans.csv of none of them
ranges = {"income": (10_000, 300_000), "debt": (0, 1), "years": (3, 5), "rate": (5, 30)}
loans, public = (hr.data.read(f"{name}.csv", target="rate").declare(**ranges) for name in ("loans", "public_loans"))

loss, steps, T = loss_of("linear"), Steps(size=0.75, box=1.0), 100
spec = Inputs.scaled(public.schema, features=["income", "debt", "years"], constant=0.5)
x, y = spec.rows(public.columns), spec.targets(public.columns)
estimate = PilotEstimate.of_records(loss, x, y, steps.box, "2000 public loans")

records = {"harbour": 6000, "mill": 3000, "orchard": 2500, "chapel": 500}
agreed = {"harbour": 3.0, "mill": 1.0, "orchard": 1.0, "chapel": 0.2}


def answers(weights=None, owners=tuple(records)):
    epsilons = {name: agreed[name] for name in owners}
    noise = {"law": "gaussian", "neighbours": "add-remove", "delta": 1e-6}
    return answers_for(public.schema, epsilons, T, loss, spec, steps.box, weights=weights, **noise)


n, a = list(records.values()), list(variances(answers()).values())
moved = propagate(estimate, steps, T)
best = best_weights(n, a, moved.sampling, moved.amplification)
weights = {name: round(float(w), 3) for name, w in zip(records, best, strict=True)}
print("everybody alike:", forecast(estimate, steps, T, answers(), n).sentence)
print("harbour alone:  ", forecast(estimate, steps, T, answers(owners=["harbour"]), n[:1]).sentence)
print("best weights:   ", forecast(estimate, steps, T, answers(), n, list(weights.values())).sentence)

owners = hr.simulate(loans, hr.data.by_column("lender"), seed=0)
told = {"loss": loss, "spec": spec, "n_records": records, "rounds": T, "steps": steps, "answers": answers(weights)}
reached, rows = hr.last(gradient_queries(owners, **told)).average, pooled(hr.engines.records(owners), spec)
print(f"reached by one run with the weights {weights}:")
print(f"    relative fitness {relative_fitness(loss, reached, optimum(loss, *rows, steps.box), *rows):.3g}")
