"""Metrics at each party: equal to a table of its own, and refused where a channel protects parties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetExhausted, UnlawfulChannel

N = 120


def digits() -> Any:
    return hr.data.load("digits").take(range(N))


def trained() -> tuple[Any, dict[str, np.ndarray]]:
    net = hr.learn.linear(64, 10)
    rng = np.random.default_rng(0)
    return net, {name: rng.normal(size=tuple(p.shape)).astype(np.float32) for name, p in net.state_dict().items()}


def test_each_party_is_measured_as_a_table_of_its_own() -> None:
    table, (net, weights) = digits(), trained()
    own = {"a": table.take(range(50)), "b": table.take(range(50, N))}
    federation = hr.simulate(own)
    frame = hr.learn.evaluate_parties(federation, net, weights)
    assert list(frame.index) == ["a", "b"]
    for name, part in own.items():
        expected = hr.learn.evaluate_on(part, net, weights)
        assert dict(frame.loc[name]) == pytest.approx(expected, rel=1e-6)
    assert frame.loc["a", "accuracy"] != frame.loc["b", "accuracy"]
    assert federation.ledger.entries[-1].event.kind == "nonprivate"
    assert federation.asked == 0  # a measurement leaves a program as it is


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ({"clip": hr.l2(1.0, "party")}, "a clip"),
        ({"mechanism": hr.Gaussian(1.0)}, "noise"),
        ({"aggregation": hr.SecAgg(threshold=2)}, "aggregation"),
    ],
)
def test_a_channel_that_protects_parties_refuses_before_anybody_is_asked(slots: dict[str, Any], said: str) -> None:
    net, weights = trained()
    federation = hr.simulate(digits(), partition=hr.data.iid(parties=3), seed=0).protect(**slots)
    with pytest.raises(UnlawfulChannel, match=said):
        hr.learn.evaluate_parties(federation, net, weights)
    assert len(federation.ledger) == 0


def test_a_budget_refuses_what_has_no_noise() -> None:
    net, weights = trained()
    federation = hr.simulate(digits(), partition=hr.data.iid(parties=3), seed=0).within(hr.Budget(5, 1e-3, "party"))
    with pytest.raises(BudgetExhausted):
        hr.learn.evaluate_parties(federation, net, weights)
    assert len(federation.ledger) == 0
