import numpy as np
import torch
from torch import nn

import hedgerow as hr

rng = np.random.default_rng(0)
n = 600
age, visits, ward = rng.uniform(20, 90, n), rng.integers(0, 40, n), rng.integers(0, 5, n)
risk = (age - 55) / 10 + 2 * (ward == 2) - 0.5
columns = {"age": age, "visits": visits, "ward": ward, "returned": (risk + rng.normal(size=n) > 0).astype(float)}
columns["days"] = rng.poisson(np.exp(1 + 0.2 * risk))
schema = hr.data.Schema(
    (
        hr.data.Column("age", "number", low=0, high=110),
        hr.data.Column("visits", "integer", low=0, high=100),
        hr.data.Column("ward", "integer", low=0, high=4),
        hr.data.Column("returned", "binary"),
        hr.data.Column("days", "integer", low=0, high=60),
    )
)
hospitals = hr.simulate(hr.data.Table(schema.admit(columns), schema), hr.data.iid(parties=6), seed=0)


# --8<-- [start:task]
class Ward(nn.Module):
    """Whether a patient returns, and after how many days, from two numbers and an embedded ward."""

    def __init__(self):
        super().__init__()
        self.wards, self.body = nn.Embedding(5, 3), nn.Linear(5, 16)
        self.returned, self.days = nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, x, ward):
        h = torch.relu(self.body(torch.cat([x, self.wards(ward)], 1)))
        return {"returned": self.returned(h), "days": self.days(h)}


def late(output, target):
    """Whether more than five days are expected."""
    return (output["days"][:, 0] > np.log(5)).float()


task = hr.learn.Task(
    inputs={"x": hr.learn.Input(["age", "visits"], "float32"), "ward": "ward"},
    target=["returned", "days"],
    loss={"returned": "log_loss", "days": ("poisson", 0.1)},
    metrics=[hr.learn.Metric("accuracy", on="returned"), hr.learn.Metric(late, bound=1.0)],
)
torch.manual_seed(0)
net = Ward()
settings = {"rounds": 15, "epochs": 3, "solver": "adam", "learning_rate": 0.03}
state = hr.last(hr.learn.fedavg(hospitals, net, task=task, **settings))
found = hr.learn.evaluate(hospitals, net, state)
# --8<-- [end:task]
print("FedAvg      shows", sorted(found), f"and is right about {found['returned accuracy']:.1f} of the patients")

# --8<-- [start:private]
hidden = hospitals.protect(clip=hr.l2(0.5), mechanism=hr.Gaussian(0.1))  # each hospital's update
state = hr.last(hr.learn.fedavg(hidden, net, task=task, **settings))
found = hr.learn.evaluate(hospitals, net, state)
print("by hospital", f"it is right about {found['returned accuracy']:.1f} of them")

noisy = hospitals.protect(mechanism=hr.Gaussian(1.0))  # each patient's gradient
state = hr.last(hr.learn.dpsgd(noisy, net, rounds=5, sampling_rate=0.2, batch_size=120, learning_rate=0.5, task=task))
found = hr.learn.evaluate(noisy, net, state)  # metrics with a bound alone, and charged
print("by patient  shows", sorted(found))
# --8<-- [end:private]
