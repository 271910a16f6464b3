"""What a made-up table, and that from which it is drawn, say of themselves: the target, a name, one line."""

from __future__ import annotations

from functools import partial

import pytest

import hedgerow as hr

COLUMNS = ["age", "children", "religious"]


@pytest.fixture(scope="module")
def towns():
    table = hr.data.load("fair").take(range(300)).select([*COLUMNS, "affairs"]).with_roles(target="affairs")
    return partial(hr.simulate, table, hr.data.iid(parties=2), seed=0)


@pytest.mark.parametrize("make", [hr.synth.tan, hr.synth.rap])
def test_target_of_a_made_up_table_is_the_one_it_was_made_for(towns, make):
    told = {} if make is hr.synth.tan else {"components": 5}
    for target in (None, "children", ""):
        schema = make(towns(), target=target, bins=4, **told).sample(5, seed=0).schema
        assert schema.target == ("affairs" if target is None else target or None)
        assert set(schema.features) == {*COLUMNS, "affairs"} - {schema.target}


def test_target_that_was_declared_stays_where_a_method_has_none(towns):
    for made in (hr.synth.mst(towns(), bins=4), hr.synth.marginals(towns(), bins=4), hr.synth.copula(towns(), bins=4)):
        assert made.sample(5, seed=0).schema.target == "affairs"
