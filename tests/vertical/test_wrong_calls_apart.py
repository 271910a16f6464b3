"""What a newcomer calls wrongly is refused before any party is asked, in words that say what to call."""

import pytest
from tables_apart import tables

import hedgerow as hr
from hedgerow.errors import ArgumentInvalid, SettingsInvalid
from hedgerow.vertical.boost import boosted_trees


@pytest.fixture
def federation():
    return hr.simulate(tables()[0], on="nin", seed=0)


@pytest.mark.parametrize("protocol", [hr.vertical.X25519, hr.vertical.KKRT])
def test_an_alignment_of_which_one_party_learns_is_refused_before_anybody_is_asked(federation, protocol):
    with pytest.raises(SettingsInvalid, match="tax alone would learn"):
        federation.align(on="nin", by=protocol(learns="tax"))
    with pytest.raises(SettingsInvalid, match="Did you mean 'town'"):
        federation.align(on="nin", by=protocol(learns="towm"))
    assert len(federation.ledger) == 0


@pytest.mark.parametrize("by", ["x25519", hr.vertical.X25519])
def test_what_is_no_protocol_is_refused_before_anybody_is_asked(federation, by):
    with pytest.raises(ArgumentInvalid, match=r"hr\.vertical\.X25519\(\)"):
        federation.align(on="nin", by=by)
    assert len(federation.ledger) == 0


CALLS = [
    lambda handle: hr.vertical.means(handle, "salary", by="gender"),
    lambda handle: hr.vertical.contingency(handle, "gender", "gender"),
    lambda handle: hr.vertical.correlation(handle),
    lambda handle: hr.vertical.pca(handle),
    lambda handle: hr.vertical.vif(handle),
    lambda handle: hr.vertical.linear_regression(handle, "salary ~ age"),
    lambda handle: hr.vertical.logistic_regression(handle, "gender ~ age"),
    lambda handle: hr.vertical.poisson_regression(handle, "salary ~ age"),
    lambda handle: hr.vertical.ridge(handle, "salary ~ age", penalty=1.0),
    lambda handle: hr.vertical.lasso(handle, "salary ~ age", penalty=1.0),
    lambda handle: boosted_trees(handle, "gender"),
]


@pytest.mark.parametrize("call", CALLS)
def test_functions_of_the_room_name_align_where_it_was_forgotten(federation, call):
    for handle in (federation, tables()[0]["town"]):
        with pytest.raises(ArgumentInvalid, match=r"an Aligned(.|\n)*align\(on="):
            call(handle)
