"""A party's own total: it is the sum over the common people, and no row leaves in its place."""

import numpy as np
import pytest
from split_nets import aligned, made

import hedgerow as hr
from hedgerow.errors import PartyDeclined, UnlawfulChannel


@hr.local
def first_two(broadcast, party, rng):
    return np.stack([party["alice0"], party["alice1"]], 1)


@hr.local
def people_as_columns(broadcast, party, rng):
    return np.diag(party["alice0"])


def test_a_total_is_the_sum_over_the_common_people():
    people = made()
    both = aligned(people)
    np.testing.assert_allclose(both.total(first_two, party="alice"), people.x["alice"][:, :2].sum(0), rtol=1e-12)
    entry = both.ledger.entries[-1]
    assert (entry.event.kind, entry.verb) == ("nonprivate", "sum")
    assert both.saw["world"] == ("sums over 70 people of alice: first_two",)


def test_v1_more_numbers_than_a_total_has_are_refused_by_the_party():
    with pytest.raises(PartyDeclined):
        aligned(made()).total(people_as_columns, party="alice")


def test_a_total_does_not_go_through_noise():
    noisy = aligned(made()).protect(mechanism=hr.Gaussian(1.0, at="shares", least=2))
    with pytest.raises(UnlawfulChannel):
        noisy.total(first_two, party="alice")
