"""The PriMIA study: Matthews correlation, hospitals that stop by themselves, and layers that public images trained."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sklearn.metrics import matthews_corrcoef

import hedgerow as hr
from hedgerow.compare import cells
from hedgerow.data import Table, partitioner
from hedgerow.data.catalogue import CATALOGUE
from hedgerow.errors import MissingData, ModelInvalid
from hedgerow.learn.evaluate import matthews
from hedgerow.learn.features import trained
from hedgerow.learn.records import dpsgd
from hedgerow.papers.haug import pretrained
from hedgerow.privacy.accounting import calibrate
from hedgerow.study import load, run_study

STUDY = load("primia-pneumonia")
SCHEMA = CATALOGUE["pneumoniamnist"].schema
SIDE = (28, 28)


def counts(truth, said, w=None):
    w = np.ones(len(truth)) if w is None else w
    sums = {"n": w, "hits": w * (truth == said), "ones": w * truth, "taken_for_one": w * said}
    return {name: value.sum() for name, value in sums.items()}


# ---- the metric -----------------------------------------------------------------------------------------------------
def test_matthews_correlation_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, said, w = rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.uniform(0.5, 2, 200)
    assert matthews(counts(truth, said)) == pytest.approx(matthews_corrcoef(truth, said), rel=1e-12)
    assert matthews(counts(truth, said, w)) == pytest.approx(matthews_corrcoef(truth, said, sample_weight=w), rel=1e-12)


def test_matthews_correlation_is_one_minus_one_or_nothing():
    truth = np.array([1, 1, 1, 0])
    assert matthews(counts(truth, truth)) == pytest.approx(1)
    assert matthews(counts(truth, 1 - truth)) == pytest.approx(-1)
    assert matthews(counts(truth, np.ones(4))) == 0  # accuracy 0.75


def x_rays(n=60, seed=0):
    """Made-up images, those with pneumonia a little brighter in the middle."""
    columns = SCHEMA.synthetic(n, np.random.default_rng(seed))
    image = columns["image"] // 2
    image[columns["pneumonia"] == 1, 8:20, 8:20] += 100
    return Table(SCHEMA.admit(columns | {"image": image}), SCHEMA, name="x-rays")


def hospitals(table, parties=3):
    return hr.simulate(table, partitioner("iid", parties=parties)(table, 0), seed=0)


@pytest.mark.slow
def test_parties_together_have_the_correlation_of_the_pooled_records():
    table, module = x_rays(), pretrained.scratch(SIDE, 1)
    weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
    at_parties, at_server = hr.learn.evaluate(hospitals(table), module, weights), hr.learn.evaluate_on(table, module, weights)
    assert at_parties == pytest.approx(at_server, rel=1e-5)
    with torch.no_grad():
        said = module(torch.from_numpy(table["image"] / 255).float())[:, 0] > 0
    assert at_server["matthews_correlation"] == pytest.approx(matthews_corrcoef(table["pneumonia"], said), abs=1e-9)


@pytest.mark.slow
def test_behind_noise_there_is_no_correlation_as_every_further_sum_costs():
    module = hr.learn.linear(784, 1)
    weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
    noisy = hospitals(x_rays()).protect(mechanism=hr.Gaussian(1.0))
    assert hr.learn.evaluate(noisy, module, weights).keys() == {"accuracy", "n"}


# ---- the study ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_noise_is_the_least_that_lasts_for_all_rounds():
    rows = {cell.row: cell.study for cell in cells(STUDY) if cell.column == "from scratch" and cell.row != "no noise"}
    keys = {row: study.program.model_extra for row, study in rows.items()}
    for row in ("0.5", "1", "2", "5", "6", "10"):
        steps, rate = keys[row]["rounds"] * keys[row]["steps"], keys[row]["sampling_rate"]
        least = calibrate(float(row), 1e-5, rounds=steps, rate=rate, accountant="rdp")
        assert least <= keys[row]["noise_multiplier"] < 1.001 * least
        assert keys[row]["stop_at"] == rows[row].budget.epsilon == float(row)
    assert keys["0.4, 0.7 and 1"]["noise_multiplier"] == keys["1"]["noise_multiplier"]


DIGITS = [("data", {"name": "digits"}), ("program.model", "linear"), ("evaluation", {"holdout": 0.3, "every": 5})]
"""The study on records that come with a package, which have ten classes."""


def on_digits(row, folder):
    return run_study(next(cell.study for cell in cells(STUDY, changes=DIGITS) if cell.row == row), folder)


@pytest.mark.slow
def test_hospitals_with_small_budgets_stop_and_the_others_go_on(tmp_path):
    result = on_digits("0.4, 0.7 and 1", tmp_path / "run")
    last = result.run.state
    spent = [float(value) for value in last.epsilons.values()]
    assert last.round == 20
    assert last.active == 1
    assert all(0.9 * limit < epsilon <= limit for epsilon, limit in zip(spent, (0.4, 0.7, 1.0), strict=True))
    listed = next(grid for grid in result.report.tables if grid.title == "Epsilon by party")
    assert listed.rows == tuple((f"party {i + 1}", spent[i], limit) for i, limit in enumerate((0.4, 0.7, 1.0)))


@pytest.mark.slow
def test_more_epsilon_is_not_worse(tmp_path):
    """With one seed; 0.05 is three standard errors of an accuracy of 0.85 on 539 test records."""
    few, more = (dict(on_digits(row, tmp_path / row).report.metrics)["test accuracy"] for row in ("0.5", "10"))
    assert more > few - 0.05
    assert more > 0.7


# ---- its models -----------------------------------------------------------------------------------------------------
@pytest.fixture
def garments(monkeypatch, tmp_path):
    """A few made-up garments in the place of the public images; counts how often they are read."""
    schema, read = CATALOGUE["fashion_mnist"].schema, []

    def few(name):
        read.append(name)
        return Table(schema.admit(schema.synthetic(80, np.random.default_rng(0))), schema)

    monkeypatch.setenv("HEDGEROW_CACHE", str(tmp_path))
    monkeypatch.setattr(pretrained, "load", few)
    pretrained.convolutions.cache_clear()
    yield read
    pretrained.convolutions.cache_clear()


@pytest.mark.slow
def test_convolutions_are_trained_once_and_kept(garments, tmp_path):
    first = pretrained.garments(SIDE, 1)
    pretrained.convolutions.cache_clear()
    second = pretrained.garments(SIDE, 1)
    assert garments == ["fashion_mnist"]
    assert torch.equal(first.conv1.weight, second.conv1.weight)
    assert not torch.equal(first.conv1.weight, pretrained.scratch(SIDE, 1).conv1.weight)
    (file,) = (tmp_path / "pretrained").glob("fashion_mnist-*.safetensors")
    np.testing.assert_array_equal(load_file(file)["conv1.weight"], first.conv1.weight.detach())
    file.write_bytes(b"cut short")
    pretrained.convolutions.cache_clear()
    assert torch.equal(pretrained.garments(SIDE, 1).conv2.weight, first.conv2.weight)
    assert len(garments) == 2


@pytest.mark.slow
def test_private_training_leaves_frozen_layers_as_they_are(garments):
    module = pretrained.garments(SIDE, 1)
    assert trained(module) == ("output.weight", "output.bias")
    fed = hospitals(x_rays()).protect(mechanism=hr.Gaussian(1.0))
    last = hr.last(dpsgd(fed, module, rounds=2, sampling_rate=0.5, batch_size=30))
    np.testing.assert_array_equal(last.weights["conv1.weight"], module.conv1.weight.detach())
    assert np.abs(last.weights["output.weight"]).min() > 0
    assert {entry.numbers for entry in fed.ledger.entries} == {32 * 49 + 1}


def test_missing_public_images_say_where_to_name_their_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HEDGEROW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HEDGEROW_DATA", str(tmp_path))
    pretrained.convolutions.cache_clear()
    with pytest.raises(MissingData, match="pre-training") as refused:
        pretrained.garments(SIDE, 1)
    assert "HEDGEROW_DATA" in refused.value.remedy


@pytest.mark.slow
def test_both_models_learn_bright_lungs_privately(garments):
    for make in (pretrained.scratch, pretrained.garments):
        module, table = make(SIDE, 1), x_rays(90)
        fed = hospitals(table).protect(mechanism=hr.Gaussian(0.5))
        last = hr.last(dpsgd(fed, module, rounds=25, sampling_rate=0.5, batch_size=45, learning_rate=0.5))
        assert hr.learn.evaluate_on(x_rays(200, seed=1), module, last.weights)["matthews_correlation"] > 0.6


def test_images_of_another_size_are_refused():
    with pytest.raises(ModelInvalid, match="cannot read records of shape"):
        pretrained.scratch((32, 32), 1)
