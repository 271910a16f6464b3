"""A network with PEFT adapters, and its twin: the adapters as layers of their own, beside layers without parameters."""

import warnings

import torch
from frozen_nets import HIDDEN, Given, layers
from torch import Tensor, nn

from hedgerow.learn.made import leaves_note

RANK, SCALE, SEED = 3, 2.0, 5


@leaves_note
def lora(n_inputs: int, n_outputs: int) -> nn.Module:
    """As PEFT makes it. B starts at zero there; here it does not, so that both factors move from the first step on."""
    import peft

    net = nn.Sequential(*layers(n_inputs, n_outputs))
    config = peft.LoraConfig(r=RANK, lora_alpha=RANK * SCALE, target_modules=["1", "3"])
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries about each other
        torch.manual_seed(SEED)
        made = peft.get_peft_model(net, config)
        for name, value in made.named_parameters():
            if "lora_B" in name:
                nn.init.normal_(value, std=0.1)
    return made


class Adapted(nn.Module):
    """x W^T + b + scale x A^T B^T, of which A and B are parameters."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.base = Given(layer)
        self.a = nn.Linear(layer.in_features, RANK, bias=False)
        self.b = nn.Linear(RANK, layer.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.b(self.a(x)) * SCALE


@leaves_note
def twin(n_inputs: int, n_outputs: int) -> nn.Module:
    flat, first, relu, last = layers(n_inputs, n_outputs)
    made = nn.Sequential(flat, Adapted(first), relu, Adapted(last))
    same = [value for name, value in lora(n_inputs, n_outputs).named_parameters() if value.requires_grad]
    with torch.no_grad():
        for value, given in zip(made.parameters(), same, strict=True):
            value.copy_(given)
    return made


def adapter(n_inputs: int, n_outputs: int) -> int:
    """How many numbers the adapters have."""
    return RANK * (n_inputs + HIDDEN) + RANK * (HIDDEN + n_outputs)


@leaves_note
def text(n_words: int, n_outputs: int, *, dropout: float = 0.0) -> nn.Module:
    """A small BERT of Hugging Face, made from a configuration, with adapters in its attention and a head that is trained."""
    import peft
    import transformers

    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(vocab_size=n_words, num_labels=n_outputs, max_position_embeddings=16, **shape, **none)
    adapters = peft.LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=4, lora_dropout=dropout, target_modules=["query", "value"])
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries about each other
        torch.manual_seed(SEED)
        return peft.get_peft_model(transformers.BertForSequenceClassification(config), adapters)
