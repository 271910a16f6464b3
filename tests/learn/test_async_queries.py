"""Asynchronous queries: the loop by hand, one answer of each owner in each round, and what that costs it."""

import numpy as np
import pytest
from test_queries import BOXED, federation, planned, table
from test_query_weights import EACH, EPSILONS, LOSS, OWNERS, WEIGHTS

import hedgerow as hr
from hedgerow.core.engine import Inbox
from hedgerow.core.party import Party
from hedgerow.crypto import SecAgg
from hedgerow.errors import BudgetExhausted, HedgerowError, NobodyAnswered, PartyDeclined, RoundRefused, SettingsInvalid
from hedgerow.learn.queries import AnswersInTurn, Steps, async_queries, gradient, gradient_queries, inputs
from hedgerow.learn.queries import answers as module
from hedgerow.privacy import Guard
from hedgerow.privacy.accounting import epsilon

ROUNDS, EVERY = 5, 3
STEPS = Steps("algorithm-2", 0.1, 2.0)
ASKED = {"loss": LOSS, "spec": BOXED, "steps": STEPS, "n_records": EACH}


def run(fed, answers, every=EVERY, rounds=ROUNDS, **more):
    return async_queries(fed, **ASKED | {"rounds": rounds, "every": every, "answers": answers} | more)


def agreed(fed, **more):
    return planned(fed, EPSILONS, horizon=ROUNDS, **more)


def spent(fed):
    return epsilon(fed.ledger.charges("record"), delta=1e-6, adjacency="add-remove", accountant="basic")


# ---- what is computed -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("away", [(), ("party 2",)], ids=["everybody", "one owner is away and loses its turns"])
def test_the_program_is_the_loop_by_hand(monkeypatch, away):
    monkeypatch.setattr(module, "discrete_laplace", lambda scale, size, entropy: np.zeros(size, np.int64))
    fed, dealt = federation(hr.InProcess(dropped=away)), federation()
    answers = planned(fed, dict.fromkeys(OWNERS, 1e12), horizon=ROUNDS, weights=WEIGHTS)
    records = dict(zip(OWNERS, (hr.engines.records(federation())[i] for i in range(3)), strict=True))
    held = {name: Party(name, inputs(one.columns, spec=BOXED), one.w) for name, one in records.items()}
    theta, average, k, n = np.zeros(3), np.zeros(3), 0, 20 * sum(WEIGHTS.values())
    states = list(run(fed, answers))
    for state in states:
        for group in dealt.split(EVERY, balanced=True):
            k, total = k + 1, np.zeros(3)
            for name in set(group.members) - set(away):
                total += WEIGHTS[name] * gradient(theta, held[name], None, loss=LOSS, box=2.0, bounds=answers.bound)
            moved = STEPS.move(theta, EVERY * total / n + 0.1 * theta, k, ROUNDS * EVERY)
            average, theta = STEPS.average(average, theta, moved, k, ROUNDS * EVERY), moved
        np.testing.assert_allclose(state.theta, theta, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.average, average, rtol=0, atol=1e-12)
    assert [state.round for state in states] == [1, 2, 3, 4, 5]


def test_with_one_step_to_a_round_it_is_gradient_queries():
    def of(program, **more):
        fed = federation()
        return hr.last(program(fed, **ASKED, rounds=ROUNDS, answers=agreed(fed, weights=WEIGHTS), **more)).theta

    np.testing.assert_array_equal(of(async_queries, every=1), of(gradient_queries))


def test_a_run_is_continued_where_it_stopped():
    fed = federation()
    whole = list(run(fed, agreed(fed)))
    fed = federation()
    asked = run(fed, agreed(fed))
    next(asked)
    stopped = next(asked)
    asked.close()
    continued = list(run(fed, agreed(fed), start=stopped))
    assert [state.round for state in continued] == [3, 4, 5]
    np.testing.assert_array_equal(continued[-1].average, whole[-1].average)


SHARES = {"aggregation": SecAgg(), "mechanism": hr.Gaussian(3.0, at="shares", least=5)}


@pytest.mark.parametrize(
    ("protection", "least", "n"),
    [
        ({"aggregation": SecAgg(largest=1e5)}, 3, 6),
        ({"aggregation": SecAgg(largest=1e5, least=5)}, 5, 11),
        (SHARES, 5, 10),
    ],
    ids=["secagg", "secagg of five", "noise in shares of five"],
)
def test_every_step_has_as_many_owners_as_its_total_needs(protection, least, n):
    def asked(n):
        fed = hr.simulate(table(n=10 * n), hr.data.iid(parties=n), seed=0).protect(**protection)
        answers = None if "mechanism" in protection else planned(fed, 2.0, horizon=4)
        return fed, run(fed, answers, every=2, rounds=4, n_records=10 * n)

    fed, states = asked(n)
    assert hr.last(states).round == 4
    assert sorted({entry.parties for entry in fed.ledger.entries}) == list(range(least, n - n // 2 + 1))
    few, states = asked(2 * least - 1)
    with pytest.raises(SettingsInvalid, match=rf"HR-511.*{2 * least - 1} owners in 2 steps.*of {least} owners or more"):
        hr.last(states)
    assert len(few.ledger) == 0


def test_behind_secure_aggregation_owners_that_are_away_cost_their_step_and_not_the_run(caplog):
    """Six owners in two steps, of which one has too few left to add up in every round; the others' answers count."""
    away = hr.InProcess(dropped=("party 1",))
    fed = hr.simulate(table(n=60), hr.data.iid(parties=6), seed=0, engine=away).protect(aggregation=SecAgg(largest=1e5))
    states = list(run(fed, planned(fed, 2.0, horizon=4), every=2, rounds=4, n_records=60))
    assert [state.round for state in states] == [1, 2, 3, 4]
    assert len(fed.ledger) == 8  # the step that was lost is charged
    assert [record.getMessage().partition(" ended")[2][:15] for record in caplog.records] == [" without a total"[:15]] * 4
    away = hr.InProcess(dropped=("party 1", "party 2", "party 3", "party 4"))
    fed = hr.simulate(table(n=60), hr.data.iid(parties=6), seed=0, engine=away).protect(aggregation=SecAgg(largest=1e5))
    with pytest.raises(RoundRefused, match="HR-241"):
        hr.last(run(fed, planned(fed, 2.0, horizon=4), every=2, rounds=4, n_records=60))


class Outage(hr.InProcess):
    """Nobody answers while it lasts."""

    lasts = False

    def exchange(self, outbox):
        return Inbox(()) if self.lasts else super().exchange(outbox)


def test_where_nobody_answers_in_a_whole_round_the_run_stops_and_goes_on_and_that_round_counts(monkeypatch):
    """Answers may have left and been lost, so an outage costs a round of those agreed on, and never more than was agreed on."""
    fed = hr.simulate(table(), hr.data.iid(parties=3), seed=0, engine=Outage())
    answers = agreed(fed, neighbours="add-remove")
    asked = run(fed, answers)
    states = [next(asked), next(asked)]
    monkeypatch.setattr(Outage, "lasts", True)
    with pytest.raises(NobodyAnswered, match="HR-220"):
        next(asked)
    monkeypatch.setattr(Outage, "lasts", False)
    states += [state for _, state in zip(range(2), run(fed, answers, start=states[-1]), strict=False)]
    assert [state.round for state in states] == [1, 2, 3, 4]
    with pytest.raises(BudgetExhausted, match=r"HR-213.*5 questions were answered of the 5"):
        hr.last(run(fed, answers, start=states[-1]))
    assert len(fed.ledger) == ROUNDS * EVERY
    assert spent(fed) == pytest.approx(max(EPSILONS.values()), rel=1e-9)
    reserve = planned(fed, EPSILONS, horizon=ROUNDS + 1)
    monkeypatch.setattr(Outage, "lasts", True)
    with pytest.raises(NobodyAnswered):
        hr.last(run(fed, reserve))
    monkeypatch.setattr(Outage, "lasts", False)
    assert hr.last(run(fed, reserve)).round == ROUNDS


def test_a_refusal_after_rounds_that_were_broken_off_says_how_many_were_answered():
    fed = federation()
    answers = agreed(fed)
    hr.last(run(fed, answers, rounds=2))
    asked = run(fed, answers)
    for _ in range(3):
        next(asked)
    with pytest.raises(BudgetExhausted, match=r"5 questions were answered of the 5"):
        next(asked)


# ---- what it costs --------------------------------------------------------------------------------------------------
def guarded(budget):
    most = budget if isinstance(budget, dict) else dict.fromkeys(OWNERS, budget)
    guards = {name: Guard(hr.Budget(most[name], 1e-6, unit="record", accountant="basic")) for name in OWNERS}
    return hr.simulate(table(), hr.data.iid(parties=3), seed=0, engine=hr.InProcess(guards=guards)), guards


def test_an_owner_whose_guard_declines_falls_silent_and_the_others_go_on():
    """Three owners in three steps: it is alone in its step, and its step is lost; where nobody is left the run ends."""
    fed, guards = guarded({name: 1e6 if name != "party 2" else EPSILONS[name] / 2 for name in OWNERS})
    assert hr.last(run(fed, planned(fed, EPSILONS, horizon=6, neighbours="add-remove"), rounds=6)).round == 6
    assert [len(guard.ledger.entries) for guard in guards.values()] == [6, 3, 6]
    fed, guards = guarded({name: most / 2 for name, most in EPSILONS.items()})
    states = []
    with pytest.raises(BudgetExhausted, match="HR-213"):
        states.extend(run(fed, planned(fed, EPSILONS, horizon=6, neighbours="add-remove"), rounds=6))
    assert [len(guard.ledger.entries) for guard in guards.values()] == [3, 3, 3]


def test_a_party_whose_code_fails_ends_the_run(monkeypatch):
    """It is no owner that declines: the error is shown, and not lost with the step."""

    def fails(self, owner, totals, entropy):
        return totals if owner not in OWNERS else 1 / 0

    monkeypatch.setattr(AnswersInTurn, "noisy", fails)
    fed = federation()
    with pytest.raises(PartyDeclined, match="HR-221"):
        hr.last(run(fed, agreed(fed)))
    assert len(fed.ledger) == 1


def test_what_the_federation_s_own_budget_refuses_ends_the_run():
    """The ledger's refusal is no owner's, and nobody was asked."""
    fed = federation().within(hr.Budget(max(EPSILONS.values()) / 2, 1e-6, unit="record", accountant="basic"))
    with pytest.raises(BudgetExhausted, match="HR-213"):
        hr.last(run(fed, planned(fed, EPSILONS, horizon=6, neighbours="add-remove"), rounds=6))
    assert len(fed.ledger) == 3 * EVERY


def test_every_owner_answers_once_in_each_round_and_pays_for_that():
    fed, guards = guarded(1e6)
    hr.last(run(fed, agreed(fed, neighbours="add-remove")))
    assert {name: len(guard.ledger.entries) for name, guard in guards.items()} == dict.fromkeys(OWNERS, ROUNDS)
    assert {name: guard.spent for name, guard in guards.items()} == pytest.approx(EPSILONS, rel=1e-4)


def test_the_ledger_charges_rounds_and_not_steps(monkeypatch):
    """The broken twin shares a key, with which groups are charged one after the other: every step costs an answer."""
    charged = []
    for key in (None, "a key"):
        monkeypatch.setattr(AnswersInTurn, "key", key)
        fed = federation()
        hr.last(run(fed, agreed(fed, neighbours="add-remove")))
        charged.append((spent(fed), len(fed.ledger)))
    most = max(EPSILONS.values())
    assert charged[0][1] == ROUNDS * EVERY
    assert charged[0][0] == pytest.approx(most, rel=1e-9)
    assert charged[1][0] == pytest.approx(most * charged[1][1] / ROUNDS, rel=1e-9)


@pytest.mark.parametrize("first", [async_queries, gradient_queries])
@pytest.mark.parametrize("second", [async_queries, gradient_queries])
def test_what_was_agreed_on_is_answered_once_whichever_program_asks(first, second):
    fed = federation()
    answers = agreed(fed)
    turns = {async_queries: {"every": EVERY}, gradient_queries: {}}
    hr.last(first(fed, **ASKED, rounds=ROUNDS - 1, answers=answers, **turns[first]))
    hr.last(second(fed, **ASKED, rounds=1, answers=answers, **turns[second]))
    before = len(fed.ledger)
    with pytest.raises(BudgetExhausted, match=r"HR-213.*5 questions were answered of the 5"):
        hr.last(second(fed, **ASKED, rounds=1, answers=answers, **turns[second]))
    assert len(fed.ledger) == before


def test_a_refusal_counts_rounds_that_were_broken_off_and_those_that_were_not():
    fed = federation()
    answers = agreed(fed)
    hr.last(run(fed, answers, rounds=2))
    with pytest.raises(BudgetExhausted, match="5 questions were answered of the 5"):
        hr.last(run(fed, answers))


def test_a_server_that_asks_more_often_is_declined_by_the_owners_guard():
    """Questions to an owner in every step: its guard counts answers, whatever the server says of parts."""
    fed, guards = guarded(3.0)
    answers = planned(fed, 3.0, horizon=ROUNDS, neighbours="add-remove")
    hr.last(run(fed, answers, every=1))
    assert [guard.spent for guard in guards.values()] == pytest.approx([3.0] * 3, rel=1e-3)
    longer = planned(fed, 3.0, horizon=ROUNDS + 1, neighbours="add-remove")
    with pytest.raises(BudgetExhausted):
        hr.last(run(fed, longer, every=1, rounds=1))


@pytest.mark.parametrize(
    ("wrong", "said"), [({"every": 0}, "every = 0"), ({"rounds": 0}, "rounds = 0"), ({"every": 4}, "HR-214")]
)
def test_rounds_and_steps_are_whole_numbers_and_owners_are_enough(wrong, said):
    fed = federation()
    with pytest.raises(HedgerowError, match=said):
        hr.last(run(fed, agreed(fed), **wrong))
    assert len(fed.ledger) == 0
