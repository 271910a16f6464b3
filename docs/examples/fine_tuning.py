"""Adapters of PEFT, a frozen layer, and AdamW: what is trained travels, and nothing else."""

import peft
import torch
from torch import nn

import hedgerow as hr
from hedgerow.core import travels
from hedgerow.learn import evaluate, fedavg, trained_weights, with_weights


@travels  # in a package that stations have, its model is made there: made_by("package.module:adapted", 64, 10)
def adapted(n_inputs: int, n_outputs: int) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(n_inputs, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, n_outputs))
    adapters = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["0", "2"], modules_to_save=["4"])
    return peft.get_peft_model(net, adapters)


federation = hr.simulate(hr.data.load("digits"), hr.data.iid(parties=5), seed=1)
module = adapted(64, 10)
settings = {"solver": torch.optim.AdamW, "solver_settings": {"weight_decay": 0.01}, "learning_rate": 0.01}
*_, state = fedavg(federation, module, rounds=5, **settings)

whole, sent = sum(p.numel() for p in module.parameters()), federation.ledger.entries[-1].numbers
print(f"{whole} numbers in the model, {sent - 1} on the wire, and the weight of a party")
print(f"accuracy {evaluate(federation, module, state)['accuracy']:.2f}")

alone = trained_weights(module, state)  # beside the pretrained model, this is all that has to be kept
again = with_weights(adapted(64, 10), alone)
print(len(alone), "arrays, the first of them", next(iter(alone)))
