"""The study `abadi-mnist`: its budgets hold what it asks, no less and no more, and its program is what it says."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
from comparing import study

import hedgerow as hr
from hedgerow.compare.cells import cells
from hedgerow.core.events import Event, Sampling
from hedgerow.data import Column, Schema, Table
from hedgerow.errors import BudgetExhausted, HedgerowError, HedgerowWarning
from hedgerow.learn import mlp
from hedgerow.learn.features import FeatureState, dpsgd_on_features
from hedgerow.learn.features.results import module_for, on_table, over_parties
from hedgerow.privacy import Budget, Gaussian
from hedgerow.privacy.accounting import epsilon
from hedgerow.store import drive
from hedgerow.store.checkpoint import load_checkpoint
from hedgerow.study import load
from hedgerow.study.build import build
from hedgerow.study.runner import run

CELLS = {cell.row: cell.study for cell in cells(load("abadi-mnist"))}
PROGRAM = {
    "name": "dpsgd_on_features",
    "model": "mlp",
    "hidden": [8],
    "centre_rounds": 1,
    "components": 5,
    "basis_rounds": 2,
    "rounds": 3,
    "sampling_rate": 0.5,
    "batch_size": 100,
    "average": 0.5,
}
SCHEMA = Schema((Column("image", "integer", low=0, high=255, shape=(12, 12)), Column("y", "binary", role="target")))


def drawings(n=90):
    """Bars, upright or lying, on an empty ground."""
    rng = np.random.default_rng(0)
    image, y = np.zeros((n, 12, 12), np.uint8), np.arange(n) % 2.0
    for i, at in enumerate(rng.integers(3, 9, n)):
        part = np.s_[2:10, at] if y[i] else np.s_[at, 2:10]
        image[i][part] = 255
    return Table(SCHEMA.admit({"image": image, "y": y}), SCHEMA)


def federation(z=None, parties=3):
    fed = hr.simulate(drawings(), hr.data.iid(parties=parties), seed=0)
    return fed if z is None else fed.protect(mechanism=Gaussian(z))


def train(fed, **changes):
    given = {"rounds": 4, "sampling_rate": 0.5, "batch_size": 45, "components": 6, "centre_rounds": 1, "basis_rounds": 2}
    return dpsgd_on_features(fed, mlp(6, [5], 1), **given | {"learning_rate": 0.5} | changes)


@pytest.mark.slow
@pytest.mark.parametrize("row", CELLS)
def test_centre_components_and_steps_together_cost_the_budget_and_not_more(row):
    cell = CELLS[row]
    asked = cell.program.model_extra
    count = asked["rounds"] + asked["centre_rounds"] + (asked["basis_rounds"] if "components" in asked else 0)
    z = cell.protection.mechanism.noise_multiplier
    charge = (Sampling("records", asked["sampling_rate"]), (Event("gaussian", z),))
    spent = epsilon([charge] * count, delta=1e-5, adjacency="add-remove", accountant="pld")
    assert 0.99 * cell.budget.epsilon < spent <= cell.budget.epsilon
    assert cell.budget.delta == 1e-5


def test_every_cell_protects_records_and_divides_by_the_expected_sample():
    for cell in CELLS.values():
        assert cell.budget.unit == "record"
        assert cell.program.model_extra["batch_size"] == cell.program.model_extra["sampling_rate"] * 60_000
        assert cell.simulation_seed == 0


def test_three_cells_have_the_papers_architecture():
    schema = Schema(
        (
            Column("image", "integer", low=0, high=255, shape=(28, 28)),
            Column("digit", "category", "target", levels=tuple("0123456789")),
        )
    )
    for row in ("epsilon 0.5", "epsilon 2", "epsilon 8"):
        settings = build_settings(CELLS[row])
        shapes = [tuple(p.shape) for p in module_for(schema, settings).parameters()]
        assert shapes == [(1000, 60), (1000,), (10, 1000), (10,)]
    linear = module_for(schema, build_settings(CELLS["epsilon 2, scattering"]))
    assert [tuple(p.shape) for p in linear.parameters()] == [(10, 81 * 7 * 7), (10,)]


def build_settings(cell):
    from hedgerow.study.catalogue import listing
    from hedgerow.study.keys import settings_of

    return settings_of(listing(cell.program.name), cell.program.model_extra)


@pytest.mark.slow
def test_each_release_is_in_the_ledger_with_its_sampling():
    fed = federation(2.0)
    list(train(fed))
    queries = [entry.query.split(":")[1] for entry in fed.ledger.entries]
    assert queries == ["sum_of_directions", *["second_moments"] * 2, *["clipped_gradients"] * 4]
    assert {(e.event.kind, e.event.noise_multiplier, e.sampling.kind, e.sampling.rate) for e in fed.ledger.entries} == {
        ("gaussian", 2.0, "records", 0.5)
    }
    assert len({e.cohort for e in fed.ledger.entries}) == 7


@pytest.mark.slow
def test_the_budget_counts_centre_and_components_with_the_steps():
    one = (Sampling("records", 0.5), (Event("gaussian", 2.0),))
    limit = epsilon([one] * 5, delta=1e-5, adjacency="add-remove")
    fed = federation(2.0).within(Budget(limit, 1e-5, unit="record"))
    states = train(fed)
    assert [next(states).round, next(states).round] == [1, 2]  # five releases
    with pytest.raises(BudgetExhausted, match="HR-213"):
        next(states)


@pytest.mark.parametrize(
    "wrong",
    [{"average": 1.0}, {"solver": "sdg"}, {"clip": -1.0}, {"components": 0}, {"learning_rate": 0.0}, {"basis_rounds": 0}],
)
def test_what_training_would_refuse_is_refused_before_the_first_release(wrong):
    fed = federation(2.0)
    with pytest.raises(HedgerowError):
        next(train(fed, **wrong))
    assert len(fed.ledger) == 0


def test_a_module_that_does_not_read_the_features_is_refused_before_the_first_release():
    fed = federation(2.0)
    with pytest.raises(HedgerowError, match="HR-510"):
        next(dpsgd_on_features(fed, mlp(7, [5], 1), rounds=1, sampling_rate=0.5, batch_size=45, components=6))
    assert len(fed.ledger) == 0


def test_the_average_follows_the_iterates_and_costs_nothing():
    fed = federation(2.0)
    states = list(train(fed, average=0.9))
    mean = states[0].latest["1.weight"]
    for state in states[1:]:
        kept = min(0.9, state.round / (state.round + 10))
        mean = kept * mean + (1 - kept) * state.latest["1.weight"]
    np.testing.assert_allclose(states[-1].weights["1.weight"], mean, rtol=1e-5)
    assert len(fed.ledger) == 7


def test_parties_do_not_matter_to_the_total():
    """Without noise and with everybody sampled, one party and three give the same model."""
    one, three = (list(train(federation(parties=n), sampling_rate=1.0))[-1] for n in (1, 3))
    for name, value in one.weights.items():
        np.testing.assert_allclose(three.weights[name], value, atol=1e-4)


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path):
    path, fed = tmp_path / "checkpoint.safetensors", federation(2.0)
    whole = list(train(federation(2.0), scatter=True, straighten=True))[-1]
    drive(lambda f, start=None: train(f, scatter=True, straighten=True, rounds=2, start=start), fed, checkpoint=path, study="s")
    begun = load_checkpoint(path, FeatureState, "s")
    begun.restore(fed)
    last = list(train(fed, scatter=True, straighten=True, start=begun.state))[-1]
    for field in dataclasses.fields(FeatureState):
        one, other = getattr(whole, field.name), getattr(last, field.name)
        for key in one if isinstance(one, dict) else [None]:
            np.testing.assert_array_equal(one if key is None else one[key], other if key is None else other[key])


def test_the_servers_table_is_measured_with_the_features_that_parties_have():
    """The server makes features of a table from the state alone; of the parties' own records it finds what they find."""
    table, fed = drawings(), federation()
    settings = {"straighten": True, "scatter": False, "length": 4.0, "components": 6, "model": "mlp", "hidden": [5]}
    settings["model_seed"] = 0
    state = list(train(fed, rounds=10, sampling_rate=1.0, batch_size=90, learning_rate=1.0, length=4.0, straighten=True))[-1]
    at_server, at_parties = on_table(settings, state, SCHEMA, table), over_parties(fed, settings, state)
    assert at_server["test accuracy"] == pytest.approx(at_parties["accuracy"])
    assert at_server["test loss"] == pytest.approx(at_parties["loss"], rel=1e-5)
    assert at_server["test accuracy"] > 0.7
    assert on_table(settings, state, SCHEMA, None) == {}


@pytest.mark.slow
def test_a_small_run_learns_digits_and_says_what_it_spent(tmp_path):
    made = study(
        partition={"by": "iid", "parties": 3},
        program=PROGRAM,
        protection={"mechanism": {"noise_multiplier": 1.0}},
        budget={"epsilon": 20, "delta": 1e-4, "unit": "record"},
    )
    result = run(made, tmp_path / "run")
    lines = (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()
    assert "test accuracy" in json.loads(lines[-1])
    assert "per record" in result.report.privacy
    assert len(result.run.state.middle) == 64


def test_every_cell_builds_on_records_of_the_sets_schema(monkeypatch):
    """The set itself is not needed to see that every cell builds: a table of the same schema stands for it."""
    levels = tuple("0123456789")
    schema = Schema(
        (Column("image", "integer", low=0, high=255, shape=(28, 28)), Column("digit", "category", "target", levels=levels))
    )
    table = Table(schema.synthetic(40, np.random.default_rng(0)), schema)
    table = dataclasses.replace(table, test=table.take(slice(8)))
    monkeypatch.setattr("hedgerow.study.build.load", lambda name, data_dir=None: table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # 40 records are few for its delta
        for cell in CELLS.values():
            assert build(cell).listing.path.endswith("dpsgd_on_features")
