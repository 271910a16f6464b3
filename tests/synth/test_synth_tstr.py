"""Train on synthetic, test on real: what was learned, of classes and numbers, and what is refused."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.core.party import Party
from hedgerow.data import Column, Schema
from hedgerow.errors import BudgetInvalid, MissingColumn, SchemaInvalid, SettingsInvalid
from hedgerow.synth import Codes, Provenance, SyntheticTable, tstr, tstr_at_parties
from hedgerow.synth.tstr import CodeReading
from hedgerow.synth.tstr_at_parties import fitted, prediction_hits

SCHEMA = Schema(
    [
        Column("x", "number", low=0, high=1),
        Column("kind", "category", levels=("a", "b", "c")),
        Column("y", "binary", role="target"),
        Column("z", "number", low=-2, high=4),
    ]
)


def people(n, seed, broken=False):
    rng = np.random.default_rng(seed)
    x, kind = rng.random(n), rng.integers(0, 3, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-8 * (x - 0.5) - 2 * (kind == 1)))).astype(float)
    z = np.clip(2 * x + kind / 2 + rng.normal(0, 0.2, n), -2, 4)
    if broken:
        y = rng.permutation(y)
    return hr.data.Table(SCHEMA.admit({"x": x, "kind": kind.astype(np.int16), "y": y, "z": z}), SCHEMA)


@pytest.fixture(scope="module")
def test():
    return people(600, 1).select(["x", "kind", "y"])


@pytest.mark.slow
def test_a_table_of_the_same_law_trains_as_well_as_real_records(test):
    real = people(600, 0).select(["x", "kind", "y"])
    found = tstr(people(600, 2).select(["x", "kind", "y"]), test, real=real)
    assert found.measure == "accuracy"
    assert found.tested == 600
    frame = found.to_frame()
    assert frame.shape == (2, 2)
    assert (abs(frame["made-up records"] - frame["real records"]) < 0.04).all()
    assert frame.loc["logistic"].min() > 0.75


@pytest.mark.slow
def test_a_table_whose_target_was_shuffled_trains_nothing(test):
    found = tstr(people(600, 2, broken=True).select(["x", "kind", "y"]), test)
    assert max(found.scores.values()) < 0.65
    assert "logistic on made-up records" in repr(found)
    assert set(found.named()) == {f"accuracy, {one} on made-up records" for one in ("logistic", "boosting")}


def test_a_number_is_scored_by_r2():
    found = tstr(people(600, 2), people(400, 3), target="z")
    assert found.measure == "R2"
    assert found.scores["linear", "made-up records"] > 0.8


def test_made_up_records_of_one_class_predict_that_class(test):
    made = people(300, 2).select(["x", "kind", "y"])
    made = made.take(made["y"] == 1)
    found = tstr(made, test)
    assert set(found.scores.values()) == {test["y"].mean()}


def test_what_cannot_be_tested_is_refused(test):
    made = people(50, 0).select(["x", "kind", "y"])
    with pytest.raises(SettingsInvalid, match="no target"):
        tstr(made.select(["x", "kind"]), test)
    with pytest.raises(SettingsInvalid, match="no made-up records"):
        tstr(made.take([]), test)
    with pytest.raises(MissingColumn):
        tstr(made, test.select(["x", "y"]))
    other = Schema([*SCHEMA.select(["x", "y"]), Column("kind", "category", levels=("b", "a", "c"))])
    with pytest.raises(SchemaInvalid, match="not as category of 3 levels with the same levels in the same order"):
        tstr(made, hr.data.Table(other.admit({"x": [0.5], "kind": ["a"], "y": [1.0]}), other))
    gaps = hr.data.Table(test.columns, test.schema.allowing(True))
    with pytest.raises(SchemaInvalid, match="'x' may be missing in the hold-out table alone") as refused:
        tstr(made, gaps)
    assert "dropna" in refused.value.remedy


def parties(table):
    return hr.simulate(table, hr.data.iid(parties=3), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["y", "kind"])
def test_hits_of_parties_are_those_of_the_same_model_at_hand(target):
    real, made = people(300, 4), people(400, 2)
    found = tstr_at_parties(parties(real), made, target=target)
    wanted = tstr(made, real, target=target).scores["logistic", "made-up records"]
    assert found.accuracy == pytest.approx(wanted, abs=1 / 300 + 1e-9)  # of equal scores one may win here, and one there
    assert found.records == 300
    assert found.sigma == 0


def test_hits_are_charged_and_a_record_moves_them_by_the_root_of_two():
    federation = parties(people(200, 4))
    found = tstr_at_parties(federation, people(300, 2), target="y", epsilon=2.0, delta=1e-5)
    assert federation.ledger.epsilon(delta=1e-5, unit="record") == pytest.approx(2.0, abs=1e-6)
    assert found.noise > 0
    table = people(12, 4)
    codes = Codes.of(SCHEMA, target="y")
    weights = fitted(CodeReading(codes, codes.place("y")), people(300, 2))

    def hits(some):
        party = Party("a", {"codes": codes.number(some.columns)}, np.ones(len(some)))
        return prediction_hits(weights, party, None, sizes=codes.sizes, target=codes.place("y"))

    moved = [np.linalg.norm(hits(table) - hits(table.take([i for i in range(12) if i != left]))) for left in range(12)]
    assert max(moved) == pytest.approx(np.sqrt(2))
    pure = parties(people(50, 4))
    tstr_at_parties(pure, people(50, 2), target="y", epsilon=1.0)  # Laplace noise: by the l1 length, two
    assert pure.ledger.epsilon(delta=0.0, unit="record") == pytest.approx(1.0, abs=1e-6)


def test_hits_are_refused_beside_a_promise_and_of_numbers():
    promised = SyntheticTable(people(50, 2).columns, SCHEMA, provenance=Provenance("tan", 1.0, 1e-5))
    with pytest.raises(BudgetInvalid):
        tstr_at_parties(parties(people(50, 4)), promised, target="y")
    with pytest.raises(SettingsInvalid, match="classes"):
        tstr_at_parties(parties(people(50, 4)), people(50, 2), target="z")


def test_a_class_that_was_never_made_is_never_predicted():
    made = people(100, 2)
    made = made.take(made["kind"] != 1)
    codes = Codes.of(SCHEMA, target="kind")
    weights = fitted(CodeReading(codes, codes.place("kind")), made)
    assert weights[0, 1] < weights[:, [0, 2]].sum(0).min()
