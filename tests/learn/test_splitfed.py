"""Split networks of parties with the same columns, against plain SGD of the whole network on the same batches."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch
from clinics import clinics
from proofs import batches
from torch import nn
from torch.nn import functional as F

import hedgerow as hr
from hedgerow.errors import BudgetExhausted, LabelsExposed, ModelInvalid, SettingsInvalid, UnlawfulChannel
from hedgerow.learn import fedavg, splitfed
from helpers import Hiding, party_of, run_of

LOCAL = {"epochs": 2, "batch_size": 5, "learning_rate": 0.3}


@pytest.fixture(scope="module")
def parties():
    return clinics(parties=2, records=24)


def parts():
    """A bottom and a top, with the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 3), nn.Tanh()), nn.Sequential(nn.Linear(3, 1))


def trained(federation, **settings):
    """The last state."""
    return hr.last(splitfed(federation, *parts(), **{"labels": "shared", "rounds": 1, **LOCAL, **settings}))


def begun_at(fed):
    """The number of the question by which each party began, of a sequential run: that whose stream orders its batches."""
    asked = [entry for entry in run_of(fed).ledger.entries if entry.query.endswith("begin")]
    return [entry.round for entry in asked]


def shuffled(fed, number, name):
    """Batches of a party, as tensors."""
    rng = run_of(fed).streams.stream(number, name, "local")
    found = batches(fed, name, rng, epochs=LOCAL["epochs"], batch_size=LOCAL["batch_size"])
    return [tuple(torch.from_numpy(np.asarray(value, np.float32)) for value in pair) for pair in found]


def stepped(loss, *modules):
    """One step of plain SGD."""
    for module in modules:
        module.zero_grad()
    loss.backward()
    with torch.no_grad():
        for value in (value for module in modules for value in module.parameters()):
            value -= LOCAL["learning_rate"] * value.grad


def loss_of(bottom, top, batch):
    return F.binary_cross_entropy_with_logits(top(bottom(batch[0])).reshape(-1), batch[1])


def assert_weights(state, bottom, top):
    for name, value in nn.Sequential(bottom, top).named_parameters():
        np.testing.assert_allclose(state.weights[name], value.detach().numpy(), atol=2e-6)


@pytest.mark.parametrize("order", ["parallel", "sequential"])
def test_one_hospital_trains_the_whole_network(order):
    alone = partial(hr.engines.on, clinics(parties=1, records=24))
    state = trained(alone(hr.InProcess()), order=order)
    whole = hr.last(fedavg(alone(hr.InProcess()), nn.Sequential(*parts()), rounds=1, path="eager", **LOCAL))
    for name, value in whole.weights.items():
        np.testing.assert_allclose(state.weights[name], value, atol=2e-6)
    assert np.abs(value - dict(nn.Sequential(*parts()).named_parameters())[name].detach().numpy()).max() > 0.1


def test_hospitals_in_turn_are_plain_sgd_over_their_batches_one_after_the_other(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state, (bottom, top) = trained(fed, order="sequential", rounds=2), parts()
    numbers = begun_at(fed)
    assert len(numbers) == 4
    for number, name in zip(numbers, [*fed.names, *fed.names], strict=True):
        for batch in shuffled(fed, number, name):
            stepped(loss_of(bottom, top, batch), bottom, top)
    assert_weights(state, bottom, top)


def test_hospitals_at_once_average_their_bottoms_beside_the_updates_of_the_hub(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    state, (first, top) = trained(fed, order="parallel"), parts()
    bottoms = {name: parts()[0] for name in fed.names}
    todo = {name: shuffled(fed, begun_at(fed)[0], name) for name in fed.names}
    assert len({len(found) for found in todo.values()}) == 2, "one has more batches than the other"
    for step in range(max(len(found) for found in todo.values())):
        for name in fed.names:
            if step < len(todo[name]):
                stepped(loss_of(bottoms[name], top, todo[name][step]), bottoms[name], top)
    n = np.array([sum(len(batch[0]) for batch in todo[name]) for name in fed.names])
    shares = (n / n.sum()).tolist()
    with torch.no_grad():
        for value, *own in zip(first.parameters(), *(bottoms[name].parameters() for name in fed.names), strict=True):
            value.copy_(sum(share * one for share, one in zip(shares, own, strict=True)))
    assert_weights(state, first, top)


def test_one_local_step_is_fedavg_of_bottoms_under_the_top_that_each_meets(parties):
    one, bottom = {"epochs": 1, "batch_size": 0, "learning_rate": 0.3, "rounds": 1}, parts()[0]
    state, met, total = trained(parties_anew(parties), **one), parts()[1], 0.0
    sizes = {name: len(party_of(parties, name)["x"]) for name in parties.names}
    for name in parties.names:
        alone = parties_anew(parties).pick([name])
        after = hr.last(fedavg(alone, nn.Sequential(bottom, met.requires_grad_(False)), path="eager", **one))
        total = total + sizes[name] / sum(sizes.values()) * after.weights["0.0.weight"]
        stepped(loss_of(bottom, met.requires_grad_(True), shuffled_whole(parties, name)), met)
    np.testing.assert_allclose(state.weights["0.0.weight"], total, atol=2e-6)
    np.testing.assert_allclose(state.weights["1.0.weight"], met[0].weight.detach().numpy(), atol=2e-6)


def shuffled_whole(fed, name):
    """All records of a party, as one batch."""
    return tuple(torch.from_numpy(np.asarray(party_of(fed, name)[column], np.float32)) for column in ("x", "label"))


def test_every_engine_trains_the_same(parties):
    one, other = (trained(hr.engines.on(parties, engine)) for engine in (hr.InProcess(), hr.Loop()))
    for name, value in one.weights.items():
        np.testing.assert_array_equal(other.weights[name], value)


def test_a_run_goes_on_after_a_state(parties):
    first, *_ = islice(splitfed(parties_anew(parties), *parts(), rounds=2, labels="shared", **LOCAL), 1)
    last = trained(parties_anew(parties), rounds=2, start=first)
    assert last.round == 2
    assert any((last.weights[name] != value).any() for name, value in first.weights.items())


def parties_anew(parties):
    return hr.engines.on(parties, hr.InProcess())


@pytest.mark.parametrize("size", [2, 3, 5, 0])
def test_the_ledger_has_rows_and_a_budget_refuses_them(parties, size):
    fed = parties_anew(parties)
    trained(fed, batch_size=size)
    entries = [entry for entry in run_of(fed).ledger.entries if entry.verb != "each"]
    assert all(entry.event.kind == ("rows" if entry.query.endswith("outputs") else "nonprivate") for entry in entries)
    fed = parties_anew(parties)
    with pytest.raises(BudgetExhausted):
        trained(fed.within(hr.Budget(epsilon=10.0, delta=1e-5)))
    assert not [entry for entry in run_of(fed).ledger.entries if entry.event.open]


def test_labels_are_not_sent_without_being_said_to_be_shared(parties):
    fed = parties_anew(parties)
    with pytest.raises(LabelsExposed):
        trained(fed, labels=None)
    with pytest.raises(SettingsInvalid):
        trained(fed, labels="yes")
    with pytest.raises(SettingsInvalid):
        trained(fed, order="shuffled")
    with pytest.raises(UnlawfulChannel):
        trained(fed.protect(aggregation=Hiding()))
    bottom, top = parts()
    with pytest.raises(ModelInvalid):
        next(splitfed(fed, nn.Sequential(bottom, nn.Dropout()), top, rounds=1, labels="shared"))
    shared = nn.Linear(4, 4)
    with pytest.raises(ModelInvalid):
        next(splitfed(fed, shared, nn.Sequential(shared, nn.Linear(4, 1)), rounds=1, labels="shared"))
    assert not run_of(fed).ledger.entries
