"""Optimisers of `torch.optim` as local solvers: each is the library's own loop, travels by name, and no other name is taken."""

import copy
import logging

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.errors import SettingsInvalid
from hedgerow.learn import Solver, fedavg, mlp, scaffold
from hedgerow.learn.descent import Correction, descend
from hedgerow.learn.descent.optimisers import NAMES, settled
from hedgerow.learn.models import Model
from hedgerow.study.catalogue import listing
from hedgerow.testing import Subject
from hedgerow.wire.values import pack, unpack
from helpers import ENGINE_NAMES, ENGINES

GIVEN = {
    "AdamW": {"weight_decay": 0.1, "betas": (0.8, 0.95), "amsgrad": True},
    "SGD": {"momentum": 0.7, "weight_decay": 0.05, "nesterov": True},
    "RMSprop": {"alpha": 0.9, "centered": True},
    "Adafactor": {"weight_decay": 0.1},
}
LOCAL = {"rounds": 2, "learning_rate": 0.02, "batch_size": 20, "solver": "AdamW", "solver_settings": {"weight_decay": 0.1}}


def digits(parties=3, records=120):
    return hr.simulate(hr.data.load("digits").take(range(records)), hr.data.iid(parties=parties), seed=0)


def party(n=23):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, 3, n)
    return Party("p", {"model_input": x, "model_target": y}, rng.integers(1, 3, n).astype(float))


def by_hand(net, one, solver, plan, pull=0.0):
    """Where a loop of PyTorch's own ends."""
    net = copy.deepcopy(net)
    begun = [value.detach().clone() for value in net.parameters()]
    made = getattr(torch.optim, solver.rule)(net.parameters(), lr=solver.learning_rate, **dict(solver.rule_settings))
    x, y, w = (torch.from_numpy(a) for a in (one["model_input"], one["model_target"], one.w.astype(np.float32)))
    for step in plan:
        rows = torch.from_numpy(step[step >= 0])
        made.zero_grad()
        loss = (w[rows] / w[rows].sum() * F.cross_entropy(net(x[rows]), y[rows], reduction="none")).sum()
        drift = sum(((now - at) ** 2).sum() for now, at in zip(net.parameters(), begun, strict=True))
        (loss + pull / 2 * drift).backward()
        made.step()
    return torch.cat([value.detach().reshape(-1) for value in net.parameters()]).numpy()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pull", [0.0, 0.3])
def test_an_optimiser_of_torch_is_a_loop_of_torch(name, pull):
    net, one = mlp(4, [5], 3), party()
    solver = Solver(0.05, epochs=3, batch_size=8, rule=name, rule_settings=settled(GIVEN.get(name, {})))
    model = Model(net, "category")
    plan = solver.plan("p", np.arange(23), np.random.default_rng(5))
    found = descend(model.initial, one, np.random.default_rng(5), model=model, solver=solver, correction=Correction(pull))
    np.testing.assert_allclose(model.initial + found.change, by_hand(net, one, solver, plan, pull), rtol=1e-5, atol=2e-6)
    assert found.steps == len(plan) == 9


@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_every_engine_trains_by_it_and_it_travels_by_name(engine):
    (*_, one), (*_, other) = (fedavg(hr.engines.on(digits(), e), mlp(64, [6], 10), **LOCAL) for e in (engine, hr.Loop()))
    for name, value in one.weights.items():
        np.testing.assert_allclose(value, other.weights[name], atol=1e-6)


def test_a_class_is_its_name_and_no_setting_is_the_default_of_torch():
    found = []
    for solver in (torch.optim.AdamW, "AdamW"):
        for given in ({}, {"weight_decay": 0.01}, {"weight_decay": 0.5}):
            *_, state = fedavg(digits(), mlp(64, [6], 10), **LOCAL | {"solver": solver, "solver_settings": given})
            found.append(state.weights["1.weight"])
    for k in (1, 3, 4):
        np.testing.assert_array_equal(found[0], found[k])
    np.testing.assert_array_equal(found[2], found[5])
    assert np.abs(found[0] - found[2]).max() > 1e-3


def test_frozen_layers_do_not_decay():
    net = mlp(64, [6], 10)
    net[1].requires_grad_(False)
    *_, state = fedavg(digits(), net, **LOCAL)
    np.testing.assert_array_equal(state.weights["1.weight"], net[1].weight.detach().numpy())
    assert np.abs(state.weights["3.weight"] - net[3].weight.detach().numpy()).max() > 0.01


def test_a_solver_travels_with_its_settings_and_nothing_that_is_no_name_does():
    solver = Solver(0.1, rule="AdamW", rule_settings=settled({"weight_decay": 0.1, "betas": [0.8, 0.9]}))
    assert unpack(pack(solver)) == solver
    assert not solver.problems()
    assert not Solver(rule="AdamW").stackable
    for rule in ("LBFGS", "Optimizer", "lr_scheduler", "os.system", "__class__"):
        assert "solver is" in Solver(rule=rule).problems()[0]


def test_a_path_that_it_cannot_take_is_said(caplog):
    with caplog.at_level(logging.WARNING, "hedgerow.learn"):
        next(fedavg(digits(), mlp(64, [6], 10), **LOCAL, path="native"))
    assert "AdamW of torch.optim trains eagerly" in caplog.text


def test_a_study_asks_for_it_by_name():
    subject = Subject(listing("fedavg"))
    own = {"solver": "AdamW", "solver_settings": {"weight_decay": 0.1, "betas": [0.8, 0.95]}}
    built = subject.built(study=subject.study(program={"name": "fedavg", **subject.case.settings, **own}))
    *_, state = subject.states(built)
    assert state.round == 2
    assert len(built.federation.ledger.entries) == 2


class Foreign(torch.optim.SGD):
    """Not of `torch.optim`."""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"solver": "LBFGS"}, "LBFGS"),
        ({"solver": torch.optim.LBFGS}, "LBFGS"),
        ({"solver": Foreign}, "Foreign"),
        ({"solver": nn.Linear}, "Linear"),
        ({"solver": "torch.optim.AdamW"}, "torch.optim.AdamW"),
        ({"solver_settings": {"lr": 1.0}}, "lr is no setting of AdamW, which has betas, eps, weight_decay, amsgrad"),
        ({"solver_settings": {"foreach": True}}, "foreach is no setting"),
        ({"solver_settings": {"betas": (2.0, 0.9)}}, "Invalid beta"),
        ({"solver_settings": {"betas": 0.9}}, "solver_settings of AdamW"),
        ({"solver_settings": {"weight_decay": "much"}}, "solver_settings"),
        ({"momentum": 0.5}, "takes its constants from solver_settings"),
        ({"solver": "adam"}, "solver_settings are given, and solver is 'adam'"),
    ],
)
def test_what_is_no_optimiser_is_refused_before_anybody_is_asked(wrong, said):
    fed = digits()
    with pytest.raises(SettingsInvalid, match="HR-511") as caught:
        next(fedavg(fed, mlp(64, [6], 10), **LOCAL | wrong))
    assert said in str(caught.value)
    assert not fed.ledger.entries


def test_an_algorithm_that_is_defined_for_sgd_keeps_to_it():
    fed = digits()
    with pytest.raises(SettingsInvalid, match="defined for solver = 'sgd'"):
        next(scaffold(fed, mlp(64, [6], 10), rounds=1, solver=torch.optim.AdamW))
    with pytest.raises(SettingsInvalid, match="HR-511"):
        next(hr.learn.fednova(fed, mlp(64, [6], 10), rounds=1, solver="SGD"))
    assert not fed.ledger.entries
