"""A tiny BERT with random weights, word numbers and a mask: FedAvg, client-level noise and DP-SGD, as by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from task_nets import Net, by_hand, clinics, flat_of, record_steps

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.learn import Task, dp_fedavg, dpsgd, evaluate, fedavg
from hedgerow.store import last

pytestmark = pytest.mark.slow
WORDS, PLACES = 40, 6


@pytest.fixture(scope="module")
def bert():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=PLACES,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    rng = np.random.default_rng(0)
    schema = Schema(
        (
            Column("ids", "integer", shape=(PLACES,), low=0, high=WORDS - 1),
            Column("mask", "binary", shape=(PLACES,)),
            Column("label", "category", role="target", levels=("a", "b", "c")),
        )
    )
    mask = (np.arange(PLACES) < rng.integers(2, PLACES + 1, 18)[:, None]).astype(float)
    columns = {"ids": rng.integers(0, WORDS, (18, PLACES)), "mask": mask, "label": rng.integers(0, 3, 18).astype(np.int16)}

    def loss(module, own):
        ids, seen, label = (torch.tensor(own[name], dtype=torch.int64) for name in ("ids", "mask", "label"))
        return F.cross_entropy(module(input_ids=ids, attention_mask=seen).logits, label, reduction="none")

    task = Task(inputs={"input_ids": "ids", "attention_mask": "mask"}, output="logits")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = transformers.BertForSequenceClassification(config)
    return Net(module, Table(schema.admit(columns), schema), task, loss)


def test_fedavg_is_a_loop_by_hand(bert):
    federation = clinics(bert)
    found = last(fedavg(federation, bert.module, rounds=2, batch_size=None, learning_rate=0.5, task=bert.task))
    np.testing.assert_allclose(flat_of(bert, found), by_hand(bert, federation, 2, 0.5), atol=2e-5)
    seen = evaluate(federation, bert.module, found)
    assert seen["n"] == 18
    assert 0 <= seen["accuracy"] <= 1


def test_it_trains_behind_noise_that_hides_parties(bert):
    noisy = clinics(bert).protect(clip=hr.l2(0.1), mechanism=hr.Gaussian(1e-4))
    found = last(fedavg(noisy, bert.module, rounds=2, batch_size=None, learning_rate=0.5, task=bert.task))
    wanted = by_hand(bert, clinics(bert), 2, 0.5, clip=0.1)
    np.testing.assert_allclose(flat_of(bert, found), wanted, atol=1e-3)
    followed = last(dp_fedavg(clinics(bert).protect(mechanism=hr.Gaussian(1.0)), bert.module, rounds=1, task=bert.task))
    assert np.isfinite(flat_of(bert, followed)).all()


def test_dpsgd_is_a_loop_by_hand(bert):
    nearly = clinics(bert).protect(mechanism=hr.Gaussian(1e-4))
    settings = {"rounds": 2, "sampling_rate": 1.0, "batch_size": 18, "clip": 0.5, "learning_rate": 0.5, "task": bert.task}
    found = last(dpsgd(nearly, bert.module, **settings))
    wanted = record_steps(bert, clinics(bert), 2, 0.5, 0.5 * (1 - 2.5e-4), 18)
    np.testing.assert_allclose(flat_of(bert, found), wanted, atol=1e-3)
    assert len(nearly.ledger.entries) == 2
