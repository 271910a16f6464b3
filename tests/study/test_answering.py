"""Rehearsals with many parties: a hundred answer for all, and the ledger is that of everybody's answers."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from hedgerow.engines import InProcess
from hedgerow.study import parse
from hedgerow.study.answering import MOST_ASKED, FewAnswer
from hedgerow.study.build import build

rehearsing = import_module("hedgerow.study.rehearse")  # the package has a function of that name

MANY = 2 * MOST_ASKED + 30

SETTINGS = {
    "name": "many",
    "data": {"name": "digits"},
    "partition": {"by": "iid", "parties": MANY},
    "evaluation": {"on": "none"},
}

NOISY = {
    "program": {"name": "dp_fedavg", "model": "linear", "rounds": 2, "learning_rate": 0.1, "rate": 0.9},
    "protection": {"mechanism": {"law": "gaussian", "noise_multiplier": 2.0}},
    "budget": {"epsilon": 100.0, "delta": 1e-3, "unit": "party"},
}


@pytest.fixture
def sizes(monkeypatch):
    """How many parties InProcess is asked, question by question."""
    seen, exchange = [], InProcess.exchange
    monkeypatch.setattr(InProcess, "exchange", lambda self, outbox: seen.append(len(outbox.ids)) or exchange(self, outbox))
    return seen


def test_a_hundred_answer_and_the_ledger_is_that_of_all(sizes, monkeypatch):
    few = rehearsing.rehearse_built(build(parse(SETTINGS | NOISY)))
    assert sizes
    assert max(sizes) == MOST_ASKED
    monkeypatch.setattr(rehearsing, "FewAnswer", lambda everybody: everybody)
    whole = rehearsing.rehearse_built(build(parse(SETTINGS | NOISY)))
    assert max(sizes) > 1.5 * MOST_ASKED
    assert few.entries == whole.entries
    assert few.ended == whole.ended


def test_the_total_is_as_many_times_that_of_the_hundred(monkeypatch):
    built = build(parse({**SETTINGS, "program": {"name": "fedavg", "model": "linear", "rounds": 2, "learning_rate": 0.1}}))
    sums = []

    class Kept(FewAnswer):
        def exchange(self, outbox):
            found = super().exchange(outbox)
            alone = self.everybody.exchange(replace(outbox, ids=outbox.ids[:MOST_ASKED]))
            sums.append((found, alone, len(outbox.ids)))
            return found

    monkeypatch.setattr(rehearsing, "FewAnswer", Kept)
    rehearsing.rehearse_built(built)
    assert sums
    for found, alone, n in sums:
        assert len(found.answered) == n
        np.testing.assert_allclose(found.total, alone.total * max(1, n // MOST_ASKED))
