"""Rules of rows where rows come from stations: the same numbers as the loop, or the guard's own refusal."""

from functools import partial

import numpy as np
import pytest
from ministation import HOMES, at_stations, federation, remote

import hedgerow as hr
from hedgerow.errors import ProtectionRequired
from hedgerow.learn.local import local_sgd
from hedgerow.network.station.config import GuardSection
from hedgerow.network.station.policy import admit_rehearsed
from helpers import outbox

RULES = {"median": "median", "groups": {"name": "groups", "groups": 2}, "clip": {"name": "centred-clip", "radius": 0.1}}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_rows_from_stations_are_combined_as_in_one_process(name):
    train = partial(hr.learn.fedavg, module=hr.learn.linear(2, 1), rounds=3, learning_rate=1e-3, rule=RULES[name])
    here = federation()
    expected = hr.last(train(hr.engines.on(here, hr.Loop())))
    found = hr.last(train(remote(here, at_stations(here, HOMES)[0])))
    for key, value in expected.weights.items():
        np.testing.assert_allclose(found.weights[key], value, atol=1e-5)
    for key, value in expected.rule_state.items():
        np.testing.assert_allclose(found.rule_state[key], value, atol=1e-5)


def test_a_guard_that_hides_rows_refuses_a_rule_of_them_and_lets_groups_pass():
    guard = GuardSection.model_validate({"require": {"hidden_rows": True}})
    rows, groups = outbox(local_sgd, verb="gather"), outbox(local_sgd)
    with pytest.raises(ProtectionRequired, match=r"gather of .*local_sgd would show this station's row"):
        admit_rehearsed(guard, [(rows, "", 6)], 0, ("party 1",))
    with pytest.raises(ProtectionRequired, match="would show this station's row"):
        admit_rehearsed(guard, [(groups, "", 6)], 0, ("party 1",))
    admit_rehearsed(guard, [(groups, "secagg", 6)], 3, ("party 1",), withstood=True)
