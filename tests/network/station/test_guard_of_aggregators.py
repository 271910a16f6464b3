"""A guard that wants noise of aggregators: what it takes, what it refuses, and what its owner reads."""

from itertools import pairwise
from typing import get_args

import pytest

from hedgerow.core.bound import l2
from hedgerow.core.disclosure import ExactNumbers
from hedgerow.core.ledger import Entry
from hedgerow.core.release import Release
from hedgerow.errors import ProtectionRequired
from hedgerow.network.console.reading import noise_words
from hedgerow.network.console.rules import NOISE, WHO, rules_of
from hedgerow.network.station.asking import protects
from hedgerow.network.station.config import GuardSection, Noise, RequireSection
from hedgerow.network.station.disclosed import RANK, asked_in, trust_of
from hedgerow.network.station.policy import STRENGTH, admit_protection, noise_at
from hedgerow.privacy import Gaussian
from hedgerow.privacy.guard import COUNTS, entry_of
from hedgerow.wire.question import Received
from helpers import outbox, totals

PLACES = ("server", "aggregators", "shares", "party")


def box(at, z=5.0, unit="party"):
    mechanism = None if at == "none" else Gaussian(z, at, 3 if at == "shares" else 0).added_by(2)
    return outbox(totals, release=Release(bounds=l2(1.0, unit), mechanism=mechanism))


@pytest.mark.parametrize("at", ["none", *PLACES])
@pytest.mark.parametrize("wanted", ["none", *PLACES])
def test_noise_that_needs_less_trust_is_as_good(at, wanted):
    require = RequireSection(noise=wanted)
    if STRENGTH[at] >= STRENGTH[wanted]:
        admit_protection(require, box(at), hidden=True)
    else:
        with pytest.raises(ProtectionRequired, match="HR-606") as refusal:
            admit_protection(require, box(at), hidden=True)
        assert ("additive" in refusal.value.remedy) == (wanted == "aggregators")


def test_strength_follows_trust():
    assert sorted(STRENGTH, key=STRENGTH.get) == ["none", *PLACES] == list(get_args(Noise))
    order = list(COUNTS)
    ranks = [order.index(RANK[at]) for at in PLACES]
    assert all(a > b for a, b in pairwise(ranks))
    for at in PLACES:
        assert at in COUNTS[RANK[at]]


@pytest.mark.parametrize("at", ["aggregators", "shares"])
def test_a_row_that_is_seen_has_a_share_of_the_noise_or_none_and_is_refused(at):
    with pytest.raises(ProtectionRequired, match="would show this station's row"):
        admit_protection(RequireSection(), box(at), hidden=False)
    admit_protection(RequireSection(), box("party"), hidden=False)


def test_behind_hidden_rows_parties_may_change_from_round_to_round():
    from hedgerow.core.events import Sampling

    require = RequireSection(hidden_rows=True, noise="aggregators")
    release = box("aggregators").release
    admit_protection(require, outbox(totals, release=release, sampling=Sampling("poisson", 0.5)), hidden=True)
    drawn = outbox(totals, release=box("aggregators", unit="record").release, sampling=Sampling("poisson", 0.5))
    with pytest.raises(ProtectionRequired, match="drawn anew"):
        admit_protection(require, drawn, hidden=True)


@pytest.mark.parametrize(("noise", "counted"), [("aggregators", True), ("server", True), ("shares", False), ("none", False)])
def test_numbers_behind_it_are_covered_where_the_guard_counts_it(noise, counted):
    guard = GuardSection(require=RequireSection(noise=noise))
    entry = entry_of(box("aggregators"), "server")
    assert isinstance(entry, Entry)
    assert entry.mechanism == "Gaussian(5) at each of 2 aggregators"
    found = asked_in([entry], trust_of(guard), limited=True)
    assert isinstance(found, ExactNumbers)
    assert (found.unknown == 0) == counted


def test_a_repetition_has_other_noise_so_that_answers_are_limited():
    received = Received(box("aggregators"))
    assert protects(received)
    assert noise_at(received.outbox.release) == "aggregators"


def test_the_owner_reads_who_adds_it_and_who_has_to_be_honest():
    said = dict(rules_of(GuardSection(require=RequireSection(noise="aggregators", noise_multiplier=1.0))))
    assert "noise by each aggregator, of whom one is honest" in said["Protection"]
    assert noise_words("Gaussian(1) at each of 3 aggregators") == (
        "each of 3 aggregators adds all of it to its own total, and one of them has to be honest: Gaussian(1)"
    )
    assert set(NOISE) == set(PLACES)
    assert set(WHO) == set(COUNTS)
