"""Features reach modules by their declared ranges: by hand, for every program, with embeddings; raw columns diverge."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import hedgerow as hr
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import HedgerowWarning, SettingsInvalid
from hedgerow.learn import dpsgd, evaluate, evaluate_on, evaluate_personal, evaluate_subnetworks, fedavg, linear, spread
from hedgerow.learn.scale import said, scale_for, unscaled
from hedgerow.learn.tensors import inputs_and_target, scaling, settings
from hedgerow.report.page import render
from hedgerow.study import parse, run_study
from hedgerow.study.catalogue import listing
from hedgerow.study.registry import own

SCHEMA = Schema(
    (
        Column("age", "integer", low=20, high=100),
        Column("income", "number", low=0, high=1e6),
        Column("change", "number", low=-5, high=10),
        Column("sex", "category", levels=("f", "m")),
        Column("smokes", "binary"),
        Column("score", "number"),
        Column("ill", "binary", role="target"),
    )
)
RECORD = {"age": [40], "income": [250_000.0], "change": [5.0], "sex": [1], "smokes": [1.0], "score": [7.0], "ill": [0.0]}
READ = {
    "ranges": [0.25, 0.25, 0.5, 0, 1, 1, 7],
    "numbers": [40, 0.25, 0.5, 0, 1, 1, 7],
    "none": [40, 250_000, 5, 0, 1, 1, 7],
}


@pytest.mark.parametrize("scale", READ)
def test_joined_features_by_hand(scale):
    columns = {name: np.array(value) for name, value in RECORD.items()}
    found = inputs_and_target(columns, **settings(SCHEMA, None, scale))
    np.testing.assert_allclose(found["model_input"], [READ[scale]])


def test_large_numbers_keep_their_digits():
    schema = Schema((Column("t", "integer", low=1_600_000_000, high=1_600_000_100), Column("y", "binary", role="target")))
    columns = {"t": np.array([1_600_000_001, 1_600_000_002]), "y": np.zeros(2)}
    found = inputs_and_target(columns, **settings(schema))["model_input"].ravel()
    np.testing.assert_allclose(found, [0.01, 0.02], rtol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "kind", "scale", "found"),
    [
        (0, 16, "integer", "ranges", (0.0, 1 / 16)),
        (0, 16, "integer", "numbers", (0.0, 1.0)),
        (0, 16, "number", "numbers", (0.0, 1 / 16)),
        (0, 16, "number", "none", (0.0, 1.0)),
        (-1, 1, "number", "ranges", (0.0, 1.0)),
        (None, None, "number", "ranges", (0.0, 1.0)),
    ],
)
def test_a_single_array_column(low, high, kind, scale, found):
    schema = Schema((Column("x", kind, low=low, high=high, shape=(4,)), Column("y", "binary", role="target")))
    assert scaling(schema, None, scale) == found


class Words(nn.Module):
    """Reads whole numbers as tokens, and fails for others."""

    def __init__(self, n_outputs=1):
        super().__init__()
        self.rows, self.out = nn.Embedding(30, 4), nn.Linear(4, n_outputs)

    def forward(self, x):
        assert bool((x == x.round()).all())
        return self.out(self.rows(x.long()).mean(1))


@pytest.mark.parametrize("shaped", [True, False])
def test_a_module_with_an_embedding_reads_integers_as_tokens(shaped):
    assert scale_for(Words(), "ranges") == "numbers"
    assert scale_for(nn.Linear(2, 2), "ranges") == "ranges"
    rng = np.random.default_rng(0)
    words, target = rng.integers(0, 30, size=(60, 5)), Column("y", "binary", role="target")
    names = ["words"] if shaped else [f"w{i}" for i in range(5)]
    features = [Column(name, "integer", low=0, high=29, shape=(5,) if shaped else ()) for name in names]
    schema, columns = Schema((*features, target)), {"words": words} if shaped else dict(zip(names, words.T, strict=True))
    table = Table(schema.admit(columns | {"y": (words[:, 0] > 14).astype(float)}), schema)
    fed = hr.simulate(table, hr.data.iid(parties=3), seed=0)
    *_, state = fedavg(fed, Words(), rounds=2, path="eager")
    assert evaluate(fed, Words(), state)["loss"] == pytest.approx(evaluate_on(table, Words(), state)["loss"], rel=1e-5)


# ---- training --------------------------------------------------------------------------------------------------------------
def patients(n=300, bare=False):
    """Three columns whose ranges differ by five orders of magnitude, and a target that all of them decide."""
    rng = np.random.default_rng(1)
    age, platelets, ratio = rng.uniform(20, 90, n), rng.uniform(0, 1e6, n), rng.uniform(0, 3, n)
    ill = ((age - 55) / 35 + (platelets - 5e5) / 5e5 + (ratio - 1.5) / 1.5 > 0).astype(float)
    ranges = {} if bare else {"low": 0}
    columns = (
        Column("age", "number", **(ranges | ({} if bare else {"high": 120}))),
        Column("platelets", "number", **(ranges | ({} if bare else {"high": 1e6}))),
        Column("ratio", "number", **(ranges | ({} if bare else {"high": 3}))),
        Column("ill", "binary", role="target"),
    )
    schema = Schema(columns)
    return Table(schema.admit({"age": age, "platelets": platelets, "ratio": ratio, "ill": ill}), schema)


def parties(**how):
    return hr.simulate(patients(**how), hr.data.iid(parties=3), seed=0)


def test_raw_columns_are_learned_by_their_declared_ranges():
    fed, table = parties(), patients()
    *_, state = fedavg(fed, linear(3, 1), rounds=20, epochs=5, learning_rate=0.5)
    assert evaluate_on(table, linear(3, 1), state)["accuracy"] > 0.9
    *_, other = fedavg(fed, linear(3, 1), rounds=20, epochs=5, learning_rate=0.5, scale="none")
    found = evaluate_on(table, linear(3, 1), other, scale="none")
    assert found["loss"] > 100


def test_every_evaluation_takes_the_scale_of_the_training():
    fed, net = parties(), linear(3, 1)
    *_, state = fedavg(fed, net, rounds=2, learning_rate=1e-12, scale="none")
    for judge in (evaluate, evaluate_personal, evaluate_subnetworks):
        assert judge(fed, net, state, scale="none") == judge(fed, net, state)
        assert judge(fed, net, state)["loss"] != judge(fed, net, dict(state.weights))["loss"]
        with pytest.raises(SettingsInvalid, match="trained with 'none'"):
            judge(fed, net, state, scale="ranges")
    raw = np.stack([patients()[name] for name in ("age", "platelets", "ratio")], 1)
    with torch.no_grad():
        output = hr.learn.with_weights(net, state)(torch.from_numpy(raw).float())[:, 0]
    y = torch.from_numpy(patients()["ill"]).float()
    loss = nn.functional.binary_cross_entropy_with_logits(output, y).item()
    assert evaluate(fed, net, state, scale="none")["loss"] == pytest.approx(loss, rel=1e-5)
    assert np.isfinite(spread(fed, net, state, scale="none").gradient_variance)
    with pytest.raises(SettingsInvalid, match="trained with other scale of the features: 'none' there"):
        spread(fed, net, state)


def test_every_program_that_trains_a_module_has_the_setting():
    without = {name for name in own() if "hidden" in listing(name).keys and "scale" not in _keys(name)}
    assert without == {"dpsgd_on_features", "membership"}  # rows of length one, and components of public records


def _keys(name):
    from hedgerow.study.keys import keys_of

    return keys_of(listing(name)).model_fields


def test_numbers_without_a_range_are_warned_of_before_any_party_is_asked():
    assert unscaled(SCHEMA, SCHEMA.features) == ["score"]
    fed = parties(bare=True)
    for program in (
        fedavg(fed, linear(3, 1), rounds=1),
        dpsgd(fed, linear(3, 1), rounds=1, sampling_rate=0.5, batch_size=100),
    ):
        with pytest.warns(HedgerowWarning, match="age, platelets, ratio: no declared range"):
            next(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(fedavg(fed, linear(3, 1), rounds=1, scale="none", learning_rate=1e-9))
        next(fedavg(parties(), linear(3, 1), rounds=1))


def test_an_unknown_scale_is_refused():
    with pytest.raises(SettingsInvalid, match="HR-511"):
        next(fedavg(parties(), linear(3, 1), rounds=1, scale="standard"))


# ---- words -----------------------------------------------------------------------------------------------------------------
def test_a_report_says_how_features_reach_the_model(tmp_path):
    found = said(SCHEMA, SCHEMA.features, "ranges")
    assert found == (
        "From declared ranges to [0, 1]: age, income. From declared ranges to [-1, 1]: change. Indicators of levels: sex. "
        "As they are: smokes, score."
    )
    assert said(hr.data.load("digits").schema, ["image"], "ranges") == "image: from its declared range to [0, 1]."
    assert said(hr.data.load("digits").schema, ["image"], "none") == "image: as it is."
    page = {name: render(ran(tmp_path / name, **given).report) for name, given in (("a", {}), ("b", {"scale": "none"}))}
    assert "From declared ranges to [0, 1]: mean_radius" in page["a"]
    assert "As they are: mean_radius" in page["b"]


def ran(folder, **program):
    study = parse(
        {
            "name": "try",
            "data": {"name": "breast_cancer"},
            "partition": {"by": "iid", "parties": 4},
            "program": {"name": "fedavg", "rounds": 5, "epochs": 5, "learning_rate": 0.3} | program,
            "evaluation": {"on": "test", "holdout": 0.3},
        }
    )
    return run_study(study, folder)


def test_a_study_of_raw_columns_learns_and_without_scaling_is_called_no_success(tmp_path):
    report = ran(tmp_path / "scaled").report
    federated, centralised = (value for _, value, _ in report.comparison.rows[:2])
    assert report.nothing == ""
    assert federated > 0.85
    assert centralised > 0.85
    raw = ran(tmp_path / "raw", scale="none", learning_rate=1.0).report
    assert raw.nothing
    assert raw.comparison is None or raw.comparison.loss is None
