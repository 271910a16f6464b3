"""Leakage of a released model: large where it knows its records by heart, around zero where it saw none; who may measure it."""

import numpy as np
import pytest
from comparing import study
from scipy.stats import norm

import hedgerow as hr
from hedgerow.attacks.observers.rates import at_threshold
from hedgerow.errors import StudyInvalid
from hedgerow.learn.evaluate import evaluate_on, losses_on
from hedgerow.learn.results import module_for
from hedgerow.market.epsilon.posterior import advantage
from hedgerow.report import Outcome
from hedgerow.study import load, membership, parse, rehearse, run_study
from hedgerow.study.apart.ready import build_apart
from hedgerow.study.build import build
from hedgerow.study.check import check, measures
from hedgerow.study.explain import statement_of
from hedgerow.study.membership import METRICS, membership_of, with_membership
from hedgerow.study.remote import build_remote
from hedgerow.study.rounds import rises

ON = {"membership": True, "holdout": 0.5}
PRIVATE = {
    "program": {"name": "dpsgd", "rounds": 3, "sampling_rate": 1.0, "batch_size": 300},
    "protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 8.0}},
    "budget": {"epsilon": 2.0, "delta": 1e-5, "unit": "record"},
}


def small(**changes):
    made = {"data": {"name": "digits", "records": 300}, "partition": {"by": "iid", "parties": 3}, "baselines": False}
    return study(**(made | {"evaluation": ON} | changes))


# ---- what it measures -----------------------------------------------------------------------------------------------
def by_heart(tmp_path, rounds):
    """A network on digits with labels drawn by chance, which nobody can predict and which it can learn by heart."""
    rng = np.random.default_rng(0)
    table = hr.data.load("digits").take(range(400))
    frame = table.select(["digit"]).to_pandas()
    columns = {f"x{i}": rng.normal(size=len(table)).clip(-4, 4) for i in range(40)}
    frame = frame.assign(digit=rng.integers(0, 2, len(table)), **columns)
    path = tmp_path / "chance.csv"
    frame.to_csv(path, index=False)
    ranges = {name: {"range": [-4, 4]} for name in columns} | {"digit": {"kind": "binary"}}
    program = {"name": "fedavg", "model": "mlp", "hidden": [128], "rounds": rounds, "epochs": 10, "learning_rate": 1.0}
    return parse(
        {
            "data": {"path": str(path), "target": "digit", "columns": ranges},
            "partition": {"by": "iid", "parties": 1},
            "program": program | ({"learning_rate": 1e-9, "epochs": 1} if not rounds - 1 else {}),
            "evaluation": ON,
            "baselines": False,
        }
    )


@pytest.fixture(scope="module")
def overfit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heart")
    made = by_heart(folder, 15)
    return made, run_study(made, folder / "run")


@pytest.mark.slow
def test_a_model_that_knows_its_records_by_heart_gives_them_away(overfit):
    """Of 200 others with labels by chance half are wrong, and their losses are far above those of members."""
    metrics = dict(overfit[1].report.metrics)
    assert metrics["leakage"] > 0.4
    assert metrics["membership AUC"] > 0.75


@pytest.mark.slow
def test_a_model_that_was_never_trained_gives_nobody_away(tmp_path):
    """200 and 200 records: a leakage beyond 0.165 comes by chance in one seed of a thousand."""
    metrics = dict(run_study(by_heart(tmp_path, 1), tmp_path / "run").report.metrics)
    assert abs(metrics["leakage"]) < 0.165
    assert abs(metrics["membership AUC"] - 0.5) < 0.095


@pytest.mark.slow
def test_it_is_the_difference_of_shares_below_the_members_mean_loss(tmp_path):
    made = small()
    result, built = run_study(made, tmp_path / "run"), build(made)
    module, weights = module_for(built.schema, built.settings), result.run.state.weights
    inside, outside = (losses_on(table, module, weights) for table in (built.table, built.test))
    metrics = dict(result.report.metrics)
    assert metrics["leakage"] == pytest.approx((inside <= inside.mean()).mean() - (outside <= inside.mean()).mean())
    above = (inside[:, None] < outside).mean() + (inside[:, None] == outside).mean() / 2
    assert metrics["membership AUC"] == pytest.approx(above)
    assert outside.mean() == pytest.approx(evaluate_on(built.test, module, weights)["loss"], rel=1e-5)
    (grid,) = (one for one in result.report.tables if one.title.startswith("Who was a member"))
    assert dict(grid.rows)["members: records of the parties"] == len(built.table)
    assert "leakage at most" not in metrics


@pytest.mark.slow
def test_records_that_parties_held_out_are_no_members(tmp_path):
    made = parse(small(evaluation={"on": "parties", "validation": 0.4, "membership": True}).model_dump(exclude_unset=True))
    built = build(made)
    state = run_study(made, tmp_path / "run").run.state
    found = membership_of(built, state)
    assert len(found.rates.members) == len(built.table) - int(built.table["held out"].sum())


# ---- what a guarantee allows ----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_run_with_an_epsilon_says_the_most_that_it_allows_for_records_replaced(tmp_path):
    result = run_study(small(**PRIVATE), tmp_path / "run")
    metrics, built = dict(result.report.metrics), build(small(**PRIVATE))
    said = statement_of(built, rehearse(small(**PRIVATE)).ledger)
    twice = np.exp(2 * said.epsilon)
    expected = (twice - 1 + 2 * (1 + np.exp(said.epsilon)) * said.delta) / (twice + 1)
    assert metrics["leakage at most"] == pytest.approx(expected, rel=1e-3)
    mu = 2 * np.sqrt(3) / 8  # three sums of multiplier 8, and a record replaced moves each by twice its bound
    assert metrics["leakage at most by the noise"] == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=2e-3)
    assert metrics["leakage"] < metrics["leakage at most by the noise"] < metrics["leakage at most"]


def test_the_threshold_is_a_number_of_the_members_that_the_model_does_not_tell():
    """Losses of a model that saw nobody: with one member the leakage is one half in expectation, at an epsilon of zero.

    Its mean over 400 members has a deviation of at most 0.025: five of them are in one seed of a million.
    """
    rng = np.random.default_rng(0)
    losses = [(rng.exponential(size=1), rng.exponential(size=200)) for _ in range(400)]
    found = np.mean([at_threshold(one, others, float(one.mean())) for one, others in losses])
    assert abs(found - 0.5) < 5 * 0.025


@pytest.mark.slow
def test_with_few_members_no_limit_is_told(tmp_path, monkeypatch):
    found = dict(run_study(small(**PRIVATE), tmp_path / "many").report.metrics)
    assert "leakage at most" in found
    monkeypatch.setattr(membership, "LEAST_MEMBERS", 10**6)
    result = run_study(small(**PRIVATE), tmp_path / "few")
    assert not [name for name in dict(result.report.metrics) if "at most" in name]
    (grid,) = (one for one in result.report.tables if one.title.startswith("Who was a member"))
    assert "allowed" not in grid.note


@pytest.mark.slow
def test_a_training_without_its_noise_leaks_more_than_its_epsilon_allows(overfit):
    """By three standard errors: what a run at epsilon 0.1 would show if no noise had been added."""
    made, result = overfit
    found = membership_of(build(made), result.run.state)
    assert found.leakage - 3 * found.error > advantage(2 * 0.1)


# ---- where it is refused --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": "system"}, "only a simulation may show"),
        ({"evaluation": {"membership": True, "holdout": 0.0}}, "the server holds no table"),
        ({"program": {"name": "local_only"}}, "no one model with a loss"),
    ],
)
def test_it_is_refused_where_it_cannot_be_measured(changes, said):
    with pytest.raises(StudyInvalid, match=said):
        build(small(**changes))


def test_it_is_refused_over_stations_before_anybody_is_asked():
    class Stations:
        parties = ("north", "south")

        def exchange(self, outbox):
            raise AssertionError("asked")

    made = study(data={"name": "digits"}, evaluation={"on": "parties", "holdout": 0.0, "membership": True})
    with pytest.raises(StudyInvalid, match="only a simulation may show") as refusal:
        build_remote(made, hr.data.load("digits").schema, Stations())
    assert refusal.value.asked is False or "No party was asked" in str(refusal.value)


def test_it_is_refused_of_columns_that_lie_apart():
    made = load("vertical-cardio", {"evaluation.membership": True})
    with pytest.raises(StudyInvalid) as refusal:
        build_apart(made)
    assert "evaluation.membership" in str(refusal.value)


# ---- what is published ----------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_it_is_exposed_among_what_a_run_publishes(tmp_path):
    report = run_study(small(**PRIVATE), tmp_path / "run").report
    row = next(row for row in report.published.rows if "tell the parties' records" in row[0])
    assert row[2] == "exposed"
    assert "how well the model tells who was a member" in report.exposed
    without = run_study(small(**PRIVATE, evaluation={"holdout": 0.5}), tmp_path / "without").report
    assert "who was a member" not in without.exposed + str(without.published.rows)
    assert not set(METRICS) & set(dict(without.metrics))


@pytest.mark.slow
def test_nothing_else_changes(tmp_path):
    """Nobody is asked for it: ledger, model and rounds are those of the same study without it."""
    on, off = (
        run_study(small(evaluation=evaluation), tmp_path / name) for name, evaluation in (("on", ON), ("off", {"holdout": 0.5}))
    )
    for name, value in off.run.state.weights.items():
        np.testing.assert_array_equal(value, on.run.state.weights[name])
    assert (tmp_path / "on" / "rounds.jsonl").read_text().count("\n") == (tmp_path / "off" / "rounds.jsonl").read_text().count(
        "\n"
    )
    kept = [item for item in on.report.metrics if item[0] not in METRICS]
    assert kept == list(off.report.metrics)


def test_the_digest_of_a_study_without_it_is_what_it_was():
    assert load("digits-fedavg").digest == DIGEST
    assert load("digits-fedavg", {"evaluation.membership": True}).digest != DIGEST
    assert load("digits-fedavg", {"evaluation.tuning": 0.5}).digest != DIGEST


DIGEST = "46f0fdf8a987b117"
"""Of the study `digits-fedavg`, before there was such a key."""


class Killed(BaseException):
    """What a test raises in the place of `kill -9`."""


@pytest.mark.slow
def test_a_resumed_run_measures_the_same(tmp_path):
    def kill(progress):
        if progress.round == 2:
            raise Killed

    whole = run_study(small(), tmp_path / "whole").report
    with pytest.raises(Killed):
        run_study(small(), tmp_path / "part", on_progress=kill)
    resumed = run_study(small(), tmp_path / "part", resume=True).report
    assert {name: dict(whole.metrics)[name] for name in METRICS[:2]} == {
        name: dict(resumed.metrics)[name] for name in METRICS[:2]
    }
    once_more = run_study(small(), tmp_path / "part", resume=True).report
    assert dict(once_more.metrics) == dict(whole.metrics)


# ---- as a metric ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_less_of_it_is_better_and_it_says_nothing_of_what_was_learned(tmp_path):
    assert not any(rises(name) for name in METRICS)
    built = build(small())
    check(built)
    assert {"leakage", "membership AUC"} <= set(measures(built))
    assert not set(METRICS) & set(measures(build(small(evaluation={"holdout": 0.5}))))


def test_a_state_that_nobody_asks_about_is_shown_as_it_is():
    outcome = Outcome(metrics={"a": 1.0})
    assert with_membership(build(small(evaluation={"holdout": 0.5})), None, outcome) is outcome
