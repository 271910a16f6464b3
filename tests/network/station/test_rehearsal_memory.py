"""What a rehearsal keeps of a question does not grow with the numbers that the question sends."""

import gc
import tracemalloc

import pytest

from hedgerow.core.engine import Outbox
from hedgerow.network.station.admitted import _Names
from hedgerow.network.station.signatures import announced, rehearsed
from hedgerow.study import build_remote
from station_house import config_of, parse_text

TRAINING = """
name = "drift"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "fedavg"
model = "mlp"
hidden = [200, 200]
rounds = %d
epochs = 1
"""
N_NUMBERS = 200 * 200 + 200 * 5 + 1


def built(rounds):
    schema = config_of("alpha").declared.select(["age", "dose", "sick"])
    return build_remote(parse_text(TRAINING % rounds), schema, _Names(("alpha", "beta")))


@pytest.mark.slow
def test_a_rehearsal_keeps_kinds_of_questions_and_not_what_was_sent():
    rehearsed(built(1), 1)  # what is imported and compiled once
    made = built(12)
    gc.collect()
    tracemalloc.start()
    try:
        found, heard = rehearsed(made, 12)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(heard) >= 12
    assert kept < 6 * 4 * N_NUMBERS, f"{kept / 4 / N_NUMBERS:.1f} models are kept of 12 that were sent"
    kinds = announced(found.entries, heard)
    assert [size >= N_NUMBERS for size in kinds.sizes.values()] == [True]


@pytest.mark.slow
def test_what_is_kept_of_a_question_is_of_the_same_kind():
    made = built(2)
    found, heard = rehearsed(made, 2)
    assert all(isinstance(outbox, Outbox) and outbox.question.broadcast is None for outbox, _ in heard)
    assert [whom for _, whom in heard] == [frozenset({"alpha", "beta"})] * len(heard)
    assert {id(whom) for _, whom in heard} == {id(heard[0][1])}
    assert [outbox.question.number for outbox, _ in heard] == [entry.round for entry in found.entries]
    assert all(outbox.asked == 2 for outbox, _ in heard)
