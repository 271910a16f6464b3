"""DP-SGD at the parties: each makes its own noise, keeps its own account, and stops by itself."""

from functools import lru_cache, partial

import dp_accounting
import numpy as np
import pytest
from clinics import clinics, flat
from dp_accounting import rdp
from scipy.stats import chi2

import hedgerow as hr
from hedgerow.core.randomness import Stream
from hedgerow.errors import BudgetInvalid, SettingsInvalid, UnlawfulChannel
from hedgerow.learn.records import Clipping, RecordPlan, dpsgd, local_dpsgd
from hedgerow.learn.records.own_budgets import noisy_steps, rounds_asked
from hedgerow.store.checkpoint import Checkpoint, Mark, states_of
from helpers import ENGINE_NAMES, ENGINES, run_of

PLAN = {"noise_multiplier": 1.0, "sampling_rate": 0.3, "steps": 3, "batch_size": 5.0}
PROGRAM = partial(local_dpsgd, module=hr.learn.linear(4, 1), rounds=6, delta=1e-3, **PLAN)
LIMITS = [3.0, 3.5, 4.5, 5.5, 6.0, 100.0]
SHORT = [*LIMITS[:-1], 7.0]


@lru_cache
def by_hand(rounds, delta=1e-3):
    """Epsilon of so many rounds of `PLAN`."""
    step = dp_accounting.PoissonSampledDpEvent(0.3, dp_accounting.GaussianDpEvent(1.0))
    return rdp.RdpAccountant().compose(step, 3 * rounds).get_epsilon(delta) if rounds else 0.0


@pytest.mark.slow
def test_parties_stop_when_their_own_budget_is_spent():
    states = list(PROGRAM(clinics(), stop_at=LIMITS))
    allowed = [max(k for k in range(7) if by_hand(k) <= limit) for limit in LIMITS]
    assert len(set(allowed)) > 3
    for state in states:
        assert state.active == sum(rounds >= state.round for rounds in allowed)
        for found, rounds in zip(state.epsilons.values(), allowed, strict=True):
            assert float(found) == pytest.approx(by_hand(min(rounds, state.round)), rel=1e-9)


@pytest.mark.slow
def test_no_party_exceeds_its_budget_and_none_could_take_another_round():
    last = hr.last(PROGRAM(clinics(), rounds=50, stop_at=SHORT))
    spent = [float(value) for value in last.epsilons.values()]
    rounds = [next(k for k in range(60) if by_hand(k) == pytest.approx(epsilon, rel=1e-9)) for epsilon in spent]
    assert all(epsilon <= limit < by_hand(k + 1) for epsilon, limit, k in zip(spent, SHORT, rounds, strict=True))
    assert last.round == max(rounds) < 50


def test_the_program_ends_when_every_budget_is_spent():
    fed = clinics()
    assert list(PROGRAM(fed, stop_at=0.1)) == []
    assert len(fed.ledger) == 0


def test_the_ledger_charges_what_a_party_pays_that_never_stops():
    fed = clinics()
    last = hr.last(PROGRAM(fed, stop_at=LIMITS))
    found = hr.privacy.epsilon(fed.ledger.charges("record"), delta=1e-3, adjacency="add-remove", accountant="rdp")
    assert found == pytest.approx(max(float(value) for value in last.epsilons.values()), rel=1e-9)
    assert {str(entry.event) for entry in fed.ledger.entries} == {"gaussian(1) at rate 0.3 x 3"}
    assert {entry.unit for entry in fed.ledger.entries} == {"record"}


def test_a_party_that_stopped_sends_zeros():
    fed = hr.engines.watch(clinics(parties=2))
    states = list(PROGRAM(fed, rounds=3, stop_at=[3.5, 100.0]))
    assert [state.active for state in states] == [2, 1, 1]
    rows = {(seen.source, seen.round): np.asarray(seen.values) for seen in hr.engines.view(fed, "server") if seen.kind == "row"}
    assert {who for who, row in rows.items() if not row.any()} == {("party 1", 2), ("party 1", 3)}


def test_with_hardly_any_noise_one_party_is_dpsgd():
    steps = {"clip": 0.4, "sampling_rate": 1.0, "batch_size": 90.0, "learning_rate": 2.0}
    module = hr.learn.linear(4, 1)
    one = hr.last(local_dpsgd(clinics(parties=1), module, rounds=2, steps=3, noise_multiplier=1e-6, **steps))
    protected = clinics(parties=1).protect(mechanism=hr.Gaussian(1e-6))
    other = hr.last(dpsgd(protected, module, rounds=6, **steps))
    np.testing.assert_allclose(flat(one), flat(other), atol=1e-4)


def test_parties_count_equally_and_divide_by_their_own_public_number():
    """Without sampling and with hardly any noise: the mean of two parties' clipped steps."""
    fed = clinics(parties=2)
    given = {"rounds": 1, "steps": 1, "noise_multiplier": 1e-6, "sampling_rate": 1.0, "learning_rate": 1.0, "clip": 0.4}
    found = hr.last(local_dpsgd(fed, hr.learn.linear(4, 1), batch_size=[10.0, 40.0], **given))
    wanted = np.zeros(5)
    for party, divisor in zip(hr.engines.records(fed), (10.0, 40.0), strict=True):
        x = np.column_stack([party["x"], np.ones(len(party.w))])
        rows = x * (0.5 - party["label"])[:, None]
        rows *= np.minimum(1.0, 0.4 / np.linalg.norm(rows, axis=1))[:, None]
        wanted -= rows.sum(0) / divisor / 2
    np.testing.assert_allclose(flat(found), wanted, atol=1e-4)


def test_each_step_of_each_party_has_noise_of_its_own():
    module = hr.learn.mlp(4, [600], 1)
    given = {"rounds": 1, "steps": 4, "sampling_rate": 1e-9, "batch_size": 1.0, "learning_rate": 1.0}
    found = hr.last(local_dpsgd(clinics(parties=3), module, noise_multiplier=2.0, clip=3.0, **given))
    began = np.concatenate([value.detach().numpy().ravel() for value in module.parameters()])
    noise = np.concatenate([value.ravel() for value in found.weights.values()]) - began
    low, high = chi2.interval(1 - 1e-6, len(noise))  # one false alarm in a million runs
    rounding = (1 + np.sqrt(len(noise)) / 2048) ** 2  # at a few thousand steps of the grid per deviation
    assert low < (noise**2).sum() / ((2.0 * 3.0) ** 2 * 4 / 3) < high * rounding


@pytest.mark.parametrize("engine", ENGINES[1:], ids=ENGINE_NAMES[1:])
def test_every_engine_computes_the_same(engine):
    one, other = (hr.last(PROGRAM(hr.engines.on(clinics(), on), stop_at=LIMITS)) for on in (hr.Loop(), engine))
    np.testing.assert_allclose(flat(other), flat(one), atol=2e-4)
    assert [float(v) for v in one.epsilons.values()] == [float(v) for v in other.epsilons.values()]


@pytest.mark.slow
def test_a_resumed_run_ends_where_it_would_have():
    whole, states, marks = clinics(), [], []
    for state in PROGRAM(whole, stop_at=LIMITS):
        kept = {name: dict(value) for name, value in states_of(run_of(whole)).committed(run_of(whole).counted).items()}
        states.append(state)
        marks.append((Mark.of(run_of(whole)), dict(run_of(whole).counted), kept))
    for state, (mark, counted, kept) in zip(states[:-1], marks, strict=False):
        again = clinics()
        run_of(again).ledger.entries = whole.ledger.entries[: mark.entries]
        Checkpoint(state, mark, counted, kept).restore(again)
        found = hr.last(PROGRAM(again, stop_at=LIMITS, start=state))
        np.testing.assert_array_equal(flat(found), flat(states[-1]))
        assert {k: float(v) for k, v in found.epsilons.items()} == {k: float(v) for k, v in states[-1].epsilons.items()}


@pytest.mark.slow
def test_a_round_that_was_asked_and_lost_is_counted():
    """Found by design: what left a party is spent, whether or not the run that asked for it went on."""
    fed = clinics()
    hr.last(PROGRAM(fed, rounds=2, stop_at=6.0))
    assert rounds_asked(fed.ledger, RecordPlan(Clipping.of(1.0), 1.0, 0.3, 3)) == 2
    again = list(PROGRAM(fed, rounds=6, stop_at=6.0))
    allowed = max(k for k in range(7) if by_hand(k) <= 6.0)
    assert len(again) == allowed - 2
    assert float(again[-1].epsilons["party 1"]) == pytest.approx(by_hand(allowed), rel=1e-9)


def test_a_server_that_says_nobody_was_asked_is_not_believed():
    fed = clinics(parties=1)
    plan = RecordPlan(Clipping.of(1.0), 1.0, 0.3, 3)
    model = hr.learn.models.Model(hr.learn.linear(4, 1), "binary")
    from hedgerow.core.party import Party
    from hedgerow.learn.records.dpsgd import GradientStep

    party = Party("p", {"model_input": np.ones((4, 4), np.float32), "model_target": np.ones(4, np.float32)}, np.ones(4))
    party.state["rounds"] = np.zeros(())
    limit = {"p": hr.Budget(5.0, 1e-3, "record", accountant="rdp")}
    ask = partial(noisy_steps, plan=plan, model=model, step=GradientStep(), batch_sizes={"p": 4.0}, budgets=limit, rounds=100)
    sent = {"w": model.initial, "asked": np.zeros(()), "round": np.zeros(())}
    took = [float(ask(sent, party, run_of(fed).streams.stream(t, "p", "local"))["n"]) for t in range(10)]
    allowed = plan.most_rounds(limit["p"], 100)
    assert took == [1.0] * allowed + [0.0] * (10 - allowed)


def test_noise_comes_from_the_operating_system_where_nothing_is_seeded(monkeypatch):
    asked = []
    monkeypatch.setattr("os.urandom", lambda n: asked.append(n) or bytes(i % 256 for i in range(n)))
    plan = RecordPlan(Clipping.of(1.0), 1.0, 0.3, 3)
    plan.joining(7, Stream(None).entropy)
    plan.noisy(np.zeros(10), Stream(None).entropy)
    assert asked == [32, 32]  # a key for each stream
    assert plan.noisy(np.zeros(10), Stream("a").entropy).any()
    assert asked == [32, 32]


def test_what_a_step_sees_lies_on_a_grid_that_does_not_depend_on_the_records():
    plan = RecordPlan(Clipping.of(0.7), 1.3, 0.3, 1)
    rng = np.random.default_rng(0)
    for total in (np.zeros(500), rng.integers(-(2**40), 2**40, 500), rng.integers(-1, 2, 500)):
        steps = plan.noisy(total * 2.0**-25, Stream("a").entropy) / 2.0**-25  # 0.7 is between 2^24 and 2^25 such steps
        np.testing.assert_array_equal(steps, np.rint(steps))


def test_a_sum_that_is_not_in_whole_steps_is_rounded_and_the_log_says_so(caplog):
    plan = RecordPlan(Clipping.of(0.7), 1.3, 0.3, 1)
    rest, none = (plan.noisy(total, Stream("a").entropy) for total in (np.full(500, 1e-9), np.zeros(500)))
    np.testing.assert_array_equal(rest, none)
    assert "not in whole steps" in caplog.text


def test_a_sum_that_is_not_finite_is_noise_alone():
    plan = RecordPlan(Clipping.of(0.7), 1.3, 0.3, 1)
    bad = np.full(500, np.nan)
    np.testing.assert_array_equal(plan.noisy(bad, Stream("a").entropy), plan.noisy(np.zeros(500), Stream("a").entropy))


def test_records_join_at_the_stated_rate():
    plan = RecordPlan(Clipping.of(1.0), 1.0, 0.3, 1)
    joined = plan.joining(100_000, Stream("a").entropy).sum()
    assert abs(joined - 30_000) < 5 * np.sqrt(100_000 * 0.3 * 0.7)  # one false alarm in a million runs


def test_another_plan_in_the_same_ledger_is_refused():
    fed = clinics()
    hr.last(PROGRAM(fed, rounds=1))
    with pytest.raises(SettingsInvalid, match="before"):
        hr.last(PROGRAM(fed, rounds=2, noise_multiplier=2.0))


def test_noise_of_the_channel_on_top_is_refused():
    with pytest.raises(UnlawfulChannel, match="adds its own noise"):
        hr.last(PROGRAM(clinics().protect(mechanism=hr.Gaussian(1.0))))


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ({"noise_multiplier": 0.0}, SettingsInvalid, "noise"),
        ({"sampling_rate": 1.5}, SettingsInvalid, "sampling_rate"),
        ({"steps": 0}, SettingsInvalid, "steps"),
        ({"batch_size": [5.0, 5.0]}, SettingsInvalid, "2 numbers for 6 parties"),
        ({"batch_size": 0.0}, SettingsInvalid, "batch_size"),
        ({"stop_at": [1.0]}, SettingsInvalid, "1 numbers for 6 parties"),
        ({"stop_at": -1.0}, BudgetInvalid, "epsilon"),
        ({"stop_at": 1.0, "delta": 2.0}, BudgetInvalid, "delta"),
    ],
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(wrong, kind, said):
    fed = clinics()
    with pytest.raises(kind, match=said):
        hr.last(PROGRAM(fed, **wrong))
    assert len(fed.ledger) == 0


def largest_correlation(rows):
    """Between any two releases of noise alone."""
    found = np.corrcoef(np.stack(rows))
    return np.abs(found - np.eye(len(rows))).max()


def test_noise_that_is_used_twice_is_caught():
    """Releases of all parties and rounds are unrelated; those of a stream that begins anew in every round are not."""
    module = hr.learn.mlp(4, [100], 1)
    fed = hr.engines.watch(clinics(parties=3))
    hr.last(PROGRAM(fed, module=module, rounds=3, sampling_rate=1e-9, steps=1))
    rows = [np.asarray(seen.values)[:-1] for seen in hr.engines.view(fed, "server") if seen.kind == "row"]
    limit = 6 / np.sqrt(len(rows[0]))  # one false alarm in ten million runs
    assert len(rows) == 9
    assert largest_correlation(rows) < limit
    plan = RecordPlan(Clipping.of(1.0), 1.0, 0.3, 1)
    assert largest_correlation([plan.noisy(np.zeros(600), Stream("every round").entropy) for _ in range(2)]) > limit
