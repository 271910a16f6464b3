"""Asynchronous gradient queries with weights over stations: each is asked as often as it agreed to, for its own epsilon."""

import pytest
from test_own_epsilons import OWNERS, QUERIES
from test_own_noise import Service

import hedgerow as hr
from hedgerow.core.ledger import grouped
from hedgerow.learn.queries import Inputs, Steps, answers_for, async_queries, loss_of
from hedgerow.network.station.signatures import signature_of
from hedgerow.privacy.accounting import epsilon
from helpers import run_of
from station_house import House

IN_TURN = (
    QUERIES.replace("gradient_queries", "async_queries").replace("180", "{ alpha = 60, beta = 60, gamma = 60 }")
    + "every = 2\nweights = { alpha = 0.1, beta = 0.3, gamma = 1.0 }\n"
)


def charged(station):
    """Epsilon of everything in a station's journal, computed anew from its entries."""
    entries = [charge.entry() for _, charge in station.journal.charges()]
    return epsilon(grouped(entries, "record"), delta=1e-6, adjacency="add-remove", accountant="basic")


@pytest.mark.slow
def test_each_station_charges_its_own_epsilon_and_is_asked_no_further(tmp_path):
    guards = {name: {"budget": {"epsilon": most, "delta": 1e-6, "accountant": "basic"}} for name, most in OWNERS.items()}
    service = Service(tmp_path, guards, approval="automatic", programs=[{"name": "async_queries"}])
    assert service.run(IN_TURN).state == "finished"
    for name, most in OWNERS.items():
        assert charged(service.house.stations[name]) == pytest.approx(most, rel=1e-12)
    assert service.run(IN_TURN.replace('"queries"', '"again"')).state == "refused"


@pytest.mark.slow
def test_a_guard_that_wants_cohorts_of_two_is_asked_in_no_smaller_one(tmp_path):
    """Six stations in two steps are three in each; each station rehearses a deal of its own, and all approve."""
    six = [*OWNERS, "delta", "epsilon", "zeta"]
    text = IN_TURN.replace("{ alpha = 60, beta = 60, gamma = 60 }", "360").partition("weights")[0]
    text = text.replace("gamma = 2.98", "gamma = 2.98, delta = 1.0, epsilon = 1.0, zeta = 1.0")
    wants = {"approval": "automatic", "programs": [{"name": "async_queries"}]}
    for least, status in ((3, {"approved"}), (4, {"refused"})):
        house = House(tmp_path / str(least), dict.fromkeys(six, wants | {"least_cohort": least}))
        assert {one["status"] for one in house.board(text).values()} == status


class Listening(hr.InProcess):
    """Keeps what it is asked."""

    def exchange(self, outbox):
        self.heard = [*getattr(self, "heard", []), outbox]
        return super().exchange(outbox)


@pytest.mark.parametrize("noise_at_owners", [True, False])
def test_parts_of_another_size_are_of_an_announced_kind_where_owners_add_the_noise(noise_at_owners):
    """A part is drawn anew in each round, and how large it is changes nothing of an answer; with the server's noise it may."""
    table = hr.data.load("hie").with_roles(features=["lncoins", "idp"]).take(range(200))
    fed = hr.simulate(table, hr.data.iid(parties=5), seed=0, engine=Listening())
    loss, spec, steps, answers = loss_of("linear"), Inputs.scaled(table.schema), Steps(size=0.2), None
    if noise_at_owners:
        answers = answers_for(table.schema, dict.fromkeys(fed.names, 9.0), 4, loss, spec, steps.box)
    asked = fed if noise_at_owners else fed.protect(mechanism=hr.Gaussian(2.0))
    hr.last(async_queries(asked, loss=loss, spec=spec, steps=steps, n_records=200, rounds=4, every=2, answers=answers))
    heard = run_of(fed).engine.heard
    sizes = {len(outbox.ids) for outbox in heard}
    kinds = {signature_of(outbox, "", rows=False) for outbox in heard}
    assert len(sizes) > 1
    assert len(kinds) == (1 if noise_at_owners else len(sizes))


def test_other_weights_than_were_announced_are_another_kind_of_question():
    """They cost no privacy, and decide what the result is made of: a station is asked with those that it approved."""
    table = hr.data.load("hie").with_roles(features=["lncoins", "idp"]).take(range(90))
    loss, spec, steps, kinds = loss_of("linear"), Inputs.scaled(table.schema), Steps(size=0.2), set()
    for weight in (0.5, 0.5, 0.25):
        fed = hr.simulate(table, hr.data.iid(parties=3), seed=0, engine=Listening())
        weights = dict.fromkeys(fed.names, 1.0) | {"party 2": weight}
        answers = answers_for(table.schema, dict.fromkeys(fed.names, 9.0), 1, loss, spec, steps.box, weights=weights)
        told = {"loss": loss, "spec": spec, "steps": steps, "n_records": dict.fromkeys(fed.names, 30)}
        hr.last(async_queries(fed, rounds=1, every=1, answers=answers, **told))
        kinds |= {signature_of(outbox, "", rows=False) for outbox in run_of(fed).engine.heard}
    assert len(kinds) == 2
