"""Integers that a module reads as tokens without an embedding are warned of where they would be scaled."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import HedgerowWarning
from hedgerow.learn import evaluate, fedavg, linear, mlp
from hedgerow.learn.tokens import tokens
from hedgerow.learn.training import model_of

N = 20


class OneHot(nn.Module):
    """Tokens in the first column, numbers behind it; begins at zero, as a linear model does."""

    def __init__(self, more=0):
        super().__init__()
        self.out = nn.Linear(N + more, 1)
        nn.init.zeros_(self.out.weight)

    def forward(self, x):
        return self.out(torch.cat([F.one_hot(x[:, 0].long(), N).float(), x[:, 1:]], 1))


def federation(more=0, kind="integer"):
    rng = np.random.default_rng(0)
    token = rng.integers(0, N, 400)
    columns = {
        "token": token,
        **{f"x{i}": rng.uniform(0, 9, 400).round() for i in range(more)},
        "odd": (token % 2).astype(float),
    }
    named = [Column("token", kind, low=0, high=N - 1), *(Column(f"x{i}", "integer", low=0, high=9) for i in range(more))]
    schema = Schema((*named, Column("odd", "binary", role="target")))
    return hr.simulate(Table(schema.admit(columns), schema), hr.data.iid(parties=2), seed=1)


@pytest.mark.parametrize("more", [0, 2])
def test_tokens_without_an_embedding_are_warned_of(more):
    with pytest.warns(HedgerowWarning, match=r"^token: the module seems to read it as tokens.* scale = 'numbers'"):
        next(iter(fedavg(federation(more), OneHot(more), rounds=1, path="eager")))


def test_the_advice_helps_and_silences():
    fed = federation()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        *_, state = fedavg(fed, OneHot(), rounds=10, learning_rate=2.0, scale="numbers", path="eager")
    assert evaluate(fed, OneHot(), state)["accuracy"] == 1.0


class Blind(nn.Module):
    """Reads the last column alone."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(1, 1)

    def forward(self, x):
        return self.out(x[:, -1:])


@pytest.mark.parametrize(
    "module", [linear(3, 1), mlp(3, [1], 1), nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1)), Blind()], ids=str
)
def test_modules_that_read_numbers_are_not_warned_of(module):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert next(iter(fedavg(federation(2), module, rounds=1, path="eager"))).round == 1


def test_trying_a_module_draws_nothing():
    fed = federation(2)
    model = model_of(OneHot(2), fed, None)
    before = torch.random.get_rng_state()
    assert tokens(model, fed.schema, model.reading) == ["token"]
    assert torch.equal(torch.random.get_rng_state(), before)
