"""Refusals of what other libraries call otherwise: each names what is meant here."""

import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.errors import HedgerowError, suggestion
from hedgerow.learn.descent.rules import RULES
from hedgerow.learn.settings import filled


def said(act):
    with pytest.raises(HedgerowError) as caught:
        act()
    return caught.value


@pytest.mark.parametrize(
    ("given", "meant"),
    [("lr", "learning_rate"), ("optimizer", "solver"), ("num_rounds", "rounds"), ("local_epochs", "epochs")],
)
def test_settings_of_other_libraries(given, meant):
    assert said(lambda: filled({given: 1})).remedy == f"Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("given", "meant"), [("bce", "log_loss"), ("mse", "squared"), ("ce", "cross_entropy"), ("l1", "absolute")]
)
def test_losses_of_other_libraries(given, meant):
    error = said(lambda: hr.learn.Task(inputs=["age"], loss=given))
    assert error.remedy.startswith(f"Did you mean {meant!r}?")


def test_a_word_of_others_is_suggested_only_where_it_is_known():
    assert suggestion("lr", ["rounds", "epochs"]) == "Known: epochs, rounds."
    assert suggestion("ADAM", RULES) == "Did you mean 'adam'?"


def test_a_solver_in_other_letters_is_told_once():
    error = said(lambda: filled({"solver": "adamw"}))
    assert error.reason.count("solver is") == 1
    assert "should be a type" not in error.reason
    assert error.remedy.startswith("Did you mean 'AdamW'?")


def test_an_optimiser_with_parameters_is_refused_by_its_class():
    optimiser = torch.optim.AdamW(nn.Linear(1, 1).parameters())
    error = said(lambda: filled({"solver": optimiser}))
    assert "Parameter Group" not in str(error)
    assert "solver=torch.optim.AdamW, solver_settings={" in error.remedy


def test_a_long_value_is_told_by_its_type():
    error = said(lambda: filled({"epochs": nn.Sequential(*[nn.Linear(2, 2)] * 5)}))
    assert error.reason.startswith("epochs is of type Sequential: ")


@pytest.fixture(scope="module")
def hospitals():
    table = hr.data.load("breast_cancer")
    return hr.simulate(table, hr.data.iid(parties=2), seed=0)


def test_a_module_of_another_width_is_told_the_columns(hospitals):
    error = said(lambda: hr.last(hr.learn.fedavg(hospitals, nn.Linear(3, 1), rounds=1)))
    names = hospitals.schema.features
    assert f"the features, joined ({', '.join(names[:6])} and {len(names) - 6} more); features=[...]" in error.remedy


def test_batch_norm_is_told_the_function_that_replaces_it(hospitals):
    net = nn.Sequential(nn.Linear(30, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    assert "hr.learn.without_batch_norm(module)" in said(lambda: hr.last(hr.learn.fedavg(hospitals, net, rounds=1))).remedy


def test_a_loss_of_torch_is_told_reduction_and_shapes(hospitals):
    task = hr.learn.Task(inputs=["mean_radius", "mean_texture"], loss=nn.BCEWithLogitsLoss())
    remedy = said(lambda: hr.last(hr.learn.fedavg(hospitals, nn.Linear(2, 1), rounds=1, task=task))).remedy
    assert 'reduction="none"' in remedy
    assert "float32 (7, 1) and float32 (7,)" in remedy
    right = hr.learn.Task(
        inputs=["mean_radius", "mean_texture"],
        loss=lambda output, target: nn.BCEWithLogitsLoss(reduction="none")(output[:, 0], target),
    )
    hr.last(hr.learn.fedavg(hospitals, nn.Linear(2, 1), rounds=1, task=right))
