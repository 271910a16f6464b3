"""A guard that wants proved rows: what it admits when a study is rehearsed, and at every question."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from hedgerow.core.bound import l2
from hedgerow.core.conversation import Step
from hedgerow.core.release import Release
from hedgerow.crypto import AdditiveShares, PrivFL, SecAgg
from hedgerow.errors import ConfigInvalid, ProtectionRequired
from hedgerow.network.station.aggregations import proves_rows
from hedgerow.network.station.config import GuardSection, RequireSection
from hedgerow.network.station.policy import admit_protection, admit_question, admit_rehearsed
from hedgerow.wire.question import Received
from helpers import outbox, totals
from station_house import config_of

PROVED = AdditiveShares(aggregators=2, verified=True)
OTHERS = [
    None,
    SecAgg(),
    AdditiveShares(aggregators=2),
    AdditiveShares(aggregators=2, verified=True, mode="simulated"),
    PrivFL(largest=10.0),
]
WANTS = GuardSection(require={"hidden_rows": True, "verified": True})
ASKED = outbox(totals, None, Release(l2(1.0), l2(1.0)), 1, ids=("a",))


def received(aggregation):
    step = None if aggregation is None else Step("contribution", {"a": b""}, True)
    return Received(replace(ASKED, step=step), aggregation)


@pytest.mark.parametrize("aggregation", OTHERS, ids=str)
def test_every_question_without_proofs_is_refused(aggregation):
    assert not proves_rows(aggregation)
    with pytest.raises(ProtectionRequired, match="HR-606"):
        admit_question(WANTS, received(aggregation), np.array([100]), datetime.now(UTC))


def test_a_question_with_proofs_is_answered():
    assert proves_rows(PROVED)
    admit_question(WANTS, received(PROVED), np.array([100]), datetime.now(UTC))
    admit_question(GuardSection(), received(None), np.array([100]), datetime.now(UTC))


def test_a_study_without_proofs_is_refused_when_it_is_rehearsed():
    asked = [(ASKED, "additive-share (2 aggregators)", 5)]
    with pytest.raises(ProtectionRequired, match=r"guard\.require\.verified[\s\S]*verified = true"):
        admit_rehearsed(WANTS, asked, 3, ("a",))
    admit_rehearsed(WANTS, asked, 3, ("a",), proved=True)
    with pytest.raises(ProtectionRequired):  # an answer by itself, beside an aggregation that proves rows
        admit_rehearsed(WANTS, [(ASKED, "", 5)], 3, ("a",), proved=True)


def test_a_twin_that_forgets_to_ask_admits_rows_that_nobody_proved():
    admit_protection(RequireSection(hidden_rows=True), ASKED, hidden=True)
    with pytest.raises(ProtectionRequired):
        admit_protection(RequireSection(hidden_rows=True, verified=True), ASKED, hidden=True)


def test_proofs_are_of_hidden_rows():
    with pytest.raises(ConfigInvalid, match="verified is of hidden rows"):
        config_of("alpha", require={"verified": True})
    assert config_of("alpha", require={"hidden_rows": True, "verified": True}).guard.require.verified
