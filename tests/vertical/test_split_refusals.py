"""What split training refuses, before any party is asked; what labels cost; and who sees what."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from apart_double import AsHeld
from split_nets import SETTINGS, aligned, between, bottom, kept, made, own_bottom, top
from torch import nn

import hedgerow as hr
from hedgerow.errors import LabelsExposed, MissingColumn, ModelInvalid, NotFinite, SettingsInvalid, UnlawfulChannel
from hedgerow.vertical.leaks import LabelDP, MaxNormNoise, NoPeek, Observer
from hedgerow.vertical.leaks.label_dp import SAID
from hedgerow.vertical.split import predict, splitnn
from hedgerow.vertical.split.lawful import is_affine


def last_of(both, bottoms, *, upper=None, **settings):
    *_, last = splitnn(both, bottoms, upper or top(), **SETTINGS | {"epochs": 2, "labels": "shared"} | settings)
    return last


def asked(both):
    return len(both.ledger)


@pytest.fixture
def both():
    return aligned(made())


def test_v15_training_that_tells_labels_is_refused(both):
    before = asked(both)
    with pytest.raises(LabelsExposed, match="alice would receive the slopes") as refused:
        last_of(both, {"alice": bottom(5)}, labels=None)
    assert "LabelDP" in str(refused.value)
    assert asked(both) == before
    with pytest.raises(LabelsExposed, match="alice"):  # noise without a guarantee protects no label
        last_of(both, {"alice": bottom(5)}, labels=None, defence=MaxNormNoise())


def test_v15_a_u_shape_tells_no_party_where_the_hub_has_the_middle_and_the_bank_the_features(both):
    own = {"bank": own_bottom(3)}
    assert last_of(both, own, middle=between(), labels=None, columns="shared", epochs=1).n == 70
    assert not any("slopes" in said for said in both.saw["alice"])
    three = aligned(made(), "alice", "carol")
    with pytest.raises(LabelsExposed, match="carol would receive"):
        last_of(three, own, middle=between(), middle_at="carol", labels=None)
    with pytest.raises(LabelsExposed, match="alice would receive"):
        last_of(both, {"alice": bottom(5)}, middle=between(), labels=None)


def test_v15_predictions_go_to_a_party_only_where_it_may_know_the_labels(both):
    fit = last_of(both, {"bank": own_bottom(3)}, middle=between(), labels=None, columns="shared", epochs=1)
    before = asked(both)
    for network in (fit, fit.fit):
        with pytest.raises(LabelsExposed, match="alice would receive predictions"):
            predict(both, network, to="alice")
    with pytest.raises(SettingsInvalid, match="labels is 'mine'"):
        predict(both, fit, to="alice", labels="mine")
    assert asked(both) == before
    assert "split/kept/predicted" not in kept(both).get("alice", {})
    assert predict(both, fit, to="bank") is None
    assert predict(both, fit, to="hub").shape == (70, 3)
    assert predict(both, fit, to="alice", labels="shared") is None
    assert kept(both)["alice"]["split/kept/predicted"].shape == (70, 3)
    private = last_of(both, {"alice": bottom(5)}, labels=LabelDP(1.0, classes=3), epochs=1, name="private")
    assert predict(both, private, to="alice") is None


def test_v2_an_affine_part_is_refused_where_it_is_opened_more_than_once(both):
    linear = nn.Linear(5, 6)
    with pytest.raises(LabelsExposed, match="the part of alice is affine"):
        last_of(both, {"alice": linear})
    assert last_of(both, {"alice": linear}, columns="shared").n == 70
    once = aligned(made())
    assert last_of(once, {"alice": linear}, epochs=1, batch_size=70).n == 70


@pytest.mark.parametrize(
    ("module", "affine"),
    [
        (nn.Linear(5, 6), True),
        (nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 6)), True),
        (nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8)), True),
        (bottom(5), False),
        (own_bottom(5), False),
        (nn.Sequential(nn.Linear(5, 8), nn.LeakyReLU(0.9)), False),
        (nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8)), False),
    ],
)
def test_v2_affine_parts_are_told_by_what_they_compute(module, affine):
    assert is_affine(module, torch.zeros(2, 5)) is affine


def test_a_maximum_is_refused_behind_masks():
    three = aligned(made(), "alice", "carol")
    with pytest.raises(UnlawfulChannel, match="maximum is no sum"):
        last_of(three, {"alice": bottom(5), "carol": bottom(4)}, merge="maximum")


def test_v16_labels_are_drawn_once_and_paid_once(both):
    dp = LabelDP(1.0, classes=3)
    last_of(both, {"alice": bottom(5)}, labels=dp)
    first = kept(both)["bank"][SAID]
    last_of(both, {"alice": bottom(5)}, labels=dp, name="second")
    assert np.array_equal(kept(both)["bank"][SAID], first)
    assert 0.2 < (first != made().label).mean() < 0.7  # 42 % at epsilon 1 with three classes
    paid = [entry for entry in both.ledger.entries if entry.event.kind == "pure"]
    assert [(entry.event.epsilon, entry.unit) for entry in paid] == [(1.0, "record")]
    assert paid[0].query.endswith(":say_labels")


def test_v16_labels_of_each_column_are_paid_once_and_those_of_others_as_well():
    rng, ids = np.random.default_rng(0), np.arange(70) + 1000
    left = pd.DataFrame({"id": ids, "x": rng.uniform(size=70), "rich": rng.integers(0, 2, 70)})
    right = pd.DataFrame({"id": ids, "y": rng.uniform(size=70), "ill": rng.integers(0, 2, 70)})
    both = hr.simulate({"left": left, "right": right}, on="id", seed=0).align(on="id", by=AsHeld())

    def paid(label, holder, column, epsilon):
        how = {"features": {holder: [column]}, "scale": "none", "epochs": 1, "labels": LabelDP(epsilon)}
        next(splitnn(both, {holder: bottom(1)}, top(6, 1), label=label, **how))
        return [entry.event.epsilon for entry in both.ledger.entries if entry.event.kind == "pure"]

    assert paid("ill", "left", "x", 1.0) == [1.0]
    assert paid("rich", "right", "y", 1.0) == [1.0, 1.0]
    assert paid("ill", "left", "x", 1.0) == [1.0, 1.0]
    assert paid("ill", "left", "x", 0.5) == [1.0, 1.0]  # made of what was said at 1


@pytest.mark.slow
def test_v16_labels_that_were_said_are_those_that_are_learned(both):
    last_of(both, {"alice": bottom(5)}, labels=LabelDP(0.5, classes=3), epochs=1)
    said = kept(both)["bank"][SAID]
    plain = aligned(made())
    people = made()
    people.label = said
    other = aligned(people)
    last_of(plain, {"alice": bottom(5)}, labels=LabelDP(0.5, classes=3), epochs=1)
    a = last_of(both, {"alice": bottom(5)}, labels=LabelDP(0.5, classes=3), epochs=1, name="again")
    b = last_of(other, {"alice": bottom(5)}, labels="shared", epochs=1, name="again")
    assert a.score != b.score or a.loss != b.loss  # the loss is corrected for the chances, so weights differ
    assert np.array_equal(kept(plain)["bank"][SAID], said)  # a seeded simulation repeats itself


def test_label_privacy_is_for_classes(both):
    with pytest.raises(SettingsInvalid, match="'fraud' has 3"):
        last_of(both, {"alice": bottom(5)}, labels=LabelDP(1.0))


def test_v17_half_precision_is_a_setting_that_changes_bits_and_halves_bytes():
    exact, half = aligned(made()), aligned(made())
    a = last_of(exact, {"alice": bottom(5)})
    b = last_of(half, {"alice": bottom(5)}, letters="float16")
    assert a.loss != b.loss
    assert a.loss == pytest.approx(b.loss, rel=1e-2)
    sent = [
        sum(sum(one.bytes.values()) for one in handle.traffic if one.purpose.startswith("rows")) for handle in (exact, half)
    ]
    assert sent[1] < 0.65 * sent[0]
    assert b.letters == "float16"


def test_who_saw_what(both):
    last_of(both, {"alice": bottom(5)})
    assert [said for said in both.saw["bank"] if "rows" in said] == ["rows, record by record, of alice (forward)"]
    assert [said for said in both.saw["alice"] if "rows" in said] == ["rows, record by record, of bank (slopes)"]
    assert not any("rows" in said for said in both.saw["hub"])
    assert both.saw["world"] == ("sums over 70 people of bank: scored",)
    assert {entry.event.kind for entry in both.ledger.entries if entry.query.endswith((":forward", ":slopes"))} == {"rows"}


def test_a_budget_refuses_rows():
    within = hr.simulate(made().tables("alice"), on="id", seed=0).within(hr.Budget(epsilon=1.0, delta=1e-6, unit="record"))
    with pytest.raises(hr.errors.BudgetExhausted):
        last_of(within.align(on="id", by=AsHeld()), {"alice": bottom(5)})


@pytest.mark.slow
def test_defences_and_observers_go_along(both):
    noisy = last_of(
        both, {"alice": bottom(5)}, defence=MaxNormNoise(), nopeek=NoPeek(0.5), observer=Observer((1,)), batch_size=20
    )
    plain = last_of(aligned(made()), {"alice": bottom(5)}, batch_size=20)
    assert noisy.loss != plain.loss
    states = kept(both)
    (seen,) = Observer((1,)).seen(states["bank"])
    (sent,) = Observer((1,)).seen(states["alice"])
    assert seen.sent.shape == sent.sent.shape == (70, 6)
    assert seen.score.shape == (70, 3)
    assert np.array_equal(seen.rows, sent.rows)


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"label": "frauds"}, MissingColumn, "frauds"),
        ({"merge": "mean"}, SettingsInvalid, "merge is 'mean'"),
        ({"optimiser": "Adma"}, SettingsInvalid, "Adam"),
        ({"optimiser_settings": {"nestrov": True}}, SettingsInvalid, "nestrov"),
        ({"loss": "squred"}, SettingsInvalid, "squred"),
        ({"learning_rate": 0.0}, SettingsInvalid, "learning_rate"),
        ({"labels": "mine"}, SettingsInvalid, "labels is 'mine'"),
        ({"columns": "mine"}, SettingsInvalid, "columns is 'mine'"),
        ({"held_out": 1.0}, SettingsInvalid, "held_out"),
        ({"epochs": 0}, SettingsInvalid, "epochs is 0"),
        ({"defence": "noise"}, SettingsInvalid, "defence"),
        ({"middle": between(), "middle_at": "alice"}, SettingsInvalid, "the middle lies at 'alice'"),
    ],
)
def test_settings_are_checked_before_anybody_is_asked(both, changed, error, match):
    before = asked(both)
    with pytest.raises(error, match=match):
        last_of(both, {"alice": bottom(5)}, **changed)
    assert asked(both) == before


@pytest.mark.parametrize(
    ("bottoms", "upper", "match"),
    [
        ({"alice": bottom(4)}, top(), "part of alice does not accept"),
        ({"alice": bottom(5)}, top(5), "part of the label holder does not accept"),
        ({"alice": bottom(5)}, top(6, 2), r"'fraud' needs \(4, 3\)"),
        ({"alice": bottom(5), "bank": own_bottom(3, 5)}, top(), "same width"),
    ],
)
def test_parts_that_do_not_fit_are_refused(both, bottoms, upper, match):
    with pytest.raises(ModelInvalid) as refused:
        last_of(both, bottoms, upper=upper)
    assert re.search(match, str(refused.value))


def test_columns_with_missing_values_are_refused():
    people = made().tables("alice")
    schema = people["alice"].schema
    lacking = hr.data.Schema((replace(schema["alice0"], optional=True), *(one for one in schema if one.name != "alice0")))
    people["alice"] = hr.data.Table(people["alice"].columns, lacking)
    both = hr.simulate(people, on="id", seed=0).align(on="id", by=AsHeld())
    with pytest.raises(NotFinite, match="alice0"):
        last_of(both, {"alice": bottom(5)})


def test_a_party_that_lost_its_part_says_so(both):
    last = last_of(both, {"alice": bottom(5)}, epochs=1)
    anew = aligned(made())
    with pytest.raises(hr.errors.HedgerowError) as refused:
        last_of(anew, {"alice": bottom(5)}, start=last)
    assert "HR-615" in str(refused.value)
