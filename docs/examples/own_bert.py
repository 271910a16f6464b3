import numpy as np
import torch
import transformers

import hedgerow as hr

rng = np.random.default_rng(0)
words = rng.integers(1, 50, (120, 8))
mask = (np.arange(8) < rng.integers(3, 9, 120)[:, None]).astype(float)
urgent = ((words < 10) & (mask > 0)).any(1).astype(np.int16)
schema = hr.data.Schema(
    (
        hr.data.Column("words", "integer", shape=(8,), low=0, high=49),
        hr.data.Column("mask", "binary", shape=(8,)),
        hr.data.Column("urgent", "category", levels=("no", "yes"), role="target"),
    )
)
table = hr.data.Table(schema.admit({"words": words, "mask": mask, "urgent": urgent}), schema)
clinics = hr.simulate(table, hr.data.iid(parties=4), seed=0)

# --8<-- [start:task]
config = transformers.BertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=8,
    hidden_dropout_prob=0.0,  # DP-SGD refuses dropout, which the records of a batch would share
    attention_probs_dropout_prob=0.0,
)
torch.manual_seed(0)
bert = transformers.BertForSequenceClassification(config)
task = hr.learn.Task(inputs={"input_ids": "words", "attention_mask": "mask"}, output="logits")

state = hr.last(hr.learn.fedavg(clinics, bert, rounds=4, solver="adam", learning_rate=0.01, task=task))
print("FedAvg shows", sorted(hr.learn.evaluate(clinics, bert, state)))

noisy = clinics.protect(mechanism=hr.Gaussian(1.0))
state = hr.last(hr.learn.dpsgd(noisy, bert, rounds=2, sampling_rate=0.2, batch_size=24, learning_rate=0.5, task=task))
print("DP-SGD was charged", noisy.ledger.entries[-1].event)
# --8<-- [end:task]
