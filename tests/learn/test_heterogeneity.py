"""Measures of heterogeneity against numpy, in their limiting cases, on every engine, protected, beside a training."""

from dataclasses import asdict
from functools import partial

import numpy as np
import pytest
from clinics import clinics, descent, flat, gradient

import hedgerow as hr
from hedgerow.errors import BudgetExhausted, SchemaInvalid, SettingsInvalid, UnboundedSum
from hedgerow.learn import (
    ModelState,
    curves,
    fedavg,
    feddyn,
    label_spread,
    linear,
    mlp,
    scaffold,
    spread,
    spread_clip,
    watch_spread,
)
from hedgerow.privacy.level import noise_level
from hedgerow.store import drive, load_checkpoint
from helpers import ENGINE_NAMES, ENGINES, run_of

LOCAL = {"learning_rate": 0.3, "epochs": 2, "batch_size": 5}
WEIGHTS = {"1.weight": np.array([[0.3, -0.2, 0.1, 0.4]]), "1.bias": np.array([0.2])}
W = np.array([0.3, -0.2, 0.1, 0.4, 0.2])


@pytest.fixture(scope="module")
def parties():
    return clinics()


def by_hand(fed, learning_rate=0.3, number="aside 1", weighting="records"):
    """Every measure by its definition, from each party's own update and gradient."""
    local = LOCAL | {"learning_rate": learning_rate}
    ends = [descent(fed, name, number, W, **local) for name in fed.members]
    u, n, g = (np.array([end[i] for end in ends]) for i in (0, 2, 3))
    u, K = u - W, len(ends)
    p = n / n.sum() if weighting == "records" else np.full(K, 1 / K)
    cosines = [u[k] @ u[l] / np.sqrt((u[k] @ u[k]) * (u[l] @ u[l])) for k in range(K) for l in range(K) if k != l]
    mean = p @ g
    variance, scale = ((u - u.mean(0)) ** 2).mean(0), u.mean(0) ** 2
    return {
        "parties": K,
        "variance": variance.mean(),
        "scale": scale.mean(),
        "cosine": np.mean(cosines),
        "dissimilarity": p @ (g**2).sum(1) / (mean @ mean),
        "gradient_variance": p @ ((g - mean) ** 2).sum(1),
        "layers": {
            "1.weight": {"variance": variance[:4].mean(), "scale": scale[:4].mean()},
            "1.bias": {"variance": variance[4], "scale": scale[4]},
        },
    }


def assert_same(found, expected, **tolerance):
    found, expected = asdict(found), expected if isinstance(expected, dict) else asdict(expected)
    layers = found.pop("layers"), expected.pop("layers")
    assert layers[0].keys() == layers[1].keys()
    for name, values in layers[0].items():
        np.testing.assert_allclose(list(values.values()), list(layers[1][name].values()), err_msg=name, **tolerance)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), err_msg=str(found), **tolerance)


def copies(signs, engine=None):
    """Parties with the same three records, whose labels are as given or turned round."""
    x = np.tile([[1.0, 0.5, -0.3, 0.2], [-0.4, 1.0, 0.6, 0.1], [0.2, -0.7, 1.0, 0.9]], (len(signs), 1))
    label = np.concatenate([[1, 0, 1] if sign > 0 else [0, 1, 0] for sign in signs])
    party = np.repeat([f"p{i}" for i in range(len(signs))], 3)
    schema = hr.data.Schema(
        (
            hr.data.Column("x", "number", shape=(4,)),
            hr.data.Column("label", "binary", role="target"),
            hr.data.Column("party", "category", role="ignore", levels=tuple(dict.fromkeys(party))),
        )
    )
    table = hr.data.Table(schema.admit({"x": x, "label": label, "party": party}), schema)
    return hr.simulate(table, hr.data.by_column("party"), seed=0, engine=engine)


def digits(partition):
    return hr.simulate(hr.data.load("digits"), partition, seed=0)


# ---- definitions -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["records", "uniform"])
def test_each_measure_is_its_definition(parties, weighting):
    fed = hr.engines.on(parties, hr.Loop())
    assert_same(spread(fed, linear(4, 1), WEIGHTS, weighting=weighting, **LOCAL), by_hand(fed, weighting=weighting), atol=1e-6)


@pytest.mark.slow
def test_geyers_measures_of_a_matrix_are_sums_over_its_entries_divided_by_q_times_p(parties):
    """A module of two matrices: the whole is the mean of its arrays, weighted by their sizes."""
    module = mlp(4, [3], 1)
    found = spread(hr.engines.on(parties, hr.InProcess()), module, **LOCAL)
    sizes = {name: value.numel() for name, value in module.named_parameters()}
    assert list(found.layers) == list(sizes)
    for measure in ("variance", "scale"):
        total = sum(size * getattr(found.layers[name], measure) for name, size in sizes.items())
        assert getattr(found, measure) == pytest.approx(total / sum(sizes.values()))


def test_the_learning_rate_is_that_of_the_next_round(parties):
    fed = hr.engines.on(parties, hr.Loop())
    state = hr.last(fedavg(fed, linear(4, 1), rounds=3, **LOCAL))
    state = type(state)(state.round, WEIGHTS)
    found = spread(fed, linear(4, 1), state, schedule="exponential", decay=0.5, **LOCAL)
    assert found.variance == pytest.approx(by_hand(fed, learning_rate=0.3 / 8)["variance"], rel=1e-4)


def test_parties_alike_have_one_gradient_and_one_update():
    found = spread(copies([1, 1, 1, 1]), linear(4, 1), WEIGHTS, learning_rate=0.3, batch_size=0)
    assert found.variance == pytest.approx(0, abs=1e-12)
    assert found.scale > 1e-3
    assert (found.cosine, found.dissimilarity) == (pytest.approx(1), pytest.approx(1))
    assert found.gradient_variance == pytest.approx(0, abs=1e-12)


def test_opposite_updates_cancel():
    """From weights of zero a record of the other label has the opposite gradient."""
    found = spread(copies([1, -1]), linear(4, 1), learning_rate=0.3, batch_size=0)
    assert found.scale == pytest.approx(0, abs=1e-12)
    assert found.variance > 1e-3
    assert found.cosine == pytest.approx(-1)
    assert found.dissimilarity > 1e9 or np.isnan(found.dissimilarity)


def test_dissimilarity_is_one_and_the_variance_over_the_squared_mean(parties):
    found = spread(hr.engines.on(parties, hr.InProcess()), linear(4, 1), WEIGHTS, measures=["gradients"])
    held = hr.engines.records(parties)
    mean = gradient(W, held.columns["x"], held.columns["label"])
    assert found.dissimilarity == pytest.approx(1 + found.gradient_variance / (mean @ mean), rel=1e-5)


def test_a_measure_that_was_not_asked_for_is_nan_and_costs_nothing(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    found = spread(fed, linear(4, 1), measures=["directions"])
    assert fed.ledger.entries[-1].contribution == "parties, direction (5,), moved"
    assert -1 <= found.cosine <= 1
    assert np.isnan([found.variance, found.scale, found.dissimilarity, found.gradient_variance]).all()
    assert found.layers == {}


@pytest.mark.slow
@pytest.mark.parametrize("channel", [{}, {"clip": spread_clip(update=0.5, gradient=1.0)}], ids=["open", "clip"])
def test_every_engine_measures_the_same(parties, channel):
    settings = {"rate": 0.7, **LOCAL}
    one, *others = (spread(hr.engines.on(parties, on).protect(**channel), mlp(4, [3], 1), **settings) for on in ENGINES)
    for other in others:
        assert_same(other, one, atol=1e-6, rtol=1e-4)


@pytest.mark.slow
def test_labels_that_are_skewed_show_in_every_measure():
    net = mlp(64, [16], 10)
    alike, skewed = digits(hr.data.iid(parties=20)), digits(hr.data.shards(parties=20))
    for weights in (None, hr.last(fedavg(alike, net, rounds=5))):
        one, other = spread(alike, net, weights), spread(skewed, net, weights)
        assert other.variance > 5 * one.variance
        assert other.gradient_variance > 5 * one.gradient_variance
        assert other.cosine < one.cosine - 0.2
    assert label_spread(skewed).distance > label_spread(alike).distance + 0.5


# ---- labels ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ENGINES, ids=ENGINE_NAMES)
def test_label_distance_is_half_the_absolute_differences(parties, engine):
    held = hr.engines.records(parties)
    own = np.array([[1 - party["label"].mean(), party["label"].mean()] for party in held])
    for unit, whole in (("record", held.columns["label"].mean()), ("party", own[:, 1].mean())):
        found = label_spread(hr.engines.on(parties, engine), unit=unit)
        assert found.shares == pytest.approx({"0": 1 - whole, "1": whole})
        assert found.distance == pytest.approx(np.abs(own - [1 - whole, whole]).sum(1).mean() / 2)


def test_labels_with_parties_of_their_own_are_as_far_as_can_be():
    labels = digits(hr.data.labels_per_party(parties=10, labels=1))
    assert label_spread(labels, unit="party").distance == pytest.approx(0.9)


@pytest.mark.parametrize("unit", ["record", "party"])
def test_noisy_labels_are_charged_and_near(unit):
    fed = digits(hr.data.shards(parties=40))
    exact = label_spread(fed, unit=unit)
    private = hr.engines.on(fed, hr.InProcess()).protect(mechanism=hr.Gaussian(1.0))
    found = label_spread(private, unit=unit)
    assert [(entry.event.kind, entry.unit) for entry in private.ledger.entries] == [("gaussian", unit)] * 2
    assert found.distance != exact.distance
    assert found.distance == pytest.approx(exact.distance, abs=0.2)  # 5 standard deviations are 5 / 40, and noisy shares
    assert sum(found.shares.values()) == pytest.approx(1)


def test_numbers_have_no_labels():
    with pytest.raises(SchemaInvalid, match="kind 'number'"):
        label_spread(hr.simulate(hr.data.load("diabetes"), hr.data.iid(parties=3), seed=0))


# ---- protection ------------------------------------------------------------------------------------------------------
def test_clipped_measures_are_those_of_shortened_updates(parties):
    fed = hr.engines.on(parties, hr.Loop()).protect(clip=spread_clip(update=0.2, gradient=0.3))
    found = spread(fed, linear(4, 1), WEIGHTS, **LOCAL)
    u = np.array([descent(fed, name, "aside 1", W, **LOCAL)[0] - W for name in fed.members])
    lengths = np.linalg.norm(u, axis=1, keepdims=True)
    assert (lengths > 0.2).any()
    u *= np.minimum(1, 0.2 / lengths)
    assert found.variance == pytest.approx(u.var(0).mean(), rel=1e-4)
    assert found.layers["1.bias"].variance == pytest.approx(u[:, 4].var(), rel=1e-4)
    assert found.scale == pytest.approx((u.mean(0) ** 2).mean(), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [hr.Gaussian(0.5), hr.Gaussian(0.1, at="party"), hr.Laplace(0.05)], ids=str)
def test_the_variance_of_the_noise_is_subtracted(parties, mechanism):
    """Means over 400 measurements are within 5 standard errors of the noiseless ones: one false alarm in 140 000 runs."""
    clip, settings = spread_clip(update=0.3, gradient=0.5), {"batch_size": 0}
    same = (ModelState(t + 1, WEIGHTS) for t in range(400))
    exact = spread(hr.engines.on(parties, hr.InProcess()).protect(clip=clip), linear(4, 1), WEIGHTS, **settings)
    fed = hr.engines.on(parties, hr.InProcess()).protect(clip=clip, mechanism=mechanism)
    found = [one for _, one in watch_spread(same, fed, linear(4, 1), **settings)]
    for measure in ("variance", "scale", "cosine", "gradient_variance"):
        values = np.array([getattr(one, measure) for one in found])
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - getattr(exact, measure)) < 5 * error, measure
        if measure == "scale":
            assert (noise_level(fed, None, "update", 5) / 6) ** 2 > 10 * error


@pytest.mark.slow
def test_a_protected_measurement_is_charged(parties):
    fed = hr.engines.on(parties, hr.InProcess()).protect(clip=spread_clip(update=1.0, gradient=1.0), mechanism=hr.Gaussian(1.0))
    fed = fed.within(hr.Budget(epsilon=6.0, delta=1e-5, unit="party"))
    spread(fed, linear(4, 1))
    entry = fed.ledger.entries[-1]
    assert (entry.event.kind, entry.event.noise_multiplier, entry.unit) == ("gaussian", 1.0, "party")
    assert "update: l2(1) per party; update_square: l1(1) per party; direction: l2(1) per party" in entry.clip
    with pytest.raises(BudgetExhausted):
        spread(fed, linear(4, 1))


@pytest.mark.slow
def test_directions_are_bounded_by_themselves_and_updates_are_not(parties):
    fed = hr.engines.on(parties, hr.InProcess()).protect(mechanism=hr.Gaussian(0.1))
    assert np.isfinite(spread(fed, linear(4, 1), measures=["directions"]).cosine)
    assert fed.ledger.entries[-1].bound == "direction: l2(1) per party"
    with pytest.raises(UnboundedSum):
        spread(fed, linear(4, 1))
    assert len(fed.ledger) == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"measures": ["update"]}, "measures"),
        ({"schedule": "cosine"}, "cosine"),
        ({"rounds": 0}, "rounds"),
        ({"epochs": 0}, "epochs"),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_before_anybody_is_asked(parties, wrong, said):
    fed = hr.engines.on(parties, hr.InProcess())
    with pytest.raises(SettingsInvalid, match=said):
        spread(fed, linear(4, 1), **wrong)
    assert len(fed.ledger) == 0


def test_one_clip_cannot_fit_all_sums(parties):
    with pytest.raises(SettingsInvalid, match="Clip each key"):
        spread(hr.engines.on(parties, hr.InProcess()).protect(clip=hr.l2(1.0)), linear(4, 1))


def test_a_channel_that_compresses_is_refused(parties):
    fed = hr.engines.on(parties, hr.InProcess()).protect(compression=hr.compression.Quantised(8))
    with pytest.raises(SettingsInvalid, match="without compression"):
        spread(fed, linear(4, 1))
    assert len(fed.ledger) == 0


# ---- beside a training -----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "channel"),
    [
        (fedavg, {}),
        (fedavg, {"clip": hr.l2(0.5), "mechanism": hr.Gaussian(0.5)}),
        (scaffold, {}),
        (partial(feddyn, alpha=0.3), {}),
    ],
    ids=["fedavg", "noise", "scaffold", "feddyn"],
)
def test_a_training_does_not_notice_that_it_is_measured(parties, algorithm, channel):
    """Cohorts, shuffles, noise, dropouts and the parties' states stay what they are."""
    ends, settings = [], {"rate": 0.6, **LOCAL}
    for measured in (False, True):
        fed = hr.engines.on(parties, hr.InProcess(dropout_rate=0.2))
        for state in algorithm(fed.protect(**channel), linear(4, 1), rounds=4, **settings):
            if measured:
                spread(fed, linear(4, 1), state, **settings)
                label_spread(fed)
        ends.append(flat(state))
    np.testing.assert_array_equal(*ends)
    assert sum(entry.query.endswith("differences") for entry in fed.ledger.entries) == 4


@pytest.mark.slow
def test_each_measurement_draws_its_own_cohort_and_shuffles(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    values = {spread(fed, linear(4, 1), rate=0.6, measures=["updates"], **LOCAL).variance for _ in range(5)}
    assert len(values) == 5
    assert len({entry.cohort for entry in fed.ledger.entries}) == 5


@pytest.mark.slow
def test_a_measured_run_resumes_bit_identically(parties, tmp_path):
    def run(fed, rounds, **more):
        program = partial(scaffold, module=linear(4, 1), rate=0.6, rounds=rounds, **LOCAL)
        found = []
        run = drive(program, fed, watch=lambda state: found.append(spread(fed, linear(4, 1), state, **LOCAL)), **more)
        return flat(run.state), found[-1]

    expected = run(hr.engines.on(parties, hr.InProcess()), 4)
    half, again = hr.engines.on(parties, hr.InProcess()), hr.engines.on(parties, hr.InProcess())
    run(half, 2, checkpoint=tmp_path / "c")
    run_of(again).ledger.entries.extend(half.ledger.entries)
    found = run(again, 4, start=load_checkpoint(tmp_path / "c", hr.learn.ScaffoldState, ""))
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1] == expected[1]


@pytest.mark.slow
def test_watching_passes_states_on_with_the_same_measurements(parties):
    fed, settings = hr.engines.on(parties, hr.InProcess()), {"rate": 0.6, **LOCAL}
    net = linear(4, 1)
    watched = list(watch_spread(fedavg(fed, net, rounds=4, **settings), fed, net, every=2, **settings))
    again = hr.engines.on(parties, hr.InProcess())
    for state, (same, found) in zip(fedavg(again, net, rounds=4, **settings), watched, strict=True):
        np.testing.assert_array_equal(flat(state), flat(same))
        assert found == (None if state.round % 2 else spread(again, net, state, **settings))


@pytest.mark.slow
def test_curves_draw_what_was_measured(parties):
    fed = hr.engines.on(parties, hr.InProcess())
    found = [spread(fed, linear(4, 1), measures=["updates"]) for _ in range(3)]
    variance, scale = curves([1, 2, 3], found)
    assert (variance.y_label, scale.y_label) == ("V_c", "U_s")
    assert variance.series[0].x == (1.0, 2.0, 3.0)
    assert variance.series[0].y == tuple(one.variance for one in found)
    two = curves([1, 2, 3], {"iid": found, "skewed": found[::-1]})
    assert [series.name for series in two[1].series] == ["iid", "skewed"]
