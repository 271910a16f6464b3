"""Gradient queries over stations that agreed on epsilons of their own: each journal charges the station's own noise."""

import pytest
from test_own_noise import Service

from hedgerow.core.ledger import grouped
from hedgerow.privacy.accounting import epsilon

OWNERS = {"alpha": 0.5, "beta": 1.53, "gamma": 2.98}
QUERIES = """
name = "queries"
[data]
name = "heart"
target = "sick"
features = ["age", "dose"]
[program]
name = "gradient_queries"
rounds = 3
n_records = 180
model = "logistic"
neighbours = "add-remove"
epsilons = { alpha = 0.5, beta = 1.53, gamma = 2.98 }
"""
GAUSSIAN = QUERIES + 'noise = "gaussian"\n'


def charged(station, accountant):
    """Epsilon of everything in a station's journal, computed anew from its entries."""
    entries = [charge.entry() for _, charge in station.journal.charges()]
    return epsilon(grouped(entries, "record"), delta=1e-6, adjacency="add-remove", accountant=accountant)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "accountant"), [(QUERIES, "basic"), (GAUSSIAN, "tightest")], ids=["laplace", "gaussian"])
def test_each_station_charges_its_own_epsilon_and_has_no_room_for_more(tmp_path, text, accountant):
    guards = {name: {"budget": {"epsilon": most, "delta": 1e-6, "accountant": accountant}} for name, most in OWNERS.items()}
    service = Service(tmp_path, guards, approval="automatic", programs=[{"name": "gradient_queries"}])
    assert service.run(text).state == "finished"
    for name, most in OWNERS.items():
        found = charged(service.house.stations[name], accountant)
        assert found <= most
        assert found == pytest.approx(most, rel=1e-12 if accountant == "basic" else 1.01e-3)
    refused = service.run(text.replace('"queries"', '"again"'))
    assert refused.state == "refused"
    assert "HR-213" in refused.reason
