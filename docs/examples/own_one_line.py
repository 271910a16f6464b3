import torch
from torch import nn

import hedgerow as hr

table = hr.data.load("breast_cancer")
hospitals = hr.simulate(table, partition=hr.data.iid(parties=5), seed=0)

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(30, 8), nn.ReLU(), nn.Linear(8, 1))
state = hr.last(hr.learn.fedavg(hospitals, net, rounds=20))
