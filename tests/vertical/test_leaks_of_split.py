"""What a split network leaks on a federation: observed at the parties that send, with labels that were replaced once."""

import numpy as np
import pandas as pd
import pytest
import torch
from apart_double import AsHeld
from plain_split import made
from torch import nn

import hedgerow as hr
from hedgerow.core.federation import inside
from hedgerow.errors import SettingsInvalid
from hedgerow.vertical.leaks import LabelDP, MaxNormNoise, Observer, leak_report, measured
from hedgerow.vertical.leaks.label_dp import DRAWN_FROM
from hedgerow.vertical.split.splitnn import splitnn

N = 600
PEOPLE = made(N, 1, positive=0.2)
WATCH = Observer((1, 2, 3))


def aligned():
    names = [f"v{i}" for i in range(29)]
    ids = [f"person {i}" for i in range(N)]
    shop = pd.DataFrame(PEOPLE.x, columns=names, index=ids).rename_axis("nin").reset_index()
    bank = pd.DataFrame({"nin": ids, "fraud": PEOPLE.y.astype(int)})
    federation = hr.simulate({"shop": shop, "bank": bank}, on="nin", seed=0)
    return federation, federation.align(on="nin", by=AsHeld())


def trained(federation, both, name="net", epochs=3, **how):
    torch.manual_seed(0)
    bottom, top = nn.Sequential(nn.Linear(29, 8), nn.ReLU()), nn.Linear(8, 1)
    settings = {"label": "bank.fraud", "batch_size": 150, "learning_rate": 3e-3, "optimiser": "Adam", "scale": "none"}
    *_, state = splitnn(both, {"shop": bottom}, top, epochs=epochs, observer=WATCH, name=name, **settings, **how)
    run = inside(federation).run
    return state, {name: dict(kept) for name, kept in run.engine.held.states.committed(run.counted).items()}


@pytest.fixture(scope="module")
def shared():
    return trained(*aligned(), labels="shared")


def test_both_parties_keep_what_they_sent(shared):
    _, states = shared
    down, up = WATCH.seen(states["bank"]), WATCH.seen(states["shop"])
    for sent, received in zip(up, down, strict=True):
        assert sorted(sent.rows) == list(range(N))
        assert (sent.rows == received.rows).all()
        assert sent.sent.shape == received.sent.shape == (N, 8)
        assert (sent.sent >= 0).all()  # behind a ReLU
        assert sent.score is None
        assert received.score.shape == (N,)


def test_v15_shared_labels_are_told_by_the_slopes(shared):
    state, states = shared
    found = measured(None, state.score, WATCH.seen(states["bank"]), PEOPLE.y)
    assert found.of("direction", 1).attack > 0.99
    assert found.of("direction", 1).beyond > 0.05


def test_v16_every_epoch_reads_the_labels_that_were_said_once():
    """Slopes of all epochs together tell what was said of everybody, and of the label itself no more than that."""
    federation, both = aligned()
    dp = LabelDP(1.0)
    state, states = trained(federation, both, labels=dp)
    said = dp.said(states["bank"])
    found = measured(dp, state.score, WATCH.seen(states["bank"]), PEOPLE.y, said=said)
    assert 0.2 < (said != PEOPLE.y).mean() < 0.34
    assert found.of("direction", 0).said > 0.99
    assert found.of("direction", 0).attack == pytest.approx(dp.ceiling, abs=0.08)
    assert found.of("direction", 0).flipped < 0.05
    assert [str(entry.event) for entry in both.ledger.entries if entry.event.kind == "pure"] == ["pure(1)"]
    assert not [key for key in states["shop"] if key.startswith("label dp")]


def test_several_epsilons_in_one_study_are_said_in_falling_order():
    federation, both = aligned()
    rows = []
    for i, dp in enumerate([LabelDP(4.0), LabelDP(1.0)]):
        state, states = trained(federation, both, f"net {i}", 1, labels=dp)
        rows.append(measured(dp, state.score, WATCH.seen(states["bank"]), PEOPLE.y, said=dp.said(states["bank"])))
    before, after = (LabelDP(epsilon).said(states["bank"]) for epsilon in (4.0, 1.0))
    assert (before != PEOPLE.y).mean() < 0.06
    assert 0.2 < (after != PEOPLE.y).mean() < 0.34
    assert DRAWN_FROM in states["bank"]
    assert [row[0] for row in leak_report(rows).tables[0].rows] == ["label DP, epsilon 4", "label DP, epsilon 1"]


def test_slopes_are_observed_as_they_leave_after_the_defence(shared):
    _, states = trained(*aligned(), epochs=1, labels="shared", defence=MaxNormNoise())
    bare, noisy = WATCH.seen(shared[1]["bank"])[0], WATCH.seen(states["bank"])[0]
    first = bare.batch == 0
    stretch = noisy.sent[first] / np.where(bare.sent[first] == 0, 1, bare.sent[first])
    assert (bare.rows == noisy.rows).all()
    assert np.ptp(stretch[:, 0]) > 0.5  # the first batch has the same slopes, each stretched at random


def test_a_last_batch_that_nothing_would_hide_is_refused_before_any_party_is_asked():
    _, both = aligned()
    asked = len(both.ledger)
    with pytest.raises(SettingsInvalid, match="last batch has 1 people"):
        next(
            splitnn(
                both,
                {"shop": nn.Linear(29, 4)},
                nn.Linear(4, 1),
                label="bank.fraud",
                epochs=1,
                batch_size=N - 1,
                labels="shared",
                columns="shared",
                defence=MaxNormNoise(),
            )
        )
    assert len(both.ledger) == asked
